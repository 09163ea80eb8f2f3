//! The columns beside the main one: those that agree with it together, those that do not one by one, the largest contrast first.

use super::{
    teller::{Rank, Sentence, Teller},
    words::amount_against,
};
use crate::{compare::PanelComparison, text::listing};
use fstone_model::Better;
use fstone_stats::compare::Shift;

/// A contrast below this factor would not change a decision; the long answer has all of them.
pub(super) const NOTABLE: f64 = 1.5;

impl Teller<'_> {
    pub(super) fn other_columns(&self) -> Vec<Sentence> {
        let Some(main) = self.panel(0) else { return Vec::new() };
        let leader = main.any_differ().then(|| main.together()[0]);
        let columns = (0..self.analysis.columns.len()).filter(|column| *column != self.column);
        let (mut agree, mut alike, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for column in columns {
            let teller = Teller { analysis: self.analysis, column };
            let Some(panel) = teller.panel(0).filter(|panel| !panel.is_powerless()) else { continue };
            let directed = self.analysis.columns[column].better != Better::Neither;
            if !panel.any_differ() {
                if directed && !teller.is_moved_from_nothing() {
                    alike.push(teller.header());
                }
                continue;
            }
            let agrees = leader.is_some_and(|row| teller.best(panel).contains(&row));
            if agrees && directed {
                agree.push(teller.header());
            }
            told.extend(teller.contrast(panel, leader.filter(|_| !agrees && directed)));
        }
        told.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut sentences = Vec::new();
        if let Some(leader) = leader.filter(|_| !agree.is_empty()) {
            let text = format!("{} is among the best in {} too.", self.name(leader), listing(&agree));
            sentences.push(Sentence(Rank::Contrast, text));
        }
        sentences.extend(
            told.into_iter()
                .map(|(size, text)| Sentence(if size >= NOTABLE.ln() { Rank::Contrast } else { Rank::Detail }, text)),
        );
        if !alike.is_empty() {
            sentences.push(Sentence(Rank::Contrast, format!("No rows differ clearly in {}.", listing(&alike))));
        }
        sentences
    }

    /// A column's largest contrast against the baseline, or against the best row if there is none; and, if the row that leads the main
    /// column does not lead here, who does. With the size of the larger of the two, as a logarithm.
    fn contrast(&self, panel: &PanelComparison, leader: Option<usize>) -> Option<(f64, String)> {
        let best = panel.together()[0];
        let size = |shift: &Shift| shift.estimate.ln_1p().abs();
        let against = |reference: usize, row: usize| {
            let pair = panel.pair(reference, row).filter(|pair| pair.differs)?;
            pair.relative.filter(|shift| size(shift).is_finite())
        };
        let behind = leader.filter(|row| *row != best).and_then(|row| Some((row, against(best, row)?)));
        let reference = self.analysis.baseline_of(0).filter(|row| panel.together().contains(row)).unwrap_or(best);
        let others = panel.together().into_iter().filter_map(|row| Some((row, against(reference, row)?)));
        let farthest = others.max_by(|a, b| size(&a.1).total_cmp(&size(&b.1)));
        let mut parts = Vec::new();
        let mut largest = 0.0_f64;
        if let Some((row, shift)) = behind {
            // It changes what the main column suggests, however small it is.
            largest = size(&shift).max(NOTABLE.ln());
            parts.push(format!("{} is {}", self.name(row), amount_against(shift, &self.name(best))));
        }
        let said = behind.map(|(row, _)| (row, best));
        if let Some((row, shift)) =
            farthest.filter(|(row, _)| said != Some((*row, reference)) && said != Some((reference, *row)))
        {
            largest = largest.max(size(&shift));
            let text = format!("{} is {}", self.name(row), amount_against(shift, &self.name(reference)));
            // What is best here comes first.
            parts.insert(if row == best { 0 } else { parts.len() }, text);
        }
        if parts.is_empty() {
            // A proven difference of which no share is known, as from 0.
            let differing = |row: &usize| panel.differ(reference, *row);
            let row = panel.together().into_iter().rev().find(differing)?;
            let told = |row: usize| format!("{} has {}", self.name(row), self.value(row));
            return Some((NOTABLE.ln(), format!("In {}, {} and {}.", self.header(), told(row), told(reference))));
        }
        Some((largest, format!("In {}, {}.", self.header(), parts.join(", and "))))
    }
}
