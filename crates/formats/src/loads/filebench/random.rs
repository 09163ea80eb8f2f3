//! Random and custom variables: distributions in the words of the model.
//!
//! What the model has a word for is said so. Everything else becomes a list of [`QUANTILES`] values that are equally likely, one
//! for each part of the distribution, so that mean and shape stay as they are.

use super::tree::{At, Random};
use super::value::{Attributes, Scope};
use crate::diagnostic::{Diagnostic, Report, Span};
use fstone_model::workload::SizeDistribution;

/// Values that stand for a distribution.
const QUANTILES: u32 = 1000;
/// The largest number that can be drawn: 256 TiB less one byte is the largest file.
const LARGEST: f64 = 281_474_976_710_655.0;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drawn {
    kind: Kind,
    minimum: f64,
    maximum: f64,
    round: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Uniform {
        from: f64,
        to: f64,
    },
    /// Of this mean and shape, and so much more.
    Gamma {
        mean: f64,
        shape: f64,
        beyond: f64,
    },
    Normal {
        mean: f64,
        sigma: f64,
    },
    /// Of ln(x): its mean and standard deviation.
    Lognormal {
        mean: f64,
        sigma: f64,
    },
    Weibull {
        shape: f64,
        scale: f64,
        beyond: f64,
    },
    Triangular {
        from: f64,
        to: f64,
        mode: f64,
    },
    /// Percent, smallest and largest.
    Table(Vec<(f64, f64, f64)>),
}

pub(super) fn drawn(scope: &Scope, random: &At<Random>, report: &mut Report) -> Option<Drawn> {
    let At { value: random, span } = random;
    if random.custom { custom(scope, random, *span, report) } else { randvar(scope, random, *span, report) }
}

/// `randvar(type=…, min=…, mean=…, gamma=…, round=…, randtable=…)`.
fn randvar(scope: &Scope, random: &Random, span: Span, report: &mut Report) -> Option<Drawn> {
    let attributes = Attributes::new(&random.attributes, scope);
    let kind = attributes.text("type", report).map_or("gamma".to_owned(), |kind| kind.value);
    let (minimum, round) = (attributes.number("min", 0, report) as f64, attributes.number("round", 0, report) as f64);
    let gamma = attributes.number("gamma", 1500, report) as f64 / 1000.0;
    let mean = attributes.get("mean").map(|_| attributes.number("mean", 0, report) as f64);
    let kind = match kind.as_str() {
        _ if !random.table.is_empty() => {
            let mut rows = Vec::new();
            for [percent, smallest, largest] in &random.table {
                let row = [percent, smallest, largest].map(|value| scope.number(value, report).unwrap_or(0) as f64);
                if row[1] > row[2] {
                    report.push(Diagnostic::error(smallest.span, "the smallest of this row is above its largest"));
                }
                rows.push((row[0], row[1], row[2]));
            }
            let sum: f64 = rows.iter().map(|(percent, ..)| percent).sum();
            if (sum - 100.0).abs() > 1e-9 {
                report.push(
                    Diagnostic::error(span, format!("the rows of this table are {sum} % in all"))
                        .label("expected 100 %"),
                );
                return None;
            }
            Kind::Table(rows)
        }
        "uniform" => Kind::Uniform { from: minimum, to: 2.0f64.mul_add(mean.unwrap_or(0.0) - minimum, minimum) },
        // Without a mean filebench takes that of the shape itself.
        "gamma" => Kind::Gamma { mean: mean.unwrap_or(gamma) - minimum, shape: gamma, beyond: minimum },
        "tabular" => {
            report.push(Diagnostic::error(span, "a table is missing").help("randtable={{100, 1k, 4k}}"));
            return None;
        }
        other => {
            let diagnostic =
                Diagnostic::error(attributes.span("type", span), format!("unknown distribution `{other}`"));
            report.push(diagnostic.label("expected `uniform`, `gamma` or `tabular`"));
            return None;
        }
    };
    checked(Drawn { kind, minimum: 0.0, maximum: LARGEST, round }, span, report)
}

/// The parameters of the custom variables that filebench ships, with their defaults.
const CUSTOM: &[(&str, &[(&str, f64)])] = &[
    ("cvar-erlang", &[("shape", 3.0), ("rate", 0.5)]),
    ("cvar-exponential", &[("mean", 4096.0)]),
    ("cvar-gamma", &[("mean", 4096.0), ("gamma", 1.5)]),
    ("cvar-lognormal", &[("shape", 3.0), ("scale", 0.5)]),
    ("cvar-normal", &[("mean", 4096.0), ("sigma", 1.0)]),
    ("cvar-triangular", &[("lower", 0.0), ("upper", 1.0), ("mode", 0.5)]),
    ("cvar-uniform", &[("lower", 0.0), ("upper", 1.0)]),
    ("cvar-weibull", &[("shape", 1.0), ("scale", 1.0), ("location", 0.0)]),
];

/// `cvar(type=cvar-gamma, parameters=mean:16384;gamma:1.5, min=…, max=…, round=…)`.
fn custom(scope: &Scope, random: &Random, span: Span, report: &mut Report) -> Option<Drawn> {
    let attributes = Attributes::new(&random.attributes, scope);
    let Some(kind) = attributes.text("type", report) else {
        report.push(Diagnostic::error(span, "this custom variable has no type").help("type=cvar-gamma"));
        return None;
    };
    let Some((name, known)) = CUSTOM.iter().find(|(name, _)| *name == kind.value) else {
        let names = CUSTOM.iter().map(|(name, _)| *name);
        let diagnostic = Diagnostic::error(kind.span, format!("unknown custom variable `{}`", kind.value));
        report.push(
            diagnostic
                .did_you_mean(&kind.value, names.clone())
                .note(format!("there are {}", names.collect::<Vec<_>>().join(", "))),
        );
        return None;
    };
    let mut values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    if let Some(parameters) = attributes.text("parameters", report) {
        for parameter in parameters.value.split(';').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once(':').unwrap_or((parameter, ""));
            let place = known.iter().position(|(name, _)| *name == key);
            match (place, value.parse::<f64>()) {
                (Some(place), Ok(value)) if value.is_finite() => values[place] = value,
                (None, _) => report.push(
                    Diagnostic::error(parameters.span, format!("`{name}` has no parameter `{key}`"))
                        .did_you_mean(key, known.iter().map(|(name, _)| *name)),
                ),
                _ => {
                    report.push(Diagnostic::error(
                        parameters.span,
                        format!("`{value}` is not a number, in `{parameter}`"),
                    ));
                }
            }
        }
    }
    let kind = match (*name, values.as_slice()) {
        ("cvar-uniform", [from, to]) => Kind::Uniform { from: *from, to: *to },
        ("cvar-gamma", [mean, shape]) => Kind::Gamma { mean: *mean, shape: *shape, beyond: 0.0 },
        ("cvar-erlang", [shape, rate]) => Kind::Gamma { mean: shape / rate, shape: *shape, beyond: 0.0 },
        ("cvar-exponential", [mean]) => Kind::Gamma { mean: *mean, shape: 1.0, beyond: 0.0 },
        ("cvar-normal", [mean, sigma]) => Kind::Normal { mean: *mean, sigma: *sigma },
        ("cvar-lognormal", [shape, scale]) => Kind::Lognormal { mean: *shape, sigma: *scale },
        ("cvar-weibull", [shape, scale, beyond]) => Kind::Weibull { shape: *shape, scale: *scale, beyond: *beyond },
        ("cvar-triangular", [from, to, mode]) => Kind::Triangular { from: *from, to: *to, mode: *mode },
        _ => return None,
    };
    let round = attributes.number("round", 0, report) as f64;
    let minimum = attributes.number("min", 0, report) as f64;
    let maximum = attributes.get("max").map_or(LARGEST, |_| attributes.number("max", 0, report) as f64);
    checked(Drawn { kind, minimum, maximum, round }, span, report)
}

fn checked(drawn: Drawn, span: Span, report: &mut Report) -> Option<Drawn> {
    let problem = match &drawn.kind {
        Kind::Uniform { from, to } if from > to => "the smallest number is above the largest",
        Kind::Gamma { mean, shape, .. } if !(*mean > 0.0 && *shape > 0.0 && mean.is_finite()) => {
            "mean and gamma must be above 0, and the mean above the minimum"
        }
        Kind::Normal { sigma, .. } | Kind::Lognormal { sigma, .. } if *sigma < 0.0 => "a deviation is not below 0",
        Kind::Weibull { shape, scale, .. } if !(*shape > 0.0 && *scale > 0.0) => "shape and scale must be above 0",
        Kind::Triangular { from, to, mode } if !(from <= mode && mode <= to) => "the mode must be between the bounds",
        _ if drawn.minimum > drawn.maximum => "the minimum is above the maximum",
        _ => return Some(drawn),
    };
    report.push(Diagnostic::error(span, problem));
    None
}

impl Drawn {
    pub(super) fn sizes(&self) -> SizeDistribution {
        let plain = self.round <= 1.0 && self.minimum <= 0.0 && self.maximum >= LARGEST;
        match &self.kind {
            Kind::Gamma { mean, shape, beyond } if plain && *beyond <= 0.0 && *mean >= 1.0 => {
                SizeDistribution::Gamma { mean: mean.round() as u64, shape: *shape }
            }
            Kind::Uniform { from, to } if plain => SizeDistribution::Uniform {
                minimum: from.max(0.0) as u64,
                maximum: (to.max(0.0) as u64).max(from.max(0.0) as u64),
            },
            _ => self.list(0, u64::MAX),
        }
    }

    /// Sizes of reads and writes, none of them empty or larger than `most`.
    pub(super) fn blocks(&self, most: u64) -> SizeDistribution {
        self.list(1, most)
    }

    /// Numbers of files below `files`, as filebench takes them.
    pub(super) fn numbers(&self, files: u64) -> SizeDistribution {
        let files = files.max(1);
        // A thousand equal parts would leave out what is rare and far off: the last parts are cut smaller.
        let mut list: Vec<(u64, u32)> = Vec::new();
        for (share, weight) in parts() {
            add(&mut list, self.at(share).max(0.0) as u64 % files, weight);
        }
        SizeDistribution::Weighted(list)
    }

    fn list(&self, least: u64, most: u64) -> SizeDistribution {
        let mut list: Vec<(u64, u32)> = Vec::new();
        for number in 0..QUANTILES {
            let share = (f64::from(number) + 0.5) / f64::from(QUANTILES);
            add(&mut list, (self.at(share).round() as u64).clamp(least, most.max(least)), 1);
        }
        match list.as_slice() {
            [(size, _)] => SizeDistribution::Fixed(*size),
            _ => SizeDistribution::Weighted(list),
        }
    }

    fn at(&self, share: f64) -> f64 {
        let value = match &self.kind {
            Kind::Uniform { from, to } => from + (to - from) * share,
            Kind::Gamma { mean, shape, beyond } => beyond + gamma_quantile(*shape, share) * mean / shape,
            Kind::Normal { mean, sigma } => mean + sigma * normal_quantile(share),
            Kind::Lognormal { mean, sigma } => (mean + sigma * normal_quantile(share)).exp(),
            Kind::Weibull { shape, scale, beyond } => beyond + scale * (-(1.0 - share).ln()).powf(1.0 / shape),
            Kind::Triangular { from, to, mode } => {
                let (all, first) = (to - from, mode - from);
                if all <= 0.0 {
                    *from
                } else if share < first / all {
                    from + (share * all * first).sqrt()
                } else {
                    to - ((1.0 - share) * all * (to - mode)).sqrt()
                }
            }
            Kind::Table(rows) => {
                let mut before = 0.0;
                let mut value = rows.last().map_or(0.0, |row| row.2);
                for (percent, smallest, largest) in rows {
                    let part = percent / 100.0;
                    if share < before + part {
                        value = smallest + (largest - smallest) * (share - before) / part;
                        break;
                    }
                    before += part;
                }
                value
            }
        };
        let value = if self.round > 0.0 { (value / self.round).round() * self.round } else { value };
        value.clamp(self.minimum, self.maximum)
    }
}

fn add(list: &mut Vec<(u64, u32)>, value: u64, weight: u32) {
    match list.iter_mut().find(|(known, _)| *known == value) {
        Some((_, sum)) => *sum += weight,
        None => list.push((value, weight)),
    }
}

/// Parts of a distribution, finer and finer towards its end: the middle of each, and its weight.
fn parts() -> impl Iterator<Item = (f64, u32)> {
    const WHOLE: f64 = 1e9;
    let mut begin = 0.0_f64;
    std::iter::from_fn(move || {
        let left = 1.0 - begin;
        if left < 1e-8 {
            return None;
        }
        let part = (left * 0.05).clamp(1e-8, 0.001);
        let middle = begin + part / 2.0;
        begin += part;
        Some((middle, (part * WHOLE).round().max(1.0) as u32))
    })
}

/// The value below which this share of a gamma distribution of scale 1 is, by bisection.
fn gamma_quantile(shape: f64, share: f64) -> f64 {
    let (mut low, mut high) = (0.0, shape.max(1.0));
    while gamma_below(shape, high) < share && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if gamma_below(shape, middle) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The regularised lower incomplete gamma function: its series where that converges fast, else the continued fraction of the
/// upper one by Lentz's method (Abramowitz and Stegun 6.5.29 and 6.5.31).
fn gamma_below(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = (shape * x.ln() - x - ln_gamma(shape)).exp();
    if x < shape + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / shape, 1.0 / shape, shape);
        for _ in 0..1000 {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * 1e-15 {
                break;
            }
        }
        return (front * sum).min(1.0);
    }
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - shape;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut fraction = d;
    for i in 1..1000 {
        let i = f64::from(i);
        let a = -i * (i - shape);
        b += 2.0;
        d = 1.0 / (a * d + b).abs().max(TINY).copysign(a * d + b);
        c = b + a / c;
        let step = d * c;
        fraction *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (1.0 - front * fraction).max(0.0)
}

/// ln Γ by Stirling's series, after moving the argument up (Abramowitz and Stegun 6.1.41).
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

/// The value below which this share of the standard normal distribution is, by way of the gamma distribution of shape 1/2: the
/// square of a normal number is twice one of those.
fn normal_quantile(share: f64) -> f64 {
    let off = (2.0 * share - 1.0).abs();
    (2.0 * gamma_quantile(0.5, off)).sqrt().copysign(share - 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind) -> Drawn {
        Drawn { kind, minimum: 0.0, maximum: LARGEST, round: 0.0 }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.1; chi-squared with 3 degrees of freedom is a gamma of shape 1.5, twice.
        assert!((normal_quantile(0.975) - 1.959_964).abs() < 1e-6);
        assert!((normal_quantile(0.25) + 0.674_490).abs() < 1e-6);
        assert!((2.0 * gamma_quantile(1.5, 0.95) - 7.814_728).abs() < 1e-5);
        assert!((2.0 * gamma_quantile(1.5, 0.05) - 0.351_846).abs() < 1e-5);
        assert!((gamma_quantile(1.0, 0.5) - std::f64::consts::LN_2).abs() < 1e-9);
    }

    #[test]
    fn a_list_has_the_mean_of_its_distribution() {
        for (kind, mean) in [
            (Kind::Gamma { mean: 4608.0, shape: 1.5, beyond: 1024.0 }, 5632.0),
            (Kind::Normal { mean: 9000.0, sigma: 100.0 }, 9000.0),
            (Kind::Triangular { from: 0.0, to: 9000.0, mode: 3000.0 }, 4000.0),
            (Kind::Table(vec![(80.0, 1000.0, 4000.0), (20.0, 4000.0, 16_000.0)]), 4000.0),
        ] {
            let SizeDistribution::Weighted(list) = of(kind.clone()).blocks(u64::MAX) else { panic!("{kind:?}") };
            let sum: f64 = list.iter().map(|(size, weight)| *size as f64 * f64::from(*weight)).sum();
            let found = sum / list.iter().map(|(_, weight)| f64::from(*weight)).sum::<f64>();
            assert!((found / mean - 1.0).abs() < 0.005, "{kind:?}: {found} for {mean}");
        }
    }

    #[test]
    fn rounding_leaves_few_sizes() {
        let drawn = Drawn { round: 1024.0, ..of(Kind::Table(vec![(100.0, 1024.0, 3072.0)])) };
        let SizeDistribution::Weighted(list) = drawn.sizes() else { panic!("there are three") };
        assert_eq!(list.iter().map(|(size, _)| *size).collect::<Vec<_>>(), [1024, 2048, 3072]);
    }

    #[test]
    fn numbers_of_files_are_rounded_down() {
        let SizeDistribution::Weighted(list) = of(Kind::Gamma { mean: 0.1, shape: 0.1, beyond: 0.0 }).numbers(100)
        else {
            panic!("it is a list")
        };
        let sum: f64 = list.iter().map(|(_, weight)| f64::from(*weight)).sum();
        // P(X < 1) of a gamma distribution of shape 0.1 and scale 1.
        let first = list.iter().find(|(number, _)| *number == 0).map_or(0.0, |(_, weight)| f64::from(*weight)) / sum;
        assert!((first - gamma_below(0.1, 1.0)).abs() < 0.002, "{first}");
    }
}
