//! The lab's side of a trial: provides the device, starts agents, has them do one step after the other, and writes down
//! what they say. It touches neither the device nor what is mounted: that an agent can be abandoned with all it waits for.

use super::{
    aged::{self, Aged, Origin, aged_beside, answer_of},
    agents::{Agents, Gone},
    attending::Attending,
    beside::{has_other_users, open_place},
    error::ExecutorError,
    job::{Executor, Job, TrialEnd},
    options::LabOptions,
    preflight::{obstacle_of_room, preflight},
    record::{DEVICE, Halt, Record, blame_host, failed, outcome_of_stop, refuse_full, skipped},
    watch::Gauge,
    who::{Whom, left_out, parts, whom},
};
use crate::{
    agent::{
        protocol::{Ground, Opening, StepEnd, StepReply},
        set_up_guest,
    },
    events::Event,
    filesystem::{self, OWN_DIRECTORY, OwnPlaces, is_plain},
    machine::Machine,
    place::{
        AGED_BENEATH,
        device::{Content, Provided, Wanted, provide, settle},
        holder,
        undo::{Entry, JournalError, TREE_PREFIX, Undo, UndoError},
        work_directory::WorkDirectory,
    },
};
use fstone_engine::age::{Journal, Kept};
use fstone_files::FileIdentity;
use fstone_model::{
    Cell, Outcome, Step, StepResult, Trial,
    age::Past,
    dataset::Holder,
    outcome::Reason,
    own::OwnCommand,
    study::{DeviceSpec, KernelSpec, StepAction},
    units::{format_bytes, nanoseconds},
};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

const FORGET_LIMIT: Duration = Duration::from_secs(10);
/// A copy of an aged image that takes longer is worth a word.
const LONG_COPY: Duration = Duration::from_secs(2);

/// Carries trials out through agents: on the running kernel, or under another one in a guest. What devices and mounts need
/// is root; a directory or a guest needs nothing.
pub struct AgentExecutor<'m> {
    machine: &'m Machine,
    work: &'m WorkDirectory,
    undo: Undo<'m>,
    options: &'m LabOptions,
    cancel: &'m AtomicBool,
    trials: u64,
    /// Directories on the filesystem that is measured, so that they are not removed between trials.
    aged: Vec<Kept>,
}

impl<'m> AgentExecutor<'m> {
    /// An executor that makes its images and mount points in a work directory.
    ///
    /// # Errors
    /// When an earlier run left something behind there.
    pub fn new(
        machine: &'m Machine,
        work: &'m WorkDirectory,
        options: &'m LabOptions,
        cancel: &'m AtomicBool,
    ) -> Result<Self, JournalError> {
        let undo = Undo::begin(work.path(), &options.allow_destroy, machine)?;
        Ok(Self { machine, work, undo, options, cancel, trials: 0, aged: Vec::new() })
    }

    /// Keeps what was aged on the filesystem of a directory until the run ends. An agent has looked there, so the filesystem answers.
    fn keep_aged(&mut self, device: &DeviceSpec) {
        let DeviceSpec::Directory { path } = device else { return };
        let parent = path.as_ref().map_or_else(|| self.work.path(), Path::new);
        let noted = self.options.aged.iter().flat_map(|notes| aged_beside(notes, parent));
        let paths: Vec<_> = noted.chain([parent.join(AGED_BENEATH)]).collect();
        let kept = answer_of(move || paths.iter().filter_map(|path| Journal::keep(path)).collect());
        // Without an answer in time, what is held stays so.
        if let Some(kept) = kept {
            self.aged = kept;
        }
    }

    /// Ends it. What is left behind, in the journal, because a process hangs in it.
    pub fn close(self) -> Vec<UndoError> {
        self.undo.close()
    }
}

impl Executor for AgentExecutor<'_> {
    fn run(&mut self, job: &Job<'_>) -> Result<TrialEnd, ExecutorError> {
        let cell = aged::with_seed(job);
        let aged = Aged::of(&Job { cell: &cell, ..*job }, self.options, self.machine);
        // Nothing is made for trials that there cannot be.
        let aged = aged.filter(|_| preflight(job.cell, self.machine).is_none());
        let Some(aged) = aged else { return self.trial(job, &cell, Role::Whole) };
        let turn = aged.turn();
        let held = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut turn_of_runs = None;
        let kept = aged.open(job.sink, self.cancel).or_else(|| {
            turn_of_runs = aged.turn_of_runs(job.sink, self.cancel);
            aged.open(job.sink, self.cancel)
        });
        let origin = match kept {
            Some(kept) => kept,
            None if self.cancel.load(Ordering::Acquire) => return Ok(TrialEnd::Cancelled),
            None => {
                let mut image = None;
                let making = aged.making(job);
                let original = aged.original();
                let failed = |made: Box<Trial>, error: io::Error| {
                    let why = Reason::new(DEVICE, format!("the aged image cannot be copied: {error}"));
                    let outcome = Outcome::Failed(why);
                    Ok(TrialEnd::Finished(Box::new(Trial { id: job.id, seed: job.seed, outcome, ..*made })))
                };
                match (
                    self.trial(&making, &cell, Role::Makes(&mut image, original.as_ref().map(Option::as_ref)))?,
                    image,
                ) {
                    (TrialEnd::Finished(made), Some(Ok(image))) => {
                        match aged.keep(image, original.ok().flatten().as_ref(), &made, job.sink, self.cancel) {
                            Ok(origin) => origin,
                            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(TrialEnd::Cancelled),
                            Err(error) => return failed(made, error),
                        }
                    }
                    (TrialEnd::Finished(made), Some(Err(error))) if made.outcome == Outcome::Completed => {
                        return failed(made, error);
                    }
                    (TrialEnd::Finished(made), _) => {
                        return Ok(TrialEnd::Finished(Box::new(Trial { id: job.id, seed: job.seed, ..*made })));
                    }
                    (TrialEnd::Stuck(made, left), _) => {
                        let made = Trial { id: job.id, seed: job.seed, ..*made };
                        return Ok(TrialEnd::Stuck(Box::new(made), left));
                    }
                    (TrialEnd::Cancelled, _) => return Ok(TrialEnd::Cancelled),
                }
            }
        };
        drop((turn_of_runs, held));
        self.trial(job, &cell, Role::Copies(&origin))
    }
}

/// A trial's part in an aged filesystem.
enum Role<'a> {
    Whole,
    /// It makes the image, which is here in the end; as a copy of an old one, or why not.
    Makes(&'a mut Option<io::Result<File>>, Result<Option<&'a File>, &'a Reason>),
    Copies(&'a Origin),
}

impl AgentExecutor<'_> {
    /// The cell is the job's, with the seed of its history.
    fn trial(&mut self, job: &Job<'_>, whole: &Cell, role: Role<'_>) -> Result<TrialEnd, ExecutorError> {
        if job.cell.kernel != KernelSpec::Host && self.options.guests.is_none() {
            return Err(ExecutorError::Kernel { kernel: job.cell.kernel.written() });
        }
        let clock = Instant::now();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.machine.stop.clear();

        let part = match &role {
            Role::Whole => None,
            Role::Makes(..) => Some(aged::maker(whole)),
            Role::Copies(_) => Some(aged::rest(whole)),
        };
        let planned = job.cell;
        let job = &Job { cell: part.as_ref().unwrap_or(whole), ..*job };
        let content = match &role {
            Role::Copies(origin) => Some(origin.content(whole, self.cancel)),
            Role::Makes(_, Ok(Some(original))) => Some(aged::of_original(original, self.cancel)),
            Role::Makes(..) | Role::Whole => None,
        };
        let mut making = Making::new(self, job, clock);
        making.content = content.as_ref();
        if let Role::Copies(origin) = &role {
            making.record.effective.superblock = origin.superblock();
            making.record.warnings.extend(origin.warnings());
        }
        let same = planned.past().and_then(|past| match past {
            Past::Aged(age) => age.seed.map(|seed| format!("seed {seed}")),
            Past::Image(image) => Some(image.name().to_owned()),
        });
        let same = same.filter(|_| !matches!(planned.device, DeviceSpec::Directory { .. }));
        if let (Some(of), Role::Whole | Role::Copies(_)) = (same, &role) {
            making.record.warn(format!("age: every repeat begins with the same history, that of {of}"));
        }
        let ended = match (preflight(job.cell, making.host.machine), &role) {
            (Some(obstacle), _) => Err(Halt::Outcome(obstacle.outcome())),
            (None, Role::Makes(_, Err(reason))) => Err(Halt::Outcome(Outcome::Refused((*reason).clone()))),
            (None, _) => making.carry_out(),
        };
        let ended = making.end_agents(ended);
        let Making { mut record, mut provided, .. } = making;
        if let (Role::Copies(origin), Some(content)) = (&role, &content) {
            origin.complete(whole, content, &mut record.steps);
            if content.copied.get().is_some_and(|(by_reference, took)| !by_reference && took > LONG_COPY) {
                let cure = "by reference it takes less than a second: have both on one btrfs or XFS";
                record.warn(format!("age: each trial copies the image's data from cache to work directory; {cure}"));
            }
        }
        let duration_ns = nanoseconds(clock.elapsed());
        // From here on nobody's clock runs.
        let settling = Instant::now();
        // What the host still writes disturbs no trial in virtual time.
        let disturbs = provided.as_ref().filter(|_| !job.cell.kernel.is_exact());
        let image_directory = disturbs.and_then(Provided::image_directory).map(PathBuf::from);
        if let (false, true, Some(device)) =
            (matches!(role, Role::Whole), whole.kernel == KernelSpec::Host, provided.as_ref())
            && let Some(filesystem) = filesystem::find(&whole.filesystem.kind)
            && let Some(command) = filesystem.forget(&device.path().display().to_string())
        {
            // Without effect where it is not known, or hangs and is still mounted.
            let _ = self.machine.runner.run(&command, FORGET_LIMIT);
        }
        if let (Ok(()), Role::Makes(image, _)) = (&ended, role) {
            *image = provided.take().map(|provided| provided.into_image(self.machine));
        }
        record.warnings.extend(provided.and_then(|provided| provided.give_back(self.machine)));
        let left = self.undo.undo_all();
        record.warnings.extend(image_directory.and_then(|directory| settle(&directory)));
        let settling = settling.elapsed();

        let outcome = match ended {
            Ok(()) => Outcome::Completed,
            Err(Halt::Outcome(outcome)) => outcome,
            Err(Halt::Stopped(step)) => match outcome_of_stop(&step, self.machine.stop.reason().as_ref()) {
                Some(outcome) => outcome,
                None if left.is_empty() => return Ok(TrialEnd::Cancelled),
                None => return Err(ExecutorError::Undo(left)),
            },
            Err(Halt::Lab(error)) if left.is_empty() => return Err(error),
            Err(Halt::Lab(error)) => return Err(ExecutorError::AndUndo { error: Box::new(error), undo: left }),
        };
        // Steps in virtual time cannot be taken off a trial's real one, and what it took here is no figure of theirs.
        if !job.cell.kernel.is_exact() {
            record.add_overhead(duration_ns, settling);
        }
        let trial = Box::new(Trial {
            id: job.id,
            position: job.position,
            started_unix_ns: nanoseconds(started),
            duration_ns,
            seed: job.seed,
            outcome,
            steps: record.steps,
            effective: record.effective,
            warnings: record.warnings,
        });
        Ok(if left.is_empty() { TrialEnd::Finished(trial) } else { TrialEnd::Stuck(trial, left) })
    }
}

struct Making<'a, 'm> {
    host: &'a mut AgentExecutor<'m>,
    job: &'a Job<'a>,
    clock: Instant,
    record: Record,
    provided: Option<Provided>,
    /// What the device begins with.
    content: Option<&'a Content<'a>>,
    agents: Agents<'a>,
    /// The agent that has the filesystem mounted.
    mounted: Option<Whom>,
    /// The journal's entries of the load's directory and of a named device.
    tree: Option<u64>,
    scratch: Option<u64>,
    /// That of a filesystem of the study's own, which a command has to remove.
    own: Option<u64>,
}

impl<'a, 'm: 'a> Making<'a, 'm> {
    fn new(host: &'a mut AgentExecutor<'m>, job: &'a Job<'a>, clock: Instant) -> Self {
        let agents = Agents::new(job, host.machine, host.options, host.cancel);
        Self {
            host,
            job,
            clock,
            record: Record::default(),
            provided: None,
            content: None,
            agents,
            mounted: None,
            tree: None,
            scratch: None,
            own: None,
        }
    }

    fn carry_out(&mut self) -> Result<(), Halt> {
        let job = self.job;
        self.set_up()?;
        // What mkfs makes is no copy of an old image.
        if self.content.is_none()
            && let Some(step) = job.cell.steps.iter().find(|step| aged::is_of_an_image(step))
        {
            let words = "the image is not copied: fstone has no directory for it";
            return Err(Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words))));
        }
        if job.cell.kernel.is_exact() {
            return self.simulate();
        }
        for (index, step) in job.cell.steps.iter().enumerate() {
            if let Some(why) = left_out(job.cell, step) {
                self.record.warn(format!("{}: {why}", step.name));
                continue;
            }
            if whom(job.cell, step) == Whom::Guest {
                self.agents.boot_once(&mut self.record)?;
            }
            job.sink.event(&Event::StepStarted { step: &step.name, number: index + 1, of: job.cell.steps.len() });
            self.step(step)?;
        }
        self.host.keep_aged(&job.cell.device);
        let last = job.cell.steps.last().map_or(DEVICE, |step| step.name.as_str());
        // In a directory services end, too, and nothing is mounted.
        let serves = job.cell.steps.iter().any(|step| matches!(step.action, StepAction::Service(_)));
        let Some(whom) = self.mounted.or_else(|| serves.then_some(Whom::Host)) else { return Ok(()) };
        self.record.warnings.extend(self.agents.flush(whom, last)?);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Halt> {
        let started = self.clock.elapsed();
        let mut result = StepResult { started_ns: nanoseconds(started), ..StepResult::begun(&step.name) };
        let parts = parts(self.job.cell, step, self.mounted);
        let ended = parts.iter().try_for_each(|(whom, part)| {
            let reply = self.agents.step(*whom, part)?;
            self.write_down(&mut result, step, *whom, reply)
        });
        if result.duration_ns == 0 {
            result.duration_ns = nanoseconds(self.clock.elapsed() - started);
        }
        self.record.steps.push(result);
        ended.map_err(|halt| blame_host(step, halt, self.agents.host_error().as_deref()))
    }

    /// The whole trial as one job of a guest, whose clock its steps' times are by.
    fn simulate(&mut self) -> Result<(), Halt> {
        let job = self.job;
        let cut = job.cell.steps.iter().find(|step| matches!(step.action, StepAction::PowerCut(_)));
        let checks = cut.map_or(Ok(None), |step| self.agents.host_checks(step))?;
        let kept = &self.agents.guest_options()?.kept;
        let mut attending = Attending::new((job.cell, job.seed), kept, job.sink, checks);
        let done = self.agents.simulate(&mut self.record, &mut attending);
        let done = attending.settle(done, &mut self.record)?;
        for (step, done) in self.job.cell.steps.iter().zip(done) {
            let mut result = StepResult { started_ns: done.started_ns, ..StepResult::begun(&step.name) };
            let ended = self.write_down(&mut result, step, Whom::Guest, done.reply);
            self.record.steps.push(result);
            ended?;
        }
        Ok(())
    }

    fn write_down(&mut self, result: &mut StepResult, step: &Step, whom: Whom, reply: StepReply) -> Result<(), Halt> {
        let reply = self.take_over(reply, whom)?;
        result.duration_ns += nanoseconds(reply.duration);
        result.commands.extend(reply.commands);
        result.figures = reply.figures;
        result.load = reply.load;
        match (reply.end, whom) {
            (StepEnd::Done, _) => Ok(()),
            (StepEnd::Outcome(outcome), _) => Err(Halt::Outcome(outcome)),
            (StepEnd::Lab(words), Whom::Host) => Err(Halt::Lab(ExecutorError::Agent(words))),
            (StepEnd::Lab(words), Whom::Guest) => Err(failed(step, words)),
        }
    }

    fn take_over(&mut self, mut reply: StepReply, whom: Whom) -> Result<StepReply, Halt> {
        self.mounted = match (reply.mounted, self.mounted) {
            (true, _) => Some(whom),
            (false, Some(other)) if other == whom => None,
            (false, other) => other,
        };
        self.record.warnings.append(&mut reply.warnings);
        for beside in std::mem::take(&mut reply.beside) {
            if let Some(known) = self.record.steps.iter_mut().find(|known| known.step == beside.step) {
                let StepResult { commands, figures, load, .. } = beside;
                *known = StepResult { commands, figures, load, ..known.clone() };
            }
        }
        let effective = &mut self.record.effective;
        if effective.mount.is_none() {
            effective.mount = reply.effective.mount.take();
        }
        if effective.superblock.is_empty() {
            effective.superblock = std::mem::take(&mut reply.effective.superblock);
        }
        // What a guest says leads to no disk of this machine.
        let uuid = reply.uuid.as_ref().filter(|_| whom == Whom::Host);
        if let (Some(entry), Some(uuid), Some(provided)) = (self.scratch, uuid, &self.provided) {
            let (path, device) = provided.named();
            let known = Entry::Scratch { path: path.to_owned(), device, uuid: Some(uuid.clone()) };
            self.scratch = Some(self.host.undo.replace(entry, known)?);
        }
        Ok(reply)
    }

    fn set_up(&mut self) -> Result<(), Halt> {
        let job = self.job;
        let place = match open_place().filter(|_| has_other_users(job.cell)) {
            Some(place) => place,
            None => self
                .host
                .work
                .mount_point()
                .map_err(|cause| ExecutorError::Work { path: self.host.work.path().to_owned(), cause })?,
        };
        let ground = match &job.cell.device {
            DeviceSpec::Directory { path } => {
                let parent = path.as_ref().map_or_else(|| self.host.work.path().to_owned(), PathBuf::from);
                let (parent, name) = self.announce_tree(parent)?;
                Ground::Directory { parent, name, notes: self.host.options.aged.clone() }
            }
            device if job.cell.filesystem.own.is_some() => self.own_ground(device, place)?,
            device => {
                let kind = &job.cell.filesystem.kind;
                let Some(filesystem) = filesystem::find(kind) else {
                    return Err(skipped(DEVICE, format!("fstone has no adapter for {kind}")));
                };
                self.look_at_space()?;
                if job.cell.kernel == KernelSpec::Host {
                    let provided = self.provide(device, filesystem.facts().minimum_bytes);
                    self.unless_cancelled(provided)?;
                } else {
                    let options = self.agents.guest_options()?;
                    if matches!(device, DeviceSpec::Loop { direct_io: true, .. }) {
                        let words = "direct-io: a guest's image is always written through the host's page cache";
                        self.record.warn(words.to_owned());
                    }
                    let work = self.host.work.path();
                    let seated = set_up_guest(job.cell, options, work, self.content, &mut self.host.undo);
                    let (guest, provided) = self.unless_cancelled(seated)?;
                    self.provided = Some(provided);
                    self.agents.seat(guest);
                }
                let provided = self.provided.as_ref().expect("just provided");
                Ground::Device { path: provided.path().to_owned(), purpose: provided.purpose().clone(), place }
            }
        };
        if job.cell.kernel.is_exact() {
            // What the host does takes the host's time.
            return Ok(());
        }
        self.agents.start_host()?;
        let opening = Opening {
            ground,
            filesystem: job.cell.filesystem.clone(),
            mounts: job.cell.kernel == KernelSpec::Host && self.tree.is_none(),
            // The journal has them.
            queue: Vec::new(),
            seed: job.seed,
            time_disk: false,
            measure_null: self.host.options.measure_null,
            promises: false,
            work: Some(self.host.work.path().to_owned()),
        };
        let opened = self.agents.open(Whom::Host, DEVICE, &opening)?;
        self.host.keep_aged(&job.cell.device);
        if let (Some(entry), Some((path, id))) = (self.tree, opened.tree) {
            let of_own = path.clone();
            self.tree = Some(self.host.undo.replace(entry, Entry::Tree { path, id: Some(id), hung: None })?);
            self.announce_own(of_own, id)?;
        }
        Ok(())
    }

    /// What was not copied because the run ends has not failed.
    fn unless_cancelled<T>(&self, ended: Result<T, Halt>) -> Result<T, Halt> {
        let is_cancelled = self.content.is_some() && self.host.cancel.load(Ordering::Acquire);
        ended.map_err(|halt| if is_cancelled { Halt::Stopped(DEVICE.to_owned()) } else { halt })
    }

    fn provide(&mut self, device: &DeviceSpec, needed_bytes: u64) -> Result<(), Halt> {
        let wanted = Wanted {
            spec: device,
            queue: &self.job.cell.queue,
            work_directory: self.host.work.path(),
            allow_destroy: &self.host.options.allow_destroy,
            needed_bytes,
            direct: self.job.direct,
            content: self.content,
        };
        let provided = provide(&wanted, &mut self.host.undo, self.host.machine)?;
        self.record.warnings.extend(provided.warning());
        self.provided = Some(provided);
        self.scratch = self.host.undo.scratch_entry();
        Ok(())
    }

    fn announce_tree(&mut self, parent: PathBuf) -> Result<(PathBuf, String), Halt> {
        // What an earlier trial hangs in may still be there.
        self.host.trials += 1;
        // Nodes of a cluster may have the same process numbers, and the same directory.
        let name = format!("{TREE_PREFIX}{}-{}-{}", holder::mark(), std::process::id(), self.host.trials);
        // Made absolute without a look at it: it may be on a filesystem that never answers.
        let parent = std::path::absolute(&parent).unwrap_or(parent);
        self.tree = Some(self.host.undo.record(Entry::Tree { path: parent.join(&name), id: None, hung: None })?);
        Ok((parent, name))
    }

    fn own_ground(&mut self, device: &DeviceSpec, place: PathBuf) -> Result<Ground, Halt> {
        let parent = match device {
            DeviceSpec::Scratch { directory: Some(directory) } => PathBuf::from(directory),
            _ => self.host.work.path().to_owned(),
        };
        if let Some(path) = [&parent, &place].into_iter().find(|path| !is_plain(path)) {
            let words = format!("{}: a shell would split or change this path", path.display());
            let cure = "name a directory of letters, digits and ._-+@%=, with --work-directory or `device`";
            return Err(Halt::Outcome(Outcome::Skipped(Reason::new(DEVICE, words).with_cure(cure))));
        }
        let (parent, name) = self.announce_tree(parent)?;
        if matches!(device, DeviceSpec::Scratch { .. }) {
            return Ok(Ground::Own { device: None, parent, name, place });
        }
        self.look_at_space()?;
        self.provide(device, 0)?;
        let device = self.provided.as_ref().map(|it| (it.path().to_owned(), it.purpose().clone()));
        Ok(Ground::Own { device, parent, name, place })
    }

    fn announce_own(&mut self, trial: PathBuf, id: FileIdentity) -> Result<(), Halt> {
        let filesystem = &self.job.cell.filesystem;
        let Some(definition) = filesystem.own.as_deref() else { return Ok(()) };
        let directory = trial.join(OWN_DIRECTORY);
        let places = OwnPlaces { definition, directory: &directory, mounts: &[] };
        if let Some(command) = places.command(OwnCommand::Remove, "", 0) {
            let entry =
                Entry::Own { filesystem: filesystem.kind.clone(), remove: command.argv(), trial, id, hung: None };
            self.own = Some(self.host.undo.record(entry)?);
        }
        Ok(())
    }

    /// Room is looked at ahead, against what the image may grow to, and during every step by the watch.
    fn look_at_space(&mut self) -> Result<(), Halt> {
        // An image in memory is made only where all of it has room.
        let DeviceSpec::Loop { size_bytes, directory, in_memory: false, .. } = &self.job.cell.device else {
            return Ok(());
        };
        let directory = directory.as_ref().map_or_else(|| self.host.work.path().to_owned(), PathBuf::from);
        let devices = &self.host.machine.devices;
        let space =
            devices.space(&directory).map_err(|cause| ExecutorError::Work { path: directory.clone(), cause })?;
        refuse_full(&directory, space)?;
        if let Some(obstacle) = obstacle_of_room(self.job.cell, self.host.work.path(), &**devices) {
            return Err(Halt::Outcome(obstacle.outcome()));
        }
        if *size_bytes > space.free_bytes - space.reserve_bytes() {
            self.record.warn(format!(
                "the image may grow to {}, but {} has only {} free; a trial that needs more is stopped",
                format_bytes(*size_bytes),
                directory.display(),
                format_bytes(space.free_bytes)
            ));
        }
        self.agents.watch_space(Gauge::of(directory, Arc::clone(devices)));
        Ok(())
    }

    fn end_agents(&mut self, ended: Result<(), Halt>) -> Result<(), Halt> {
        let ended = self.agents.end_guest(ended, &mut self.record);
        let machine = self.host.machine;
        let hung = matches!(&ended, Err(Halt::Outcome(Outcome::Hung(_))));
        if let (true, Some(provided)) = (machine.stop.is_requested() && !self.an_error_would_panic(), &self.provided) {
            provided.give_up(machine);
        }
        let gone = self.agents.end_host(hung);
        self.record.warnings.append(&mut self.agents.said);
        if let Gone::Away { orderly: true } | Gone::Hanging { orderly: true, .. } = gone {
            // The directory of a filesystem of the study's own is removed when nothing is mounted in it any more.
            let done = if self.job.cell.filesystem.own.is_some() { self.own.take() } else { self.tree.take() };
            if let Some(entry) = done {
                self.host.undo.forget(entry);
            }
        }
        if let Gone::Hanging { process, .. } = gone {
            self.abandon(&process);
        }
        ended
    }

    /// Giving up an image makes for I/O errors, which must not be such as panic the kernel.
    fn an_error_would_panic(&self) -> bool {
        let filesystem = &self.job.cell.filesystem;
        filesystem.mount.contains("panic") || filesystem.mkfs.iter().any(|word| word.contains("panic"))
    }

    /// What hangs in the kernel keeps what it holds, and nobody may wait for it.
    fn abandon(&mut self, process: &Holder) {
        // The loop device goes by itself with its last user.
        if let Some(provided) = self.provided.take() {
            let path = provided.path().display();
            self.record.warn(format!(
                "it still hangs in the kernel, with everything it had ({path}); the kernel releases that when it ends"
            ));
        }
        // A directory does not.
        for entry in [self.own.take(), self.tree.take()].into_iter().flatten() {
            if let Some(left) = self.host.undo.leave_to(entry, process.clone()) {
                self.record.warn(format!("left behind: {left}"));
            }
        }
    }
}
