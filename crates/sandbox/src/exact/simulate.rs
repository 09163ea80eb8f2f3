//! Calendar and disk in one: the only source of a guest's time.
//!
//! The guest has at most one unanswered question, so everything happens in one order. While it runs, it may get as far as
//! the next moment at which the drive could have something to say, and not further; requests reach the drive at the time
//! that the guest says it is. When it has nothing to do it waits, and only then time is made to pass: to the next
//! completion or to what the guest asked to be woken for, the completion first where both are at once.

use super::attend::Desk;
use super::messages::{Answer, Calendar, Question, What};
use crate::vhost::{Connection, Engine};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::convert::Infallible;
use std::io;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Why a kernel cannot be simulated.
const NO_LIBRARY: &str = "it speaks to its calendar without fstone's library, as a program that is linked statically would: build it \
                          with `fstone kernel build`";
const NO_CALENDAR: &str =
    "it has no simulated time (CONFIG_UML_TIME_TRAVEL_SUPPORT): build it with `fstone kernel build`";

/// The guest's "never", and the furthest that it may go by itself.
const NEVER_NS: u64 = i64::MAX as u64;

const TICK: Duration = Duration::from_millis(100);

/// How often it is told what was written, in real time.
const WORD: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// The guest is gone: powered off, panicked, or killed.
    Gone,
    Deadlock,
    Silent(Duration),
    Late(Duration),
    Wanted,
    Garbled(String),
    Unfit(&'static str),
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
    disk: Option<Connection>,
    engine: &'a mut Engine,
    /// Whether time may pass in the guest between putting a request on the ring and announcing it: its kernel's work takes time.
    pub(super) at_once: bool,
    limits: Limits,
    stop: &'a AtomicBool,
    /// Readable when the guest's process is gone.
    ended: &'a OwnedFd,
    desk: &'a mut Desk<'d>,
    now_ns: u64,
    heard: Instant,
    told: Instant,
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
            disk: None,
            engine,
            at_once: false,
            limits,
            stop,
            ended,
            desk,
            now_ns: 0,
            heard: Instant::now(),
            told: Instant::now(),
        }
    }

    pub(super) const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub(super) fn run(&mut self) -> Stop {
        let Err(stop) = self.serve();
        stop
    }

    fn serve(&mut self) -> Result<Infallible, Stop> {
        let garbled = |error: io::Error| Stop::Garbled(error.to_string());
        while !has(self.calendar_listener, TICK)? {
            self.look_up()?;
            // The calendar comes first, while the kernel reads its command line.
            if has(self.disk_listener, Duration::ZERO)? {
                return Err(Stop::Unfit(NO_CALENDAR));
            }
        }
        let (stream, _) = self.calendar_listener.accept().map_err(garbled)?;
        let mut calendar = Calendar::new(stream, TICK).map_err(garbled)?;
        loop {
            let question = calendar.receive().map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => garbled(error),
                io::ErrorKind::Unsupported => Stop::Unfit(NO_LIBRARY),
                _ => Stop::Gone,
            })?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(Stop::Wanted);
            }
            match question {
                Some(question) => {
                    let answer = self.answer(&question)?;
                    calendar.send(&answer).map_err(|_| Stop::Gone)?;
                    self.heard = Instant::now();
                    if self.heard.duration_since(self.told) >= WORD {
                        self.told = self.heard;
                        self.desk.tell_written();
                    }
                }
                None => self.look_up()?,
            }
        }
    }

    /// The guest has said nothing for a tick.
    fn look_up(&self) -> Result<(), Stop> {
        let silent = self.heard.elapsed();
        if self.stop.load(Ordering::Relaxed) {
            Err(Stop::Wanted)
        } else if has(self.ended, Duration::ZERO)? {
            Err(Stop::Gone)
        } else if silent > self.limits.silence {
            Err(Stop::Silent(silent))
        } else {
            Ok(())
        }
    }

    fn answer(&mut self, question: &Question) -> Result<Answer, Stop> {
        if question.now_ns < self.now_ns {
            return Err(Stop::Garbled(format!("its time went back from {} to {}", self.now_ns, question.now_ns)));
        }
        self.now_ns = question.now_ns;
        self.engine.set_now_ns(self.now_ns);
        if question.on_ring {
            self.disk.as_mut().ok_or(Stop::Gone)?.take(self.engine);
            if self.engine.was_named() {
                self.desk
                    .attend(self.engine)
                    .map_err(|error| Stop::Garbled(format!("a question of the guest: {error}")))?;
            }
        }
        let mut interrupts = false;
        match question.what {
            What::Ends | What::GoesOn => {}
            What::AtSocket => self.hear()?,
            What::Waits(request_ns) => interrupts = self.pass(request_ns)?,
        }
        let may_ns = self.engine.next_event_ns().unwrap_or(NEVER_NS).min(self.limits.virtual_ns);
        Ok(Answer { interrupts, at_once: self.at_once, now_ns: self.now_ns, may_ns })
    }

    /// A message of the guest to its disk.
    fn hear(&mut self) -> Result<(), Stop> {
        if self.disk.is_none() {
            if !has(self.disk_listener, Duration::ZERO)? {
                return Err(Stop::Gone);
            }
            let connection = self.disk_listener.accept().and_then(|(stream, _)| Connection::in_band(stream));
            self.disk = Some(connection.map_err(|error| Stop::Garbled(error.to_string()))?);
        }
        self.disk.as_mut().ok_or(Stop::Gone)?.hear(self.engine).map_err(|_| Stop::Gone)
    }

    /// Makes time pass until the guest has something to do; whether that is an interrupt of its disk.
    fn pass(&mut self, request_ns: u64) -> Result<bool, Stop> {
        let wanted = Some(request_ns).filter(|&at_ns| at_ns < NEVER_NS);
        loop {
            let completion = self.engine.next_event_ns();
            let next = completion.into_iter().chain(wanted).min().ok_or(Stop::Deadlock)?;
            if next > self.limits.virtual_ns {
                return Err(Stop::Late(Duration::from_nanos(self.limits.virtual_ns)));
            }
            self.now_ns = self.now_ns.max(next);
            self.engine.set_now_ns(self.now_ns);
            if completion.is_none_or(|at_ns| wanted.is_some_and(|wanted| at_ns > wanted)) {
                return Ok(false);
            }
            if self.disk.as_mut().ok_or(Stop::Gone)?.complete(self.engine) {
                return Ok(true);
            }
        }
    }
}

/// Whether it has something to read within some time.
fn has(file: &impl AsFd, within: Duration) -> Result<bool, Stop> {
    let within = Timespec { tv_sec: 0, tv_nsec: i64::from(within.subsec_nanos()) };
    match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&within)) {
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(Stop::Garbled(error.to_string())),
        Ok(count) => Ok(count > 0),
    }
}
