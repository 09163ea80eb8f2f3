#![expect(unsafe_code, reason = "hands memory to the kernel through a ring")]
//! Reads small files whole, many in one call: opening, reading and closing them one by one takes a guest three system calls and
//! a wait for the disk each. Files that are not read here, for whatever reason, are read in the ordinary way.

use io_uring::{IoUring, opcode, squeue, types};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

const FILES: usize = 32;
const BYTES: usize = Ahead::BYTES as usize;
/// A file to be opened, one to be read and one to be closed for each that is read at once.
const ENTRIES: u32 = 4 * FILES as u32;
/// How often, and how many times, a ring that does not work is looked at for what the kernel still does.
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: u32 = 1000;

pub(super) struct Ahead {
    ring: IoUring,
    buffer: Vec<u8>,
}

/// What was asked of the kernel, and for which file. The name of an entry has the file's number in its lower half.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Open = 1,
    Read = 2,
    Close = 3,
}

/// A file that is open: its number, and its descriptor, which is closed with it.
type Open = (usize, OwnedFd);

#[derive(Default)]
struct Results {
    done: Vec<(Asked, usize, i32)>,
    given: usize,
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

impl Ahead {
    pub(super) const BYTES: u64 = 160 << 10;

    /// `None` where the kernel gives no ring.
    pub(super) fn new() -> Option<Self> {
        let ring = IoUring::builder().build(ENTRIES).ok()?;
        Some(Self { ring, buffer: vec![0; FILES * BYTES] })
    }

    /// Reads files, and hands over the number of each with its beginning: all of it, or as much as there is room for. Those that
    /// cannot be read are left out. However it ends, no file stays open.
    ///
    /// # Errors
    /// When the ring does not work. It is of no use any more.
    pub(super) fn read(mut self, paths: &[&str], mut each: impl FnMut(usize, &mut [u8])) -> io::Result<Self> {
        let names: Vec<CString> = paths.iter().map(|path| CString::new(*path).unwrap_or_default()).collect();
        let mut unopened = 0..names.len();
        let (mut read, mut opened): (Vec<Open>, Vec<Open>) = (Vec::new(), Vec::new());
        loop {
            let mut entries = Vec::with_capacity(3 * FILES);
            // First, as `closed` counts on.
            for (number, descriptor) in &read {
                entries.push(named(opcode::Close::new(of(descriptor)).build(), Asked::Close, *number));
            }
            for ((number, descriptor), memory) in opened.iter().zip(self.buffer.chunks_exact_mut(BYTES)) {
                let entry = opcode::Read::new(of(descriptor), memory.as_mut_ptr(), BYTES as u32);
                entries.push(named(entry.build(), Asked::Read, *number));
            }
            for number in unopened.by_ref().take(FILES) {
                // Without waiting, should it be a pipe by now.
                let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
                let entry = opcode::OpenAt::new(types::Fd(libc::AT_FDCWD), names[number].as_ptr()).flags(flags);
                entries.push(named(entry.build(), Asked::Open, number));
            }
            if entries.is_empty() {
                return Ok(self);
            }
            let mut results = Results::default();
            let submitted = self.submit(&entries, &mut results);
            if submitted.is_err() {
                self.settle(&mut results);
            }
            closed(std::mem::take(&mut read), &results);
            let new = results.done.iter().filter(|(asked, _, result)| *asked == Asked::Open && *result >= 0);
            // SAFETY: the kernel has just opened them for this, and nobody else knows of them.
            let new = new.map(|(_, number, result)| (*number, unsafe { OwnedFd::from_raw_fd(*result) })).collect();
            if let Err(error) = submitted {
                drop::<Vec<Open>>(new);
                // The kernel may still write there.
                std::mem::forget(std::mem::take(&mut self.buffer));
                return Err(error);
            }
            for ((number, _), memory) in opened.iter().zip(self.buffer.chunks_exact_mut(BYTES)) {
                let bytes = results.of(Asked::Read, *number).and_then(|result| usize::try_from(result).ok());
                if let Some(content) = bytes.and_then(|bytes| memory.get_mut(..bytes)) {
                    each(*number, content);
                }
            }
            read = std::mem::replace(&mut opened, new);
        }
    }

    fn submit(&mut self, entries: &[squeue::Entry], results: &mut Results) -> io::Result<()> {
        // SAFETY: names and buffer outlive this call, which returns with an error only if something may be in flight; then the buffer
        // is given up, and names were copied when the entries were taken.
        unsafe { self.ring.submission().push_multiple(entries) }.map_err(io::Error::other)?;
        while results.done.len() < entries.len() {
            match self.ring.submit_and_wait(entries.len() - results.done.len()) {
                Ok(given) => results.given += given,
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {}
                Err(error) => return Err(error),
            }
            self.take(results);
        }
        Ok(())
    }

    fn take(&mut self, results: &mut Results) {
        results.done.extend(self.ring.completion().map(|done| {
            let (name, result) = (done.user_data(), done.result());
            let asked = match name >> 32 {
                1 => Asked::Open,
                2 => Asked::Read,
                _ => Asked::Close,
            };
            (asked, (name & u64::from(u32::MAX)) as usize, result)
        }));
    }

    /// Waits, but not for ever, for what a ring that does not work was given before: a file that it opens after that would stay open.
    fn settle(&mut self, results: &mut Results) {
        for _ in 0..LOOKS {
            self.take(results);
            if results.done.len() >= results.given {
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

impl Results {
    fn of(&self, asked: Asked, number: usize) -> Option<i32> {
        self.done.iter().find(|(it, of, _)| (*it, *of) == (asked, number)).map(|(.., result)| *result)
    }
}

/// Closes what the kernel was asked to close, with the first entries, and did not: it may have been given no entry, or have refused it.
fn closed(files: Vec<Open>, results: &Results) {
    for (place, (number, descriptor)) in files.into_iter().enumerate() {
        let is_open = match results.of(Asked::Close, number) {
            // Any other error is of a file that is closed all the same.
            Some(result) => {
                matches!(-result, libc::EINVAL | libc::ECANCELED | libc::EAGAIN | libc::ENOMEM | libc::EOPNOTSUPP)
            }
            // One that is still being closed is not to be closed twice: its number may be another's by then.
            None => place >= results.given,
        };
        if !is_open {
            let _ = descriptor.into_raw_fd();
        }
    }
}

fn of(descriptor: &OwnedFd) -> types::Fd {
    types::Fd(descriptor.as_raw_fd())
}

fn named(entry: squeue::Entry, asked: Asked, number: usize) -> squeue::Entry {
    entry.user_data((asked as u64) << 32 | number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;

    #[test]
    fn many_files_are_read_as_they_are() {
        let Some(mut ahead) = Ahead::new() else {
            eprintln!("skipped: this kernel has no io_uring");
            return;
        };
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = |number: usize| place.path().join(number.to_string());
        let content = |number: usize| vec![number as u8; number * 1100 % (BYTES + 5000)];
        let descriptors = || fs::read_dir("/proc/self/fd").expect("proc").count();
        let count = 5 * FILES + 3;
        for number in (0..count).filter(|number| number % 7 != 0) {
            fs::write(path(number), content(number)).expect("ours");
        }
        fs::create_dir(path(7)).expect("ours");
        let paths: Vec<PathBuf> = (0..count).map(path).collect();
        let paths: Vec<&str> = paths.iter().map(|path| path.to_str().expect("plain")).collect();
        let before = descriptors();
        for _ in 0..3 {
            let mut found = BTreeMap::new();
            let read = |number, content: &mut [u8]| drop(found.insert(number, content.to_vec()));
            ahead = ahead.read(&paths, read).expect("a ring that works");
            let expected: BTreeMap<usize, Vec<u8>> = (0..count)
                .filter(|number| number % 7 != 0)
                .map(|number| (number, content(number).into_iter().take(BYTES).collect()))
                .collect();
            assert!(found == expected, "{:?}", found.keys());
        }
        // Other tests open files, too: 141 more for each time would be seen among those.
        assert!(descriptors() < before + count / 2, "what was opened is closed");
    }

    /// Of this place: other tests open files, too.
    fn open_below(place: &std::path::Path) -> usize {
        let entries = fs::read_dir("/proc/self/fd").expect("proc");
        let targets = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        targets.filter(|target| target.starts_with(place)).count()
    }

    #[test]
    fn a_ring_that_fails_half_way_leaves_no_file_open() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let paths: Vec<PathBuf> = (0..3 * FILES).map(|number| place.path().join(number.to_string())).collect();
        paths.iter().for_each(|path| fs::write(path, [1; 512]).expect("ours"));
        let paths: Vec<&str> = paths.iter().map(|path| path.to_str().expect("plain")).collect();
        for fails_after in [1, FILES + 1, 2 * FILES + 1] {
            let Some(ahead) = Ahead::new() else {
                eprintln!("skipped: this kernel has no io_uring");
                return;
            };
            // What stands in the ring's place takes no entries.
            let (ring, null) = (ahead.ring.as_raw_fd(), fs::File::open("/dev/null").expect("it is there"));
            let mut there = 0;
            let ended = ahead.read(&paths, |_, _| {
                there += 1;
                if there == fails_after {
                    // SAFETY: both are open, and the ring's number stays the ring's to close.
                    assert_eq!(unsafe { libc::dup2(null.as_raw_fd(), ring) }, ring);
                }
            });
            assert!(ended.is_err(), "after {fails_after}");
            assert_eq!(open_below(place.path()), 0, "after {fails_after}");
        }
    }
}
