#![expect(unsafe_code, reason = "reading the time-stamp counter")]
//! The guest's clocks, and whether the time-stamp counter may stand in for them.
//!
//! In user-mode Linux every clock read is a system call (about 15 µs), while the counter costs nothing and is the
//! host's own. It is a sound clock where the processor promises a constant rate and two measurements agree.

use crate::frames::TscFacts;
use rustix::time::{ClockId, clock_gettime};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Least time between two readings that a rate is worked out from.
const APART: Duration = Duration::from_millis(10);

/// Readings of the counter and the clock, in nanoseconds, that the rate is worked out from.
static READINGS: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

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

/// Reads the counter and the clock for [`facts`], which needs three such readings. It sleeps only when the last one is too
/// near: an agent takes them between the duties that it has anyway, for in a guest a sleep takes one or two ticks of
/// 10 ms.
pub(crate) fn take_reading() {
    let mut readings = READINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, last)) = readings.last() {
        let since = Duration::from_nanos(monotonic_ns().saturating_sub(*last));
        std::thread::sleep(APART.saturating_sub(since));
    }
    // Always in this order, so the cost of a clock read cancels.
    readings.push((read(), monotonic_ns()));
}

pub(crate) fn facts() -> &'static TscFacts {
    static FOUND: OnceLock<TscFacts> = OnceLock::new();
    FOUND.get_or_init(measured)
}

/// Measures the counter against the monotonic clock, twice.
fn measured() -> TscFacts {
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
    let (first, second) = loop {
        if let [a, b, c, ..] = READINGS.lock().unwrap_or_else(PoisonError::into_inner)[..] {
            break (rate(a, b), rate(b, c));
        }
        take_reading();
    };
    let mean = (first + second) / 2.0;
    TscFacts {
        present: true,
        invariant: is_invariant(),
        ticks_per_second: mean as u64,
        disagreement_ppm: ((first - second).abs() / mean * 1e6) as u32,
        clock_read_ns,
    }
}

/// Ticks per second between two readings.
fn rate(earlier: (u64, u64), later: (u64, u64)) -> f64 {
    later.0.saturating_sub(earlier.0) as f64 * 1e9 / later.1.saturating_sub(earlier.1).max(1) as f64
}

/// Tells time without a system call where the counter is sound, so that what is timed is not what a clock read costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    ticks_per_second: Option<u64>,
    start: u64,
}

impl Stopwatch {
    /// The counter may be wrong by so much before the kernel's clock is used instead.
    const TOLERATED_PPM: u32 = 2000;

    pub(crate) fn new(facts: &TscFacts) -> Self {
        let sound = facts.present && facts.invariant && facts.disagreement_ppm <= Self::TOLERATED_PPM;
        let ticks_per_second = sound.then_some(facts.ticks_per_second).filter(|&ticks| ticks > 0);
        Self { ticks_per_second, start: 0 }.started()
    }

    pub(crate) fn started(self) -> Self {
        let start = if self.ticks_per_second.is_some() { read() } else { monotonic_ns() };
        Self { start, ..self }
    }

    pub(crate) fn elapsed(self) -> Duration {
        Duration::from_nanos(match self.ticks_per_second {
            Some(rate) => (u128::from(read().saturating_sub(self.start)) * 1_000_000_000 / u128::from(rate)) as u64,
            None => monotonic_ns().saturating_sub(self.start),
        })
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
