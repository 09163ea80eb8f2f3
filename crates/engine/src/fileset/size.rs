//! How file sizes are drawn.

use super::table::MAX_FILE_BYTES;
use crate::error::LoadError;
use crate::random::Random;
use fstone_model::workload::SizeDistribution;

#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    kind: Kind,
    multiple: u64,
}

#[derive(Debug, Clone)]
enum Kind {
    Fixed(u64),
    Uniform {
        minimum: u64,
        span: u64,
    },
    /// (size, sum of the weights up to and including it).
    Weighted(Vec<(u64, u64)>),
    Gamma {
        scale: f64,
        shape: f64,
    },
    Lognormal {
        median: f64,
        sigma: f64,
    },
}

impl Sizes {
    /// Checks the distribution. `multiple` is 1, or the unit of stamped data.
    pub(crate) fn new(distribution: &SizeDistribution, multiple: u64) -> Result<Self, LoadError> {
        let unsupported = |what: &str| LoadError::Unsupported { what: what.to_owned() };
        let kind = match distribution {
            SizeDistribution::Fixed(size) => Kind::Fixed(*size),
            SizeDistribution::Uniform { minimum, maximum } if minimum <= maximum => {
                Kind::Uniform { minimum: *minimum, span: maximum - minimum }
            }
            SizeDistribution::Uniform { .. } => {
                return Err(unsupported("has a fileset whose smallest size is above its largest"));
            }
            SizeDistribution::Weighted(table) => {
                let sums: Vec<(u64, u64)> = table
                    .iter()
                    .scan(0, |sum, (size, weight)| {
                        *sum += u64::from(*weight);
                        Some((*size, *sum))
                    })
                    .collect();
                if sums.last().is_none_or(|(_, sum)| *sum == 0) {
                    return Err(unsupported("has a fileset whose sizes have no weight"));
                }
                Kind::Weighted(sums)
            }
            SizeDistribution::Gamma { mean, shape } => {
                if !(shape.is_finite() && *shape > 0.0) {
                    return Err(unsupported("has a fileset with a gamma distribution whose shape is not above 0"));
                }
                Kind::Gamma { scale: *mean as f64 / shape, shape: *shape }
            }
            SizeDistribution::Lognormal { median, sigma } => {
                if !(sigma.is_finite() && *sigma >= 0.0) {
                    return Err(unsupported("has a fileset with a lognormal distribution whose sigma is below 0"));
                }
                Kind::Lognormal { median: *median as f64, sigma: *sigma }
            }
        };
        let sizes = Self { kind, multiple: multiple.max(1) };
        if sizes.largest().is_some_and(|largest| largest > MAX_FILE_BYTES - sizes.multiple) {
            return Err(unsupported("has files larger than 256 TiB"));
        }
        Ok(sizes)
    }

    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        let size = match &self.kind {
            Kind::Fixed(size) => *size,
            Kind::Uniform { minimum, span } => minimum + random.below(*span),
            Kind::Weighted(table) => {
                let total = table.last().map_or(0, |(_, sum)| *sum);
                let drawn = random.below(total);
                table.iter().find(|(_, sum)| drawn < *sum).map_or(0, |(size, _)| *size)
            }
            Kind::Gamma { scale, shape } => round(random.gamma(*shape) * scale),
            Kind::Lognormal { median, sigma } => round((random.normal() * sigma).exp() * median),
        };
        size.next_multiple_of(self.multiple)
    }

    /// The size of all files, when they are alike.
    pub(crate) fn fixed(&self) -> Option<u64> {
        match self.kind {
            Kind::Fixed(size) => Some(size.next_multiple_of(self.multiple)),
            _ => None,
        }
    }

    fn largest(&self) -> Option<u64> {
        match &self.kind {
            Kind::Fixed(size) => Some(*size),
            Kind::Uniform { minimum, span } => Some(minimum + span),
            Kind::Weighted(table) => table.iter().map(|(size, _)| *size).max(),
            Kind::Gamma { .. } | Kind::Lognormal { .. } => None,
        }
    }

    pub(crate) fn allows(&self, size: u64) -> bool {
        let up = |bytes: u64| bytes.next_multiple_of(self.multiple);
        match &self.kind {
            Kind::Fixed(fixed) => size == up(*fixed),
            Kind::Uniform { minimum, span } => (up(*minimum)..=up(minimum + span.saturating_sub(1))).contains(&size),
            Kind::Weighted(table) => table.iter().any(|(known, _)| size == up(*known)),
            Kind::Gamma { .. } | Kind::Lognormal { .. } => size.is_multiple_of(self.multiple),
        }
    }

    /// The least that a file must hold to be used in place of one of this distribution.
    pub(crate) fn least(&self) -> u64 {
        match &self.kind {
            Kind::Fixed(size) => *size,
            Kind::Uniform { minimum, .. } => *minimum,
            Kind::Weighted(table) => table.iter().map(|(size, _)| *size).min().unwrap_or(0),
            Kind::Gamma { .. } | Kind::Lognormal { .. } => 0,
        }
    }
}

fn round(bytes: f64) -> u64 {
    (bytes.round().max(0.0) as u64).min(MAX_FILE_BYTES / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(distribution: &SizeDistribution) -> f64 {
        let sizes = Sizes::new(distribution, 1).expect("valid");
        let mut random = Random::new(5);
        let n = 100_000;
        (0..n)
            .map(|_| {
                let size = sizes.draw(&mut random);
                assert!(sizes.allows(size) && size >= sizes.least());
                size as f64
            })
            .sum::<f64>()
            / f64::from(n)
    }

    #[test]
    fn means_fit() {
        let close = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.02, "{found} for {wanted}");
        close(mean(&SizeDistribution::Fixed(4096)), 4096.0);
        close(mean(&SizeDistribution::Uniform { minimum: 4096, maximum: 524_288 }), f64::from(4096 + 524_287) / 2.0);
        close(mean(&SizeDistribution::Weighted(vec![(1000, 3), (0, 0), (9000, 1)])), 3000.0);
        close(mean(&SizeDistribution::Gamma { mean: 16_384, shape: 1.5 }), 16_384.0);
        let sigma: f64 = 0.8;
        close(mean(&SizeDistribution::Lognormal { median: 10_000, sigma }), 10_000.0 * (sigma * sigma / 2.0).exp());
    }

    #[test]
    fn the_maximum_is_never_drawn_unless_alone() {
        let sizes = Sizes::new(&SizeDistribution::Uniform { minimum: 1, maximum: 3 }, 1).expect("valid");
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| sizes.draw(&mut random) < 3));
        let equal = Sizes::new(&SizeDistribution::Uniform { minimum: 3, maximum: 3 }, 1).expect("valid");
        assert_eq!(equal.draw(&mut random), 3);
        assert!(equal.allows(3));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for distribution in [
            SizeDistribution::Uniform { minimum: 2, maximum: 1 },
            SizeDistribution::Weighted(vec![(5, 0)]),
            SizeDistribution::Weighted(vec![]),
            SizeDistribution::Gamma { mean: 1, shape: 0.0 },
            SizeDistribution::Lognormal { median: 1, sigma: f64::NAN },
            SizeDistribution::Fixed(1 << 48),
        ] {
            assert!(Sizes::new(&distribution, 1).is_err(), "{distribution:?}");
        }
    }

    #[test]
    fn stamped_sizes_are_whole_units() {
        let sizes = Sizes::new(&SizeDistribution::Uniform { minimum: 1, maximum: 5000 }, 512).expect("valid");
        let mut random = Random::new(1);
        assert!(
            (0..1000).map(|_| sizes.draw(&mut random)).all(|size| size % 512 == 0 && size > 0 && sizes.allows(size))
        );
    }
}
