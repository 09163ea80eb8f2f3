//! The schema and its version.
//!
//! A file's version is its `PRAGMA user_version`. `PRAGMA application_id` tells a store from any other SQLite file.

use rusqlite::{Connection, TransactionBehavior};

/// "fsto", as the four bytes at offset 68 of the file.
pub(crate) const APPLICATION_ID: i64 = 0x6673_746f;

const SCHEMA: &str = include_str!("schema.sql");

/// The version of the schema. Stores of others are refused.
pub(crate) const VERSION: i64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Empty,
    Store(i64),
    Foreign,
}

/// What the database is, by its header and by whether it has tables.
pub(crate) fn kind(connection: &Connection) -> rusqlite::Result<Kind> {
    // Before its header: another process may make the store meanwhile, and a header that has just been written is right whatever was
    // there before.
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if application == APPLICATION_ID {
        return Ok(Kind::Store(version));
    }
    Ok(if application == 0 && version == 0 && tables == 0 { Kind::Empty } else { Kind::Foreign })
}

/// Makes a store of an empty file, in one transaction; does nothing to any other file. Returns what the file is afterwards. Safe if
/// several processes do it at once: the second one finds it done.
pub(crate) fn create(connection: &mut Connection) -> rusqlite::Result<Kind> {
    let found = kind(connection)?;
    if found != Kind::Empty {
        return Ok(found);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if kind(&transaction)? == Kind::Empty {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    let kind = kind(&transaction)?;
    transaction.commit()?;
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_becomes_a_store_and_stays_one() {
        let mut connection = Connection::open_in_memory().expect("in memory");
        assert_eq!(kind(&connection), Ok(Kind::Empty));
        assert_eq!(create(&mut connection), Ok(Kind::Store(VERSION)));
        assert_eq!(create(&mut connection), Ok(Kind::Store(VERSION)), "a second time changes nothing");
    }

    #[test]
    fn a_note_is_as_long_as_it_may_be() {
        let mut connection = Connection::open_in_memory().expect("in memory");
        create(&mut connection).expect("made");
        let run = "INSERT INTO runs (study, title, quick, host, kernel, started_unix_ns, planned_minimum, command, plan, inventory, identity)
                   VALUES ('s', 't', 0, 'h', 'k', 1, 3, '[]', '{}', '{}', 'i')";
        connection.execute_batch(run).expect("a run");
        let set = |note: &str| connection.execute("UPDATE runs SET note = ?", [note]);
        let longest = "ü".repeat(fstone_model::note::NOTE_CHARACTERS);
        assert_eq!(set(&longest), Ok(1));
        assert!(set(&format!("{longest}x")).is_err() && set("").is_err(), "nor can one be made by hand that is none");
    }

    #[test]
    fn a_database_of_another_program_is_left_alone() {
        let mut connection = Connection::open_in_memory().expect("in memory");
        connection.execute_batch("CREATE TABLE bookmarks (url TEXT)").expect("a table");
        assert_eq!(create(&mut connection), Ok(Kind::Foreign));
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0))
            .expect("a count");
        assert_eq!(tables, 1);
    }
}
