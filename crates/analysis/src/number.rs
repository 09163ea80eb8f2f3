//! How figures are printed: one scale and one number of decimals per column, so that they can be read down.

use fstone_model::Unit;

/// A value and, where there is one, half the width of its interval; both in the unit they are stored in.
pub type Measured = (f64, Option<f64>);

/// What the values of a column are divided by, what they are then called, and how many decimals they deserve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// A stored value is divided by this.
    pub divisor: f64,
    /// The unit's symbol after the division; empty for counts.
    pub symbol: &'static str,
    pub decimals: usize,
}

/// (smallest value that wants it, divisor, symbol), largest first.
type Steps = &'static [(f64, f64, &'static str)];

const KIB: f64 = 1024.0;
const BYTES: Steps = &[
    (KIB * KIB * KIB * KIB, KIB * KIB * KIB * KIB, "TiB"),
    (KIB * KIB * KIB, KIB * KIB * KIB, "GiB"),
    (KIB * KIB, KIB * KIB, "MiB"),
    (KIB, KIB, "KiB"),
    (0.0, 1.0, "B"),
];
const BYTES_PER_SECOND: Steps = &[
    (KIB * KIB * KIB * KIB, KIB * KIB * KIB * KIB, "TiB/s"),
    (10.0 * KIB * KIB * KIB, KIB * KIB * KIB, "GiB/s"),
    (KIB * KIB, KIB * KIB, "MiB/s"),
    (KIB, KIB, "KiB/s"),
    (0.0, 1.0, "B/s"),
];
const SECONDS: Steps = &[(0.1, 1.0, "s"), (1e-4, 1e-3, "ms"), (1e-7, 1e-6, "µs"), (0.0, 1e-9, "ns")];
const NANOSECONDS: Steps = &[(1e9, 1e9, "s"), (1e6, 1e6, "ms"), (1e3, 1e3, "µs"), (0.0, 1.0, "ns")];
const PER_SECOND: Steps = &[(1e7, 1e6, "million/s"), (0.0, 1.0, "/s")];
const COUNT: Steps = &[(1e7, 1e6, "million"), (0.0, 1.0, "")];
const PERCENT: Steps = &[(0.0, 1.0, "%")];
const RATIO: Steps = &[(0.0, 1.0, "×")];

const fn steps(unit: Unit) -> Steps {
    match unit {
        Unit::Seconds => SECONDS,
        Unit::Nanoseconds => NANOSECONDS,
        Unit::Bytes => BYTES,
        Unit::BytesPerSecond => BYTES_PER_SECOND,
        Unit::PerSecond => PER_SECOND,
        Unit::Percent => PERCENT,
        Unit::Count => COUNT,
        Unit::Ratio => RATIO,
    }
}

impl Scale {
    /// The scale for values of this unit: its prefix from the median magnitude; its decimals so that the median
    /// half-width has two digits, or, without intervals, the median value three. `whole`: all values that these come from are whole numbers.
    pub fn choose(unit: Unit, figures: &[Measured], whole: bool) -> Self {
        let magnitudes = sorted(figures.iter().map(|(value, _)| value.abs()).filter(|value| *value > 0.0));
        let typical = magnitudes.get(magnitudes.len() / 2).copied();
        let (_, divisor, symbol) = *steps(unit)
            .iter()
            .find(|(from, ..)| typical.unwrap_or(f64::INFINITY) >= *from)
            .expect("the last step starts at 0");
        // Without any figure the base unit is as good as another.
        let (divisor, symbol) = if typical.is_some() { (divisor, symbol) } else { (1.0, unit.symbol()) };
        let least = magnitudes.first();
        // A count stays whole; only a mean of less than one must not look like none.
        let whole = whole && unit == Unit::Count && divisor == 1.0;
        let decimals = match (typical, least) {
            (Some(_), Some(least)) if whole && *least >= 0.95 => 0,
            (Some(_), Some(least)) if whole && *least >= 0.095 => 1,
            (Some(typical), Some(least)) => decimals(figures, typical / divisor, least / divisor, divisor),
            _ => 0,
        };
        Self { divisor, symbol, decimals }
    }

    pub fn of_one(unit: Unit, value: f64) -> Self {
        Self::choose(unit, &[(value, None)], is_whole(value))
    }

    /// The number without its unit, thousands separated: "10,383", "1.72".
    pub fn number(&self, value: f64) -> String {
        // Nothing is no more exactly nothing by its decimals.
        let decimals = if value == 0.0 { 0 } else { self.decimals };
        grouped(value / self.divisor, decimals)
    }

    /// The same with as many more decimals as it takes not to look like 0.
    pub fn number_not_none(&self, value: f64) -> String {
        let is_none = |text: &str| text.bytes().all(|digit| b"0.".contains(&digit));
        let mut scale = *self;
        while value != 0.0 && scale.decimals < MOST_DECIMALS && is_none(&scale.number(value)) {
            scale.decimals += 1;
        }
        scale.number(value)
    }

    /// The same scale with as many decimals as it takes to see that two figures differ.
    #[must_use]
    pub fn telling_apart(mut self, a: f64, b: f64) -> Self {
        while self.decimals < 12 && self.number(a) == self.number(b) {
            self.decimals += 1;
        }
        self
    }

    /// The number with its unit: "10,383/s", "1.72 s", "1.03×".
    pub fn with_unit(&self, value: f64) -> String {
        self.labelled(&self.number(value))
    }

    /// A number that is written already with the unit behind it.
    pub fn labelled(&self, number: &str) -> String {
        match self.symbol {
            "" => number.to_owned(),
            "×" | "/s" => format!("{number}{}", self.symbol),
            symbol => format!("{number} {symbol}"),
        }
    }
}

/// What needs more than these is rounding.
const MOST_DECIMALS: usize = 9;

pub fn is_whole(value: f64) -> bool {
    value.fract() == 0.0
}

fn decimals(figures: &[Measured], typical: f64, smallest: f64, divisor: f64) -> usize {
    let halves = sorted(figures.iter().filter_map(|(_, half)| *half).filter(|half| *half > 0.0));
    let wanted = match halves.get(halves.len() / 2) {
        Some(half) => 1 - exponent(half / divisor),
        None => 2 - exponent(typical),
    };
    // No more than five digits of a typical value, however narrow the intervals, ...
    let wanted = wanted.min(4 - exponent(typical));
    // ... and the smallest value should not look like zero, if one or two more decimals can help it.
    let wanted = wanted.max((-exponent(smallest)).min(wanted.max(0) + 2));
    usize::try_from(wanted.clamp(0, 6)).expect("clamped")
}

/// ⌊log10⌋ of a positive number.
fn exponent(value: f64) -> i32 {
    value.log10().floor() as i32
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// A number with thousands separated by commas and a true minus sign.
pub fn grouped(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut text = String::new();
    if value < 0.0 && plain.bytes().any(|b| b.is_ascii_digit() && b != b'0') {
        text.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// A figure published elsewhere: the digits it has, three decimals at most.
pub fn published(value: f64) -> String {
    let text = grouped(value, 3);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A ratio: "1.31×", "12.4×", "0.052×".
pub fn ratio(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.1 => 2,
        _ => 3,
    };
    format!("{}×", grouped(value, decimals))
}

/// A p-value as people print it: "0.03", "0.004", "< 0.001".
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 0.001 => "< 0.001".to_owned(),
        p if p < 0.01 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}

/// The shortest text that reads back as exactly this number, for CSV.
pub fn exact(value: f64) -> String {
    if value == 0.0 || (1e-5..1e15).contains(&value.abs()) { format!("{value}") } else { format!("{value:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interval_decides_the_decimals() {
        let scale = Scale::choose(Unit::PerSecond, &[(10383.2, Some(121.7)), (7090.4, Some(98.0))], false);
        assert_eq!((scale.number(10383.2).as_str(), scale.symbol), ("10,383", "/s"));
        let scale = Scale::choose(Unit::Percent, &[(8.64, Some(0.31)), (7.2, Some(0.22))], false);
        assert_eq!(scale.with_unit(8.64), "8.64 %");
        let scale = Scale::choose(Unit::Seconds, &[(1.7162, Some(0.0004)), (1.802, Some(0.0001))], false);
        assert_eq!(scale.with_unit(1.7162), "1.7162 s", "never more than five digits");
    }

    #[test]
    fn the_typical_value_decides_the_prefix() {
        let mib = 1024.0 * 1024.0;
        let scale =
            Scale::choose(Unit::BytesPerSecond, &[(45.1 * mib, None), (32.7 * mib, None), (2000.0, None)], false);
        assert_eq!(scale.with_unit(45.1 * mib), "45.100 MiB/s", "two more decimals for the smallest");
        assert_eq!(Scale::of_one(Unit::Nanoseconds, 12_345.0).with_unit(12_345.0), "12.3 µs");
        assert_eq!(Scale::of_one(Unit::Seconds, 0.0042).with_unit(0.0042), "4.20 ms");
        assert_eq!(Scale::of_one(Unit::Bytes, 3.0 * 1024.0 * mib).with_unit(3.0 * 1024.0 * mib), "3.00 GiB");
        assert_eq!(Scale::choose(Unit::Count, &[(8.0, None), (0.0, Some(0.0))], true).number(8.0), "8");
        let lost = Scale::choose(Unit::Count, &[(118.0, Some(1.477)), (0.0, Some(1.477)), (3.0, Some(1.477))], true);
        assert_eq!((lost.number(118.0).as_str(), lost.number(0.0).as_str()), ("118", "0"));
        let few = Scale::choose(Unit::Count, &[(0.0, Some(0.4)), (0.333, Some(0.4))], true);
        assert_eq!((few.number(0.0).as_str(), few.number(0.333).as_str()), ("0", "0.3"), "a third is not none");
        // What a program prints without a unit need be no count.
        let figures = [(1.52, Some(0.11)), (2.25, Some(0.2))];
        let [score, counted] = [false, true].map(|whole| Scale::choose(Unit::Count, &figures, whole));
        assert_eq!((score.number(1.52).as_str(), counted.number(1.52).as_str()), ("1.52", "2"));
        assert_eq!(Scale::of_one(Unit::Count, 2.5).number(2.5), "2.50");
        assert_eq!(Scale::choose(Unit::Seconds, &[], false).with_unit(0.0), "0 s");
    }

    #[test]
    fn small_values_do_not_look_like_zero() {
        let scale = Scale::choose(Unit::Seconds, &[(57.0, Some(3.0)), (58.0, Some(3.0)), (0.04, Some(0.001))], false);
        assert_eq!(scale.number(0.04), "0.04");
    }

    #[test]
    fn signs_and_separators() {
        assert_eq!(grouped(1_234_567.891, 1), "1,234,567.9");
        assert_eq!(grouped(-1234.0, 0), "−1,234");
        assert_eq!(grouped(-0.004, 2), "0.00");
        assert_eq!(grouped(f64::NAN, 2), "–");
        assert_eq!((published(4004.0).as_str(), published(8.6).as_str()), ("4,004", "8.6"));
        assert_eq!(ratio(1.3149), "1.31×");
        assert_eq!(ratio(0.0123), "0.012×");
    }

    proptest! {
        #[test]
        fn exact_text_gives_the_number_back(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            prop_assert_eq!(exact(value).parse::<f64>().unwrap(), value);
        }
    }
}
