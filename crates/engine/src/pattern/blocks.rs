//! Blocks whose sizes are drawn.

use crate::error::LoadError;
use crate::fileset::Sizes;
use crate::random::Random;
use fstone_model::workload::SizeDistribution;

#[derive(Debug, Clone)]
pub(crate) enum BlockSizes {
    /// The first so many multiples of a unit: any other size would put the next block to where no direct I/O can be made.
    Multiples {
        unit: u64,
        count: u64,
    },
    Drawn(Sizes),
}

impl BlockSizes {
    pub(crate) fn new(distribution: &SizeDistribution) -> Result<Self, LoadError> {
        let sizes = Sizes::new(distribution, 1)?;
        Ok(match (distribution, distribution.block_bounds()) {
            (SizeDistribution::Uniform { .. }, Some((_, largest))) => {
                let unit = sizes.least().max(1);
                Self::Multiples { unit, count: largest / unit }
            }
            _ => Self::Drawn(sizes),
        })
    }

    /// A size, at least 1.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Self::Multiples { unit, count } => unit * (1 + random.below(*count)),
            Self::Drawn(sizes) => sizes.draw(random).max(1),
        }
    }
}
