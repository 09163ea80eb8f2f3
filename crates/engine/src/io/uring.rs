#![expect(unsafe_code, reason = "hands memory to the kernel through a ring")]
//! io_uring: many transfers in flight, handed over in batches.
//!
//! What the kernel can do is found by trying: rings of a single issuer with deferred work (6.1) before those with
//! cooperative work (5.19) before plain ones (5.1); registered memory, files and ring where it lets us. Data of queued
//! transfers lives in slots, one for each request in flight, in one registered region.

use super::slots::Slots;
use super::{Completion, Direction, Fd, Result, Setup, SetupError, TransferFlags};
use io_uring::{EnterFlags, IoUring, opcode, squeue, types};
use rustix::io::Errno;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Files that are registered at most; beyond, descriptors are used.
const MOST_FILES: usize = 16_384;
/// The name of a transfer that is waited for by itself.
const ALONE: u64 = u64::MAX;
/// How long a thread sleeps between looks on kernels where waiting cannot be limited.
const UNTIMED_WAIT: Duration = Duration::from_micros(50);

pub(crate) struct Uring {
    ring: IoUring,
    /// The number by which its thread names the ring. In another thread it is another ring's: a ring stays where it was made.
    number: Option<u32>,
    stays: PhantomData<*const ()>,
    slots: Slots,
    registered_memory: bool,
    flags: TransferFlags,
    /// Whether completions are polled for, which the kernel does when it is asked for them.
    polled: bool,
    /// Index of a registered file by its descriptor; -1 for others.
    registered_files: Vec<i32>,
    /// Transfers that the kernel has not finished: it may still write to their slots.
    flying: u32,
    /// Completions of queued transfers that came while another was waited for by itself.
    early: Vec<Completion>,
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn build(depth: u32, polled: bool) -> std::io::Result<IoUring> {
    let attempts: [fn(&mut io_uring::Builder); 3] = [
        |builder| {
            builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        },
        |builder| {
            builder.setup_coop_taskrun().setup_taskrun_flag();
        },
        |_| {},
    ];
    let mut result = Err(std::io::ErrorKind::Unsupported.into());
    for attempt in attempts {
        let mut builder = IoUring::builder();
        builder.setup_clamp();
        attempt(&mut builder);
        if polled {
            builder.setup_iopoll();
        }
        result = builder.build(depth);
        match &result {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            _ => break,
        }
    }
    result
}

/// Of the system call io_uring_register, since Linux 5.18.
const REGISTER_RING_FDS: libc::c_uint = 20;
const UNREGISTER_RING_FDS: libc::c_uint = 21;

/// Gives a ring a number with its thread, or takes it back: each call that names it so is spared looking up its descriptor.
fn register(ring: &IoUring, operation: libc::c_uint, number: u32, descriptor: u64) -> Option<u32> {
    #[repr(C)]
    struct Update {
        number: u32,
        reserved: u32,
        descriptor: u64,
    }
    let mut update = Update { number, reserved: 0, descriptor };
    // SAFETY: the kernel reads and writes one `struct io_uring_rsrc_update`, which this is, during the call.
    let done =
        unsafe { libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), operation, &raw mut update, 1_u32) };
    (done == 1).then_some(update.number)
}

impl Uring {
    /// Submits what was pushed and waits until so many are done.
    fn submit_and_wait(&mut self, least: usize) -> std::io::Result<usize> {
        let Some(number) = self.number else { return self.ring.submit_and_wait(least) };
        let queue = self.ring.submission();
        let pushed = queue.len();
        let mut flags = EnterFlags::REGISTERED_RING;
        flags.set(EnterFlags::GETEVENTS, least > 0 || self.polled || queue.taskrun() || queue.cq_overflow());
        drop(queue);
        // SAFETY: the call itself is handed no memory; that of the requests is the kernel's since they were pushed.
        let taken = unsafe {
            let none = std::ptr::null::<libc::sigset_t>();
            libc::syscall(libc::SYS_io_uring_enter, number, pushed as u32, least as u32, flags.bits(), none, 0_usize)
        };
        usize::try_from(taken).map_err(|_| std::io::Error::last_os_error())
    }

    fn entry(
        &self,
        direction: Direction,
        fd: Fd,
        memory: *mut u8,
        length: usize,
        offset: u64,
        fixed: bool,
    ) -> squeue::Entry {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let known = usize::try_from(fd.number).ok().and_then(|number| self.registered_files.get(number));
        let index = known.copied().unwrap_or(-1);
        let flags = self.flags.on(direction).cast_signed();
        macro_rules! made {
            ($file:expr) => {
                match (direction, fixed) {
                    (Direction::Read, true) => {
                        opcode::ReadFixed::new($file, memory, length, 0).offset(offset).rw_flags(flags).build()
                    }
                    (Direction::Read, false) => {
                        opcode::Read::new($file, memory, length).offset(offset).rw_flags(flags).build()
                    }
                    (Direction::Write, true) => {
                        opcode::WriteFixed::new($file, memory, length, 0).offset(offset).rw_flags(flags).build()
                    }
                    (Direction::Write, false) => {
                        opcode::Write::new($file, memory, length).offset(offset).rw_flags(flags).build()
                    }
                }
            };
        }
        match u32::try_from(index) {
            Ok(index) => made!(types::Fixed(index)),
            Err(_) => made!(types::Fd(fd.number)),
        }
    }

    fn enter(&mut self, least: usize, wait: Option<Duration>) -> std::io::Result<usize> {
        if least == 0 {
            let submission = self.ring.submission();
            // With nothing to submit and no work for the kernel to do in this thread, the completion queue is as it is.
            if submission.is_empty() && !self.polled && !submission.taskrun() && !submission.cq_overflow() {
                return Ok(0);
            }
            drop(submission);
            return self.submit_and_wait(0);
        }
        let Some(wait) = wait else { return self.submit_and_wait(least) };
        if self.ring.params().is_feature_ext_arg() {
            let time = types::Timespec::from(wait);
            return self.ring.submitter().submit_with_args(least, &types::SubmitArgs::new().timespec(&time));
        }
        // Before Linux 5.11 a wait had no end.
        let submitted = self.submit_and_wait(0);
        std::thread::sleep(wait.min(UNTIMED_WAIT));
        submitted
    }

    fn transfer(&mut self, direction: Direction, fd: Fd, memory: *mut u8, length: usize, offset: u64) -> Result<usize> {
        let entry = self.entry(direction, fd, memory, length, offset, false).user_data(ALONE);
        // SAFETY: the memory is borrowed by our caller for the whole call, and we do not return before the transfer
        // is complete.
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| Errno::BUSY)?;
        loop {
            match self.submit_and_wait(1) {
                Ok(_) => {}
                // Busy: the completion queue has to be emptied first.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => {}
                // The entry was not taken: nothing is in flight.
                Err(error) if !self.ring.submission().is_empty() => return Err(errno_of(&error)),
                Err(_) => {}
            }
            let mut result = None;
            for done in self.ring.completion() {
                match done.user_data() {
                    ALONE => result = Some(outcome(done.result())),
                    slot => self.early.push(Completion { slot: slot as u32, outcome: outcome(done.result()) }),
                }
            }
            if let Some(result) = result {
                return result;
            }
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // After a panic or an error of the ring itself: the slots are the kernel's until all is done.
        while self.flying > 0 {
            if self.complete(1, None, |_| {}).is_err() {
                self.slots.abandon();
                return;
            }
        }
        if let Some(number) = self.number {
            register(&self.ring, UNREGISTER_RING_FDS, number, 0);
        }
    }
}

fn outcome(result: i32) -> Result<usize> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}

impl Uring {
    pub(super) fn new(setup: &Setup) -> std::result::Result<Self, SetupError> {
        let failed = |error: std::io::Error| {
            let errno = errno_of(&error);
            let cure = match errno {
                Errno::PERM => "; set kernel.io_uring_disabled to 0, or use psync",
                Errno::NOSYS => "; this kernel has no io_uring: use psync",
                Errno::NOMEM => "; raise `ulimit -l`, or lower threads or queue depth",
                _ => "",
            };
            SetupError { call: "io_uring_setup", errno, cure }
        };
        let ring = build(setup.depth, setup.polled).map_err(failed)?;
        let mut slots = Slots::new(setup.depth, setup.block_bytes);
        let memory = slots.all();
        let region = libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
        // SAFETY: `slots` is never resized, and is dropped after the ring that knows it (the order of the fields).
        let registered_memory = !memory.is_empty() && unsafe { ring.submitter().register_buffers(&[region]) }.is_ok();
        let Setup { flags, polled, .. } = *setup;
        let registered_files = Vec::new();
        let number = register(&ring, REGISTER_RING_FDS, u32::MAX, ring.as_raw_fd() as u64);
        Ok(Self {
            ring,
            number,
            stays: PhantomData,
            slots,
            registered_memory,
            flags,
            polled,
            registered_files,
            flying: 0,
            early: Vec::new(),
        })
    }

    pub(super) fn read(&mut self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.transfer(Direction::Read, fd, buffer.as_mut_ptr(), buffer.len(), offset)
    }

    pub(super) fn write(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<usize> {
        self.transfer(Direction::Write, fd, data.as_ptr().cast_mut(), data.len(), offset)
    }

    pub(super) fn slot(&mut self, slot: u32) -> &mut [u8] {
        self.slots.get(slot)
    }

    #[inline]
    pub(super) fn push(&mut self, slot: u32, direction: Direction, fd: Fd, length: usize, offset: u64) -> Result<()> {
        let memory = self.slots.get(slot);
        debug_assert!(length <= memory.len());
        let memory = memory.as_mut_ptr();
        let entry =
            self.entry(direction, fd, memory, length, offset, self.registered_memory).user_data(u64::from(slot));
        // SAFETY: the slot's memory lives as long as the ring, and the driver does not touch it before the
        // completion comes back.
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| Errno::BUSY)?;
        self.flying += 1;
        Ok(())
    }

    pub(super) fn push_fsync(&mut self, slot: u32, fd: Fd, data_only: bool) -> Result<()> {
        let flags = if data_only { types::FsyncFlags::DATASYNC } else { types::FsyncFlags::empty() };
        let entry = opcode::Fsync::new(types::Fd(fd.number)).flags(flags).build().user_data(u64::from(slot));
        // SAFETY: the request refers to no memory.
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| Errno::BUSY)?;
        self.flying += 1;
        Ok(())
    }

    pub(super) fn submit(&mut self) -> Result<()> {
        loop {
            match self.submit_and_wait(0) {
                Ok(_) => return Ok(()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The completion queue has to be emptied first, which the next wait does.
                    Some(libc::EBUSY) => return Ok(()),
                    _ => return Err(errno_of(&error)),
                },
            }
        }
    }

    pub(super) fn complete(
        &mut self,
        least: u32,
        wait: Option<Duration>,
        mut each: impl FnMut(Completion),
    ) -> Result<()> {
        let early = u32::try_from(self.early.len()).unwrap_or(u32::MAX);
        self.early.drain(..).for_each(&mut each);
        self.flying -= early;
        let least = least.saturating_sub(early);
        loop {
            match self.enter(least as usize, wait) {
                Ok(_) => break,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) if wait.is_none() => {}
                    // The time is over, or the completion queue has to be emptied first.
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY) => break,
                    _ => return Err(errno_of(&error)),
                },
            }
        }
        for done in self.ring.completion() {
            self.flying -= 1;
            each(Completion { slot: done.user_data() as u32, outcome: outcome(done.result()) });
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, files: &[Fd]) {
        if files.is_empty() || files.len() > MOST_FILES {
            return;
        }
        let numbers: Vec<i32> = files.iter().map(|fd| fd.number).collect();
        if self.ring.submitter().register_files(&numbers).is_err() {
            return;
        }
        let largest = numbers.iter().copied().max().and_then(|fd| usize::try_from(fd).ok()).unwrap_or(0);
        self.registered_files = vec![-1; largest + 1];
        for (index, fd) in (0..).zip(&numbers) {
            if let Some(entry) = usize::try_from(*fd).ok().and_then(|fd| self.registered_files.get_mut(fd)) {
                *entry = index;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The kernel writes to a slot until its transfer is complete: the memory must not be given back before, whatever made
    /// the load end.
    #[test]
    fn slots_outlive_what_is_in_flight() {
        let mut io = match Uring::new(&Setup::of_test(2)) {
            Ok(io) => io,
            Err(error) => {
                eprintln!("skipped: io_uring: {error:?}");
                return;
            }
        };
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        io.push(0, Direction::Read, Fd::open(reader.as_raw_fd()), 4096, 0).expect("there is room");
        let mut seen = 0;
        io.complete(0, None, |_| seen += 1).expect("the ring works");
        assert_eq!(seen, 0, "nothing was written yet");
        let written = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                written.store(true, Ordering::SeqCst);
                writer.write_all(&[1; 4096]).expect("somebody reads");
            });
            drop(io);
            assert!(written.load(Ordering::SeqCst), "the slots went while a transfer was in flight");
        });
    }

    /// A thread has numbers for 16 rings: each gives back its own, and those without one work all the same.
    #[test]
    fn rings_beyond_those_that_have_a_number_work() {
        let Ok(first) = Uring::new(&Setup::of_test(2)) else {
            eprintln!("skipped: no io_uring");
            return;
        };
        let numbered = first.number.is_some();
        drop(first);
        let file = std::fs::File::open("/proc/self/exe").expect("it is there");
        for _ in 0..2 {
            let mut rings: Vec<Uring> = (0..20).map(|_| Uring::new(&Setup::of_test(2)).expect("as before")).collect();
            assert_eq!(rings.iter().filter(|ring| ring.number.is_some()).count(), if numbered { 16 } else { 0 });
            for ring in &mut rings {
                let mut begin = [0; 4];
                assert_eq!(ring.read(Fd::open(file.as_raw_fd()), &mut begin, 0), Ok(4));
                assert_eq!(&begin, b"\x7fELF");
                ring.push(0, Direction::Read, Fd::open(file.as_raw_fd()), 4096, 0).expect("there is room");
                let mut seen = 0;
                ring.complete(1, None, |done| seen += done.outcome.expect("read")).expect("the ring works");
                assert_eq!(seen, 4096);
            }
        }
    }
}
