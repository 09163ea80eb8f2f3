//! A trial in the making: its device and place, its watchdog, and the order of its steps.

use super::{
    ExecutorError, HostExecutor, Job,
    host::{DEVICE, Halt, Record, nanoseconds},
    measure::measured,
    watchdog::Watch,
};
use crate::{
    agent::{BOOT_LIMIT, GuestBench, STUCK_GRACE},
    command::{CommandLine, CommandOutput, RunError},
    events::Event,
    filesystem::{self, Filesystem},
    place::{
        custody,
        device::{ScratchDevice, Wanted, file_id, provide},
        undo::{Entry, TREE_PREFIX},
    },
};
use fstone_model::{
    Outcome, Step, StepResult,
    metric::Figure,
    outcome::Reason,
    result::{CommandRecord, Effective},
    study::{DeviceSpec, KernelSpec},
    units::format_bytes,
};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Where filesystems are mounted, in the work directory. Always the same, so that paths are as long in every trial.
const MOUNT_POINT_NAME: &str = "mnt";
/// How long setting up a device may take.
const DEVICE_LIMIT: Duration = Duration::from_secs(120);
/// How long a whole trial in virtual time may take in real time; that the guest does something is watched there.
const SIMULATION_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);
/// How much longer than its step's limit a command could run.
const WATCHDOG_GRACE: Duration = Duration::from_secs(10);

/// A trial in the making.
pub(crate) struct Bench<'a, 'm> {
    pub(crate) host: &'a mut HostExecutor<'m>,
    pub(crate) job: &'a Job<'a>,
    pub(crate) clock: Instant,
    /// None on a directory.
    pub(crate) filesystem: Option<&'static dyn Filesystem>,
    pub(crate) device: Option<ScratchDevice>,
    /// The mount point, or the directory that stands for it.
    pub(crate) place: PathBuf,
    /// The journal's entry of the mount, while it is mounted.
    pub(crate) mounted: Option<u64>,
    /// The journal's entry of a named device.
    pub(crate) scratch: Option<u64>,
    /// The guest that takes the running kernel's place.
    pub(crate) guest: Option<GuestBench>,
    pub(crate) record: Record,
}

/// What one step gives.
#[derive(Default)]
pub(crate) struct StepReport {
    pub(crate) commands: Vec<CommandRecord>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) load: Option<Box<fstone_model::LoadReport>>,
}

impl<'a, 'm> Bench<'a, 'm> {
    pub(crate) fn new(host: &'a mut HostExecutor<'m>, job: &'a Job<'a>, clock: Instant) -> Self {
        let place = host.work.path().join(MOUNT_POINT_NAME);
        Self {
            host,
            job,
            clock,
            filesystem: None,
            device: None,
            place,
            mounted: None,
            scratch: None,
            guest: None,
            record: Record::default(),
        }
    }

    pub(crate) fn into_record(self) -> Record {
        self.record
    }

    /// Everything but the release.
    pub(crate) fn carry_out(&mut self) -> Result<(), Halt> {
        let job = self.job;
        let space = self.space_directory();
        self.watched(DEVICE, DEVICE_LIMIT, space.as_deref(), Self::set_up)?;
        if matches!(job.cell.kernel, KernelSpec::Exact(_)) {
            return self.watched("guest", SIMULATION_LIMIT, space.as_deref(), Self::simulate);
        }
        for (index, step) in job.cell.steps.iter().enumerate() {
            if self.filesystem.is_none() && !step.action.works_in_a_directory() {
                self.warn(format!("{}: left out: a directory is not fstone's to make, mount or check", step.name));
                continue;
            }
            if self.needs_boot(step) {
                self.watched("boot", BOOT_LIMIT, space.as_deref(), Self::boot)?;
            }
            job.sink.event(&Event::StepStarted { step: &step.name, number: index + 1, of: job.cell.steps.len() });
            let started = Instant::now();
            let started_ns = nanoseconds(self.clock.elapsed());
            let mut report = StepReport::default();
            let in_guest = self.is_for_guest(step);
            let limit = if in_guest { step.limit + STUCK_GRACE } else { step.limit };
            let ended = self.watched(&step.name, limit, space.as_deref(), |bench| bench.step(step, &mut report));
            self.record.steps.push(StepResult {
                step: step.name.clone(),
                started_ns,
                duration_ns: nanoseconds(started.elapsed()),
                commands: report.commands,
                figures: report.figures,
                load: report.load,
            });
            ended?;
            if !in_guest {
                self.after(step);
            }
        }
        let last = job.cell.steps.last().map_or(DEVICE, |step| step.name.as_str());
        self.watched(last, DEVICE_LIMIT, None, |bench| bench.flush(last))
    }

    /// Does something under the watchdog. A request to stop comes before whatever else went wrong, since it is often
    /// the cause.
    fn watched(
        &mut self,
        step: &str,
        limit: Duration,
        space: Option<&Path>,
        work: impl FnOnce(&mut Self) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        let machine = self.host.machine;
        let watch = Watch { stop: &machine.stop, cancel: self.host.cancel, limit, space, devices: &*machine.devices };
        let ended = watch.over(|| work(self));
        if machine.stop.is_requested() { Err(Halt::Stopped(step.to_owned())) } else { ended }
    }

    /// The directory whose filesystem the trial can fill up.
    fn space_directory(&self) -> Option<PathBuf> {
        let work = || self.host.work.path().to_owned();
        match &self.job.cell.device {
            DeviceSpec::Loop { directory: named, .. } | DeviceSpec::Directory { path: named } => {
                Some(named.as_ref().map_or_else(work, PathBuf::from))
            }
            DeviceSpec::Zram { .. } | DeviceSpec::Block { .. } => None,
        }
    }

    /// The device, and the place where it will be mounted.
    fn set_up(&mut self) -> Result<(), Halt> {
        let (job, machine) = (self.job, self.host.machine);
        // Before the first command, so that a clean finds what commands of a killed run go on doing.
        self.host.undo.record(Entry::Processes { mark: machine.runner.mark() })?;
        self.look_at_space()?;
        if let DeviceSpec::Directory { path } = &job.cell.device {
            let parent = path.as_ref().map_or_else(|| self.host.work.path().to_owned(), PathBuf::from);
            let parent = fs::canonicalize(&parent).map_err(|cause| ExecutorError::Work { path: parent, cause })?;
            let failed = |cause| ExecutorError::Work { path: parent.clone(), cause };
            if let Some(part) = custody::replaceable(&parent).map_err(failed)? {
                return Err(ExecutorError::Work { path: parent, cause: custody::open(&part) }.into());
            }
            let path = parent.join(format!("{TREE_PREFIX}{}", std::process::id()));
            let tree = |id| Entry::Tree { path: path.clone(), id };
            self.place.clone_from(&path);
            let entry = self.make_place(tree(None))?;
            let made = fs::symlink_metadata(&self.place).map_err(failed)?;
            self.host.undo.replace(entry, tree(Some(file_id(&made))))?;
            self.record.effective = Effective { mount: self.options_in_force(), superblock: Vec::new() };
            return Ok(());
        }
        let kind = &job.cell.filesystem.kind;
        let Some(filesystem) = filesystem::find(kind) else {
            return Err(skipped(DEVICE, format!("fstone has no adapter for {kind}")));
        };
        self.filesystem = Some(filesystem);
        self.make_place(Entry::Directory { path: self.place.clone() })?;
        if job.cell.kernel != KernelSpec::Host {
            self.device = Some(self.set_up_guest(filesystem)?);
            return Ok(());
        }
        let wanted = Wanted {
            spec: &job.cell.device,
            queue: &job.cell.queue,
            work_directory: self.host.work.path(),
            allow_destroy: &self.host.allow_destroy,
            needed_bytes: filesystem.minimum_bytes(),
        };
        let device = provide(&wanted, &mut self.host.undo, machine)?;
        self.scratch = self.host.undo.scratch_entry();
        self.device = Some(device);
        Ok(())
    }

    fn make_place(&mut self, entry: Entry) -> Result<u64, Halt> {
        let path = self.place.clone();
        let entry = self.host.undo.record(entry)?;
        match fs::create_dir(&path) {
            Ok(()) => Ok(entry),
            Err(cause) => {
                // What stands there is not ours.
                self.host.undo.forget(entry);
                Err(ExecutorError::Work { path, cause }.into())
            }
        }
    }

    /// Room is looked at ahead, against what the image may grow to, and during every step by the watchdog.
    fn look_at_space(&mut self) -> Result<(), Halt> {
        let Some(directory) = self.space_directory() else { return Ok(()) };
        let space = self
            .host
            .machine
            .devices
            .space(&directory)
            .map_err(|cause| ExecutorError::Work { path: directory.clone(), cause })?;
        if space.is_used_up() {
            let words = format!("{}: only {} free", directory.display(), format_bytes(space.free_bytes));
            let reason = Reason::new(DEVICE, words).with_cure("name a work directory with more room");
            return Err(Halt::Outcome(Outcome::Failed(reason)));
        }
        if let DeviceSpec::Loop { size_bytes, .. } = &self.job.cell.device
            && *size_bytes > space.free_bytes - space.reserve_bytes()
        {
            self.warn(format!(
                "the image may grow to {}, but {} has only {} free; a trial that needs more is stopped",
                format_bytes(*size_bytes),
                directory.display(),
                format_bytes(space.free_bytes)
            ));
        }
        Ok(())
    }

    pub(crate) fn metered<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Vec<Figure>) {
        let device = self.device.as_ref().map(|device| device.path().to_owned());
        measured(device.as_deref(), || work(self))
    }

    pub(crate) fn warn(&mut self, words: String) {
        self.record.warnings.push(words);
    }

    /// Runs a command for a step and keeps its record.
    pub(crate) fn run(
        &self,
        step: &Step,
        command: &CommandLine,
        report: &mut StepReport,
    ) -> Result<CommandOutput, Halt> {
        let name = step.name.as_str();
        // The watchdog keeps the step's limit; the runner's own is there in case the watchdog fails.
        match self.host.machine.runner.run(command, step.limit + WATCHDOG_GRACE) {
            Ok(output) => {
                report.commands.push(output.record(command));
                Ok(output)
            }
            Err(RunError::NotFound { program }) => Err(skipped(name, format!("{program} is not installed"))),
            Err(RunError::Stopped { output, .. }) => {
                report.commands.extend(output.map(|output| output.record(command)));
                Err(Halt::Stopped(name.to_owned()))
            }
            Err(error @ RunError::TimedOut { .. }) => {
                if let RunError::TimedOut { output, .. } = &error {
                    report.commands.push(output.record(command));
                }
                Err(Halt::Outcome(Outcome::Hung(Reason::new(name, error.to_string()))))
            }
            Err(error @ RunError::Unkillable { .. }) => {
                Err(Halt::Outcome(Outcome::Hung(Reason::new(name, error.to_string()))))
            }
            Err(error @ RunError::System { .. }) => Err(failed(step, error.to_string())),
        }
    }

    /// The device, its adapter, and the assurance that it may be written now.
    pub(crate) fn scratch(&self, step: &Step) -> Result<(&'static dyn Filesystem, &ScratchDevice), Halt> {
        let (Some(filesystem), Some(device)) = (self.filesystem, &self.device) else {
            return Err(failed(step, "there is no device".into()));
        };
        device
            .recheck(&*self.host.machine.devices)
            .map_err(|refusal| Halt::Lab(ExecutorError::Device(refusal.into())))?;
        Ok((filesystem, device))
    }

    /// For steps that work in the mounted filesystem.
    pub(crate) fn place(&self, step: &Step) -> Result<&Path, Halt> {
        if self.filesystem.is_some() && self.mounted.is_none() {
            return Err(failed(step, "nothing is mounted; put a mount step before".into()));
        }
        Ok(&self.place)
    }
}

pub(crate) fn failed(step: &Step, words: String) -> Halt {
    Halt::Outcome(Outcome::Failed(Reason::new(&step.name, words)))
}

pub(crate) fn skipped(step: &str, words: String) -> Halt {
    Halt::Outcome(Outcome::Skipped(Reason::new(step, words)))
}
