//! A running guest, whatever runs it: jobs in, results out, and a watch over it that always ends.

mod boot;
mod clock;
mod console;
mod ending;
mod stream;

pub use boot::BootError;
pub(crate) use boot::{path_word, word};
pub use clock::{ClockReport, GAP_TOLERANCE, Gap, HEARTBEAT_PERIOD};
pub(crate) use console::{Console, END_OF_STACKS};
pub use console::{ConsoleSummary, HEAD_BYTES, Incident, IncidentKind, TAIL_BYTES};
pub use ending::{Ending, Waiting};

use crate::frames::{FrameReader, FrameWriter, Hello, JobStatus, MAX_BODY_BYTES, Message, ReadError, WriteError};
use crate::process::{Confinement, ProcessEnd, Supervised};
use clock::ClockWatch;
pub(crate) use ending::Evidence;
use rustix::fd::OwnedFd;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use stream::{Activity, Incoming, Outgoing};

/// Messages kept for a host that is busy elsewhere; then the guest has to wait. Heartbeats do not count.
const QUEUE: usize = 256;

/// A job's body is sent in pieces of this size …
const CHUNK_BYTES: usize = 1 << 10;

/// … of which so many may be on their way. Together they stay below the 4 KiB of a terminal's input buffer: when that
/// fills up, user-mode Linux stops reading its serial line and sometimes forgets to go on.
const CHUNKS_AHEAD: usize = 3;

const TICK: Duration = Duration::from_millis(100);

/// After a job is overdue, how long the stacks of blocked tasks are waited for. They take milliseconds; on a host that is
/// overloaded, a guest that shares its processor needs seconds.
const DUMP_TIME: Duration = Duration::from_secs(20);

/// After the channel is closed, how long the process gets to end by itself.
const DYING_TIME: Duration = Duration::from_secs(5);

/// How patient the host is with a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// From the start to the hello.
    pub hello_limit: Duration,
    /// Without a byte on the channel, heartbeats included. Only time in which the host itself ran counts.
    pub silence_limit: Duration,
    /// From bye to the end of the process.
    pub farewell_limit: Duration,
}

impl Watch {
    /// For user-mode Linux, which is up in a second; a silent kernel may be busy for some seconds without being hung.
    pub const UML: Self = Self {
        hello_limit: Duration::from_secs(60),
        silence_limit: Duration::from_secs(20),
        farewell_limit: Duration::from_secs(60),
    };

    /// For QEMU, which may have to emulate every instruction.
    pub const QEMU: Self = Self {
        hello_limit: Duration::from_secs(180),
        silence_limit: Duration::from_secs(60),
        farewell_limit: Duration::from_secs(120),
    };

    /// For a child, which lives under a kernel that works: only a host that is overloaded keeps it waiting. When it goes,
    /// the kernel unmounts what it left mounted, and writes what of that is still in memory.
    pub const CHILD: Self = Self {
        hello_limit: Duration::from_secs(60),
        silence_limit: Duration::from_secs(120),
        farewell_limit: Duration::from_secs(600),
    };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Progress(String),
    Log(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    Done(Vec<u8>),
    Failed(String),
    /// The guest is gone; every further job ends the same way.
    GuestEnded(Ending),
    /// The caller wanted it to stop; the guest was killed for it.
    Stopped,
}

#[derive(Debug, Clone)]
pub struct GuestReport {
    pub ending: Ending,
    pub console: ConsoleSummary,
    pub clock: ClockReport,
    pub console_log: PathBuf,
}

pub(crate) struct Started {
    pub(crate) process: Supervised,
    pub(crate) to_guest: OwnedFd,
    pub(crate) from_guest: OwnedFd,
    pub(crate) console: Console,
    pub(crate) console_log: PathBuf,
    pub(crate) watch: Watch,
    /// How the process ends when its guest has panicked, and otherwise does not.
    pub(crate) panic_end: ProcessEnd,
    pub(crate) since: Instant,
}

/// After a panic, how long the kernel gets to print the rest of its trace.
const PANIC_TIME: Duration = Duration::from_millis(500);

static NEVER: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
enum Arrival {
    Message { sequence: u32, message: Message },
    Ended(ReadError),
}

/// A guest that has said hello. Killed when dropped.
#[derive(Debug)]
pub struct Guest {
    process: Supervised,
    writer: FrameWriter<Outgoing>,
    arrivals: Receiver<Arrival>,
    activity: Activity,
    clock: Arc<Mutex<ClockWatch>>,
    console: Console,
    console_log: PathBuf,
    watch: Watch,
    panic_end: ProcessEnd,
    hello: Option<Hello>,
    boot_time: Duration,
    next_job: u32,
    bye: bool,
    garbled: Option<String>,
    ending: Option<Ending>,
}

impl Guest {
    pub(crate) fn attach(started: Started) -> Result<Self, BootError> {
        let Started { process, to_guest, from_guest, console, console_log, watch, panic_end, since } = started;
        let activity = Activity::new();
        let clock = Arc::new(Mutex::new(ClockWatch::default()));
        let (sender, arrivals) = sync_channel(QUEUE);
        let reader = FrameReader::new(Incoming::new(from_guest, activity.clone()));
        let shared_clock = Arc::clone(&clock);
        thread::Builder::new()
            .name("guest-channel".to_owned())
            .spawn(move || receive(reader, &sender, &shared_clock))
            .map_err(BootError::host("start a thread"))?;
        let outgoing =
            Outgoing::new(to_guest, watch.silence_limit).map_err(BootError::host("prepare the guest's channel"))?;
        let mut guest = Self {
            process,
            writer: FrameWriter::new(outgoing),
            arrivals,
            activity,
            clock,
            console,
            console_log,
            watch,
            panic_end,
            hello: None,
            boot_time: Duration::ZERO,
            next_job: 0,
            bye: false,
            garbled: None,
            ending: None,
        };
        // Booting is silent: the limit of the hello is the only one.
        match guest.await_message(since, watch.hello_limit, Waiting::Hello, watch.hello_limit) {
            Ok(Message::Hello(hello)) => {
                guest.hello = Some(hello);
                guest.boot_time = since.elapsed();
                Ok(guest)
            }
            other => {
                let ending = match other {
                    Ok(message) => {
                        guest.garbled = Some(format!("it began with {:?} instead of hello", message.kind()));
                        guest.end(None)
                    }
                    Err(ending) => ending,
                };
                Err(BootError::NotUp { ending: Box::new(ending), console_log: guest.console_log.clone() })
            }
        }
    }

    /// How the agent introduced itself.
    ///
    /// # Panics
    /// Never: a guest is only handed out after its hello.
    pub fn hello(&self) -> &Hello {
        self.hello.as_ref().expect("said hello before it was handed out")
    }

    /// From the decision to start it until its hello.
    pub const fn boot_time(&self) -> Duration {
        self.boot_time
    }

    pub const fn confinement(&self) -> Confinement {
        self.process.confinement()
    }

    /// What it is not kept from on this host if it is hostile, in one line.
    pub fn not_enforced(&self) -> Option<String> {
        self.process.not_enforced()
    }

    pub const fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    pub fn clock(&self) -> ClockReport {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).report().clone()
    }

    pub fn console(&self) -> ConsoleSummary {
        self.console.summary()
    }

    /// Has the guest's handler do a job, for at most `limit`. A job that is overdue costs the guest its life, after
    /// the kernel has printed where its tasks are stuck.
    pub fn run(&mut self, kind: &str, body: &[u8], limit: Duration, on_event: &mut dyn FnMut(Event)) -> JobEnd {
        self.run_until(kind, body, limit, &NEVER, on_event)
    }

    /// The same, unless `stop` becomes true meanwhile: then the guest is killed.
    pub fn run_until(
        &mut self,
        kind: &str,
        body: &[u8],
        limit: Duration,
        stop: &AtomicBool,
        on_event: &mut dyn FnMut(Event),
    ) -> JobEnd {
        if let Some(ending) = &self.ending {
            return JobEnd::GuestEnded(ending.clone());
        }
        let id = self.next_job;
        self.next_job += 1;
        let since = Instant::now();
        if body.len() > MAX_BODY_BYTES {
            return JobEnd::Failed(format!(
                "its {} bytes are more than the {MAX_BODY_BYTES} a job may have",
                body.len()
            ));
        }
        if let Err(end) = self.send_job(id, kind, body, on_event) {
            return end;
        }
        loop {
            match self.await_message_until(since, limit, Waiting::Job, self.watch.silence_limit, stop) {
                Ok(Message::Result { id: of, status, body }) if of == id => {
                    return match status {
                        JobStatus::Done => JobEnd::Done(body),
                        JobStatus::Failed(why) => JobEnd::Failed(why),
                    };
                }
                Ok(Message::Progress { id: of, text }) if of == id => on_event(Event::Progress(text)),
                Ok(Message::Log { text }) => on_event(Event::Log(text)),
                // Of the job's last chunks.
                Ok(Message::Ack { .. }) => {}
                Ok(other) => {
                    self.garbled = Some(format!("{:?} came while job {id} was running", other.kind()));
                    return JobEnd::GuestEnded(self.end(None));
                }
                Err(_) if stop.load(Ordering::Acquire) => return JobEnd::Stopped,
                Err(ending) => return JobEnd::GuestEnded(ending),
            }
        }
    }

    /// Sends a job, its body in pieces of which only a few are under way at any time.
    fn send_job(&mut self, id: u32, kind: &str, body: &[u8], on_event: &mut dyn FnMut(Event)) -> Result<(), JobEnd> {
        let pieces = body.chunks(CHUNK_BYTES);
        let last = pieces.len().saturating_sub(1);
        let mut unacknowledged = 0;
        for piece in pieces.take(last) {
            self.send(&Message::Chunk { body: piece.to_vec() })?;
            unacknowledged += 1;
            while unacknowledged >= CHUNKS_AHEAD {
                let limit = self.watch.silence_limit;
                match self.await_message(Instant::now(), limit, Waiting::Acceptance, limit) {
                    Ok(Message::Ack { .. }) => unacknowledged -= 1,
                    Ok(Message::Log { text }) => on_event(Event::Log(text)),
                    Ok(other) => {
                        self.garbled = Some(format!("{:?} came while job {id} was being sent", other.kind()));
                        return Err(JobEnd::GuestEnded(self.end(None)));
                    }
                    Err(ending) => return Err(JobEnd::GuestEnded(ending)),
                }
            }
        }
        let body = body.chunks(CHUNK_BYTES).next_back().unwrap_or_default().to_vec();
        self.send(&Message::Job { id, kind: kind.to_owned(), body })
    }

    fn send(&mut self, message: &Message) -> Result<(), JobEnd> {
        match self.writer.send(message) {
            Ok(_) => Ok(()),
            Err(error @ (WriteError::TooLong { .. } | WriteError::Head(_))) => {
                Err(JobEnd::Failed(format!("the job cannot be sent: {error}")))
            }
            Err(WriteError::Io(error)) => {
                let gave_up = (error.kind() == io::ErrorKind::TimedOut)
                    .then_some((Waiting::Acceptance, self.watch.silence_limit));
                Err(JobEnd::GuestEnded(self.end(gave_up)))
            }
        }
    }

    /// Has it power off, and reports. A guest that has ended already is only reported.
    #[must_use]
    pub fn finish(mut self) -> GuestReport {
        self.dismiss();
        self.report()
    }

    /// Has it power off; what is asked of it afterwards has ended.
    pub fn dismiss(&mut self) {
        if self.ending.is_none() {
            let since = Instant::now();
            if self.writer.send(&Message::Bye).is_ok() {
                let limit = self.watch.farewell_limit;
                loop {
                    match self.await_message(since, limit, Waiting::PowerOff, limit) {
                        Ok(Message::Bye) => self.bye = true,
                        Ok(_) => {}
                        Err(_) => break,
                    }
                }
            }
            self.end(None);
        }
    }

    #[must_use]
    pub fn kill(mut self) -> GuestReport {
        self.kill_now();
        self.report()
    }

    /// Kills it; what is asked of it afterwards has ended.
    pub fn kill_now(&mut self) {
        self.process.kill();
        self.end(None);
    }

    /// The number of its first process, which the others do not outlive.
    pub const fn process(&self) -> u32 {
        self.process.number()
    }

    /// Whether all of its processes are gone, or are within this time. One that hangs in the kernel stays, however often
    /// it is killed.
    pub fn is_gone_within(&mut self, limit: Duration) -> bool {
        self.process.wait(limit).is_some()
    }

    fn report(&mut self) -> GuestReport {
        GuestReport {
            ending: self.end(None),
            console: self.console.finish(),
            clock: self.clock(),
            console_log: self.console_log.clone(),
        }
    }

    /// The next message, or how the guest ended instead.
    fn await_message(
        &mut self,
        since: Instant,
        limit: Duration,
        waiting: Waiting,
        silence_limit: Duration,
    ) -> Result<Message, Ending> {
        self.await_message_until(since, limit, waiting, silence_limit, &NEVER)
    }

    /// The same, unless the caller has enough of it; then the guest is killed.
    fn await_message_until(
        &mut self,
        since: Instant,
        limit: Duration,
        waiting: Waiting,
        silence_limit: Duration,
        stop: &AtomicBool,
    ) -> Result<Message, Ending> {
        let mut quiet = Duration::ZERO;
        let mut stamp = self.activity.stamp();
        let mut looked = Instant::now();
        loop {
            match self.arrivals.recv_timeout(TICK) {
                Ok(Arrival::Message { sequence, message }) => {
                    if matches!(message, Message::Result { .. }) {
                        // Lost only with the guest itself, which the next wait will notice.
                        let _ = self.writer.send(&Message::Ack { sequence });
                    }
                    return Ok(message);
                }
                Ok(Arrival::Ended(error)) => {
                    if !matches!(error, ReadError::Closed | ReadError::Truncated { .. } | ReadError::Io(_)) {
                        self.garbled = Some(error.to_string());
                    }
                    return Err(self.end(None));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.end(None)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.load(Ordering::Acquire) {
                self.process.kill();
                return Err(self.end(None));
            }
            // A host that was stopped itself must not blame the guest: a tick counts as at most two.
            let now = Instant::now();
            quiet += now.duration_since(looked).min(2 * TICK);
            looked = now;
            if self.activity.stamp() != stamp {
                stamp = self.activity.stamp();
                quiet = Duration::ZERO;
            }
            if quiet > silence_limit {
                return Err(self.end(Some((Waiting::Heartbeat, quiet))));
            }
            // After a panic there is nothing to wait for, and not every kernel ends its process by itself.
            if self.console.has_panicked() {
                return Err(self.end(None));
            }
            let waited = since.elapsed();
            if waited > limit {
                if waiting == Waiting::Job && self.writer.send(&Message::Dump).is_ok() {
                    self.await_dump();
                }
                return Err(self.end(Some((waiting, waited))));
            }
        }
    }

    fn await_dump(&self) {
        let since = Instant::now();
        while since.elapsed() < DUMP_TIME && !self.console.summary().stacks_ended {
            thread::sleep(TICK);
        }
    }

    /// Makes sure it has ended, and says how. Only the first call decides.
    fn end(&mut self, gave_up: Option<(Waiting, Duration)>) -> Ending {
        if let Some(ending) = &self.ending {
            return ending.clone();
        }
        if gave_up.is_some() || self.garbled.is_some() {
            self.process.kill();
        }
        let mut gave_up = gave_up;
        let patience = match self.console.has_panicked() {
            true => PANIC_TIME,
            false if self.bye => self.watch.farewell_limit,
            false => DYING_TIME,
        };
        let process = self.process.wait(patience).or_else(|| {
            gave_up.get_or_insert((Waiting::PowerOff, DYING_TIME));
            self.process.kill();
            self.process.wait(DYING_TIME)
        });
        let console = self.console.finish();
        let process = process.unwrap_or(ProcessEnd::Exited(-1));
        let panic_reported = process == self.panic_end && self.hello.is_some() && !self.bye;
        let evidence = Evidence {
            bye: self.bye,
            gave_up,
            process,
            garbled: self.garbled.clone(),
            panic_reported,
            console: &console,
        };
        let ending = evidence.ending();
        self.ending = Some(ending.clone());
        ending
    }
}

/// Runs on the channel's thread until the stream ends or nobody listens any more.
fn receive(mut reader: FrameReader<Incoming>, sender: &SyncSender<Arrival>, clock: &Mutex<ClockWatch>) {
    loop {
        let arrival = match reader.next_message() {
            Ok((_, Message::Heartbeat(beat))) => {
                clock.lock().unwrap_or_else(PoisonError::into_inner).beat(Instant::now(), beat);
                continue;
            }
            Ok((sequence, message)) => Arrival::Message { sequence, message },
            Err(error) => {
                let _ = sender.send(Arrival::Ended(error));
                return;
            }
        };
        if sender.send(arrival).is_err() {
            return;
        }
    }
}
