//! Steps that make, mount, check and look after the filesystem.

use crate::{
    command::CommandOutput,
    filesystem::{Verdict, mkfs_of, mkfs_refused},
    place::{
        device::{ScratchDevice, filesystem_uuid},
        mount::{MountEntry, MountError, MountRequest},
        undo::Entry,
    },
    trial::{
        ExecutorError,
        bench::{Bench, StepReport, failed},
        host::{Halt, nanoseconds},
    },
};
use fstone_model::{Outcome, Step, metric::catalog, outcome::Reason, result::CommandRecord, study::FsckMode};
use std::time::{Duration, Instant};

/// How long reading a superblock may take.
const READ_BACK_LIMIT: Duration = Duration::from_secs(60);

impl Bench<'_, '_> {
    pub(super) fn mkfs(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        if self.mounted.is_some() {
            return Err(failed(step, "it is mounted; put an unmount step before".into()));
        }
        let spec = &self.job.cell.filesystem;
        let options = &spec.mkfs;
        let (filesystem, device) = self.scratch(step)?;
        let Some(command) = mkfs_of(filesystem, spec, &device.argument()) else {
            let words = format!("the mkfs of {} cannot put a tree into the filesystem it makes", filesystem.kind());
            return Err(Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words))));
        };
        self.discard_named(step, device, report)?;
        // In an empty directory, so that no word of a study's options can be the name of a file.
        let command = command.in_directory(&self.place);
        // Most open it exclusively themselves, which they could not if we had it open so.
        let held = match filesystem.mkfs_is_exclusive() {
            true => None,
            false => Some(self.host.machine.devices.hold(device.path(), device.number())),
        };
        let held = held.transpose().map_err(|refusal| Halt::Lab(ExecutorError::Device(refusal.into())))?;
        let (output, figures) = self.metered(|bench| bench.run(step, &command, report));
        drop(held);
        let output = output?;
        report.figures = figures;
        if output.status != 0 {
            let reason = Reason::new(&step.name, output.words());
            let refused = mkfs_refused(options, &output);
            return Err(Halt::Outcome(if refused { Outcome::Refused(reason) } else { Outcome::Failed(reason) }));
        }
        Ok(())
    }

    /// A disk of the user's begins every trial with all its blocks given back, where it can do that: an SSD that the last
    /// filesystem has filled is slower. Before the step's time begins.
    fn discard_named(&self, step: &Step, device: &ScratchDevice, report: &mut StepReport) -> Result<(), Halt> {
        if !device.is_named() {
            return Ok(());
        }
        let started = Instant::now();
        let done = self.host.machine.devices.discard(device.path(), device.number());
        let words = match done {
            Ok(true) => String::new(),
            Ok(false) => "the device cannot discard".to_owned(),
            Err(error) => return Err(failed(step, format!("discarding {}: {error}", device.argument()))),
        };
        report.commands.push(CommandRecord {
            argv: vec!["blkdiscard".into(), device.argument()],
            status: None,
            duration_ns: nanoseconds(started.elapsed()),
            output_tail: words,
        });
        Ok(())
    }

    pub(super) fn read_superblock(&mut self) {
        let (Some(filesystem), Some(device)) = (self.filesystem, self.device.clone()) else { return };
        let runner = &*self.host.machine.runner;
        if let Some(entry) = self.scratch {
            // So that after a kill it can be told from a filesystem that somebody else made there later.
            let uuid = filesystem_uuid(device.path(), runner);
            let known = Entry::Scratch { path: device.path().to_owned(), device: device.number(), uuid };
            self.scratch = self.host.undo.replace(entry, known).ok();
        }
        let Some(command) = filesystem.superblock(&device.argument()) else { return };
        match runner.run(&command, READ_BACK_LIMIT) {
            Ok(output) if output.status == 0 => {
                self.record.effective.superblock = filesystem.parse_superblock(&output.stdout);
            }
            Ok(output) => self.warn(format!("the superblock could not be read back: {}", output.words())),
            Err(error) => self.warn(format!("the superblock could not be read back: {error}")),
        }
    }

    pub(super) fn mount(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        if self.mounted.is_some() {
            return Err(failed(step, "it is mounted already".into()));
        }
        let (filesystem, device) = self.scratch(step)?;
        let request = MountRequest {
            source: device.path().to_owned(),
            kernel_name: filesystem.kernel_name().to_owned(),
            options: self.job.cell.filesystem.mount.clone(),
            target: self.place.clone(),
        };
        let entry = Entry::Mount { target: self.place.clone(), device: device.number() };
        let entry = self.host.undo.record(entry)?;
        let started = Instant::now();
        let result = self.host.machine.mounter.mount(&request);
        report.commands.push(CommandRecord {
            argv: request.argv(),
            status: None,
            duration_ns: nanoseconds(started.elapsed()),
            output_tail: result.as_ref().err().map(ToString::to_string).unwrap_or_default(),
        });
        let Err(error) = result else {
            self.mounted = Some(entry);
            return Ok(());
        };
        self.host.undo.forget(entry);
        let words = error.to_string();
        let reason = Reason::new(&step.name, words);
        let chosen = !(self.job.cell.filesystem.mount.is_empty() && self.job.cell.filesystem.mkfs.is_empty());
        Err(Halt::Outcome(match error {
            MountError::UnknownFilesystem { .. } => Outcome::Skipped(reason),
            // Without an option of the study there is none to refuse: something is wrong with the machine.
            MountError::Refused { .. } if chosen => Outcome::Refused(reason),
            MountError::Refused { .. } => Outcome::Failed(reason),
            MountError::Failed { .. } => {
                let words = format!("{} on {}: {}", request.source.display(), request.target.display(), reason.words);
                Outcome::Failed(Reason { words, ..reason })
            }
        }))
    }

    pub(super) fn unmount(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let Some(entry) = self.mounted else {
            return Err(failed(step, "it is not mounted".into()));
        };
        self.flush(&step.name)?;
        let started = Instant::now();
        let result = self.host.undo.undo(entry);
        report.commands.push(CommandRecord {
            argv: vec!["umount".into(), self.place.display().to_string()],
            status: None,
            duration_ns: nanoseconds(started.elapsed()),
            output_tail: result.as_ref().err().map(|error| error.words.clone()).unwrap_or_default(),
        });
        result.map_err(|error| failed(step, error.words))?;
        self.mounted = None;
        Ok(())
    }

    /// What was written is on the device, or its outcome is told: an unmount throws away without a word what it cannot
    /// write.
    pub(crate) fn flush(&self, step: &str) -> Result<(), Halt> {
        if self.mounted.is_none() {
            return Ok(());
        }
        self.host.machine.mounter.flush(&self.place).map_err(|error| {
            let words = format!("what was written is not durable: syncfs {}: {error}", self.place.display());
            Halt::Outcome(Outcome::Failed(Reason::new(step, words)))
        })
    }

    /// The place's mount options, as the kernel shows them.
    pub(crate) fn options_in_force(&self) -> Option<String> {
        let mounts = self.host.machine.mounter.mounts().ok()?;
        let below = mounts.iter().filter(|mount| self.place.starts_with(&mount.target));
        // Of mounts on the same directory the last one made covers the others.
        below.max_by_key(|mount| (mount.target.components().count(), mount.id)).map(MountEntry::options)
    }

    pub(super) fn drop_caches(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let ((flushed, dropped), figures) =
            self.metered(|bench| (bench.flush(&step.name), bench.host.machine.mounter.drop_caches()));
        flushed?;
        match dropped {
            Ok(()) => {
                report.figures = figures;
                Ok(())
            }
            Err(error) if !self.host.machine.privileged => {
                self.warn(format!("{}: caches were not dropped, which needs root: {error}", step.name));
                Ok(())
            }
            Err(error) => Err(failed(step, format!("drop-caches: {error}"))),
        }
    }

    pub(super) fn trim(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let place = self.place(step)?.to_owned();
        let (done, figures) = self.metered(|bench| bench.host.machine.mounter.trim(&place));
        report.figures = figures;
        done.map_err(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOTTY) => {
                let words = format!("this filesystem on this device cannot be trimmed: {error}");
                Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words)))
            }
            _ => failed(step, format!("FITRIM {}: {error}", place.display())),
        })
    }

    pub(super) fn fsck(&mut self, step: &Step, mode: FsckMode, report: &mut StepReport) -> Result<(), Halt> {
        self.unmount_in_guest(step, report)?;
        if self.mounted.is_some() {
            self.unmount(step, report)?;
        }
        let (filesystem, device) = self.scratch(step)?;
        let Some(command) = filesystem.fsck(mode, &device.argument()) else {
            self.warn(format!("{}: {} has no check", step.name, filesystem.kind()));
            return Ok(());
        };
        let (output, figures) = self.metered(|bench| bench.run(step, &command, report));
        let output = output?;
        report.figures = figures;
        report.figures.extend(filesystem.figures(&output));
        report.figures.push(catalog::EXIT_STATUS.figure(f64::from(output.status)));
        let said = || format!("{}: exit status {}: {}", command.typed(), output.status, last_words(&output));
        match filesystem.verdict(&output) {
            Verdict::Clean => Ok(()),
            Verdict::Corrected => {
                self.warn(format!("{}: the check found something to correct: {}", step.name, said()));
                Ok(())
            }
            Verdict::Errors => Err(failed(step, format!("the filesystem is not consistent: {}", said()))),
            Verdict::Unusable => Err(failed(step, said())),
        }
    }
}

/// What a check said at its end.
fn last_words(output: &CommandOutput) -> String {
    const LINES: usize = 3;
    let lines: Vec<&str> =
        output.stdout.lines().chain(output.stderr.lines()).map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_check() {
        let output = CommandOutput {
            stdout: "Pass 1\nPass 2\n\n".into(),
            stderr: "Fix? no\nerrors left\n".into(),
            ..CommandOutput::default()
        };
        assert_eq!(last_words(&output), "Pass 2; Fix? no; errors left");
        assert_eq!(last_words(&CommandOutput::default()), "");
    }
}
