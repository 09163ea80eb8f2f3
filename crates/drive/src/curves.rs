//! What a model comes to: a drive of it, asked in ways that everybody asks drives.

use crate::{Drive, Model, Request, SECTOR_BYTES};
use std::ops::Range;

const SMALL: u64 = 4096 / SECTOR_BYTES;

const LARGE: u64 = (1 << 20) / SECTOR_BYTES;

/// A good enough sequence of random numbers that is the same everywhere (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(word ^ word >> 31) * u128::from(end)) >> 64) as u64
    }
}

/// Has requests done from a time on, so many at once. Gives when the last was, and the sum of the times that each took.
fn closed_loop(
    drive: &mut Drive,
    from_ns: u64,
    depth: usize,
    count: usize,
    mut next: impl FnMut() -> Request,
) -> (u64, u64) {
    let mut begun = vec![0u64; count];
    let (mut now, mut issued, mut done, mut sum) = (from_ns, 0, 0, 0);
    while done < count {
        while issued < count && issued - done < depth {
            begun[issued] = now;
            drive.submit(now, issued as u64, &next());
            issued += 1;
        }
        let Some(event) = drive.next_event() else { break };
        now = now.max(event);
        while let Some((at_ns, id)) = drive.completed(now) {
            sum += at_ns - begun[id as usize];
            done += 1;
        }
    }
    (now, sum)
}

fn small(random: &mut Random, sectors: u64) -> Range<u64> {
    let at = random.below(sectors / SMALL - 1) * SMALL;
    at..at + SMALL
}

/// Reads of 4 KiB anywhere, so many at a time: how many a second, and the mean time of one in nanoseconds.
pub fn random_reads(model: &Model, capacity_bytes: u64, depth: usize, count: usize) -> (f64, f64) {
    let mut drive = Drive::new(model, capacity_bytes);
    let mut random = Random(1);
    let sectors = capacity_bytes / SECTOR_BYTES;
    let (took, sum) = closed_loop(&mut drive, 0, depth, count, || Request::Read(small(&mut random, sectors)));
    (count as f64 * 1e9 / took as f64, sum as f64 / count as f64)
}

/// Writes of 4 KiB anywhere, each made durable by a flush if the drive gets any: the mean time of one with its flush in nanoseconds.
pub fn durable_writes(model: &Model, capacity_bytes: u64, count: usize) -> f64 {
    let mut drive = Drive::new(model, capacity_bytes);
    let mut random = Random(2);
    let sectors = capacity_bytes / SECTOR_BYTES;
    let flushed = !drive.is_durable();
    let mut flushes = true;
    let (took, _) = closed_loop(&mut drive, 0, 1, if flushed { 2 * count } else { count }, || {
        flushes = flushed && !flushes;
        if flushes { Request::Flush } else { Request::Write(small(&mut random, sectors)) }
    });
    took as f64 / count as f64
}

/// Writes of 4 KiB anywhere with 32 at a time, after so many others: how many a second.
pub fn random_writes(model: &Model, capacity_bytes: u64, before: usize, count: usize) -> f64 {
    let mut drive = Drive::new(model, capacity_bytes);
    let mut random = Random(3);
    let sectors = capacity_bytes / SECTOR_BYTES;
    let mut write = || Request::Write(small(&mut random, sectors));
    let (begun, _) = closed_loop(&mut drive, 0, 32, before, &mut write);
    let (ended, _) = closed_loop(&mut drive, begun, 32, count, &mut write);
    count as f64 * 1e9 / (ended - begun) as f64
}

/// One stream of reads or writes of 1 MiB from a place on, 0 to 1, so many at a time: bytes a second.
pub fn sequential(model: &Model, capacity_bytes: u64, place: f64, writes: bool, depth: usize) -> f64 {
    const COUNT: u64 = 256;
    // The way there is not part of the rate, nor what a write cache takes at first.
    let before = if writes { 1024 } else { 32 };
    let mut drive = Drive::new(model, capacity_bytes);
    let sectors = capacity_bytes / SECTOR_BYTES;
    let mut at = (place * sectors.saturating_sub((COUNT + before) * LARGE) as f64) as u64 / LARGE * LARGE;
    let mut next = || {
        at += LARGE;
        if writes { Request::Write(at - LARGE..at) } else { Request::Read(at - LARGE..at) }
    };
    let (begun, _) = closed_loop(&mut drive, 0, depth, before as usize, &mut next);
    let (ended, _) = closed_loop(&mut drive, begun, depth, COUNT as usize, &mut next);
    (COUNT * LARGE * SECTOR_BYTES) as f64 * 1e9 / (ended - begun) as f64
}
