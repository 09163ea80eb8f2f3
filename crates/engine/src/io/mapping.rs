#![expect(unsafe_code, reason = "maps files into memory and catches SIGBUS")]
//! Files mapped into memory.
//!
//! Touching a mapping can fail in ways that no call reports: the kernel sends SIGBUS where a page cannot be had (the
//! device is full or broken, the file was cut short). While a thread copies to or from a mapping, it tells the
//! handler its bounds; the handler puts an empty page under the access, so that the copy comes to its end, and notes
//! the fault, which the copy then reports as EIO.

use super::{Fd, Result};
use rustix::io::Errno;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Once;

const PAGE: usize = 4096;

thread_local! {
    /// Bounds of the mapping that this thread is copying to or from, and whether an access failed.
    static GUARDED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    static FAULTED: Cell<bool> = const { Cell::new(false) };
}

/// A mapping of a whole file; or of nothing, on an engine that touches nothing.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: Option<NonNull<u8>>,
    length: usize,
}

impl Mapping {
    pub(crate) fn new(fd: Fd, length: u64, write: bool, real: bool) -> Result<Self> {
        let length = usize::try_from(length).map_err(|_| Errno::NOMEM)?;
        if !real || length == 0 {
            return Ok(Self { start: None, length: 0 });
        }
        catch_sigbus();
        let protection = libc::PROT_READ | if write { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else refers to it.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, fd.number, 0) };
        if start == libc::MAP_FAILED {
            return Err(last_errno());
        }
        Ok(Self { start: NonNull::new(start.cast()), length })
    }

    /// Tells the kernel how the mapping is used: what it was told of the descriptor has no bearing on faults.
    pub(crate) fn advise(&self, advice: rustix::fs::Advice) {
        use rustix::fs::Advice;
        let advice = match advice {
            Advice::Random => libc::MADV_RANDOM,
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            _ => return,
        };
        if let Some(start) = self.start {
            // SAFETY: the mapping is ours, and the advice changes nothing that it holds.
            // It is advice: a kernel that takes none is no error of the load.
            let _ = unsafe { libc::madvise(start.as_ptr().cast(), self.length, advice) };
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let Some((from, length)) = self.at(offset, buffer.len()) else { return Ok(buffer.len()) };
        self.guarded(|| {
            // SAFETY: `at` keeps the range inside the mapping, which lives as long as `self`; `buffer` is our own
            // memory. Others may write the file meanwhile: the copy is of plain bytes, of which any value is valid.
            unsafe { ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), length) };
        })?;
        Ok(length)
    }

    pub(crate) fn write(&self, data: &[u8], offset: u64) -> Result<usize> {
        let Some((to, length)) = self.at(offset, data.len()) else { return Ok(data.len()) };
        self.guarded(|| {
            // SAFETY: as in `read`; the mapping was made writable by those who write.
            unsafe { ptr::copy_nonoverlapping(data.as_ptr(), to, length) };
        })?;
        Ok(length)
    }

    /// msync(MS_SYNC) of the pages of a range.
    pub(crate) fn msync(&self, offset: u64, length: usize) -> Result<()> {
        let start = offset as usize / PAGE * PAGE;
        let Some((from, length)) = self.at(start as u64, offset as usize - start + length) else { return Ok(()) };
        // SAFETY: the range lies in the mapping.
        let result = unsafe { libc::msync(from.cast(), length, libc::MS_SYNC) };
        if result == 0 { Ok(()) } else { Err(last_errno()) }
    }

    pub(crate) fn unmap(self) -> Result<()> {
        match self.start {
            None => Ok(()),
            // SAFETY: the mapping is ours, and `self` is given up. (There is no `Drop`: an error would be lost.)
            Some(start) => match unsafe { libc::munmap(start.as_ptr().cast(), self.length) } {
                0 => Ok(()),
                _ => Err(last_errno()),
            },
        }
    }

    /// Where a range starts, cut off at the mapping's end; `None` when nothing is mapped.
    fn at(&self, offset: u64, length: usize) -> Option<(*mut u8, usize)> {
        let start = self.start?;
        let offset = usize::try_from(offset).ok()?.min(self.length);
        // SAFETY: the offset is within the mapping or one past its end.
        Some((unsafe { start.as_ptr().add(offset) }, length.min(self.length - offset)))
    }

    fn guarded(&self, copy: impl FnOnce()) -> Result<()> {
        let start = self.start.map_or(0, |start| start.as_ptr() as usize);
        FAULTED.set(false);
        GUARDED.set((start, start + self.length.next_multiple_of(PAGE)));
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        copy();
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        GUARDED.set((0, 0));
        if FAULTED.get() { Err(Errno::IO) } else { Ok(()) }
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Installs the handler, once per process.
fn catch_sigbus() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: an all-zero sigaction is valid; the handler has the signature that SA_SIGINFO asks for.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_sigbus as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    });
}

/// Runs on the thread whose access failed. Uses nothing but mmap and thread-local cells without destructors.
extern "C" fn on_sigbus(_signal: i32, information: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo, and SIGBUS fills in the address.
    let address = unsafe { (*information).si_addr() } as usize;
    let (start, end) = GUARDED.get();
    if (start..end).contains(&address) {
        FAULTED.set(true);
        let page = address / PAGE * PAGE;
        // SAFETY: replaces a page of a mapping that this thread is copying to or from and that belongs to it alone.
        let replaced = unsafe {
            libc::mmap(
                page as *mut c_void,
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if replaced != libc::MAP_FAILED {
            return;
        }
    }
    // Not ours: let the access fail again, with the default action.
    // SAFETY: as in `catch_sigbus`; SIG_DFL is a valid disposition.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn copies_reach_the_file() {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(10_000).expect("truncate");
        let map = Mapping::new(Fd::open(file.as_raw_fd()), 10_000, true, true).expect("mmap");
        assert_eq!(map.write(b"hello", 9_990), Ok(5));
        assert_eq!(map.write(b"far too long", 9_995), Ok(5));
        assert_eq!(map.msync(9_990, 5), Ok(()));
        let mut back = [0; 10];
        file.read_exact_at(&mut back, 9_990).expect("read");
        assert_eq!(&back, b"hellofar t");
        assert_eq!(map.read(&mut back, 9_990), Ok(10));
        assert_eq!(map.unmap(), Ok(()));
    }

    #[test]
    fn a_file_cut_short_is_an_error_and_not_a_crash() {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(16_384).expect("truncate");
        let map = Mapping::new(Fd::open(file.as_raw_fd()), 16_384, true, true).expect("mmap");
        file.set_len(4096).expect("truncate");
        let mut buffer = vec![0; 16_384];
        assert_eq!(map.read(&mut buffer[..4096], 0), Ok(4096));
        assert_eq!(map.read(&mut buffer, 0), Err(Errno::IO));
        assert_eq!(map.unmap(), Ok(()));
    }
}
