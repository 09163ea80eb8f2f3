//! Whether a load's rate was the same all along: a mean over two levels describes neither.

use fstone_model::{LoadReport, Trial, units::format_duration};
use fstone_stats::{
    Sample,
    series::{Stationarity, stationarity},
};
use std::time::Duration;

/// Adds a warning to the trial for each load whose rate changed while it ran. Whatever carried the trial out, this is
/// where its series is judged.
pub(crate) fn mark(trial: &mut Trial) {
    let found: Vec<String> = trial
        .steps
        .iter()
        .filter_map(|step| Some(format!("{}: {}", step.step, unsteady(step.load.as_deref()?, trial.seed)?)))
        .collect();
    trial.warnings.extend(found);
}

/// What a reader has to know about the load's course; `None` when it was steady, or too short to tell (20 points).
fn unsteady(report: &LoadReport, seed: u64) -> Option<String> {
    let whole = report.whole_points();
    let series = Sample::new(whole.iter().map(|(_, point)| point.operations as f64).collect()).ok()?;
    let interval = report.series_interval_ns.max(1);
    // No finer than the points are.
    let told = |ns: u64| {
        let points = ns.saturating_add(interval / 2) / interval;
        format_duration(Duration::from_nanos(points.saturating_mul(interval)))
    };
    let after = |place: usize| told(whole.get(place).map_or(report.running_ns, |(begin, _)| *begin));
    let all = told(report.running_ns);
    match stationarity(&series, seed) {
        Stationarity::Stationary | Stationarity::TooShort => None,
        Stationarity::WarmUp { until_index } => Some(format!(
            "the first {} of {all} ran at another rate than the rest (warm-up); the figures cover both",
            after(until_index)
        )),
        Stationarity::Shifted { at } => {
            let times: Vec<String> = at.into_iter().map(after).collect();
            Some(format!("its rate changed after {} of {all}; the figures cover both parts", times.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::load::{PhaseReport, SeriesPoint};

    /// The last point is cut short.
    fn report(points: usize, rate: impl Fn(usize) -> u64) -> LoadReport {
        let point =
            |index| SeriesPoint { operations: rate(index) + (index as u64 * 37) % 11, ..SeriesPoint::default() };
        LoadReport {
            series: (0..points).map(point).collect(),
            series_interval_ns: 1_000_000_000,
            running_ns: points as u64 * 1_000_000_000 - 700_000_000,
            ..LoadReport::default()
        }
    }

    #[test]
    fn a_load_that_changes_its_rate_is_marked() {
        assert_eq!(unsteady(&report(61, |_| 1000), 1), None);
        let told = unsteady(&report(61, |second| if second < 45 { 1000 } else { 800 }), 1);
        let expected = "its rate changed after 45 s of 1 min; the figures cover both parts";
        assert_eq!(told.as_deref(), Some(expected));
        let told = unsteady(&report(61, |second| if second < 10 { 500 } else { 1000 }), 1).expect("a warm-up");
        // Where a warm-up ends is an estimate, and errs on the long side.
        let seconds: u64 = told["the first ".len()..].split(' ').next().and_then(|n| n.parse().ok()).expect("seconds");
        assert!((10..=30).contains(&seconds) && told.contains(" s of 1 min ran at another rate"), "{told}");
    }

    #[test]
    fn what_is_too_short_to_tell_is_not_marked() {
        assert_eq!(unsteady(&report(20, |second| second as u64 * 100), 1), None, "19 whole points");
        assert_eq!(unsteady(&LoadReport::default(), 1), None);
        // A point that is cut short is no change, at the end of every phase.
        assert_eq!(unsteady(&report(41, |second| if second < 40 { 1000 } else { 300 }), 1), None);
        let phase = || PhaseReport { elapsed_ns: 20_300_000_000, ..PhaseReport::default() };
        let phases = vec![phase(), phase(), phase()];
        let running_ns = phases.iter().map(|phase| phase.elapsed_ns).sum();
        let cut_short = report(63, |second| if second % 21 < 20 { 1000 } else { 300 });
        assert_eq!(unsteady(&LoadReport { phases, running_ns, ..cut_short }, 1), None);
    }
}
