//! Rows of a query.

use crate::ReadError;
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;

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
