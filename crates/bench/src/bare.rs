#![expect(unsafe_code, reason = "hands memory to the kernel through a ring, and asks it for a descriptor table")]
//! Bare loops: nothing but the calls, and one look at the clock for every few hundred of them.

use crate::side::{Measured, Trouble};
use io_uring::{IoUring, opcode, types};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Calls between two looks at the clock.
const STRIDE: u32 = 512;

/// What the engine's threads do, too: a descriptor table of the thread's own, as a process of one thread has it anyway.
/// With a shared one each call costs some 30 ns more.
fn own_table() {
    // SAFETY: beyond the last descriptor there is none to close: all that is left of the call is the new table. Where the
    // kernel refuses, the table stays the process's.
    unsafe { libc::syscall(libc::SYS_close_range, u32::MAX, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
}

fn step(state: &mut u64) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
}

/// xorshift64*: the cheapest generator whose high bits are good. Gives a number below `bound`.
fn draw(state: &mut u64, bound: u64) -> u64 {
    step(state);
    let random = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

/// Random 4 KiB reads of a file by some threads; per second.
pub(crate) fn random_reads(file: &Path, size: u64, threads: u64, time: Duration) -> Measured {
    reads(threads, time, || {
        own_table();
        let file = File::open(file).map_err(Trouble::failed)?;
        Ok(move |state: &mut u64, buffer: &mut [u8]| rustix::io::pread(&file, buffer, draw(state, size / 4096) * 4096))
    })
}

/// What some threads read in blocks of 4 KiB, each by what `ready` gives it; per second of the one interval from when all are
/// ready to when the last is done, as the engine has it. Were each to count its own time, more threads than processors
/// would come to more than they did: a thread's clock would run only from its first turn to its last. Compiled for each
/// reader, so nothing but its calls is in the loop.
fn reads<R>(threads: u64, time: Duration, ready: impl Fn() -> Result<R, Trouble> + Sync) -> Measured
where
    R: FnMut(&mut u64, &mut [u8]) -> rustix::io::Result<usize>,
{
    let all_ready = Barrier::new(threads as usize);
    let one = |thread: u64| -> Result<(u64, Instant, Instant), Trouble> {
        let read = ready();
        let mut buffer = vec![0u8; 4096];
        let mut state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(thread + 1);
        all_ready.wait();
        let (mut read, start) = (read?, Instant::now());
        let mut reads = 0u64;
        loop {
            for _ in 0..STRIDE {
                if read(&mut state, buffer.as_mut_slice()).map_err(Trouble::failed)? != buffer.len() {
                    return Err(Trouble::failed("short read"));
                }
            }
            reads += u64::from(STRIDE);
            let now = Instant::now();
            if now - start >= time {
                return Ok((reads, start, now));
            }
        }
    };
    let ends = std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        let ends = threads.into_iter().map(|thread| thread.join().map_err(|_| Trouble::failed("panic"))?);
        ends.collect::<Result<Vec<_>, Trouble>>()
    })?;
    let reads: u64 = ends.iter().map(|(reads, ..)| reads).sum();
    let (start, end) = (ends.iter().map(|(_, start, _)| start).min(), ends.iter().map(|(.., end)| end).max());
    let Some((start, end)) = start.zip(end) else { return Err(Trouble::failed("no thread")) };
    Ok(reads as f64 / (*end - *start).as_secs_f64())
}

/// The same by one thread through a ring, always `depth` at once: registered memory and file, one issuer; per second.
pub(crate) fn ring_reads(file: &Path, size: u64, depth: u32, time: Duration) -> Measured {
    own_table();
    let file = File::open(file).map_err(Trouble::failed)?;
    let mut memory = vec![0u8; depth as usize * 4096];
    let mut ring: IoUring =
        IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(depth).map_err(Trouble::failed)?;
    let region = libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
    // SAFETY: `memory` is declared before `ring`, outlives it, and is not resized.
    unsafe { ring.submitter().register_buffers(&[region]) }.map_err(Trouble::failed)?;
    ring.submitter().register_files(&[file.as_raw_fd()]).map_err(Trouble::failed)?;
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let start = Instant::now();
    let mut reads = 0u64;
    loop {
        for _ in 0..STRIDE.div_ceil(depth) {
            for slot in memory.chunks_exact_mut(4096) {
                let offset = draw(&mut state, size / 4096) * 4096;
                let read = opcode::ReadFixed::new(types::Fixed(0), slot.as_mut_ptr(), 4096, 0).offset(offset).build();
                // SAFETY: the slot's memory outlives the ring, and nothing reads it.
                unsafe { ring.submission().push(&read) }.map_err(Trouble::failed)?;
            }
            ring.submit_and_wait(depth as usize).map_err(Trouble::failed)?;
            if ring.completion().any(|done| done.result() != 4096) {
                return Err(Trouble::failed("short read"));
            }
            reads += u64::from(depth);
        }
        let elapsed = start.elapsed();
        if elapsed >= time {
            return Ok(reads as f64 / elapsed.as_secs_f64());
        }
    }
}

/// Nothing but arithmetic in registers by some threads, in rounds per second: what two of the machine's processors can
/// do more than one, whatever the program.
pub(crate) fn arithmetic(threads: u64, time: Duration) -> Measured {
    let one = |thread: u64| -> f64 {
        let mut state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(thread + 1);
        let start = Instant::now();
        let mut rounds = 0u64;
        loop {
            for _ in 0..STRIDE {
                step(&mut state);
            }
            std::hint::black_box(state);
            rounds += u64::from(STRIDE);
            let elapsed = start.elapsed();
            if elapsed >= time {
                return rounds as f64 / elapsed.as_secs_f64();
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| Trouble::failed("panic"))).sum()
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Create,
    Stat,
    Unlink,
}

/// Does it to files file0…; per second. In a thread of its own, as the engine's loads are: one that has just made the files
/// finds more of them in its processor's cache, and is a tenth faster for it.
pub(crate) fn names(directory: &Path, count: u64, what: Names) -> Measured {
    in_a_thread(|| names_here(directory, count, what))
}

fn in_a_thread(measure: impl FnOnce() -> Measured + Send) -> Measured {
    std::thread::scope(|scope| scope.spawn(measure).join().map_err(|_| Trouble::failed("panic"))?)
}

fn names_here(directory: &Path, count: u64, what: Names) -> Measured {
    own_table();
    let directory = File::open(directory).map_err(Trouble::failed)?;
    let directory = directory.as_fd();
    let mut path = *b"file\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let start = Instant::now();
    for number in 0..count {
        let name = name(&mut path, number);
        match what {
            Names::Create => {
                let flags = OFlags::CREATE | OFlags::RDWR | OFlags::TRUNC | OFlags::CLOEXEC;
                drop(rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o644)).map_err(Trouble::failed)?);
            }
            Names::Stat => {
                rustix::fs::statat(directory, name, AtFlags::empty()).map_err(Trouble::failed)?;
            }
            Names::Unlink => rustix::fs::unlinkat(directory, name, AtFlags::empty()).map_err(Trouble::failed)?,
        }
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

/// "file" and the number, as C has it.
fn name(buffer: &mut [u8; 25], number: u64) -> &std::ffi::CStr {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    let end = 4 + digits.len();
    buffer[4..end].copy_from_slice(digits);
    buffer[end] = 0;
    std::ffi::CStr::from_bytes_with_nul(&buffer[..=end]).unwrap_or_default()
}

/// Random 4 KiB reads of many open files, whose descriptors some threads share; per second.
pub(crate) fn kept_reads(directory: &Path, files: u64, size: u64, threads: u64, time: Duration) -> Measured {
    let mut path = *b"file\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let directory = File::open(directory).map_err(Trouble::failed)?;
    let open = |number| {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        rustix::fs::openat(&directory, name(&mut path, number), flags, Mode::empty()).map_err(Trouble::failed)
    };
    let open = (0..files).map(open).collect::<Result<Vec<_>, Trouble>>()?;
    reads(threads, time, || {
        Ok(|state: &mut u64, buffer: &mut [u8]| {
            let file = &open[draw(state, files) as usize];
            rustix::io::pread(file, buffer, draw(state, size / 4096) * 4096)
        })
    })
}
