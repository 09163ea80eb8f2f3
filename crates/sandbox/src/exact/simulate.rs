//! Calendar and disk in one: the only source of a guest's time.
//!
//! The guest has at most one unanswered message, so everything happens in one order. While it runs, it may get as far as
//! the next moment at which the drive could have something to say, and not further; requests reach the drive at the time
//! that the guest says it is. When it has nothing to do it waits, and only then time is made to pass: to the next
//! completion or to what the guest asked to be woken for, the completion first where both are at once.

use super::attend::Desk;
use super::messages::{Calendar, Message, Operation};
use crate::vhost::{Connection, Engine};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The guest's "never", and the furthest that it may go by itself.
const NEVER_NS: u64 = i64::MAX as u64;

/// The time of day at which every guest starts: 2020-01-01.
const START_OF_TIME_NS: u64 = 1_577_836_800_000_000_000;

const TICK: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// The guest is gone: powered off, panicked, or killed.
    Gone,
    Deadlock,
    Silent(Duration),
    Late(Duration),
    Wanted,
    Garbled(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// That the guest has nothing to do.
    Waiting,
    /// That it has taken our message with this number.
    Taken(u32),
    /// That it has taken the disk's interrupt.
    Interrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Real time without a word.
    pub(super) silence: Duration,
    pub(super) virtual_ns: u64,
}

pub(super) struct Simulation<'a, 'd> {
    calendar_listener: &'a UnixListener,
    disk_listener: &'a UnixListener,
    calendar: Option<Calendar>,
    disk: Option<Connection>,
    engine: &'a mut Engine,
    limits: Limits,
    stop: &'a AtomicBool,
    /// Readable when the guest's process is gone.
    ended: &'a OwnedFd,
    desk: &'a mut Desk<'d>,
    now_ns: u64,
    request_ns: Option<u64>,
    free_until_ns: u64,
    waiting: bool,
    /// It has asked to be woken since the disk's interrupt: it has taken it.
    asked: bool,
    unanswered: u32,
    /// What the guest has said, for one allocation.
    heard_of: Vec<Message>,
    taken: u32,
    sequence: u32,
    heard: Instant,
}

impl<'a, 'd> Simulation<'a, 'd> {
    pub(super) fn new(
        calendar_listener: &'a UnixListener,
        disk_listener: &'a UnixListener,
        engine: &'a mut Engine,
        limits: Limits,
        stop: &'a AtomicBool,
        ended: &'a OwnedFd,
        desk: &'a mut Desk<'d>,
    ) -> Self {
        Self {
            calendar_listener,
            disk_listener,
            calendar: None,
            disk: None,
            engine,
            limits,
            stop,
            ended,
            desk,
            now_ns: 0,
            request_ns: None,
            free_until_ns: 0,
            waiting: false,
            asked: false,
            unanswered: 0,
            heard_of: Vec::new(),
            taken: 0,
            sequence: 0,
            heard: Instant::now(),
        }
    }

    pub(super) const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub(super) fn run(&mut self) -> Stop {
        loop {
            if let Err(stop) = self.until(Goal::Waiting).and_then(|()| self.pass()) {
                return stop;
            }
        }
    }

    fn pass(&mut self) -> Result<(), Stop> {
        let completion = self.engine.next_event_ns();
        let wanted = self.request_ns.filter(|&at_ns| at_ns < NEVER_NS);
        let next = completion.into_iter().chain(wanted).min().ok_or(Stop::Deadlock)?;
        if next > self.limits.virtual_ns {
            return Err(Stop::Late(Duration::from_nanos(self.limits.virtual_ns)));
        }
        self.now_ns = self.now_ns.max(next);
        self.engine.set_now_ns(self.now_ns);
        if completion.is_some_and(|at_ns| wanted.is_none_or(|wanted| at_ns <= wanted)) {
            let Some(disk) = &mut self.disk else { return Err(Stop::Gone) };
            if disk.complete(self.engine) {
                self.interrupt()?;
            }
            return Ok(());
        }
        self.request_ns = None;
        self.waiting = false;
        // Nobody waits until it has heard: whatever it says next it says after that.
        let may = self.may_go_until();
        self.say(&[(Operation::FreeUntil, may), (Operation::Run, self.now_ns)])
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        let Some(disk) = &mut self.disk else { return Err(Stop::Gone) };
        // Those of interrupts before this lie there: the guest wrote them before whatever it has said since.
        while self.unanswered > 0 {
            disk.interrupted().map_err(|error| Stop::Garbled(error.to_string()))?;
            self.unanswered -= 1;
        }
        disk.interrupt().map_err(|error| Stop::Garbled(error.to_string()))?;
        self.unanswered += 1;
        self.asked = false;
        self.until(Goal::Interrupted)
    }

    fn may_go_until(&mut self) -> u64 {
        self.free_until_ns = self.engine.next_event_ns().unwrap_or(NEVER_NS).min(self.limits.virtual_ns);
        self.free_until_ns
    }

    /// Tells the guest how far it may go by itself, and waits until it has heard.
    fn allow(&mut self) -> Result<(), Stop> {
        let may = self.may_go_until();
        self.say(&[(Operation::FreeUntil, may)])?;
        self.until(Goal::Taken(self.sequence))
    }

    fn say(&mut self, what: &[(Operation, u64)]) -> Result<(), Stop> {
        let mut messages = [Message { operation: Operation::Ack, sequence: 0, time_ns: 0 }; 2];
        for (message, (operation, time_ns)) in messages.iter_mut().zip(what) {
            self.sequence = self.sequence.wrapping_add(1);
            *message = Message { operation: *operation, sequence: self.sequence, time_ns: *time_ns };
        }
        let Some(calendar) = &mut self.calendar else { return Err(Stop::Gone) };
        calendar.send(&messages[..what.len()]).map_err(|_| Stop::Gone)
    }

    fn until(&mut self, goal: Goal) -> Result<(), Stop> {
        loop {
            let reached = match goal {
                Goal::Waiting => self.waiting,
                Goal::Taken(sequence) => self.taken == sequence,
                Goal::Interrupted => self.asked,
            };
            if reached {
                return Ok(());
            }
            let [calendar, disk, answer] = self.ready(goal == Goal::Interrupted)?;
            if calendar {
                self.hear()?;
            } else if disk {
                self.serve()?;
            } else if answer {
                let Some(disk) = &mut self.disk else { return Err(Stop::Gone) };
                self.unanswered = 0;
                return disk.interrupted().map_err(|error| Stop::Garbled(error.to_string()));
            }
        }
    }

    /// Which of calendar, disk and the answer to an interrupt has something to read.
    fn ready(&mut self, interrupted: bool) -> Result<[bool; 3], Stop> {
        loop {
            let calendar = self.calendar.as_ref().map_or_else(|| self.calendar_listener.as_fd(), AsFd::as_fd);
            let disk = self.disk.as_ref().map_or_else(|| self.disk_listener.as_fd(), AsFd::as_fd);
            let mut polled = vec![
                PollFd::from_borrowed_fd(calendar, PollFlags::IN),
                PollFd::from_borrowed_fd(disk, PollFlags::IN),
                PollFd::new(self.ended, PollFlags::IN),
            ];
            let back = self.disk.as_ref().and_then(Connection::back).filter(|_| interrupted);
            polled.extend(back.map(|back| PollFd::from_borrowed_fd(back, PollFlags::IN)));
            let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(TICK.subsec_nanos()) };
            let count = match poll(&mut polled, Some(&tick)) {
                Err(Errno::INTR) => 0,
                Err(error) => return Err(Stop::Garbled(error.to_string())),
                Ok(count) => count,
            };
            if self.stop.load(Ordering::Acquire) {
                return Err(Stop::Wanted);
            }
            if count > 0 {
                self.heard = Instant::now();
                let is = |index: usize| polled.get(index).is_some_and(|one| !one.revents().is_empty());
                if [0, 1, 3].into_iter().any(is) {
                    return Ok([is(0), is(1), is(3)]);
                }
                // Nothing is left to be read.
                return Err(Stop::Gone);
            }
            let silent = self.heard.elapsed();
            if silent > self.limits.silence {
                return Err(Stop::Silent(silent));
            }
        }
    }

    fn hear(&mut self) -> Result<(), Stop> {
        let Some(calendar) = &mut self.calendar else {
            let (stream, _) = self.calendar_listener.accept().map_err(|error| Stop::Garbled(error.to_string()))?;
            self.calendar = Some(Calendar::new(stream));
            return Ok(());
        };
        let mut messages = std::mem::take(&mut self.heard_of);
        messages.clear();
        calendar.receive(&mut messages).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => Stop::Garbled(error.to_string()),
            _ => Stop::Gone,
        })?;
        for message in &messages {
            self.understand(*message)?;
        }
        self.heard_of = messages;
        Ok(())
    }

    fn understand(&mut self, message: Message) -> Result<(), Stop> {
        let mut time_ns = 0;
        match message.operation {
            Operation::Ack => {
                self.taken = message.sequence;
                return Ok(());
            }
            Operation::Start => {}
            Operation::Request => {
                self.request_ns = Some(message.time_ns);
                self.asked |= message.time_ns <= self.now_ns;
            }
            Operation::Wait => self.waiting = true,
            Operation::Get => time_ns = self.now_ns,
            Operation::Update => {
                if message.time_ns < self.now_ns {
                    return Err(Stop::Garbled(format!(
                        "its time went back from {} to {}",
                        self.now_ns, message.time_ns
                    )));
                }
                self.now_ns = message.time_ns;
                self.engine.set_now_ns(self.now_ns);
            }
            Operation::TimeOfDay => time_ns = START_OF_TIME_NS,
            Operation::Run | Operation::FreeUntil => {
                return Err(Stop::Garbled(format!("{:?} from a guest", message.operation)));
            }
        }
        let Some(calendar) = &mut self.calendar else { return Err(Stop::Gone) };
        calendar
            .send(&[Message { operation: Operation::Ack, sequence: message.sequence, time_ns }])
            .map_err(|_| Stop::Gone)
    }

    fn serve(&mut self) -> Result<(), Stop> {
        let Some(disk) = &mut self.disk else {
            let (stream, _) = self.disk_listener.accept().map_err(|error| Stop::Garbled(error.to_string()))?;
            self.disk = Some(Connection::in_band(stream).map_err(|error| Stop::Garbled(error.to_string()))?);
            return Ok(());
        };
        let Some(kick) = disk.hear(self.engine).map_err(|_| Stop::Gone)? else { return Ok(()) };
        if self.engine.was_named() {
            // The guest waits for its kick to be answered.
            self.desk
                .attend(self.engine)
                .map_err(|error| Stop::Garbled(format!("a question of the guest: {error}")))?;
            self.heard = Instant::now();
        }
        // What came with it may be complete before the guest was to be stopped: it must know before it goes on.
        if self.engine.next_event_ns().is_some_and(|at_ns| at_ns < self.free_until_ns) && !self.waiting {
            self.allow()?;
        }
        let Some(disk) = &mut self.disk else { return Err(Stop::Gone) };
        disk.answer(&kick).map_err(|_| Stop::Gone)
    }
}
