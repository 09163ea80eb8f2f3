//! Taking a bundle into a store.

use super::error::ImportError;
use super::read::{Contents, LIMITS, Part, SMALL, visit, visit_archive};
use crate::{RecordError, Store};
use fstone_model::{Dataset, Trial};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Trials that are held in memory at once.
const BATCH: usize = 32;

/// The tables of a run, those that others refer to first. `attempts` are not part of a bundle, and a baseline is its
/// store's own.
const TABLES: [&str; 10] =
    ["cells", "levels", "trials", "superblocks", "warnings", "steps", "figures", "commands", "loads", "operations"];

/// A bundle that was read to its end, found whole, and laid out as it will be in the store: in a database of its own that
/// has no name and is gone when this is dropped, also when the process is killed.
#[derive(Debug)]
pub struct Staged {
    store: Store,
    contents: Contents,
}

/// What became of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imported {
    /// The run is in the store, under this number.
    New(u64),
    /// It was there before, and nothing was changed.
    Known {
        /// Its number.
        run: u64,
        /// How many finished trials it has there.
        trials: u64,
    },
}

/// Reads a bundle and lays it out. No store is touched.
///
/// # Errors
/// [`ImportError`].
pub fn stage(path: &Path) -> Result<Staged, ImportError> {
    Staged::lay_out(|part| visit(path, LIMITS, part))
}

impl Staged {
    fn lay_out(visit: impl FnOnce(&mut Lay<'_>) -> Result<Contents, ImportError>) -> Result<Self, ImportError> {
        let mut store = Store::nameless().map_err(RecordError::Sqlite)?;
        let (_, contents) = lay_out(&mut store, visit)?;
        Ok(Self { store, contents })
    }

    /// What is in it.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Takes the run into a store, in one transaction: all of it is there afterwards, or nothing. It is marked as imported
    /// at this time. A run that the store has already, by its identity, is left as it is.
    ///
    /// The transaction only copies rows, so a run that records into the store meanwhile waits for no more than that.
    ///
    /// # Errors
    /// [`ImportError`]; the store is as it was then.
    pub fn import(mut self, store: &mut Store, now_unix_ns: u64) -> Result<Imported, ImportError> {
        let now = crate::encode::integer("the time", now_unix_ns)?;
        let imported = copy(&mut self.store.connection, store.path(), now);
        imported.map_err(|cause| ImportError::Record(RecordError::Sqlite(cause)))
    }
}

type Lay<'l> = dyn FnMut(Part) -> Result<(), ImportError> + 'l;

/// Records a run and its trials as they come.
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
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn new() -> Result<Self, RecordError> {
        Ok(Self(Store::nameless()?))
    }

    /// The run in an archive, before its compression, as a store gives it back that it was imported into. Within limits that
    /// suit small inputs.
    ///
    /// # Errors
    /// [`ImportError`], as [`stage`].
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

/// Copies the one run of a database into the store at `path`, with a number of the store's.
fn copy(connection: &mut Connection, path: &Path, now: i64) -> rusqlite::Result<Imported> {
    // A name is bytes here, as it is for the system.
    let name = ToSqlOutput::Borrowed(ValueRef::Text(path.as_os_str().as_bytes()));
    connection.execute("ATTACH DATABASE ? AS store", [name])?;
    connection.pragma_update(Some("store"), "synchronous", "FULL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let known = transaction
        .query_row(
            "SELECT run, (SELECT count(*) FROM store.trials WHERE trials.run = runs.run) FROM store.runs
             WHERE identity = (SELECT identity FROM main.runs) ORDER BY run LIMIT 1",
            [],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        )
        .optional()?;
    if let Some((run, trials)) = known {
        return Ok(Imported::Known { run: run.cast_unsigned(), trials: trials.cast_unsigned() });
    }
    transaction.execute("UPDATE main.runs SET imported_unix_ns = ?", [now])?;
    let columns = columns(&transaction, "runs")?;
    transaction.execute(&format!("INSERT INTO store.runs ({columns}) SELECT {columns} FROM main.runs"), [])?;
    let run = transaction.last_insert_rowid();
    for table in TABLES {
        let columns = self::columns(&transaction, table)?;
        let sql = format!("INSERT INTO store.{table} (run, {columns}) SELECT ?, {columns} FROM main.{table}");
        transaction.execute(&sql, params![run])?;
    }
    transaction.commit()?;
    Ok(Imported::New(run.cast_unsigned()))
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
    use crate::bundle::files::{FORMAT, FORMAT_NAME, Format, RUN_NAME, VERSION, study_files, trial_name};
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
        writer.json(FORMAT_NAME, &Format { format: FORMAT.into(), version: VERSION }).expect("written");
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
        for (trials, told) in [
            (vec![TRIAL], "the plan has 0 cells"),
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
