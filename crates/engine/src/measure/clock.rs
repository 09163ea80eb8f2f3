#![expect(unsafe_code, reason = "reads the processor's time stamp counter and the process's CPU time")]
//! The clock of operations: the time stamp counter where it can be trusted, else `clock_gettime`.
//!
//! The counter is used when the processor says that it is invariant, the kernel has not struck it off its list of
//! clock sources (an own kernel in user mode, which has no such list, hands the processor's on unchanged), and two
//! calibrations against CLOCK_MONOTONIC_RAW agree. Under user-mode kernels a clock read is a system call of
//! about 15 µs, so there it is the difference between measuring the filesystem and measuring the clock.

use fstone_model::load::{ClockReport, ThreadUsage};
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;
use std::time::Duration;

/// Length of one calibration: 50 ns of error at either end of 10 ms are 10 ppm.
const CALIBRATION: Duration = Duration::from_millis(10);
/// Largest relative difference between two calibrations of a counter that is to be trusted.
const AGREEMENT: f64 = 200e-6;

/// A clock; [`Clock::now`] gives ticks, which are nanoseconds only after [`Clock::nanoseconds`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    counter: bool,
    /// Nanoseconds per tick × 2^32.
    scale: u64,
    cost_ns: f64,
    resolution_ns: f64,
}

impl Clock {
    /// The process's clock, probed and calibrated on first use (about 20 ms).
    pub(crate) fn get() -> Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(Self::probe)
    }

    fn probe() -> Self {
        let mut clock =
            calibrate_counter().unwrap_or(Self { counter: false, scale: 1 << 32, cost_ns: 0.0, resolution_ns: 0.0 });
        let reads = 2000;
        let start = raw_ns();
        let first = clock.now();
        let (mut previous, mut smallest) = (first, u64::MAX);
        for _ in 0..reads {
            let now = clock.now();
            if now > previous {
                smallest = smallest.min(now - previous);
            }
            previous = now;
        }
        clock.cost_ns = raw_ns().saturating_sub(start) as f64 / f64::from(reads);
        clock.resolution_ns =
            if smallest == u64::MAX { 0.0 } else { smallest as f64 * clock.scale as f64 / (1u64 << 32) as f64 };
        clock
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        #[cfg(test)]
        if let Some(now) = simulated::read(self) {
            return now;
        }
        if self.counter { read_counter() } else { clock_ns(ClockId::Monotonic) }
    }

    pub(crate) fn sleep(&self, time: Duration) {
        #[cfg(test)]
        if simulated::advance(self, time) {
            return;
        }
        std::thread::sleep(time);
    }

    #[inline]
    pub(crate) fn nanoseconds(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64
    }

    pub(crate) fn ticks(&self, time: Duration) -> u64 {
        u64::try_from((time.as_nanos() << 32) / u128::from(self.scale)).unwrap_or(u64::MAX)
    }

    /// Nanoseconds from `start` to `end`; 0 when the counter of another processor lags by some ticks.
    #[inline]
    pub(crate) fn between(&self, start: u64, end: u64) -> u64 {
        self.nanoseconds(end.saturating_sub(start))
    }

    pub(crate) fn report(&self) -> ClockReport {
        ClockReport {
            source: if self.counter { "tsc" } else { "clock_gettime" }.into(),
            cost_ns: self.cost_ns,
            resolution_ns: self.resolution_ns,
        }
    }
}

/// Time that passes only when it is read or slept through, for tests of pace: in the thread that begins it.
#[cfg(test)]
pub(crate) mod simulated {
    use super::Clock;
    use std::cell::Cell;
    use std::time::Duration;

    pub(crate) const READING: Duration = Duration::from_nanos(50);

    thread_local! {
        static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    }

    pub(crate) fn begin() {
        NOW.set(Some(1 << 40));
    }

    pub(super) fn read(clock: &Clock) -> Option<u64> {
        advance(clock, READING);
        NOW.get()
    }

    /// Lets time pass; `false` where it is not simulated.
    pub(crate) fn advance(clock: &Clock, time: Duration) -> bool {
        let later = NOW.get().map(|now| now + clock.ticks(time));
        NOW.set(later);
        later.is_some()
    }

    pub(crate) fn now() -> u64 {
        NOW.get().unwrap_or_default()
    }
}

fn clock_ns(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn raw_ns() -> u64 {
    clock_ns(ClockId::MonotonicRaw)
}

/// CLOCK_MONOTONIC, which all processes of a machine have in common.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// The smallest step of [`thread_cpu_ns`]: a tick of up to 10 ms on kernels without a finer clock for it.
pub(crate) fn thread_cpu_grain_ns() -> u64 {
    static GRAIN: OnceLock<u64> = OnceLock::new();
    let step = || {
        let start = thread_cpu_ns();
        loop {
            let now = thread_cpu_ns();
            if now > start {
                break now - start;
            }
        }
    };
    // The first begins anywhere within one.
    *GRAIN.get_or_init(|| (0..3).map(|_| step()).skip(1).min().unwrap_or(0))
}

fn usage(whose: libc::c_int) -> libc::rusage {
    // SAFETY: an all-zero rusage is valid, and getrusage fills it in.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(whose, &raw mut usage);
        usage
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// What the calling thread has used.
pub fn thread_usage() -> ThreadUsage {
    let usage = usage(libc::RUSAGE_THREAD);
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or_default();
    ThreadUsage {
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
        context_switches: count(usage.ru_nvcsw) + count(usage.ru_nivcsw),
        major_faults: count(usage.ru_majflt),
        minor_faults: count(usage.ru_minflt),
    }
}

/// User and system time of the process.
pub(crate) fn process_cpu_ns() -> (u64, u64) {
    let usage = usage(libc::RUSAGE_SELF);
    (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime))
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn read_counter() -> u64 {
    // SAFETY: RDTSC has no preconditions; every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn read_counter() -> u64 {
    raw_ns()
}

#[cfg(target_arch = "x86_64")]
fn counter_is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER_MANAGEMENT && __cpuid(POWER_MANAGEMENT).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_invariant() -> bool {
    false
}

/// Whether the kernel trusts the counter, or is not in a position to know.
fn kernel_accepts_counter() -> bool {
    let sources = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    // The processor's counter knows nothing of a time that is simulated.
    if std::fs::read_to_string(sources).is_ok_and(|list| list.contains("time-travel")) {
        return false;
    }
    match std::fs::read_to_string(sources) {
        Ok(list) if list.split_whitespace().any(|source| source == "tsc") => true,
        _ => std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|info| info.contains("User Mode Linux")),
    }
}

/// (CLOCK_MONOTONIC_RAW, counter) at one moment: of several readings the one least disturbed.
fn pair() -> (u64, u64) {
    (0..16)
        .map(|_| {
            let before = read_counter();
            let time = raw_ns();
            let after = read_counter();
            (after.saturating_sub(before), time, before + after.saturating_sub(before) / 2)
        })
        .min()
        .map(|(_, time, counter)| (time, counter))
        .expect("sixteen readings")
}

fn calibrate_counter() -> Option<Clock> {
    if !counter_is_invariant() || !kernel_accepts_counter() {
        return None;
    }
    let start = pair();
    std::thread::sleep(CALIBRATION);
    let middle = pair();
    std::thread::sleep(CALIBRATION);
    let end = pair();
    let rate = |from: (u64, u64), to: (u64, u64)| {
        to.0.checked_sub(from.0).zip(to.1.checked_sub(from.1)).map(|(ns, ticks)| ns as f64 / ticks as f64)
    };
    let (first, second, whole) = (rate(start, middle)?, rate(middle, end)?, rate(start, end)?);
    let sound = whole.is_finite() && whole > 0.01 && whole < 100.0 && (first / second - 1.0).abs() < AGREEMENT;
    sound.then(|| Clock {
        counter: true,
        scale: (whole * (1u64 << 32) as f64).round() as u64,
        cost_ns: 0.0,
        resolution_ns: 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_agrees_with_the_kernel() {
        let clock = Clock::get();
        let (start, kernel_start) = (clock.now(), raw_ns());
        std::thread::sleep(Duration::from_millis(50));
        let (end, kernel_end) = (clock.now(), raw_ns());
        let (ours, kernel) = (clock.between(start, end) as f64, (kernel_end - kernel_start) as f64);
        assert!((ours / kernel - 1.0).abs() < 0.01, "{ours} against {kernel} ns");
        assert!(clock.cost_ns > 0.0);
        let report = clock.report();
        assert!(report.source == "tsc" || report.source == "clock_gettime");
    }

    #[test]
    fn ticks_and_nanoseconds_invert() {
        let clock = Clock::get();
        for ns in [1_000u64, 1_000_000_000, 86_400_000_000_000] {
            let back = clock.nanoseconds(clock.ticks(Duration::from_nanos(ns)));
            assert!(back.abs_diff(ns) <= 2 + ns / 1_000_000_000, "{ns} became {back}");
        }
        assert_eq!(clock.between(10, 5), 0);
    }
}
