//! Baselines: names for runs that others are compared with.

use crate::encode::integer;
use crate::rows::insert;
use crate::{ReadError, RecordError, Store};
use rusqlite::{OptionalExtension, params};

/// Longest name of a baseline, in bytes: enough for a branch, a kernel and a date.
pub const BASELINE_NAME_BYTES: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    pub name: String,
    pub run: u64,
    pub saved_unix_ns: u64,
}

pub(crate) fn is_baseline_name(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= BASELINE_NAME_BYTES && !name.chars().any(char::is_control)
}

impl Store {
    /// Gives a run a name; a name that was another run's is this one's now. Deleting the run takes the name away.
    ///
    /// # Errors
    /// [`RecordError`]: among others for an empty name, one with control characters, and one of more than
    /// [`BASELINE_NAME_BYTES`].
    pub fn save_baseline(&mut self, name: &str, run: u64, now_unix_ns: u64) -> Result<(), RecordError> {
        if !is_baseline_name(name) {
            return Err(RecordError::BaselineName { name: name.to_owned() });
        }
        let (row, saved) = (integer("run", run)?, integer("the time", now_unix_ns)?);
        self.write(|connection| {
            let there = connection.prepare_cached("SELECT 1 FROM runs WHERE run = ?")?.exists(params![row])?;
            if !there {
                return Err(RecordError::NoSuchRun { run });
            }
            insert(
                connection,
                "INSERT INTO baselines (name, run, saved_unix_ns) VALUES (?1, ?2, ?3)
                 ON CONFLICT (name) DO UPDATE SET run = ?2, saved_unix_ns = ?3",
                params![name, row, saved],
            )
        })
    }

    /// The run of this name, if there is one.
    pub fn baseline(&self, name: &str) -> Result<Option<u64>, ReadError> {
        let run: Option<i64> = self
            .connection
            .query_row("SELECT run FROM baselines WHERE name = ?", [name], |row| row.get(0))
            .optional()?;
        Ok(run.map(i64::cast_unsigned))
    }

    /// All baselines, by name.
    pub fn baselines(&self) -> Result<Vec<Baseline>, ReadError> {
        let mut statement = self.connection.prepare("SELECT name, run, saved_unix_ns FROM baselines ORDER BY name")?;
        let rows = statement.query_map([], |row| {
            let number = |column| row.get(column).map(i64::cast_unsigned);
            Ok(Baseline { name: row.get(0)?, run: number(1)?, saved_unix_ns: number(2)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
