//! The answer in words, never stronger than the statistics.
//!
//! A row is called higher or lower only when the comparison found the two to differ; a percentage is the 95 % interval
//! of the shift, not a ratio of means. Where too few trials could not have shown anything, that is said in place of
//! "no difference".

mod panels;
mod words;

pub(crate) use words::{amount, in_words};

use super::{Analysis, PanelComparison};
use crate::{
    number::grouped,
    text::{counted, listing},
};
use fstone_model::Better;
use fstone_stats::compare::Shift;
use words::quoted;

/// More names than this become a count.
const MAX_NAMES: usize = 4;

/// At most three sentences.
pub(super) fn sentences(analysis: &Analysis<'_>) -> Vec<String> {
    let Some(column) = analysis.primary() else {
        return vec!["The study shows no column, so there is nothing to compare.".to_owned()];
    };
    let teller = Teller { analysis, column };
    let present = analysis.rows.iter().filter(|row| row.entries[column].summary.is_some()).count();
    let mut sentences = match (present, analysis.structure.panels.len()) {
        (0, _) => vec![format!("No row has a figure for {}.", teller.header())],
        (1, _) => vec![teller.only_row()],
        (_, 1) => teller.one_panel(),
        _ => teller.many_panels(),
    };
    sentences.extend(teller.caveats());
    sentences
}

/// Tells of one column.
struct Teller<'a> {
    analysis: &'a Analysis<'a>,
    column: usize,
}

impl Teller<'_> {
    fn header(&self) -> &str {
        &self.analysis.columns[self.column].header
    }

    /// The better end of the column.
    fn best_word(&self) -> &'static str {
        if self.analysis.columns[self.column].better == Better::Lower { "lowest" } else { "highest" }
    }

    fn worst_word(&self) -> &'static str {
        if self.analysis.columns[self.column].better == Better::Lower { "highest" } else { "lowest" }
    }

    fn value(&self, row: usize) -> String {
        let mean = self.analysis.rows[row].entries[self.column].mean().unwrap_or(f64::NAN);
        self.analysis.columns[self.column].scale.with_unit(mean)
    }

    /// What the row is called among those it is compared with.
    fn name(&self, row: usize) -> String {
        quoted(self.level(row))
    }

    fn level(&self, row: usize) -> &str {
        let row = &self.analysis.rows[row];
        self.analysis.structure.subject.map_or(&row.label, |subject| &row.levels[subject])
    }

    /// What the row is called in the whole table.
    fn unique_name(&self, row: usize) -> String {
        if self.analysis.structure.panels.len() == 1 { self.name(row) } else { quoted(&self.analysis.rows[row].label) }
    }

    fn names(&self, rows: &[usize]) -> String {
        if rows.len() > MAX_NAMES {
            return format!("{} rows", rows.len());
        }
        listing(&rows.iter().map(|row| self.name(*row)).collect::<Vec<_>>())
    }

    fn panel(&self, panel: usize) -> Option<&PanelComparison> {
        self.analysis.comparisons[self.column].panels[panel].as_ref()
    }

    fn most_trials(&self) -> usize {
        self.analysis.rows.iter().map(|row| row.entries[self.column].values.len()).max().unwrap_or(0)
    }

    fn only_row(&self) -> String {
        let row = (0..self.analysis.rows.len())
            .find(|row| self.analysis.rows[*row].entries[self.column].summary.is_some())
            .expect("counted by the caller");
        let (entry, scale) = (&self.analysis.rows[row].entries[self.column], &self.analysis.columns[self.column].scale);
        let label = quoted(&self.analysis.rows[row].label);
        match entry.interval {
            Some(interval) => format!(
                "In {}, {label} reached {} in the mean of {} (95 % interval {} to {}).",
                self.header(),
                self.value(row),
                counted(entry.values.len(), "trial"),
                scale.number(interval.low),
                scale.with_unit(interval.high),
            ),
            None => format!(
                "In {}, {label} reached {} in a single trial, which tells nothing of how much it varies.",
                self.header(),
                self.value(row),
            ),
        }
    }

    fn one_panel(&self) -> Vec<String> {
        let Some(panel) = self.panel(0) else { return vec![self.uncompared()] };
        let (best, worst) = (panel.rows[0], *panel.rows.last().expect("at least two"));
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
                panel.rows.len(),
                self.needed(),
            )];
        }
        if !panel.any_differ() {
            return self.no_difference(panel);
        }
        let tied: Vec<usize> = panel.rows[1..].iter().copied().filter(|row| !panel.differ(best, *row)).collect();
        let first = if tied.is_empty() {
            let next = panel.rows[1];
            let lead = panel.pair(next, best).and_then(|pair| pair.relative).map(amount);
            match lead {
                Some(lead) => {
                    format!(
                        "{head} is {} with {}: {lead} than {}.",
                        self.best_word(),
                        self.value(best),
                        self.name(next)
                    )
                }
                None => format!("{head} is {} with {}.", self.best_word(), self.value(best)),
            }
            .replace("times as high than", "times as high as")
        } else {
            format!(
                "{head} has the {} mean ({}), but {} cannot be told apart from it.",
                self.best_word(),
                self.value(best),
                self.names(&tied),
            )
        };
        let second = match self.analysis.baseline_of(0).filter(|row| panel.rows.contains(row)) {
            Some(baseline) => self.against(panel, baseline, tied.is_empty().then_some((best, panel.rows[1]))),
            None if panel.rows.len() > 2 => self.last(panel, best, worst),
            None => None,
        };
        std::iter::once(first).chain(second).collect()
    }

    /// Figures without a comparison: more rows than are compared.
    fn uncompared(&self) -> String {
        let rows = &self.analysis.rows;
        let mean = |row: &usize| rows[*row].entries[self.column].mean();
        let mut present: Vec<usize> = (0..rows.len()).filter(|row| mean(row).is_some()).collect();
        present.sort_by(|a, b| mean(a).unwrap_or(0.0).total_cmp(&mean(b).unwrap_or(0.0)));
        let (low, high) = (present[0], *present.last().expect("at least two"));
        format!(
            "In {}, the means of {} lie between {} ({}) and {} ({}); so many are not compared pair by pair.",
            self.header(),
            counted(present.len(), "row"),
            self.value(low),
            self.unique_name(low),
            self.value(high),
            self.unique_name(high),
        )
    }

    fn needed(&self) -> String {
        self.analysis.comparisons[self.column]
            .power_note()
            .map_or_else(String::new, |note| format!(": that takes at least {}", note.repeats_needed))
    }

    fn no_difference(&self, panel: &PanelComparison) -> Vec<String> {
        let (best, worst) = (panel.rows[0], *panel.rows.last().expect("at least two"));
        let first = format!(
            "In {}, no difference was found between {}, whose means lie between {} and {}.",
            self.header(),
            if panel.rows.len() == 2 { self.names(&panel.rows) } else { format!("the {} rows", panel.rows.len()) },
            self.value(worst),
            self.value(best),
        );
        let reaches: Option<Vec<f64>> = panel
            .comparison
            .pairs
            .iter()
            .map(|pair| pair.relative.map(|shift| shift.interval.low.abs().max(shift.interval.high.abs())))
            .collect();
        let reach = reaches.and_then(|reaches| reaches.into_iter().reduce(f64::max));
        let second = reach.filter(|reach| reach.is_finite()).map(|reach| {
            // Rounded up: it is a bound.
            let percent = if reach < 0.1 { (reach * 1000.0).ceil() / 10.0 } else { (reach * 100.0).ceil() };
            format!(
                "No pair's 95 % interval reaches beyond a difference of {} %.",
                grouped(percent, usize::from(reach < 0.1))
            )
        });
        std::iter::once(first).chain(second).collect()
    }

    /// Every other row against the baseline. `said` is the pair that the first sentence was about.
    fn against(&self, panel: &PanelComparison, baseline: usize, said: Option<(usize, usize)>) -> Option<String> {
        if panel.rows.len() == 2 && said.is_some() {
            return None;
        }
        let (mut higher, mut lower, mut alike) = (Vec::new(), Vec::new(), Vec::new());
        for &row in panel.rows.iter().filter(|row| **row != baseline) {
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
            pair.relative.map_or_else(String::new, |shift| format!(", {} than {}", amount(shift), self.name(best)));
        let tied: Vec<usize> =
            panel.rows[1..panel.rows.len() - 1].iter().copied().filter(|row| !panel.differ(worst, *row)).collect();
        let tied = if tied.is_empty() {
            String::new()
        } else {
            format!("; {} cannot be told apart from {}", self.names(&tied), self.name(worst))
        };
        Some(
            format!("{} is {} with {}{behind}{tied}.", self.name(worst), self.worst_word(), self.value(worst))
                .replace("times as high than", "times as high as"),
        )
    }

    /// What did not complete, and what weakens the rest; one sentence.
    fn caveats(&self) -> Option<String> {
        let analysis = self.analysis;
        let empty: Vec<usize> = (0..analysis.rows.len()).filter(|row| analysis.rows[*row].word.is_some()).collect();
        let mut parts = Vec::new();
        if !empty.is_empty() {
            let mut words: Vec<(&str, Vec<String>)> = Vec::new();
            for row in &empty {
                let (name, word) = (self.unique_name(*row), analysis.rows[*row].word.unwrap_or_default());
                match words.iter_mut().find(|(known, _)| *known == word) {
                    Some((_, rows)) => rows.push(name),
                    None => words.push((word, vec![name])),
                }
            }
            let told: Vec<String> = words
                .iter()
                .map(|(word, rows)| {
                    let names = if rows.len() > MAX_NAMES { format!("{} of them", rows.len()) } else { listing(rows) };
                    format!("{names} ({word})")
                })
                .collect();
            parts.push(format!(
                "there is no figure for {} of {} rows: {}",
                empty.len(),
                analysis.rows.len(),
                listing(&told)
            ));
        }
        let partial = analysis.rows.iter().filter(|row| row.completed > 0).map(|row| row.trials.len() - row.completed);
        let partial: usize = partial.sum();
        if partial > 0 {
            let of = if partial == 1 { "1 other trial".to_owned() } else { format!("{partial} other trials") };
            parts.push(format!("{of} did not complete"));
        }
        if let Some(drift) = analysis.drifts.iter().find(|drift| drift.column == self.column) {
            let change = drift.drift.relative_change.unwrap_or(0.0);
            parts.push(format!(
                "{} drifted by {} % over the run",
                self.header(),
                grouped(change.abs() * 100.0, usize::from(change.abs() < 0.1))
            ));
        }
        let sentence = parts.join("; ");
        let mut letters = sentence.chars();
        let first = letters.next()?;
        Some(format!("{}{}.", first.to_uppercase(), letters.as_str()))
    }
}
