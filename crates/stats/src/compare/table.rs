//! All the rows of a table against each other.

use std::collections::HashMap;

use super::by_means::Means;
use super::by_ranks::compare_by_ranks;
use super::letters::letters;
use super::result::{Basis, Blocking, Comparison, Level, PairTest, Pairwise, RowMean, Scale, repeats_needed};
use super::shift::Shift;
use crate::Sample;
use crate::interval::{Interval, IntervalMethod};

/// Compares every row with every other, with the family-wise error held at `level`.
///
/// By means: an additive model of rows and blocks, fitted by least squares to logarithms ([`Scale::Ratios`], if all figures are
/// positive) or to the figures; the variance of each row moderated by that of all; every pair by Tukey's studentised range, with
/// degrees of freedom to match (Tukey 1953; Kramer, Biometrics 12, 1956; Games & Howell, J. Educ. Stat. 1, 1976). A pair is called
/// different exactly when its interval leaves out 0. Where the residuals are grossly non-normal and there are trials enough for rank
/// tests, those take over. Figures that do not vary but from row to row and block to block are compared as such. What this achieves
/// is in docs/method/calibration.md.
///
/// Rows that no blocks connect are not compared ([`block_groups`](super::block_groups)).
///
/// # Panics
/// When a level is not strictly between 0 and 1, or when the block lists do not match the samples
/// or name a block twice in one sample.
pub fn compare_all(samples: &[Sample], scale: Scale, level: Level, blocking: Blocking<'_>) -> Comparison {
    let (level, alpha) = (level.checked(), level.alpha);
    let rows = samples.len();
    if rows == 0 {
        return Comparison {
            alpha,
            rows,
            basis: Basis::Means,
            scale,
            means: Vec::new(),
            still: true,
            repeats_needed: 0,
            pairs: Vec::new(),
            letters: Some(Vec::new()),
        };
    }
    let means = Means::fit(samples, scale, level, blocking);
    // What is not compared by means is not compared by ranks either.
    let by_ranks = means.is_grossly_non_normal().then(|| {
        let mut pairs = compare_by_ranks(samples, level, blocking);
        for (pair, by_means) in pairs.iter_mut().zip(means.pairs()).filter(|(_, by_means)| !by_means.is_compared()) {
            *pair = by_means;
        }
        pairs
    });
    let all_can_differ = |pairs: &Vec<Pairwise>| {
        let mut compared = pairs.iter().filter(|pair| pair.is_compared()).peekable();
        compared.peek().is_some() && compared.all(|pair| pair.can_differ)
    };
    let by_ranks = by_ranks.filter(all_can_differ);
    let basis = if by_ranks.is_some() { Basis::Ranks } else { means.basis() };
    let pairs = by_ranks.unwrap_or_else(|| means.pairs());
    let different: HashMap<(usize, usize), bool> =
        pairs.iter().map(|pair| ((pair.baseline, pair.other), pair.differs)).collect();
    let letters = letters(rows, |i, j| different[&(i, j)] || !means.are_connected(i, j));
    let means_of_rows = means.means(|i, j| different[&(i, j)]);
    let repeats_needed =
        if basis == Basis::Ranks { repeats_needed(pairs.len(), alpha) } else { means.repeats_needed() };
    let (scale, still) = (means.scale(), means.is_still());
    Comparison { alpha, rows, basis, scale, means: means_of_rows, still, repeats_needed, pairs, letters }
}

impl Comparison {
    /// Whether these are figures that something moves, and enough of them to show how far.
    pub fn is_moved(&self) -> bool {
        !self.still && self.pairs.iter().all(|pair| pair.can_differ)
    }

    /// The same where a difference must also be one of the same rows in perturbed guests: intervals hold those of both, and a pair differs if
    /// its interval leaves out 0. Where guests move nothing, or too few trials show nothing, nothing changes.
    #[must_use]
    pub fn beyond(self, perturbed: &Self) -> Self {
        if !perturbed.is_moved() || perturbed.pairs.len() != self.pairs.len() {
            return self;
        }
        let hull = |own: Shift, moved: Shift| own.reaching(moved.interval.low).reaching(moved.interval.high);
        let both = |(own, moved): (&Pairwise, &Pairwise)| {
            let shift = hull(own.shift, moved.shift);
            let differs = own.differs && moved.differs && !shift.interval.contains(0.0);
            let relative = own.relative.zip(moved.relative).map(|(own, moved)| hull(own, moved));
            let [p, adjusted_p] = [(own.p, moved.p), (own.adjusted_p, moved.adjusted_p)].map(|(a, b)| {
                // Two differences of opposite directions are none.
                if own.differs && moved.differs && !differs { 1.0 } else { a.max(b) }
            });
            let test = if own.test == PairTest::Exact { moved.test } else { own.test };
            let (shift, relative) =
                if differs { (shift, relative) } else { (shift.reaching_none(), relative.map(Shift::reaching_none)) };
            Pairwise { test, p, adjusted_p, differs, shift, relative, ..*own }
        };
        let pairs: Vec<Pairwise> = self.pairs.iter().zip(&perturbed.pairs).map(both).collect();
        let differ: HashMap<(usize, usize), bool> =
            pairs.iter().map(|pair| ((pair.baseline, pair.other), pair.differs || !pair.is_compared())).collect();
        let letters = letters(self.rows, |i, j| differ[&(i, j)]);
        let basis = if self.basis == Basis::Exact { perturbed.basis } else { self.basis };
        let mut means: Vec<RowMean> =
            self.means.iter().zip(&perturbed.means).map(|(own, moved)| own.beyond(moved, self.scale)).collect();
        // Rows that are not called different have no gap between their intervals.
        for pair in pairs.iter().filter(|pair| pair.is_compared() && !pair.differs) {
            let of = |row: usize| means[row].interval;
            let (Some(a), Some(b)) = (of(pair.baseline), of(pair.other)) else { continue };
            let (lower, upper) = if a.low < b.low { (pair.baseline, pair.other) } else { (pair.other, pair.baseline) };
            let (Some(below), Some(above)) = (of(lower), of(upper)) else { continue };
            if below.high < above.low {
                let middle = f64::midpoint(below.high, above.low);
                means[lower].interval = Some(Interval { high: middle, ..below });
                means[upper].interval = Some(Interval { low: middle, ..above });
            }
        }
        Self { basis, means, still: false, pairs, letters, ..self }
    }

    /// The same where some rows' figures agree, but nothing shows that they do so by more than chance: these differ from none.
    #[must_use]
    pub fn doubting(mut self, is_doubted: impl Fn(usize) -> bool) -> Self {
        let doubted =
            |pair: &&mut Pairwise| pair.is_compared() && (is_doubted(pair.baseline) || is_doubted(pair.other));
        for pair in self.pairs.iter_mut().filter(doubted) {
            (pair.p, pair.adjusted_p, pair.differs, pair.can_differ) = (1.0, 1.0, false, false);
            (pair.shift, pair.relative) = (pair.shift.reaching_none(), None);
        }
        let is_powerless = |pair: &Pairwise| pair.is_compared() && !pair.can_differ;
        if !self.pairs.iter().any(|pair| is_powerless(pair) && !is_doubted(pair.baseline) && !is_doubted(pair.other)) {
            self.repeats_needed = 0;
        }
        let differ: HashMap<(usize, usize), bool> =
            self.pairs.iter().map(|pair| ((pair.baseline, pair.other), pair.differs || !pair.is_compared())).collect();
        self.letters = letters(self.rows, |i, j| differ[&(i, j)]);
        let means = self.means.iter_mut().enumerate().filter(|(row, _)| is_doubted(*row));
        means.for_each(|(_, mean)| mean.interval = None);
        self
    }
}

impl RowMean {
    /// With an interval that is as wide as the one in perturbed guests, too.
    #[must_use]
    pub fn beyond(&self, perturbed: &Self, scale: Scale) -> Self {
        let known = self.interval.zip(perturbed.interval).filter(|(_, moved)| moved.low < moved.high);
        let Some((own, moved)) = known else { return *self };
        let (low, high) = match scale {
            Scale::Ratios if self.estimate > 0.0 && perturbed.estimate > 0.0 => {
                [moved.low, moved.high].map(|end| self.estimate * end / perturbed.estimate).into()
            }
            _ => [moved.low, moved.high].map(|end| self.estimate + end - perturbed.estimate).into(),
        };
        let method = if own.method == IntervalMethod::Constant { moved.method } else { own.method };
        let n = if own.method == IntervalMethod::Constant { moved.n } else { own.n };
        let interval = Interval { low: own.low.min(low), high: own.high.max(high), method, n, ..own };
        Self { interval: Some(interval), ..*self }
    }
}

/// What each row comes to, as in [`compare_all`] but without comparing the rows, whose intervals may then lie apart by chance.
pub fn row_means(samples: &[Sample], scale: Scale, level: Level, blocking: Blocking<'_>) -> Vec<RowMean> {
    if samples.is_empty() {
        return Vec::new();
    }
    Means::fit(samples, scale, level.checked(), blocking).means(|_, _| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).unwrap()
    }

    fn row(start: f64, n: usize) -> Sample {
        Sample::new((0..n).map(|i| start + (i * 7 % 10) as f64 / 10.0).collect()).unwrap()
    }

    fn shifted(sample: &Sample, by: f64) -> Sample {
        Sample::new(sample.values().iter().map(|v| v + by).collect()).unwrap()
    }

    const CLOSE: [f64; 9] = [0.97, 1.02, 1.01, 0.99, 1.03, 0.98, 1.0, 1.015, 0.985];

    /// Nine rows of three trials, the first twice as large as the rest.
    fn table() -> Vec<Sample> {
        (0..9)
            .map(|row| {
                let level = if row == 0 { 200.0 } else { 100.0 };
                let noise = |block: usize| level * CLOSE[(row * 4 + block * 7) % 9] * (1.0 + block as f64 / 2.0);
                Sample::new((0..3).map(noise).collect()).unwrap()
            })
            .collect()
    }

    #[test]
    fn three_blocks_tell_a_factor_of_two_through_a_drift_of_as_much() {
        let comparison = compare_all(&table(), Scale::Ratios, Level::FIXED, Blocking::Complete);
        assert_eq!(comparison.basis, Basis::Means);
        for pair in &comparison.pairs {
            assert_eq!(pair.differs, pair.baseline == 0, "{pair:?}");
        }
        let pair = comparison.pair(1, 0).unwrap();
        assert!(pair.relative.unwrap().interval.contains(1.0), "{pair:?}");
        assert_eq!(comparison.letters.as_ref().unwrap().concat(), "abbbbbbbb");
        let apart = compare_all(&table(), Scale::Ratios, Level::FIXED, Blocking::Independent);
        assert!(apart.pairs.iter().all(|pair| !pair.differs), "without blocks the drift hides it");
    }

    #[test]
    fn intervals_never_contradict_what_is_called_different() {
        for spread in 1..60 {
            let rows: Vec<Sample> =
                table().iter().enumerate().map(|(row, s)| shifted(s, f64::from(spread) * row as f64)).collect();
            let found = compare_all(&rows, Scale::Ratios, Level::FIXED, Blocking::Complete);
            for pair in &found.pairs {
                let of = |row: usize| found.means[row].interval.unwrap();
                let (a, b) = (of(pair.baseline), of(pair.other));
                let gap = a.high * (1.0 + 1e-12) < b.low || b.high * (1.0 + 1e-12) < a.low;
                assert!(pair.differs || !gap, "{pair:?} {a:?} {b:?}");
                assert_eq!(pair.differs, !pair.relative.unwrap().interval.contains(0.0));
                assert_eq!(pair.differs, !pair.shift.interval.contains(0.0));
                let quotient = found.means[pair.other].estimate / found.means[pair.baseline].estimate;
                assert!((1.0 + pair.relative.unwrap().estimate - quotient).abs() < 1e-9, "one estimator");
            }
        }
    }

    #[test]
    fn rows_far_apart_differ() {
        let rows = [row(1.0, 10), row(50.0, 10), row(1.05, 10)];
        let comparison = compare_all(&rows, Scale::Differences, Level::FIXED, Blocking::Independent);
        assert_eq!(comparison.power_note(), None);
        assert_eq!(comparison.letters.as_ref().unwrap(), &["a", "b", "a"]);
        let forward = comparison.pair(0, 1).unwrap();
        assert!(forward.differs && forward.cliffs_delta == 1.0);
        assert!((forward.shift.estimate - 49.0).abs() < 1e-9);
        let backward = comparison.pair(1, 0).unwrap();
        assert_eq!((backward.baseline, backward.other, backward.cliffs_delta), (1, 0, -1.0));
        assert!(backward.shift.interval.contains(-49.0));
        assert!(backward.relative.unwrap().estimate < -0.9);
        assert_eq!(comparison.pair(1, 1), None);
    }

    #[test]
    fn missing_trials_are_compared_within_their_blocks() {
        let full: Vec<f64> = (0..12).map(f64::from).collect();
        let blocks_full: Vec<usize> = (0..12).collect();
        let gaps: Vec<f64> = full.iter().filter(|v| **v != 3.0).map(|v| v + 0.5).collect();
        let blocks_gaps: Vec<usize> = (0..12).filter(|b| *b != 3).collect();
        let rows = [sample(&full), sample(&gaps)];
        let blocks = [blocks_full, blocks_gaps];
        let comparison = compare_all(&rows, Scale::Differences, Level::FIXED, Blocking::Blocks(&blocks));
        let pair = comparison.pairs[0];
        assert_eq!(
            (comparison.basis, pair.test),
            (Basis::Exact, PairTest::Exact),
            "the blocks explain all but the rows"
        );
        assert!((pair.shift.estimate - 0.5).abs() < 1e-9 && pair.differs);
        assert!((comparison.means[1].estimate - comparison.means[0].estimate - 0.5).abs() < 1e-9);
    }

    /// Two rows that ran in blocks 5 to 9, when everything took 1.5 times as long, and one in blocks 0 to 4; with others or without.
    #[test]
    fn rows_that_share_no_block_are_not_compared_and_cost_the_others_nothing() {
        let noise = |row: usize, block: usize| CLOSE[(row * 4 + block * 7) % 9] * (1.0 + (block % 5) as f64);
        let values = |row: usize, blocks: std::ops::Range<usize>, level: f64| {
            sample(&blocks.map(|block| level * noise(row, block)).collect::<Vec<_>>())
        };
        let rows = [values(0, 0..5, 100.0), values(1, 5..10, 150.0), values(2, 5..10, 300.0)];
        let blocks = [(0..5).collect(), (5..10).collect(), (5..10).collect()];
        for scale in [Scale::Ratios, Scale::Differences] {
            let found = compare_all(&rows, scale, Level::FIXED, Blocking::Blocks(&blocks));
            let apart: Vec<_> = found.pairs.iter().filter(|pair| !pair.is_compared()).collect();
            assert_eq!(apart.iter().map(|pair| (pair.baseline, pair.other)).collect::<Vec<_>>(), [(0, 1), (0, 2)]);
            assert!(apart.iter().all(|pair| !pair.differs && !pair.can_differ && pair.relative.is_none()));
            assert_eq!(found.power_note(), None, "more trials would not help");
            let letters = found.letters.as_ref().unwrap();
            assert!(!letters[1].contains(&letters[0]) && !letters[2].contains(&letters[0]), "{letters:?}");
        }
        let found = compare_all(&rows, Scale::Ratios, Level::FIXED, Blocking::Blocks(&blocks));
        let (alone, rest) = (&rows[1..], &blocks[1..]);
        let without = compare_all(alone, Scale::Ratios, Level::FIXED, Blocking::Blocks(rest)).pairs[0];
        let pair = found.pair(1, 2).unwrap();
        assert!(pair.differs && without.differs, "blocks vary five times as much as rows differ");
        assert!((pair.p / without.p - 1.0).abs() < 1e-9, "{} {}", pair.p, without.p);
        assert!(found.means[0].interval.unwrap().contains(found.means[0].estimate), "a row alone has its own scatter");
        // A row that links the two groups makes all of them comparable.
        let linked = [rows.to_vec(), vec![values(3, 0..10, 100.0)]].concat();
        let blocks = [blocks.to_vec(), vec![(0..10).collect()]].concat();
        let found = compare_all(&linked, Scale::Ratios, Level::FIXED, Blocking::Blocks(&blocks));
        assert!(found.pairs.iter().all(Pairwise::is_compared));
    }

    #[test]
    fn a_stricter_level_widens_and_claims_the_same() {
        let strict = Level { nominal: 0.01, ..Level::FIXED };
        let of = |level| compare_all(&table(), Scale::Ratios, level, Blocking::Complete);
        let (fixed, looked) = (of(Level::FIXED), of(strict));
        for (a, b) in fixed.pairs.iter().zip(&looked.pairs) {
            assert!(b.shift.interval.half_width() > 1.1 * a.shift.interval.half_width());
            assert_eq!(a.shift.interval.confidence, b.shift.interval.confidence);
            assert!((b.adjusted_p - (5.0 * a.adjusted_p).min(1.0)).abs() < 1e-9);
            assert_eq!(b.differs, b.adjusted_p <= 0.05);
        }
    }

    #[test]
    fn figures_that_never_vary_are_compared_as_such() {
        let rows = [sample(&[7.0; 3]), sample(&[7.0; 3]), sample(&[7.000_1; 3])];
        let comparison = compare_all(&rows, Scale::Ratios, Level::FIXED, Blocking::Complete);
        assert_eq!(comparison.basis, Basis::Exact);
        assert_eq!(comparison.letters.unwrap(), ["a", "a", "b"]);
        assert_eq!(comparison.means[0].interval.unwrap().half_width(), 0.0);
        assert_eq!((comparison.pairs[0].adjusted_p, comparison.pairs[1].adjusted_p), (1.0, 0.0));
    }

    #[test]
    fn a_difference_must_exceed_what_perturbed_guests_move() {
        let of = |rows: &[&[f64]], blocks: &[Vec<usize>]| {
            let samples: Vec<Sample> = rows.iter().map(|row| sample(row)).collect();
            compare_all(&samples, Scale::Ratios, Level::FIXED, Blocking::Noiseless(blocks))
        };
        let blocks = vec![vec![0, 1, 2]; 3];
        let seeds = of(&[&[100.0; 3], &[108.0; 3], &[300.0; 3]], &blocks);
        assert!(seeds.pairs.iter().all(|pair| pair.differs && pair.test == PairTest::Exact));
        let wild = of(&[&[100.0, 119.0, 81.0], &[108.0, 90.0, 125.0], &[300.0, 250.0, 340.0]], &blocks);
        let found = seeds.clone().beyond(&wild);
        assert_eq!(found.pairs.iter().map(|pair| pair.differs).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(
            (found.basis, found.letters.as_deref()),
            (Basis::Means, Some(&["a", "a", "b"].map(String::from)[..]))
        );
        for pair in &found.pairs {
            assert_eq!(pair.differs, !pair.shift.interval.contains(0.0), "{pair:?}");
            assert_eq!(pair.differs, pair.adjusted_p <= 0.05, "{pair:?}");
            let of = |row: usize| found.means[row].interval.unwrap();
            let (a, b) = (of(pair.baseline), of(pair.other));
            assert!(pair.differs || (a.high >= b.low && b.high >= a.low), "{a:?} {b:?}");
        }
        assert!(found.means[0].interval.unwrap().half_width() > 5.0, "{:?}", found.means[0]);
        // Guests that nothing moves leave differences as exact as they were.
        assert_eq!(seeds.clone().beyond(&seeds).pairs, seeds.pairs);
        let single = of(&[&[100.0], &[108.0], &[300.0]], &[vec![0], vec![0], vec![0]]);
        assert_eq!(seeds.clone().beyond(&single), seeds);
    }

    #[test]
    fn figures_that_agree_in_too_few_blocks_show_nothing_and_it_is_said() {
        for (rows, blocks, needed) in [(2, 2, 5), (3, 2, 3), (2, 3, 5), (2, 4, 5), (2, 5, 0), (3, 3, 0)] {
            let constant: Vec<Sample> =
                (0..rows).map(|row| sample(&vec![1.0 + 49.0 * f64::from(row); blocks])).collect();
            let found = compare_all(&constant, Scale::Ratios, Level::FIXED, Blocking::Complete);
            let note = found.power_note().map_or(0, |note| note.repeats_needed);
            assert_eq!((note, found.can_ever_differ()), (needed, needed == 0), "{rows} rows, {blocks} blocks");
            assert_eq!(found.basis == Basis::Exact, needed == 0, "{rows} rows, {blocks} blocks");
            let equal =
                compare_all(&vec![sample(&vec![7.0; blocks]); 2], Scale::Ratios, Level::FIXED, Blocking::Complete);
            assert!(equal.power_note().is_none() && !equal.pairs[0].differs, "equal rows have no difference to prove");
        }
    }

    /// Figures of two values, as likely as each other, in so many blocks.
    #[test]
    fn figures_that_agree_by_chance_are_not_exact() {
        let mut random = crate::random::Random::new(5);
        for (rows, blocks) in [(2, 2), (3, 2), (2, 3), (3, 3), (5, 2)] {
            let lists = vec![(0..blocks).collect::<Vec<usize>>(); rows];
            let wrong = (0..2000).filter(|_| {
                let mut row = || sample(&(0..blocks).map(|_| 10.0 + random.below(2) as f64).collect::<Vec<_>>());
                let samples: Vec<Sample> = (0..rows).map(|_| row()).collect();
                let found = compare_all(&samples, Scale::Ratios, Level::FIXED, Blocking::Noiseless(&lists));
                found.basis == Basis::Exact && found.pairs.iter().any(|pair| pair.differs)
            });
            let wrong = wrong.count();
            assert!(wrong <= 100, "{rows} rows, {blocks} blocks: {wrong} of 2000");
        }
    }

    #[test]
    fn ranks_take_over_where_single_trials_are_far_off() {
        // Every third trial takes a hundred times as long; the rest differ by a tenth.
        let values =
            |level: f64| (0..24).map(|i| level * CLOSE[i % 9] * if i % 3 == 0 { 100.0 } else { 1.0 }).collect();
        let rows = [Sample::new(values(1.0)).unwrap(), Sample::new(values(1.2)).unwrap()];
        let comparison = compare_all(&rows, Scale::Differences, Level::FIXED, Blocking::Complete);
        assert_eq!(comparison.basis, Basis::Ranks);
        let pair = comparison.pairs[0];
        assert_eq!(pair.test, PairTest::SignedRank);
        assert!(pair.differs && !pair.shift.interval.contains(0.0));
    }

    #[test]
    fn one_row_or_none_is_a_table_too() {
        let alone = compare_all(&[row(1.0, 3)], Scale::Ratios, Level::FIXED, Blocking::Complete);
        assert_eq!(alone.letters.unwrap(), ["a"]);
        assert!(alone.means[0].interval.unwrap().contains(1.3));
        assert!(compare_all(&[], Scale::Ratios, Level::FIXED, Blocking::Independent).pairs.is_empty());
    }

    #[test]
    fn single_trials_cannot_differ_and_it_is_said() {
        let rows = [sample(&[1.0]), sample(&[101.0])];
        let comparison = compare_all(&rows, Scale::Ratios, Level::FIXED, Blocking::Complete);
        assert!(!comparison.can_ever_differ());
        let note = comparison.power_note().unwrap();
        assert_eq!((note.powerless_pairs, note.pairs, note.repeats_needed), (1, 1, 2));
        assert!(comparison.pairs[0].shift.interval.low.is_finite());
    }
}
