//! docs/store.md describes the schema there is, and its queries answer what they are for.

use crate::samples::{CELLS, refused, run, trial};
use fstone_model::metric::catalog;
use fstone_model::outcome::{Outcome, Reason};
use fstone_model::result::TrialId;
use fstone_store::Store;
use rusqlite::{Connection, types::ValueRef};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const DOCUMENT: &str = include_str!("../../../../docs/store.md");

/// The columns each `### table` section names at the start of its rows.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut table = None;
    for line in DOCUMENT.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            table = Some(name.to_owned());
        } else if line.starts_with("## ") {
            table = None;
        } else if let (Some(table), Some(row)) = (&table, line.strip_prefix("| `")) {
            let columns = row.split(" | ").next().expect("a first cell").split(", ");
            let columns = columns.map(|column| column.trim_matches(['`', ' ', '|']).to_owned());
            tables.entry(table.clone()).or_default().extend(columns);
        }
    }
    tables
}

#[test]
fn every_table_and_column_is_described_and_no_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    drop(Store::open(&path).expect("a store"));
    let connection = Connection::open(&path).expect("opened");
    let mut there: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let sql = "SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
               WHERE tables.type IN ('table', 'view') AND tables.name NOT LIKE 'sqlite%'";
    let mut statement = connection.prepare(sql).expect("prepared");
    let mut rows = statement.query([]).expect("run");
    while let Some(row) = rows.next().expect("a row") {
        there.entry(row.get(0).expect("a table")).or_default().insert(row.get(1).expect("a column"));
    }
    assert_eq!(documented(), there);
}

/// A run of eight trials and an attempt. What a careless query would count as well is there, too: a failed trial with
/// figures, a step besides the load with the same metrics, and the run once more, as an older fstone imported it.
fn recorded(path: &Path) {
    let mut store = Store::open(path).expect("a store");
    for _copy in 0..2 {
        let number = store.begin_run(&run()).expect("recorded");
        for position in 0..2 * CELLS {
            let id = TrialId { cell: position % CELLS, repetition: position / CELLS };
            store.trial_started(number, id, position, 1).expect("recorded");
            let mut trial = if id.cell == 3 { refused(id, position) } else { trial(id, position) };
            if let [mkfs, load] = &mut trial.steps[..] {
                mkfs.figures.extend([catalog::CPU.figure(999.0), catalog::TRANSACTIONS_PER_SECOND.figure(1e9)]);
                load.figures[0].value = 800.0 + f64::from(position);
                load.figures[1].value = 40.0 - f64::from(position);
            }
            if position == CELLS {
                trial.outcome = Outcome::Failed(Reason::new("load", "ENOSPC"));
            }
            store.record_trial(number, &trial).expect("recorded");
        }
        store.trial_started(number, TrialId { cell: 0, repetition: 2 }, 2 * CELLS, 1).expect("recorded");
        store.save_baseline("main", number, 1).expect("saved");
    }
}

#[test]
fn every_query_answers_what_its_sentence_asks() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    recorded(&path);
    let connection = Connection::open(&path).expect("opened");
    let mut answers = String::new();
    for part in DOCUMENT.split("```sql\n").skip(1) {
        let query = part.split("```").next().expect("closed");
        let mut statement = connection.prepare(query).unwrap_or_else(|error| panic!("{error} in {query}"));
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap_or_else(|error| panic!("{error} in {query}"));
        answers.push_str("--\n");
        while let Some(row) = rows.next().unwrap_or_else(|error| panic!("{error} in {query}")) {
            let values = (0..columns).map(|column| match row.get_ref(column).expect("a value") {
                ValueRef::Null => "NULL".to_owned(),
                ValueRef::Integer(value) => value.to_string(),
                ValueRef::Real(value) => value.to_string(),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
            });
            answers.push_str(&(values.collect::<Vec<_>>().join("|") + "\n"));
        }
    }
    assert_eq!(answers, ANSWERS);
}

/// What the queries have to find in [`recorded`], in the document's order.
const ANSWERS: &str = "\
--
1|small-file|2026-05-28 20:26:40|machine|8|12
2|small-file|2026-05-28 20:26:40|machine|8|12
--
ext4 · 1|800|800|800|1
ext4 · 16|803|801|805|2
xfs · 1|804|802|806|2
--
1|ext4|800
16|ext4|803
1|xfs|804
--
0|ext4 · 1|40
1|ext4 · 16|39
2|xfs · 1|38
5|ext4 · 16|35
6|xfs · 1|34
--
ext4 · 1|failed|load|ENOSPC|NULL|1
xfs · 16|refused|mount|ext4: Unknown parameter 'nomballoc'|leave it out|2
--
ext4 · 1|2|8
--
ext4 · 1|readall|2000|1097364.1441275
ext4 · 16|readall|2000|1097364.1441275
xfs · 1|readall|2000|1097364.1441275
--
1|Linux 6.1.0 #1 SMP x86_64|800
--
main|2|Linux 6.1.0 #1 SMP x86_64
--
1|blocks||vda
2|blocks||vda
";
