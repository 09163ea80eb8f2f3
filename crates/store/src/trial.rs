//! The rows of one trial.

use crate::RecordError;
use crate::encode::{compress, integer, json, word};
use crate::excerpt;
use crate::rows::{insert, require_cell};
use fstone_model::result::StepResult;
use fstone_model::{LoadReport, Trial};
use rusqlite::{Connection, params};
use std::collections::HashSet;

/// A trial whose every part has been found fit to be recorded: encoding takes milliseconds for a large load report,
/// and is done before the write lock is taken.
pub(crate) struct EncodedTrial<'trial> {
    run: u64,
    trial: &'trial Trial,
    started: i64,
    duration: i64,
    steps: Vec<EncodedStep<'trial>>,
    excerpt: Vec<u8>,
}

struct EncodedStep<'trial> {
    step: &'trial StepResult,
    started: i64,
    duration: i64,
    load: Option<EncodedLoad<'trial>>,
}

struct EncodedLoad<'trial> {
    report: &'trial LoadReport,
    json_bytes: i64,
    blob: Vec<u8>,
}

impl<'trial> EncodedTrial<'trial> {
    pub(crate) fn new(run: u64, trial: &'trial Trial) -> Result<Self, RecordError> {
        check_names(&trial.steps)?;
        Ok(Self {
            run,
            trial,
            started: integer("the time of the trial's start", trial.started_unix_ns)?,
            duration: integer("the duration of the trial", trial.duration_ns)?,
            steps: trial.steps.iter().map(EncodedStep::new).collect::<Result<_, _>>()?,
            excerpt: excerpt::encode(trial),
        })
    }

    pub(crate) fn insert(&self, connection: &Connection) -> Result<(), RecordError> {
        let trial = self.trial;
        let key = Key { run: integer("run", self.run)?, cell: trial.id.cell, repetition: trial.id.repetition };
        let reason = trial.outcome.reason();
        require_cell(connection, self.run, key.cell)?;
        let recorded = connection
            .prepare_cached("SELECT 1 FROM trials WHERE run = ? AND cell = ? AND repetition = ?")
            .and_then(|mut statement| statement.exists(params![key.run, key.cell, key.repetition]))?;
        if recorded {
            return Err(RecordError::AlreadyRecorded { run: self.run, cell: key.cell, repetition: key.repetition });
        }
        insert(
            connection,
            "INSERT INTO trials (run, cell, repetition, position, started_unix_ns, duration_ns, seed, outcome,
                                 reason_step, reason_words, reason_cure, effective_mount)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                key.run,
                key.cell,
                key.repetition,
                trial.position,
                self.started,
                self.duration,
                trial.seed.to_string(),
                trial.outcome.word(),
                reason.map(|reason| &reason.step),
                reason.map(|reason| &reason.words),
                reason.and_then(|reason| reason.cure.as_ref()),
                trial.effective.mount
            ],
        )?;
        for (number, (name, value)) in (0i64..).zip(&trial.effective.superblock) {
            insert(
                connection,
                "INSERT INTO superblocks (run, cell, repetition, number, name, value) VALUES (?, ?, ?, ?, ?, ?)",
                params![key.run, key.cell, key.repetition, number, name, value],
            )?;
        }
        for (number, text) in (0i64..).zip(&trial.warnings) {
            insert(
                connection,
                "INSERT INTO warnings (run, cell, repetition, number, text) VALUES (?, ?, ?, ?, ?)",
                params![key.run, key.cell, key.repetition, number, text],
            )?;
        }
        for (number, step) in (0i64..).zip(&self.steps) {
            step.insert(connection, key, number)?;
        }
        // After all the rest: a row that is inserted later removes the excerpt.
        insert(
            connection,
            "INSERT INTO excerpts (run, cell, repetition, excerpt) VALUES (?, ?, ?, ?)",
            params![key.run, key.cell, key.repetition, self.excerpt],
        )
    }
}

impl<'trial> EncodedStep<'trial> {
    fn new(step: &'trial StepResult) -> Result<Self, RecordError> {
        let load = match &step.load {
            Some(report) => {
                let json = json("a load report", report)?;
                let json_bytes = integer("the length of a load report", json.len() as u64)?;
                Some(EncodedLoad { report, json_bytes, blob: compress(&json)? })
            }
            None => None,
        };
        Ok(Self {
            step,
            started: integer("the time of a step's start", step.started_ns)?,
            duration: integer("the duration of a step", step.duration_ns)?,
            load,
        })
    }

    fn insert(&self, connection: &Connection, key: Key, number: i64) -> Result<(), RecordError> {
        let step = self.step;
        insert(
            connection,
            "INSERT INTO steps (run, cell, repetition, step, number, started_ns, duration_ns)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![key.run, key.cell, key.repetition, step.step, number, self.started, self.duration],
        )?;
        insert_figures(connection, key, step)?;
        insert_commands(connection, key, step)?;
        if let Some(load) = &self.load {
            insert(
                connection,
                "INSERT INTO loads (run, cell, repetition, step, json_bytes, report) VALUES (?, ?, ?, ?, ?, ?)",
                params![key.run, key.cell, key.repetition, step.step, load.json_bytes, load.blob],
            )?;
            insert_operations(connection, key, &step.step, load.report)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Key {
    run: i64,
    cell: u32,
    repetition: u32,
}

fn check_names(steps: &[StepResult]) -> Result<(), RecordError> {
    let mut names = HashSet::new();
    for step in steps {
        if !names.insert(&step.step) {
            return Err(RecordError::Duplicate { what: format!("step {:?} is there", step.step) });
        }
        let mut metrics = HashSet::new();
        for figure in &step.figures {
            if !metrics.insert(&figure.metric) {
                let what = format!("figure {:?} of step {:?} is there", figure.metric, step.step);
                return Err(RecordError::Duplicate { what });
            }
        }
    }
    Ok(())
}

fn insert_figures(connection: &Connection, key: Key, step: &StepResult) -> Result<(), RecordError> {
    for (number, figure) in (0i64..).zip(&step.figures) {
        insert(
            connection,
            "INSERT INTO figures (run, cell, repetition, step, metric, value, unit, better, number)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                key.run,
                key.cell,
                key.repetition,
                step.step,
                figure.metric,
                figure.value,
                word(figure.unit),
                word(figure.better),
                number
            ],
        )?;
    }
    Ok(())
}

fn insert_commands(connection: &Connection, key: Key, step: &StepResult) -> Result<(), RecordError> {
    for (number, command) in (0i64..).zip(&step.commands) {
        let argv = json("a command's arguments", &command.argv)?;
        let duration = integer("the duration of a command", command.duration_ns)?;
        insert(
            connection,
            "INSERT INTO commands (run, cell, repetition, step, number, argv, status, duration_ns, output_tail)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                key.run,
                key.cell,
                key.repetition,
                step.step,
                number,
                argv,
                command.status,
                duration,
                command.output_tail
            ],
        )?;
    }
    Ok(())
}

fn insert_operations(connection: &Connection, key: Key, step: &str, load: &LoadReport) -> Result<(), RecordError> {
    for (number, operation) in (0i64..).zip(&load.operations) {
        let latency = &operation.latency;
        let maximum = (latency.count() > 0).then_some(latency.max_ns());
        insert(
            connection,
            "INSERT INTO operations (run, cell, repetition, step, number, thread_group, operation, invocations,
                                     transactions, calls, read_bytes, written_bytes, errors, latency_ns_mean,
                                     latency_ns_p50, latency_ns_p99, latency_ns_max)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                key.run,
                key.cell,
                key.repetition,
                step,
                number,
                operation.group,
                operation.name,
                saturated(operation.invocations),
                saturated(operation.transactions),
                saturated(operation.calls),
                saturated(operation.read_bytes),
                saturated(operation.written_bytes),
                saturated(operation.errors),
                latency.mean_ns(),
                latency.percentile_ns(50.0),
                latency.percentile_ns(99.0),
                maximum.map(saturated)
            ],
        )?;
    }
    Ok(())
}

/// The operations table is for people; the exact counts are in the report beside it. No count gets near the limit.
fn saturated(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
