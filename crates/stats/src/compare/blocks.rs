//! Removing from two rows the effect of each block that the other rows of the table show.

use std::collections::{BTreeMap, BTreeSet};

use super::result::Blocking;
use crate::Sample;
use crate::sample::{median_in_place, variance};

/// Fewer other rows than this cannot tell a block's effect from their own noise.
const MIN_REFERENCES: usize = 2;

pub(super) struct Blocks<'a> {
    samples: &'a [Sample],
    /// For each row the block of each figure.
    blocks: Vec<Vec<usize>>,
    /// For each row its figures' logarithms less their median, by block; `None` unless all are
    /// positive.
    deviations: Vec<Option<BTreeMap<usize, f64>>>,
}

impl<'a> Blocks<'a> {
    /// `None` for independent samples.
    pub(super) fn new(samples: &'a [Sample], blocking: Blocking<'_>) -> Option<Self> {
        let blocks = blocking.of(samples)?;
        for blocks in &blocks {
            let distinct: BTreeSet<_> = blocks.iter().collect();
            assert_eq!(distinct.len(), blocks.len(), "one trial of a cell in a block");
        }
        let deviations = samples.iter().zip(&blocks).map(|(s, b)| deviations(s, b)).collect();
        Some(Self { samples, blocks, deviations })
    }

    /// The figures (of `i`, of `j`) in the blocks that both have.
    pub(super) fn pairs(&self, i: usize, j: usize) -> Vec<(f64, f64)> {
        let of_row = |row: usize| self.blocks[row].iter().copied().zip(self.samples[row].values().iter().copied());
        let of_j: BTreeMap<usize, f64> = of_row(j).collect();
        of_row(i).filter_map(|(block, value)| Some((value, *of_j.get(&block)?))).collect()
    }

    /// Rows `i` and `j` with each figure divided by how its block did on all the *other* rows;
    /// `None` when those are too few or show no effect of the blocks.
    ///
    /// A block's effect is the median over the other rows of ln(figure / row's median), shrunk
    /// towards none by its reliability 1 − (noise variance / total variance), as in Efron & Morris
    /// (JASA 68, 1973). That `i` and `j` take no part in it keeps a test between them valid
    /// whatever the estimate is worth: under the null they stay exchangeable within each block, and
    /// what is left of the block's effect is common to both.
    pub(super) fn adjusted(&self, i: usize, j: usize) -> Option<(Sample, Sample)> {
        let factors = self.factors(i, j)?;
        let adjust = |row: usize| {
            let figures = self.samples[row].values().iter().zip(&self.blocks[row]);
            let divided = figures.map(|(v, block)| v / factors.get(block).unwrap_or(&1.0));
            Sample::new(divided.collect()).ok()
        };
        Some((adjust(i)?, adjust(j)?))
    }

    fn factors(&self, i: usize, j: usize) -> Option<BTreeMap<usize, f64>> {
        let mut by_block: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let others = self.deviations.iter().enumerate().filter(|(row, _)| *row != i && *row != j);
        for (block, deviation) in others.filter_map(|(_, d)| d.as_ref()).flatten() {
            by_block.entry(*block).or_default().push(*deviation);
        }
        by_block.retain(|_, deviations| deviations.len() >= MIN_REFERENCES);
        if by_block.len() < 2 {
            return None;
        }
        let effects: BTreeMap<usize, f64> =
            by_block.iter().map(|(block, d)| (*block, median_in_place(&mut d.clone()))).collect();
        let reliability = reliability(&by_block, &effects);
        (reliability > 0.0).then(|| effects.into_iter().map(|(b, effect)| (b, (reliability * effect).exp())).collect())
    }
}

fn deviations(sample: &Sample, blocks: &[usize]) -> Option<BTreeMap<usize, f64>> {
    if sample.min() <= 0.0 {
        return None;
    }
    let center = sample.median().ln();
    Some(blocks.iter().copied().zip(sample.values().iter().map(|v| v.ln() - center)).collect())
}

/// 1 − noise / total: which share of the effects' variance is more than the noise of a median of so
/// many rows.
fn reliability(by_block: &BTreeMap<usize, Vec<f64>>, effects: &BTreeMap<usize, f64>) -> f64 {
    let total = variance(&effects.values().copied().collect::<Vec<_>>());
    if total == 0.0 {
        return 0.0;
    }
    let rows = by_block.values().map(Vec::len).min().unwrap_or(MIN_REFERENCES) as f64;
    let mut distances: Vec<f64> =
        by_block.iter().flat_map(|(block, d)| d.iter().map(|deviation| (deviation - effects[block]).abs())).collect();
    // Robust, because one hung trial must not hide the blocks; n / (n − 1) for the fitted centre.
    let spread = 1.4826 * median_in_place(&mut distances);
    let noise_of_row = spread * spread * rows / (rows - 1.0);
    // A median scatters up to π/2 as much as a mean.
    let noise = std::f64::consts::FRAC_PI_2 * noise_of_row / rows;
    (1.0 - noise / total).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four rows of different magnitude that follow one another exactly.
    fn rows() -> Vec<Sample> {
        let blocks = [1.0, 1.2, 0.9, 1.5, 1.1];
        [1.0, 10.0, 100.0, 7.0]
            .iter()
            .map(|level| Sample::new(blocks.iter().map(|b| b * level).collect()).unwrap())
            .collect()
    }

    #[test]
    fn what_all_rows_share_is_taken_out() {
        let rows = rows();
        let (a, b) = Blocks::new(&rows, Blocking::Complete).unwrap().adjusted(0, 3).unwrap();
        assert!(a.max() - a.min() < 1e-9 && b.max() - b.min() < 1e-9, "{a:?} {b:?}");
        assert!((b.mean() / a.mean() - 7.0).abs() < 1e-9);
    }

    #[test]
    fn the_two_rows_themselves_take_no_part() {
        let mut rows = rows();
        let before = Blocks::new(&rows, Blocking::Complete).unwrap().factors(0, 3);
        rows[0] = Sample::new(vec![5.0, 1.0, 9.0, 2.0, 4.0]).unwrap();
        let after = Blocks::new(&rows, Blocking::Complete).unwrap().factors(0, 3);
        assert_eq!(before, after);
    }

    #[test]
    fn without_references_there_is_no_adjustment() {
        let rows = rows();
        assert!(Blocks::new(&rows[..3], Blocking::Complete).unwrap().adjusted(0, 1).is_none());
        assert!(Blocks::new(&rows, Blocking::Independent).is_none());
        let flat: Vec<Sample> = (0..5).map(|_| Sample::new(vec![3.0; 6]).unwrap()).collect();
        assert!(Blocks::new(&flat, Blocking::Complete).unwrap().adjusted(0, 1).is_none());
    }
}
