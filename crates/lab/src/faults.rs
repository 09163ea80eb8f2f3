//! Fault injection for tests: one countdown shared by every fake of a machine, so that "the n-th call fails" ranges
//! over all of the lab's borders at once.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub struct Faults {
    calls: AtomicU64,
    fail_at: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self::none()
    }
}

impl Faults {
    pub const fn none() -> Self {
        Self { calls: AtomicU64::new(0), fail_at: u64::MAX }
    }

    /// The n-th call fails, counted from 0, and no other.
    pub const fn at(n: u64) -> Self {
        Self { calls: AtomicU64::new(0), fail_at: n }
    }

    pub fn strikes(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) == self.fail_at
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub fn struck(&self) -> bool {
        self.calls() > self.fail_at
    }
}
