//! Unfinished blocks: their trials are kept beside the future bundle as they end, so that a task that is killed loses one
//! trial and not hours of work. Another attempt on the same machine continues with them; another machine starts from scratch, because one
//! machine makes a whole block, and uses its own file: a task that Slurm moved may still be running where it was.

use super::changed::changed;
use crate::terminal;
use fstone_analysis::text::counted;
use fstone_lab::run::carry_out::{Recorder, RecorderError};
use fstone_model::{
    Dataset, Inventory, Trial,
    dataset::{BlockOrigin, Run},
    result::TrialId,
    text,
};
use fstone_store::bundle;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// A bundle is written anew with each trial. Where that takes long beside the trials, not with each: of the time at most one part in so
/// many goes there.
const SHARE: u32 = 20;

/// How long to wait before a failed last write is tried again.
const RETRIES: [Duration; 3] = [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];

pub(super) const SUFFIX: &str = ".begun";

/// As much of a machine's name is in names of files, which have 255 bytes. Of two that begin alike the inside tells which it is.
const MACHINE: usize = 100;

/// The name of a run in names of files. An identity of before there were any has the host's name in it.
pub(super) fn file_name(run: &Run) -> String {
    plain(&run.identified())
}

fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

pub(super) struct Begun<'a> {
    run: &'a Run,
    directory: &'a Path,
    machine: &'a str,
    inventory: &'a Inventory,
    trials: Vec<Trial>,
    /// Blocks with trials that are in no file yet.
    unwritten: BTreeSet<u32>,
    /// When a file was written last, and how long that took.
    written: Option<(Instant, Duration)>,
    told: bool,
}

impl<'a> Begun<'a> {
    /// With what an earlier attempt of this machine left in the directory.
    pub(super) fn take_up(
        run: &'a Run,
        blocks: &[u32],
        directory: &'a Path,
        machine: &'a str,
        inventory: &'a Inventory,
    ) -> Self {
        let mut begun = Self {
            run,
            directory,
            machine,
            inventory,
            trials: Vec::new(),
            unwritten: BTreeSet::new(),
            written: None,
            told: false,
        };
        for block in blocks {
            let path = begun.path(*block);
            if path.symlink_metadata().is_err() {
                continue;
            }
            let told = match begun.of_here(*block, &path) {
                Ok(mut trials) => {
                    let kept = counted(trials.len(), "trial");
                    begun.trials.append(&mut trials);
                    format!("continuing with the {kept} of an earlier attempt here")
                }
                Err(why) => format!("begun afresh: {why}"),
            };
            terminal::tell(&format!("block {}: {told}", block + 1));
        }
        begun
    }

    /// The trials in a file; `Err` says why they do not belong to this machine.
    fn of_here(&self, block: u32, path: &Path) -> Result<Vec<Trial>, String> {
        let Dataset { run, trials } = bundle::read(path).map_err(|error| format!("failed to {error}"))?;
        let known = run.plan == self.run.plan && run.identified() == self.run.identified();
        if !known || trials.iter().any(|trial| trial.id.repetition != block) {
            return Err(format!("{} is of something else", path.display()));
        }
        let origin = run.origin(block).ok_or_else(|| format!("{} names no machine", path.display()))?;
        if origin.machine != self.machine {
            return Err(format!(
                "{} made a part of it, and a block comes from one machine",
                text::line(&origin.machine)
            ));
        }
        match changed(&origin.inventory, self.inventory) {
            changes if changes.is_empty() => Ok(trials),
            changes => Err(format!("the machine has changed since part of it was run ({})", text::line(&changes))),
        }
    }

    fn begin(&self, block: u32) -> String {
        format!("block-{}-of-{}-on-", block + 1, file_name(self.run))
    }

    fn path(&self, block: u32) -> PathBuf {
        let machine: String = plain(self.machine).chars().take(MACHINE).collect();
        self.directory.join(format!("{}{machine}{SUFFIX}", self.begin(block)))
    }

    fn parts(&self, block: u32) -> Vec<PathBuf> {
        let begin = self.begin(block);
        let entries = fs::read_dir(self.directory).into_iter().flatten().flatten();
        let is_part = |name: &str| name.starts_with(&begin) && name.ends_with(SUFFIX);
        entries.filter(|entry| entry.file_name().to_str().is_some_and(is_part)).map(|entry| entry.path()).collect()
    }

    pub(super) fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Writes what is in no file yet, but for these blocks, whose files are not needed any more.
    pub(super) fn close(mut self, whole: &[u32]) {
        for block in whole {
            self.unwritten.remove(block);
            // A file that stays does no harm once the block is there. Whether it is of this run is known from its contents, not its name.
            for part in self.parts(*block) {
                if bundle::read(&part).is_ok_and(|part| part.run.identified() == self.run.identified()) {
                    let _ = fs::remove_file(part);
                }
            }
        }
        self.write();
        // No later trial would try again, and a shared disk may be back in a moment.
        for pause in RETRIES {
            if self.unwritten.is_empty() {
                break;
            }
            thread::sleep(pause);
            self.write();
        }
    }

    fn write(&mut self) {
        let mut failed = BTreeSet::new();
        for block in std::mem::take(&mut self.unwritten) {
            let since = Instant::now();
            let path = self.path(block);
            if let Err(error) = self.write_block(block, &path) {
                // It is tried again with the next trial.
                failed.insert(block);
                if !std::mem::replace(&mut self.told, true) {
                    terminal::tell(&format!("An incomplete block was not kept: {}: {error:#}", path.display()));
                }
            }
            self.written = Some((Instant::now(), since.elapsed()));
        }
        self.unwritten = failed;
    }

    fn write_block(&self, block: u32, path: &Path) -> anyhow::Result<()> {
        let of_block = |trial: &&Trial| trial.id.repetition == block;
        let origin = BlockOrigin { block, machine: self.machine.to_owned(), inventory: self.inventory.clone() };
        let run = Run { blocks: vec![origin], finished_unix_ns: None, ..self.run.clone() };
        let mut trials: Vec<Trial> = self.trials.iter().filter(of_block).cloned().collect();
        trials.sort_by_key(|trial| trial.position);
        Ok(bundle::replace(Dataset { run, trials }, path)?)
    }
}

impl Recorder for Begun<'_> {
    fn trial_started(&mut self, _id: TrialId, _position: u32) -> Result<(), RecorderError> {
        Ok(())
    }

    fn trial_finished(&mut self, trial: &Trial) -> Result<(), RecorderError> {
        self.trials.push(trial.clone());
        self.unwritten.insert(trial.id.repetition);
        if self.written.is_none_or(|(at, took)| at.elapsed() >= took * SHARE) {
            self.write();
        }
        Ok(())
    }
}
