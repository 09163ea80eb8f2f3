//! How rows are written and read.

use crate::{ReadError, RecordError};
use rusqlite::{Connection, Params, Row, params};
use std::collections::BTreeMap;

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

pub(crate) type ByTrial<T> = BTreeMap<(u32, u32), T>;

pub(crate) fn rows<T>(
    connection: &Connection,
    sql: &str,
    parameter: i64,
    make: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, ReadError> {
    Ok(connection.prepare_cached(sql)?.query_map([parameter], make)?.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}
