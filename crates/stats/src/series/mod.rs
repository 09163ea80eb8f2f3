//! Series: throughput over a trial's seconds, or a cell's figure over many runs.

mod change_point;
mod warm_up;

pub use change_point::{ChangePoint, ChangePointOptions, FEWEST_STILL, change_points, newest_apart, newest_unproven};
pub use warm_up::warm_up;

use serde::{Deserialize, Serialize};

use crate::Sample;

/// Below this many points nothing is said of a series.
pub const MIN_POINTS: usize = 20;

/// Whether the figure of a trial speaks for all of its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stationarity {
    Stationary,
    /// The start differs; from `until_index` on no change was found. (A lasting shift in the first
    /// half is told as a warm-up too: from the series alone they are the same.)
    WarmUp {
        /// The first point after the warm-up.
        until_index: usize,
    },
    /// The level changed later than a warm-up could.
    Shifted {
        /// The first point after each change.
        at: Vec<usize>,
    },
    /// Fewer than [`MIN_POINTS`] points.
    TooShort,
}

/// Judges the series of one trial, at the 1 % level.
///
/// Change points (see [`change_points`]) are permuted in blocks of ∛n neighbours, because the
/// seconds of one trial are not independent. When all changes lie in the first half, it was a
/// warm-up, and its end is the later of the last change and the cut of MSER-5 ([`warm_up`]), which
/// also takes in a gentle tail.
pub fn stationarity(series: &Sample, seed: u64) -> Stationarity {
    let n = series.n();
    if n < MIN_POINTS {
        return Stationarity::TooShort;
    }
    let points = n / change_point::batch_size(n);
    let options = ChangePointOptions {
        min_segment: 5,
        block: (points as f64).cbrt().round() as usize,
        ..ChangePointOptions::default()
    };
    let at: Vec<usize> = change_points(series, &options, seed).iter().map(|change| change.index).collect();
    match at.last() {
        None => Stationarity::Stationary,
        Some(&last) if last <= n / 2 => Stationarity::WarmUp { until_index: last.max(warm_up(series.values())) },
        Some(_) => Stationarity::Shifted { at },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(length: usize, level: impl Fn(f64) -> f64) -> Stationarity {
        let wobble = |i: usize| ((i * 7919 + i * i * 31) % 101) as f64 / 100.0 - 0.5;
        let values = (0..length).map(|i| level(i as f64 / length as f64) + wobble(i)).collect();
        stationarity(&Sample::new(values).unwrap(), 3)
    }

    #[test]
    fn the_four_answers() {
        assert_eq!(judged(19, |_| 1.0), Stationarity::TooShort);
        assert_eq!(judged(60, |_| 10.0), Stationarity::Stationary);
        let late = judged(60, |t| if t < 0.7 { 10.0 } else { 8.0 });
        assert_eq!(late, Stationarity::Shifted { at: vec![42] });
        let Stationarity::WarmUp { until_index } = judged(120, |t| 10.0 - 8.0 * (-t / 0.06).exp()) else {
            panic!("the start differs");
        };
        assert!((8..=40).contains(&until_index), "{until_index}");
    }
}
