//! The log of a disk: every change it was asked for, its data, and in which order things happened.

use fstone_files::nameless;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A moment in a disk's life. Every arrival, completion and mark is an event, numbered from 0.
pub type Event = u64;

/// The unit of all addresses here, as of the guest's requests.
pub(super) const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSpec {
    /// Where its data goes, in a file without a name.
    pub directory: PathBuf,
    pub bound_bytes: u64,
}

/// Why there is no log; completes "failed to keep a log of the disk: …".
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogError {
    #[error("it would hold more than {bound_bytes} bytes")]
    Full { bound_bytes: u64 },
    #[error("{0}")]
    Host(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    /// Sectors get the data at this place of the log's file.
    Write {
        data_at: u64,
    },
    Zero,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) change: Change,
    /// 512-byte sectors.
    pub(super) sectors: Range<u64>,
    pub(super) arrived: Event,
    pub(super) completed: Option<Event>,
    /// The event that made it durable.
    pub(super) durable: Option<Event>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Flush {
    pub(super) arrived: Event,
    pub(super) completed: Option<Event>,
}

/// What a disk was asked to change, as it is when this is taken.
#[derive(Debug, Clone)]
pub struct Log {
    pub(super) entries: Vec<Entry>,
    pub(super) flushes: Vec<Flush>,
    /// (number of the mark, its event), both ascending.
    pub(super) marks: Vec<(u64, Event)>,
    pub(super) events: Event,
    /// The disk as it was when the log began.
    pub(super) base: Arc<File>,
    pub(super) data: Arc<File>,
    /// The least that is written whole, in sectors of 512 bytes.
    pub(super) atom: u64,
}

impl Entry {
    /// Where its data ends in the log's file; none for zeros.
    pub(super) fn data_end(&self) -> Option<u64> {
        match self.change {
            Change::Write { data_at } => {
                Some(data_at.saturating_add((self.sectors.end - self.sectors.start).saturating_mul(SECTOR_BYTES)))
            }
            Change::Zero => None,
        }
    }
}

impl Log {
    pub fn event_of_mark(&self, mark: u64) -> Option<Event> {
        self.marks.binary_search_by_key(&mark, |(number, _)| *number).ok().map(|index| self.marks[index].1)
    }

    pub fn last_mark_before(&self, event: Event) -> Option<u64> {
        let count = self.marks.partition_point(|(_, at)| *at < event);
        Some(self.marks[count.checked_sub(1)?].0)
    }

    /// From now on, changes are torn only at multiples of this many bytes: what the disk writes whole.
    #[must_use]
    pub fn torn_at(mut self, bytes: u64) -> Self {
        self.atom = (bytes / SECTOR_BYTES).clamp(self.atom, 8);
        self
    }

    pub const fn events(&self) -> Event {
        self.events
    }
}

/// What a disk writes its log with. Whoever serves the disk may take the log at any time.
#[derive(Debug, Clone)]
pub(crate) struct LogWriter(Arc<Mutex<Writing>>);

#[derive(Debug)]
struct Writing {
    log: Log,
    /// Completed changes that no flush has made durable.
    volatile: Vec<u32>,
    data_bytes: u64,
    bound_bytes: u64,
    broken: Option<LogError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logged {
    Change(u32),
    Flush(u32),
}

impl LogWriter {
    pub(crate) fn new(spec: &LogSpec, image: &File, sector_bytes: u32) -> io::Result<Self> {
        let (base, data) = (nameless(&spec.directory)?, nameless(&spec.directory)?);
        copy_sparsely(image, &base)?;
        let log = Log {
            entries: Vec::new(),
            flushes: Vec::new(),
            marks: Vec::new(),
            events: 0,
            base: Arc::new(base),
            data: Arc::new(data),
            atom: u64::from(sector_bytes) / SECTOR_BYTES,
        };
        let bound_bytes = spec.bound_bytes;
        let writing = Writing { log, volatile: Vec::new(), data_bytes: 0, bound_bytes, broken: None };
        Ok(Self(Arc::new(Mutex::new(writing))))
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds data and gives its place. Data of one request is added in one go, so its pieces lie behind each other.
    pub(crate) fn add_data(&self, piece: &[u8]) {
        let mut writing = self.writing();
        if writing.broken.is_some() {
            return;
        }
        if writing.data_bytes + piece.len() as u64 > writing.bound_bytes {
            writing.broken = Some(LogError::Full { bound_bytes: writing.bound_bytes });
            return;
        }
        match writing.log.data.write_all_at(piece, writing.data_bytes) {
            Ok(()) => writing.data_bytes += piece.len() as u64,
            Err(error) => writing.broken = Some(LogError::Host(error.to_string())),
        }
    }

    pub(crate) fn position(&self) -> u64 {
        self.writing().data_bytes
    }

    /// A change arrived. With the write cache off it is durable once complete.
    pub(crate) fn change(&self, change: Change, sectors: Range<u64>) -> Option<Logged> {
        let mut writing = self.writing();
        if writing.broken.is_some() {
            return None;
        }
        let arrived = writing.next_event();
        let index = u32::try_from(writing.log.entries.len()).ok()?;
        writing.log.entries.push(Entry { change, sectors, arrived, completed: None, durable: None });
        Some(Logged::Change(index))
    }

    pub(crate) fn flush(&self) -> Option<Logged> {
        let mut writing = self.writing();
        if writing.broken.is_some() {
            return None;
        }
        let arrived = writing.next_event();
        let index = u32::try_from(writing.log.flushes.len()).ok()?;
        writing.log.flushes.push(Flush { arrived, completed: None });
        Some(Logged::Flush(index))
    }

    pub(crate) fn mark(&self, number: u64) {
        let mut writing = self.writing();
        let event = writing.next_event();
        writing.log.marks.push((number, event));
    }

    /// A request is complete. `through` when the disk has no volatile cache.
    pub(crate) fn completed(&self, logged: Logged, through: bool) {
        let mut writing = self.writing();
        let event = writing.next_event();
        match logged {
            Logged::Change(index) => {
                let entry = &mut writing.log.entries[index as usize];
                entry.completed = Some(event);
                if through {
                    entry.durable = Some(event);
                } else {
                    writing.volatile.push(index);
                }
            }
            Logged::Flush(index) => {
                let flush = &mut writing.log.flushes[index as usize];
                flush.completed = Some(event);
                let arrived = flush.arrived;
                let Writing { log, volatile, .. } = &mut *writing;
                volatile.retain(|&index| {
                    let entry = &mut log.entries[index as usize];
                    let covered = entry.completed.is_some_and(|completed| completed < arrived);
                    if covered {
                        entry.durable = Some(event);
                    }
                    !covered
                });
            }
        }
    }

    /// Empties the log: the disk is now what is in its image.
    pub(crate) fn begin_anew(&self, image: &File, directory: &Path) -> io::Result<()> {
        let (base, data) = (nameless(directory)?, nameless(directory)?);
        copy_sparsely(image, &base)?;
        self.writing().restart(Arc::new(base), Arc::new(data));
        Ok(())
    }

    /// Makes the image what it was when the log began, and empties the log. What it takes follows from what was written.
    pub(crate) fn rewind(&self, image: &File, directory: &Path) -> io::Result<()> {
        let data = nameless(directory)?;
        let mut writing = self.writing();
        let base = Arc::clone(&writing.log.base);
        if writing.broken.is_some() {
            // Then it does not know all of what was written.
            image.set_len(0)?;
            copy_sparsely(&base, image)?;
        } else {
            for entry in &writing.log.entries {
                let (at, bytes) =
                    (entry.sectors.start * SECTOR_BYTES, (entry.sectors.end - entry.sectors.start) * SECTOR_BYTES);
                make_hole(image, at, bytes)?;
                copy_range(&base, at, bytes, image, at)?;
            }
        }
        writing.restart(base, Arc::new(data));
        Ok(())
    }

    pub(crate) fn take(&self) -> Result<Log, LogError> {
        let writing = self.writing();
        match &writing.broken {
            None => Ok(writing.log.clone()),
            Some(error) => Err(error.clone()),
        }
    }
}

impl Writing {
    fn restart(&mut self, base: Arc<File>, data: Arc<File>) {
        self.log = Log {
            entries: Vec::new(),
            flushes: Vec::new(),
            marks: Vec::new(),
            events: 0,
            base,
            data,
            atom: self.log.atom,
        };
        self.volatile.clear();
        self.data_bytes = 0;
        self.broken = None;
    }

    const fn next_event(&mut self) -> Event {
        let event = self.log.events;
        self.log.events += 1;
        event
    }
}

/// Makes a range zeros, as a hole where the host's filesystem has holes.
pub(super) fn make_hole(image: &File, at: u64, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    if fallocate(image, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, bytes).is_ok() {
        return Ok(());
    }
    let zeros = vec![0; bytes.min(1 << 20) as usize];
    let mut done = 0;
    while done < bytes {
        let piece = &zeros[..(bytes - done).min(1 << 20) as usize];
        image.write_all_at(piece, at + done)?;
        done += piece.len() as u64;
    }
    Ok(())
}

/// Copies a file with holes into an empty one, holes as holes.
pub(super) fn copy_sparsely(from: &File, to: &File) -> io::Result<()> {
    let length = from.metadata()?.len();
    to.set_len(length)?;
    copy_range(from, 0, length, to, 0)
}

/// Copies a part of a file to a place where another has only holes, holes as holes.
pub(super) fn copy_range(from: &File, start: u64, length: u64, to: &File, place: u64) -> io::Result<()> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    // With an offset of its own: that of whoever else has the file open stays.
    let from = File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(from)))?;
    let mut buffer = vec![0; 1 << 20];
    let (mut at, end) = (start, start.saturating_add(length));
    while at < end {
        at = match seek(&from, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let hole = seek(&from, SeekFrom::Hole(at))?.min(end);
        while at < hole {
            let piece = &mut buffer[..((hole - at) as usize).min(1 << 20)];
            from.read_exact_at(piece, at)?;
            to.write_all_at(piece, place + (at - start))?;
            at += piece.len() as u64;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(bound_bytes: u64) -> LogWriter {
        let spec = LogSpec { directory: std::env::temp_dir(), bound_bytes };
        let image = nameless(&spec.directory).expect("a directory for temporary files");
        image.set_len(1 << 20).expect("it can have holes");
        LogWriter::new(&spec, &image, 512).expect("a directory for temporary files")
    }

    fn durable(log: &Log) -> Vec<Option<Event>> {
        log.entries.iter().map(|entry| entry.durable).collect()
    }

    #[test]
    fn a_change_is_durable_when_it_had_completed_before_the_flush_arrived() {
        let writer = writer(1 << 20);
        let first = writer.change(Change::Zero, 0..8).unwrap(); // 0
        let second = writer.change(Change::Zero, 8..16).unwrap(); // 1
        writer.completed(first, false); // 2
        let flush = writer.flush().unwrap(); // 3
        writer.completed(second, false); // 4, too late for the flush
        writer.completed(flush, false); // 5
        assert_eq!(durable(&writer.take().unwrap()), [Some(5), None]);
        let flush = writer.flush().unwrap();
        assert_eq!(durable(&writer.take().unwrap()), [Some(5), None], "a flush that is under way promises nothing");
        writer.completed(flush, false);
        assert_eq!(durable(&writer.take().unwrap()), [Some(5), Some(7)]);
    }

    #[test]
    fn without_a_cache_a_change_is_durable_at_once() {
        let writer = writer(1 << 20);
        let change = writer.change(Change::Zero, 0..8).unwrap();
        writer.completed(change, true);
        assert_eq!(durable(&writer.take().unwrap()), [Some(1)]);
    }

    #[test]
    fn marks_are_events() {
        let writer = writer(1 << 20);
        writer.mark(7);
        let change = writer.change(Change::Zero, 0..8).unwrap();
        writer.mark(8);
        writer.completed(change, false);
        let log = writer.take().unwrap();
        assert_eq!((log.event_of_mark(7), log.event_of_mark(8), log.event_of_mark(9)), (Some(0), Some(2), None));
        assert_eq!(
            (log.last_mark_before(0), log.last_mark_before(2), log.last_mark_before(3)),
            (None, Some(7), Some(8))
        );
    }

    #[test]
    fn a_disk_that_is_wound_back_is_what_it_was() {
        let directory = std::env::temp_dir();
        let image = nameless(&directory).unwrap();
        image.set_len(1 << 20).unwrap();
        image.write_all_at(&[7; 8192], 4096).unwrap();
        let spec = LogSpec { directory: directory.clone(), bound_bytes: 20_000 };
        let writer = LogWriter::new(&spec, &image, 512).unwrap();
        let content = || {
            let mut bytes = vec![0; 1 << 20];
            image.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let before = content();
        let write = |at: u64, bytes: usize| {
            let data_at = writer.position();
            image.write_all_at(&vec![9; bytes], at).unwrap();
            writer.add_data(&vec![9; bytes]);
            writer.change(Change::Write { data_at }, at / 512..(at + bytes as u64) / 512)
        };
        for bytes in [4096, 30_208] {
            // The second is more than the log may hold, which then knows nothing of it.
            write(0, 512);
            assert_eq!(write(8192, bytes).is_some(), bytes < 20_000);
            assert_ne!(content(), before);
            writer.rewind(&image, &directory).unwrap();
            assert_eq!(content(), before);
            let log = writer.take().unwrap();
            assert!(log.entries.is_empty() && log.events == 0 && writer.position() == 0);
        }
        write(65536, 512);
        writer.begin_anew(&image, &directory).unwrap();
        let before = content();
        write(0, 512);
        writer.rewind(&image, &directory).unwrap();
        assert_eq!(content(), before, "what was there when the log began anew");
    }

    #[test]
    fn a_log_that_outgrows_its_bound_is_refused() {
        let writer = writer(1000);
        writer.add_data(&[1; 600]);
        assert_eq!(writer.position(), 600);
        assert!(writer.take().is_ok());
        writer.add_data(&[1; 600]);
        assert_eq!(writer.take().unwrap_err().to_string(), "it would hold more than 1000 bytes");
        assert!(writer.change(Change::Zero, 0..8).is_none());
    }
}
