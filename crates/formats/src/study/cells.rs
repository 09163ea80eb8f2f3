//! Which combinations of levels are tried.

use super::{
    MAXIMUM_CELLS,
    factor::{self, Factor},
    level::Level,
    overrides::matches,
    surface::SweepSurface,
};
use crate::{
    decode::{At, listed},
    diagnostic::{Diagnostic, Report, Span},
};

#[derive(Debug, Clone)]
pub(super) struct Combinations {
    /// The factors, with the levels that occur.
    pub(super) factors: Vec<Factor>,
    /// For each cell, the index of the level of each factor.
    pub(super) cells: Vec<Vec<usize>>,
}

impl Combinations {
    /// Every combination, or those of the sweeps, one after the other and each once. Too many are reported at `place`.
    pub(super) fn of(factors: &[Factor], sweeps: &[At<SweepSurface>], place: Span, report: &mut Report) -> Self {
        let parts: Vec<Vec<Factor>> = match sweeps {
            [] => vec![factors.to_vec()],
            sweeps => sweeps.iter().map(|sweep| factor::restrict(factors, &sweep.value, false, report)).collect(),
        };
        let count = parts.iter().map(|part| size(part)).fold(0, usize::saturating_add);
        let mut combinations = Self { factors: factors.to_vec(), cells: Vec::new() };
        if count > MAXIMUM_CELLS {
            report.push(
                Diagnostic::error(place, format!("these factors make {count} combinations"))
                    .label(format!("at most {MAXIMUM_CELLS} are tried")),
            );
            return combinations;
        }
        let mut seen = std::collections::HashSet::new();
        for part in &parts {
            // Where each of the part's levels is among the factor's own; a level that is not there has been reported.
            let positions: Vec<Vec<usize>> = part
                .iter()
                .zip(factors)
                .map(|(part, whole)| part.levels.iter().filter_map(|level| position(whole, &level.value)).collect())
                .collect();
            let cells = product(&positions).into_iter().filter(|cell| seen.insert(cell.clone()));
            combinations.cells.extend(cells);
        }
        combinations.without_unused_levels()
    }

    pub(super) fn only(mut self, only: &[(String, String)], report: &mut Report) -> Self {
        for (name, pattern) in only {
            let Some(factor) = self.factors.iter().find(|factor| factor.name == *name) else {
                let names: Vec<&str> = self.factors.iter().map(|factor| factor.name.as_str()).collect();
                report.push(
                    Diagnostic::whole(format!("--only {name}={pattern}: `{name}` is not a factor of this study"))
                        .did_you_mean(name, names.iter().copied())
                        .note(format!("the factors are {}", listed(&names))),
                );
                continue;
            };
            if !factor.levels.iter().any(|level| is_meant(&level.value, pattern)) {
                let names: Vec<&str> = factor.levels.iter().map(|level| level.value.name.as_str()).collect();
                report.push(
                    Diagnostic::whole(format!("--only {name}={pattern}: no level of `{name}` matches"))
                        .did_you_mean(pattern, names.iter().copied())
                        .note(format!("its levels are {}", listed(&names))),
                );
            }
        }
        let wanted = |factor: &Factor, level: usize| {
            let mut patterns = only.iter().filter(|(name, _)| *name == factor.name).peekable();
            patterns.peek().is_none() || patterns.any(|(_, pattern)| is_meant(&factor.levels[level].value, pattern))
        };
        let (factors, some) = (&self.factors, !self.cells.is_empty());
        self.cells.retain(|cell| factors.iter().zip(cell).all(|(factor, level)| wanted(factor, *level)));
        if some && self.cells.is_empty() && !report.has_errors() {
            report.push(Diagnostic::whole("--only leaves nothing to try: no combination has all of these levels"));
        }
        self.without_unused_levels()
    }

    pub(super) fn label(&self, cell: &[usize]) -> String {
        let names = self.factors.iter().zip(cell).map(|(factor, level)| factor.levels[*level].value.name.as_str());
        names.collect::<Vec<_>>().join(" · ")
    }

    fn without_unused_levels(mut self) -> Self {
        for (index, factor) in self.factors.iter_mut().enumerate() {
            let mut used = vec![false; factor.levels.len()];
            for cell in &self.cells {
                used[cell[index]] = true;
            }
            // The new index of each level: how many of those before it remain.
            let before: Vec<usize> = used
                .iter()
                .scan(0, |count, used| {
                    *count += usize::from(*used);
                    Some(*count - usize::from(*used))
                })
                .collect();
            for cell in &mut self.cells {
                cell[index] = before[cell[index]];
            }
            let mut used = used.into_iter();
            factor.levels.retain(|_| used.next().expect("one per level"));
        }
        self
    }
}

fn is_meant(level: &Level, pattern: &str) -> bool {
    matches(pattern, &level.name) || matches(pattern, &level.written)
}

fn position(factor: &Factor, level: &Level) -> Option<usize> {
    factor.levels.iter().position(|known| known.value == *level)
}

fn size(factors: &[Factor]) -> usize {
    factors.iter().map(|factor| factor.levels.len()).fold(1, usize::saturating_mul)
}

/// Every combination, the last varying fastest.
fn product(levels: &[Vec<usize>]) -> Vec<Vec<usize>> {
    levels.iter().fold(vec![Vec::new()], |cells, levels| {
        cells
            .iter()
            .flat_map(|cell| levels.iter().map(|level| cell.iter().copied().chain([*level]).collect()))
            .collect()
    })
}
