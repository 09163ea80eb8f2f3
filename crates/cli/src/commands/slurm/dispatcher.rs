//! Dispatches the blocks of a run to a cluster: what is submitted, what comes back, what is lost and repeated.

use super::{
    cluster::{self, Submission, Task},
    home::{Home, Noted},
};
use crate::{
    commands::merge,
    exit::Exit,
    terminal::{self, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_analysis::text::counted;
use fstone_model::{result::TrialId, units::format_duration};
use fstone_store::{
    Store,
    bundle::{self, BundleError, ImportError, Staged},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// A block whose task was lost this often will not succeed the next time either.
const ATTEMPTS: u32 = 4;

/// How often the controller is asked: often enough for a person who watches, seldom enough for a cluster of thousands.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
const MOST_PAUSE: Duration = Duration::from_secs(15);

/// So long a bundle may take from a node to here after its task has ended: network filesystems remember a directory for a while.
const ARRIVAL: Duration = Duration::from_secs(20);

/// So long cancelled tasks have to undo what they made.
const CANCELLING: Duration = Duration::from_secs(60);

/// How long a bundle may be unreadable: a server that restarts is back by then.
const UNREADABLE: Duration = Duration::from_secs(300);

/// How often to look whether the user cancelled.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    /// The user cancelled, and so many tasks were still under way when the wait ended.
    Cancelled {
        left: usize,
    },
}

pub(super) struct Dispatcher<'a> {
    home: &'a Home,
    run: u64,
    options: &'a [String],
    cancel: &'a AtomicBool,
    jobs: Vec<u64>,
    /// There may be a job that is not among them.
    is_submitting: bool,
    /// Of each block that is dealt out, its last task.
    tasks: BTreeMap<u32, Dealt>,
    attempts: BTreeMap<u32, u32>,
    merged: BTreeSet<u32>,
    /// Blocks whose bundles are there and cannot be read, and since when.
    unreadable: BTreeMap<u32, Instant>,
    unreachable: bool,
}

#[derive(Debug, Clone)]
struct Dealt {
    job: u64,
    told: String,
    /// Since when Slurm does nothing about it any more.
    over_since: Option<Instant>,
}

impl<'a> Dispatcher<'a> {
    /// `noted`: what the directory says of jobs that an earlier process submitted.
    pub(super) fn new(
        (home, noted): (&'a Home, Noted),
        run: u64,
        options: &'a [String],
        cancel: &'a AtomicBool,
    ) -> Self {
        let Noted { jobs, is_submitting } = noted;
        Self {
            home,
            run,
            options,
            cancel,
            jobs,
            is_submitting,
            tasks: BTreeMap::new(),
            attempts: BTreeMap::new(),
            merged: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            unreachable: false,
        }
    }

    /// Whether a job was submitted, or may have been.
    pub(super) fn has_submitted(&self) -> bool {
        self.is_submitting || !self.jobs.is_empty()
    }

    /// Until every block is in the store. Whatever goes wrong here, no task keeps running for nothing.
    pub(super) fn go(&mut self, store: &mut Store) -> Result<End, Failure> {
        self.adopt()?;
        let end = self.follow(store);
        if end.is_err() {
            let _ = cluster::cancel(&self.under_way().0);
        }
        end
    }

    fn follow(&mut self, store: &mut Store) -> Result<End, Failure> {
        let (began, mut wanted) = (Instant::now(), BTreeSet::new());
        let mut ask = true;
        loop {
            let taken = self.take_home(store)?;
            if taken == Some(true) || ask {
                wanted = merge::to_come(&store.figures(self.run).or_exit(Exit::LabFailed)?)?.into_iter().collect();
                ask = false;
            }
            if wanted.is_empty() {
                // Tasks of blocks that came home from an earlier attempt.
                let _ = cluster::cancel(&self.under_way().0);
                return Ok(End::Complete);
            }
            if self.cancel.load(Ordering::Acquire) {
                return self.stop(store).map(|left| End::Cancelled { left });
            }
            // What cannot be read just now can be at a later look, and may have blocks that are not to be made again.
            if taken.is_some()
                && let Err(failure) = self.deal_out(&wanted)
            {
                if self.has_submitted() {
                    self.stop(store)?;
                }
                return Err(failure);
            }
            self.pause((began.elapsed() / 20).clamp(LEAST_PAUSE, MOST_PAUSE));
        }
    }

    /// Tasks that an earlier process submitted, and that are still under way.
    fn adopt(&mut self) -> Result<(), Failure> {
        let silent = |words| Failure::new(Exit::CannotHere, format!("Slurm does not answer about the tasks: {words}"));
        if self.is_submitting {
            let found = cluster::named(&self.home.job_name()).map_err(silent)?;
            self.note(found)?;
        }
        let known = cluster::tasks(&self.jobs).map_err(silent)?;
        for ((job, index), task) in known {
            if let Some(block) = index.checked_sub(1).filter(|_| task.is_under_way()) {
                self.tasks.insert(block, Dealt { job, told: String::new(), over_since: None });
                self.attempts.insert(block, 1);
            }
        }
        if !self.tasks.is_empty() {
            terminal::tell(&format!("{} of it under way already.", are(self.tasks.len())));
        }
        Ok(())
    }

    /// Takes the bundles that have come into the store, each in one transaction; whether there were any, or `None` if the directory cannot
    /// be read.
    fn take_home(&mut self, store: &mut Store) -> Result<Option<bool>, Failure> {
        let Ok(come) = self.home.blocks() else { return Ok(None) };
        self.unreadable.retain(|block, _| come.contains(block));
        let come: Vec<u32> = come.difference(&self.merged).copied().collect();
        let mut any = false;
        for block in &come {
            let path = self.home.bundle(*block);
            let name = path.display().to_string();
            let Some(staged) = self.stage(*block)? else { continue };
            any = true;
            let dataset = staged.dataset().or_exit(Exit::LabFailed)?;
            if let Some(TrialId { repetition, .. }) =
                dataset.trials.iter().map(|trial| trial.id).find(|id| id.repetition != *block)
            {
                let words = format!("{name} has trials of block {}, which contradicts its name", repetition + 1);
                return Err(Failure::new(Exit::CannotHere, words));
            }
            let machine =
                dataset.run.blocks.first().map_or_else(String::new, |origin| format!(" from {}", origin.machine));
            let merged = merge::merge(store, self.run, &[(name, staged)])?;
            self.merged.insert(*block);
            if merged.added > 0 {
                let trials = counted(merged.added as usize, "trial");
                terminal::tell(&format!("block {}: {trials}{}", block + 1, fstone_model::text::line(&machine)));
            }
        }
        Ok(Some(any))
    }

    /// Reads the bundle of a block; `None` where there is none to be had for now.
    fn stage(&mut self, block: u32) -> Result<Option<Staged>, Failure> {
        let path = self.home.bundle(block);
        match bundle::stage(&path) {
            Ok(staged) => {
                self.unreadable.remove(&block);
                Ok(Some(staged))
            }
            // Nothing is wrong with the block: it is the directory that cannot be read just now.
            Err(ImportError::Bundle(error @ BundleError::Io { .. })) => {
                let since = *self.unreadable.entry(block).or_insert_with(|| {
                    terminal::tell(&format!("block {}: failed to {error}; trying again", block + 1));
                    Instant::now()
                });
                if since.elapsed() < UNREADABLE {
                    return Ok(None);
                }
                let words = format!(
                    "failed to {error}, for {}; `--slurm --resume` continues when it can be read",
                    format_duration(UNREADABLE)
                );
                Err(Failure::new(Exit::LabFailed, words))
            }
            // It has its name because it was complete; a disk or a network has damaged it since.
            Err(ImportError::Bundle(error @ BundleError::Malformed { .. })) => {
                fs::rename(&path, path.with_extension("damaged"))
                    .with_context(|| format!("cannot put the damaged {} aside", path.display()))
                    .or_exit(Exit::LabFailed)?;
                self.unreadable.remove(&block);
                self.tasks.remove(&block);
                let attempts = *self.attempts.entry(block).or_insert(1);
                if attempts >= ATTEMPTS {
                    let words = format!(
                        "block {} came back damaged after {attempts} attempts: failed to {error}; check the filesystem of {}, then continue with `--slurm --resume`",
                        block + 1,
                        self.home.path().display()
                    );
                    return Err(Failure::new(Exit::LabFailed, words));
                }
                terminal::tell(&format!("block {}: failed to {error}; running it again", block + 1));
                Ok(None)
            }
            Err(error) => Err(error).or_exit(Exit::LabFailed),
        }
    }

    /// Submits blocks that no task works on: at first all, then those that were lost.
    fn deal_out(&mut self, wanted: &BTreeSet<u32>) -> Result<(), Failure> {
        let known = match cluster::tasks(&self.jobs) {
            Ok(known) => known,
            Err(words) => {
                // A restarting controller is not a reason to give up: tasks keep running meanwhile.
                if !std::mem::replace(&mut self.unreachable, true) {
                    terminal::tell(&format!("Slurm does not answer; asking again: {words}"));
                }
                return Ok(());
            }
        };
        self.unreachable = false;
        let mut lacking = Vec::new();
        for block in wanted.iter().filter(|block| !self.unreadable.contains_key(*block)) {
            let Some(dealt) = self.tasks.get_mut(block) else {
                lacking.push(*block);
                continue;
            };
            let task = known.get(&(dealt.job, block + 1));
            if let Some(task) = task.filter(|task| task.is_under_way()) {
                dealt.over_since = None;
                dealt.tell(*block, task);
                continue;
            }
            let over = *dealt.over_since.get_or_insert_with(Instant::now);
            // A task that ended well has its bundle on the way.
            let is_awaited = task.is_none_or(|task| task.state == "COMPLETED");
            if is_awaited && over.elapsed() < ARRIVAL {
                continue;
            }
            self.give_up_or_again(*block, task)?;
            lacking.push(*block);
        }
        if lacking.is_empty() { Ok(()) } else { self.submit(&lacking) }
    }

    /// Says why a task is repeated; `Err` if another attempt would end the same way.
    fn give_up_or_again(&self, block: u32, task: Option<&Task>) -> Result<(), Failure> {
        let dealt = &self.tasks[&block];
        let how = match task {
            Some(task) => {
                let status = task.status.filter(|status| *status != 0);
                let status = status.map_or_else(String::new, |status| format!(", exit status {status}"));
                let cure = if task.state == "TIMEOUT" { "; more time: `-- --time=…`" } else { "" };
                format!("{} on {}{status}{cure}", task.state, task.node)
            }
            None => {
                cluster::afterwards(dealt.job, block + 1).unwrap_or_else(|| "Slurm does not know it any more".into())
            }
        };
        let said = self.home.log(dealt.job, block).map_or_else(String::new, |said| format!("\n{said}"));
        let status = task.and_then(|task| task.status);
        let is_refused = [Exit::BadInput, Exit::CannotHere].iter().any(|exit| status == Some(*exit as i32));
        let attempts = self.attempts.get(&block).copied().unwrap_or(1);
        if is_refused || attempts >= ATTEMPTS {
            let times = if is_refused { String::new() } else { format!(" {attempts} times") };
            let words = format!(
                "the task of block {} failed{times} ({how}), and all tasks are cancelled; `--slurm --resume` continues when the cause is removed. Its output:{}",
                block + 1,
                if said.is_empty() {
                    " nothing, or where this machine does not see it (--slurm-directory)"
                } else {
                    &said
                }
            );
            return Err(Failure::new(Exit::LabFailed, words));
        }
        terminal::tell(&format!("block {}: lost ({how}); running it again{said}", block + 1));
        Ok(())
    }

    fn submit(&mut self, blocks: &[u32]) -> Result<(), Failure> {
        // Should this process end before sbatch does, the next one looks for the job by its name.
        self.home.note_jobs(&self.jobs, true)?;
        self.is_submitting = true;
        let name = self.home.job_name();
        let (script, logs) = (self.home.script(), self.home.logs());
        let submission = cluster::submit(&script, &logs, &name, &merge::written(blocks), self.options);
        let job = match submission {
            Ok(Submission::Job(job)) => {
                self.note([job])?;
                job
            }
            Ok(Submission::Unclear(words)) => self.find(&words)?,
            Err(failure) => {
                self.note([])?;
                return Err(failure);
            }
        };
        terminal::tell(&format!(
            "job {job}: block{} {}",
            if blocks.len() == 1 { "" } else { "s" },
            merge::written(blocks)
        ));
        for block in blocks {
            *self.attempts.entry(*block).or_default() += 1;
            self.tasks.insert(*block, Dealt { job, told: String::new(), over_since: None });
        }
        Ok(())
    }

    fn note(&mut self, jobs: impl IntoIterator<Item = u64>) -> Result<(), Failure> {
        for job in jobs {
            if !self.jobs.contains(&job) {
                self.jobs.push(job);
            }
        }
        self.home.note_jobs(&self.jobs, false)?;
        self.is_submitting = false;
        Ok(())
    }

    /// The job that sbatch submitted and did not name.
    fn find(&mut self, words: &str) -> Result<u64, Failure> {
        let name = self.home.job_name();
        let known = cluster::named(&name).unwrap_or_default();
        if let Some(job) = known.into_iter().filter(|job| !self.jobs.contains(job)).max() {
            self.note([job])?;
            return Ok(job);
        }
        let words = format!(
            "{words}\nNo job {name} is found either. The run is kept in case there is one; `--slurm --resume` continues it"
        );
        Err(Failure::new(Exit::LabFailed, words))
    }

    /// The jobs of which tasks may be under way, and how many tasks. Those that cannot be told are.
    fn under_way(&self) -> (Vec<u64>, usize) {
        match cluster::tasks(&self.jobs) {
            Err(_) => (self.jobs.clone(), self.tasks.keys().filter(|block| !self.merged.contains(block)).count()),
            Ok(known) => {
                let running: Vec<u64> =
                    known.iter().filter(|(_, task)| task.is_under_way()).map(|((job, _), _)| *job).collect();
                let jobs: BTreeSet<u64> = running.iter().copied().collect();
                (jobs.into_iter().collect(), running.len())
            }
        }
    }

    /// Cancels what is under way, waits for it to undo what it made, and takes home what was whole by then. How many tasks are under way
    /// all the same.
    fn stop(&mut self, store: &mut Store) -> Result<usize, Failure> {
        let (running, mut left) = self.under_way();
        if !running.is_empty() {
            terminal::tell("Cancelling the tasks, which undo what they made.");
            cluster::cancel(&running)?;
            let since = Instant::now();
            loop {
                left = self.under_way().1;
                if left == 0 || since.elapsed() >= CANCELLING {
                    break;
                }
                thread::sleep(LEAST_PAUSE);
            }
        }
        self.take_home(store)?;
        Ok(left)
    }

    fn pause(&self, time: Duration) {
        let since = Instant::now();
        while since.elapsed() < time && !self.cancel.load(Ordering::Acquire) {
            thread::sleep(LOOK);
        }
    }
}

impl Dealt {
    fn tell(&mut self, block: u32, task: &Task) {
        let words = match task.state.as_str() {
            "RUNNING" => format!("running on {}", task.node),
            "PENDING" => format!("waiting ({})", task.reason),
            other => other.to_lowercase(),
        };
        // Why one waits changes often and says little.
        let changed = self.told.split(' ').next() != words.split(' ').next() || words.starts_with("running");
        if changed && self.told != words {
            terminal::tell(&format!("block {}: {words}", block + 1));
            self.told = words;
        }
    }
}

fn are(tasks: usize) -> String {
    format!("{} {}", counted(tasks, "task"), if tasks == 1 { "is" } else { "are" })
}
