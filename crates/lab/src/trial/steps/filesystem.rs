//! Steps that make, mount, check and look after the filesystem.

use crate::{
    command::CommandOutput,
    filesystem::{Verdict, mkfs_of, mkfs_refused},
    meters::{MARK_BEGIN, MARK_END},
    place::{
        device::{ScratchDevice, filesystem_uuid},
        mount::{MountEntry, MountError, MountRequest},
    },
    trial::{
        ExecutorError,
        measure::of_command,
        record::{Halt, StepReport, failed, nanoseconds},
        session::Session,
    },
};
use fstone_model::{
    Outcome, Step,
    metric::{Figure, Unit, catalog},
    outcome::Reason,
    result::CommandRecord,
    study::FsckMode,
};
use std::time::{Duration, Instant};

/// How long reading a superblock may take.
const READ_BACK_LIMIT: Duration = Duration::from_secs(60);

impl Session {
    pub(super) fn mkfs(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        if self.mounted {
            return Err(failed(step, "it is mounted; put an unmount step before".into()));
        }
        let spec = &self.spec;
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
            false => Some(self.machine.devices.hold(device.path(), device.number())),
        };
        let held = held.transpose().map_err(|refusal| Halt::Lab(ExecutorError::Device(refusal.into())))?;
        let (output, figures) = self.metered(|session| session.run(step, &command, report));
        drop(held);
        let output = output?;
        report.figures = of_command(figures, &output);
        if output.status != 0 {
            let reason = Reason::new(&step.name, output.words());
            let refused = mkfs_refused(&self.spec.mkfs, &output);
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
        let done = self.machine.devices.discard(device.path(), device.number());
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
        let runner = &*self.machine.runner;
        if device.is_named() {
            // So that after a kill it can be told from a filesystem that somebody else made there later.
            self.uuid = filesystem_uuid(device.path(), runner);
        }
        let Some(command) = filesystem.superblock(&device.argument()) else { return };
        match runner.run(&command, READ_BACK_LIMIT) {
            Ok(output) if output.status == 0 => {
                self.effective.superblock = filesystem.parse_superblock(&output.stdout);
            }
            Ok(output) => self.warn(format!("the superblock could not be read back: {}", output.words())),
            Err(error) => self.warn(format!("the superblock could not be read back: {error}")),
        }
    }

    pub(super) fn mount(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let request = self.mount_request(step)?;
        let (done, figures) = self.metered(|session| session.mount_now(step, &request, report));
        done?;
        report.figures = figures;
        Ok(())
    }

    /// What is to be mounted, looked at again; none of that is the mount's time.
    fn mount_request(&self, step: &Step) -> Result<MountRequest, Halt> {
        if self.mounted {
            return Err(failed(step, "it is mounted already".into()));
        }
        let (filesystem, device) = self.scratch(step)?;
        Ok(MountRequest {
            source: device.path().to_owned(),
            kernel_name: filesystem.kernel_name().to_owned(),
            options: self.spec.mount.clone(),
            target: self.place.clone(),
        })
    }

    fn mount_now(&mut self, step: &Step, request: &MountRequest, report: &mut StepReport) -> Result<(), Halt> {
        let started = Instant::now();
        let result = self.machine.mounter.mount(request);
        report.commands.push(CommandRecord {
            argv: request.argv(),
            status: None,
            duration_ns: nanoseconds(started.elapsed()),
            output_tail: result.as_ref().err().map(ToString::to_string).unwrap_or_default(),
        });
        let Err(error) = result else {
            self.mounted = true;
            return Ok(());
        };
        let words = error.to_string();
        let reason = Reason::new(&step.name, words);
        let chosen = !(self.spec.mount.is_empty() && self.spec.mkfs.is_empty());
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
        let (done, figures) = self.metered(|session| session.unmount_now(step, report));
        done?;
        report.figures = figures;
        Ok(())
    }

    /// Writing what is in memory is part of it, as of any unmount.
    fn unmount_now(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        if !self.mounted {
            return Err(failed(step, "it is not mounted".into()));
        }
        self.flush(&step.name)?;
        let started = Instant::now();
        let result = self.machine.mounter.unmount(&self.place);
        report.commands.push(CommandRecord {
            argv: vec!["umount".into(), self.place.display().to_string()],
            status: None,
            duration_ns: nanoseconds(started.elapsed()),
            output_tail: result.as_ref().err().map(ToString::to_string).unwrap_or_default(),
        });
        result.map_err(|error| failed(step, error.to_string()))?;
        self.mounted = false;
        Ok(())
    }

    pub(super) fn remount(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let (done, first) = self.metered(|session| {
            session.unmount_now(step, report)?;
            let dropped = session.machine.mounter.drop_caches();
            dropped.map_err(|error| failed(step, format!("drop-caches: {error}")))
        });
        done?;
        self.warmth.lost();
        let request = self.mount_request(step)?;
        let (done, second) = self.metered(|session| session.mount_now(step, &request, report));
        done?;
        report.figures = joined(first, &second);
        Ok(())
    }

    /// The place's mount options, as the kernel shows them.
    pub(in crate::trial) fn options_in_force(&self) -> Option<String> {
        let mounts = self.machine.mounter.mounts().ok()?;
        let below = mounts.iter().filter(|mount| self.place.starts_with(&mount.target));
        // Of mounts on the same directory the last one made covers the others.
        below.max_by_key(|mount| (mount.target.components().count(), mount.id)).map(MountEntry::options)
    }

    pub(super) fn drop_caches(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let ((flushed, dropped), figures) =
            self.metered(|session| (session.flush(&step.name), session.machine.mounter.drop_caches()));
        flushed?;
        match dropped {
            Ok(()) => {
                self.warmth.lost();
                report.figures = figures;
                Ok(())
            }
            Err(error) if !self.machine.privileged => {
                self.warn(format!("{}: caches were not dropped, which needs root: {error}", step.name));
                Ok(())
            }
            Err(error) => Err(failed(step, format!("drop-caches: {error}"))),
        }
    }

    pub(super) fn trim(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let place = self.place(step)?.to_owned();
        let (done, figures) = self.metered(|session| session.machine.mounter.trim(&place));
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
        if self.mounted {
            self.unmount_now(step, report)?;
        }
        let (filesystem, device) = self.scratch(step)?;
        let Some(command) = filesystem.fsck(mode, &device.argument()) else {
            self.warn(format!("{}: {} has no check", step.name, filesystem.kind()));
            return Ok(());
        };
        let (output, figures) = self.metered(|session| session.run(step, &command, report));
        let output = output?;
        report.figures = of_command(figures, &output);
        report.figures.extend(filesystem.figures(&output));
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

/// The figures of two intervals that are one step: times, counts and bytes add up, shares count for as long as they were,
/// and of peaks the greater is told. The disk's marks are moments: the first begin and the last end.
fn joined(mut first: Vec<Figure>, second: &[Figure]) -> Vec<Figure> {
    let time = |figures: &[Figure]| {
        figures.iter().find(|figure| figure.metric == catalog::TIME.name).map_or(0.0, |figure| figure.value)
    };
    let (before, after) = (time(&first), time(second));
    for figure in &mut first {
        let Some(other) = second.iter().find(|other| other.metric == figure.metric) else { continue };
        figure.value = match (figure.metric.as_str(), figure.unit) {
            (MARK_BEGIN, _) => figure.value,
            (MARK_END, _) => other.value,
            (metric, _) if metric == catalog::PEAK_DIRTY_BYTES.name => figure.value.max(other.value),
            (_, Unit::Seconds | Unit::Count | Unit::Bytes) => figure.value + other.value,
            (_, Unit::Percent) if before + after > 0.0 => {
                (figure.value * before + other.value * after) / (before + after)
            }
            _ => figure.value.max(other.value),
        };
    }
    let new = second.iter().filter(|figure| !first.iter().any(|known| known.metric == figure.metric));
    let new: Vec<Figure> = new.cloned().collect();
    first.extend(new);
    first
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
    fn two_intervals_become_the_figures_of_one_step() {
        let mark = |name: &str, value| Figure { metric: name.to_owned(), ..catalog::DEVICE_READS.figure(value) };
        let interval = |time, cpu, reads, peak, begin| {
            vec![
                catalog::TIME.figure(time),
                catalog::CPU.figure(cpu),
                catalog::DEVICE_READS.figure(reads),
                catalog::PEAK_DIRTY_BYTES.figure(peak),
                mark(MARK_BEGIN, begin),
                mark(MARK_END, begin + 1.0),
            ]
        };
        let figures = joined(interval(0.6, 5.0, 3.0, 10.0, 4.0), &interval(0.2, 45.0, 2.0, 7.0, 6.0));
        let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
        assert!((values[0] - 0.8).abs() < 1e-12 && (values[1] - 15.0).abs() < 1e-9, "{values:?}");
        assert_eq!(values[2..], [5.0, 10.0, 4.0, 7.0]);
    }

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
