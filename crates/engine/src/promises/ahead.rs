#![expect(unsafe_code, reason = "hands memory to the kernel through a ring")]
//! Reads small files whole, many in one call: opening, reading and closing them one by one takes a guest three system calls and
//! a wait for the disk each. Files that are not read here, for whatever reason, are read in the ordinary way.

use io_uring::{IoUring, opcode, squeue, types};
use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;

/// Files that are read at once.
const FILES: usize = 32;
/// How much of a file is read.
const BYTES: usize = Ahead::BYTES as usize;
/// A file to be opened, one to be read and one to be closed for each that is read at once.
const ENTRIES: u32 = 4 * FILES as u32;

/// A ring, and memory for what it reads.
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

/// A file that is open: its number, and its descriptor.
type Open = (usize, RawFd);

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

impl Ahead {
    /// How much of a file is read at most.
    pub(super) const BYTES: u64 = 160 << 10;

    /// `None` where the kernel gives no ring.
    pub(super) fn new() -> Option<Self> {
        let ring = IoUring::builder().build(ENTRIES).ok()?;
        Some(Self { ring, buffer: vec![0; FILES * BYTES] })
    }

    /// Reads files, and hands over the number of each with its beginning: all of it, or as much as there is room for. Those that
    /// cannot be read are left out.
    ///
    /// # Errors
    /// When the ring does not work. It is of no use any more.
    pub(super) fn read(mut self, paths: &[&str], mut each: impl FnMut(usize, &mut [u8])) -> io::Result<Self> {
        let names: Vec<CString> = paths.iter().map(|path| CString::new(*path).unwrap_or_default()).collect();
        let mut unopened = 0..names.len();
        let (mut read, mut opened): (Vec<Open>, Vec<Open>) = (Vec::new(), Vec::new());
        loop {
            let mut entries = Vec::with_capacity(3 * FILES);
            for (number, descriptor) in read.drain(..) {
                entries.push(named(opcode::Close::new(types::Fd(descriptor)).build(), Asked::Close, number));
            }
            for ((number, descriptor), memory) in opened.iter().zip(self.buffer.chunks_exact_mut(BYTES)) {
                let entry = opcode::Read::new(types::Fd(*descriptor), memory.as_mut_ptr(), BYTES as u32);
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
            let results = match self.submit(&entries) {
                Ok(results) => results,
                Err(error) => {
                    // The kernel may still write there.
                    std::mem::forget(std::mem::take(&mut self.buffer));
                    return Err(error);
                }
            };
            let result = |asked, number| results.iter().find(|(it, of, _)| (*it, *of) == (asked, number));
            for ((number, _), memory) in opened.iter().zip(self.buffer.chunks_exact_mut(BYTES)) {
                let bytes = result(Asked::Read, *number).and_then(|(.., result)| usize::try_from(*result).ok());
                if let Some(content) = bytes.and_then(|bytes| memory.get_mut(..bytes)) {
                    each(*number, content);
                }
            }
            read = std::mem::take(&mut opened);
            let new = results.iter().filter(|(asked, _, result)| *asked == Asked::Open && *result >= 0);
            opened.extend(new.map(|(_, number, result)| (*number, *result)));
        }
    }

    /// Has the kernel do all of this, and waits for it.
    fn submit(&mut self, entries: &[squeue::Entry]) -> io::Result<Vec<(Asked, usize, i32)>> {
        // SAFETY: names and buffer outlive this call, which returns with an error only if something may be in flight; then the buffer
        // is given up, and names were copied when the entries were taken.
        unsafe { self.ring.submission().push_multiple(entries) }.map_err(io::Error::other)?;
        let mut results = Vec::with_capacity(entries.len());
        while results.len() < entries.len() {
            match self.ring.submit_and_wait(entries.len() - results.len()) {
                Ok(_) => {}
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {}
                Err(error) => return Err(error),
            }
            results.extend(self.ring.completion().map(|done| {
                let (name, result) = (done.user_data(), done.result());
                let asked = match name >> 32 {
                    1 => Asked::Open,
                    2 => Asked::Read,
                    _ => Asked::Close,
                };
                (asked, (name & u64::from(u32::MAX)) as usize, result)
            }));
        }
        Ok(results)
    }
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
}
