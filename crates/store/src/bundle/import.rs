//! Taking a bundle into a store.

use super::error::ImportError;
use super::known::{Likeness, Summary};
use super::read::{Contents, LIMITS, Part, SMALL, visit, visit_archive};
use crate::{ReadError, RecordError, Store};
use fstone_model::{Dataset, Trial};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Trials that are held in memory at once.
const BATCH: usize = 32;

/// The tables of a run's plan, those that others refer to first. Names of baselines are the importer's to take: they may be in use.
const PLAN_TABLES: [&str; 3] = ["cells", "levels", "blocks"];

/// The tables of a run's trials, likewise; `excerpts` last, for a row of the others takes the excerpt of its trial away. `attempts` are
/// not part of a bundle.
const TRIAL_TABLES: [&str; 9] =
    ["trials", "superblocks", "warnings", "steps", "figures", "commands", "loads", "operations", "excerpts"];

/// A bundle that was read to its end, found complete, and laid out as it will be in the store: in a database of its own that
/// has no name and is gone when this is dropped, also when the process is killed.
#[derive(Debug)]
pub struct Staged {
    store: Store,
    run: u64,
    contents: Contents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imported {
    New(u64),
    /// An earlier state of the run had been imported before. It has the bundle's trials now.
    More {
        run: u64,
        added: u64,
    },
    /// The store already has everything in the bundle, and nothing was changed.
    Known {
        run: u64,
        /// How many finished trials it has there.
        trials: u64,
    },
}

/// Reads a bundle and lays it out. No store is touched.
pub fn stage(path: &Path) -> Result<Staged, ImportError> {
    Staged::lay_out(|part| visit(path, LIMITS, part))
}

impl Staged {
    fn lay_out(visit: impl FnOnce(&mut Lay<'_>) -> Result<Contents, ImportError>) -> Result<Self, ImportError> {
        let mut store = Store::nameless().map_err(RecordError::Sqlite)?;
        let (run, contents) = lay_out(&mut store, visit)?;
        Ok(Self { store, run, contents })
    }

    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// All of it.
    pub fn dataset(&self) -> Result<Dataset, ReadError> {
        self.store.dataset(self.run)
    }

    /// Takes the run into a store, in one transaction: all of it is there afterwards, or nothing. It is marked as imported
    /// at this time. Of a run that was imported before it ended, only the trials that are missing are added.
    ///
    /// While the transaction lasts, a run that records into the store waits. It lasts as long as copying the rows takes,
    /// and, for a run that the store knows, reading both copies to compare them.
    ///
    /// # Errors
    /// [`ImportError`]; the store is as it was then. Among others when the store has a run of this identity with other
    /// content.
    pub fn import(mut self, store: &mut Store, now_unix_ns: u64) -> Result<Imported, ImportError> {
        let now = crate::encode::integer("the time", now_unix_ns)?;
        let identity: String =
            self.store.connection.query_row("SELECT identity FROM main.runs", [], |row| row.get(0))?;
        let path = crate::open::plain_name(store.path());
        // A name is bytes here, as it is for the system.
        let name = ToSqlOutput::Borrowed(ValueRef::Text(path.as_os_str().as_bytes()));
        self.store.connection.execute("ATTACH DATABASE ? AS store", [name])?;
        self.store.connection.pragma_update(Some("store"), "synchronous", "FULL")?;
        let known = |connection: &Connection| -> rusqlite::Result<Vec<(i64, bool)>> {
            let mut statement = connection
                .prepare("SELECT run, imported_unix_ns IS NOT NULL FROM store.runs WHERE identity = ? ORDER BY run")?;
            statement.query_map([&identity], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        if known(&self.store.connection)?.is_empty() {
            let transaction = self.store.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another import may have been faster.
            if known(&transaction)?.is_empty() {
                let run = copy(&transaction, now)?;
                transaction.commit()?;
                return Ok(Imported::New(run));
            }
        }
        let bundle = Summary::of(self.store.dataset(self.run)?)?;
        let transaction = self.store.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut refused = None;
        for (run, imported) in known(&transaction)? {
            let number = run.cast_unsigned();
            // By the store's own connection: no other writes until this transaction ends.
            let here = Summary::of(store.dataset(number)?)?;
            match bundle.beside(&here) {
                Likeness::Within => return Ok(Imported::Known { run: number, trials: here.trials() }),
                Likeness::Beyond if imported => {
                    let added = add(&transaction, run, now)?;
                    transaction.commit()?;
                    return Ok(Imported::More { run: number, added });
                }
                Likeness::Beyond => {
                    let why = "the run was recorded here, and the bundle has more of it".to_owned();
                    refused.get_or_insert(ImportError::Differs { run: number, why });
                }
                Likeness::Other(why) => {
                    refused.get_or_insert(ImportError::Differs { run: number, why });
                }
            }
        }
        match refused {
            Some(error) => Err(error),
            // The run was deleted between the two looks.
            None => {
                let run = copy(&transaction, now)?;
                transaction.commit()?;
                Ok(Imported::New(run))
            }
        }
    }
}

type Lay<'l> = dyn FnMut(Part) -> Result<(), ImportError> + 'l;

fn lay_out(
    store: &mut Store,
    visit: impl FnOnce(&mut Lay<'_>) -> Result<Contents, ImportError>,
) -> Result<(u64, Contents), ImportError> {
    let (mut begun, mut batch) = (None, Vec::<Trial>::new());
    let contents = visit(&mut |part| {
        match part {
            Part::Run(run) => begun = Some(store.begin_run(&run)?),
            Part::Trial(trial) => batch.push(*trial),
        }
        if let Some(run) = begun.filter(|_| batch.len() == BATCH) {
            store.record_trials(run, &batch)?;
            batch.clear();
        }
        Ok(())
    })?;
    let Some(run) = begun else { unreachable!("a bundle without a run is an error") };
    store.record_trials(run, &batch)?;
    Ok((run, contents))
}

/// A store in memory that takes archives in and gives them back, one after the other. For fuzzing: a store of its own for
/// each of them would be most of the work.
#[derive(Debug)]
pub struct Passage(Store);

impl Passage {
    /// An empty one.
    pub fn new() -> Result<Self, RecordError> {
        Ok(Self(Store::nameless()?))
    }

    /// The run in an archive, before its compression, as a store gives it back that it was imported into. Within limits that
    /// suit small inputs.
    ///
    /// # Panics
    /// When what was imported cannot be read back.
    pub fn pass(&mut self, archive: &[u8]) -> Result<Dataset, ImportError> {
        let Self(store) = self;
        let taken = lay_out(store, |part| visit_archive(Path::new("bundle"), archive, SMALL, part));
        let dataset = taken.map(|(run, _)| store.dataset(run).expect("what was imported can be read"));
        store.connection.execute("DELETE FROM runs", []).map_err(RecordError::Sqlite)?;
        dataset
    }
}

/// Copies the one run of a database into the attached store, with a number of the store's.
fn copy(transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<u64> {
    transaction.execute("UPDATE main.runs SET imported_unix_ns = ?", [now])?;
    let columns = columns(transaction, "runs")?;
    transaction.execute(&format!("INSERT INTO store.runs ({columns}) SELECT {columns} FROM main.runs"), [])?;
    let run = transaction.last_insert_rowid();
    copy_tables(transaction, &PLAN_TABLES, run)?;
    copy_tables(transaction, &TRIAL_TABLES, run)?;
    Ok(run.cast_unsigned())
}

/// Adds to a run of the attached store the trials that only this database has, and its end. Returns how many they are.
fn add(transaction: &Transaction<'_>, run: i64, now: i64) -> rusqlite::Result<u64> {
    transaction.execute(
        "DELETE FROM main.trials WHERE (cell, repetition) IN (SELECT cell, repetition FROM store.trials WHERE run = ?)",
        [run],
    )?;
    let added = transaction.query_row("SELECT count(*) FROM main.trials", [], |row| row.get::<_, i64>(0))?;
    copy_tables(transaction, &TRIAL_TABLES, run)?;
    transaction
        .execute("DELETE FROM main.blocks WHERE block IN (SELECT block FROM store.blocks WHERE run = ?)", [run])?;
    copy_tables(transaction, &["blocks"], run)?;
    transaction.execute(
        "UPDATE store.runs SET imported_unix_ns = ?2,
             finished_unix_ns = nullif(max(ifnull(finished_unix_ns, -1),
                                           ifnull((SELECT finished_unix_ns FROM main.runs), -1)), -1)
         WHERE run = ?1",
        params![run, now],
    )?;
    Ok(added.cast_unsigned())
}

fn copy_tables(transaction: &Transaction<'_>, tables: &[&str], run: i64) -> rusqlite::Result<()> {
    for table in tables {
        let columns = columns(transaction, table)?;
        let sql = format!("INSERT INTO store.{table} (run, {columns}) SELECT ?, {columns} FROM main.{table}");
        transaction.execute(&sql, params![run])?;
    }
    Ok(())
}

/// The columns of a table but for the run's number. Both databases have the same schema.
fn columns(connection: &Connection, table: &str) -> rusqlite::Result<String> {
    connection.query_row(
        "SELECT group_concat(name, ', ') FROM pragma_table_info(?, 'main') WHERE name <> 'run'",
        [table],
        |row| row.get(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::export::Writer;
    use crate::bundle::files::{FORMAT, FORMAT_NAME, Format, RUN_NAME, study_files, trial_name};
    use crate::bundle::{read, verify};
    use fstone_model::dataset::Run;
    use fstone_model::{LoadReport, load::OperationReport};
    use std::path::PathBuf;

    const TRIAL: &str = r#"{"trial": {"id": {"cell": 0, "repetition": 0}, "position": 0, "started_unix_ns": 1, "duration_ns": 1,
        "seed": 1, "outcome": {"outcome": "completed"}, "steps": [], "effective": {"mount": null, "superblock": []},
        "warnings": []}}"#;

    /// A bundle of these trials, whose manifest has the right hashes.
    fn bundle(directory: &Path, trials: &[&str]) -> PathBuf {
        let run: Run = serde_json::from_str(include_str!("../../tests/it/run_without_cells.json")).expect("a run");
        let path = directory.join("run.fstone");
        let file = std::fs::File::create(&path).expect("made");
        let mut writer = Writer::new(&file, 0).expect("a writer");
        writer.json(FORMAT_NAME, &Format { format: FORMAT.into(), version: 2 }).expect("written");
        writer.json(RUN_NAME, &run).expect("written");
        for (name, content) in study_files(&run.plan) {
            writer.entry(&name, content.as_bytes()).expect("written");
        }
        for (index, trial) in trials.iter().enumerate() {
            writer.entry(&trial_name(index), trial.as_bytes()).expect("written");
        }
        writer.finish().expect("written");
        path
    }

    /// Hashes prove nothing about sense.
    #[test]
    fn what_contradicts_itself_leaves_nothing_in_the_store() {
        let load = LoadReport { operations: vec![OperationReport::default()], ..LoadReport::default() };
        let load = serde_json::to_string(&load).expect("JSON").replacen("\"min_ns\":0", "\"min_ns\":9", 1);
        let step =
            format!(r#"[{{"step":"load","started_ns":0,"duration_ns":1,"commands":[],"figures":[],"load":{load}}}]"#);
        let step_twice = r#"[{"step":"a","started_ns":0,"duration_ns":1,"commands":[],"figures":[],"load":null},
            {"step":"a","started_ns":0,"duration_ns":1,"commands":[],"figures":[],"load":null}]"#;
        let turned = r#"[{"step":"load","started_ns":0,"duration_ns":1,"commands":[],"load":null,
            "figures":[{"metric":"transactions per second","value":1.0,"unit":"per-second","better":"lower"}]}]"#;
        let in_bytes = turned.replace("per-second", "bytes").replace("lower", "higher");
        for (trials, told) in [
            (vec![TRIAL], "the plan has 0 cells"),
            (
                vec![&TRIAL.replacen("\"steps\": []", &format!("\"steps\": {turned}"), 1)],
                "figure \"transactions per second\" of step \"load\" is in PerSecond, better Lower",
            ),
            (
                vec![&TRIAL.replacen("\"steps\": []", &format!("\"steps\": {in_bytes}"), 1)],
                "is in Bytes, better Higher",
            ),
            (
                vec![&TRIAL.replacen("\"steps\": []", &format!("\"steps\": {step}"), 1)],
                "smallest value, 9 ns, and its largest, 0 ns, contradict",
            ),
            (
                vec![&TRIAL.replacen("\"steps\": []", &format!("\"steps\": {step_twice}"), 1)],
                "step \"a\" is there twice",
            ),
        ] {
            let directory = tempfile::tempdir().expect("a directory");
            let path = bundle(directory.path(), &trials);
            let mut store = Store::open(&directory.path().join("fstone.db")).expect("a store");
            let error = stage(&path).and_then(|staged| staged.import(&mut store, 1)).expect_err(told);
            assert!(error.to_string().contains(told), "{error}");
            assert!(read(&path).is_err() && verify(&path).is_err(), "nor is it read");
            assert_eq!(store.runs().expect("read"), []);
        }
    }
}
