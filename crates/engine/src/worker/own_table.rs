#![expect(unsafe_code, reason = "gives a thread a descriptor table of its own, and closes what is in it")]
//! A descriptor table of a thread's own.
//!
//! Threads of one process share a table, so the kernel counts references to a file in each call that names a
//! descriptor, and takes a lock of the whole process to open and to close one. That is the cost of threads, not of the
//! filesystem, and it grows with them. A table that nobody shares has neither.

use std::marker::PhantomData;

/// The standard streams, which messages may go to until the end.
const FIRST_OTHER: u32 = 3;

/// The calling thread's own table: at first a copy of the process's. When dropped it is emptied, because a thread counts as
/// ended, and its filesystem may be about to be unmounted, before the kernel takes its table down.
#[derive(Debug)]
pub(crate) struct OwnTable {
    /// It is of the thread that made it.
    _thread: PhantomData<*const ()>,
}

/// The thread sanitizer knows of one table for a process: it takes the same number in two of them for one file and a race, and
/// has a pipe of its own open in the table of one thread alone. `scripts/sanitize` sets this where it compiles for it.
const ONE_TABLE: bool = option_env!("FSTONE_ONE_DESCRIPTOR_TABLE").is_some();

impl OwnTable {
    /// `None` where the kernel is too old (before 5.9) or forbids it: the table stays the process's.
    pub(crate) fn new() -> Option<Self> {
        if ONE_TABLE {
            return None;
        }
        // Beyond the last descriptor there is none to close: all that is left of the call is the new table.
        close_range(u32::MAX, libc::CLOSE_RANGE_UNSHARE).then_some(Self { _thread: PhantomData })
    }
}

impl Drop for OwnTable {
    fn drop(&mut self) {
        close_range(FIRST_OTHER, 0);
    }
}

/// Closes every descriptor from `first` on; whether the kernel did.
fn close_range(first: u32, flags: libc::c_uint) -> bool {
    // SAFETY: the call takes numbers only. With CLOSE_RANGE_UNSHARE it closes nothing, see above. Without, it is made on a
    // table that only this thread has, when what the thread opened has been closed; the descriptors that
    // other threads own are entries of another table.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    fn is_open(number: i32) -> bool {
        std::fs::symlink_metadata(format!("/proc/thread-self/fd/{number}")).is_ok()
    }

    #[test]
    fn a_table_is_of_one_thread_and_ends_with_it() {
        if ONE_TABLE {
            eprintln!("skipped: compiled for the thread sanitizer");
            return;
        }
        let (ours, kept) = (File::open("/dev/null").expect("open"), File::open("/dev/null").expect("open"));
        let (go, gone) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        let number = ours.as_raw_fd();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let table = OwnTable::new();
                assert!(table.is_some(), "close_range is in Linux 5.9 and later");
                assert!(is_open(number));
                go.wait();
                gone.wait();
                assert!(is_open(number), "closed by the other side, and still here");
                drop(table);
                (0..3).all(is_open) && !(3..1000).any(is_open)
            });
            go.wait();
            drop(ours);
            gone.wait();
            assert!(thread.join().expect("no panic"), "standard streams only");
        });
        assert!(is_open(kept.as_raw_fd()));
    }
}
