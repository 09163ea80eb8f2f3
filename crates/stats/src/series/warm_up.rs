//! The warm-up at the start of a series.

use super::change_point::batched;

/// From this length on points are averaged in fives, the "5" of MSER-5; fewer would leave too few
/// batches.
const BATCHED_FROM: usize = 50;

/// How many points to drop from the start so that the mean of the rest is known best.
///
/// MSER-5: White, "An effective truncation heuristic for bias reduction in simulation output",
/// Simulation 69 (1997); White, Cobb & Spratt (WSC 2000): the cut d that minimises Σ(y − ȳ)² / (m −
/// d)² over what is left, within the first half. It always names some cut, often a small one by
/// chance: [`stationarity`](super::stationarity) asks first whether anything changed at all.
pub fn warm_up(series: &[f64]) -> usize {
    let batch = if series.len() >= BATCHED_FROM { 5 } else { 1 };
    let batches = batched(series, batch);
    let m = batches.len();
    // From the end, so that sums over what is left grow by one batch at a time. Welford's update
    // keeps the squares exact when the level is far from zero.
    let (mut mean, mut squares) = (0.0, 0.0);
    let mut best = (0, f64::INFINITY);
    for (cut, value) in batches.iter().enumerate().rev() {
        let left = (m - cut) as f64;
        let step = value - mean;
        mean += step / left;
        squares += step * (value - mean);
        let error = squares / (left * left);
        // Ties go to the shorter cut.
        if cut <= m / 2 && error <= best.1 {
            best = (cut, error);
        }
    }
    best.0 * batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_an_exponential_warm_up() {
        let series: Vec<f64> =
            (0..200).map(|i| 100.0 - 60.0 * (-f64::from(i) / 8.0).exp() + f64::from(i * 37 % 11) * 0.2).collect();
        let cut = warm_up(&series);
        assert!((20..=60).contains(&cut), "{cut}");
    }

    #[test]
    fn by_definition_on_a_short_series() {
        let series = [9.0, 5.0, 1.0, 1.2, 0.9, 1.1, 1.0, 1.3];
        let error = |cut: usize| {
            let rest = &series[cut..];
            let mean = rest.iter().sum::<f64>() / rest.len() as f64;
            rest.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
        };
        let expected = (0..=4).min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap();
        assert_eq!(warm_up(&series), expected);
        assert_eq!(expected, 2);
    }

    #[test]
    fn a_constant_series_has_none() {
        assert_eq!(warm_up(&[4.0; 100]), 0);
        assert_eq!(warm_up(&[]), 0);
    }
}
