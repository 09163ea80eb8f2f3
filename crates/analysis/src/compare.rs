//! Which rows differ, and which cannot be told apart.

use crate::{
    clock::is_virtual,
    looks::{Judging, Looks},
    structure::Structure,
    table::{Entry, Row, basis},
};
use fstone_model::{Better, Dataset, Unit, study::Order};
use fstone_stats::{
    Blocking, Comparison, Interval, Sample, Scale,
    compare::{Basis, Pairwise, RowMean, letters, row_means},
    compare_all,
};
use std::collections::BTreeMap;

/// A panel with more rows than this is not compared pair by pair: the correction for so many pairs leaves little to
/// find, nobody reads that many letters, and the work grows with the square.
pub const MAX_COMPARED_ROWS: usize = 40;

#[derive(Debug, Clone, PartialEq)]
pub struct ColumnComparison {
    /// One per panel of the structure; `None` with fewer than two rows that have figures, or too many.
    pub panels: Vec<Option<PanelComparison>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PanelComparison {
    /// The rows that have figures, best first (largest first where no direction is better).
    pub rows: Vec<usize>,
    /// Their comparison, by place in `rows`.
    pub comparison: Comparison,
    /// Of each pair of the comparison, whether it is not told apart and guests move it further than seeds do: more seeds would not help.
    pub moved_by_guests: Vec<bool>,
    /// A row that scatters so much that the intervals of the others are so many times as wide as they are without it.
    pub widened: Option<(usize, f64)>,
    /// Whether a run that goes on may act on it.
    pub(crate) judging: Judging,
}

impl PanelComparison {
    pub fn pair(&self, baseline: usize, other: usize) -> Option<Pairwise> {
        self.comparison.pair(self.place(baseline)?, self.place(other)?)
    }

    pub fn differ(&self, a: usize, b: usize) -> bool {
        self.pair(a, b).is_some_and(|pair| pair.differs)
    }

    /// The pairs that were compared: all, unless rows share no block.
    pub fn compared_pairs(&self) -> impl Iterator<Item = &Pairwise> {
        self.comparison.pairs.iter().filter(|pair| pair.is_compared())
    }

    /// The rows that are compared with each other, best first. If rows share no block, these are the rows of the largest group, and
    /// [`PanelComparison::apart`] has the rest.
    pub fn together(&self) -> Vec<usize> {
        let with = |row: usize| -> Vec<usize> {
            let compared =
                |other: &usize| *other == row || self.pair(row, *other).is_some_and(|pair| pair.is_compared());
            self.rows.iter().copied().filter(compared).collect()
        };
        // Of groups of one size the one with the best row: max_by_key takes the last, so look from the end.
        self.rows.iter().rev().map(|row| with(*row)).max_by_key(Vec::len).unwrap_or_default()
    }

    /// Rows that share no block with those of [`PanelComparison::together`].
    pub fn apart(&self) -> Vec<usize> {
        if self.compared_pairs().count() == self.comparison.pairs.len() {
            return Vec::new();
        }
        let together = self.together();
        self.rows.iter().copied().filter(|row| !together.contains(row)).collect()
    }

    pub fn any_differ(&self) -> bool {
        self.comparison.pairs.iter().any(|pair| pair.differs)
    }

    /// Whether there are too few trials for any two rows to differ, whatever the figures.
    pub fn is_powerless(&self) -> bool {
        !self.comparison.can_ever_differ()
    }

    /// Whether no number of trials would help, since all perturbed guests of a row failed.
    pub(crate) fn lacks_guests(&self) -> bool {
        self.comparison.power_note().is_some_and(|note| note.repeats_needed == 0)
    }

    fn place(&self, row: usize) -> Option<usize> {
        self.rows.iter().position(|other| *other == row)
    }
}

/// Compares every column and fills in means, intervals, letters, ratios and shifts.
pub(super) fn compare(
    dataset: &Dataset,
    structure: &Structure,
    kinds: &[(Unit, Better)],
    rows: &mut [Row<'_>],
) -> Vec<ColumnComparison> {
    let plan = &dataset.run.plan;
    let looks = &Looks::of(dataset);
    let compared = |(column, (unit, better)): (usize, &(Unit, Better))| {
        // Of several machines each has its blocks, in whatever order, and in virtual time each seed and each perturbed guest.
        let blocks = plan.order == Order::Blocks || !dataset.run.blocks.is_empty() || is_virtual(dataset);
        let how = How { scale: basis(*unit), better: *better, looks, blocks, noiseless: is_virtual(dataset) };
        let panels = structure.panels.iter().map(|panel| {
            let compared = compare_panel(rows, &panel.rows, column, how);
            if let Some(compared) = &compared {
                letter(rows, column, compared);
            }
            ratios(rows, &panel.rows, panel.baseline, column, compared.as_ref());
            if *unit == Unit::Count {
                forget_scatter_of_nothing(rows, &panel.rows, column);
            }
            compared
        });
        ColumnComparison { panels: panels.collect() }
    };
    kinds.iter().enumerate().map(compared).collect()
}

#[derive(Clone, Copy)]
struct How<'a> {
    scale: Scale,
    better: Better,
    looks: &'a Looks,
    blocks: bool,
    noiseless: bool,
}

fn compare_panel(rows: &mut [Row<'_>], of_panel: &[usize], column: usize, how: How<'_>) -> Option<PanelComparison> {
    let mut present: Vec<(usize, Sample)> =
        of_panel.iter().filter_map(|row| Some((*row, rows[*row].entries[column].sample()?))).collect();
    let (level, judging) = how.looks.level(&blocks_of(rows, column, &present));
    let of_rows =
        with_blocks(rows, column, &present, how, |samples, blocking| row_means(samples, how.scale, level, blocking));
    // Figures that agree over seeds are not exact where perturbed guests were to show whether they are, and none did.
    let proven = |((row, _), mean): (&(usize, Sample), RowMean)| {
        let is_known = |interval: &Interval| interval.low < interval.high || !rows[*row].is_unproven(column);
        RowMean { interval: mean.interval.filter(is_known), ..mean }
    };
    let of_rows: Vec<RowMean> = present.iter().zip(of_rows).map(proven).collect();
    for ((row, _), mean) in present.iter().zip(&of_rows) {
        rows[*row].entries[column].take(*mean);
    }
    if present.len() < 2 || present.len() > MAX_COMPARED_ROWS {
        if let Some((samples, _)) = in_guests(rows, column, &present) {
            let moved = row_means(&samples, how.scale, level, Blocking::Independent);
            for (((row, _), own), moved) in present.iter().zip(&of_rows).zip(&moved) {
                rows[*row].entries[column].take(own.beyond(moved, how.scale));
            }
        }
        return None;
    }
    let mean = |row: usize| rows[row].entries[column].mean().unwrap_or(f64::NAN);
    present.sort_by(|(a, _), (b, _)| {
        let ascending = mean(*a).total_cmp(&mean(*b));
        if how.better == Better::Lower { ascending } else { ascending.reverse() }
    });
    let comparison =
        with_blocks(rows, column, &present, how, |samples, blocking| compare_all(samples, how.scale, level, blocking));
    let of_seeds = |pair: &Pairwise| if comparison.still { 0.0 } else { pair.shift.interval.half_width() };
    let are_still = comparison.still;
    let reaches: Vec<f64> = comparison.pairs.iter().map(of_seeds).collect();
    let mut moved_by_guests = vec![false; comparison.pairs.len()];
    let comparison = match in_guests(rows, column, &present) {
        Some(guests) => {
            let of = |samples: &[Sample], blocking: Blocking<'_>| compare_all(samples, how.scale, level, blocking);
            let perturbed = perturbed(&guests, of);
            let found = beyond_guests(comparison, &perturbed, guests, &present, &blocks_of(rows, column, &present), of);
            for (at, of_pair) in moved_by_guests.iter_mut().enumerate().filter(|_| perturbed.is_moved()) {
                let moved = perturbed.pairs[at].shift.interval.half_width();
                *of_pair = !found.pairs[at].differs && moved > reaches[at];
            }
            found
        }
        None => comparison,
    };
    let unproven = |place: usize| rows[present[place].0].is_unproven(column);
    let is_doubted = are_still && (0..present.len()).any(unproven);
    let comparison = if is_doubted { comparison.doubting(unproven) } else { comparison };
    for ((row, _), mean) in present.iter().zip(&comparison.means) {
        rows[*row].entries[column].take(*mean);
    }
    let without = |row: usize| {
        let others: Vec<(usize, Sample)> = present.iter().filter(|(other, _)| *other != row).cloned().collect();
        with_blocks(rows, column, &others, how, |samples, blocking| compare_all(samples, how.scale, level, blocking))
    };
    let trials: Vec<usize> = present.iter().map(|(_, sample)| sample.n()).collect();
    let widened = widened(&comparison, &trials, |place| without(present[place].0))
        .map(|(place, times)| (present[place].0, times));
    let rows = present.into_iter().map(|(row, _)| row).collect();
    Some(PanelComparison { rows, comparison, moved_by_guests, widened, judging })
}

/// The comparison of rows in perturbed guests. Where guests of some rows failed, blocks may explain all that there is, as a block does with the
/// figure of its only row: then rows are compared without blocks, each by how far its own guests lie apart.
fn perturbed(
    (samples, blocks): &(Vec<Sample>, Vec<Vec<usize>>),
    compare: impl Fn(&[Sample], Blocking<'_>) -> Comparison,
) -> Comparison {
    let blocked = compare(samples, Blocking::Noiseless(blocks));
    let mut held: BTreeMap<usize, usize> = BTreeMap::new();
    blocks.iter().flatten().for_each(|block| *held.entry(*block).or_default() += 1);
    let are_explained = held.values().sum::<usize>() < samples.len() + held.len();
    let is_alone = held.values().any(|rows| *rows == 1);
    let shows_nothing = are_explained || blocked.still && is_alone || !blocked.pairs.iter().all(Pairwise::is_compared);
    if shows_nothing { compare(samples, Blocking::Independent) } else { blocked }
}

/// The comparison of seeds, with what perturbed guests show. Where neither seeds nor guests move any figure, differences are exact, however few
/// seeds there are; where seeds move none, they are as far apart as guests move them.
fn beyond_guests(
    of_seeds: Comparison,
    perturbed: &Comparison,
    (samples, blocks): (Vec<Sample>, Vec<Vec<usize>>),
    present: &[(usize, Sample)],
    seeds: &[Vec<usize>],
    compare: impl Fn(&[Sample], Blocking<'_>) -> Comparison,
) -> Comparison {
    if !of_seeds.still || of_seeds.basis == Basis::Exact || !seeds.iter().all(|blocks| distinct(blocks)) {
        return of_seeds.beyond(perturbed);
    }
    let with_guests = |row: usize| {
        let seeds = seeds[row].iter().copied().zip(present[row].1.values().iter().copied());
        let guests = blocks[row].iter().copied().zip(samples[row].values().iter().copied());
        let (blocks, values): (Vec<usize>, Vec<f64>) = seeds.chain(guests.filter(|(block, _)| *block > 0)).unzip();
        Some((Sample::new(values).ok()?, blocks))
    };
    let all: Option<(Vec<Sample>, Vec<Vec<usize>>)> = (0..present.len()).map(with_guests).collect();
    let is_exact =
        all.is_some_and(|(samples, blocks)| compare(&samples, Blocking::Noiseless(&blocks)).basis == Basis::Exact);
    if perturbed.still && !is_exact {
        return of_seeds;
    }
    let seeds_alone: Vec<Sample> = present.iter().map(|(_, sample)| sample.clone()).collect();
    compare(&seeds_alone, Blocking::Proven(seeds)).beyond(perturbed)
}

/// The figures in the guests of the first seed, with their blocks, if trials have further seeds: what perturbation moves in these, it moves
/// in the others too. A row whose guests failed counts with its first trial, or with its mean if that failed too. `None` without such guests, and where these are all the trials
/// that there are.
fn in_guests(rows: &[Row<'_>], column: usize, present: &[(usize, Sample)]) -> Option<(Vec<Sample>, Vec<Vec<usize>>)> {
    let of = |row: usize| (&rows[row], &rows[row].entries[column]);
    let is_perturbed = |trial: &&fstone_model::Trial| trial.id.perturbation().is_some();
    let are_all = |row: usize| of(row).0.trials.iter().any(is_perturbed);
    if present.iter().any(|(row, _)| are_all(*row)) || present.iter().all(|(row, _)| of(*row).1.guests.is_empty()) {
        return None;
    }
    let guests = |(row, _): &(usize, Sample)| {
        let (row, entry) = of(*row);
        let first = entry.values.iter().find(|value| row.trials[value.trial].id.repetition == 0);
        let guests = match entry.guests.as_slice() {
            [] => vec![(0, first.map(|first| first.value).or(entry.mean)?)],
            guests => guests.to_vec(),
        };
        let (blocks, values): (Vec<u32>, Vec<f64>) = guests.into_iter().unzip();
        Some((Sample::new(values).ok()?, blocks.into_iter().map(|block| block as usize).collect::<Vec<_>>()))
    };
    let found: Vec<(Sample, Vec<usize>)> = present.iter().map(guests).collect::<Option<_>>()?;
    found.iter().all(|(_, blocks)| distinct(blocks)).then(|| found.into_iter().unzip())
}

/// Intervals that one row makes so many times as wide are worth a warning.
const WIDENED: f64 = 1.5;

/// What a row does in a block is in the block's mean, and so in the residuals of every other row. The row by its place, and how many times
/// as wide as without it the others' intervals are.
fn widened(
    comparison: &Comparison,
    trials: &[usize],
    without: impl FnOnce(usize) -> Comparison,
) -> Option<(usize, f64)> {
    let size = |interval: Interval| match comparison.scale {
        Scale::Ratios => interval.high.ln() - interval.low.ln(),
        Scale::Differences => interval.high - interval.low,
    };
    let median = |mut sizes: Vec<f64>| {
        sizes.retain(|size| size.is_finite());
        sizes.sort_by(f64::total_cmp);
        sizes.get(sizes.len() / 2).copied()
    };
    // Of one trial: a row of few has a wide interval, however little it scatters.
    let sizes = comparison.means.iter().zip(trials);
    let sizes: Vec<f64> =
        sizes.map(|(mean, trials)| mean.interval.map_or(0.0, size) * (*trials as f64).sqrt()).collect();
    let place = (0..sizes.len()).max_by(|a, b| sizes[*a].total_cmp(&sizes[*b]))?;
    if sizes.len() < 3 || comparison.basis != Basis::Means || sizes[place] < 2.0 * median(sizes.clone())? {
        return None;
    }
    let without = without(place);
    let others = comparison.pairs.iter().filter(|pair| pair.baseline != place && pair.other != place);
    let wide = |pair: &Pairwise| pair.shift.interval.high - pair.shift.interval.low;
    let times = median(others.zip(&without.pairs).map(|(with, without)| wide(with) / wide(without)).collect())?;
    (times >= WIDENED && without.basis == Basis::Means).then_some((place, times))
}

/// Passes the samples on with their blocks. A record that holds a trial twice has no usable blocks.
fn with_blocks<T>(
    rows: &[Row<'_>],
    column: usize,
    present: &[(usize, Sample)],
    how: How<'_>,
    work: impl FnOnce(&[Sample], Blocking<'_>) -> T,
) -> T {
    let samples: Vec<Sample> = present.iter().map(|(_, sample)| sample.clone()).collect();
    let blocks = blocks_of(rows, column, present);
    let blocked = how.blocks && blocks.iter().all(|list| distinct(list));
    let blocking = match (blocked, how.noiseless) {
        (true, true) => Blocking::Noiseless(&blocks),
        (true, false) => Blocking::Blocks(&blocks),
        (false, _) => Blocking::Independent,
    };
    work(&samples, blocking)
}

fn blocks_of(rows: &[Row<'_>], column: usize, present: &[(usize, Sample)]) -> Vec<Vec<usize>> {
    present.iter().map(|(row, _)| repetitions(&rows[*row], &rows[*row].entries[column])).collect()
}

fn repetitions(row: &Row<'_>, entry: &Entry) -> Vec<usize> {
    entry.values.iter().map(|value| row.trials[value.trial].id.repetition as usize).collect()
}

fn distinct(list: &[usize]) -> bool {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// In place of the letters of a row that shares no block with the others.
pub const NOT_COMPARED: &str = "–";

/// Letters mean something only if there is more than one group.
fn letter(rows: &mut [Row<'_>], column: usize, compared: &PanelComparison) {
    if !compared.any_differ() {
        return;
    }
    let (together, apart) = (compared.together(), compared.apart());
    let letters = match apart.as_slice() {
        [] => compared.comparison.letters.clone(),
        // Of the rows that are compared with each other alone.
        _ => letters(together.len(), |a, b| compared.differ(together[a], together[b])),
    };
    let Some(letters) = letters else { return };
    for (row, letters) in together.iter().zip(letters) {
        rows[*row].entries[column].letters = letters;
    }
    for row in apart {
        NOT_COMPARED.clone_into(&mut rows[row].entries[column].letters);
    }
}

/// A row in which nothing was ever counted has no scatter of its own, and other rows' would look odd beside its 0.
fn forget_scatter_of_nothing(rows: &mut [Row<'_>], of_panel: &[usize], column: usize) {
    for row in of_panel {
        let entry = &mut rows[*row].entries[column];
        if entry.counted_nothing() {
            entry.interval = None;
        }
    }
}

/// A ratio and its interval come from one estimate; if rows are not compared, it is the quotient of their means.
fn ratios(
    rows: &mut [Row<'_>],
    of_panel: &[usize],
    baseline: Option<usize>,
    column: usize,
    compared: Option<&PanelComparison>,
) {
    let Some(baseline) = baseline else { return };
    let Some(reference) = rows[baseline].entries[column].mean().filter(|mean| *mean > 0.0) else { return };
    for &row in of_panel.iter().filter(|row| **row != baseline) {
        let pair = compared.and_then(|compared| compared.pair(baseline, row));
        if pair.is_some_and(|pair| !pair.is_compared()) {
            continue;
        }
        let entry = &mut rows[row].entries[column];
        // Where the baseline may be none, nothing is a multiple of it.
        let is_known = pair.is_none_or(|pair| !pair.can_differ || pair.relative.is_some() || entry.mean() == Some(0.0));
        entry.ratio = entry.mean().filter(|_| is_known).map(|mean| mean / reference);
        entry.shift = pair.filter(|pair| pair.differs).and_then(|pair| pair.relative);
    }
}
