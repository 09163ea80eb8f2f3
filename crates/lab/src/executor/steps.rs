//! The steps of a trial, one after the other, on the host.

use super::{
    ExecutorError, HostExecutor, Job, LoadFailure, LoadRequest,
    host::{DEVICE, Halt, Record, nanoseconds},
    load::{error_words, load_figures},
    measure::measured,
    watchdog::Watch,
};
use crate::{
    command::{CommandLine, CommandOutput, RunError, typed},
    device::{ScratchDevice, Wanted, filesystem_uuid, provide},
    events::Event,
    filesystem::{self, Filesystem, Verdict, mkfs_refused},
    meters::Meters,
    mount::{MountError, MountRequest},
    undo::Entry,
};
use fstone_model::{
    Outcome, Step, StepResult, Workload,
    metric::{Figure, catalog},
    outcome::Reason,
    result::{CommandRecord, Effective},
    study::{DeviceSpec, FsckMode, StepAction},
    units::format_bytes,
};
use std::{
    fs,
    path::{Component, Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Where filesystems are mounted, in the work directory. Always the same, so that paths are as long in every trial.
const MOUNT_POINT_NAME: &str = "mnt";
/// How long setting up a device may take.
const DEVICE_LIMIT: Duration = Duration::from_secs(120);
/// How much longer than its step's limit a command could run.
const WATCHDOG_GRACE: Duration = Duration::from_secs(10);
/// How long reading a superblock may take.
const READ_BACK_LIMIT: Duration = Duration::from_secs(60);

/// A trial in the making.
pub(super) struct Bench<'a, 'm> {
    host: &'a mut HostExecutor<'m>,
    job: &'a Job<'a>,
    clock: Instant,
    /// None on a directory.
    filesystem: Option<&'static dyn Filesystem>,
    device: Option<ScratchDevice>,
    /// The mount point, or the directory that stands for it.
    place: PathBuf,
    /// The journal's entry of the mount, while it is mounted.
    mounted: Option<u64>,
    /// The journal's entry of a named device.
    scratch: Option<u64>,
    record: Record,
}

/// What one step gives.
#[derive(Default)]
struct StepReport {
    commands: Vec<CommandRecord>,
    figures: Vec<Figure>,
    load: Option<Box<fstone_model::LoadReport>>,
}

impl<'a, 'm> Bench<'a, 'm> {
    pub(super) fn new(host: &'a mut HostExecutor<'m>, job: &'a Job<'a>, clock: Instant) -> Self {
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
            record: Record::default(),
        }
    }

    pub(super) fn into_record(self) -> Record {
        self.record
    }

    /// Everything but the release.
    pub(super) fn carry_out(&mut self) -> Result<(), Halt> {
        let job = self.job;
        let space = self.space_directory();
        self.watched(DEVICE, DEVICE_LIMIT, space.as_deref(), Self::set_up)?;
        for (index, step) in job.cell.steps.iter().enumerate() {
            if self.filesystem.is_none() && !step.action.works_in_a_directory() {
                self.warn(format!("{}: left out: a directory is not fstone's to make, mount or check", step.name));
                continue;
            }
            job.sink.event(&Event::StepStarted { step: &step.name, number: index + 1, of: job.cell.steps.len() });
            let started = Instant::now();
            let started_ns = nanoseconds(self.clock.elapsed());
            let mut report = StepReport::default();
            let ended = self.watched(&step.name, step.limit, space.as_deref(), |bench| bench.step(step, &mut report));
            self.record.steps.push(StepResult {
                step: step.name.clone(),
                started_ns,
                duration_ns: nanoseconds(started.elapsed()),
                commands: report.commands,
                figures: report.figures,
                load: report.load,
            });
            ended?;
            self.after(step);
        }
        Ok(())
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
        self.look_at_space()?;
        if let DeviceSpec::Directory { path } = &job.cell.device {
            let parent = path.as_ref().map_or_else(|| self.host.work.path().to_owned(), PathBuf::from);
            let parent = fs::canonicalize(&parent).map_err(|source| ExecutorError::Work { path: parent, source })?;
            self.place = parent.join(format!("fstone-load-{}", std::process::id()));
            self.make_place(Entry::Tree { path: self.place.clone() })?;
            self.record.effective = Effective { mount: self.options_in_force(), superblock: Vec::new() };
            return Ok(());
        }
        let kind = &job.cell.filesystem.kind;
        let Some(filesystem) = filesystem::find(kind) else {
            return Err(skipped(DEVICE, format!("fstone has no adapter for {kind}")));
        };
        self.filesystem = Some(filesystem);
        self.make_place(Entry::Directory { path: self.place.clone() })?;
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

    fn make_place(&mut self, entry: Entry) -> Result<(), Halt> {
        let path = self.place.clone();
        let entry = self.host.undo.record(entry)?;
        match fs::create_dir(&path) {
            Ok(()) => Ok(()),
            Err(source) => {
                // What stands there is not ours.
                self.host.undo.forget(entry);
                Err(ExecutorError::Work { path, source }.into())
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
            .map_err(|source| ExecutorError::Work { path: directory.clone(), source })?;
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

    fn step(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        match &step.action {
            StepAction::Mkfs => self.mkfs(step, report),
            StepAction::Mount => {
                let (done, figures) = self.metered(|bench| bench.mount(step, report));
                done?;
                report.figures = figures;
                Ok(())
            }
            StepAction::Unmount => {
                let (done, figures) = self.metered(|bench| bench.unmount(step, report));
                done?;
                report.figures = figures;
                Ok(())
            }
            StepAction::Remount => {
                let (done, figures) = self.metered(|bench| {
                    bench.unmount(step, report)?;
                    bench
                        .host
                        .machine
                        .mounter
                        .drop_caches()
                        .map_err(|error| failed(step, format!("drop-caches: {error}")))?;
                    bench.mount(step, report)
                });
                done?;
                report.figures = figures;
                Ok(())
            }
            StepAction::Load(workload) => self.load(step, workload, report),
            StepAction::Command { argv, shell, success } => self.command(step, argv, *shell, success, report),
            StepAction::Sync => {
                let ((), figures) = self.metered(|bench| bench.host.machine.mounter.sync());
                report.figures = figures;
                Ok(())
            }
            StepAction::DropCaches => self.drop_caches(step, report),
            StepAction::Trim => self.trim(step, report),
            StepAction::Fsck { mode } => self.fsck(step, *mode, report),
            StepAction::Fragmentation => self.fragmentation(step, report),
            StepAction::CopyIn { source, target } => self.copy_in(step, source, target, report),
        }
    }

    /// What is read back after a step, outside its time.
    fn after(&mut self, step: &Step) {
        match step.action {
            StepAction::Mkfs => self.read_superblock(),
            StepAction::Mount if self.record.effective.mount.is_none() => {
                self.record.effective.mount = self.options_in_force();
            }
            _ => {}
        }
    }

    fn metered<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Vec<Figure>) {
        let device = self.device.as_ref().map(|device| device.path().to_owned());
        measured(device.as_deref(), || work(self))
    }

    fn warn(&mut self, words: String) {
        self.record.warnings.push(words);
    }

    /// Runs a command for a step and keeps its record.
    fn run(&self, step: &Step, command: &CommandLine, report: &mut StepReport) -> Result<CommandOutput, Halt> {
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
    fn scratch(&self, step: &Step) -> Result<(&'static dyn Filesystem, &ScratchDevice), Halt> {
        let (Some(filesystem), Some(device)) = (self.filesystem, &self.device) else {
            return Err(failed(step, "there is no device".into()));
        };
        device
            .recheck(&*self.host.machine.devices)
            .map_err(|refusal| Halt::Lab(ExecutorError::Device(refusal.into())))?;
        Ok((filesystem, device))
    }

    fn mkfs(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        if self.mounted.is_some() {
            return Err(failed(step, "it is mounted; put an unmount step before".into()));
        }
        let options = &self.job.cell.filesystem.mkfs;
        let (filesystem, device) = self.scratch(step)?;
        // In an empty directory, so that no word of a study's options can be the name of a file.
        let command = filesystem.mkfs(options, &device.argument()).in_directory(&self.place);
        let (output, figures) = self.metered(|bench| bench.run(step, &command, report));
        let output = output?;
        report.figures = figures;
        if output.status != 0 {
            let reason = Reason::new(&step.name, output.words());
            let refused = mkfs_refused(options, &output);
            return Err(Halt::Outcome(if refused { Outcome::Refused(reason) } else { Outcome::Failed(reason) }));
        }
        Ok(())
    }

    fn read_superblock(&mut self) {
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

    fn mount(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
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
            MountError::Refused { .. } | MountError::Failed { .. } => Outcome::Failed(reason),
        }))
    }

    fn unmount(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let Some(entry) = self.mounted else {
            return Err(failed(step, "it is not mounted".into()));
        };
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

    /// The place's mount options, as the kernel shows them.
    fn options_in_force(&self) -> Option<String> {
        let mounts = self.host.machine.mounter.mounts().ok()?;
        let below = mounts.iter().filter(|mount| self.place.starts_with(&mount.target));
        // Of mounts on the same directory the last one made covers the others.
        below.max_by_key(|mount| (mount.target.components().count(), mount.id)).map(crate::mount::MountEntry::options)
    }

    /// For steps that work in the mounted filesystem.
    fn place(&self, step: &Step) -> Result<&Path, Halt> {
        if self.filesystem.is_some() && self.mounted.is_none() {
            return Err(failed(step, "nothing is mounted; put a mount step before".into()));
        }
        Ok(&self.place)
    }

    fn load(&mut self, step: &Step, workload: &Workload, report: &mut StepReport) -> Result<(), Halt> {
        let directory = self.place(step)?.to_owned();
        let machine = self.host.machine;
        let device = self.device.as_ref().map(|device| device.path().to_owned());
        let (running, readings) = (Mutex::new(None), Mutex::new(None));
        let slot = |slot: &Mutex<Option<Meters>>, value| {
            std::mem::replace(&mut *slot.lock().unwrap_or_else(PoisonError::into_inner), value)
        };
        let sink = self.job.sink;
        let started = Instant::now();
        let result = machine.loader.load(&LoadRequest {
            workload,
            directory: &directory,
            seed: self.job.seed,
            measure_null: self.host.measure_null,
            stop: machine.stop.flag(),
            begin: &|| drop(slot(&running, Some(Meters::begin(device.as_deref())))),
            end: &|| {
                if let Some(meters) = slot(&running, None) {
                    *readings.lock().unwrap_or_else(PoisonError::into_inner) = Some(meters.end());
                }
            },
            progress: &|progress| sink.event(&Event::Load(progress)),
        });
        report.figures.push(catalog::TIME.figure(started.elapsed().as_secs_f64()));
        let loaded = match result {
            Ok(loaded) => loaded,
            Err(LoadFailure::Interrupted) => return Err(Halt::Stopped(step.name.clone())),
            Err(LoadFailure::Failed(words)) => return Err(failed(step, words)),
        };
        let readings = readings.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.figures.extend(load_figures(&loaded, readings.as_ref()));
        for warning in &loaded.warnings {
            self.warn(format!("{}: {warning}", step.name));
        }
        let errors: Vec<String> = loaded.errors.iter().map(error_words).collect();
        report.load = Some(Box::new(loaded));
        if errors.is_empty() {
            return Ok(());
        }
        if workload.on_error == fstone_model::workload::ErrorPolicy::Continue {
            self.warn(format!("{}: operations failed: {}", step.name, errors.join("; ")));
            return Ok(());
        }
        Err(failed(step, errors.join("; ")))
    }

    fn command(
        &mut self,
        step: &Step,
        argv: &[String],
        shell: bool,
        success: &[i32],
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        let place = self.place(step)?.to_owned();
        let device = self.device.as_ref().map(ScratchDevice::argument).unwrap_or_default();
        let argv: Vec<String> = argv
            .iter()
            .map(|word| word.replace("{mount}", &place.display().to_string()).replace("{device}", &device))
            .collect();
        let command = match argv.split_first() {
            Some((script, _)) if shell => CommandLine::new("sh", ["-c", script]),
            Some((program, args)) => CommandLine::new(program, args.iter().cloned()),
            None => return Err(failed(step, "the command is empty".into())),
        };
        let command = command.in_directory(&place);
        let (output, figures) = self.metered(|bench| bench.run(step, &command, report));
        let output = output?;
        report.figures = command_figures(figures, &output);
        let good = if success.is_empty() { output.status == 0 } else { success.contains(&output.status) };
        if good {
            Ok(())
        } else {
            Err(failed(step, format!("{}: exit status {}: {}", typed(&argv), output.status, output.words())))
        }
    }

    fn drop_caches(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let (done, figures) = self.metered(|bench| bench.host.machine.mounter.drop_caches());
        match done {
            Ok(()) => {
                report.figures = figures;
                Ok(())
            }
            Err(error) if !self.host.machine.privileged => {
                self.warn(format!("{}: caches were not dropped, which needs root: {error}", step.name));
                Ok(())
            }
            Err(error) => Err(failed(step, error.to_string())),
        }
    }

    fn trim(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let place = self.place(step)?.to_owned();
        let (done, figures) = self.metered(|bench| bench.host.machine.mounter.trim(&place));
        report.figures = figures;
        done.map_err(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOTTY) => {
                let words = format!("this filesystem on this device cannot be trimmed: {error}");
                Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words)))
            }
            _ => failed(step, error.to_string()),
        })
    }

    fn fsck(&mut self, step: &Step, mode: FsckMode, report: &mut StepReport) -> Result<(), Halt> {
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

    fn fragmentation(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        let place = self.place(step)?.to_owned();
        let (counted, figures) = self.metered(|bench| crate::fragmentation::count(&place, &bench.host.machine.stop));
        let counted = counted.map_err(|error| failed(step, error.to_string()))?;
        report.figures = figures;
        report.figures.extend(counted.figures());
        for failure in &counted.errors {
            let error = std::io::Error::from_raw_os_error(failure.errno);
            self.warn(format!(
                "{}: left out of the count: {} {}: {error} ({} times)",
                step.name,
                failure.call,
                failure.path.display(),
                failure.count
            ));
        }
        Ok(())
    }

    fn copy_in(&mut self, step: &Step, source: &str, target: &str, report: &mut StepReport) -> Result<(), Halt> {
        let place = self.place(step)?.to_owned();
        let relative = Path::new(target);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside || relative.as_os_str().is_empty() {
            let words = format!("{target:?} has to be a path inside the mounted filesystem");
            return Err(Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words))));
        }
        let target = place.join(relative);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(step, format!("mkdir {}: {error}", parent.display())))?;
        }
        let (source, target) = (source.to_owned(), target.display().to_string());
        let command = CommandLine::new("cp", ["-R", "-P", "--preserve=timestamps", "--", &source, &target]);
        let (output, figures) = self.metered(|bench| bench.run(step, &command, report));
        let output = output?;
        report.figures = command_figures(figures, &output);
        if output.status == 0 { Ok(()) } else { Err(failed(step, output.words())) }
    }
}

fn failed(step: &Step, words: String) -> Halt {
    Halt::Outcome(Outcome::Failed(Reason::new(&step.name, words)))
}

fn skipped(step: &str, words: String) -> Halt {
    Halt::Outcome(Outcome::Skipped(Reason::new(step, words)))
}

/// The figures of a command: its own CPU time in place of this process', its status and memory.
fn command_figures(mut figures: Vec<Figure>, output: &CommandOutput) -> Vec<Figure> {
    figures.retain(|figure| figure.metric != catalog::PROCESS_CPU.name && figure.metric != catalog::TIME.name);
    let time = output.duration.as_secs_f64();
    figures.insert(0, catalog::TIME.figure(time));
    if time > 0.0 {
        let busy = (output.usage.user + output.usage.system).as_secs_f64();
        figures.push(catalog::PROCESS_CPU.figure(busy * 100.0 / time));
    }
    figures.push(catalog::EXIT_STATUS.figure(f64::from(output.status)));
    figures.push(catalog::MAXIMUM_RESIDENT_BYTES.figure(output.usage.maximum_resident_bytes as f64));
    figures
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

    #[test]
    fn io_errors_name_the_step() {
        let step = Step { name: "trim".into(), action: StepAction::Trim, limit: Duration::from_secs(1) };
        let Halt::Outcome(Outcome::Failed(reason)) =
            failed(&step, std::io::Error::from_raw_os_error(libc::EIO).to_string())
        else {
            panic!("an outcome");
        };
        assert_eq!(reason.step, "trim");
        assert!(reason.words.contains("Input/output error"));
    }
}
