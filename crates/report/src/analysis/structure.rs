//! What was varied: which factor is compared, which one is an axis, and which rows stand side by side.

use crate::text;
use fstone_model::{Cell, Plan, study::FILESYSTEM_FACTOR};

/// The factors of a plan as a report sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// The factors with more than one level in the plan's cells, in the plan's order.
    pub varied: Vec<Varied>,
    /// Index in `varied` of the factor that rows are compared by; `None` when nothing varies.
    pub subject: Option<usize>,
    /// Index in `varied` of the numeric factor that makes the axis of a line plot.
    pub axis: Option<usize>,
    /// Rows that differ in the subject alone are in one panel. In the order of the rows.
    pub panels: Vec<Panel>,
    /// The panel of each of the plan's cells.
    pub(super) panel_of: Vec<usize>,
}

/// A factor that varies.
#[derive(Debug, Clone, PartialEq)]
pub struct Varied {
    /// Its index in the plan's factors.
    pub factor: usize,
    /// Its name.
    pub name: String,
    /// Its levels' names.
    pub levels: Vec<String>,
    /// Their numbers, for a numeric factor.
    pub numbers: Option<Vec<u64>>,
}

/// Rows that are compared with each other: equal in everything but the subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The levels that its rows share, as "16 threads" or "kernel 6.18 · 16 threads"; empty when nothing else varies.
    pub title: String,
    /// Its rows.
    pub rows: Vec<usize>,
    /// The row that ratios refer to: the one with the plan's baseline's level of the subject.
    pub baseline: Option<usize>,
}

impl Structure {
    /// The structure of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let varied: Vec<Varied> = plan
            .factors
            .iter()
            .enumerate()
            .filter(|(factor, _)| {
                let mut levels = plan.cells.iter().map(|cell| cell.levels.get(*factor));
                let first = levels.next();
                levels.any(|level| Some(level) != first)
            })
            .map(|(index, factor)| Varied {
                factor: index,
                name: text::line(&factor.name),
                levels: factor.levels.iter().map(|level| text::line(level)).collect(),
                numbers: factor.numbers.clone().filter(|numbers| numbers.len() == factor.levels.len()),
            })
            .collect();
        // Filesystems are what this is about; else the first thing that is not a number.
        let subject = varied
            .iter()
            .position(|factor| factor.name == FILESYSTEM_FACTOR)
            .or_else(|| varied.iter().position(|factor| factor.numbers.is_none()))
            .or_else(|| (!varied.is_empty()).then_some(0));
        let axis = (0..varied.len())
            .filter(|index| varied[*index].numbers.is_some() && (varied.len() == 1 || Some(*index) != subject))
            .max_by_key(|index| varied[*index].levels.len());
        let mut structure = Self { varied, subject, axis, panels: Vec::new(), panel_of: Vec::new() };
        structure.fill_panels(plan);
        structure
    }

    fn fill_panels(&mut self, plan: &Plan) {
        let mut keys: Vec<Vec<u32>> = Vec::new();
        for (row, cell) in plan.cells.iter().enumerate() {
            let key = self.key(cell);
            let panel = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                self.panels.push(Panel { title: self.title(&key), rows: Vec::new(), baseline: None });
                keys.push(key);
                keys.len() - 1
            });
            self.panels[panel].rows.push(row);
            self.panel_of.push(panel);
        }
        let level_of = |cell: &Cell| {
            let factor = self.varied[self.subject?].factor;
            cell.levels.get(factor).copied()
        };
        let Some(baseline) = plan.baseline.and_then(|index| plan.cells.iter().find(|cell| cell.index == index)) else {
            return;
        };
        let wanted = level_of(baseline);
        let baselines: Vec<Option<usize>> = self
            .panels
            .iter()
            .map(|panel| panel.rows.iter().copied().find(|row| level_of(&plan.cells[*row]) == wanted))
            .collect();
        for (panel, baseline) in self.panels.iter_mut().zip(baselines) {
            panel.baseline = baseline;
        }
    }

    /// The levels of everything that varies but the subject.
    fn key(&self, cell: &Cell) -> Vec<u32> {
        self.others().map(|index| cell.levels.get(self.varied[index].factor).copied().unwrap_or(0)).collect()
    }

    /// The varied factors that are not the subject.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.varied.len()).filter(|index| Some(*index) != self.subject)
    }

    /// Indices into `varied` as a table shows them: what varies but the subject, then the subject.
    pub(crate) fn label_order(&self) -> Vec<usize> {
        self.others().chain(self.subject).collect()
    }

    fn title(&self, key: &[u32]) -> String {
        let parts: Vec<String> = self
            .others()
            .zip(key)
            .map(|(index, level)| {
                let factor = &self.varied[index];
                factor.phrase(factor.levels.get(*level as usize).map_or("?", String::as_str))
            })
            .collect();
        parts.join(" · ")
    }

    /// Panels in words: "16 and 64 threads" where they differ in one factor alone.
    pub(super) fn places(&self, panels: &[usize]) -> String {
        let titles: Vec<&str> = panels.iter().map(|panel| self.panels[*panel].title.as_str()).collect();
        let mut others = self.others();
        let (Some(only), None) = (others.next(), others.next()) else { return text::listing(&titles) };
        // What every title has around its level: "threads" in "16 threads".
        let trailing = format!(" {}", self.varied[only].name);
        let levels: Option<Vec<&str>> = titles.iter().map(|title| title.strip_suffix(&trailing)).collect();
        match levels {
            Some(levels) => format!("{}{trailing}", text::listing(&levels)),
            None => text::listing(&titles),
        }
    }

    pub(super) fn levels_of(&self, cell: &Cell) -> Vec<String> {
        self.varied
            .iter()
            .map(|factor| {
                let level = cell.levels.get(factor.factor).and_then(|level| factor.levels.get(*level as usize));
                level.cloned().unwrap_or_else(|| "?".to_owned())
            })
            .collect()
    }
}

impl Varied {
    /// A level as a person would say it: "16 threads", "kernel 6.18", "filesystem ext4".
    #[must_use]
    pub fn phrase(&self, level: &str) -> String {
        // "1 threads" is forgiven; "threads 1" reads worse in a list of three.
        let bare_number = level.bytes().all(|b| b.is_ascii_digit());
        if bare_number && self.name.ends_with('s') {
            format!("{level} {}", self.name)
        } else {
            format!("{} {level}", self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_said_as_people_say_them() {
        let factor = |name: &str| Varied { factor: 0, name: name.into(), levels: vec![], numbers: None };
        assert_eq!(factor("threads").phrase("16"), "16 threads");
        assert_eq!(factor("kernel").phrase("6.18"), "kernel 6.18");
        assert_eq!(factor("file size").phrase("4 GiB"), "file size 4 GiB");
    }
}
