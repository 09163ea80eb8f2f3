//! The guest's console: drained for as long as it is open, kept within bounds, and searched for the kernel's own
//! words about what went wrong.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Kept of the beginning of a console, bytes: a boot is about 4 KiB, a stack trace about 3 KiB.
pub const HEAD_BYTES: u64 = 512 << 10;

pub const TAIL_BYTES: usize = 512 << 10;

/// Longest line looked at; the rest of a longer one is kept but not searched.
const MAX_LINE_BYTES: usize = 2048;

/// How long the console's writers get to be gone once the guest is.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// Most lines kept of one incident: a register dump and a stack trace are about 45.
const INCIDENT_LINES: usize = 80;

/// Most incidents kept, beside the panic; the first ones explain the later ones.
const MAX_INCIDENTS: usize = 8;

/// What an agent prints after a list of stacks: without it, a list that comes slowly looks like one that is complete.
pub(crate) const END_OF_STACKS: &str = "fstone: end of the list of blocked tasks";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IncidentKind {
    Panic,
    /// BUG, Oops, a bad access in the kernel: something is broken, the kernel may go on.
    Oops,
    /// The kernel's own hung-task or lockup detector.
    Stuck,
    /// The list of blocked tasks that fstone asked for when a job was overdue.
    BlockedTasks,
    /// A filesystem or the block layer reports an error.
    Filesystem,
}

/// Something the kernel had to say, with the lines that followed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    pub kind: IncidentKind,
    pub lines: Vec<String>,
}

/// First match wins; all are from the kernel's own source and have been stable from 5.10 to 6.12.
const PATTERNS: [(&str, IncidentKind); 19] = [
    ("Kernel panic", IncidentKind::Panic),
    ("BUG: soft lockup", IncidentKind::Stuck),
    ("watchdog: BUG", IncidentKind::Stuck),
    ("blocked for more than", IncidentKind::Stuck),
    ("rcu_sched self-detected stall", IncidentKind::Stuck),
    ("rcu: INFO:", IncidentKind::Stuck),
    ("BUG:", IncidentKind::Oops),
    ("kernel BUG at", IncidentKind::Oops),
    ("Oops:", IncidentKind::Oops),
    ("Internal error:", IncidentKind::Oops),
    ("general protection fault", IncidentKind::Oops),
    ("Kernel mode fault", IncidentKind::Oops),
    ("Kernel tried to access user memory", IncidentKind::Oops),
    ("Out of memory: Killed process", IncidentKind::Oops),
    ("Show Blocked State", IncidentKind::BlockedTasks),
    ("-fs error (", IncidentKind::Filesystem),
    ("I/O error, dev ", IncidentKind::Filesystem),
    ("error reading block", IncidentKind::Filesystem),
    ("Filesystem has been shut down", IncidentKind::Filesystem),
];

impl IncidentKind {
    pub fn of(line: &str) -> Option<Self> {
        PATTERNS.iter().find(|(pattern, _)| line.contains(pattern)).map(|(_, kind)| *kind)
    }
}

#[derive(Debug, Clone, Default)]
pub struct ConsoleSummary {
    /// Bytes the guest wrote.
    pub bytes: u64,
    /// Bytes of them that are not in the log, cut out of its middle.
    pub omitted_bytes: u64,
    pub incidents: Vec<Incident>,
    pub further_incidents: u64,
    pub last_lines: VecDeque<String>,
    pub stacks_ended: bool,
    /// Why the log is incomplete, when the host could not write it.
    pub log_error: Option<String>,
}

impl ConsoleSummary {
    pub fn first(&self, kind: IncidentKind) -> Option<&Incident> {
        self.incidents.iter().find(|incident| incident.kind == kind)
    }

    fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        if line.contains(END_OF_STACKS) {
            self.stacks_ended = true;
            return;
        }
        if self.last_lines.len() == 12 {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(line.to_owned());

        let kind = IncidentKind::of(line);
        let current = self.incidents.last().map(|incident| incident.kind);
        // Errors come in storms: a further line of the same kind belongs to the same incident.
        if let Some(kind) = kind
            && current != Some(kind)
        {
            let panicked = self.incidents.iter().any(|incident| incident.kind == IncidentKind::Panic);
            if self.incidents.len() < MAX_INCIDENTS || (kind == IncidentKind::Panic && !panicked) {
                self.incidents.push(Incident { kind, lines: vec![line.to_owned()] });
            } else {
                self.further_incidents += 1;
            }
        } else if let Some(incident) = self.incidents.last_mut()
            && incident.lines.len() < INCIDENT_LINES
        {
            incident.lines.push(line.to_owned());
        }
    }
}

/// A console being drained by a thread of its own until its writers are gone.
#[derive(Debug)]
pub(crate) struct Console {
    summary: Arc<Mutex<ConsoleSummary>>,
    drain: Option<thread::JoinHandle<()>>,
}

impl Console {
    /// Drains `stream` into the file `log`, made new.
    pub(crate) fn drain(stream: impl Read + Send + 'static, log: &Path) -> io::Result<Self> {
        let mut log = File::create(log)?;
        let summary = Arc::new(Mutex::new(ConsoleSummary::default()));
        let shared = Arc::clone(&summary);
        let drain = thread::Builder::new()
            .name("guest-console".to_owned())
            .spawn(move || drain_into(stream, &mut log, &shared))?;
        Ok(Self { summary, drain: Some(drain) })
    }

    pub(crate) fn summary(&self) -> ConsoleSummary {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).first(IncidentKind::Panic).is_some()
    }

    /// Waits for the writers to be gone and the log to be whole. Only after the guest was reaped.
    pub(crate) fn finish(&mut self) -> ConsoleSummary {
        let since = Instant::now();
        if let Some(drain) = self.drain.take() {
            // Where only a process group holds a guest together, a stray process may keep the console open.
            while !drain.is_finished() && since.elapsed() < CLOSING_TIME {
                thread::sleep(Duration::from_millis(2));
            }
            if drain.is_finished() {
                let _ = drain.join();
            }
        }
        self.summary()
    }
}

fn drain_into(mut stream: impl Read, log: &mut impl Write, shared: &Mutex<ConsoleSummary>) {
    let mut buffer = vec![0u8; 64 << 10];
    let mut tail: VecDeque<u8> = VecDeque::new();
    let mut line = Vec::new();
    let mut seen = 0u64;
    let mut log_error = None;
    let mut write = |bytes: &[u8]| {
        if log_error.is_none()
            && let Err(error) = log.write_all(bytes)
        {
            // The guest must go on even when the host's disk is full.
            log_error = Some(error.to_string());
        }
    };
    loop {
        let bytes = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => &buffer[..count],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let room = HEAD_BYTES.saturating_sub(seen).min(bytes.len() as u64) as usize;
        write(&bytes[..room]);
        tail.extend(&bytes[room..]);
        let surplus = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..surplus);
        seen += bytes.len() as u64;

        let mut summary = shared.lock().unwrap_or_else(PoisonError::into_inner);
        summary.bytes = seen;
        summary.omitted_bytes = seen - (seen.min(HEAD_BYTES) + tail.len() as u64);
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(&part[..part.len().min(MAX_LINE_BYTES - line.len())]);
            if part.ends_with(b"\n") {
                summary.line(String::from_utf8_lossy(&line).trim_end());
                line.clear();
            }
        }
    }
    let mut summary = shared.lock().unwrap_or_else(PoisonError::into_inner);
    summary.line(String::from_utf8_lossy(&line).trim_end());
    if summary.omitted_bytes > 0 {
        write(format!("\n[fstone: {} bytes of console output left out here]\n", summary.omitted_bytes).as_bytes());
    }
    let (first, second) = tail.as_slices();
    write(first);
    write(second);
    summary.log_error = log_error;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(text: &[u8]) -> (ConsoleSummary, Vec<u8>) {
        let shared = Mutex::new(ConsoleSummary::default());
        let mut log = Vec::new();
        drain_into(text, &mut log, &shared);
        (shared.into_inner().unwrap(), log)
    }

    #[test]
    fn a_panic_is_found_behind_an_oops_with_its_trace() {
        let (summary, log) = drained(
            b"Linux version 6.1\nBUG: unable to handle page fault\nCall Trace:\n ext4_writepages+0x12\n\
              Kernel panic - not syncing: Fatal exception\n ? panic+0x1",
        );
        assert_eq!(summary.incidents.len(), 2);
        assert_eq!(summary.incidents[0].lines[2], " ext4_writepages+0x12");
        let panic = summary.first(IncidentKind::Panic).unwrap();
        assert_eq!(panic.lines, ["Kernel panic - not syncing: Fatal exception", " ? panic+0x1"]);
        assert_eq!(log.len() as u64, summary.bytes);
    }

    #[test]
    fn a_flood_is_bounded_and_its_ends_are_kept() {
        let mut text = b"first line\n".to_vec();
        for number in 0..400_000 {
            text.extend_from_slice(format!("EXT4-fs error (device vda): storm {number}\n").as_bytes());
        }
        text.extend_from_slice(b"Kernel panic - not syncing: at last\n");
        let (summary, log) = drained(&text);
        assert_eq!(summary.bytes, text.len() as u64);
        assert!(log.len() < HEAD_BYTES as usize + TAIL_BYTES + 200);
        assert!(log.starts_with(b"first line\n") && log.ends_with(b"at last\n"));
        assert_eq!(summary.incidents.len(), 2);
        assert_eq!(summary.incidents[0].lines.len(), INCIDENT_LINES);
        assert_eq!(summary.first(IncidentKind::Panic).unwrap().lines.len(), 1);
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let (summary, _) = drained(&vec![b'x'; 3 << 20]);
        assert_eq!(summary.last_lines.back().unwrap().len(), MAX_LINE_BYTES);
    }

    #[test]
    fn a_full_disk_does_not_stop_the_drain() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(libc::ENOSPC))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let shared = Mutex::new(ConsoleSummary::default());
        drain_into(b"Kernel panic - not syncing: x\n".as_slice(), &mut Full, &shared);
        let summary = shared.into_inner().unwrap();
        assert!(summary.log_error.unwrap().contains("No space left"));
        assert_eq!(summary.incidents.len(), 1);
    }
}
