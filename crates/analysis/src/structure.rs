//! What was varied: which factor is compared, which one is an axis, and which rows stand side by side.

use crate::text;
use fstone_model::{Cell, Plan, kernels::KERNEL_FACTOR, study::FILESYSTEM_FACTOR};

/// The factors of a plan as a report sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// The factors with more than one level in the plan's cells, in the plan's order.
    pub varied: Vec<Varied>,
    /// Index in `varied` of the factor that rows are compared by; `None` when nothing varies.
    pub subject: Option<usize>,
    /// What can be drawn as lines over a numeric factor; together they hold every row, or there are none.
    pub sweeps: Vec<Sweep>,
    /// Rows that differ in the subject alone are in one panel. In the order of the rows.
    pub panels: Vec<Panel>,
    pub(super) panel_of: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Varied {
    pub factor: usize,
    pub name: String,
    pub levels: Vec<String>,
    pub numbers: Option<Vec<u64>>,
}

/// Rows that differ in the subject and in one numeric factor alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// Index in [`Structure::varied`] of the numeric factor.
    pub axis: usize,
    /// The levels that its rows share, as "256 MiB · 1 file"; empty when nothing else varies.
    pub title: String,
    pub rows: Vec<usize>,
}

/// A line needs this many levels.
const MIN_SWEPT: usize = 3;
/// More sweeps than this are better read from the table.
const MAX_SWEEPS: usize = 6;

/// Rows that are compared with each other: equal in everything but the subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The levels that its rows share, as "16 threads" or "kernel 6.18 · 16 threads"; empty when nothing else varies.
    pub title: String,
    pub rows: Vec<usize>,
    /// The row that ratios refer to: the one with the plan's baseline's level of the subject.
    pub baseline: Option<usize>,
}

impl Structure {
    pub fn of(plan: &Plan) -> Self {
        let varied: Vec<Varied> = plan
            .factors
            .iter()
            .enumerate()
            .filter(|(factor, _)| plan.varies(*factor))
            .map(|(index, factor)| Varied {
                factor: index,
                name: text::line(&factor.name),
                levels: factor.levels.iter().map(|level| text::line(level)).collect(),
                numbers: factor.numbers.clone().filter(|numbers| numbers.len() == factor.levels.len()),
            })
            .collect();
        // What the study says; else filesystems; else the first factor that is not a number.
        let called = |name: &str| varied.iter().position(|factor| factor.name == text::line(name));
        let subject = (plan.compare.as_deref().and_then(called))
            .or_else(|| called(FILESYSTEM_FACTOR))
            .or_else(|| varied.iter().position(|factor| factor.numbers.is_none()))
            .or_else(|| (!varied.is_empty()).then_some(0));
        let mut structure = Self { varied, subject, sweeps: Vec::new(), panels: Vec::new(), panel_of: Vec::new() };
        structure.sweeps = structure.find_sweeps(plan);
        structure.fill_panels(plan);
        structure
    }

    /// The sweeps of the numeric factor whose sweeps hold every row; where none does, as in studies that vary one factor
    /// at a time around a common point, the sweeps of all of them.
    fn find_sweeps(&self, plan: &Plan) -> Vec<Sweep> {
        let every_row =
            |sweeps: &[Sweep]| (0..plan.cells.len()).all(|row| sweeps.iter().any(|sweep| sweep.rows.contains(&row)));
        let few = |sweeps: Vec<Sweep>| if sweeps.len() <= MAX_SWEEPS { sweeps } else { Vec::new() };
        let mut of_axis: Vec<Vec<Sweep>> = (0..self.varied.len())
            .filter(|axis| {
                self.varied[*axis].numbers.is_some() && (self.varied.len() == 1 || Some(*axis) != self.subject)
            })
            .map(|axis| self.sweeps_over(plan, axis))
            .collect();
        // The factor with the most levels, which gives the fewest plots.
        of_axis.sort_by_key(Vec::len);
        if let Some(sweeps) = of_axis.iter().find(|sweeps| every_row(sweeps)) {
            return few(sweeps.clone());
        }
        let all: Vec<Sweep> = of_axis.into_iter().flatten().collect();
        if every_row(&all) { few(all) } else { Vec::new() }
    }

    fn sweeps_over(&self, plan: &Plan, axis: usize) -> Vec<Sweep> {
        let fixed: Vec<usize> = self.others().filter(|index| *index != axis).collect();
        let level = |cell: &Cell, index: usize| cell.levels.get(self.varied[index].factor).copied().unwrap_or(0);
        let mut groups: Vec<(Vec<u32>, Vec<usize>)> = Vec::new();
        for (row, cell) in plan.cells.iter().enumerate() {
            let key: Vec<u32> = fixed.iter().map(|index| level(cell, *index)).collect();
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((key, vec![row])),
            }
        }
        groups
            .into_iter()
            .filter(|(_, rows)| {
                let mut levels: Vec<u32> = rows.iter().map(|row| level(&plan.cells[*row], axis)).collect();
                levels.sort_unstable();
                levels.dedup();
                levels.len() >= MIN_SWEPT
            })
            .map(|(key, rows)| Sweep { axis, title: self.phrases(&fixed, &key), rows })
            .collect()
    }

    fn fill_panels(&mut self, plan: &Plan) {
        let by_kernel =
            executors(plan).len() > 1 && self.subject.is_some_and(|subject| self.varied[subject].name == KERNEL_FACTOR);
        let mut keys: Vec<(Vec<u32>, &'static str)> = Vec::new();
        for (row, cell) in plan.cells.iter().enumerate() {
            // Figures of different executors are never compared.
            let key = (self.key(cell), cell.kernel.executor());
            let panel = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                let executor = by_kernel.then(|| of_executor(key.1).to_owned());
                let parts = [Some(self.title(&key.0)).filter(|title| !title.is_empty()), executor];
                let title = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
                self.panels.push(Panel { title, rows: Vec::new(), baseline: None });
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

    pub fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.varied.len()).filter(|index| Some(*index) != self.subject)
    }

    /// Indices into `varied` as a table shows them: what varies but the subject, then the subject.
    pub fn label_order(&self) -> Vec<usize> {
        self.others().chain(self.subject).collect()
    }

    fn title(&self, key: &[u32]) -> String {
        self.phrases(&self.others().collect::<Vec<_>>(), key)
    }

    /// Levels of some varied factors in words: "256 MiB · 1 file".
    fn phrases(&self, factors: &[usize], levels: &[u32]) -> String {
        let phrase = |(index, level): (&usize, &u32)| {
            let factor = &self.varied[*index];
            factor.phrase(factor.levels.get(*level as usize).map_or("?", String::as_str))
        };
        factors.iter().zip(levels).map(phrase).collect::<Vec<_>>().join(" · ")
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

pub fn executors(plan: &Plan) -> Vec<&'static str> {
    let mut executors = Vec::new();
    for executor in plan.cells.iter().map(|cell| cell.kernel.executor()) {
        if !executors.contains(&executor) {
            executors.push(executor);
        }
    }
    executors
}

pub fn of_executor(executor: &str) -> &str {
    match executor {
        "uml" => "user-mode Linux",
        "qemu" => "QEMU",
        "exact" => "virtual time, on a model of a drive; each repeat has another seed",
        _ => "the running kernel",
    }
}

impl Varied {
    /// A level as a person would say it: "16 threads", "1 thread", "kernel 6.18", "file-size 4 GiB".
    pub fn phrase(&self, level: &str) -> String {
        let counted = self.name.strip_suffix('s').filter(|_| level.bytes().all(|b| b.is_ascii_digit()));
        match counted {
            Some(one) if level == "1" => format!("1 {one}"),
            Some(_) => format!("{level} {}", self.name),
            // A filesystem's name says that it is one; "16 threads" and "128 MiB in all" say already of what.
            None if self.name == FILESYSTEM_FACTOR => level.to_owned(),
            None if level.contains(self.name.trim_end_matches('s')) || level.split(' ').count() > 2 => level.to_owned(),
            None => format!("{} {level}", self.name),
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
        assert_eq!(
            (factor("threads").phrase("1"), factor("threads").phrase("4 threads")),
            ("1 thread".into(), "4 threads".into())
        );
        assert_eq!(factor("kernel").phrase("6.18"), "kernel 6.18");
        assert_eq!(factor("file size").phrase("4 GiB"), "file size 4 GiB");
    }
}
