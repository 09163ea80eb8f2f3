//! Recording: a run when it begins, each trial when it starts and when it ends, and the run's end.

use crate::encode::{integer, json};
use crate::open::BUSY_TIMEOUT;
use crate::rows::{insert, require_cell};
use crate::trial::EncodedTrial;
use crate::{RecordError, Store};
use fstone_model::dataset::{BlockOrigin, Holder, Run};
use fstone_model::result::TrialId;
use fstone_model::{Cell, Note, Plan, Trial};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use std::time::Duration;

impl Store {
    /// Records a run's plan and machine, and gives the run its number; `run.id` is not looked at. What is
    /// empty in place of its identity becomes its start and host.
    ///
    /// # Errors
    /// [`RecordError`]; nothing is recorded then.
    pub fn begin_run(&mut self, run: &Run) -> Result<u64, RecordError> {
        self.begin(run, None)
    }

    /// [`Store::begin_run`], with the process that carries the run out.
    ///
    /// # Errors
    /// [`RecordError`]; nothing is recorded then.
    pub fn begin_run_of(&mut self, run: &Run, holder: &Holder) -> Result<u64, RecordError> {
        self.begin(run, Some(holder))
    }

    /// Hands a run to another process, unless it no longer belongs to `from`: of two that take over the same run, one
    /// gets false.
    pub fn take_over(&mut self, run: u64, from: Option<&Holder>, to: &Holder) -> Result<bool, RecordError> {
        let row = integer("run", run)?;
        let to = json("the holder", to)?;
        self.write(|connection| {
            let is_free = is_held_by(connection, run, from)?;
            if is_free {
                connection.execute("UPDATE runs SET holder = ?2 WHERE run = ?1", params![row, to])?;
            }
            Ok(is_free)
        })
    }

    fn begin(&mut self, run: &Run, holder: Option<&Holder>) -> Result<u64, RecordError> {
        run.plan.validate().map_err(RecordError::InvalidPlan)?;
        let started = integer("the time of the run's start", run.started_unix_ns)?;
        let finished = run.finished_unix_ns.map(|time| integer("the time of the run's end", time)).transpose()?;
        let (plan, inventory) = (json("the plan", &run.plan)?, json("the inventory", &run.inventory)?);
        let command = json("the command line", &run.command)?;
        let holder = holder.map(|holder| json("the holder", holder)).transpose()?;
        let minimum = run.plan.cells.len() as u64 * u64::from(run.plan.repeats.min);
        let minimum = integer("the number of planned trials", minimum)?;
        self.write(|connection| {
            insert(
                connection,
                "INSERT INTO runs (study, title, quick, host, kernel, started_unix_ns, finished_unix_ns,
                                   planned_minimum, command, plan, inventory, identity, holder, note)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    run.plan.study,
                    run.plan.title,
                    run.plan.quick,
                    run.inventory.host,
                    if run.kernel().starts_with("exact:") { run.kernel() } else { run.inventory.kernel.clone() },
                    started,
                    finished,
                    minimum,
                    command,
                    plan,
                    inventory,
                    run.identified(),
                    holder,
                    run.note.as_ref().map(Note::as_str)
                ],
            )?;
            let number = connection.last_insert_rowid();
            for cell in &run.plan.cells {
                insert_cell(connection, number, &run.plan, cell)?;
            }
            for origin in &run.blocks {
                insert_block(connection, number, origin)?;
            }
            Ok(number.cast_unsigned())
        })
    }

    /// Records that a trial starts, so that one that never ends leaves a trace.
    pub fn trial_started(
        &mut self,
        run: u64,
        id: TrialId,
        position: u32,
        started_unix_ns: u64,
    ) -> Result<(), RecordError> {
        let row = integer("run", run)?;
        let started = integer("the time of the trial's start", started_unix_ns)?;
        self.write(|connection| {
            require_cell(connection, run, id.cell)?;
            insert(
                connection,
                "INSERT INTO attempts (run, cell, repetition, position, started_unix_ns) VALUES (?, ?, ?, ?, ?)",
                params![row, id.cell, id.repetition, position, started],
            )
        })
    }

    /// Records a finished trial in one transaction. It is on the disk when this returns.
    ///
    /// # Errors
    /// [`RecordError`]; nothing of the trial is recorded then.
    pub fn record_trial(&mut self, run: u64, trial: &Trial) -> Result<(), RecordError> {
        self.record_trials(run, std::slice::from_ref(trial))
    }

    pub(crate) fn record_trials(&mut self, run: u64, trials: &[Trial]) -> Result<(), RecordError> {
        let encoded = trials.iter().map(|trial| EncodedTrial::new(run, trial)).collect::<Result<Vec<_>, _>>()?;
        self.write(|connection| encoded.iter().try_for_each(|trial| trial.insert(connection)))
    }

    /// Records that a run has ended.
    pub fn finish_run(&mut self, run: u64, finished_unix_ns: u64) -> Result<(), RecordError> {
        let finished = integer("the time of the run's end", finished_unix_ns)?;
        self.change_run(run, "UPDATE runs SET finished_unix_ns = ?2 WHERE run = ?1", finished)
    }

    /// Sets a run's note, replacing any it has.
    pub fn set_note(&mut self, run: u64, note: &Note) -> Result<(), RecordError> {
        self.change_run(run, "UPDATE runs SET note = ?2 WHERE run = ?1", note.as_str())
    }

    /// Deletes runs and everything recorded of them: all, or none and gives the first that is not the given holder's any more, because a
    /// process has taken it over. Their numbers are not used again. The space is used for what is recorded next; `VACUUM` in the
    /// sqlite3 shell gives it back to the filesystem.
    ///
    /// # Errors
    /// [`RecordError`]; nothing is deleted then.
    pub fn delete_runs(&mut self, runs: &[(u64, Option<&Holder>)]) -> Result<Option<u64>, RecordError> {
        self.write(|connection| {
            for (run, holder) in runs {
                if !is_held_by(connection, *run, *holder)? {
                    return Ok(Some(*run));
                }
            }
            for (run, _) in runs {
                connection.execute("DELETE FROM runs WHERE run = ?1", [integer("run", *run)?])?;
            }
            Ok(None)
        })
    }

    /// Empties the log beside the file, which has deleted rows as they were; whether it could. Where others read the store it cannot, and
    /// this does not wait for them: who records a trial would wait as long. The log then stays until the next one who writes is the last
    /// to close the store.
    pub fn empty_log(&self) -> bool {
        let emptied = self.connection.busy_timeout(Duration::from_millis(200)).and_then(|()| {
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0))
        });
        let _ = self.connection.busy_timeout(BUSY_TIMEOUT);
        emptied.unwrap_or(false)
    }

    fn change_run(&mut self, run: u64, sql: &str, value: impl ToSql) -> Result<(), RecordError> {
        let row = integer("run", run)?;
        self.write(|connection| match connection.execute(sql, params![row, value])? {
            0 => Err(RecordError::NoSuchRun { run }),
            _ => Ok(()),
        })
    }
}

/// Whether no other process has taken a run over.
fn is_held_by(connection: &Connection, run: u64, holder: Option<&Holder>) -> Result<bool, RecordError> {
    let sql = "SELECT holder FROM runs WHERE run = ?1";
    let row = integer("run", run)?;
    let held = connection.query_row(sql, [row], |row| row.get::<_, Option<String>>(0)).optional()?;
    // As it is understood, not as it is written: another version may write it otherwise.
    let held = held.ok_or(RecordError::NoSuchRun { run })?;
    let held: Option<Holder> = held.and_then(|text| serde_json::from_str(&text).ok());
    Ok(held.as_ref() == holder)
}

pub(crate) fn insert_block(connection: &Connection, run: i64, origin: &BlockOrigin) -> Result<(), RecordError> {
    let inventory = json("the inventory of a block", &origin.inventory)?;
    insert(
        connection,
        "INSERT INTO blocks (run, block, machine, host, kernel, inventory) VALUES (?, ?, ?, ?, ?, ?)",
        params![run, origin.block, origin.machine, origin.inventory.host, origin.inventory.kernel, inventory],
    )
}

/// Of a plan that is valid: each cell has a level of each factor.
fn insert_cell(connection: &Connection, run: i64, plan: &Plan, cell: &Cell) -> Result<(), RecordError> {
    insert(
        connection,
        "INSERT INTO cells (run, cell, label, filesystem, kind, mkfs, mount, device) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            run,
            cell.index,
            cell.label,
            cell.filesystem.name,
            cell.filesystem.kind,
            cell.filesystem.mkfs.join(" "),
            cell.filesystem.mount,
            cell.device.describe()
        ],
    )?;
    for (number, (factor, level)) in (0i64..).zip(plan.factors.iter().zip(&cell.levels)) {
        let level = *level as usize;
        let name = &factor.levels[level];
        let value = factor.numbers.as_ref().and_then(|numbers| numbers.get(level));
        let value = value.map(|value| integer("the level of a factor", *value)).transpose()?;
        insert(
            connection,
            "INSERT INTO levels (run, cell, factor_number, factor, level, number) VALUES (?, ?, ?, ?, ?, ?)",
            params![run, cell.index, number, factor.name, name, value],
        )?;
    }
    Ok(())
}
