//! What a run is doing now, for `fstone serve` on the same machine.
//!
//! The run has a socket without a file: nothing is written to a disk that is being measured, and nothing stays when the run is killed.
//! It answers anyone who knows the run's identity, which is in the store: anyone who can read the store can see this.

use fstone_report::html::Now;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use std::{
    io::{self, PipeReader, PipeWriter, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

const LONGEST: usize = 16 << 10;

/// How long to wait for an answer. A run that has not answered by then is shown without these figures.
const PATIENCE: Duration = Duration::from_millis(300);

/// How long a child that was just started may have the socket of this process's last run open, until it is the program that it is to be.
const INHERITED: Duration = Duration::from_secs(2);

/// Answers for a run until it is dropped.
pub(crate) struct Watched {
    now: Arc<Mutex<Now>>,
    end: PipeWriter,
    thread: Option<JoinHandle<()>>,
}

impl Watched {
    /// For the run of this identity, which is carried out by this process.
    ///
    /// # Errors
    /// If such a socket cannot be made. The run then cannot be watched, but it can run.
    pub(crate) fn open(identity: &str) -> io::Result<Self> {
        let socket = bind(&address(std::process::id())?)?;
        // A client that asks and does not take the answer does not block the others.
        socket.set_nonblocking(true)?;
        let (ended, end) = io::pipe()?;
        let now = Arc::new(Mutex::new(Now::default()));
        let (identity, shared) = (identity.to_owned(), Arc::clone(&now));
        let thread = thread::Builder::new().name("watched".into());
        let thread = thread.spawn(move || answer(&socket, &ended, &identity, &shared))?;
        Ok(Self { now, end, thread: Some(thread) })
    }

    pub(crate) fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Closing it would not do: a child that was just started may have it open, too.
        if self.end.write_all(b".").is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// Takes the address, as soon as it is free.
fn bind(address: &SocketAddr) -> io::Result<UnixDatagram> {
    let since = Instant::now();
    loop {
        match UnixDatagram::bind_addr(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && since.elapsed() < INHERITED => {
                thread::sleep(Duration::from_millis(5));
            }
            bound => return bound,
        }
    }
}

fn answer(socket: &UnixDatagram, ended: &PipeReader, identity: &str, now: &Mutex<Now>) {
    let mut asked = [0; 512];
    loop {
        let mut waiting = [PollFd::new(socket, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Ok(_) if !waiting[1].revents().is_empty() => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        while let Ok((length, from)) = socket.recv_from(&mut asked) {
            if &asked[..length] != identity.as_bytes() {
                continue;
            }
            let now = now.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Ok(json) = serde_json::to_vec(&now) {
                let _ = socket.send_to_addr(&json, &from);
            }
        }
    }
}

/// What the run of this identity is doing now, according to this process; `None` if it does not answer.
pub(crate) fn ask(process: u32, identity: &str) -> Option<Now> {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let own = format!("fstone-asks-{}-{}", std::process::id(), ASKED.fetch_add(1, Ordering::Relaxed));
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(own).ok()?).ok()?;
    socket.set_write_timeout(Some(PATIENCE)).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    // From then on it takes nothing from others.
    socket.connect_addr(&address(process).ok()?).ok()?;
    socket.send(identity.as_bytes()).ok()?;
    let mut answer = vec![0; LONGEST];
    let length = socket.recv(&mut answer).ok()?;
    serde_json::from_str(std::str::from_utf8(&answer[..length]).ok()?).ok()
}

fn address(process: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("fstone-run-{process}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_knows_the_run_is_told() {
        let process = std::process::id();
        let watched = Watched::open("4f2c1a7e").expect("a socket");
        assert_eq!(ask(process, "4f2c1a7e"), Some(Now::default()));
        watched.now().figures = "12,345/s".into();
        assert_eq!(ask(process, "4f2c1a7e").expect("told").figures, "12,345/s");
        assert_eq!(ask(process, "another"), None);
        assert!(Watched::open("4f2c1a7e").is_err(), "one run at a time");
        drop(watched);
        assert_eq!(ask(process, "4f2c1a7e"), None);
        drop(Watched::open("4f2c1a7e").expect("the address is free again"));
    }
}
