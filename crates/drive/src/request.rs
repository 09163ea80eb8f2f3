//! What a drive is asked for, and what it has done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The unit of addresses.
pub const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Read(Range<u64>),
    Write(Range<u64>),
    /// Everything that was acknowledged so far, onto the medium.
    Flush,
    /// These sectors are zeros from now on, or need not be kept: a write, unless the drive can forget them.
    Unmap(Range<u64>),
    /// These sectors are zeros from now on and have their place: a write without anything to come over the interface.
    Zero(Range<u64>),
    /// Something that costs no drive any time worth modelling.
    Free,
}

/// Completions in the order of their times, and of their arrival where those are equal.
#[derive(Debug, Default)]
pub(crate) struct Done {
    heap: BinaryHeap<Reverse<(u64, u64, u64)>>,
    count: u64,
}

impl Done {
    pub(crate) fn push(&mut self, at_ns: u64, id: u64) {
        self.heap.push(Reverse((at_ns, self.count, id)));
        self.count += 1;
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_ns, _, _))| *at_ns)
    }

    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<(u64, u64)> {
        let due = self.next().is_some_and(|at_ns| at_ns <= now_ns);
        if due { self.heap.pop().map(|Reverse((at_ns, _, id))| (at_ns, id)) } else { None }
    }
}

pub(crate) fn transfer_ns(bytes: u64, bytes_per_second: f64) -> u64 {
    (bytes as f64 * 1e9 / bytes_per_second).round() as u64
}
