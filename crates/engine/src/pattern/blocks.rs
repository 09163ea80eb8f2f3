//! Blocks whose sizes are drawn.

use crate::error::LoadError;
use crate::fileset::Sizes;
use crate::random::Random;
use fstone_model::workload::SizeDistribution;

/// The sizes that an action draws its blocks from.
#[derive(Debug, Clone)]
pub(crate) struct BlockSizes {
    sizes: Sizes,
    /// Sizes are multiples of this.
    unit: u64,
}

impl BlockSizes {
    pub(crate) fn new(distribution: &SizeDistribution) -> Result<Self, LoadError> {
        let unit = match distribution {
            // Any other size would put the next block to where no direct I/O can be made.
            SizeDistribution::Uniform { minimum, .. } => (*minimum).max(1),
            _ => 1,
        };
        Ok(Self { sizes: Sizes::new(distribution, 1)?, unit })
    }

    /// A size, at least 1.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        let drawn = self.sizes.draw(random);
        (drawn - drawn % self.unit).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn drawn(distribution: &SizeDistribution) -> BTreeMap<u64, u64> {
        let sizes = BlockSizes::new(distribution).expect("it can be drawn from");
        let mut random = Random::new(3);
        let mut counts = BTreeMap::new();
        for _ in 0..100_000 {
            *counts.entry(sizes.draw(&mut random)).or_default() += 1;
        }
        counts
    }

    #[test]
    fn a_range_gives_multiples_of_its_smallest_size() {
        let counts = drawn(&SizeDistribution::Uniform { minimum: 4096, maximum: 5 * 4096 });
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [4096, 8192, 12288, 16384]);
        assert!(counts.values().all(|count| (24_000..26_000).contains(count)), "{counts:?}");
    }

    #[test]
    fn weights_are_shares() {
        let counts = drawn(&SizeDistribution::Weighted(vec![(512, 60), (65536, 40)]));
        assert_eq!(counts.len(), 2);
        assert!((59_000..61_000).contains(&counts[&512]), "{counts:?}");
    }
}
