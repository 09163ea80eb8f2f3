//! The answer where all rows are compared with each other.

use super::{
    teller::Teller,
    words::{amount, amount_against, quoted},
};
use crate::{
    compare::PanelComparison,
    number::grouped,
    text::{counted, listing},
};
use fstone_stats::{CONFIDENCE_TEXT, compare::Shift};

impl Teller<'_> {
    pub(super) fn only_row(&self) -> String {
        let row = (0..self.analysis.rows.len())
            .find(|row| self.analysis.rows[*row].entries[self.column].summary.is_some())
            .expect("counted by the caller");
        let (entry, scale) = (&self.analysis.rows[row].entries[self.column], &self.analysis.columns[self.column].scale);
        let label = quoted(&self.analysis.rows[row].label);
        match entry.interval {
            Some(interval) => format!(
                "In {}, {label} reached {} in the mean of {} ({CONFIDENCE_TEXT} interval {} to {}).",
                self.header(),
                self.value(row),
                counted(entry.values.len(), "trial"),
                scale.number(interval.low),
                scale.with_unit(interval.high),
            ),
            None => format!(
                "In {}, {label} reached {} in a single trial, which says nothing about its variation.",
                self.header(),
                self.value(row),
            ),
        }
    }

    pub(super) fn one_panel(&self) -> Vec<String> {
        let Some(panel) = self.panel(0) else { return vec![self.uncompared()] };
        let rows = panel.together();
        let (best, worst) = (rows[0], *rows.last().expect("at least one"));
        let head = format!("In {}, {}", self.header(), self.name(best));
        if panel.is_powerless() {
            return vec![format!(
                "{head} has the {} mean ({}) and {} the {} ({}), but {} a row cannot show which of the {} rows differ{}.",
                self.best_word(),
                self.value(best),
                self.name(worst),
                self.worst_word(),
                self.value(worst),
                counted(self.most_trials(), "trial"),
                rows.len(),
                self.needed(),
            )];
        }
        if !panel.any_differ() {
            return self.no_difference(panel);
        }
        let tied: Vec<usize> = rows[1..].iter().copied().filter(|row| !panel.differ(best, *row)).collect();
        let first = if tied.is_empty() {
            let next = rows[1];
            let lead = panel
                .pair(next, best)
                .and_then(|pair| pair.relative)
                .map_or_else(String::new, |lead| format!(": {}", amount_against(lead, &self.name(next))));
            format!("{head} is {} with {}{lead}.", self.best_word(), self.value(best))
        } else {
            format!(
                "{head} has the {} mean ({}), but {} cannot be told apart from it.",
                self.best_word(),
                self.value(best),
                self.names(&tied),
            )
        };
        let second = match self.analysis.baseline_of(0).filter(|row| rows.contains(row)) {
            Some(baseline) => self.against(panel, baseline, tied.is_empty().then_some((best, rows[1]))),
            None if rows.len() > 2 => self.last(panel, best, worst),
            None => None,
        };
        std::iter::once(first).chain(second).collect()
    }

    /// Figures without a comparison: more rows than are compared.
    pub(super) fn uncompared(&self) -> String {
        let rows = &self.analysis.rows;
        let mean = |row: &usize| rows[*row].entries[self.column].mean();
        let mut present: Vec<usize> = (0..rows.len()).filter(|row| mean(row).is_some()).collect();
        present.sort_by(|a, b| mean(a).unwrap_or(0.0).total_cmp(&mean(b).unwrap_or(0.0)));
        let (low, high) = (present[0], *present.last().expect("at least two"));
        format!(
            "In {}, the means of {} lie between {} ({}) and {} ({}). So many rows are not compared in words.",
            self.header(),
            counted(present.len(), "row"),
            self.value(low),
            self.unique_name(low),
            self.value(high),
            self.unique_name(high),
        )
    }

    pub(super) fn needed(&self) -> String {
        self.analysis.comparisons[self.column]
            .power_note()
            .map_or_else(String::new, |note| format!(": that takes at least {}", note.repeats_needed))
    }

    fn no_difference(&self, panel: &PanelComparison) -> Vec<String> {
        let rows = panel.together();
        let mut ends = [rows[0], *rows.last().expect("at least two")];
        let mean = |row: &usize| self.analysis.rows[*row].entries[self.column].mean().unwrap_or(f64::NAN);
        ends.sort_by(|one, other| mean(one).total_cmp(&mean(other)));
        let first = format!(
            "In {}, no difference was found between {}, whose means lie between {} and {}.",
            self.header(),
            if panel.together().len() == 2 {
                self.names(&panel.together())
            } else {
                format!("the {} rows", panel.together().len())
            },
            self.value(ends[0]),
            self.value(ends[1]),
        );
        let reaches: Option<Vec<f64>> = panel
            .compared_pairs()
            .map(|pair| pair.relative.map(|shift| shift.interval.low.abs().max(shift.interval.high.abs())))
            .collect();
        let reach = reaches.and_then(|reaches| reaches.into_iter().reduce(f64::max));
        let second = reach.filter(|reach| reach.is_finite()).map(|reach| {
            // Rounded up: it is a bound.
            let percent = if reach < 0.1 { (reach * 1000.0).ceil() / 10.0 } else { (reach * 100.0).ceil() };
            format!(
                "No pair's {CONFIDENCE_TEXT} interval reaches beyond a difference of {} %.",
                grouped(percent, usize::from(reach < 0.1))
            )
        });
        std::iter::once(first).chain(second).collect()
    }

    /// Every other row against the baseline. `said` is the pair that the first sentence was about.
    fn against(&self, panel: &PanelComparison, baseline: usize, said: Option<(usize, usize)>) -> Option<String> {
        if panel.together().len() == 2 && said.is_some() {
            return None;
        }
        let (mut higher, mut lower, mut alike) = (Vec::new(), Vec::new(), Vec::new());
        for row in panel.together().into_iter().filter(|row| *row != baseline) {
            match panel.pair(baseline, row) {
                Some(pair) if pair.differs && pair.shift.estimate > 0.0 => higher.push((row, pair.relative)),
                Some(pair) if pair.differs => lower.push((row, pair.relative)),
                _ => alike.push(row),
            }
        }
        if higher.is_empty() && lower.is_empty() && alike.len() > 1 {
            let others = counted(alike.len(), "other");
            return Some(format!("None of the {others} can be told apart from the baseline, {}.", self.name(baseline)));
        }
        // The largest difference last, whichever way the column is sorted.
        let estimate = |shift: &Option<Shift>| shift.map_or(0.0, |shift| shift.estimate.abs());
        higher.sort_by(|a, b| estimate(&a.1).total_cmp(&estimate(&b.1)));
        lower.sort_by(|a, b| estimate(&a.1).total_cmp(&estimate(&b.1)));
        let mut parts = Vec::new();
        parts.extend(self.side(&higher, "higher"));
        parts.extend(self.side(&lower, "lower"));
        if !alike.is_empty() {
            parts.push(format!("{} cannot be told apart from it", self.names(&alike)));
        }
        (!parts.is_empty()).then(|| format!("Against the baseline, {}, {}.", self.name(baseline), listing(&parts)))
    }

    fn side(&self, rows: &[(usize, Option<Shift>)], word: &str) -> Option<String> {
        let (most, shift) = rows.last()?;
        let most_amount = shift.map(amount);
        Some(match (rows.len(), most_amount) {
            (1, Some(amount)) => format!("{} is {amount}", self.name(*most)),
            (1, None) => format!("{} is {word}", self.name(*most)),
            (count, Some(amount)) => format!("{count} rows are {word}, {} most ({amount})", self.name(*most)),
            (count, None) => format!("{count} rows are {word}"),
        })
    }

    fn last(&self, panel: &PanelComparison, best: usize, worst: usize) -> Option<String> {
        let pair = panel.pair(best, worst).filter(|pair| pair.differs)?;
        let behind =
            pair.relative.map_or_else(String::new, |shift| format!(", {}", amount_against(shift, &self.name(best))));
        let tied: Vec<usize> = panel.together()[1..panel.together().len() - 1]
            .iter()
            .copied()
            .filter(|row| !panel.differ(worst, *row))
            .collect();
        let tied = if tied.is_empty() {
            String::new()
        } else {
            format!("; {} cannot be told apart from {}", self.names(&tied), self.name(worst))
        };
        Some(format!("{} is {} with {}{behind}{tied}.", self.name(worst), self.worst_word(), self.value(worst)))
    }
}
