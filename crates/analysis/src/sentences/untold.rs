//! What could not be told, and what telling it would cost.

use super::teller::Teller;
use crate::{compare::PanelComparison, number::grouped, text::counted};
use fstone_model::units::format_duration;
use std::time::Duration;

/// Differences of this share are worth finding, unless the study's budget says otherwise.
const RESOLUTION: f64 = 0.05;
/// More blocks than this are no plan.
const MOST_BLOCKS: f64 = 10_000.0;

impl Teller<'_> {
    /// The pairs that are not told apart, and how many more blocks would tell differences of 5 % among them. `None` when there are
    /// none, or when too few trials could have told anything, which has a sentence of its own.
    pub(super) fn untold(&self) -> Option<String> {
        let resolution = self.analysis.dataset.run.plan.budget.map_or(RESOLUTION, |budget| budget.resolution);
        let panels: Vec<&PanelComparison> = self.analysis.comparisons[self.column].panels.iter().flatten().collect();
        let pairs: usize = panels.iter().map(|panel| panel.compared_pairs().count()).sum();
        let (mut open, mut blocks, mut rows) = (0, 0.0_f64, Vec::new());
        for panel in panels.iter().filter(|panel| !panel.is_powerless()) {
            for pair in panel.compared_pairs().filter(|pair| !pair.differs) {
                open += 1;
                let of_pair = [panel.rows[pair.baseline], panel.rows[pair.other]];
                let trials = |row: &usize| self.analysis.rows[*row].entries[self.column].values.len();
                let trials = of_pair.iter().map(trials).min().unwrap_or(0) as f64;
                let arms = pair.relative.map(|shift| shift.interval).filter(|interval| interval.low > -1.0);
                let arms = arms.map(|interval| (interval.high.ln_1p() - interval.low.ln_1p()) / 2.0)?;
                // Intervals narrow with the root of the number of blocks.
                let needed = trials * ((arms / resolution.ln_1p()).powi(2) - 1.0);
                if needed > 0.0 {
                    rows.extend(of_pair);
                    blocks = blocks.max(needed.ceil());
                }
            }
        }
        if open == 0 {
            return None;
        }
        let verb = if open == 1 { "is" } else { "are" };
        let told = format!("{open} of {} {verb} not told apart in {}", counted(pairs, "pair"), self.header());
        let share = grouped(100.0 * resolution, usize::from(resolution < 0.01));
        if rows.is_empty() {
            return Some(format!("{told}; their ratios are known to ± {share} %."));
        }
        rows.sort_unstable();
        rows.dedup();
        let cost = if blocks > MOST_BLOCKS {
            "more trials than anybody makes".to_owned()
        } else {
            let time = self.block_time(&rows).mul_f64(blocks);
            format!("about {} ({})", counted(blocks as usize, "more block"), format_duration(rounded(time)))
        };
        Some(format!("{told}; telling differences of {share} % among them takes {cost}."))
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
