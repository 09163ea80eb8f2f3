//! What is not known, and what can be known in ten more minutes.

use super::teller::Teller;
use crate::{clock, compare::PanelComparison, number::grouped, table::HARDLY, text::counted};
use fstone_model::{result::Perturbation, units::format_duration};
use std::time::Duration;

/// Differences of this share are worth finding, unless the study's budget says otherwise.
const RESOLUTION: f64 = 0.05;
/// How long a user may be ready to wait.
const WAIT: Duration = Duration::from_secs(600);

/// The first trial and as many perturbed guests as `--perturbed` allows.
const MOST_GUESTS: usize = 1 + Perturbation::MOST as usize;

impl Teller<'_> {
    /// The pairs that are not told apart, how far they may differ, and what more trials would show. `None` when there are no such pairs,
    /// or when there are too few trials to show any difference, which has a sentence of its own.
    pub(super) fn unknown(&self) -> Option<String> {
        let resolution = self.analysis.dataset.run.plan.budget.map_or(RESOLUTION, |budget| budget.resolution);
        let panels: Vec<&PanelComparison> = self.analysis.comparisons[self.column].panels.iter().flatten().collect();
        let panels: Vec<&PanelComparison> = panels.into_iter().filter(|panel| !panel.is_powerless()).collect();
        let pairs: usize = panels.iter().map(|panel| panel.compared_pairs().count()).sum();
        let (mut open, mut widest, mut fewest, mut rows) = (0, 0.0_f64, usize::MAX, Vec::new());
        // What more seeds cannot narrow.
        let mut floor = 0.0_f64;
        // Of what is known to the resolution or better; what is printed has one digit behind the point.
        let mut known = 0.001_f64.ln_1p();
        for panel in &panels {
            let pairs = panel.comparison.pairs.iter().zip(&panel.moved_by_guests);
            for (pair, moved) in pairs.filter(|(pair, _)| pair.is_compared() && !pair.differs) {
                open += 1;
                let of_pair = [panel.rows[pair.baseline], panel.rows[pair.other]];
                let trials = |row: &usize| self.analysis.rows[*row].entries[self.column].values.len();
                let arms = pair.relative.map(|shift| shift.interval).filter(|interval| interval.low > -1.0);
                let arms = arms.map(|interval| (interval.high.ln_1p() - interval.low.ln_1p()) / 2.0)?;
                known = known.max(arms);
                if arms > resolution.ln_1p() {
                    rows.extend(of_pair);
                    widest = widest.max(arms);
                    floor = floor.max(if *moved { arms } else { 0.0 });
                    fewest = fewest.min(of_pair.iter().map(trials).min().unwrap_or(1));
                }
            }
        }
        if open == 0 {
            return None;
        }
        let told = match (open, pairs) {
            (1, 1) => format!("The two rows cannot be told apart in {}", self.header()),
            _ => format!("{open} of {pairs} pairs of rows cannot be told apart in {}", self.header()),
        };
        let (ratio, is) = if open == 1 { ("ratio", "is") } else { ("ratios", "are") };
        if widest.exp_m1() > HARDLY {
            return Some(format!("{told}."));
        }
        if rows.is_empty() {
            return Some(format!("{told}: the {ratio} {is} known to ± {} %.", share(known.exp_m1())));
        }
        if floor >= widest {
            let known = share(widest.exp_m1());
            return Some(format!(
                "{told}: the {ratio} {is} known to ± {known} %, as far as guests move figures, whatever the number of seeds."
            ));
        }
        rows.sort_unstable();
        rows.dedup();
        let block = self.block_time(&rows).max(Duration::from_secs(1));
        // Intervals narrow with the root of the number of blocks.
        let after = |blocks: f64| (widest * (fewest as f64 / (fewest as f64 + blocks)).sqrt()).max(floor).exp_m1();
        let blocks = (WAIT.as_secs_f64() / block.as_secs_f64()).floor().max(1.0);
        let time = if block > WAIT { block } else { WAIT };
        // Fewer blocks do if that is more than it takes.
        let enough = (fewest as f64 * ((widest / resolution.ln_1p().max(floor)).powi(2) - 1.0)).ceil().max(1.0);
        let (blocks, time) = if enough < blocks { (enough, block.mul_f64(enough)) } else { (blocks, time) };
        // Of one seed there are only so many perturbed guests.
        let most =
            if clock::has_one_seed(self.analysis.dataset) { MOST_GUESTS.saturating_sub(fewest) as f64 } else { blocks };
        let (blocks, time) = if most < blocks { (most, block.mul_f64(most)) } else { (blocks, time) };
        if blocks < 1.0 {
            return Some(format!("{told}: the {ratio} {is} known to ± {} %.", share(widest.exp_m1())));
        }
        Some(format!(
            "{told}: the {ratio} {is} known to ± {} %, and to ± {} % after {} ({}).",
            share(widest.exp_m1()),
            share(after(blocks)),
            counted(blocks as usize, "more block"),
            format_duration(rounded(time)),
        ))
    }

    /// What one trial of each of these rows took.
    fn block_time(&self, rows: &[usize]) -> Duration {
        let of_row = |row: &usize| {
            let trials = &self.analysis.rows[*row].trials;
            let sum: u64 = trials.iter().map(|trial| trial.duration_ns).sum();
            sum / (trials.len() as u64).max(1)
        };
        Duration::from_nanos(rows.iter().map(of_row).sum())
    }
}

/// A bound in per cent, rounded up: "0.6", "5", "35".
fn share(bound: f64) -> String {
    // What rounding adds to a share is not to be rounded up.
    let percent = 100.0 * bound - 1e-9;
    if percent > 10.0 {
        return grouped(percent.ceil(), 0);
    }
    let text = grouped((percent * 10.0).ceil() / 10.0, 1);
    text.trim_end_matches(".0").to_owned()
}

/// As exact as an estimate deserves.
fn rounded(time: Duration) -> Duration {
    let seconds = time.as_secs().max(1);
    let step = if seconds < 120 {
        1
    } else if seconds < 7200 {
        60
    } else {
        3600
    };
    Duration::from_secs(seconds.div_ceil(step) * step)
}
