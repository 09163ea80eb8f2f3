//! The answer where rows are compared in several places: at each number of threads, say.

use super::{
    teller::{MAX_NAMES, Teller},
    words::{quoted, span},
};
use crate::{
    compare::PanelComparison,
    text::{counted, line, listing},
};
use fstone_model::{kernels::KERNEL_FACTOR, study::FILESYSTEM_FACTOR};
use fstone_stats::compare::{Pairwise, Shift};

/// A list of places longer than this, in characters, becomes a count.
const MAX_PLACES: usize = 60;

impl Teller<'_> {
    /// The answer of a study in which more than the subject varies.
    pub(super) fn many_panels(&self) -> Vec<String> {
        let structure = &self.analysis.structure;
        let compared: Vec<(usize, &PanelComparison)> =
            (0..structure.panels.len()).filter_map(|index| Some((index, self.panel(index)?))).collect();
        if compared.is_empty() {
            return vec![self.uncompared()];
        }
        if compared.iter().all(|(_, panel)| panel.is_powerless()) {
            let leaders = self.leaders(&compared, &|panel| Some(self.name(panel.together()[0])));
            return vec![format!(
                "In {}, the {} means are those of {}, but {} a cell cannot show which differ{}.",
                self.header(),
                self.best_word(),
                listing(&self.leads(&leaders, compared.len())),
                counted(self.most_trials(), "trial"),
                self.needed(),
            )];
        }
        let leaders = self.leaders(&compared, &|panel| self.leader(panel));
        let alike: Vec<usize> =
            compared.iter().filter(|(_, panel)| !panel.any_differ()).map(|(index, _)| *index).collect();
        let mut parts = Vec::new();
        if !leaders.is_empty() {
            let verb = if leaders.len() == 1 { "is" } else { "are" };
            let leads = listing(&self.leads(&leaders, compared.len()));
            parts.push(format!("{} {verb} {leads}", self.best_word()));
        }
        if !alike.is_empty() {
            parts.push(self.lead(&self.none_found(), &alike, compared.len()));
        }
        let first = format!("In {}, {}.", self.header(), parts.join("; "));
        let second = if leaders.is_empty() { None } else { self.against_in_panels(&compared) };
        std::iter::once(first).chain(second).collect()
    }

    /// Who leads where: (name, panels), in order of first appearance.
    fn leaders(
        &self,
        compared: &[(usize, &PanelComparison)],
        leader: &dyn Fn(&PanelComparison) -> Option<String>,
    ) -> Vec<(String, Vec<usize>)> {
        let mut leaders: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, panel) in compared {
            let Some(name) = leader(panel) else { continue };
            match leaders.iter_mut().find(|(known, _)| *known == name) {
                Some((_, panels)) => panels.push(*index),
                None => leaders.push((name, vec![*index])),
            }
        }
        leaders
    }

    /// The best of a panel, and who cannot be told apart from it; `None` where no two rows differ.
    fn leader(&self, panel: &PanelComparison) -> Option<String> {
        if !panel.any_differ() {
            return None;
        }
        let rows = panel.together();
        let best = rows[0];
        let tied: Vec<usize> = rows[1..].iter().copied().filter(|row| !panel.differ(best, *row)).collect();
        Some(if tied.is_empty() {
            self.name(best)
        } else {
            format!("{} (not told apart from {})", self.name(best), self.names(&tied))
        })
    }

    /// "no difference was found"; where rows are not compared by filesystem, between what: "no difference between kernels was found".
    fn none_found(&self) -> String {
        let structure = &self.analysis.structure;
        let between = match structure.subject.map(|subject| structure.varied[subject].name.as_str()) {
            None | Some(FILESYSTEM_FACTOR) => String::new(),
            Some(KERNEL_FACTOR) => " between kernels".to_owned(),
            Some(name) => format!(" between levels of {}", line(name)),
        };
        format!("no difference{between} was found")
    }

    fn leads(&self, leaders: &[(String, Vec<usize>)], of: usize) -> Vec<String> {
        leaders.iter().map(|(name, panels)| self.lead(name, panels, of)).collect()
    }

    /// "at 16 threads", but "on xfs".
    fn preposition(&self) -> &'static str {
        let structure = &self.analysis.structure;
        let others: Vec<&str> = structure.others().map(|index| structure.varied[index].name.as_str()).collect();
        if others == [FILESYSTEM_FACTOR] { "on" } else { "at" }
    }

    fn lead(&self, name: &str, panels: &[usize], of: usize) -> String {
        let places = self.analysis.structure.places(panels);
        if panels.len() <= MAX_NAMES && places.chars().count() <= MAX_PLACES {
            format!("{name} {} {places}", self.preposition())
        } else if panels.len() == of {
            format!("{name} in all {of} combinations")
        } else {
            format!("{name} in {} of {of} combinations", panels.len())
        }
    }

    /// Each level of the subject against the baseline's, over all panels.
    fn against_in_panels(&self, compared: &[(usize, &PanelComparison)]) -> Option<String> {
        let structure = &self.analysis.structure;
        let subject = structure.subject?;
        let baseline_name = compared.iter().find_map(|(index, _)| {
            let row = self.analysis.baseline_of(*index)?;
            Some(self.level(row).to_owned())
        })?;
        let (mut parts, mut never) = (Vec::new(), Vec::new());
        for level in structure.varied[subject].levels.iter().filter(|level| **level != baseline_name) {
            let pairs: Vec<_> = compared
                .iter()
                .filter_map(|(index, panel)| {
                    let other = panel.rows.iter().copied().find(|row| self.level(*row) == level)?;
                    panel.pair(self.analysis.baseline_of(*index)?, other).filter(Pairwise::is_compared)
                })
                .collect();
            let side = |up: bool| {
                let shifts: Vec<Shift> = pairs
                    .iter()
                    .filter(|pair| pair.differs && (pair.shift.estimate > 0.0) == up)
                    .filter_map(|pair| pair.relative)
                    .collect();
                (!shifts.is_empty()).then(|| {
                    let word = if up { "higher" } else { "lower" };
                    format!("{word} in {} of {} (by {})", shifts.len(), pairs.len(), span(&shifts))
                })
            };
            let alike = pairs.iter().filter(|pair| !pair.differs).count();
            let mut told: Vec<String> = [side(true), side(false)].into_iter().flatten().collect();
            if told.is_empty() {
                if alike > 0 {
                    never.push(quoted(level));
                }
                continue;
            }
            if alike > 0 {
                told.push(format!("not told apart in {alike}"));
            }
            parts.push(format!("{} is {}", quoted(level), listing(&told)));
        }
        if !never.is_empty() {
            let verb = if never.len() == 1 { "is" } else { "are" };
            parts.push(format!("{} {verb} not told apart from it in any column", listing(&never)));
        }
        let told = !parts.is_empty() && parts.len() <= MAX_NAMES;
        told.then(|| format!("Against the baseline, {}: {}.", quoted(&baseline_name), parts.join("; ")))
    }
}
