//! Reading: the list of runs, and one run with everything that was recorded of it.

use crate::encode::from_json;
use crate::excerpt::{self, Parts};
use crate::rows::{ByTrial, rows, unsigned};
use crate::steps::{Loads, steps};
use crate::{ReadError, Store};
use fstone_model::Note;
use fstone_model::dataset::{BlockOrigin, Dataset, Holder, Run};
use fstone_model::outcome::{Outcome, Reason};
use fstone_model::result::{Effective, Trial, TrialId};
use rusqlite::{Connection, OptionalExtension, Row};
use sha2::{Digest, Sha256};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    pub id: u64,
    pub study: String,
    pub title: String,
    pub quick: bool,
    pub host: String,
    pub kernel: String,
    pub started_unix_ns: u64,
    /// When it ended; `None` while it runs, or when it was killed.
    pub finished_unix_ns: Option<u64>,
    /// Which run it is, wherever it is kept.
    pub identity: String,
    /// When it was imported; `None` for a run of this store's own.
    pub imported_unix_ns: Option<u64>,
    /// The process that carries it out, or did last; `None` for imported runs.
    pub holder: Option<Holder>,
    pub trials: u64,
    /// Cells times the least number of repeats.
    pub planned_minimum: u64,
    pub note: Option<Note>,
    /// How many trials ended how, most frequent first: ("completed", 14), ("refused", 1).
    pub outcomes: Vec<(String, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    pub id: TrialId,
    pub position: u32,
    pub started_unix_ns: u64,
}

impl Store {
    /// All runs, the oldest first.
    pub fn runs(&self) -> Result<Vec<RunSummary>, ReadError> {
        let snapshot = self.snapshot()?;
        let listed = rows(
            &snapshot,
            "SELECT run, study, title, quick, host, kernel, started_unix_ns, finished_unix_ns, planned_minimum, identity,
                    imported_unix_ns, holder, note
             FROM runs WHERE ?1 = 0 ORDER BY run",
            0,
            |row| {
                let run = RunSummary {
                    id: unsigned(row, 0)?,
                    study: row.get(1)?,
                    title: row.get(2)?,
                    quick: row.get(3)?,
                    host: row.get(4)?,
                    kernel: row.get(5)?,
                    started_unix_ns: unsigned(row, 6)?,
                    finished_unix_ns: optional_unsigned(row, 7)?,
                    identity: row.get(9)?,
                    imported_unix_ns: optional_unsigned(row, 10)?,
                    trials: 0,
                    planned_minimum: unsigned(row, 8)?,
                    outcomes: Vec::new(),
                    holder: None,
                    note: None,
                };
                Ok((run, row.get::<_, Option<String>>(11)?, row.get::<_, Option<String>>(12)?))
            },
        )?;
        let mut runs = listed
            .into_iter()
            .map(|(run, holder, text)| {
                let holder = holder.map(|text| from_json("the holder", &text)).transpose()?;
                Ok(RunSummary { holder, note: note(text)?, ..run })
            })
            .collect::<Result<Vec<_>, ReadError>>()?;
        let counts = rows(
            &snapshot,
            "SELECT run, outcome, count(*) FROM trials WHERE ?1 = 0 GROUP BY run, outcome ORDER BY count(*) DESC, outcome",
            0,
            |row| Ok((unsigned(row, 0)?, row.get::<_, String>(1)?, unsigned(row, 2)?)),
        )?;
        for (run, outcome, count) in counts {
            if let Ok(index) = runs.binary_search_by_key(&run, |summary| summary.id) {
                runs[index].trials += count;
                runs[index].outcomes.push((outcome, count));
            }
        }
        Ok(runs)
    }

    /// One run and its finished trials by position, exactly as they were recorded, from one moment of the store.
    pub fn dataset(&self, run: u64) -> Result<Dataset, ReadError> {
        self.read(run, Loads::Whole)
    }

    /// The SHA-256 of a run's identity and plan, as they are in the store: another plan, or that of another run, has another.
    pub fn plan_digest(&self, run: u64) -> Result<String, ReadError> {
        let text: Option<String> = self
            .connection
            .query_row("SELECT identity || char(10) || plan FROM runs WHERE run = ?", [run.cast_signed()], |row| {
                row.get(0)
            })
            .optional()?;
        let hexadecimal = |text: String| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        text.map(hexadecimal).ok_or(ReadError::NoSuchRun { run })
    }

    /// [`Store::dataset`] as far as a report shows it, in a fraction of the time: load reports are shortened
    /// ([`fstone_model::LoadReport::shorten`]).
    pub fn shown(&self, run: u64) -> Result<Dataset, ReadError> {
        self.read(run, Loads::Shown)
    }

    /// [`Store::shown`] without what loads did over time (`series` is empty in every report), which takes half of the time and of the
    /// memory: what tables are made of.
    pub fn without_series(&self, run: u64) -> Result<Dataset, ReadError> {
        self.read(run, Loads::WithoutSeries)
    }

    /// [`Store::shown`] without the load engine's reports (`load` is `None` in every step): what a comparison or a history is
    /// made of.
    pub fn figures(&self, run: u64) -> Result<Dataset, ReadError> {
        self.read(run, Loads::LeftOut)
    }

    fn read(&self, run: u64, loads: Loads) -> Result<Dataset, ReadError> {
        let snapshot = self.snapshot()?;
        let number = run.cast_signed();
        let (started_unix_ns, finished_unix_ns, command, plan, inventory, identity, text) = snapshot
            .query_row(
                "SELECT started_unix_ns, finished_unix_ns, command, plan, inventory, identity, note FROM runs WHERE run = ?",
                [number],
                |row| {
                    let texts: (String, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
                    let (started, finished) = (unsigned(row, 0)?, optional_unsigned(row, 1)?);
                    Ok((started, finished, texts.0, texts.1, texts.2, row.get(5)?, row.get(6)?))
                },
            )
            .optional()?
            .ok_or(ReadError::NoSuchRun { run })?;
        let run = Run {
            id: run,
            identity,
            started_unix_ns,
            finished_unix_ns,
            command: from_json("the command line", &command)?,
            plan: from_json("the plan", &plan)?,
            inventory: from_json("the inventory", &inventory)?,
            note: note(text)?,
            blocks: blocks(&snapshot, number)?,
        };
        Dataset::new(run, trials(&snapshot, number, loads)?)
            .map_err(|error| ReadError::Damaged { what: "the run", why: error.to_string() })
    }

    /// Starts of trials that did not end: what a killed run was doing, or what a running one is doing. By position.
    pub fn unfinished(&self, run: u64) -> Result<Vec<Attempt>, ReadError> {
        let snapshot = self.snapshot()?;
        rows(
            &snapshot,
            "SELECT cell, repetition, position, started_unix_ns FROM attempts
             WHERE run = ?1 AND (cell, repetition) NOT IN (SELECT cell, repetition FROM trials WHERE run = ?1)
             ORDER BY position, started_unix_ns",
            run.cast_signed(),
            |row| {
                Ok(Attempt {
                    id: TrialId { cell: row.get(0)?, repetition: row.get(1)? },
                    position: row.get(2)?,
                    started_unix_ns: unsigned(row, 3)?,
                })
            },
        )
    }

    /// The label of a cell; `None` when there is no such run or cell.
    pub fn cell_label(&self, run: u64, cell: u32) -> Result<Option<String>, ReadError> {
        let sql = "SELECT label FROM cells WHERE run = ?1 AND cell = ?2";
        Ok(self.connection.query_row(sql, (run.cast_signed(), cell), |row| row.get(0)).optional()?)
    }

    /// A read transaction: every query in it sees the store as it was at the first.
    fn snapshot(&self) -> rusqlite::Result<rusqlite::Transaction<'_>> {
        self.connection.unchecked_transaction()
    }
}

fn blocks(connection: &Connection, run: i64) -> Result<Vec<BlockOrigin>, ReadError> {
    let sql = "SELECT block, machine, inventory FROM blocks WHERE run = ? ORDER BY block";
    rows(connection, sql, run, |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)))?
        .into_iter()
        .map(|(block, machine, text)| {
            Ok(BlockOrigin { block, machine, inventory: from_json("the inventory of a block", &text)? })
        })
        .collect()
}

/// A note from a store that anyone may have written.
fn note(text: Option<String>) -> Result<Option<Note>, ReadError> {
    text.map(Note::try_from)
        .transpose()
        .map_err(|error| ReadError::Damaged { what: "the note of a run", why: error.to_string() })
}

fn optional_unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    if row.get_ref(column)? == rusqlite::types::ValueRef::Null { Ok(None) } else { unsigned(row, column).map(Some) }
}

fn parts(connection: &Connection, run: i64, loads: Loads) -> Result<ByTrial<Parts>, ReadError> {
    let mut parts = ByTrial::<Parts>::new();
    for (key, steps) in steps(connection, run, loads)? {
        parts.entry(key).or_default().steps = steps;
    }
    let superblocks =
        "SELECT cell, repetition, name, value FROM superblocks WHERE run = ? ORDER BY cell, repetition, number";
    for (key, superblock) in by_trial(connection, run, superblocks, |row| Ok((row.get(2)?, row.get(3)?)))? {
        parts.entry(key).or_default().superblock = superblock;
    }
    let warnings = "SELECT cell, repetition, text FROM warnings WHERE run = ? ORDER BY cell, repetition, number";
    for (key, warnings) in by_trial(connection, run, warnings, |row| row.get(2))? {
        parts.entry(key).or_default().warnings = warnings;
    }
    Ok(parts)
}

/// Groups the rows of `query`, whose first columns must be cell and repetition.
fn by_trial<T>(
    connection: &Connection,
    run: i64,
    query: &str,
    mut make: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<ByTrial<Vec<T>>, ReadError> {
    let mut groups = ByTrial::new();
    for (key, value) in rows(connection, query, run, |row| Ok(((row.get(0)?, row.get(1)?), make(row)?)))? {
        groups.entry(key).or_insert_with(Vec::new).push(value);
    }
    Ok(groups)
}

/// The finished trials of a run: from their excerpts where these say enough and all trials have one, and otherwise from the tables, each
/// of which is read once, in order.
fn trials(connection: &Connection, run: i64, loads: Loads) -> Result<Vec<Trial>, ReadError> {
    let excerpts = match loads {
        Loads::Whole => None,
        Loads::Shown | Loads::WithoutSeries | Loads::LeftOut => excerpt::read(connection, run, loads)?,
    };
    let mut parts = match excerpts {
        Some(parts) => parts,
        None => parts(connection, run, loads)?,
    };
    rows(
        connection,
        "SELECT cell, repetition, position, started_unix_ns, duration_ns, seed, outcome, reason_step, reason_words,
                reason_cure, effective_mount
         FROM trials WHERE run = ? ORDER BY position, started_unix_ns, cell, repetition",
        run,
        |row| {
            let id = TrialId { cell: row.get(0)?, repetition: row.get(1)? };
            let reason: (Option<String>, Option<String>, Option<String>) = (row.get(7)?, row.get(8)?, row.get(9)?);
            let seed: String = row.get(5)?;
            let outcome: String = row.get(6)?;
            let Parts { steps, superblock, warnings } = parts.remove(&(id.cell, id.repetition)).unwrap_or_default();
            let trial = Trial {
                id,
                position: row.get(2)?,
                started_unix_ns: unsigned(row, 3)?,
                duration_ns: unsigned(row, 4)?,
                seed: 0,
                outcome: Outcome::Completed,
                steps,
                effective: Effective { mount: row.get(10)?, superblock },
                warnings,
            };
            Ok((trial, seed, outcome, reason))
        },
    )?
    .into_iter()
    .map(|(trial, seed, word, (step, words, cure))| {
        let seed = seed
            .parse()
            .map_err(|_| ReadError::Damaged { what: "a trial's seed", why: format!("{seed:?} is not a number") })?;
        let reason = step.zip(words).map(|(step, words)| Reason { step, words, cure });
        Ok(Trial { seed, outcome: outcome(&word, reason)?, ..trial })
    })
    .collect()
}

fn outcome(word: &str, reason: Option<Reason>) -> Result<Outcome, ReadError> {
    match (word, reason) {
        ("completed", None) => Ok(Outcome::Completed),
        ("refused", Some(reason)) => Ok(Outcome::Refused(reason)),
        ("failed", Some(reason)) => Ok(Outcome::Failed(reason)),
        ("hung", Some(reason)) => Ok(Outcome::Hung(reason)),
        ("crashed", Some(reason)) => Ok(Outcome::Crashed(reason)),
        ("skipped", Some(reason)) => Ok(Outcome::Skipped(reason)),
        _ => Err(ReadError::Damaged { what: "a trial's outcome", why: format!("{word:?} with its reason makes none") }),
    }
}
