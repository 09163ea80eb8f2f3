//! The versions of the schema, and how a file is migrated from one to the next.
//!
//! A file's version is its `PRAGMA user_version`. [`MIGRATIONS`]`[n]` takes version n to n + 1; an entry that has been
//! released is never edited, only followed by another. `PRAGMA application_id` tells a store from any other SQLite
//! file.

use rusqlite::{Connection, TransactionBehavior};

/// "fsto", as the four bytes at offset 68 of the file.
pub(crate) const APPLICATION_ID: i64 = 0x6673_746f;

/// What takes a file of version n to n + 1.
const MIGRATIONS: &[&str] = &[
    include_str!("0001.sql"),
    include_str!("0002.sql"),
    include_str!("0003.sql"),
    include_str!("0004.sql"),
    include_str!("0005.sql"),
    include_str!("0006.sql"),
    include_str!("0007.sql"),
    include_str!("0008.sql"),
];

/// The version this program writes.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A database without any table: new.
    Empty,
    /// A store of this version.
    Store(i64),
    /// A database of some other program.
    Foreign,
}

/// What the database is, by its header and by whether it has tables.
pub(crate) fn kind(connection: &Connection) -> rusqlite::Result<Kind> {
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if application == APPLICATION_ID {
        return Ok(Kind::Store(version));
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(if application == 0 && version == 0 && tables == 0 { Kind::Empty } else { Kind::Foreign })
}

/// Brings an empty file or an older store to [`VERSION`], in one transaction; does nothing to any other file. Returns what
/// the file is afterwards. Safe if several processes do it at once: the second one finds it done.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<Kind> {
    match kind(connection)? {
        Kind::Empty => {}
        Kind::Store(version) if version < VERSION => {}
        done => return Ok(done),
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = match kind(&transaction)? {
        Kind::Empty => 0,
        Kind::Store(version) => version,
        Kind::Foreign => return Ok(Kind::Foreign),
    };
    for migration in MIGRATIONS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    if from < VERSION {
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
    fn every_step_of_migration_leads_to_the_current_version() {
        let mut connection = Connection::open_in_memory().expect("in memory");
        assert_eq!(kind(&connection), Ok(Kind::Empty));
        assert_eq!(migrate(&mut connection), Ok(Kind::Store(VERSION)));
        assert_eq!(migrate(&mut connection), Ok(Kind::Store(VERSION)), "a second time changes nothing");
    }

    /// A store of this version with a run.
    fn old(version: usize) -> Connection {
        let connection = Connection::open_in_memory().expect("in memory");
        connection.execute_batch(&MIGRATIONS[..version].concat()).expect("the old schema");
        connection.pragma_update(None, "application_id", APPLICATION_ID).expect("ours");
        connection.pragma_update(None, "user_version", version as i64).expect("the old version");
        let run = "INSERT INTO runs (run, study, title, quick, host, kernel, started_unix_ns, finished_unix_ns, planned_minimum, command,
                   plan, inventory) VALUES (7, 's', 't', 0, 'h', 'k', 1, 2, 3, '[]', '{}', '{}')";
        connection.execute_batch(run).expect("a run");
        connection
    }

    #[test]
    fn a_store_of_the_first_version_keeps_what_it_has() {
        let mut connection = old(1);
        assert_eq!(migrate(&mut connection), Ok(Kind::Store(VERSION)));
        let kept: i64 = connection.query_row("SELECT run FROM runs", [], |row| row.get(0)).expect("a run");
        assert_eq!(kept, 7);
        connection.execute_batch("INSERT INTO baselines VALUES ('main', 7, 1)").expect("the new table");
    }

    #[test]
    fn runs_of_the_second_version_get_the_identity_that_bundles_of_them_have() {
        let mut connection = old(2);
        // The same run imported once more, as version 2 did without a word; a baseline of it.
        let again = "INSERT INTO runs SELECT 8, study, title, quick, host, kernel, started_unix_ns, finished_unix_ns, planned_minimum,
                     command, plan, inventory FROM runs; INSERT INTO baselines VALUES ('main', 8, 1)";
        connection.execute_batch(again).expect("a second one");
        assert_eq!(migrate(&mut connection), Ok(Kind::Store(VERSION)));
        let mut rows =
            connection.prepare("SELECT run, identity, imported_unix_ns FROM runs ORDER BY run").expect("SQL");
        let identities: Vec<(i64, String, Option<i64>)> = rows
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .and_then(Iterator::collect)
            .expect("runs");
        assert_eq!(identities, [(7, "1@h".to_owned(), None), (8, "1@h".to_owned(), None)]);
        let baseline: i64 = connection.query_row("SELECT run FROM baselines", [], |row| row.get(0)).expect("kept");
        assert_eq!(baseline, 8);
    }

    #[test]
    fn trials_of_the_fourth_version_are_kept_without_excerpts() {
        let mut connection = old(4);
        let trial = "INSERT INTO cells VALUES (7, 0, 'l', 'f', 'k', '', '', 'd');
                     INSERT INTO trials VALUES (7, 0, 0, 0, 1, 2, '3', 'completed', NULL, NULL, NULL, NULL);
                     INSERT INTO steps VALUES (7, 0, 0, 'load', 0, 1, 2);
                     INSERT INTO figures VALUES (7, 0, 0, 'load', 'CPU', 1.5, 'percent', 'lower', 0)";
        connection.execute_batch(trial).expect("a trial");
        assert_eq!(migrate(&mut connection), Ok(Kind::Store(VERSION)));
        let count = |table: &str| -> i64 {
            connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("a count")
        };
        assert_eq!((count("trials"), count("figures"), count("excerpts")), (1, 1, 0));
    }

    #[test]
    fn a_run_of_the_sixth_version_has_no_note_and_takes_one() {
        let mut connection = old(6);
        assert_eq!(migrate(&mut connection), Ok(Kind::Store(VERSION)));
        let note: Option<String> = connection.query_row("SELECT note FROM runs", [], |row| row.get(0)).expect("a run");
        assert_eq!(note, None);
        let set = |note: &str| connection.execute("UPDATE runs SET note = ?", [note]);
        let longest = "ü".repeat(fstone_model::note::NOTE_CHARACTERS);
        assert_eq!(set(&longest), Ok(1));
        assert!(set(&format!("{longest}x")).is_err() && set("").is_err(), "nor can one be made by hand that is none");
    }

    #[test]
    fn a_database_of_another_program_is_left_alone() {
        let mut connection = Connection::open_in_memory().expect("in memory");
        connection.execute_batch("CREATE TABLE bookmarks (url TEXT)").expect("a table");
        assert_eq!(migrate(&mut connection), Ok(Kind::Foreign));
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0))
            .expect("a count");
        assert_eq!(tables, 1);
    }
}
