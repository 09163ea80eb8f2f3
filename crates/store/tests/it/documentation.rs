//! docs/store.md describes the schema there is, and its queries run.

use crate::samples::{CELLS, refused, run, trial};
use fstone_model::result::TrialId;
use fstone_store::Store;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

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

#[test]
fn every_query_runs_and_finds_something() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    let mut store = Store::open(&path).expect("a store");
    let number = store.begin_run(&run()).expect("recorded");
    assert_eq!(number, 1, "the number that the queries ask for");
    for position in 0..2 * CELLS {
        let id = TrialId { cell: position % CELLS, repetition: position / CELLS };
        store.trial_started(number, id, position, 1).expect("recorded");
        let trial = if id.cell == 3 { refused(id, position) } else { trial(id, position) };
        store.record_trial(number, &trial).expect("recorded");
    }
    store.trial_started(number, TrialId { cell: 0, repetition: 2 }, 2 * CELLS, 1).expect("recorded");
    store.save_baseline("main", number, 1).expect("saved");
    drop(store);

    let connection = Connection::open(&path).expect("opened");
    let queries: Vec<&str> =
        DOCUMENT.split("```sql\n").skip(1).map(|rest| rest.split("```").next().expect("closed")).collect();
    assert!(queries.len() >= 8, "{} queries", queries.len());
    for query in queries {
        let mut statement = connection.prepare(query).unwrap_or_else(|error| panic!("{error} in {query}"));
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap_or_else(|error| panic!("{error} in {query}"));
        let mut count = 0;
        while let Some(row) = rows.next().unwrap_or_else(|error| panic!("{error} in {query}")) {
            for column in 0..columns {
                row.get_ref(column).expect("a value");
            }
            count += 1;
        }
        assert!(count > 0, "nothing found by {query}");
    }
}
