//! Axes: from values to pixels, with ticks at round numbers.

/// A linear or logarithmic axis. Invariant: `low < high`, and `low > 0` when it is logarithmic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    /// The pixels of `low` and of `high`.
    from: f64,
    to: f64,
    logarithmic: bool,
}

/// A logarithmic axis over more than this has nothing to tell.
const WIDEST: f64 = 1e40;

impl Axis {
    /// A linear axis that holds all values; from zero when they vary by more than half, or when a bar needs it.
    pub(super) fn linear(values: impl IntoIterator<Item = f64>, from_zero: bool, from: f64, to: f64) -> Self {
        let (low, high) = range(values);
        let near_zero = from_zero || low <= 0.0 || high - low > high / 2.0;
        let (low, high) = match (low, high) {
            (low, high) if near_zero => {
                (low.min(0.0), if high > 0.0 { high + (high - low.min(0.0)) * 0.04 } else { 1.0 })
            }
            (low, high) if high > low => (low - (high - low) * 0.06, high + (high - low) * 0.06),
            // All alike: some room on either side.
            (low, high) => (low - low.abs() * 0.05, high + high.abs() * 0.05),
        };
        Self { low, high, from, to, logarithmic: false }
    }

    /// A logarithmic axis that holds all values; `None` unless all are positive and within reason.
    pub(super) fn logarithmic(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let (low, high) = range(values);
        if low <= 0.0 || high / low > WIDEST {
            return None;
        }
        let room = (high / low).powf(0.05).max(1.05);
        Some(Self { low: low / room, high: high * room, from, to, logarithmic: true })
    }

    /// A linear axis with exactly these ends.
    pub(super) fn exact(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from, to, logarithmic: false }
    }

    pub(super) fn low(&self) -> f64 {
        self.low
    }

    pub(super) fn high(&self) -> f64 {
        self.high
    }

    pub(super) fn from(&self) -> f64 {
        self.from
    }

    pub(super) fn to(&self) -> f64 {
        self.to
    }

    /// The pixel of a value; values beyond an end are at that end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Values within the ends that are round once divided by `divisor`, about `wanted` of them, ascending.
    pub(super) fn ticks(&self, wanted: usize, divisor: f64) -> Vec<f64> {
        let scaled = Self { low: self.low / divisor, high: self.high / divisor, ..*self };
        let ticks = if self.logarithmic {
            scaled.logarithmic_ticks(wanted)
        } else {
            linear_ticks(scaled.low, scaled.high, wanted)
        };
        ticks.into_iter().map(|tick| tick * divisor).collect()
    }

    fn logarithmic_ticks(&self, wanted: usize) -> Vec<f64> {
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let within = |multiples: &[f64], every: usize| -> Vec<f64> {
            (first..=last)
                .step_by(every)
                .flat_map(|exponent| multiples.iter().map(move |multiple| multiple * 10f64.powi(exponent)))
                .filter(|tick| (self.low..=self.high).contains(tick))
                .collect()
        };
        let decades = usize::try_from(last - first).unwrap_or(1).max(1);
        // The finest choice that is not too many.
        let mut best = within(&[1.0], decades.div_ceil(wanted.max(1)).max(1));
        for multiples in [&[1.0, 3.0][..], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0]] {
            let finer = within(multiples, 1);
            if finer.len() <= wanted.max(2) {
                best = finer;
            }
        }
        // Less than a third of a decade: linear ticks are rounder than any of those.
        if best.len() < 2 { linear_ticks(self.low, self.high, wanted) } else { best }
    }
}

fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .into_iter()
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

fn linear_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let rough = (high - low) / wanted.max(1) as f64;
    let magnitude = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|multiple| multiple * magnitude)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * magnitude);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|count| count as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_is_on_the_axis_when_values_vary_much() {
        assert_eq!(Axis::linear([10.0, 100.0], false, 0.0, 100.0).low(), 0.0);
        assert!(Axis::linear([90.0, 100.0], false, 0.0, 100.0).low() > 80.0);
        assert_eq!(Axis::linear([90.0, 100.0], true, 0.0, 100.0).low(), 0.0);
        let constant = Axis::linear([5.0, 5.0], false, 0.0, 100.0);
        assert!(constant.low() < 5.0 && constant.high() > 5.0);
        assert!(Axis::logarithmic([0.0, 1.0], 0.0, 1.0).is_none());
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(Axis::exact(0.0, 100.0, 0.0, 1.0).ticks(5, 1.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Axis::exact(0.0, 4096.0, 0.0, 1.0).ticks(4, 1024.0), [0.0, 1024.0, 2048.0, 3072.0, 4096.0]);
        let log = Axis::logarithmic([1.0, 1000.0], 0.0, 1.0).expect("positive");
        assert_eq!(log.ticks(5, 1.0), [1.0, 10.0, 100.0, 1000.0]);
    }

    proptest! {
        #[test]
        fn ticks_are_within_and_few(low in -1e6f64..1e6, span in 1e-3f64..1e6, wanted in 2usize..9) {
            let axis = Axis::exact(low, low + span, 0.0, 300.0);
            let ticks = axis.ticks(wanted, 1.0);
            prop_assert!(ticks.len() <= wanted + 1, "{:?}", ticks);
            for pair in ticks.windows(2) {
                prop_assert!(pair[0] < pair[1]);
            }
            for tick in ticks {
                prop_assert!((-0.01..=300.01).contains(&axis.at(tick)));
            }
        }

        #[test]
        fn logarithmic_ticks_are_within_and_some(low in 1e-6f64..1e6, factor in 1.01f64..1e6, wanted in 3usize..8) {
            let axis = Axis::logarithmic([low, low * factor], 0.0, 300.0).expect("positive");
            let ticks = axis.ticks(wanted, 1.0);
            prop_assert!(!ticks.is_empty() && ticks.len() <= wanted + 1, "{:?}", ticks);
            for tick in ticks {
                prop_assert!(axis.low() <= tick && tick <= axis.high());
            }
        }
    }
}
