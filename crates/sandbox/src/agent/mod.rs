//! The agent: process 1 of a guest.
//!
//! It mounts what a process expects to be mounted, loads modules, opens the channel, says hello, and then runs the
//! host's jobs through a [`Handler`] until it is told to power off. A thread of its own, with real-time priority,
//! beats to show that the kernel still schedules; another reads the channel, so that the host can ask for the
//! stacks of blocked tasks while a job hangs.
//!
//! What it is told comes through the environment, which the kernel fills from its command line: see [`settings`].

mod channel;
mod child;
mod disk;
mod exact;
mod exchange;
mod handler;
mod modules;
pub mod settings;
mod setup;
mod stacks;
mod tsc;

pub use disk::{flush_buffers, time_of_a_read};
pub use exchange::EXCHANGE;
pub use handler::{Context, Handler};
pub use modules::{LoadError, Modules};
pub use stacks::blocked as blocked_tasks;

use crate::frames::{FrameReader, FrameWriter, Heartbeat, Hello, JobStatus, Message, ReadError};
use crate::guest::{END_OF_STACKS, HEARTBEAT_PERIOD};
use channel::Line;
use handler::{Writer, bounded, describe_panic, send};
use rustix::thread::{Timespec, clock_nanosleep_relative};
use rustix::time::ClockId;
use settings::Settings;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

const IDLE: u64 = u64::MAX;

/// Real-time priority of the heartbeat: above any load, below the kernel's own real-time threads.
const HEARTBEAT_PRIORITY: i32 = 10;

/// The argument that makes a binary the agent of its parent, and the descriptor on which they talk.
pub(crate) const CHILD_WORD: &str = "agent-of-fstone";
pub(crate) const CHILD_CHANNEL: i32 = 3;

/// Whether this process is an agent, in a guest or as a child of fstone. A binary that is both asks this first of all.
pub fn is_agent() -> bool {
    is_guest() || is_child()
}

pub fn is_guest() -> bool {
    let is_told = |name| std::env::var_os(name).is_some();
    rustix::process::getpid().is_init() && (is_told(settings::CHANNEL) || is_told(settings::EXACT))
}

pub fn is_exact() -> bool {
    is_guest() && std::env::var_os(settings::EXACT).is_some()
}

fn is_child() -> bool {
    std::env::args_os().skip(1).eq([CHILD_WORD])
}

/// Is the agent, until the guest powers off, or, as a child, until it is no longer wanted.
pub fn main(handler: &mut dyn Handler) -> ! {
    if !is_guest() {
        let served = channel::inherited(CHILD_CHANNEL)
            .map_err(|error| format!("this is started by fstone itself, with a channel to it: {error}"))
            .and_then(|line| converse(handler, line, Hello::of_child(), &Settings::default()));
        if let Err(problem) = &served {
            complain(problem);
        }
        child::end(served.is_ok());
    }
    if let Err(problem) = if is_exact() { exact::serve(handler) } else { serve(handler) } {
        // The console is all that is left to tell it.
        setup::print_on_console(&format!("fstone agent: {problem}\n"));
    }
    setup::power_off()
}

fn serve(handler: &mut dyn Handler) -> Result<(), String> {
    tsc::take_reading();
    let settings = Settings::from_environment()?;
    let mut complaints = setup::mounts();
    complaints.extend(setup::kernel_settings());
    complaints.extend(setup::console_level());
    complaints.extend(setup::randomness());
    tsc::take_reading();
    complaints.extend(load(&settings));
    let line = channel::open(&settings.channel).map_err(|error| format!("{}: {error}", settings.channel))?;
    converse(handler, line, setup::hello(complaints), &settings)
}

fn converse(handler: &mut dyn Handler, line: Line, hello: Hello, settings: &Settings) -> Result<(), String> {
    let incoming = line.try_clone().map_err(|error| error.to_string())?;

    let writer = Arc::new(Mutex::new(FrameWriter::new(line)));
    send(&writer, &Message::Hello(hello));
    let job = Arc::new(AtomicU64::new(IDLE));
    let beating = (Arc::clone(&writer), Arc::clone(&job));
    spawn("heartbeat", move || heartbeat(&beating.0, &beating.1))?;
    let (sender, jobs) = mpsc::channel();
    let answering = Arc::clone(&writer);
    spawn("channel", move || listen(FrameReader::new(incoming), &answering, &sender))?;

    while let Ok((id, kind, body)) = jobs.recv() {
        job.store(u64::from(id), Ordering::Release);
        let context = Context::new(&writer, settings, id);
        let result = catch_unwind(AssertUnwindSafe(|| handler.run(&kind, &body, &context)));
        drop(body);
        job.store(IDLE, Ordering::Release);
        let (status, body) = match result {
            Ok(Ok(body)) if body.len() <= crate::frames::MAX_BODY_BYTES => (JobStatus::Done, body),
            Ok(Ok(body)) => {
                let text = format!("the result has {} bytes, more than a message may have", body.len());
                (JobStatus::Failed(text), Vec::new())
            }
            Ok(Err(why)) => (JobStatus::Failed(bounded(why)), Vec::new()),
            Err(panic) => (JobStatus::Failed(bounded(describe_panic(&*panic))), Vec::new()),
        };
        send(&writer, &Message::Result { id, status, body });
    }
    // The listener is gone: bye, or the host is. On a kernel of its own, what was written goes to the disk with it.
    if is_guest() {
        rustix::fs::sync();
    }
    send(&writer, &Message::Bye);
    let line = writer.lock().unwrap_or_else(PoisonError::into_inner);
    line.get_ref().drain();
    Ok(())
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(body);
    thread.map(drop).map_err(|error| format!("cannot start the {name} thread: {error}"))
}

fn load(settings: &Settings) -> Vec<String> {
    if settings.load.is_empty() {
        return Vec::new();
    }
    match Modules::open(settings.modules.as_deref()) {
        Ok(modules) => {
            settings.load.iter().filter_map(|name| modules.load(name).err()).map(|error| error.to_string()).collect()
        }
        Err(error) => vec![error.to_string()],
    }
}

fn heartbeat(writer: &Writer, job: &AtomicU64) {
    // On the host it is one process among others.
    if is_guest() {
        setup::real_time(HEARTBEAT_PRIORITY);
    }
    let period =
        Timespec { tv_sec: HEARTBEAT_PERIOD.as_secs() as i64, tv_nsec: i64::from(HEARTBEAT_PERIOD.subsec_nanos()) };
    for count in 0.. {
        let running = job.load(Ordering::Acquire);
        let beat = Heartbeat {
            count,
            monotonic_ns: tsc::monotonic_ns(),
            tsc: tsc::read(),
            job: (running != IDLE).then_some(running as u32),
        };
        send(writer, &Message::Heartbeat(beat));
        let _ = clock_nanosleep_relative(ClockId::Monotonic, &period);
    }
}

fn complain(problem: &str) {
    let text = format!("fstone agent: {problem}\n");
    if is_guest() { setup::print_on_console(&text) } else { child::say(&text) }
}

/// Reads until bye or the end of the stream, which ends the agent.
fn listen(mut reader: FrameReader<Line>, writer: &Writer, jobs: &mpsc::Sender<(u32, String, Vec<u8>)>) {
    let mut chunks = Vec::new();
    loop {
        match reader.next_message() {
            Ok((sequence, Message::Chunk { body })) => {
                chunks.extend(body);
                if chunks.len() > crate::frames::MAX_BODY_BYTES {
                    complain("a job without end");
                    return;
                }
                send(writer, &Message::Ack { sequence });
            }
            Ok((_, Message::Job { id, kind, body })) => {
                let mut whole = std::mem::take(&mut chunks);
                whole.extend(body);
                if jobs.send((id, kind, whole)).is_err() {
                    return;
                }
            }
            Ok((_, Message::Dump)) if is_guest() => setup::show_blocked_tasks(),
            Ok((_, Message::Dump)) => child::say(&format!("{}{END_OF_STACKS}\n", stacks::describe())),
            Ok((_, Message::Bye)) | Err(ReadError::Closed) => return,
            Ok(_) => {}
            Err(error) => {
                complain(&error.to_string());
                return;
            }
        }
    }
}
