#![expect(unsafe_code, reason = "hands memory to the kernel by system calls that no crate wraps")]
//! The kernel's own asynchronous I/O (io_submit, known by its library as libaio): what databases use.
//!
//! Transfers are handed over in one call and taken back in another. Only those with O_DIRECT are really in flight: of
//! buffered files the kernel moves the data within io_submit.

use super::slots::Slots;
use super::{Completion, Direction, Fd, Result, Setup, SetupError, TransferFlags};
use rustix::io::Errno;
use std::ffi::{c_long, c_ulong};
use std::time::Duration;

/// The name of a transfer that is waited for by itself.
const ALONE: u64 = u64::MAX;
const PREAD: u16 = 0;
const PWRITE: u16 = 1;
/// Since Linux 4.18.
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;

/// `struct iocb` of linux/aio_abi.h. Its first two words of 32 bits change places with the machine's byte order.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct ControlBlock {
    data: u64,
    key_and_flags: u64,
    opcode: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_descriptor: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

#[derive(Debug)]
pub(crate) struct Aio {
    context: c_ulong,
    slots: Slots,
    flags: TransferFlags,
    pushed: Vec<ControlBlock>,
    /// Room for pointers to them.
    pointers: Vec<*mut ControlBlock>,
    events: Vec<Event>,
    /// Handed over and not yet taken back: the kernel may still write to their slots.
    flying: u32,
    /// Completions that came while something else was waited for, and transfers that the kernel would not take.
    early: Vec<Completion>,
}

fn called(result: c_long) -> Result<usize> {
    usize::try_from(result)
        .map_err(|_| Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)))
}

fn completion(event: &Event) -> Completion {
    let outcome = usize::try_from(event.result)
        .map_err(|_| Errno::from_raw_os_error(i32::try_from(-event.result).unwrap_or(libc::EIO)));
    Completion { slot: event.data as u32, outcome }
}

impl Aio {
    fn control_block(
        &self,
        data: u64,
        direction: Direction,
        fd: Fd,
        memory: *mut u8,
        length: usize,
        offset: u64,
    ) -> ControlBlock {
        ControlBlock {
            data,
            // The flags are the later half of these two words, in either byte order.
            key_and_flags: u64::from(self.flags.on(direction)) << 32,
            opcode: if direction == Direction::Read { PREAD } else { PWRITE },
            descriptor: fd.number as u32,
            buffer: memory as u64,
            length: length as u64,
            offset: offset as i64,
            ..ControlBlock::default()
        }
    }

    /// Submits what is pushed. What the kernel refuses is complete with its error; what it has no room for stays.
    fn submit_pushed(&mut self) -> Result<()> {
        let mut handed = 0;
        while handed < self.pushed.len() {
            self.pointers.clear();
            self.pointers.extend(self.pushed[handed..].iter_mut().map(|block| &raw mut *block));
            let (pointers, count) = (self.pointers.as_mut_ptr(), self.pointers.len() as c_long);
            // SAFETY: the pointers are to control blocks that live through the call, which copies them. The memory that
            // they name is a slot's, or is borrowed until the transfer is complete.
            let result = called(unsafe { libc::syscall(libc::SYS_io_submit, self.context, count, pointers) });
            match result {
                Ok(taken) => {
                    self.flying += taken as u32;
                    handed += taken;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.flying > 0 => break,
                Err(errno @ (Errno::AGAIN | Errno::NOSYS)) => {
                    self.pushed.drain(..handed);
                    return Err(errno);
                }
                // The first of them is at fault.
                Err(errno) => {
                    let slot = self.pushed[handed].data as u32;
                    self.early.push(Completion { slot, outcome: Err(errno) });
                    handed += 1;
                }
            }
        }
        self.pushed.drain(..handed);
        Ok(())
    }

    /// Takes at least so many events, or those that come within the time; gives how many.
    fn reap(&mut self, least: u32, wait: Option<Duration>) -> Result<usize> {
        let mut time = wait.map(|wait| libc::timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: c_long::from(wait.subsec_nanos()),
        });
        let time = time.as_mut().map_or(std::ptr::null_mut(), |time| &raw mut *time);
        loop {
            // SAFETY: `events` has room for as many as are asked for, and `time` is null or a time that lives through the
            // call.
            let result = called(unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    c_long::from(least),
                    self.events.len() as c_long,
                    self.events.as_mut_ptr(),
                    time,
                )
            });
            match result {
                Err(Errno::INTR) if wait.is_none() => {}
                Err(Errno::INTR) => return Ok(0),
                Err(errno) => return Err(errno),
                Ok(count) => {
                    self.flying -= count as u32;
                    return Ok(count);
                }
            }
        }
    }

    fn transfer(&mut self, direction: Direction, fd: Fd, memory: *mut u8, length: usize, offset: u64) -> Result<usize> {
        self.pushed.push(self.control_block(ALONE, direction, fd, memory, length, offset));
        loop {
            self.submit_pushed()?;
            if let Some(refused) = self.early.iter().position(|early| early.slot == ALONE as u32) {
                return self.early.swap_remove(refused).outcome;
            }
            let count = self.reap(1, None)?;
            let mut alone = None;
            for event in &self.events[..count] {
                match event.data {
                    ALONE => alone = Some(completion(event).outcome),
                    _ => self.early.push(completion(event)),
                }
            }
            if let Some(outcome) = alone {
                return outcome;
            }
        }
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: the context is ours and given up here. The call waits for what is in flight.
        if called(unsafe { libc::syscall(libc::SYS_io_destroy, self.context) }).is_err() && self.flying > 0 {
            // The slots may still be the kernel's.
            self.slots.abandon();
        }
    }
}

impl Aio {
    pub(super) fn new(setup: &Setup) -> std::result::Result<Self, SetupError> {
        let mut context: c_ulong = 0;
        // SAFETY: the call writes the context's number to the variable.
        called(unsafe { libc::syscall(libc::SYS_io_setup, setup.depth + 1, &raw mut context) }).map_err(|errno| {
            let cure = match errno {
                Errno::AGAIN => "; raise fs.aio-max-nr, or lower threads or queue depth",
                Errno::NOSYS => "; this kernel has no AIO (CONFIG_AIO): use io-uring or psync",
                _ => "",
            };
            SetupError { call: "io_setup", errno, cure }
        })?;
        Ok(Self {
            context,
            slots: Slots::new(setup.depth, setup.block_bytes),
            flags: setup.flags,
            pushed: Vec::with_capacity(setup.depth as usize + 1),
            pointers: Vec::with_capacity(setup.depth as usize + 1),
            events: vec![Event::default(); setup.depth as usize + 1],
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
        self.pushed.push(self.control_block(u64::from(slot), direction, fd, memory, length, offset));
        Ok(())
    }

    pub(super) fn push_fsync(&mut self, slot: u32, fd: Fd, data_only: bool) -> Result<()> {
        let opcode = if data_only { FDSYNC } else { FSYNC };
        let descriptor = fd.number as u32;
        self.pushed.push(ControlBlock { data: u64::from(slot), opcode, descriptor, ..ControlBlock::default() });
        Ok(())
    }

    pub(super) fn submit(&mut self) -> Result<()> {
        self.submit_pushed()
    }

    pub(super) fn complete(
        &mut self,
        least: u32,
        wait: Option<Duration>,
        mut each: impl FnMut(Completion),
    ) -> Result<()> {
        self.submit_pushed()?;
        let early = u32::try_from(self.early.len()).unwrap_or(u32::MAX);
        self.early.drain(..).for_each(&mut each);
        let least = least.saturating_sub(early).min(self.flying);
        if self.flying == 0 {
            return Ok(());
        }
        let count = self.reap(least, wait)?;
        self.events[..count].iter().map(completion).for_each(each);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    fn context(depth: u32) -> Option<Aio> {
        match Aio::new(&Setup::of_test(depth)) {
            Ok(aio) => Some(aio),
            Err(error) => {
                eprintln!("skipped: {}: {}", error.call, error.errno);
                None
            }
        }
    }

    #[test]
    fn structures_are_the_kernels() {
        assert_eq!((size_of::<ControlBlock>(), size_of::<Event>()), (64, 32));
        assert_eq!(std::mem::offset_of!(ControlBlock, buffer), 24);
    }

    #[test]
    fn what_is_pushed_is_transferred_and_what_is_refused_is_told() {
        let Some(mut aio) = context(4) else { return };
        let file = tempfile::tempfile().expect("a temporary file");
        let fd = Fd::open(file.as_raw_fd());
        aio.slot(0).fill(b'a');
        aio.slot(2).fill(b'c');
        aio.push(0, Direction::Write, fd, 4096, 0).expect("room");
        aio.push(1, Direction::Write, Fd::open(-1), 4096, 0).expect("room");
        aio.push(2, Direction::Write, fd, 100, 4096).expect("room");
        let mut done = Vec::new();
        while done.len() < 3 {
            aio.complete(1, None, |completion| done.push((completion.slot, completion.outcome))).expect("it works");
        }
        done.sort_by_key(|(slot, _)| *slot);
        assert_eq!(done, [(0, Ok(4096)), (1, Err(Errno::BADF)), (2, Ok(100))]);
        assert_eq!(file.metadata().expect("it is open").len(), 4196);
        let mut back = [0; 2];
        file.read_exact_at(&mut back, 4095).expect("read");
        assert_eq!(&back, b"ac");
        // What is in flight beside one that is waited for by itself is not lost.
        aio.push(3, Direction::Read, fd, 4096, 0).expect("room");
        let mut buffer = [0; 200];
        assert_eq!(aio.read(fd, &mut buffer, 4096), Ok(100));
        assert_eq!(aio.read(Fd::open(-1), &mut buffer, 0), Err(Errno::BADF));
        let mut done = Vec::new();
        aio.complete(1, None, |completion| done.push((completion.slot, completion.outcome))).expect("it works");
        assert_eq!(done, [(3, Ok(4096))]);
        assert!(aio.slot(3).iter().all(|byte| *byte == b'a'));
        aio.complete(0, Some(Duration::ZERO), |_| panic!("nothing is in flight")).expect("it works");
    }
}
