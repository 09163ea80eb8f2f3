//! The steps of a run's trials from the tables: figures, commands, and the load engine's reports.
//!
//! Every table is read in the order of its key, which takes no sorting, and walked beside the trials; reports are decoded by all
//! processors.

use crate::ReadError;
use crate::encode::{Decompressor, from_json, from_word};
use crate::rows::{ByTrial, rows, unsigned};
use fstone_model::LoadReport;
use fstone_model::metric::Figure;
use fstone_model::result::{CommandRecord, StepResult};
use rusqlite::{Connection, Row};
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{num::NonZero, thread};

/// Decoding fewer reports than this takes less time than starting a thread for them.
const REPORTS_PER_THREAD: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loads {
    Whole,
    /// [`LoadReport::shorten`].
    Shown,
    /// The same without [`LoadReport::series`].
    WithoutSeries,
    LeftOut,
}

impl Loads {
    fn shorten(self, report: &mut LoadReport) {
        if self != Self::Whole {
            report.shorten();
        }
        if self == Self::WithoutSeries {
            report.series.clear();
        }
    }
}

struct Packed {
    cell: u32,
    repetition: u32,
    step: String,
    json_bytes: u64,
    report: Vec<u8>,
}

pub(crate) fn steps(connection: &Connection, run: i64, loads: Loads) -> Result<ByTrial<Vec<StepResult>>, ReadError> {
    let packed = match loads {
        Loads::LeftOut => Vec::new(),
        Loads::Whole | Loads::Shown | Loads::WithoutSeries => packed(connection, run)?,
    };
    let next = AtomicUsize::new(0);
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let (steps, decoded) = thread::scope(|scope| {
        let decode = || decode(&packed, &next, loads);
        let others = (processors - 1).min(packed.len() / REPORTS_PER_THREAD);
        let others: Vec<_> = (0..others).map(|_| scope.spawn(decode)).collect();
        let steps = without_loads(connection, run);
        let mut decoded = decode();
        for other in others {
            decoded.extend(other.join().expect("decoding does not panic"));
        }
        (steps, decoded)
    });
    let mut steps = steps?;
    for (index, report) in decoded {
        let Packed { cell, repetition, step, .. } = &packed[index];
        let of_trial = steps.get_mut(&(*cell, *repetition));
        let report = Box::new(report?);
        if let Some(found) = of_trial.and_then(|steps| steps.iter_mut().find(|found| found.step == *step)) {
            found.load = Some(report);
        }
    }
    Ok(steps)
}

fn packed(connection: &Connection, run: i64) -> Result<Vec<Packed>, ReadError> {
    let sql = "SELECT cell, repetition, step, json_bytes, report FROM loads WHERE run = ?";
    rows(connection, sql, run, |row| {
        Ok(Packed {
            cell: row.get(0)?,
            repetition: row.get(1)?,
            step: row.get(2)?,
            json_bytes: unsigned(row, 3)?,
            report: row.get(4)?,
        })
    })
}

/// Decodes reports that no other thread has begun, until there are no more.
fn decode(packed: &[Packed], next: &AtomicUsize, loads: Loads) -> Vec<(usize, Result<LoadReport, ReadError>)> {
    const WHAT: &str = "a load report";
    let mut decompressor = Decompressor::new();
    let mut decoded = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(one) = packed.get(index) else { return decoded };
        let text = decompressor.decompress(WHAT, &one.report, one.json_bytes);
        let mut report = text.and_then(|text| from_json::<LoadReport>(WHAT, text));
        if let Ok(report) = &mut report {
            loads.shorten(report);
        }
        decoded.push((index, report));
    }
}

fn without_loads(connection: &Connection, run: i64) -> Result<ByTrial<Vec<StepResult>>, ReadError> {
    let mut steps = ByTrial::new();
    for (key, step) in rows(
        connection,
        "SELECT cell, repetition, step, started_ns, duration_ns FROM steps WHERE run = ? ORDER BY cell, repetition, number",
        run,
        |row| {
            let step = StepResult {
                step: row.get(2)?,
                started_ns: unsigned(row, 3)?,
                duration_ns: unsigned(row, 4)?,
                commands: Vec::new(),
                figures: Vec::new(),
                load: None,
            };
            Ok(((row.get(0)?, row.get(1)?), step))
        },
    )? {
        steps.entry(key).or_insert_with(Vec::new).push(step);
    }
    let (mut units, mut directions) = (Words::new("a figure's unit"), Words::new("a figure's direction"));
    of_steps(
        connection,
        run,
        &mut steps,
        "SELECT cell, repetition, step, number, metric, value, unit, better FROM figures
         WHERE run = ? ORDER BY cell, repetition, step",
        |row| {
            let number: i64 = row.get(3)?;
            let value: Option<f64> = row.get(5)?;
            let (unit, better) = (units.find(text(row, 6)?)?, directions.find(text(row, 7)?)?);
            Ok((number, Figure { metric: row.get(4)?, value: value.unwrap_or(f64::NAN), unit, better }))
        },
        |step, mut figures| {
            figures.sort_unstable_by_key(|(number, _)| *number);
            step.figures = figures.into_iter().map(|(_, figure)| figure).collect();
        },
    )?;
    of_steps(
        connection,
        run,
        &mut steps,
        "SELECT cell, repetition, step, argv, status, duration_ns, output_tail FROM commands
         WHERE run = ? ORDER BY cell, repetition, step, number",
        |row| {
            Ok(CommandRecord {
                argv: from_json("a command's arguments", text(row, 3)?)?,
                status: row.get(4)?,
                duration_ns: unsigned(row, 5)?,
                output_tail: row.get(6)?,
            })
        },
        |step, commands| step.commands = commands,
    )?;
    Ok(steps)
}

/// Reads a table beside the steps. The first columns have to be cell, repetition and step, and the rows in their order; `take` is
/// given what was made of the rows of a step.
fn of_steps<T>(
    connection: &Connection,
    run: i64,
    steps: &mut ByTrial<Vec<StepResult>>,
    sql: &str,
    mut make: impl FnMut(&Row<'_>) -> Result<T, ReadError>,
    take: impl Fn(&mut StepResult, Vec<T>),
) -> Result<(), ReadError> {
    let mut trials = steps.iter_mut();
    let mut trial = trials.next();
    // The rows of a step until now: its trial, and its place in it.
    let mut of_step: Option<((u32, u32), usize)> = None;
    let mut made = Vec::new();
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([run])?;
    while let Some(row) = rows.next()? {
        let (key, name) = ((row.get(0)?, row.get(1)?), text(row, 2)?);
        let same = of_step
            .is_some_and(|(of, place)| of == key && trial.as_ref().is_some_and(|(_, steps)| steps[place].step == name));
        if !same {
            if let (Some((_, place)), Some((_, steps))) = (of_step.take(), &mut trial) {
                take(&mut steps[place], std::mem::take(&mut made));
            }
            while trial.as_ref().is_some_and(|(of, _)| **of < key) {
                trial = trials.next();
            }
            let here = trial.as_ref().filter(|(of, _)| **of == key);
            of_step = here.and_then(|(_, steps)| steps.iter().position(|step| step.step == name)).map(|at| (key, at));
        }
        if of_step.is_some() {
            made.push(make(row)?);
        }
    }
    if let (Some((_, place)), Some((_, steps))) = (of_step, &mut trial) {
        take(&mut steps[place], made);
    }
    Ok(())
}

fn text<'row>(row: &'row Row<'_>, column: usize) -> rusqlite::Result<&'row str> {
    Ok(row.get_ref(column)?.as_str()?)
}

/// The few words of an enum, each looked up once.
struct Words<T> {
    what: &'static str,
    known: Vec<(String, T)>,
}

impl<T: Copy + DeserializeOwned> Words<T> {
    const fn new(what: &'static str) -> Self {
        Self { what, known: Vec::new() }
    }

    fn find(&mut self, word: &str) -> Result<T, ReadError> {
        if let Some((_, value)) = self.known.iter().find(|(known, _)| known == word) {
            return Ok(*value);
        }
        let value = from_word(self.what, word)?;
        self.known.push((word.to_owned(), value));
        Ok(value)
    }
}
