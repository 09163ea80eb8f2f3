//! Looking at a table after every block, and stopping as soon as it answers.
//!
//! A test at 5 % after every block is wrong far more often than that (Armitage, McPherson & Rowe, JRSS A 132, 1969). So the 5 % are
//! spent over the looks, by a function of how much of the whole is done that was fixed beforehand (Lan & DeMets, Biometrika 70,
//! 1983), here the one of Pocock's kind: α ln(1 + (e − 1) t). It spends early, because most differences between filesystems are
//! large beside the scatter and need few blocks.
//!
//! A table of k rows has k (k - 1) / 2 pairs. At one look several of them cross a boundary together, which Tukey's range allows for; over
//! many looks they cross it at different ones, and the more looks there are, the more their probabilities add up. So each pair may
//! spend an equal part of α (Bonferroni), which holds for any number of looks. Each look gets a boundary for a pair, from the
//! joint distribution of normal statistics with independent increments, and from it the nominal level at which the range crosses
//! it; tables are tested at that level whatever their own statistic is (the significance-level approach of Jennison & Turnbull,
//! "Group Sequential Methods", 2000, §3.8 and §11.3), and intervals at it are repeated confidence intervals (ibid., §9): they hold
//! at all looks at once, so one may also stop because a difference is shown to be small, or for any other reason. What this
//! achieves on tables is in docs/method/calibration.md.
//!
//! How much is done may be counted in blocks of the most there can be, or in time of a budget, but must not depend on the figures.

use std::f64::consts::SQRT_2;

use serde::Serialize;

use crate::ALPHA;
use crate::compare::{Comparison, Level, Pairwise};
use crate::distribution::normal_cdf;
use crate::range::StudentizedRange;

/// No look before the residuals of a table have so many degrees of freedom. With fewer, its statistic goes its own way from look to
/// look more than a normal one would, and the looks together are wrong more often than they may be: two rows looked at from their
/// second block on were called different in 6.4 % of 1,000 runs.
pub const MIN_FREEDOM: usize = 8;

/// Points of the grid on which the statistic's density is kept; an even number of steps, for Simpson's rule.
const GRID: usize = 401;

/// Shortest step from one look to the next, as a share of all. The density after a step is as narrow as the step's root. On a grid
/// that is too coarse for it Simpson's rule gains mass at every look, until levels mean nothing. After this step the density is still
/// thrice as wide as the distance of two points, for the boundary of a pair of a thousand rows.
const SHORTEST_STEP: f64 = 8e-3;

/// A look that may spend less than this part of what there is tells nothing.
const LEAST: f64 = 2e-8;

/// The part of what there is that may be spent when `share` of all is done.
fn spent(share: f64) -> f64 {
    ((std::f64::consts::E - 1.0) * share.clamp(0.0, 1.0)).ln_1p()
}

#[derive(Debug, Clone)]
pub struct Looks {
    range: StudentizedRange,
    /// A pair's part of α.
    of_pair: f64,
    /// How much was done at the last look.
    share: f64,
    /// The density of the statistic (a Brownian motion in `share`) where no look has stopped, on a grid over ± `bound`; empty before
    /// the first look.
    density: Vec<f64>,
    bound: f64,
}

impl Looks {
    /// None yet, at a table of so many rows.
    ///
    /// # Panics
    /// With fewer than two rows, which have no pair.
    pub fn new(rows: usize) -> Self {
        let pairs = rows * (rows - 1) / 2;
        Self {
            range: StudentizedRange::new(rows),
            of_pair: ALPHA / pairs as f64,
            share: 0.0,
            density: Vec::new(),
            bound: 0.0,
        }
    }

    /// The level of a look when `share` of all is done; `None` when too little has been done since the last one. Such a look spends
    /// nothing: what it would have spent is left for the next. The end is always looked at, because no density follows it.
    pub fn look(&mut self, share: f64) -> Option<Level> {
        let share = share.min(1.0);
        let (step, part) = (share - self.share, spent(share) - spent(self.share));
        if step.is_nan() || step <= 0.0 || part < LEAST || (step < SHORTEST_STEP && share < 1.0) {
            return None;
        }
        if self.share == 0.0 && share >= 1.0 {
            // The only look there is: nothing adds up, and Tukey's range says it all.
            self.share = share;
            return Some(Level::FIXED);
        }
        let may = self.of_pair * part;
        let deviation = step.sqrt();
        // The end beyond which `may` lies, both sides together: the tail falls with it.
        let (mut low, mut high) = (0.0, 40.0 * share.sqrt());
        while high - low > 1e-12 {
            let middle = f64::midpoint(low, high);
            if 2.0 * self.beyond(middle, deviation) > may {
                low = middle;
            } else {
                high = middle;
            }
        }
        let bound = f64::midpoint(low, high);
        let at = |index: usize| bound * (2.0 * index as f64 / (GRID - 1) as f64 - 1.0);
        let density = (0..GRID).map(|index| self.density_at(at(index), deviation)).collect();
        (self.share, self.density, self.bound) = (share, density, bound);
        // The table is of differences between means, each of which has half the variance.
        let nominal = self.range.upper(SQRT_2 * bound / share.sqrt(), f64::INFINITY).max(f64::MIN_POSITIVE);
        Some(Level { alpha: ALPHA, nominal })
    }

    /// P(no look has stopped, and the statistic is at least `end` after another step).
    fn beyond(&self, end: f64, deviation: f64) -> f64 {
        self.integrate(|from| normal_cdf((from - end) / deviation))
    }

    fn density_at(&self, value: f64, deviation: f64) -> f64 {
        let scale = deviation * std::f64::consts::TAU.sqrt();
        self.integrate(|from| (-((value - from) / deviation).powi(2) / 2.0).exp() / scale)
    }

    /// ∫ density · f by Simpson's rule; f(0) before the first look.
    fn integrate(&self, f: impl Fn(f64) -> f64) -> f64 {
        if self.density.is_empty() {
            return f(0.0);
        }
        let width = 2.0 * self.bound / (GRID - 1) as f64;
        let terms = self.density.iter().enumerate().map(|(index, density)| {
            let weight = match index {
                0 => 1.0,
                _ if index == GRID - 1 => 1.0,
                _ if index % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * density * f(width * index as f64 - self.bound)
        });
        terms.sum::<f64>() * width / 3.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Answered {
    /// Pairs that are called different, or shown to differ by less than the resolution.
    pub decided: usize,
    pub pairs: usize,
}

impl Answered {
    pub const fn all(self) -> bool {
        self.decided == self.pairs
    }

    /// By a comparison at the level of a look. `resolution`: differences of at most this share do not matter (0.05 is 5 %).
    pub fn of(comparison: &Comparison, resolution: f64) -> Self {
        let pairs = || comparison.pairs.iter().filter(|pair| pair.is_compared());
        Self { decided: pairs().filter(|pair| is_decided(pair, resolution)).count(), pairs: pairs().count() }
    }
}

/// A pair that is neither told apart nor shown to be alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OpenPair {
    pub rows: (usize, usize),
    /// Half of the interval of their ratio, as a share; `None` where there is no ratio.
    pub half_width: Option<f64>,
    /// About how many more blocks of the two rows it takes, if they are as they look; at least one, and infinite where nothing is
    /// known.
    pub more_blocks: f64,
}

impl OpenPair {
    /// The open pairs of a comparison at the level of a look. `resolution` as in [`Answered::of`]; `blocks` are the trials of each
    /// row.
    pub fn of(comparison: &Comparison, resolution: f64, blocks: &[usize]) -> Vec<Self> {
        let open = comparison.pairs.iter().filter(|pair| pair.is_compared() && !is_decided(pair, resolution));
        open.map(|pair| {
            let blocks = blocks[pair.baseline].min(blocks[pair.other]);
            // Where rows are compared by ratios, an interval has equal arms as a logarithm.
            let (estimate, half_width, small) = match pair.relative {
                Some(shift) if shift.interval.low > -1.0 => {
                    let arms = (shift.interval.high.ln_1p() - shift.interval.low.ln_1p()) / 2.0;
                    (shift.estimate.ln_1p().abs(), arms, resolution.ln_1p())
                }
                _ => (pair.shift.estimate.abs(), pair.shift.interval.half_width(), 0.0),
            };
            // An interval narrows with the root of the number of blocks, until it leaves out 0 or lies within the resolution.
            let distance = estimate.max(small - estimate);
            let factor = if distance > 0.0 { (half_width / distance).powi(2) } else { f64::INFINITY };
            Self {
                rows: (pair.baseline, pair.other),
                half_width: pair.relative.map(|shift| shift.interval.half_width()),
                more_blocks: (blocks as f64 * (factor - 1.0)).ceil().max(1.0),
            }
        })
        .collect()
    }
}

fn is_decided(pair: &Pairwise, resolution: f64) -> bool {
    let small = |interval: crate::Interval| -resolution <= interval.low && interval.high <= resolution;
    pair.differs || pair.relative.is_some_and(|relative| small(relative.interval))
}

/// The level at which a table of `rows` rows is published at which one looked when `shares` of all were done, in ascending order, and
/// whether the last of these was a look: figures that have come since the last look are not to be judged before the next. `ended`: there
/// will be no further look, so that this one may spend what is left. `None` when there was no look.
pub fn level_after(rows: usize, shares: impl IntoIterator<Item = f64>, ended: bool) -> Option<(Level, bool)> {
    let mut looks = Looks::new(rows);
    let end = ended.then_some(1.0);
    shares.into_iter().chain(end).fold(None, |known, share| match looks.look(share) {
        Some(level) => Some((level, true)),
        None => known.map(|(level, is_look)| (level, is_look && share.min(1.0) <= looks.share)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::normal_quantile;
    use crate::{Blocking, Sample, Scale, compare_all};

    /// Boundaries of Pocock's kind for five equal looks at 5 %, two-sided: Lan & DeMets; R's ldbounds (iuse = 2) and gsDesign
    /// print 2.438, 2.427, 2.410, 2.397, 2.386.
    #[test]
    fn boundaries_agree_with_the_literature() {
        let mut looks = Looks::new(2);
        for (look, expected) in [2.438, 2.427, 2.410, 2.397, 2.386].into_iter().enumerate() {
            let level = looks.look((look + 1) as f64 / 5.0).expect("there is something to spend");
            let bound = -normal_quantile(level.nominal / 2.0);
            assert!((bound - expected).abs() < 1.1e-3, "look {look}: {bound}");
        }
        assert_eq!(looks.look(1.0), None, "all is done");
    }

    #[test]
    fn one_look_at_the_end_has_all_of_it_and_no_looks_are_lost() {
        assert_eq!(Looks::new(2).look(1.0), Some(Level::FIXED));
        assert_eq!(Looks::new(9).look(1.0), Some(Level::FIXED));
        let mut early = Looks::new(2);
        assert_eq!(early.look(0.0), None);
        assert!(early.look(0.1).unwrap().nominal < 0.01);
        assert_eq!(early.look(0.1), None);
    }

    /// The probability to cross any boundary of thirty looks, by a walk of its own.
    #[test]
    fn what_is_spent_is_five_per_cent() {
        let mut looks = Looks::new(2);
        let bounds: Vec<f64> =
            (1..=30).map(|look| -normal_quantile(looks.look(f64::from(look) / 30.0).unwrap().nominal / 2.0)).collect();
        let mut random = crate::random::Random::new(4);
        let mut crossed = 0;
        let walks = 20_000;
        for _ in 0..walks {
            let mut sum = 0.0;
            crossed += usize::from((0..30).any(|look| {
                let uniform = (random.below(1 << 30) as f64 + 0.5) / f64::from(1 << 30);
                sum += normal_quantile(uniform);
                sum.abs() / f64::from(look + 1).sqrt() >= bounds[look as usize]
            }));
        }
        // 1,000 of 20,000 with a standard deviation of 31.
        assert!((880..1120).contains(&crossed), "{crossed}");
    }

    #[test]
    fn any_number_of_looks_keeps_the_mass_and_the_level() {
        for (rows, count) in [(2, 10_u32), (2, 10_000), (9, 10_000), (1_000, 10_000)] {
            let mut looks = Looks::new(rows);
            for look in 1..=count {
                let share = f64::from(look) / f64::from(count);
                let Some(level) = looks.look(share) else { continue };
                assert!((1e-6..0.02).contains(&level.nominal), "{count} looks, at {share}: {}", level.nominal);
                let mass = looks.integrate(|_| 1.0);
                assert!(
                    (mass - (1.0 - looks.of_pair * spent(share))).abs() < 1e-3,
                    "{count} looks, at {share}: {mass}"
                );
            }
            assert!(looks.share >= 1.0, "the end is looked at");
        }
    }

    #[test]
    fn a_look_that_comes_too_soon_spends_nothing() {
        let nominal = |shares: &[f64]| level_after(2, shares.iter().copied(), false).map(|(level, _)| level.nominal);
        assert_eq!(nominal(&[0.2, 0.2 + SHORTEST_STEP / 2.0, 0.4]), nominal(&[0.2, 0.4]));
        let is_look = |shares: &[f64], ended| level_after(2, shares.iter().copied(), ended).map(|(_, is_look)| is_look);
        assert_eq!(
            is_look(&[0.2, 0.2 + SHORTEST_STEP / 2.0], false),
            Some(false),
            "what came since waits for the next"
        );
        assert_eq!(is_look(&[0.2, 0.2 + SHORTEST_STEP / 2.0, 0.4], false), Some(true));
        assert_eq!(is_look(&[0.2, 1.0], true), Some(true), "the end was looked at, and nothing has come since");
        let near = level_after(2, [0.2, 1.0 - SHORTEST_STEP / 10.0], true).unwrap().0.nominal;
        assert!((0.01..ALPHA).contains(&near), "{near}");
    }

    #[test]
    fn a_pair_is_decided_when_it_differs_or_when_it_is_shown_not_to_matter() {
        let row = |level: f64| Sample::new([0.999, 1.001, 1.0, 0.9995].map(|v| v * level).to_vec()).unwrap();
        let rows = [row(1.0), row(1.001), Sample::new(vec![2.1, 1.9, 2.05, 1.97]).unwrap()];
        let found = compare_all(&rows, Scale::Ratios, Level::FIXED, Blocking::Independent);
        assert_eq!(Answered::of(&found, 0.05), Answered { decided: 3, pairs: 3 });
        assert_eq!(Answered::of(&found, 0.0001), Answered { decided: 2, pairs: 3 });
        assert!(Answered::of(&found, 0.05).all());
        assert_eq!(OpenPair::of(&found, 0.05, &[4, 4, 4]), []);
        let open = OpenPair::of(&found, 0.0001, &[4, 4, 4]);
        assert_eq!(open.iter().map(|pair| pair.rows).collect::<Vec<_>>(), [(0, 1)]);
    }

    #[test]
    fn as_many_blocks_as_are_said_to_be_needed_are_about_enough() {
        let row = |level: f64, n: usize| {
            let scatter = [0.97, 1.03, 1.01, 0.98, 1.02, 0.99, 1.0];
            Sample::new((0..n).map(|i| level * scatter[(i * 3 + level as usize) % 7]).collect()).unwrap()
        };
        let open = |n: usize| {
            let rows = [row(100.0, n), row(102.0, n), row(103.5, n)];
            let found = compare_all(&rows, Scale::Ratios, Level::FIXED, Blocking::Independent);
            OpenPair::of(&found, 0.005, &[n; 3])
        };
        let few = open(7);
        assert!(few.iter().all(|pair| pair.half_width.unwrap() > 0.005 && pair.more_blocks >= 1.0), "{few:?}");
        let most = few.iter().map(|pair| pair.more_blocks).fold(0.0, f64::max);
        assert!(most < 300.0, "{few:?}");
        assert_eq!(open(7 + (1.3 * most) as usize), [], "{few:?}");
    }

    #[test]
    fn who_ends_may_spend_what_is_left() {
        let nominal =
            |shares: &[f64], ended| level_after(2, shares.iter().copied(), ended).map(|(level, _)| level.nominal);
        assert_eq!(nominal(&[], false), None);
        assert!((nominal(&[], true).unwrap() - ALPHA).abs() < 1e-9);
        let (open, ended) = (nominal(&[0.2, 0.4], false).unwrap(), nominal(&[0.2, 0.4], true).unwrap());
        assert!(open < ended && ended < ALPHA, "{open} {ended}");
        assert_eq!(nominal(&[0.2, 1.4], true), nominal(&[0.2, 1.0], false), "a look late is one at the end");
    }
}
