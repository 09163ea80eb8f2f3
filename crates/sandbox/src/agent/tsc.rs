#![expect(unsafe_code, reason = "reading the time-stamp counter")]
//! The guest's clocks, and whether the time-stamp counter may stand in for them.
//!
//! In user-mode Linux every clock read is a system call (about 15 µs), while the counter costs nothing and is the
//! host's own. It is a sound clock where the processor promises a constant rate and two measurements agree.

use crate::frames::TscFacts;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Half of the time spent measuring the rate at start.
const MEASURE: Duration = Duration::from_millis(10);

pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

pub(crate) fn since_boot_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The counter, 0 where there is none.
#[cfg(target_arch = "x86_64")]
pub(crate) fn read() -> u64 {
    // SAFETY: every x86-64 processor has it, and Linux does not forbid it to processes unless asked to by prctl.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn read() -> u64 {
    0
}

#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn is_invariant() -> bool {
    false
}

/// Measures the counter against the monotonic clock, twice.
pub(crate) fn facts() -> TscFacts {
    let mut reads: Vec<u64> = (0..9)
        .map(|_| {
            let before = monotonic_ns();
            monotonic_ns() - before
        })
        .collect();
    reads.sort_unstable();
    let clock_read_ns = reads[reads.len() / 2].min(u64::from(u32::MAX)) as u32;
    if read() == 0 {
        return TscFacts { clock_read_ns, ..TscFacts::default() };
    }
    let rate = || {
        let (ticks, ns) = (read(), monotonic_ns());
        std::thread::sleep(MEASURE);
        // Read in the same order, so the cost of a clock read cancels.
        let (ticks_after, ns_after) = (read(), monotonic_ns());
        ticks_after.saturating_sub(ticks) as f64 * 1e9 / ns_after.saturating_sub(ns).max(1) as f64
    };
    let (first, second) = (rate(), rate());
    let mean = (first + second) / 2.0;
    TscFacts {
        present: true,
        invariant: is_invariant(),
        ticks_per_second: mean as u64,
        disagreement_ppm: ((first - second).abs() / mean * 1e6) as u32,
        clock_read_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_runs_forward_and_its_rate_is_plausible() {
        let facts = facts();
        if facts.present {
            let (before, after) = (read(), read());
            assert!(after >= before);
            assert!((100_000_000..20_000_000_000).contains(&facts.ticks_per_second), "{facts:?}");
        }
    }
}
