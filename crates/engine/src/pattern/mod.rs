//! Which block comes next: how random positions are drawn, and how a fileset is seen as one space.

mod blocks;
mod cover;
mod gauss;
mod permutation;
mod space;
mod zipf;

pub(crate) use blocks::BlockSizes;
pub(crate) use cover::Cover;
pub(crate) use permutation::permute;
pub(crate) use space::{Roster, Space};

use crate::random::{Random, derive};
use fstone_model::workload::{Distribution, Extent, Pattern, Transfer, Zones};
use zipf::Zipf;

/// Draws numbers from `0..space` by a distribution. One per thread and action: it keeps the constants of the space
/// that it drew from last.
#[derive(Debug)]
pub(crate) struct Drawer {
    distribution: Distribution,
    /// The seed of permutations and of where frequent places are; the same for all threads of a group.
    seed: u64,
    zipf: Option<Zipf>,
}

impl Drawer {
    pub(crate) fn new(distribution: Distribution, seed: u64) -> Self {
        Self { distribution, seed, zipf: None }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// A number from `0..space`, if the distribution is uniform: the common case, which is worth a way of its own.
    #[inline(always)]
    pub(crate) fn uniform(&self, space: u64, random: &mut Random) -> Option<u64> {
        (self.distribution == Distribution::Uniform).then(|| random.below(space))
    }

    /// A number from `0..space`; `turn` is how many were drawn from it before, which only a permutation asks.
    #[inline]
    pub(crate) fn draw(&mut self, space: u64, random: &mut Random, turn: impl FnOnce() -> u64) -> u64 {
        match self.distribution {
            Distribution::Uniform => random.below(space),
            Distribution::Zipf { theta } => {
                if self.zipf.as_ref().is_none_or(|zipf| zipf.space() != space) {
                    self.zipf = Some(Zipf::new(space, theta));
                }
                let rank = self.zipf.as_ref().map_or(0, |zipf| zipf.draw(random));
                permute(rank, space, self.seed)
            }
            Distribution::Gauss { deviation, scattered: false } => gauss::draw(space, deviation, random),
            Distribution::Gauss { deviation, scattered: true } => {
                permute(gauss::draw(space, deviation, random), space, self.seed)
            }
            Distribution::Pareto { share } => permute(pareto(space, share, random), space, self.seed),
            Distribution::Zoned(zones) => zoned(space, &zones, random),
            Distribution::Permutation => {
                if space == 0 {
                    return 0;
                }
                let turn = turn();
                permute(turn % space, space, derive(self.seed, &[turn / space]))
            }
        }
    }
}

/// The power of a uniform number that gives the Pareto principle: the h-th part of the space comes up 1 - h of the time.
pub(crate) fn pareto_power(share: f64) -> f64 {
    share.ln() / (1.0 - share).ln()
}

fn pareto(space: u64, share: f64, random: &mut Random) -> u64 {
    let place = random.unit().powf(pareto_power(share)) * space as f64;
    (place as u64).min(space.saturating_sub(1))
}

fn zoned(space: u64, zones: &Zones, random: &mut Random) -> u64 {
    let mut drawn = random.below(zones.weights());
    for (weight, begin, end) in zones.of(space) {
        if drawn < u64::from(weight) {
            return begin + random.below(end - begin);
        }
        drawn -= u64::from(weight);
    }
    0
}

pub(crate) fn extent_bytes(transfer: &Transfer, size: u64) -> u64 {
    match transfer.extent {
        Extent::Whole => size,
        Extent::Bytes(bytes) => bytes.min(size),
    }
}

/// Whether the pattern draws every block by itself.
pub(crate) fn distribution_of(transfer: &Transfer) -> Option<Distribution> {
    match transfer.pattern {
        Pattern::Random { distribution, .. } => Some(distribution),
        _ => None,
    }
}

/// Positions in a file of this size that the transfer's pattern can be asked for by number: units of a walk, or
/// starts of random blocks. Random blocks are whole ones; only a permutation and a walk also take what is left of a
/// block at a file's end.
pub(crate) fn positions(transfer: &Transfer, size: u64) -> u64 {
    if size == 0 {
        return 0;
    }
    match transfer.pattern {
        Pattern::Cursor { .. } => match transfer.extent {
            Extent::Whole => 1,
            Extent::Bytes(bytes) => size.div_ceil(bytes.max(1)),
        },
        Pattern::Random { distribution, align_bytes } => {
            let align = align_bytes.max(1);
            let block = block_bytes(transfer, size);
            if distribution == Distribution::Permutation { size.div_ceil(align) } else { (size - block) / align + 1 }
        }
        Pattern::FromStart
        | Pattern::FromRandom { .. }
        | Pattern::Skip { .. }
        | Pattern::Stride { .. }
        | Pattern::Bursts { .. }
        | Pattern::Written { .. }
        | Pattern::Runs(_) => 1,
    }
}

#[inline(always)]
pub(crate) fn alignment(transfer: &Transfer) -> u64 {
    match transfer.pattern {
        Pattern::Random { align_bytes, .. } => align_bytes.max(1),
        _ => 1,
    }
}

pub(crate) fn block_bytes(transfer: &Transfer, size: u64) -> u64 {
    let block = match transfer.extent {
        Extent::Whole => transfer.block_bytes,
        Extent::Bytes(bytes) => transfer.block_bytes.min(bytes),
    };
    block.max(1).min(size)
}

/// Whole blocks of one operation that draws each by itself; one when the extent is smaller than a block.
#[inline(always)]
pub(crate) fn random_blocks(transfer: &Transfer, size: u64) -> u64 {
    match transfer.extent {
        Extent::Bytes(bytes) if bytes < transfer.block_bytes.saturating_mul(2) => 1,
        _ => (extent_bytes(transfer, size) / transfer.block_bytes.max(1)).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(extent: Extent, block_bytes: u64, pattern: Pattern) -> Transfer {
        Transfer { extent, block_bytes, pattern, fsync: false }
    }

    #[test]
    fn random_blocks_are_whole_and_permutations_complete() {
        let at = |distribution, align_bytes| Pattern::Random { distribution, align_bytes };
        let uniform = transfer(Extent::Bytes(4096), 4096, at(Distribution::Uniform, 4096));
        assert_eq!(positions(&uniform, 10_000), 2);
        assert_eq!(positions(&uniform, 100), 1);
        assert_eq!(positions(&uniform, 0), 0);
        let anywhere = transfer(Extent::Bytes(4096), 4096, at(Distribution::Uniform, 1));
        assert_eq!(positions(&anywhere, 10_000), 10_000 - 4096 + 1);
        let every = transfer(Extent::Bytes(4096), 4096, at(Distribution::Permutation, 4096));
        assert_eq!(positions(&every, 10_000), 3);
        let walk = transfer(Extent::Bytes(4096), 1024, Pattern::Cursor { shared: true });
        assert_eq!(positions(&walk, 10_000), 3);
        assert_eq!(block_bytes(&walk, 10_000), 1024);
    }

    #[test]
    fn scattered_places_are_no_neighbours() {
        let frequent = |scattered| {
            let mut drawer = Drawer::new(Distribution::Gauss { deviation: 0.05, scattered }, 9);
            let mut random = Random::new(3);
            let mut counts = vec![0u32; 1000];
            (0..100_000).for_each(|_| counts[drawer.draw(1000, &mut random, || 0) as usize] += 1);
            let middle: u32 = counts[400..600].iter().sum();
            counts.sort_unstable();
            (middle, counts[800..].iter().sum::<u32>())
        };
        let ((gathered, first), (spread, second)) = (frequent(false), frequent(true));
        assert!(gathered > 90_000 && spread < 50_000, "{gathered} {spread}");
        assert!(first.abs_diff(second) < 500, "{first} {second}");
    }

    #[test]
    fn a_permutation_takes_another_order_each_round() {
        let mut random = Random::new(0);
        let mut drawer = Drawer::new(Distribution::Permutation, 5);
        let mut round = |number: u64| -> Vec<u64> {
            (0..100).map(|turn| drawer.draw(100, &mut random, || number * 100 + turn)).collect()
        };
        let (first, second) = (round(0), round(1));
        assert_ne!(first, second);
        for mut blocks in [first, second] {
            blocks.sort_unstable();
            assert_eq!(blocks, (0..100).collect::<Vec<u64>>());
        }
    }
}
