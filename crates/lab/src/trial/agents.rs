//! A trial's agents: started, asked, watched over, and let go. They alone touch the device and what is mounted.

use super::{
    error::ExecutorError,
    job::Job,
    options::LabOptions,
    record::{Halt, Record, failed},
    watch::{Gauge, Watch},
    who::Whom,
};
use crate::{
    agent::{
        BOOT, GuestOptions, GuestSeat, Link, count_exactly,
        protocol::{Answer, DoneStep, FLUSH, LEAVE, OPEN, Opened, Opening, STEP, StepEnd, StepReply, decode, encode},
        simulate,
    },
    events::Event,
    machine::Machine,
    place::holder,
    stop::StopReason,
};
use fstone_model::{Outcome, Step, dataset::Holder, outcome::Reason, study::StepAction, units::format_duration};
use fstone_sandbox::{child::ChildSpec, exact::Attendant, guest::JobEnd};
use std::{sync::atomic::AtomicBool, time::Duration};

/// How long a boot may take in all; the guest's own watch ends earlier.
const BOOT_LIMIT: Duration = Duration::from_secs(600);
/// How often that patience an agent may take to look at its device, and to load a filesystem's modules.
const OPENING: u32 = 4;
/// How long a killed agent's mounts and processes may take to disappear: the kernel may have to write first.
const DYING: Duration = Duration::from_secs(120);

pub(super) struct Agents<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) machine: &'a Machine,
    options: &'a LabOptions,
    cancel: &'a AtomicBool,
    host: Option<Link>,
    /// The guest that takes the running kernel's place.
    pub(super) guest: Option<GuestSeat>,
    gauge: Option<Gauge>,
    /// Whether one was given up that could not write, in time, what a finished trial had left in memory.
    given_up: bool,
    pub(super) said: Vec<String>,
}

impl<'a> Agents<'a> {
    pub(super) const fn new(
        job: &'a Job<'a>,
        machine: &'a Machine,
        options: &'a LabOptions,
        cancel: &'a AtomicBool,
    ) -> Self {
        Self { job, machine, options, cancel, host: None, guest: None, gauge: None, given_up: false, said: Vec::new() }
    }

    pub(super) fn watch_space(&mut self, gauge: Gauge) {
        self.gauge = Some(gauge);
    }

    pub(super) fn seat(&mut self, guest: GuestSeat) {
        self.guest = Some(guest);
    }

    pub(super) fn start_host(&mut self) -> Result<(), Halt> {
        #[cfg(any(test, feature = "fakes"))]
        if !self.machine.apart {
            self.host = Some(Link::Here(Box::new(crate::agent::Here::new(self.machine))));
            return Ok(());
        }
        // The commands of a study's own filesystem may use the device mapper.
        let ipc_apart = self.job.cell.filesystem.own.is_none();
        let started = ChildSpec { ipc_apart, ..ChildSpec::new(&self.options.agent) }.start();
        let agent = started.map_err(|error| ExecutorError::Agent(format!("failed to start it: {error}")))?;
        self.host = Some(Link::Channel(Box::new(agent)));
        Ok(())
    }

    pub(super) fn guest_options(&self) -> Result<&'a GuestOptions, Halt> {
        let kernel = || ExecutorError::Kernel { kernel: self.job.cell.kernel.written() };
        Ok(self.options.guests.as_ref().ok_or_else(kernel)?)
    }

    pub(super) fn boot_once(&mut self, record: &mut Record) -> Result<(), Halt> {
        if self.guest.as_ref().is_some_and(GuestSeat::is_up) {
            return Ok(());
        }
        let machine = self.machine;
        let watch = Watch { stop: &machine.stop, cancel: Some(self.cancel), limit: Some(BOOT_LIMIT), gauge: None };
        let ended = watch.over(|| self.boot(record));
        if machine.stop.is_requested() { Err(Halt::Stopped(BOOT.to_owned())) } else { ended }
    }

    fn boot(&mut self, record: &mut Record) -> Result<(), Halt> {
        let (cell, options) = (self.job.cell, self.guest_options()?);
        let Some(seat) = &mut self.guest else { return Err(not_running()) };
        seat.boot(cell, options, &*self.machine.runner)?;
        record.warnings.extend(seat.not_enforced());
        if !options.speed.is_unlimited() {
            record.warn(format!("the disk was slowed down to {}", options.speed));
        }
        let opening = seat.opening(cell, self.job.seed, options, self.options.measure_null);
        let opened = self.open(Whom::Guest, BOOT, &opening).map_err(|halt| match halt {
            // What a guest cannot do is a result, whoever is to blame.
            Halt::Lab(error) => Halt::Outcome(Outcome::Failed(Reason::new(BOOT, error.to_string()))),
            halt => halt,
        })?;
        let settled = self.guest.as_ref().and_then(|seat| seat.settle(&options.speed, opened.time_of_a_read));
        record.warnings.extend(settled);
        Ok(())
    }

    pub(super) fn open(&mut self, whom: Whom, step: &str, opening: &Opening) -> Result<Opened, Halt> {
        let body = self.ask(whom, step, OPEN, &encode(opening), self.options.patience * OPENING)?;
        match decode(&body) {
            Ok(Answer::Ready(opened)) => Ok(opened),
            Ok(Answer::Not(outcome)) => Err(Halt::Outcome(outcome)),
            Ok(Answer::Lab(words)) => Err(Halt::Lab(ExecutorError::Agent(words))),
            Err(words) => Err(Halt::Outcome(Outcome::Failed(Reason::new(step, words)))),
        }
    }

    pub(super) fn step(&mut self, whom: Whom, step: &Step) -> Result<StepReply, Halt> {
        if let (Whom::Guest, Some(seat)) = (whom, &self.guest) {
            seat.can_do(step)?;
        }
        if let (Whom::Guest, StepAction::PowerCut(cut)) = (whom, &step.action) {
            return match self.job.explorer {
                Some(explorer) => self.explore(step, *cut, explorer),
                None => self.cut_power(step, *cut),
            };
        }
        let grace = if whom == Whom::Host { self.options.patience } else { Duration::ZERO };
        let body = self.ask(whom, &step.name, STEP, &encode(step), step.limit + grace)?;
        let mut reply: StepReply = decode(&body).map_err(|words| failed(step, words))?;
        if let (Whom::Guest, Some(seat)) = (whom, self.guest.as_mut()) {
            seat.note(step, &reply);
        }
        let disk = self.guest.as_ref().filter(|_| whom == Whom::Guest).and_then(GuestSeat::disk);
        count_exactly(&mut reply, &|number| disk?.mark(number));
        Ok(reply)
    }

    pub(super) fn simulate(
        &mut self,
        record: &mut Record,
        attendant: &mut dyn Attendant,
    ) -> Result<Vec<DoneStep>, Halt> {
        let (job, options, stop) = (self.job, self.guest_options()?, &*self.machine.stop);
        let watch = Watch { stop, cancel: Some(self.cancel), limit: None, gauge: self.gauge.as_ref() };
        let Some(seat) = &mut self.guest else { return Err(not_running()) };
        if let (Some(_), Some(step)) = (job.explorer, job.cell.steps.last()) {
            let words = "sequences of calls are tried in user-mode Linux or QEMU, and not in virtual time";
            return Err(Halt::Outcome(Outcome::Refused(Reason::new(&step.name, words))));
        }
        simulate(seat, job, options, (&watch, stop), record, attendant)
    }

    /// Has what was written made durable, or tells what kept it from that. Taking long is no failing of a trial that is
    /// over, but a warning.
    pub(super) fn flush(&mut self, whom: Whom, last: &str) -> Result<Option<String>, Halt> {
        self.gauge = None;
        match self.ask(whom, last, FLUSH, &encode(&last), self.options.closing_limit) {
            Ok(body) => match decode(&body) {
                Ok(StepEnd::Outcome(outcome)) => Err(Halt::Outcome(outcome)),
                _ => Ok(None),
            },
            Err(Halt::Outcome(Outcome::Hung(_))) => {
                self.given_up = true;
                let limit = format_duration(self.options.closing_limit);
                Ok(Some(format!("what it wrote was not durable {limit} after its end; fstone stopped waiting")))
            }
            Err(halt) => Err(halt),
        }
    }

    pub(super) fn ask(
        &mut self,
        whom: Whom,
        step: &str,
        kind: &str,
        body: &[u8],
        limit: Duration,
    ) -> Result<Vec<u8>, Halt> {
        let machine = self.machine;
        let link = match whom {
            Whom::Host => self.host.as_mut(),
            Whom::Guest => self.guest.as_mut().and_then(GuestSeat::link),
        };
        let Some(link) = link else { return Err(not_running()) };
        let watch = Watch { stop: &machine.stop, cancel: Some(self.cancel), limit: None, gauge: self.gauge.as_ref() };
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

    pub(super) fn host_error(&self) -> Option<String> {
        self.guest.as_ref().and_then(GuestSeat::disk).and_then(|disk| disk.counters().host_error)
    }

    pub(super) fn end_guest(&mut self, ended: Result<(), Halt>, record: &mut Record) -> Result<(), Halt> {
        self.gauge = None;
        let (Some(seat), Some(options)) = (self.guest.take(), &self.options.guests) else { return ended };
        let stop = &self.machine.stop;
        let limit_was_up = matches!(stop.reason(), Some(StopReason::Limit(_)));
        seat.end(ended, stop.is_requested(), self.given_up, limit_was_up, (&options.kept, self.job.cell), record)
    }

    /// Lets the host's agent go, in peace or by force. Whatever it still has, the kernel takes back.
    pub(super) fn end_host(&mut self, hung: bool) -> Gone {
        let Some(mut link) = self.host.take() else { return Gone::Never };
        // One that has ended already answers at once; one whose step hangs may itself hang when it tidies up.
        let limit = if hung { self.options.patience } else { self.options.closing_limit };
        let orderly = !self.machine.stop.is_requested() && {
            let stop = AtomicBool::new(false);
            match link.ask(LEAVE, &[], limit, &stop, &mut |_| ()) {
                JobEnd::Done(body) => {
                    self.said = decode(&body).unwrap_or_default();
                    true
                }
                // What else it leaves behind the kernel or the journal takes back, without a word of it.
                JobEnd::Failed(words) if self.job.cell.filesystem.own.is_some() => {
                    self.said.push(words);
                    false
                }
                _ => false,
            }
        };
        if orderly {
            link.dismiss();
        } else {
            link.kill();
        }
        if link.is_gone_within(if hung || self.given_up { Duration::ZERO } else { DYING }) {
            return Gone::Away { orderly };
        }
        match link.process().and_then(holder::of) {
            Some(process) => Gone::Hanging { orderly, process },
            // It ended meanwhile.
            None => Gone::Away { orderly },
        }
    }
}

pub(super) enum Gone {
    Never,
    /// It is gone. `orderly` when it gave back what it had.
    Away {
        orderly: bool,
    },
    /// It hangs in the kernel, with whatever it has.
    Hanging {
        orderly: bool,
        process: Holder,
    },
}

fn not_running() -> Halt {
    Halt::Lab(ExecutorError::Agent("it is not running".into()))
}
