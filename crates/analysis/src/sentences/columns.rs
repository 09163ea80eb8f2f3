//! The columns beside the main one: those that agree with it together, those that do not one by one, the largest contrast first.

use super::{
    teller::{Rank, Sentence, Teller, is_same},
    words::amount_against,
};
use crate::{compare::PanelComparison, text::listing};
use fstone_model::Better;
use fstone_stats::{
    ALPHA, Interval,
    compare::{Pairwise, Shift},
    interval::IntervalMethod,
};
use std::cmp::Ordering;

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
            let Some(panel) = teller.panel(0) else { continue };
            if panel.is_powerless() {
                told.extend(
                    teller
                        .exact_contrast(0, panel)
                        .map(|(size, text)| (size, format!("In {}, {text}.", teller.header()))),
                );
                continue;
            }
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
        let against = |reference: usize, row: usize| panel.pair(reference, row).filter(|pair| pair.differs);
        let behind = leader.filter(|row| *row != best).and_then(|row| Some((row, against(best, row)?)));
        let reference = self.analysis.baseline_of(0).filter(|row| panel.together().contains(row)).unwrap_or(best);
        let others = panel.together().into_iter().filter_map(|row| Some((row, against(reference, row)?)));
        let farthest = others.max_by(|a, b| larger(&a.1, &b.1));
        let mut parts: Vec<(usize, usize, &Pairwise)> = Vec::new();
        let mut largest = 0.0_f64;
        if let Some((row, pair)) = &behind {
            // It changes what the main column suggests, however small it is.
            largest = size(pair).max(NOTABLE.ln());
            parts.push((*row, best, pair));
        }
        let said = behind.as_ref().map(|(row, _)| (*row, best));
        let farthest = farthest.filter(|(row, _)| said != Some((*row, reference)) && said != Some((reference, *row)));
        if let Some((row, pair)) = &farthest {
            largest = largest.max(size(pair));
            // What is best here comes first.
            parts.insert(if *row == best { 0 } else { parts.len() }, (*row, reference, pair));
        }
        let has_share = |pair: &Pairwise| pair.relative.is_some() && size(pair).is_finite();
        let text = match parts.as_slice() {
            [] => return None,
            // Of 0, or of per cent, nothing is a share: each row is named once, with what it has.
            [first, second] if !has_share(first.2) && !has_share(second.2) => {
                let mut rows = vec![first.0, first.1, second.0, second.1];
                rows.sort_by(|a, b| self.mean(*a).total_cmp(&self.mean(*b)).then(a.cmp(b)));
                rows.dedup();
                let told = rows.iter().enumerate().map(|(at, row)| match at {
                    0 => format!("{} has {}", self.name(*row), self.value(*row)),
                    _ => format!("{} {}", self.name(*row), self.value(*row)),
                });
                listing(&told.collect::<Vec<_>>())
            }
            [first, second] if first.0 == second.0 && has_share(first.2) && has_share(second.2) => {
                let shift = second.2.relative.expect("it has a share");
                format!(
                    "{} and {}",
                    self.contrasted(first.0, first.1, first.2),
                    amount_against(shift, &self.name(second.1))
                )
            }
            parts => {
                let told = parts.iter().map(|(row, reference, pair)| self.contrasted(*row, *reference, pair));
                told.collect::<Vec<_>>().join(", and ")
            }
        };
        Some((largest, format!("In {}, {text}.", self.header())))
    }

    /// A pair of rows in words.
    pub(super) fn contrasted(&self, row: usize, reference: usize, pair: &Pairwise) -> String {
        match pair.relative.filter(|_| size(pair).is_finite()) {
            Some(shift) => format!("{} is {}", self.name(row), amount_against(shift, &self.name(reference))),
            // Of 0 nothing is a share.
            None => self.both(row, reference),
        }
    }

    pub(super) fn both(&self, a: usize, b: usize) -> String {
        let told = |row: usize| format!("{} has {}", self.name(row), self.value(row));
        format!("{} and {}", told(a), told(b))
    }

    /// The largest contrast against the baseline, or the best row, where a test says nothing but figures are exact for what was run.
    pub(super) fn exact_contrast(&self, index: usize, panel: &PanelComparison) -> Option<(f64, String)> {
        let rows = panel.together();
        let exact_for = self.exact_for(&rows)?;
        let reference = self.analysis.baseline_of(index).filter(|row| rows.contains(row)).unwrap_or(rows[0]);
        let ratio = |row: usize| self.mean(row) / self.mean(reference);
        let size = |row: usize| ratio(row).ln().abs();
        let others = rows.iter().copied().filter(|row| !is_same(self.mean(*row), self.mean(reference)));
        let row = others.max_by(|a, b| size(*a).total_cmp(&size(*b)))?;
        let text = if size(row).is_finite() {
            let estimate = ratio(row) - 1.0;
            let method = IntervalMethod::Constant;
            let interval = Interval { low: estimate, high: estimate, confidence: 1.0 - ALPHA, method, n: 1 };
            format!("{} is {}", self.name(row), amount_against(Shift { estimate, interval }, &self.name(reference)))
        } else {
            self.both(row, reference)
        };
        let exact_for = if self.is_one_seed(&rows) { String::new() } else { format!(", {exact_for}") };
        Some((size(row), format!("{text}{exact_for}")))
    }
}

/// How much two rows differ, as a logarithm; infinitely where one has nothing.
pub(super) fn size(pair: &Pairwise) -> f64 {
    pair.relative.map_or(f64::INFINITY, |shift| shift.estimate.ln_1p().abs())
}

/// Which pair of one reference differs more.
pub(super) fn larger(a: &Pairwise, b: &Pairwise) -> Ordering {
    let distance = |pair: &Pairwise| pair.shift.estimate.abs();
    size(a).total_cmp(&size(b)).then(distance(a).total_cmp(&distance(b)))
}
