//! The course of a run on a cluster: what is submitted, what comes home, what is lost and made again.

use super::{
    cluster::{self, Task},
    home::Home,
};
use crate::{
    commands::merge,
    exit::Exit,
    terminal::{self, Failure, OrExit},
};
use fstone_analysis::text::counted;
use fstone_model::result::TrialId;
use fstone_store::{Store, bundle};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// A block whose task was lost so often will not succeed the next time either.
const ATTEMPTS: u32 = 4;

/// How often the controller is asked: often enough to be seen by a person, seldom enough for a cluster of thousands.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
const MOST_PAUSE: Duration = Duration::from_secs(15);

/// So long a bundle may take from a node to here after its task has ended: network filesystems remember a directory for a while.
const ARRIVAL: Duration = Duration::from_secs(20);

/// So long cancelled tasks have to undo what they made.
const CANCELLING: Duration = Duration::from_secs(60);

/// How often to look whether the user cancelled.
const LOOK: Duration = Duration::from_millis(100);

/// How a course ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Every block is in the store.
    Complete,
    /// The user cancelled.
    Cancelled,
}

/// A run on its way.
pub(super) struct Course<'a> {
    home: &'a Home,
    run: u64,
    options: &'a [String],
    cancel: &'a AtomicBool,
    jobs: Vec<u64>,
    /// Of each block that is dealt out, its last task.
    tasks: BTreeMap<u32, Dealt>,
    merged: BTreeSet<u32>,
    unreachable: bool,
}

/// A block that is dealt out.
#[derive(Debug, Clone)]
struct Dealt {
    job: u64,
    attempts: u32,
    /// What was last told of it.
    told: String,
    /// Since when Slurm does nothing about it any more.
    over_since: Option<Instant>,
}

impl<'a> Course<'a> {
    pub(super) fn new(home: &'a Home, run: u64, options: &'a [String], cancel: &'a AtomicBool) -> Self {
        let (jobs, tasks, merged) = (home.jobs(), BTreeMap::new(), BTreeSet::new());
        Self { home, run, options, cancel, jobs, tasks, merged, unreachable: false }
    }

    /// Whether a job was submitted.
    pub(super) fn has_submitted(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Until every block is in the store. Whatever goes wrong here, no task goes on for nobody.
    pub(super) fn go(&mut self, store: &mut Store) -> Result<End, Failure> {
        self.adopt()?;
        let end = self.follow(store);
        if end.is_err() {
            let _ = cluster::cancel(&self.under_way());
        }
        end
    }

    fn follow(&mut self, store: &mut Store) -> Result<End, Failure> {
        let (began, mut wanted) = (Instant::now(), BTreeSet::new());
        let mut ask = true;
        loop {
            if self.take_home(store)? || ask {
                wanted = merge::to_come(&store.figures(self.run).or_exit(Exit::LabFailed)?)?.into_iter().collect();
                ask = false;
            }
            if wanted.is_empty() {
                // Tasks of blocks that came home from an earlier attempt.
                let _ = cluster::cancel(&self.under_way());
                return Ok(End::Complete);
            }
            if self.cancel.load(Ordering::Acquire) {
                return self.stop(store).map(|()| End::Cancelled);
            }
            if let Err(failure) = self.deal_out(&wanted) {
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
        let known = cluster::tasks(&self.jobs).map_err(|words| {
            Failure::new(Exit::CannotHere, format!("Slurm cannot be asked about the tasks: {words}"))
        })?;
        for ((job, index), task) in known {
            if let Some(block) = index.checked_sub(1).filter(|_| task.is_under_way()) {
                self.tasks.insert(block, Dealt { job, attempts: 1, told: String::new(), over_since: None });
            }
        }
        if !self.tasks.is_empty() {
            terminal::tell(&format!("{} of it under way already.", are(self.tasks.len())));
        }
        Ok(())
    }

    /// Takes the bundles that have come into the store, each in one transaction; whether there were any.
    fn take_home(&mut self, store: &mut Store) -> Result<bool, Failure> {
        let come: Vec<u32> = self.home.blocks().difference(&self.merged).copied().collect();
        for block in &come {
            let path = self.home.bundle(*block);
            let name = path.display().to_string();
            let staged = match bundle::stage(&path) {
                Ok(staged) => staged,
                Err(error) => {
                    // It has its name because it was whole; a disk or a network has damaged it since.
                    terminal::tell(&format!("block {}: failed to {error}; it is made again", block + 1));
                    fs::rename(&path, path.with_extension("damaged")).or_exit(Exit::LabFailed)?;
                    self.tasks.remove(block);
                    continue;
                }
            };
            let dataset = staged.dataset().or_exit(Exit::LabFailed)?;
            if let Some(TrialId { repetition, .. }) =
                dataset.trials.iter().map(|trial| trial.id).find(|id| id.repetition != *block)
            {
                let words = format!("{name} has trials of block {}, and its name says otherwise", repetition + 1);
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
        Ok(!come.is_empty())
    }

    /// Submits what nobody is at work on: at first all of it, then what was lost.
    fn deal_out(&mut self, wanted: &BTreeSet<u32>) -> Result<(), Failure> {
        let known = match cluster::tasks(&self.jobs) {
            Ok(known) => known,
            Err(words) => {
                // A controller that restarts is no reason to give up: tasks go on meanwhile.
                if !std::mem::replace(&mut self.unreachable, true) {
                    terminal::tell(&format!("Slurm cannot be asked just now, and is asked again: {words}"));
                }
                return Ok(());
            }
        };
        self.unreachable = false;
        let mut lacking = Vec::new();
        for block in wanted {
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

    /// Says why a task is made again; `Err` when another attempt would end the same way.
    fn give_up_or_again(&self, block: u32, task: Option<&Task>) -> Result<(), Failure> {
        let dealt = &self.tasks[&block];
        let how = match task {
            Some(task) => {
                let status = task.status.filter(|status| *status != 0);
                let status = status.map_or_else(String::new, |status| format!(", exit status {status}"));
                format!("{} on {}{status}", task.state, task.node)
            }
            None => {
                cluster::afterwards(dealt.job, block + 1).unwrap_or_else(|| "Slurm does not know it any more".into())
            }
        };
        let said = self.home.log(dealt.job, block).map_or_else(String::new, |said| format!("\n{said}"));
        let status = task.and_then(|task| task.status);
        let is_refused = [Exit::BadInput, Exit::CannotHere].iter().any(|exit| status == Some(*exit as i32));
        if is_refused || dealt.attempts >= ATTEMPTS {
            let times = if is_refused { String::new() } else { format!(" {} times", dealt.attempts) };
            let words = format!(
                "the task of block {} failed{times} ({how}), and all tasks are cancelled; `--slurm --resume` goes on when that is \
                 settled. What it printed:{}",
                block + 1,
                if said.is_empty() {
                    " nothing, or where this machine does not see it (--slurm-directory)"
                } else {
                    &said
                }
            );
            return Err(Failure::new(Exit::LabFailed, words));
        }
        terminal::tell(&format!("block {}: lost ({how}); it is made again{said}", block + 1));
        Ok(())
    }

    fn submit(&mut self, blocks: &[u32]) -> Result<(), Failure> {
        let job = cluster::submit(&self.home.script(), &self.home.logs(), &merge::written(blocks), self.options)?;
        self.jobs.push(job);
        self.home.note_jobs(&self.jobs)?;
        terminal::tell(&format!(
            "job {job}: block{} {}",
            if blocks.len() == 1 { "" } else { "s" },
            merge::written(blocks)
        ));
        for block in blocks {
            let attempts = self.tasks.get(block).map_or(0, |dealt| dealt.attempts) + 1;
            self.tasks.insert(*block, Dealt { job, attempts, told: String::new(), over_since: None });
        }
        Ok(())
    }

    /// The jobs of which tasks may be under way. Those that cannot be told are.
    fn under_way(&self) -> Vec<u64> {
        match cluster::tasks(&self.jobs) {
            Err(_) => self.jobs.clone(),
            Ok(known) => {
                let running: BTreeSet<u64> =
                    known.iter().filter(|(_, task)| task.is_under_way()).map(|((job, _), _)| *job).collect();
                running.into_iter().collect()
            }
        }
    }

    /// Cancels what is under way, waits for it to undo what it made, and takes home what was whole by then.
    fn stop(&mut self, store: &mut Store) -> Result<(), Failure> {
        let running = self.under_way();
        if !running.is_empty() {
            terminal::tell("Cancelling the tasks, which undo what they made.");
            cluster::cancel(&running)?;
            let since = Instant::now();
            while since.elapsed() < CANCELLING && !self.under_way().is_empty() {
                thread::sleep(LEAST_PAUSE);
            }
        }
        self.take_home(store).map(drop)
    }

    fn pause(&self, time: Duration) {
        let since = Instant::now();
        while since.elapsed() < time && !self.cancel.load(Ordering::Acquire) {
            thread::sleep(LOOK);
        }
    }
}

impl Dealt {
    /// Tells where a task is when that has changed.
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
