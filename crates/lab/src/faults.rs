//! Fault injection for tests: one countdown shared by every fake of a machine, so that "the n-th call fails" ranges
//! over all of the lab's borders at once.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts calls and makes one of them fail.
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
    /// Nothing fails.
    #[must_use]
    pub const fn none() -> Self {
        Self { calls: AtomicU64::new(0), fail_at: u64::MAX }
    }

    /// The n-th call fails, counted from 0, and no other.
    #[must_use]
    pub const fn at(n: u64) -> Self {
        Self { calls: AtomicU64::new(0), fail_at: n }
    }

    /// Counts a call; whether it is the one to fail.
    pub fn strikes(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) == self.fail_at
    }

    /// Calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether the fault has struck.
    #[must_use]
    pub fn struck(&self) -> bool {
        self.calls() > self.fail_at
    }
}
