//! The steps of a trial: [`calls`] has what each one does, and here it is done and timed.

mod age;
mod apart;
mod beside;
mod calls;
mod judge;
mod load;
mod own;
mod ranks;
mod sequence;
mod state;

pub use age::{removal_of, remove_aged_directory, state_of_aged_directory};
use calls::Call;
pub(crate) use calls::{Scene, calls};
pub(in crate::trial) use judge::Checked;
use judge::take_figures;
pub(in crate::trial) use own::cure;

use super::{
    beside::Company,
    error::ExecutorError,
    measure::{of_command, of_interval},
    own::OwnGround,
    record::{Halt, StepReport, failed, not_durable},
    session::{OnProgress, Session},
};
use crate::{
    command::{CommandOutput, NOT_FOUND},
    filesystem::Filesystem,
    fragmentation::Fragmentation,
    meters::{KernelWork, Meters},
    place::{
        device::{DeviceLock, ScratchDevice, filesystem_uuid},
        mount::{MountEntry, MountError, MountRequest},
    },
};
use fstone_model::{
    Outcome, Step, age::AGED_DIRECTORY, metric::catalog, outcome::Reason, result::CommandRecord, study::StepAction,
    units::nanoseconds,
};
use std::{
    fs,
    sync::{MutexGuard, PoisonError},
    time::{Duration, Instant},
};

const READ_BACK_LIMIT: Duration = Duration::from_secs(60);

enum Made {
    Done,
    /// A command ended, with whatever status.
    Ended(CommandOutput),
    Counted(Fragmentation),
    /// It cannot be done here, which is a warning.
    Not(String),
}

/// Whether a step may change what loads were promised, and nobody sees how.
fn is_unobserved(action: &StepAction) -> bool {
    match action {
        StepAction::Command { .. } | StepAction::CopyIn { .. } | StepAction::Service(_) | StepAction::Age(_) => true,
        StepAction::Load(workload) => workload.launch.is_some(),
        StepAction::Mkfs
        | StepAction::Mount
        | StepAction::Remount
        | StepAction::Unmount
        | StepAction::Sync
        | StepAction::DropCaches
        | StepAction::Trim
        | StepAction::Fsck { .. }
        | StepAction::Fragmentation
        | StepAction::PowerCut(_) => false,
    }
}

impl Session {
    /// Makes a step. Its figures are of the timed calls alone: the interval pauses while programs and the device are looked after.
    pub(super) fn step(&mut self, step: &Step, progress: OnProgress<'_>, report: &mut StepReport) -> Result<(), Halt> {
        if step.background {
            return self.wait_beside(step);
        }
        self.check_services(&step.name)?;
        let intervals = match &step.action {
            StepAction::Load(workload) => workload.intervals(),
            StepAction::Command { .. } => 1,
            _ => 0,
        };
        let has_company = intervals > 0;
        if has_company {
            self.company().prepare(intervals, &self.machine.stop);
        }
        let served = self.services.len();
        let ended = self.watched(step, progress, report);
        self.done = ended.is_ok() && !self.machine.stop.is_requested();
        if has_company {
            self.end_company(step, report);
        } else {
            let served = served.min(self.services.len());
            let beside = (served > 0 && !report.figures.is_empty()).then(|| catalog::BESIDE.figure(served as f64));
            report.figures.extend(beside);
        }
        // A service that died explains a failure better than what it made fail.
        match (self.check_services(&step.name), ended) {
            (Err(halt), Ok(()) | Err(Halt::Outcome(_) | Halt::Stopped(_))) => Err(halt),
            (_, ended) => ended,
        }
    }

    fn watched(&mut self, step: &Step, progress: OnProgress<'_>, report: &mut StepReport) -> Result<(), Halt> {
        match self.promises.clone().filter(|_| is_unobserved(&step.action)) {
            Some(promises) => {
                let place = self.place.clone();
                promises.witness().unobserved(&place, || self.carry_out(step, progress, report))
            }
            None => self.carry_out(step, progress, report),
        }
    }

    fn carry_out(&mut self, step: &Step, progress: OnProgress<'_>, report: &mut StepReport) -> Result<(), Halt> {
        let cold = std::mem::take(&mut self.cold);
        // These read no file.
        self.cold = cold && matches!(step.action, StepAction::Mount | StepAction::Unmount | StepAction::Sync);
        let unmounts = matches!(
            step.action,
            StepAction::Unmount | StepAction::Remount | StepAction::Fsck { .. } | StepAction::PowerCut(_)
        );
        if unmounts {
            self.stop_services(&step.name)?;
        }
        let calls = calls(&self.scene(), step).map_err(Halt::Outcome)?;
        for call in &calls.before {
            let _held = self.prepare(call)?;
            self.make(step, call, report)?;
        }
        if let Some(words) = calls.nothing {
            self.warn(format!("{}: {words}", step.name));
            return Ok(());
        }
        if let [Call::Load(workload)] = calls.timed[..] {
            // Its interval is the engine's to begin and end.
            return self.load(step, workload, cold, progress, report);
        }
        if let [Call::Age { age, place }, then @ ..] = &calls.timed[..] {
            return self.age(step, age, place, then, progress, report);
        }
        if let [Call::Serve { service, .. }] = calls.timed[..] {
            return self.serve(step, service, report);
        }
        if calls.timed.is_empty() {
            return Ok(());
        }
        let mut meters = Meters::new(self.device.as_ref().map(ScratchDevice::path));
        let mut made = Made::Done;
        for call in &calls.timed {
            if call.needs_preparing() {
                meters.pause();
            }
            let _held = self.prepare(call)?;
            let has_company = matches!(step.action, StepAction::Command { .. });
            if has_company {
                self.company().begin();
            }
            meters.resume();
            made = self.make(step, call, report)?;
            if has_company {
                self.company().interval_ended();
            }
        }
        let readings = meters.end();
        let figures = of_interval(&readings);
        let work = readings.work.as_ref().map(KernelWork::record);
        match made {
            Made::Done => report.figures = figures,
            Made::Ended(output) => {
                report.figures = of_command(figures, &output);
                report.commands.extend(work);
                return self.judge(step, &output, report);
            }
            Made::Counted(counted) => {
                report.figures = figures;
                self.count(step, &counted, report)?;
            }
            Made::Not(words) => self.warn(format!("{}: {words}", step.name)),
        }
        report.commands.extend(work);
        Ok(())
    }

    fn company(&self) -> MutexGuard<'_, Company> {
        self.company.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            filesystem: self.filesystem,
            spec: &self.spec,
            device: self.device.as_ref().and_then(|device| device.path().to_str()).unwrap_or_default(),
            named: self.device.as_ref().is_some_and(ScratchDevice::is_named),
            place: &self.place,
            mounted: self.mounted,
            own: self.own_places(),
        }
    }

    /// Brings programs back into memory that were dropped from it with the caches. Then the assurance that the device may
    /// be written now, and stays so where the call itself does not see to that.
    fn prepare(&mut self, call: &Call<'_>) -> Result<Option<DeviceLock>, Halt> {
        if let Some(command) = call.command() {
            self.warmth.restore(command, &*self.machine.runner);
        }
        let Some(device) = self.device.as_ref().filter(|_| call.opens_device()) else { return Ok(None) };
        let devices = &*self.machine.devices;
        let unsafe_now = |refusal: crate::place::device::Refusal| Halt::Lab(ExecutorError::Device(refusal.into()));
        device.recheck(devices).map_err(unsafe_now)?;
        match call {
            Call::Tool { hold: true, .. } => devices.hold(device.path(), device.number()).map(Some).map_err(unsafe_now),
            _ => Ok(None),
        }
    }

    fn make(&mut self, step: &Step, call: &Call<'_>, report: &mut StepReport) -> Result<Made, Halt> {
        if let Call::Tool { command, .. } | Call::Run(command) = call {
            let ran = self.run(step, command, report);
            if let (StepAction::Mkfs, Some(own)) = (&step.action, &mut self.own) {
                own.lacked_its_program = match &ran {
                    Ok(output) => output.status == NOT_FOUND,
                    Err(halt) => matches!(halt, Halt::Outcome(Outcome::Skipped(_))),
                };
            }
            return ran.map(Made::Ended);
        }
        match call {
            Call::MountBy { command, place } => return self.mount_by(step, command, place, report),
            Call::UnmountBy { command, place } => return self.unmount_by(step, command.as_ref(), place, report),
            _ => {}
        }
        let started = Instant::now();
        let made = self.call_kernel(step, call);
        let duration_ns = nanoseconds(started.elapsed());
        let output_tail = match &made {
            Ok(Made::Not(words)) => words.clone(),
            Err(Halt::Outcome(outcome)) => outcome.reason().map(|reason| reason.words.clone()).unwrap_or_default(),
            _ => String::new(),
        };
        let record = |argv| CommandRecord { argv, status: None, duration_ns, output_tail };
        report.commands.extend(call.argv().map(record));
        if let Ok(Made::Done) = made {
            self.mounted = call.leaves_mounted().unwrap_or(self.mounted);
            if *call == Call::DropCaches {
                self.warmth.lost();
                self.cold = true;
            }
        }
        made
    }

    fn call_kernel(&self, step: &Step, call: &Call<'_>) -> Result<Made, Halt> {
        let mounter = &*self.machine.mounter;
        let failed = |words: String| failed(step, words);
        let done = match call {
            Call::Discard { device } => return self.discard(step, device),
            Call::Mount(request) => mounter.mount(request).map_err(|error| self.not_mounted(step, request, &error)),
            Call::Flush(place) => mounter.flush(place).map_err(|error| not_durable(&step.name, place, &error)),
            Call::Unmount(place) => mounter.unmount(place).map_err(|error| failed(error.to_string())),
            Call::DropCaches => match mounter.drop_caches() {
                Err(error) if !self.machine.privileged => {
                    return Ok(Made::Not(format!("caches were not dropped, which needs root: {error}")));
                }
                done => done.map_err(|error| failed(format!("drop-caches: {error}"))),
            },
            Call::Sync(place) => {
                mounter.sync(place).map_err(|error| failed(format!("sync {}: {error}", place.display())))
            }
            Call::Trim(place) => mounter.trim(place).map_err(|error| match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::ENOTTY) => {
                    let words = format!("this filesystem on this device cannot be trimmed: {error}");
                    Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words)))
                }
                _ => failed(format!("FITRIM {}: {error}", place.display())),
            }),
            Call::MakeDirectory(path) => {
                fs::create_dir_all(path).map_err(|error| failed(format!("mkdir {}: {error}", path.display())))
            }
            Call::CountExtents(place) => {
                let counted = crate::fragmentation::count(place, Some(AGED_DIRECTORY), &self.machine.stop);
                return counted.map(Made::Counted).map_err(|error| failed(error.to_string()));
            }
            // A guest's host does this, with the guest's disk; elsewhere preflight refuses it.
            Call::CutPower(_) => return Err(failed("there is no disk whose power could be cut".to_owned())),
            Call::Tool { .. }
            | Call::Run(_)
            | Call::MountBy { .. }
            | Call::UnmountBy { .. }
            | Call::Load(_)
            | Call::Age { .. }
            | Call::Serve { .. } => Ok(()),
        };
        done.map(|()| Made::Done)
    }

    fn discard(&self, step: &Step, device: &str) -> Result<Made, Halt> {
        let Some(scratch) = &self.device else { return Err(failed(step, "there is no device".into())) };
        match self.machine.devices.discard(scratch.path(), scratch.number()) {
            Ok(true) => Ok(Made::Done),
            Ok(false) => Ok(Made::Not("the device cannot discard".to_owned())),
            Err(error) => Err(failed(step, format!("discarding {device}: {error}"))),
        }
    }

    fn not_mounted(&self, step: &Step, request: &MountRequest, error: &MountError) -> Halt {
        let mut reason = Reason::new(&step.name, error.to_string());
        let is_image = self.device.as_ref().is_some_and(|device| device.purpose().is_of_an_image());
        // What mkfs made has a UUID of its own.
        let is_copy = is_image && self.effective.superblock.is_empty();
        let option = self.filesystem.and_then(Filesystem::option_of_copies).filter(|_| is_copy);
        // The kernel says only in its log that another filesystem of this UUID is mounted.
        if let (MountError::Refused { .. }, Some(option)) = (error, option)
            && !request.options.contains(option)
        {
            reason = reason.with_cure(format!("if it is a copy of a filesystem that is mounted: mount = \"{option}\""));
        }
        let chosen = !(self.spec.mount.is_empty() && self.spec.mkfs.is_empty());
        Halt::Outcome(match error {
            MountError::UnknownFilesystem { .. } => Outcome::Skipped(reason),
            // Without an option of the study there is none to refuse: something is wrong with the machine.
            MountError::Refused { .. } if chosen => Outcome::Refused(reason),
            MountError::Refused { .. } => Outcome::Failed(reason),
            MountError::Failed { .. } => {
                let words = format!("{} on {}: {}", request.source.display(), request.target.display(), reason.words);
                Outcome::Failed(Reason { words, ..reason })
            }
        })
    }

    /// What is read back after a step, outside its time.
    pub(super) fn after(&mut self, step: &Step) {
        match step.action {
            StepAction::Mkfs => {
                self.own.iter_mut().for_each(OwnGround::made);
                self.read_superblock();
            }
            StepAction::Mount if self.effective.mount.is_none() => {
                self.effective.mount = self.options_in_force();
            }
            _ => {}
        }
    }

    fn read_superblock(&mut self) {
        let Some(device) = self.device.clone() else { return };
        let runner = &*self.machine.runner;
        if device.is_named() {
            // So that after a kill it can be told from a filesystem that somebody else made there later.
            self.uuid = filesystem_uuid(device.path(), runner);
        }
        let Some(filesystem) = self.filesystem else { return };
        let Some(command) = filesystem.superblock(&device.argument()) else { return };
        match runner.run(&command, READ_BACK_LIMIT) {
            Ok(output) if output.status == 0 => {
                self.effective.superblock = filesystem.parse_superblock(&output.stdout);
            }
            Ok(output) => self.warn(format!("the superblock could not be read back: {}", output.words())),
            Err(error) => self.warn(format!("the superblock could not be read back: {error}")),
        }
    }

    pub(in crate::trial) fn options_in_force(&self) -> Option<String> {
        let mounts = self.machine.mounter.mounts().ok()?;
        let below = mounts.iter().filter(|mount| self.place.starts_with(&mount.target));
        // Of mounts on the same directory the last one made covers the others.
        below.max_by_key(|mount| (mount.target.components().count(), mount.id)).map(MountEntry::options)
    }
}
