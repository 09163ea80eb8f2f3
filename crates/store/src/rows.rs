//! What every row is written with.

use crate::RecordError;
use rusqlite::{Connection, Params, params};

/// Runs an INSERT whose statement is kept prepared.
pub(crate) fn insert(connection: &Connection, sql: &str, row: impl Params) -> Result<(), RecordError> {
    connection.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

/// An error that says which of the two is missing, unless both are there.
pub(crate) fn require_cell(connection: &Connection, run: u64, cell: u32) -> Result<(), RecordError> {
    let (run_exists, cell_exists) = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM runs WHERE run = ?1), EXISTS (SELECT 1 FROM cells WHERE run = ?1 AND cell = ?2)",
        )?
        .query_row(params![run.cast_signed(), cell], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match (run_exists, cell_exists) {
        (true, true) => Ok(()),
        (true, false) => Err(RecordError::NoSuchCell { run, cell }),
        (false, _) => Err(RecordError::NoSuchRun { run }),
    }
}
