//! The rows of a table compared by their means: rows + blocks, and Tukey's studentised range.

use super::additive::{Additive, Contrast, block_groups};
use super::normality::grossly_non_normal;
use super::result::{Basis, Blocking, Level, PairTest, Pairwise, RowMean, Scale};
use super::shift::{Shift, cliffs_delta};
use crate::distribution::{student_quantile, student_two_sided, upper_f};
use crate::interval::{Interval, IntervalMethod};
use crate::range::StudentizedRange;
use crate::sample::median_in_place;
use crate::{ROUNDING, Sample};
use std::collections::HashSet;

/// What is known of a row's scatter is its own residuals and as much of all rows' as this many degrees of freedom are worth.
///
/// Compared with the pooled variance, rows that scatter alike lose little by it: the moderated variances of Smyth (Stat. Appl. Genet.
/// Mol. Biol. 3, 2004), with the weight of the prior fixed, since a table has too few rows to estimate it. Chosen with
/// [`UNLIKE`] by simulation (docs/method/calibration.md).
const SHARED_FREEDOM: f64 = 10.0;

/// A row whose own scatter would be this rare if it scattered like a typical row is judged by its own residuals alone, as
/// Phipson et al. do (Ann. Appl. Stat. 10, 2016): with the others' scatter it would be called different by mistake in one table of eight.
const UNLIKE: f64 = 0.2;

/// Where fewer degrees of freedom than this are a row's own, as with three blocks, that it scatters more is often missed: its pairs are tested at
/// this share of the level. At the whole level nine equal rows were called different in 8 % of tables, if one scattered three times as much.
const FEW_FREEDOM: f64 = 2.0;
const OF_FEW: f64 = 0.5;

/// With fewer residual degrees of freedom than this, figures that agree may do so by chance: three rows of two blocks whose figures
/// have two values, as likely as each other, agree and differ in 9 % of tables; with this many degrees of freedom it is 4 % at most.
const MIN_EXACT_FREEDOM: f64 = 4.0;

/// The same for figures without noise, if they are of three blocks at least: two rows of two values agree and differ in 3 % of tables.
const MIN_NOISELESS_FREEDOM: f64 = 2.0;
const MIN_NOISELESS_BLOCKS: usize = 3;

/// With two figures of every row something is known of the scatter.
const MIN_REPEATS: usize = 2;

pub(super) struct Means<'a> {
    samples: &'a [Sample],
    scale: Scale,
    level: Level,
    /// One for each group of rows that blocks connect.
    parts: Vec<Part>,
    /// Of each row: its part, and its place among the part's rows.
    places: Vec<(usize, usize)>,
    /// Degrees of freedom of the residuals of all rows that share blocks.
    freedom: f64,
    /// The variance of all rows that share blocks, together.
    pooled: f64,
    variances: Vec<Variance>,
    /// Whether figures do not vary but from row to row and block to block.
    still: bool,
    exact: bool,
    /// The degrees of freedom and the blocks with which figures that do not vary are exact.
    exact_from: (f64, usize),
    largest: f64,
    /// The share of the level at which rows of few degrees of freedom are tested.
    of_few: f64,
}

#[derive(Clone, Copy)]
struct Variance {
    value: f64,
    /// Degrees of freedom that the pooled variance counts for in it.
    shared: f64,
    /// Degrees of freedom of the row's own residuals.
    own: f64,
}

/// Rows that blocks connect, fitted together.
struct Part {
    rows: Vec<usize>,
    model: Additive,
}

/// A contrast with its standard error and the degrees of freedom of that.
struct Known {
    estimate: f64,
    error: f64,
    freedom: f64,
}

impl<'a> Means<'a> {
    pub(super) fn fit(samples: &'a [Sample], scale: Scale, level: Level, blocking: Blocking<'_>) -> Self {
        let fitted = Self::fit_sharing((SHARED_FREEDOM, UNLIKE), samples, scale, level, blocking);
        Self { of_few: OF_FEW, ..fitted }
    }

    fn fit_sharing(
        (shared, unlike): (f64, f64),
        samples: &'a [Sample],
        scale: Scale,
        level: Level,
        blocking: Blocking<'_>,
    ) -> Self {
        let blocks = blocking.of(samples);
        let blocks = blocks.as_deref();
        let all_positive = samples.iter().all(|sample| sample.min() > 0.0);
        let scale = if all_positive { scale } else { Scale::Differences };
        let figures: Vec<Vec<f64>> = samples
            .iter()
            .map(|sample| match scale {
                Scale::Ratios => sample.values().iter().map(|v| v.ln()).collect(),
                Scale::Differences => sample.values().to_vec(),
            })
            .collect();
        let parts = parts(&figures, blocks);
        let mut places = vec![(0, 0); samples.len()];
        for (number, part) in parts.iter().enumerate() {
            for (place, row) in part.rows.iter().enumerate() {
                places[*row] = (number, place);
            }
        }
        let largest = figures.iter().flatten().fold(0.0, |largest: f64, v| largest.max(v.abs()));
        let all: f64 = parts.iter().map(|part| part.model.freedom).sum();
        let residuals = parts.iter().flat_map(|part| &part.model.residuals);
        let still = residuals.into_iter().all(|residual| residual.abs() <= ROUNDING * largest);
        let exact_from = match blocking {
            Blocking::Proven(_) => (0.0, 1),
            Blocking::Noiseless(_) => (MIN_NOISELESS_FREEDOM, MIN_NOISELESS_BLOCKS),
            _ => (MIN_EXACT_FREEDOM, 1),
        };
        let distinct = || blocks.into_iter().flatten().flatten().collect::<HashSet<_>>().len();
        let has_blocks = exact_from.1 == 1 || distinct() >= exact_from.1;
        let exact = still && (all >= exact_from.0 && has_blocks || all >= MIN_EXACT_FREEDOM);
        // Rounding errors are not scatter, and too few figures that are equal by chance must not be judged by it.
        let scatter = |squares: f64| if still { 0.0 } else { squares };
        // The scatter of a row that shares no block with others includes what its blocks did: it says nothing about theirs.
        let alone = |part: &Part| parts.len() > 1 && part.rows.len() == 1;
        let shared_by: Vec<&Part> = parts.iter().filter(|part| !alone(part)).collect();
        let squares: f64 =
            shared_by.iter().flat_map(|part| &part.model.of_rows).map(|(squares, _)| scatter(*squares)).sum();
        let freedom: f64 = shared_by.iter().map(|part| part.model.freedom).sum();
        let pooled = squares / freedom;
        let typical = typical(&shared_by, scatter);
        let variances = places
            .iter()
            .map(|&(part, place)| {
                let (squares, own) = parts[part].model.of_rows[place];
                let squares = scatter(squares);
                let is_unlike = || upper_f(squares / own / typical, own, freedom) < unlike;
                let shared = if alone(&parts[part]) || is_unlike() { 0.0 } else { shared };
                let of_all = if shared > 0.0 { shared * pooled } else { 0.0 };
                Variance { value: (of_all + squares) / (shared + own), shared, own }
            })
            .collect();
        Self {
            samples,
            scale,
            level,
            parts,
            places,
            freedom,
            pooled,
            variances,
            still,
            exact,
            exact_from,
            largest,
            of_few: 1.0,
        }
    }

    pub(super) fn scale(&self) -> Scale {
        self.scale
    }

    pub(super) fn basis(&self) -> Basis {
        if self.exact { Basis::Exact } else { Basis::Means }
    }

    pub(super) fn is_still(&self) -> bool {
        self.still
    }

    /// The fewest repeats of every row with which every pair could differ.
    pub(super) fn repeats_needed(&self) -> usize {
        let rows = self.parts.iter().map(|part| part.rows.len()).max().unwrap_or(0);
        if !self.still || self.freedom < 1.0 || rows < 2 {
            return MIN_REPEATS;
        }
        let for_freedom = |freedom: f64| 1 + (freedom / (rows - 1) as f64).ceil() as usize;
        let (freedom, blocks) = self.exact_from;
        for_freedom(freedom).max(blocks).min(for_freedom(MIN_EXACT_FREEDOM))
    }

    /// Whether rows of this part have different figures, none of which varies, but too few of them to believe that.
    fn is_unproven(&self, part: &Part) -> bool {
        let unproven = self.still && !self.exact;
        let mut means = part.rows.iter().filter(|_| unproven).map(|row| self.know_mean(*row).estimate);
        let first = means.next();
        first.is_some_and(|first| means.any(|mean| (mean - first).abs() > ROUNDING * self.largest))
    }

    /// Whether ranks are the better judge of these figures.
    pub(super) fn is_grossly_non_normal(&self) -> bool {
        let scores = self.parts.iter().flat_map(|part| {
            let deviations = part
                .rows
                .iter()
                .flat_map(|row| std::iter::repeat_n(self.variances[*row].value.sqrt(), self.samples[*row].n()));
            part.model.residuals.iter().zip(deviations).map(|(residual, deviation)| residual / deviation)
        });
        !self.still && self.freedom >= 1.0 && grossly_non_normal(&scores.collect::<Vec<_>>())
    }

    pub(super) fn pairs(&self) -> Vec<Pairwise> {
        let rows = self.samples.len();
        if rows < 2 {
            return Vec::new();
        }
        let range = StudentizedRange::new(rows);
        let means: Vec<Known> = (0..rows).map(|row| self.know_mean(row)).collect();
        let mut pairs = Vec::with_capacity(rows * (rows - 1) / 2);
        for baseline in 0..rows {
            for other in baseline + 1..rows {
                pairs.push(self.pair(&range, &means, baseline, other));
            }
        }
        pairs
    }

    /// The result for each row; `different` says which pairs differ.
    pub(super) fn means(&self, different: impl Fn(usize, usize) -> bool) -> Vec<RowMean> {
        let known: Vec<Known> = (0..self.samples.len()).map(|row| self.know_mean(row)).collect();
        // Without any scatter, and too few figures to believe that, an interval of no width would claim too much.
        let by_chance = self.still && !self.exact && known.iter().any(|row| row.estimate != known[0].estimate);
        let mut arms: Vec<f64> = known.iter().map(|row| self.student(row) * row.error).collect();
        for i in 0..known.len() {
            for j in i + 1..known.len() {
                let (apart, errors) = ((known[i].estimate - known[j].estimate).abs(), known[i].error + known[j].error);
                // As wide as the comparison is uncertain: a gap between two intervals would claim a difference that it does not (Hochberg,
                // Weiss & Hart, JASA 77, 1982).
                if self.are_connected(i, j) && !different(i, j) && errors > 0.0 {
                    arms[i] = arms[i].max(known[i].error / errors * apart);
                    arms[j] = arms[j].max(known[j].error / errors * apart);
                }
            }
        }
        known
            .iter()
            .zip(&arms)
            .map(|(row, arm)| {
                let method = if self.exact { IntervalMethod::Constant } else { IntervalMethod::Student };
                let known = self.exact || (row.freedom >= 1.0 && !by_chance);
                let ends = self.interval(row.estimate, *arm, row.freedom, method);
                RowMean {
                    estimate: self.back(row.estimate),
                    interval: known.then(|| Interval { low: self.back(ends.low), high: self.back(ends.high), ..ends }),
                }
            })
            .collect()
    }

    /// Whether the two rows can be compared within blocks, directly or by way of other rows.
    pub(super) fn are_connected(&self, a: usize, b: usize) -> bool {
        self.places[a].0 == self.places[b].0
    }

    fn student(&self, known: &Known) -> f64 {
        if known.error > 0.0 { student_quantile(1.0 - self.level.nominal / 2.0, known.freedom) } else { 0.0 }
    }

    fn pair(&self, range: &StudentizedRange, means: &[Known], baseline: usize, other: usize) -> Pairwise {
        let ((part, place), (_, of_other)) = (self.places[baseline], self.places[other]);
        let connected = self.are_connected(baseline, other);
        let known = if connected {
            self.know(part, &self.parts[part].model.difference(place, of_other))
        } else {
            Known { estimate: means[other].estimate - means[baseline].estimate, error: f64::INFINITY, freedom: 0.0 }
        };
        let size = known.estimate.abs();
        let level = self.level_of(baseline, other);
        let can_differ = connected && (self.exact || self.freedom >= 1.0 && !self.is_unproven(&self.parts[part]));
        let (test, p, adjusted_p, critical) = if !connected {
            (PairTest::NoCommonBlock, 1.0, 1.0, f64::INFINITY)
        } else if self.exact {
            let p = if size > ROUNDING * self.largest { 0.0 } else { 1.0 };
            (PairTest::Exact, p, p, 0.0)
        } else if can_differ && known.error > 0.0 {
            let t = size / known.error;
            let tukey = range.upper(t * 2_f64.sqrt(), known.freedom);
            let critical = range.critical(level.nominal, known.freedom) / 2_f64.sqrt();
            let alone = student_two_sided(t, known.freedom);
            // Of two rows they are the same but for rounding.
            (PairTest::Tukey, alone, tukey.max(alone), critical)
        } else {
            (PairTest::Tukey, 1.0, 1.0, f64::INFINITY)
        };
        let arm = if critical == 0.0 { 0.0 } else { critical * known.error };
        let differs = if self.exact { p == 0.0 } else { can_differ && size > arm };
        let method = if self.exact && connected { IntervalMethod::Constant } else { IntervalMethod::Tukey };
        // A difference that is none but for rounding is none.
        let estimate = if self.exact && connected && !differs { 0.0 } else { known.estimate };
        let interval = self.interval(estimate, arm.min(f64::MAX), known.freedom, method);
        let of_scale = Shift { estimate, interval };
        let (shift, relative) = match self.scale {
            Scale::Ratios => {
                let relative = of_scale.map(f64::exp_m1);
                let reference = means[baseline].estimate.exp();
                (relative.map(|share| (share * reference).min(f64::MAX)), Some(relative))
            }
            Scale::Differences => (of_scale, self.ratio(&known, &means[baseline], &means[other], critical)),
        };
        let bounded = |shift: &Shift| shift.interval.low.is_finite() && shift.interval.high.is_finite();
        Pairwise {
            baseline,
            other,
            test,
            p,
            adjusted_p: level.adjusted(adjusted_p),
            differs,
            can_differ,
            shift,
            relative: relative.filter(|shift| can_differ && bounded(shift)),
            cliffs_delta: cliffs_delta(&self.samples[baseline], &self.samples[other]),
        }
    }

    fn level_of(&self, a: usize, b: usize) -> Level {
        let few = [a, b].iter().any(|row| self.variances[*row].own < FEW_FREEDOM);
        // Two rows in blocks are compared by their differences, whatever each scatters.
        let share = if few && self.samples.len() > 2 { self.of_few } else { 1.0 };
        Level { nominal: self.level.nominal * share, ..self.level }
    }

    /// The ratio of two means on the scale of differences, less 1 (Fieller, JRSS B 16, 1954): all ratios ρ for which
    /// other − ρ · baseline is not told apart from 0. `None` where the baseline itself is not.
    fn ratio(&self, pair: &Known, baseline: &Known, other: &Known, critical: f64) -> Option<Shift> {
        let (a, b) = (other.estimate, baseline.estimate);
        if a <= 0.0 || b <= 0.0 || !critical.is_finite() {
            return None;
        }
        let (of_a, of_b) = (other.error.powi(2), baseline.error.powi(2));
        let common = (of_a + of_b - pair.error.powi(2)) / 2.0;
        let squared = critical * critical;
        let leading = b * b - squared * of_b;
        if leading <= 0.0 {
            return None;
        }
        let middle = (a * b - squared * common) / leading;
        let rest = (a * a - squared * of_a) / leading;
        let arm = (middle * middle - rest).max(0.0).sqrt();
        let method = if self.exact { IntervalMethod::Constant } else { IntervalMethod::Tukey };
        let mut interval = self.interval(middle - 1.0, arm, pair.freedom, method);
        // What is never negative falls by no more than all of it.
        if self.samples.iter().all(|sample| sample.min() >= 0.0) {
            interval.low = interval.low.max(-1.0);
        }
        Some(Shift { estimate: a / b - 1.0, interval })
    }

    /// A row's mean over all blocks of its group.
    fn know_mean(&self, row: usize) -> Known {
        let (part, place) = self.places[row];
        let known = self.know(part, &self.parts[part].model.mean(place));
        // What other rows did in the blocks that it lacks makes nothing of a row of zeros.
        let nothing = self.scale == Scale::Differences && self.samples[row].values().iter().all(|value| *value == 0.0);
        Known { estimate: if nothing { 0.0 } else { known.estimate }, ..known }
    }

    fn know(&self, part: usize, contrast: &Contrast) -> Known {
        let (mut variance, mut of_all, mut most_shared, mut spread) = (0.0, 0.0, 0.0_f64, 0.0);
        for (weight, row) in contrast.weights.iter().zip(&self.parts[part].rows) {
            let Variance { value, shared, own } = self.variances[*row];
            let from_all = if shared > 0.0 { shared * self.pooled / (shared + own) } else { 0.0 };
            variance += weight * value;
            of_all += weight * from_all;
            most_shared = most_shared.max(shared);
            if own > 0.0 {
                spread += (weight * (value - from_all)).powi(2) / own;
            }
        }
        // What all rows share is one estimate, however many of them it counts for.
        if most_shared > 0.0 {
            spread += of_all * of_all / most_shared.min(self.freedom);
        }
        // Satterthwaite (Biometrics Bulletin 2, 1946); never more than all residuals have.
        let alone = self.parts[part].rows.len() == 1 && self.parts.len() > 1;
        let most = if alone { self.parts[part].model.freedom } else { self.freedom };
        let freedom = (variance * variance / spread).min(most);
        let exact = self.exact || variance <= 0.0 || !variance.is_finite();
        Known {
            estimate: contrast.estimate,
            error: if exact { 0.0 } else { variance.sqrt() },
            freedom: if exact { most } else { freedom },
        }
    }

    fn interval(&self, center: f64, arm: f64, freedom: f64, method: IntervalMethod) -> Interval {
        let n = freedom.max(0.0).round() as usize + 1;
        Interval { low: center - arm, high: center + arm, confidence: 1.0 - self.level.alpha, method, n }
    }

    /// From the scale of the analysis to the metric's.
    fn back(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Ratios => value.exp(),
            Scale::Differences => value,
        }
    }
}

/// The variance of a typical row: the median of the rows' variances over that of a variance with as many degrees of freedom (Wilson &
/// Hilferty, PNAS 17, 1931), which a few rows that scatter much more do not change. NaN without any.
fn typical(parts: &[&Part], scatter: impl Fn(f64) -> f64) -> f64 {
    let of_rows = parts.iter().flat_map(|part| &part.model.of_rows).filter(|(_, freedom)| *freedom > 0.0);
    let of_row = |(squares, freedom): &(f64, f64)| scatter(*squares) / freedom / (1.0 - 2.0 / (9.0 * freedom)).powi(3);
    let mut variances: Vec<f64> = of_rows.map(of_row).filter(|variance| variance.is_finite()).collect();
    if variances.is_empty() { f64::NAN } else { median_in_place(&mut variances) }
}

/// The groups of rows that blocks connect, each fitted; all rows together if there are no blocks.
fn parts(figures: &[Vec<f64>], blocks: Option<&[Vec<usize>]>) -> Vec<Part> {
    let rows = figures.len();
    let of_group = |group: Vec<usize>, blocks: Option<&[Vec<usize>]>| {
        let of_rows = |lists: &[Vec<usize>]| group.iter().map(|row| lists[*row].clone()).collect::<Vec<_>>();
        let figures: Vec<Vec<f64>> = group.iter().map(|row| figures[*row].clone()).collect();
        let one_block: Vec<Vec<usize>> = figures.iter().map(|of_row| vec![0; of_row.len()]).collect();
        // A row by itself shows nothing of its blocks.
        let in_blocks = blocks.filter(|_| group.len() > 1).and_then(|blocks| Additive::fit(&figures, &of_rows(blocks)));
        let model = in_blocks.or_else(|| Additive::fit(&figures, &one_block)).expect("one block is complete");
        Part { rows: group, model }
    };
    let groups = blocks.map_or_else(|| vec![0; rows], block_groups);
    let count = groups.iter().max().map_or(0, |last| last + 1);
    (0..count).map(|group| of_group((0..rows).filter(|row| groups[*row] == group).collect(), blocks)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weighs the pooled variance so much that nothing else counts: what R and statsmodels do.
    const POOLED: f64 = 1e15;

    fn samples(rows: &[&[f64]]) -> Vec<Sample> {
        rows.iter().map(|row| Sample::new(row.to_vec()).unwrap()).collect()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 2e-6 * expected.abs().max(1.0), "{found} is not {expected}");
    }

    /// R's documentation of `TukeyHSD`: `aov(breaks ~ wool + tension, data = warpbreaks)`, the wools as blocks.
    #[test]
    fn agrees_with_tukey_hsd_of_r() {
        let low = [26., 30., 54., 25., 70., 52., 51., 26., 67., 27., 14., 29., 19., 29., 31., 41., 20., 44.];
        let medium = [18., 21., 29., 17., 12., 18., 35., 30., 36., 42., 26., 19., 16., 39., 28., 21., 39., 29.];
        let high = [36., 21., 24., 18., 10., 43., 28., 15., 26., 20., 21., 24., 17., 13., 15., 15., 16., 28.];
        let rows = samples(&[&low, &medium, &high]);
        let wools: Vec<usize> = (0..18).map(|figure| figure / 9).collect();
        let blocks = vec![wools; 3];
        let found =
            Means::fit_sharing((POOLED, 0.0), &rows, Scale::Differences, Level::FIXED, Blocking::Blocks(&blocks))
                .pairs();
        let expected = [
            (-10.0, -19.353_42, -0.646_579_3, 0.033_626_2),
            (-14.722_222, -24.075_64, -5.368_801_5, 0.001_121_8),
            (-4.722_222, -14.075_64, 4.631_198_5, 0.447_421_0),
        ];
        for (pair, (difference, low, high, p)) in found.iter().zip(expected) {
            close(pair.shift.estimate, difference);
            close(pair.shift.interval.low, low);
            close(pair.shift.interval.high, high);
            close(pair.adjusted_p, p);
        }
    }

    /// statsmodels 0.15.0, ols("ln y ~ row + block") with four trials missing; scipy's studentized_range.
    #[test]
    fn unbalanced_blocks_agree_with_least_squares_of_statsmodels() {
        let rows = samples(&[
            &[93.8, 81.4, 119.7, 154.3],
            &[147.8, 123.2, 157.7, 93.9, 213.8],
            &[187.9, 227.5, 122.3, 251.8],
            &[279.5, 305.3, 158.6],
        ]);
        let blocks = vec![vec![0, 1, 2, 4], vec![0, 1, 2, 3, 4], vec![1, 2, 3, 4], vec![0, 2, 3]];
        let means = Means::fit_sharing((POOLED, 0.0), &rows, Scale::Ratios, Level::FIXED, Blocking::Blocks(&blocks));
        assert_eq!(means.freedom, 8.0);
        close(means.variances[0].value, 0.005_952_173_892_637_666);
        let expected = [
            (1.458_877_59, 1.231_965_06, 1.727_584_57, 0.000_442_112),
            (1.969_606_02, 1.641_098_39, 2.363_872_82, 1.074_26e-5),
            (2.677_758_49, 2.183_994_44, 3.283_154_21, 1.427_26e-6),
            (1.350_083_12, 1.140_092_39, 1.598_751_52, 0.002_064_146),
            (1.835_492_23, 1.519_674_75, 2.216_942_62, 3.175_20e-5),
            (1.359_540_16, 1.108_848_38, 1.666_909_11, 0.005_730_48),
        ];
        for (pair, (ratio, low, high, p)) in means.pairs().iter().zip(expected) {
            let relative = pair.relative.unwrap();
            close(1.0 + relative.estimate, ratio);
            close(1.0 + relative.interval.low, low);
            close(1.0 + relative.interval.high, high);
            close(pair.adjusted_p, p);
        }
        let last = means.know_mean(3);
        close(last.estimate.exp(), 260.561_698_077);
        close(last.error, 0.047_812_719_726);
    }

    /// Two rows of two equal figures each: on logarithms their residuals are rounding, of 1e-16, and not zero.
    #[test]
    fn rounding_is_no_scatter() {
        let rows = samples(&[&[6.0, 6.0], &[3.0, 3.0]]);
        let blocks = vec![vec![0, 1], vec![0, 1]];
        for scale in [Scale::Ratios, Scale::Differences] {
            let means = Means::fit_sharing((4.0, 0.0), &rows, scale, Level::FIXED, Blocking::Blocks(&blocks));
            let pairs = means.pairs();
            assert!(pairs[0].adjusted_p > 0.5, "{scale:?}: {:?}", pairs[0]);
        }
    }

    /// The method of Games & Howell on R's `PlantGrowth`, by scipy's studentized_range.
    #[test]
    fn rows_by_themselves_agree_with_games_and_howell() {
        let rows = samples(&[
            &[4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14],
            &[4.81, 4.17, 4.41, 3.59, 5.87, 3.83, 6.03, 4.89, 4.32, 4.69],
            &[6.31, 5.12, 5.54, 5.50, 5.37, 5.29, 4.92, 6.15, 5.80],
        ]);
        let found =
            Means::fit_sharing((0.0, 0.0), &rows, Scale::Differences, Level::FIXED, Blocking::Independent).pairs();
        let expected = [
            (-0.371, 0.474_554_922, -1.172_087_515),
            (0.523_555_556, 0.102_993_776, -0.091_926_248),
            (0.894_555_556, 0.021_518_752, 0.129_201_816),
        ];
        for (pair, (difference, p, low)) in found.iter().zip(expected) {
            close(pair.shift.estimate, difference);
            close(pair.adjusted_p, p);
            close(pair.shift.interval.low, low);
        }
    }

    #[test]
    fn two_rows_in_blocks_are_the_paired_t_test() {
        // scipy 1.16.3: ttest_rel([3.1, 4.0, 5.2, 4.4], [2.0, 3.5, 4.9, 3.0]).pvalue
        let rows = samples(&[&[2.0, 3.5, 4.9, 3.0], &[3.1, 4.0, 5.2, 4.4]]);
        let blocks = vec![(0..4).collect(), (0..4).collect()];
        let pair = Means::fit(&rows, Scale::Differences, Level::FIXED, Blocking::Blocks(&blocks)).pairs()[0];
        close(pair.p, 0.04856685655980105);
        close(pair.adjusted_p, 0.04856685655980105);
    }

    #[test]
    fn a_ratio_of_differences_excludes_one_exactly_when_the_rows_differ() {
        let near = samples(&[&[10.0, 11.0, 10.5, 10.2], &[11.9, 10.1, 11.0, 10.4]]);
        let far = samples(&[&[10.0, 11.0, 10.5, 10.2], &[15.2, 16.3, 15.1, 15.9]]);
        for (rows, differ) in [(near, false), (far, true)] {
            let pair = Means::fit(&rows, Scale::Differences, Level::FIXED, Blocking::Independent).pairs()[0];
            let relative = pair.relative.unwrap();
            assert_eq!((pair.differs, relative.interval.contains(0.0)), (differ, !differ));
            close(relative.estimate, rows[1].mean() / rows[0].mean() - 1.0);
        }
        let around_zero = samples(&[&[-1.0, 2.0, 0.5], &[3.0, 4.0, 5.0]]);
        assert_eq!(
            Means::fit(&around_zero, Scale::Ratios, Level::FIXED, Blocking::Independent).pairs()[0].relative,
            None
        );
    }

    /// Equal rows of three blocks, one of which scatters ten times as much as the other eight: with a shared variance alone any two
    /// were called different in 12 % of tables.
    #[test]
    fn a_row_that_scatters_more_is_judged_by_itself() {
        let mut random = crate::random::Random::new(5);
        let mut normal = || random.normal();
        let blocks = vec![(0..3).collect::<Vec<usize>>(); 9];
        let mut alarm = || {
            let row = |row: usize, normal: &mut dyn FnMut() -> f64| {
                let scatter = if row == 0 { 0.2 } else { 0.02 };
                Sample::new((0..3).map(|_| (scatter * normal()).exp()).collect()).unwrap()
            };
            let rows: Vec<Sample> = (0..9).map(|index| row(index, &mut normal)).collect();
            Means::fit(&rows, Scale::Ratios, Level::FIXED, Blocking::Blocks(&blocks))
                .pairs()
                .iter()
                .any(|pair| pair.differs)
        };
        let alarms = (0..150).filter(|_| alarm()).count();
        assert!(alarms <= 10, "{alarms} of 150");
    }

    /// One bucket of a histogram apart, by chance: three rows of two blocks agree in each block, and prove nothing.
    #[test]
    fn figures_of_two_values_that_agree_by_chance_prove_nothing() {
        let rows = samples(&[&[52.0, 52.0], &[52.2, 52.2], &[52.0, 52.0]]);
        let blocks = vec![vec![0, 1]; 3];
        let means = Means::fit(&rows, Scale::Ratios, Level::FIXED, Blocking::Blocks(&blocks));
        assert!(means.pairs().iter().all(|pair| !pair.differs && pair.adjusted_p > 0.5));
        assert!(
            means.means(|_, _| false).iter().all(|row| row.interval.is_none()),
            "nothing is known of their scatter"
        );
        let rows = samples(&[&[52.0; 3], &[52.2; 3], &[52.0; 3]]);
        let means = Means::fit(&rows, Scale::Ratios, Level::FIXED, Blocking::Blocks(&vec![(0..3).collect(); 3]));
        assert_eq!(means.basis(), Basis::Exact, "three blocks are enough");
    }

    #[test]
    fn the_mean_of_zeros_is_zero() {
        let others = [[3.0, 0.0, 5.0, 7.0, 0.1], [16.5, 0.3, 0.7, 1.1, 2.9]];
        let rows = samples(&[&others[0], &[0.0; 5], &others[1]]);
        for blocks in [vec![(0..5).collect(); 3], vec![(0..5).collect(), (1..6).collect(), (0..5).collect()]] {
            let blocks: Vec<Vec<usize>> = blocks;
            for blocking in [Blocking::Blocks(&blocks), Blocking::Independent] {
                let means = Means::fit(&rows, Scale::Ratios, Level::FIXED, blocking);
                assert_eq!(means.means(|_, _| false)[1].estimate, 0.0, "{blocks:?}");
                assert!(means.pairs().iter().all(|pair| pair.relative.is_none_or(|share| share.estimate < 1e3)));
            }
        }
    }

    #[test]
    fn a_single_trial_a_row_tells_nothing_and_claims_nothing() {
        let rows = samples(&[&[1.0], &[100.0], &[3.0]]);
        let means = Means::fit(&rows, Scale::Ratios, Level::FIXED, Blocking::Blocks(&[vec![0], vec![0], vec![0]]));
        assert!(means.pairs().iter().all(|pair| !pair.differs && !pair.can_differ && pair.relative.is_none()));
        assert!(means.means(|_, _| false).iter().all(|row| row.interval.is_none()));
    }
}
