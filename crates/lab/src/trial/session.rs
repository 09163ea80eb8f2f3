//! The agent's side of a trial: the place, the device, and the steps that are made with them, wherever the agent is.

use super::{
    aged::aged_beside,
    beside::{Company, Serving},
    carried::Carried,
    error::ExecutorError,
    own::OwnGround,
    promises::Promises,
    record::{Halt, StepReport, failed, not_durable, not_installed, outcome_of_stop, refuse_full, skipped},
    warm::Warmth,
    watch::{Gauge, Watch},
};
use crate::{
    agent::protocol::{Ground, Opened, Opening, StepEnd, StepReply},
    command::{CommandLine, CommandOutput, RunError},
    events::LoadProgress,
    filesystem::{self, Filesystem, OWN_DIRECTORY, mount_points},
    machine::Machine,
    place::{
        AGED_BENEATH, custody,
        device::{Purpose, ScratchDevice},
    },
    stop::StopReason,
};
use fstone_engine::age::{Held, Journal, JournalError};
use fstone_files::{FileIdentity, make_empty_directory, remove_tree};
use fstone_model::{Outcome, Step, outcome::Reason, result::Effective, study::FilesystemSpec};
use fstone_sandbox::agent::{blocked_tasks, flush_buffers, is_agent, is_guest};
use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How much longer than its step's limit a command could run.
const RUNNER_GRACE: Duration = Duration::from_secs(10);

pub(crate) type OnProgress<'a> = &'a (dyn Fn(LoadProgress) + Sync);

/// A trial, as the agent knows it. What it left mounted is unmounted by the kernel when the agent ends.
pub(crate) struct Session {
    pub(crate) machine: Machine,
    pub(crate) spec: FilesystemSpec,
    /// None on a directory.
    pub(crate) filesystem: Option<&'static dyn Filesystem>,
    pub(crate) device: Option<ScratchDevice>,
    /// The mount point, or the directory that stands for it.
    pub(crate) place: PathBuf,
    pub(crate) mounted: bool,
    /// The run's work directory, on the host.
    pub(super) work: Option<PathBuf>,
    pub(crate) seed: u64,
    pub(crate) measure_null: bool,
    pub(crate) effective: Effective,
    pub(crate) warnings: Vec<String>,
    /// Whether the step itself is done, and what ran beside it ends.
    pub(super) done: bool,
    /// The UUID of what mkfs made, where the host wants to recognise it later.
    pub(crate) uuid: Option<String>,
    pub(super) promises: Option<Promises>,
    pub(super) sequence: Option<Carried>,
    pub(crate) warmth: Warmth,
    /// Whether caches were dropped, and nothing has read anything of the filesystem since.
    pub(super) cold: bool,
    tree: Option<FileIdentity>,
    gauge: Option<Gauge>,
    pub(super) own: Option<OwnGround>,
    pub(super) services: Vec<Serving>,
    /// The services whose directories were filled.
    pub(super) made: Vec<String>,
    /// The aged directories of the filesystem that is measured, so that they are not removed meanwhile.
    pub(super) aged: Vec<Held>,
    /// Where is noted which directories were aged.
    pub(super) notes: Option<PathBuf>,
    /// What runs beside the next step.
    pub(super) company: Arc<Mutex<Company>>,
}

impl Session {
    /// Everything that a step needs. `Err` is for what the lab could not do.
    pub(crate) fn open(machine: Machine, opening: Opening) -> Result<(Self, Opened), Halt> {
        let mut session = Self {
            machine,
            spec: opening.filesystem,
            filesystem: None,
            device: None,
            place: PathBuf::new(),
            mounted: false,
            work: opening.work,
            seed: opening.seed,
            measure_null: opening.measure_null,
            effective: Effective::default(),
            warnings: Vec::new(),
            done: false,
            uuid: None,
            promises: opening.promises.then(Promises::default),
            sequence: None,
            warmth: Warmth::default(),
            cold: false,
            tree: None,
            gauge: None,
            own: None,
            services: Vec::new(),
            made: Vec::new(),
            aged: Vec::new(),
            notes: None,
            company: Arc::default(),
        };
        let mut opened = Opened::default();
        match opening.ground {
            Ground::Device { path, purpose, place } => {
                let kind = &session.spec.kind;
                let Some(filesystem) = filesystem::find(kind) else {
                    return Err(skipped("mkfs", format!("fstone has no adapter for {kind}")));
                };
                let device = session.claim(&path, purpose, filesystem.facts().minimum_bytes, &opening.queue)?;
                // The working directory of mkfs, and the mount point.
                fs::create_dir_all(&place).map_err(|cause| work(&place, cause))?;
                session.filesystem = Some(filesystem);
                session.device = Some(device);
                session.place = place;
            }
            Ground::Own { device, parent, name, place } => {
                let trial = session.make_tree(&parent, &name)?;
                // Not for this process to remove: the lab does when nothing can be mounted in it any more.
                opened.tree = session.tree.take().map(|id| (trial.clone(), id));
                session.effective.mount = None;
                if let Some((path, purpose)) = device {
                    session.device = Some(session.claim(&path, purpose, 0, &opening.queue)?);
                }
                let Some(definition) = session.spec.own.clone() else {
                    return Err(skipped("mkfs", "nothing says how it is made".to_owned()));
                };
                let (directory, mounts) = (trial.join(OWN_DIRECTORY), mount_points(&definition, &place, &trial));
                for path in mounts.iter().chain([&directory]) {
                    fs::create_dir_all(path).map_err(|cause| work(path, cause))?;
                }
                let own = OwnGround::new(directory, mounts, is_agent() && !is_guest())
                    .map_err(|cause| work(Path::new("/proc"), cause))?;
                session.own = Some(own);
                session.place = place;
            }
            Ground::Directory { parent, name, notes } => {
                let path = session.make_tree(&parent, &name)?;
                opened.tree = session.tree.map(|id| (path, id));
                // Not before: two looks for one name in what does not answer wait for each other, and nothing can end that.
                session.hold_aged(&parent, notes.as_deref());
                session.notes = notes;
            }
        }
        Ok((session, opened))
    }

    /// Finds and holds what was aged on the filesystem of a directory.
    fn hold_aged(&mut self, directory: &Path, notes: Option<&Path>) {
        let mut aged = notes.map(|notes| aged_beside(notes, directory)).unwrap_or_default();
        aged.push(directory.join(AGED_BENEATH));
        let mut found = BTreeSet::new();
        for path in aged {
            let Ok(facts) = fs::metadata(&path) else { continue };
            if !found.insert((facts.dev(), facts.ino())) {
                continue;
            }
            let mut words = "the filesystem was aged before, and its free space may be used since".to_owned();
            match Journal::share(&path) {
                Ok(held) => self.aged.push(held),
                Err(busy @ JournalError::Busy) => words = busy.to_string(),
                Err(owner @ JournalError::Owner { .. }) => {
                    words = format!("{words}; {owner}, who can remove it meanwhile");
                }
                Err(_) => {}
            }
            self.warn(format!("age: {}: {words}", path.display()));
        }
    }

    fn claim(
        &self,
        path: &Path,
        purpose: Purpose,
        needed_bytes: u64,
        queue: &[(String, String)],
    ) -> Result<ScratchDevice, Halt> {
        let (devices, runner) = (&*self.machine.devices, &*self.machine.runner);
        let device = ScratchDevice::claim(path, purpose, needed_bytes, devices, runner)
            .map_err(|refusal| Halt::Lab(ExecutorError::Device(refusal.into())))?;
        for (name, value) in queue {
            if let Err(error) = devices.set_queue_setting(device.number(), name, value) {
                let words = format!("queue setting {name} = {value:?}: {error}");
                return Err(Halt::Outcome(Outcome::Refused(Reason::new("device", words))));
            }
        }
        Ok(device)
    }

    fn make_tree(&mut self, parent: &Path, name: &str) -> Result<PathBuf, Halt> {
        let parent = fs::canonicalize(parent).map_err(|cause| work(parent, cause))?;
        if let Some(part) = custody::exchangeable(&parent).map_err(|cause| work(&parent, cause))? {
            return Err(work(&parent, part.refusal()));
        }
        let space = self.machine.devices.space(&parent).map_err(|cause| work(&parent, cause))?;
        refuse_full(&parent, space)?;
        let path = parent.join(name);
        // Never one that is there, and for nobody else to put links into.
        self.tree = Some(make_empty_directory(&path).map_err(|cause| work(&path, cause))?);
        self.place.clone_from(&path);
        self.effective.mount = self.options_in_force();
        self.gauge = Some(Gauge::of(parent, Arc::clone(&self.machine.devices)));
        Ok(path)
    }

    pub(crate) fn run_step(&mut self, step: &Step, progress: OnProgress<'_>) -> StepReply {
        self.timed(step, |session, report| session.step(step, progress, report))
    }

    /// Does what a step consists of: the one place where a step's time begins and ends.
    pub(crate) fn timed(
        &mut self,
        step: &Step,
        work: impl FnOnce(&mut Self, &mut StepReport) -> Result<(), Halt>,
    ) -> StepReply {
        let mut report = StepReport::default();
        let stop = Arc::clone(&self.machine.stop);
        stop.clear();
        let gauge = self.gauge.take();
        // A guest ends with its trial, and its kernel can say more of what hangs than its agent: the host keeps its limits.
        let limit = (!is_guest()).then_some(step.limit);
        let watch = Watch { stop: &stop, cancel: None, limit, gauge: gauge.as_ref() };
        let started = Instant::now();
        let ended = watch.over(|| work(self, &mut report));
        let duration = started.elapsed();
        self.gauge = gauge;
        // Its limit is not that of what ends after it.
        if std::mem::take(&mut self.done) && matches!(stop.reason(), Some(StopReason::Limit(_))) {
            stop.clear();
        }
        if ended.is_ok() && !stop.is_requested() {
            self.after(step);
        }
        // A request to stop comes before whatever else went wrong, since it is often the cause; but a step that is done
        // is done, and what could not be killed says more than that it took too long.
        let end = match (ended, outcome_of_stop(&step.name, stop.reason().as_ref())) {
            (Ok(()), None) => StepEnd::Done,
            (Err(Halt::Outcome(outcome @ Outcome::Hung(_))), _) => StepEnd::Outcome(outcome),
            (_, Some(Outcome::Hung(reason))) => {
                // What was killed and is still there hangs in the kernel.
                let words =
                    blocked_tasks().map_or(reason.words.clone(), |stacks| format!("{}\n{stacks}", reason.words));
                StepEnd::Outcome(Outcome::Hung(Reason { words, ..reason }))
            }
            (_, Some(outcome)) => StepEnd::Outcome(outcome),
            (Err(Halt::Outcome(outcome)), None) => StepEnd::Outcome(outcome),
            (Err(Halt::Stopped(_)), None) => StepEnd::Lab("it was stopped, but not by fstone".into()),
            (Err(Halt::Lab(error)), None) => StepEnd::Lab(error.to_string()),
        };
        if stop.reason() == Some(StopReason::Service) {
            // The other services are to be stopped gently.
            stop.clear();
        }
        StepReply {
            duration,
            commands: report.commands,
            figures: report.figures,
            load: report.load,
            beside: report.beside,
            warnings: std::mem::take(&mut self.warnings),
            effective: self.effective.clone(),
            uuid: self.uuid.clone(),
            mounted: self.mounted,
            end,
        }
    }

    pub(crate) const fn is_watched(&self) -> bool {
        self.promises.is_some()
    }

    /// Has what was written to the device past any filesystem on it, and the kernel forget what it knows of it.
    pub(crate) fn forget_device(&self) -> io::Result<()> {
        self.device.as_ref().map_or(Ok(()), |device| forget(device.path()))
    }

    /// What was written is on the device, or its outcome is told: an unmount throws away without a word what it cannot
    /// write.
    pub(crate) fn flush(&mut self, step: &str) -> Result<(), Halt> {
        self.stop_services(step)?;
        if !self.mounted {
            return Ok(());
        }
        let own = self.own.iter().flat_map(|own| own.mounted.iter().map(|mounted| &mounted.place));
        let places: Vec<&PathBuf> = if self.own.is_some() { own.collect() } else { vec![&self.place] };
        places
            .into_iter()
            .try_for_each(|place| self.machine.mounter.flush(place).map_err(|error| not_durable(step, place, &error)))
    }

    /// Gives the place back: unmounts, or removes what the load made.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        // What waited for a step that never came, too.
        drop(self.company.lock().unwrap_or_else(PoisonError::into_inner).end("the trial"));
        self.machine.stop.clear();
        if let Err(Halt::Outcome(outcome)) = self.stop_services("leave") {
            self.warnings.extend(outcome.reason().map(|reason| reason.words.clone()));
        }
        if self.own.is_some() {
            return self.leave_own();
        }
        if self.mounted {
            self.machine.mounter.unmount(&self.place).map_err(io::Error::other)?;
            self.mounted = false;
        }
        match self.tree.take() {
            Some(id) => remove_tree(&self.place, id),
            None => Ok(()),
        }
    }

    pub(crate) fn warn(&mut self, words: String) {
        self.warnings.push(words);
    }

    pub(crate) fn run(
        &self,
        step: &Step,
        command: &CommandLine,
        report: &mut StepReport,
    ) -> Result<CommandOutput, Halt> {
        let name = step.name.as_str();
        // The watch keeps the step's limit; the runner's own is there in case the watch fails.
        match self.machine.runner.run(command, step.limit + RUNNER_GRACE) {
            Ok(output) => {
                report.commands.push(output.record(command));
                Ok(output)
            }
            Err(RunError::NotFound { program }) => Err(not_installed(name, &program)),
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
                let stacks = blocked_tasks().map(|stacks| format!("\n{stacks}")).unwrap_or_default();
                Err(Halt::Outcome(Outcome::Hung(Reason::new(name, format!("{error}{stacks}")))))
            }
            Err(error @ RunError::System { .. }) => Err(failed(step, error.to_string())),
        }
    }
}

fn work(path: &Path, cause: io::Error) -> Halt {
    Halt::Lab(ExecutorError::Work { path: path.to_owned(), cause })
}

pub(super) fn forget(device: &Path) -> io::Result<()> {
    flush_buffers(&fs::File::open(device)?)
}
