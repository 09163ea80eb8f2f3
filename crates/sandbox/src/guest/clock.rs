//! Whether the guest's clock can be believed: its heartbeats against the host's clock.
//!
//! The agent beats four times a second by its own clock. A host that stalls (SIGSTOP, an overcommitted machine, a
//! suspended laptop) shows as one long interval between two beats. If both clocks saw the stall, figures of that
//! time include it; if only the host saw it, the guest lost time and its figures are too good. Either marks a trial.

use crate::frames::Heartbeat;
use std::time::{Duration, Instant};

pub const HEARTBEAT_PERIOD: Duration = Duration::from_millis(250);

/// An interval longer than the period by this much is a gap. Scheduling delays of a busy 100 Hz guest stay below.
pub const GAP_TOLERANCE: Duration = Duration::from_millis(500);

/// Most gaps kept; beyond them only counted.
const MAX_GAPS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// When it ended, from the first beat on, by the host's clock.
    pub at: Duration,
    pub host: Duration,
    pub guest: Duration,
    pub job: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClockReport {
    pub beats: u64,
    pub longest_host: Duration,
    pub longest_guest: Duration,
    /// Time between the first and the last beat by the host's clock.
    pub span_host: Duration,
    pub span_guest: Duration,
    /// Ticks of the time-stamp counter between the first and the last beat; `None` where it is absent or ran back.
    pub span_ticks: Option<u64>,
    /// Gaps, the first `MAX_GAPS` of them.
    pub gaps: Vec<Gap>,
    pub gap_count: u64,
}

impl ClockReport {
    /// How much faster the guest's clock ran than the host's, in parts per million, when the span is long enough for
    /// the channel's jitter (about a millisecond) not to matter.
    pub fn drift_ppm(&self) -> Option<f64> {
        (self.span_host >= Duration::from_secs(2))
            .then(|| (self.span_guest.as_secs_f64() / self.span_host.as_secs_f64() - 1.0) * 1e6)
    }

    /// Ticks of the time-stamp counter per second of the guest's clock.
    pub fn ticks_per_second(&self) -> Option<f64> {
        let ticks = self.span_ticks?;
        (self.span_guest >= Duration::from_secs(1)).then(|| ticks as f64 / self.span_guest.as_secs_f64())
    }

    /// What a reader of figures from this guest has to know, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(worst) = self.gaps.iter().max_by_key(|gap| gap.host.max(gap.guest)) {
            warnings.push(format!(
                "the guest stood still {} time(s), at worst for {} ({} by its own clock): the host was busy or stopped",
                self.gap_count,
                fstone_model::units::format_duration(worst.host),
                fstone_model::units::format_duration(worst.guest),
            ));
        }
        if let Some(drift) = self.drift_ppm().filter(|drift| drift.abs() > 10_000.0) {
            warnings.push(format!("the guest's clock ran {:+.1} % against the host's", drift / 1e4));
        }
        warnings
    }
}

#[derive(Debug, Default)]
pub(crate) struct ClockWatch {
    first: Option<(Instant, Heartbeat)>,
    last: Option<(Instant, Heartbeat)>,
    report: ClockReport,
}

impl ClockWatch {
    pub(crate) fn beat(&mut self, arrived: Instant, beat: Heartbeat) {
        let first = *self.first.get_or_insert((arrived, beat));
        let report = &mut self.report;
        report.beats += 1;
        if let Some((last_arrived, last)) = self.last {
            let host = arrived.saturating_duration_since(last_arrived);
            let guest = Duration::from_nanos(beat.monotonic_ns.saturating_sub(last.monotonic_ns));
            report.longest_host = report.longest_host.max(host);
            report.longest_guest = report.longest_guest.max(guest);
            if host.max(guest) > HEARTBEAT_PERIOD + GAP_TOLERANCE {
                report.gap_count += 1;
                if report.gaps.len() < MAX_GAPS {
                    let at = arrived.saturating_duration_since(first.0);
                    report.gaps.push(Gap { at, host, guest, job: beat.job });
                }
            }
        }
        report.span_host = arrived.saturating_duration_since(first.0);
        report.span_guest = Duration::from_nanos(beat.monotonic_ns.saturating_sub(first.1.monotonic_ns));
        report.span_ticks = beat.tsc.checked_sub(first.1.tsc).filter(|_| first.1.tsc != 0 && beat.tsc != 0);
        self.last = Some((arrived, beat));
    }

    pub(crate) const fn report(&self) -> &ClockReport {
        &self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(beats: &[(u64, u64)]) -> ClockReport {
        let start = Instant::now();
        let mut watch = ClockWatch::default();
        for (count, &(host_ms, guest_ms)) in beats.iter().enumerate() {
            let beat = Heartbeat {
                count: count as u64,
                monotonic_ns: guest_ms * 1_000_000,
                tsc: 1000 + guest_ms * 2_000_000,
                job: Some(4),
            };
            watch.beat(start + Duration::from_millis(host_ms), beat);
        }
        watch.report().clone()
    }

    #[test]
    fn an_even_beat_has_no_gap_and_tells_the_tick_rate() {
        let beats: Vec<(u64, u64)> = (0..20).map(|n| (n * 250 + n % 3, 70 + n * 250)).collect();
        let report = watch(&beats);
        assert_eq!((report.beats, report.gap_count), (20, 0));
        assert!(report.drift_ppm().unwrap().abs() < 1000.0);
        assert_eq!(report.ticks_per_second(), Some(2e9));
        assert!(report.warnings().is_empty());
    }

    #[test]
    fn a_stall_seen_by_both_clocks_and_one_seen_by_the_host_only() {
        let both = watch(&[(0, 0), (250, 250), (3250, 3250), (3500, 3500)]);
        assert_eq!(both.gap_count, 1);
        assert_eq!(both.gaps[0].guest, Duration::from_secs(3));
        assert_eq!(both.gaps[0].job, Some(4));
        assert_eq!(both.warnings().len(), 1);
        let lost = watch(&[(0, 0), (250, 250), (4250, 500)]);
        assert_eq!((lost.gap_count, lost.gaps[0].host), (1, Duration::from_secs(4)));
        assert_eq!(lost.warnings().len(), 2, "{:?}", lost.warnings());
    }

    #[test]
    fn a_counter_that_runs_back_or_is_absent_is_not_a_clock() {
        let start = Instant::now();
        let mut watch = ClockWatch::default();
        watch.beat(start, Heartbeat { tsc: 500, ..Heartbeat::default() });
        watch.beat(start, Heartbeat { tsc: 400, ..Heartbeat::default() });
        assert_eq!(watch.report().span_ticks, None);
        assert_eq!(watch.report().ticks_per_second(), None);
    }
}
