//! The lab's side of a trial: provides the device, starts agents, has them do one step after the other, and writes down
//! what they say. It touches neither the device nor what is mounted: that an agent can be abandoned with all it waits for.

use super::{
    Executor, ExecutorError, Job, LabOptions, TrialEnd, preflight,
    record::{DEVICE, Halt, Record, blame_host, nanoseconds, outcome_of_stop, skipped},
    refuse_full,
    watch::{Gauge, Watch},
};
use crate::{
    agent::{
        BOOT, BOOT_LIMIT, GuestSeat, Link, is_for_guest,
        protocol::{Answer, FLUSH, Ground, LEAVE, OPEN, Opened, Opening, STEP, StepEnd, StepReply, decode, encode},
        with_exact_counts,
    },
    events::Event,
    filesystem,
    machine::Machine,
    place::{
        device::{Provided, Wanted, provide},
        undo::{Entry, JournalError, TREE_PREFIX, Undo, UndoError},
        work_directory::WorkDirectory,
    },
    stop::StopReason,
};
use fstone_model::{
    Outcome, Step, StepResult, Trial,
    outcome::Reason,
    study::{DeviceSpec, KernelSpec, StepAction},
    units::{format_bytes, format_duration},
};
use fstone_sandbox::{child::ChildSpec, guest::JobEnd};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How often that patience an agent may take to look at its device, and to load a filesystem's modules.
const OPENING: u32 = 4;
/// How long a killed agent's mounts and processes may take to be gone, for the kernel may have to write first.
const DYING: Duration = Duration::from_secs(120);

/// Carries trials out through agents: on the running kernel, or under another one in a guest. What devices and mounts need
/// is root; a directory or a guest needs nothing.
pub struct AgentExecutor<'m> {
    pub(crate) machine: &'m Machine,
    pub(crate) work: &'m WorkDirectory,
    pub(crate) undo: Undo<'m>,
    pub(crate) options: &'m LabOptions,
    pub(crate) cancel: &'m AtomicBool,
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
        let undo = Undo::begin(work.path(), machine)?;
        Ok(Self { machine, work, undo, options, cancel })
    }

    /// Ends it. Whatever could not be undone stays in the journal.
    pub fn close(self) -> Vec<UndoError> {
        self.undo.close()
    }
}

impl Executor for AgentExecutor<'_> {
    fn run(&mut self, job: &Job<'_>) -> Result<TrialEnd, ExecutorError> {
        if job.cell.kernel != KernelSpec::Host && self.options.guests.is_none() {
            return Err(ExecutorError::Kernel { kernel: job.cell.kernel.written() });
        }
        let clock = Instant::now();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.machine.stop.clear();

        let mut making = Making::new(self, job, clock);
        let ended = match preflight(job.cell, making.host.machine) {
            Some(obstacle) => Err(Halt::Outcome(obstacle.outcome())),
            None => making.carry_out(),
        };
        let ended = making.end_agents(ended);
        let Making { mut record, provided, .. } = making;
        let duration_ns = nanoseconds(clock.elapsed());
        // From here on nobody's clock runs.
        let settling = Instant::now();
        if let Some(warning) = provided.and_then(|provided| provided.give_back(self.machine, self.work.path())) {
            record.warn(warning);
        }
        let left = self.undo.undo_all();
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
        if !matches!(job.cell.kernel, KernelSpec::Exact(_)) {
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

/// Which of a trial's agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whom {
    /// The one on this machine's kernel. There always is one.
    Host,
    /// The one in the guest.
    Guest,
}

/// A trial in the making.
pub(crate) struct Making<'a, 'm> {
    pub(crate) host: &'a mut AgentExecutor<'m>,
    pub(crate) job: &'a Job<'a>,
    clock: Instant,
    pub(crate) record: Record,
    pub(crate) provided: Option<Provided>,
    link: Option<Link>,
    /// The guest that takes the running kernel's place.
    pub(crate) guest: Option<GuestSeat>,
    /// The agent that has the filesystem mounted.
    mounted: Option<Whom>,
    /// The journal's entries of the load's directory and of a named device.
    tree: Option<u64>,
    scratch: Option<u64>,
    pub(crate) gauge: Option<Gauge>,
    /// Whether an agent was given up that could not write, in time, what a finished trial had left in memory.
    pub(crate) given_up: bool,
}

impl<'a, 'm> Making<'a, 'm> {
    fn new(host: &'a mut AgentExecutor<'m>, job: &'a Job<'a>, clock: Instant) -> Self {
        Self {
            host,
            job,
            clock,
            record: Record::default(),
            provided: None,
            link: None,
            guest: None,
            mounted: None,
            tree: None,
            scratch: None,
            gauge: None,
            given_up: false,
        }
    }

    /// One sequence, wherever the agents are: device, steps, what is still in memory written.
    fn carry_out(&mut self) -> Result<(), Halt> {
        let job = self.job;
        self.set_up()?;
        if matches!(job.cell.kernel, KernelSpec::Exact(_)) {
            return self.simulate();
        }
        let in_directory = matches!(job.cell.device, DeviceSpec::Directory { .. });
        for (index, step) in job.cell.steps.iter().enumerate() {
            if in_directory && !step.action.works_in_a_directory() {
                let name = &step.name;
                self.record.warn(format!("{name}: left out: a directory is not fstone's to make, mount or check"));
                continue;
            }
            let whom = self.whom(step);
            if whom == Whom::Guest {
                self.boot_once()?;
            }
            job.sink.event(&Event::StepStarted { step: &step.name, number: index + 1, of: job.cell.steps.len() });
            self.step(step, whom)?;
        }
        let last = job.cell.steps.last().map_or(DEVICE, |step| step.name.as_str());
        self.finish(last)
    }

    /// Has a step done, and writes it down however it goes.
    fn step(&mut self, step: &Step, whom: Whom) -> Result<(), Halt> {
        let started = Instant::now();
        let mut result = StepResult {
            step: step.name.clone(),
            started_ns: nanoseconds(self.clock.elapsed()),
            duration_ns: 0,
            commands: Vec::new(),
            figures: Vec::new(),
            load: None,
        };
        // What the guest has mounted, the host must not check.
        let unmounted = match (self.mounted, whom, &step.action) {
            (Some(Whom::Guest), Whom::Host, StepAction::Fsck { .. }) => {
                let unmount = Step { action: StepAction::Unmount, ..step.clone() };
                self.ask_step(&unmount, Whom::Guest).and_then(|reply| {
                    result.commands = reply.commands;
                    self.verdict(step, Whom::Guest, reply.end)
                })
            }
            _ => Ok(()),
        };
        let reply = unmounted.and_then(|()| self.ask_step(step, whom));
        let ended = reply.and_then(|reply| {
            result.duration_ns = nanoseconds(reply.duration);
            result.commands.extend(reply.commands);
            result.figures = match self.guest.as_ref().filter(|_| whom == Whom::Guest).and_then(GuestSeat::disk) {
                Some(disk) => with_exact_counts(reply.figures, reply.load.as_deref(), &|number| disk.mark(number)),
                None => reply.figures,
            };
            result.load = reply.load;
            self.verdict(step, whom, reply.end)
        });
        if result.duration_ns == 0 {
            result.duration_ns = nanoseconds(started.elapsed());
        }
        self.record.steps.push(result);
        let disk = self.guest.as_ref().and_then(GuestSeat::disk);
        let host_error = disk.and_then(|disk| disk.counters().host_error);
        ended.map_err(|halt| blame_host(step, halt, host_error.as_deref()))
    }

    pub(crate) fn verdict(&self, step: &Step, whom: Whom, end: StepEnd) -> Result<(), Halt> {
        match (end, whom) {
            (StepEnd::Done, _) => Ok(()),
            (StepEnd::Outcome(outcome), _) => Err(Halt::Outcome(outcome)),
            (StepEnd::Lab(words), Whom::Host) => Err(Halt::Lab(ExecutorError::Agent(words))),
            (StepEnd::Lab(words), Whom::Guest) => Err(super::record::failed(step, words)),
        }
    }

    /// Asks for a step and takes over what is known after it.
    fn ask_step(&mut self, step: &Step, whom: Whom) -> Result<StepReply, Halt> {
        if let (Whom::Guest, Some(seat)) = (whom, &self.guest) {
            seat.can_do(step)?;
        }
        let grace = if whom == Whom::Host { self.host.options.patience } else { Duration::ZERO };
        let body = self.ask(whom, &step.name, STEP, &encode(step), step.limit + grace)?;
        let reply = decode(&body).map_err(|words| super::record::failed(step, words))?;
        self.take_over(reply, whom)
    }

    /// What is known after a step.
    pub(crate) fn take_over(&mut self, mut reply: StepReply, whom: Whom) -> Result<StepReply, Halt> {
        self.mounted = match (reply.mounted, self.mounted) {
            (true, _) => Some(whom),
            (false, Some(other)) if other == whom => None,
            (false, other) => other,
        };
        self.record.warnings.append(&mut reply.warnings);
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

    /// Has an agent do a job, and watches over it.
    pub(crate) fn ask(
        &mut self,
        whom: Whom,
        step: &str,
        kind: &str,
        body: &[u8],
        limit: Duration,
    ) -> Result<Vec<u8>, Halt> {
        let machine = self.host.machine;
        let link = match whom {
            Whom::Host => self.link.as_mut(),
            Whom::Guest => self.guest.as_mut().and_then(GuestSeat::link),
        };
        let Some(link) = link else { return Err(Halt::Lab(ExecutorError::Agent("it is not running".into()))) };
        let watch =
            Watch { stop: &machine.stop, cancel: Some(self.host.cancel), limit: None, gauge: self.gauge.as_ref() };
        let sink = self.job.sink;
        let stop = machine.stop.flag();
        let end = watch.over(|| link.ask(kind, body, limit, stop, &mut |progress| sink.event(&Event::Load(progress))));
        if machine.stop.is_requested() {
            return Err(Halt::Stopped(step.to_owned()));
        }
        match end {
            JobEnd::Done(body) => Ok(body),
            JobEnd::Failed(words) => Err(Halt::Outcome(Outcome::Failed(Reason::new(step, words)))),
            JobEnd::GuestEnded(ending) => Err(Halt::Outcome(ending.outcome(step))),
            JobEnd::Stopped => Err(Halt::Stopped(step.to_owned())),
        }
    }

    /// Which agent makes a step.
    fn whom(&self, step: &Step) -> Whom {
        match self.guest.is_some() && is_for_guest(self.job.cell, step) {
            true => Whom::Guest,
            false => Whom::Host,
        }
    }

    /// The device, and the agent of this machine, who looks at it in its turn.
    fn set_up(&mut self) -> Result<(), Halt> {
        let job = self.job;
        let place = self
            .host
            .work
            .mount_point()
            .map_err(|cause| ExecutorError::Work { path: self.host.work.path().to_owned(), cause })?;
        let ground = match &job.cell.device {
            DeviceSpec::Directory { path } => {
                let parent = path.as_ref().map_or_else(|| self.host.work.path().to_owned(), PathBuf::from);
                let name = format!("{TREE_PREFIX}{}", std::process::id());
                // Made absolute without a look at it: it may be on a filesystem that never answers.
                let parent = std::path::absolute(&parent).unwrap_or(parent);
                self.tree = Some(self.host.undo.record(Entry::Tree { path: parent.join(&name), id: None })?);
                Ground::Directory { parent, name }
            }
            device => {
                let kind = &job.cell.filesystem.kind;
                let Some(filesystem) = filesystem::find(kind) else {
                    return Err(skipped(DEVICE, format!("fstone has no adapter for {kind}")));
                };
                self.look_at_space()?;
                if job.cell.kernel == KernelSpec::Host {
                    let wanted = Wanted {
                        spec: device,
                        queue: &job.cell.queue,
                        work_directory: self.host.work.path(),
                        allow_destroy: &self.host.options.allow_destroy,
                        needed_bytes: filesystem.minimum_bytes(),
                        direct: job.direct,
                    };
                    let provided = provide(&wanted, &mut self.host.undo, self.host.machine)?;
                    self.record.warnings.extend(provided.warning());
                    self.provided = Some(provided);
                    self.scratch = self.host.undo.scratch_entry();
                } else {
                    self.set_up_guest()?;
                }
                let provided = self.provided.as_ref().expect("just provided");
                Ground::Device { path: provided.path().to_owned(), purpose: provided.purpose().clone(), place }
            }
        };
        if matches!(job.cell.kernel, KernelSpec::Exact(_)) {
            // What the host does takes the host's time.
            return Ok(());
        }
        self.link = Some(self.start_agent()?);
        let opening = Opening {
            ground,
            filesystem: job.cell.filesystem.clone(),
            mounts: self.guest.is_none() && self.tree.is_none(),
            // The journal has them.
            queue: Vec::new(),
            seed: job.seed,
            time_disk: false,
            measure_null: self.host.options.measure_null,
        };
        let opened = self.open(Whom::Host, DEVICE, &opening)?;
        if let (Some(entry), Some((path, id))) = (self.tree, opened.tree) {
            self.tree = Some(self.host.undo.replace(entry, Entry::Tree { path, id: Some(id) })?);
        }
        Ok(())
    }

    /// Tells an agent what its trial is about.
    pub(crate) fn open(&mut self, whom: Whom, step: &str, opening: &Opening) -> Result<Opened, Halt> {
        let body = self.ask(whom, step, OPEN, &encode(opening), self.host.options.patience * OPENING)?;
        match decode(&body) {
            Ok(Answer::Ready(opened)) => Ok(opened),
            Ok(Answer::Not(outcome)) => Err(Halt::Outcome(outcome)),
            Ok(Answer::Lab(words)) => Err(Halt::Lab(ExecutorError::Agent(words))),
            Err(words) => Err(Halt::Outcome(Outcome::Failed(Reason::new(step, words)))),
        }
    }

    fn start_agent(&self) -> Result<Link, Halt> {
        if !self.host.machine.apart {
            return Ok(Link::here(self.host.machine));
        }
        let started = ChildSpec::new(&self.host.options.agent).start();
        let guest = started.map_err(|error| ExecutorError::Agent(format!("failed to start it: {error}")))?;
        Ok(Link::Channel(Box::new(guest)))
    }

    /// Room is looked at ahead, against what the image may grow to, and during every step by the watch.
    fn look_at_space(&mut self) -> Result<(), Halt> {
        let DeviceSpec::Loop { size_bytes, directory, .. } = &self.job.cell.device else { return Ok(()) };
        let directory = directory.as_ref().map_or_else(|| self.host.work.path().to_owned(), PathBuf::from);
        let devices = &self.host.machine.devices;
        let space =
            devices.space(&directory).map_err(|cause| ExecutorError::Work { path: directory.clone(), cause })?;
        refuse_full(&directory, space)?;
        if *size_bytes > space.free_bytes - space.reserve_bytes() {
            self.record.warn(format!(
                "the image may grow to {}, but {} has only {} free; a trial that needs more is stopped",
                format_bytes(*size_bytes),
                directory.display(),
                format_bytes(space.free_bytes)
            ));
        }
        self.gauge = Some(Gauge::of(directory, Arc::clone(devices)));
        Ok(())
    }

    /// What a finished trial wrote is made durable, or what kept it from that is told. Taking long is no failing of a
    /// trial that is over.
    fn finish(&mut self, last: &str) -> Result<(), Halt> {
        self.gauge = None;
        if let Some(whom) = self.mounted {
            match self.ask(whom, last, FLUSH, &encode(&last), self.host.options.closing_limit) {
                Ok(body) => {
                    if let Ok(StepEnd::Outcome(outcome)) = decode(&body) {
                        return Err(Halt::Outcome(outcome));
                    }
                }
                Err(Halt::Outcome(Outcome::Hung(_))) => {
                    self.given_up = true;
                    let limit = format_duration(self.host.options.closing_limit);
                    self.record.warn(format!("what it wrote was not durable {limit} after its end; it was given up"));
                }
                Err(halt) => return Err(halt),
            }
        }
        Ok(())
    }

    /// Lets the agents go, and adds what is only known then. Whatever they still have, the kernel takes back.
    fn end_agents(&mut self, ended: Result<(), Halt>) -> Result<(), Halt> {
        self.gauge = None;
        let ended = self.end_guest(ended);
        let machine = self.host.machine;
        let Some(mut link) = self.link.take() else { return ended };
        let hung = self.given_up || matches!(&ended, Err(Halt::Outcome(Outcome::Hung(_))));
        let stopped = machine.stop.is_requested();
        if let (true, Some(provided)) = (stopped && !self.an_error_would_panic(), &self.provided) {
            provided.give_up(machine);
        }
        // One that has ended already answers at once.
        let orderly = !stopped && {
            let stop = AtomicBool::new(false);
            matches!(link.ask(LEAVE, &[], self.host.options.closing_limit, &stop, &mut |_| ()), JobEnd::Done(_))
        };
        if orderly {
            if let Some(tree) = self.tree.take() {
                self.host.undo.forget(tree);
            }
            link.dismiss();
        } else {
            link.kill();
        }
        if !link.is_gone_within(if hung { Duration::ZERO } else { DYING }) {
            self.abandon();
        }
        ended
    }

    /// Giving up an image makes for I/O errors, which must not be such as panic the kernel.
    fn an_error_would_panic(&self) -> bool {
        let filesystem = &self.job.cell.filesystem;
        filesystem.mount.contains("panic") || filesystem.mkfs.iter().any(|word| word.contains("panic"))
    }

    /// What hangs in the kernel keeps what it holds, and nobody may wait for it.
    fn abandon(&mut self) {
        let mut kept: Vec<String> =
            self.provided.iter().map(|provided| provided.path().display().to_string()).collect();
        if let Some(entry) = self.tree.take() {
            kept.extend(self.host.undo.path_of(entry).map(|path| path.display().to_string()));
            self.host.undo.forget(entry);
        }
        self.record.warn(format!(
            "it hangs in the kernel still, with all it had ({}); the kernel takes that back when it ends",
            kept.join(", ")
        ));
        // The loop device goes by itself with its last user.
        self.provided = None;
    }

    /// Starts the guest when the first step needs it.
    fn boot_once(&mut self) -> Result<(), Halt> {
        if self.guest.as_ref().is_some_and(GuestSeat::is_up) {
            return Ok(());
        }
        let machine = self.host.machine;
        let watch = Watch { stop: &machine.stop, cancel: Some(self.host.cancel), limit: Some(BOOT_LIMIT), gauge: None };
        let ended = watch.over(|| self.boot());
        if machine.stop.is_requested() { Err(Halt::Stopped(BOOT.to_owned())) } else { ended }
    }

    pub(crate) fn is_stopped_by_limit(&self) -> bool {
        matches!(self.host.machine.stop.reason(), Some(StopReason::Limit(_)))
    }
}
