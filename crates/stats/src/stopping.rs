//! When to stop repeating a trial.
//!
//! `repeats = { min = 5, max = 30, until = "2 %" }` looks at the interval after every trial and stops at the first
//! that is narrow enough. That is a sequential procedure of fixed relative width (Chow & Robbins,
//! "On the asymptotic theory of fixed-width sequential confidence intervals", Annals of
//! Mathematical Statistics 36, 1965; for the relative form Nádas 1969), and stopping at a lucky
//! look makes the interval too narrow: the smaller its variance happens to look, the sooner it ends
//! (for finite samples see Singham & Schruben, "Finite-sample performance of absolute precision
//! stopping rules", INFORMS J. on Computing 24, 2012).
//!
//! Two things are done about that, both by Pocock's device of one stricter nominal level at every
//! look (Biometrika 64, 1977), with the level chosen by simulation (CALIBRATION.md): each look asks
//! the interval at [`LOOK_CONFIDENCE`], and a table that was looked at is published at the level
//! [`LOOKED`].

use serde::Serialize;

use crate::distribution::student_quantile;
use crate::interval::interval;
use crate::{ALPHA, Level, Sample};

/// The nominal confidence of the interval at each look.
pub const LOOK_CONFIDENCE: f64 = 0.975;

/// The level of a table that was looked at after every trial.
pub const LOOKED: Level = Level { alpha: ALPHA, nominal: 1.0 - LOOK_CONFIDENCE };

/// Why a stopping rule makes no sense; completes "failed to read the repeats: …".
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum StoppingRuleError {
    #[error("min is 0; a cell needs at least one trial")]
    NoTrial,
    #[error("max is {max}, which is less than min, {min}")]
    MaxBelowMin { min: usize, max: usize },
    /// The target is not a positive finite share.
    #[error("the interval is to reach {0}, which is not a positive share such as 0.02")]
    BadTarget(f64),
}

/// How often to repeat. Invariants: `1 ≤ min ≤ max`; the target, when there is one, is positive and
/// finite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StoppingRule {
    min: usize,
    max: usize,
    relative_half_width: Option<f64>,
}

impl StoppingRule {
    /// At least `min` and at most `max` trials, until half the interval's width is at most
    /// `relative_half_width` (0.02 is "2 %") of the mean.
    ///
    /// # Errors
    /// When an invariant does not hold.
    pub fn until(min: usize, max: usize, relative_half_width: f64) -> Result<Self, StoppingRuleError> {
        if !(relative_half_width > 0.0 && relative_half_width.is_finite()) {
            return Err(StoppingRuleError::BadTarget(relative_half_width));
        }
        if max < min {
            return Err(StoppingRuleError::MaxBelowMin { min, max });
        }
        Ok(Self { max, relative_half_width: Some(relative_half_width), ..Self::fixed(min)? })
    }

    /// Exactly `repeats` trials.
    pub fn fixed(repeats: usize) -> Result<Self, StoppingRuleError> {
        if repeats == 0 {
            return Err(StoppingRuleError::NoTrial);
        }
        Ok(Self { min: repeats, max: repeats, relative_half_width: None })
    }

    pub fn min(&self) -> usize {
        self.min
    }

    pub fn max(&self) -> usize {
        self.max
    }
}

/// What to do with a cell after a look. Half-widths are at [`LOOK_CONFIDENCE`] and relative;
/// `None`: not known (fewer than two figures, or a mean of 0).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Decision {
    Continue {
        /// How many trials this cell will have in all, by what was seen so far; from `n + 1` to
        /// `max`.
        estimated_total: usize,
        /// The widest of the cell's intervals.
        relative_half_width: Option<f64>,
    },
    /// The target is reached, or the fixed number is.
    Enough { relative_half_width: Option<f64> },
    /// `max` trials were made and the target is not reached: the report says how wide it still is.
    Limit { relative_half_width: Option<f64> },
}

/// Decides from the samples of one cell: one for each metric that the study shows, of which the
/// widest counts. No sample means that no trial was completed yet.
pub fn decide(rule: &StoppingRule, samples: &[&Sample], seed: u64) -> Decision {
    let n = samples.iter().map(|sample| sample.n()).min().unwrap_or(0);
    let relative_half_width = widest(samples.iter().map(|sample| relative_width(sample, seed)));
    let Some(target) = rule.relative_half_width else {
        return if n < rule.min {
            Decision::Continue { estimated_total: rule.min, relative_half_width }
        } else {
            Decision::Enough { relative_half_width }
        };
    };
    let narrow = relative_half_width.is_some_and(|width| width <= target);
    if n >= rule.min && narrow {
        Decision::Enough { relative_half_width }
    } else if n >= rule.max {
        Decision::Limit { relative_half_width }
    } else {
        let estimated_total =
            relative_half_width.map_or(rule.min, |width| estimate(rule, n, width / target)).max(n + 1);
        Decision::Continue { estimated_total, relative_half_width }
    }
}

/// Half the interval's width as a share of the mean.
fn relative_width(sample: &Sample, seed: u64) -> Option<f64> {
    let half_width = interval(sample, LOOK_CONFIDENCE, seed)?.half_width();
    if half_width == 0.0 {
        return Some(0.0);
    }
    let mean = sample.mean();
    (mean != 0.0).then(|| half_width / mean.abs())
}

/// The widest, if all are known.
fn widest(widths: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let known: Option<Vec<f64>> = widths.collect();
    known?.into_iter().reduce(f64::max)
}

/// The fewest trials, from `min` to `max`, with which an interval now `excess` times too wide is
/// narrow enough if the standard deviation stays what it is: widths go with t(n − 1) / √n.
fn estimate(rule: &StoppingRule, n: usize, excess: f64) -> usize {
    let width = |n: usize| {
        let quantile = f64::midpoint(1.0, LOOK_CONFIDENCE);
        student_quantile(quantile, (n - 1) as f64) / (n as f64).sqrt()
    };
    let needed = width(n) / excess;
    // The width falls with n, so the first that fits is found by halving.
    let (mut low, mut high) = (rule.min.max(2), rule.max);
    while low < high {
        let middle = usize::midpoint(low, high);
        if width(middle) <= needed {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).unwrap()
    }

    fn two_per_cent() -> StoppingRule {
        StoppingRule::until(3, 30, 0.02).unwrap()
    }

    #[test]
    fn a_rule_that_makes_no_sense_is_refused() {
        assert_eq!(StoppingRule::fixed(0), Err(StoppingRuleError::NoTrial));
        assert_eq!(StoppingRule::until(0, 3, 0.1), Err(StoppingRuleError::NoTrial));
        assert_eq!(StoppingRule::until(5, 3, 0.1), Err(StoppingRuleError::MaxBelowMin { min: 5, max: 3 }));
        for target in [0.0, -0.1, f64::INFINITY] {
            assert_eq!(StoppingRule::until(1, 3, target), Err(StoppingRuleError::BadTarget(target)));
        }
        assert!(StoppingRule::until(1, 3, f64::NAN).is_err());
    }

    #[test]
    fn a_fixed_number_is_kept_whatever_the_figures() {
        let rule = StoppingRule::fixed(3).unwrap();
        let go_on = Decision::Continue { estimated_total: 3, relative_half_width: None };
        assert_eq!(decide(&rule, &[], 1), go_on);
        assert_eq!(decide(&rule, &[&sample(&[1.0])], 1), go_on);
        let wide = sample(&[1.0, 5.0, 9.0]);
        assert!(matches!(decide(&rule, &[&wide], 1), Decision::Enough { .. }));
    }

    #[test]
    fn constant_figures_stop_at_the_minimum() {
        let rule = two_per_cent();
        assert!(matches!(decide(&rule, &[&sample(&[7.0; 2])], 1), Decision::Continue { .. }));
        let enough = Decision::Enough { relative_half_width: Some(0.0) };
        assert_eq!(decide(&rule, &[&sample(&[7.0; 3])], 1), enough);
        assert_eq!(decide(&rule, &[&sample(&[0.0; 3])], 1), enough, "all zero is also known");
    }

    #[test]
    fn the_widest_metric_decides() {
        let rule = two_per_cent();
        let narrow = sample(&[100.0, 100.1, 99.9, 100.0]);
        let wide = sample(&[100.0, 120.0, 80.0, 100.0]);
        assert!(matches!(decide(&rule, &[&narrow], 1), Decision::Enough { .. }));
        let Decision::Continue { estimated_total, relative_half_width } = decide(&rule, &[&narrow, &wide], 1) else {
            panic!("the wide one is not narrow enough");
        };
        assert_eq!(estimated_total, 30, "16 % scatter needs hundreds, the limit is 30");
        assert!(relative_half_width.unwrap() > 0.2);
    }

    #[test]
    fn the_estimate_is_what_the_variance_asks() {
        // s = 2 %, target 1 %: t(n − 1; 0.9875) · 2 / √n ≤ 1 first at n = 25 (2.398 · 0.4 = 0.959);
        // the skew-free sample's interval is a few per cent wider than Student's.
        let rule = StoppingRule::until(3, 100, 0.01).unwrap();
        let values: Vec<f64> = [98., 102., 100., 97.5, 102.5, 100., 98.3, 101.7].to_vec();
        let Decision::Continue { estimated_total, .. } = decide(&rule, &[&sample(&values)], 1) else {
            panic!("too few");
        };
        assert!((22..=32).contains(&estimated_total), "{estimated_total}");
    }

    #[test]
    fn the_limit_is_a_limit() {
        let rule = StoppingRule::until(2, 4, 0.001).unwrap();
        let figures = sample(&[1.0, 2.0, 3.0, 4.0]);
        assert!(matches!(decide(&rule, &[&figures], 1), Decision::Limit { .. }));
        let unknown = sample(&[-1.0, 1.0, -2.0, 2.0]);
        assert_eq!(decide(&rule, &[&unknown], 1), Decision::Limit { relative_half_width: None });
    }
}
