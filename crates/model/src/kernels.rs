//! A plan under other kernels than it was written for.

pub use crate::study::KERNEL_FACTOR;
use crate::{
    Cell, Plan,
    study::{Factor, KernelSpec},
};
use std::str::FromStr;

impl FromStr for KernelSpec {
    type Err = String;

    /// "host", "uml:6.1", "uml:/path/linux", "qemu:6.12", "qemu:/path/vmlinuz", "exact:6.1".
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "host" => Ok(Self::Host),
            Some(("uml", which)) if !which.is_empty() => Ok(Self::Uml(which.to_owned())),
            Some(("qemu", which)) if !which.is_empty() => Ok(Self::Qemu(which.to_owned())),
            Some(("exact", which)) if !which.is_empty() => Ok(Self::Exact(which.to_owned())),
            _ => Err(format!(
                "{text:?} is not a kernel: write host, uml:VERSION, uml:PATH, qemu:VERSION, qemu:PATH, exact:NAME or exact:PATH"
            )),
        }
    }
}

impl Plan {
    /// The same study under other kernels: each cell once under every kernel that `choose` gives for it.
    ///
    /// If the study has the kernel as a factor, or if cells now differ in it, the levels of that factor are the new kernels; a
    /// cell that becomes a duplicate of another is left out. Published figures and the baseline stay with the cells they
    /// belong to, or with the first one if there are several.
    pub fn under_kernels(&self, choose: impl Fn(&Cell) -> Vec<KernelSpec>) -> Self {
        let wanted: Vec<(&Cell, Vec<KernelSpec>)> = self.cells.iter().map(|cell| (cell, choose(cell))).collect();
        let mut names: Vec<String> = Vec::new();
        for kernel in wanted.iter().flat_map(|(_, kernels)| kernels) {
            let name = kernel.written();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut plan = self.clone();
        let known = plan.factors.iter().position(|factor| factor.name == KERNEL_FACTOR);
        let place = known.or_else(|| (names.len() > 1).then_some(plan.factors.len()));
        match known {
            Some(at) => plan.factors[at].levels.clone_from(&names),
            None if place.is_some() => {
                plan.factors.push(Factor { name: KERNEL_FACTOR.into(), levels: names.clone(), numbers: None });
            }
            None => {}
        }

        let mut cells: Vec<Cell> = Vec::new();
        // The position of the first new cell of each old cell.
        let mut moved: Vec<Option<u32>> = Vec::new();
        for (old, kernels) in wanted {
            let mut first = None;
            for kernel in kernels {
                let mut cell = Cell { kernel, ..old.clone() };
                if let Some(at) = place {
                    let name = cell.kernel.written();
                    let level = names.iter().position(|known| *known == name).unwrap_or(0);
                    let level = u32::try_from(level).expect("as many as cells at most");
                    match cell.levels.get_mut(at) {
                        Some(known) => *known = level,
                        None => cell.levels.push(level),
                    }
                    let levels = plan.factors.iter().zip(&cell.levels);
                    let levels = levels.map(|(factor, level)| factor.levels[*level as usize].as_str());
                    cell.label = levels.collect::<Vec<_>>().join(" · ");
                }
                let same = |other: &&Cell| other.levels == cell.levels && other.kernel == cell.kernel;
                let index = match cells.iter().find(same) {
                    Some(double) => double.index,
                    None => {
                        cell.index = u32::try_from(cells.len()).expect("few cells");
                        cells.push(cell.clone());
                        cell.index
                    }
                };
                first.get_or_insert(index);
            }
            moved.push(first);
        }
        let new = |index: usize| moved.get(index).copied().flatten();
        plan.baseline = self.baseline.and_then(|baseline| new(baseline as usize));
        if let Some(published) = &mut plan.published {
            for figure in &mut published.figures {
                let old = self.cells.iter().position(|cell| cell.label == figure.cell);
                if let Some(index) = old.and_then(new) {
                    figure.cell.clone_from(&cells[index as usize].label);
                }
            }
        }
        plan.cells = cells;
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{DeviceSpec, FilesystemSpec, Order, Published, PublishedFigure, Repeats};

    fn plan(kernels: &[&str]) -> Plan {
        let filesystems = ["ext4", "xfs"];
        let cell = |index: usize, filesystem: usize, kernel: Option<usize>| Cell {
            index: index as u32,
            levels: std::iter::once(filesystem).chain(kernel).map(|level| level as u32).collect(),
            label: kernel.map_or_else(
                || filesystems[filesystem].to_owned(),
                |kernel| format!("{} · {}", filesystems[filesystem], kernels[kernel]),
            ),
            filesystem: FilesystemSpec {
                name: filesystems[filesystem].into(),
                kind: filesystems[filesystem].into(),
                ..FilesystemSpec::default()
            },
            device: DeviceSpec::Zram { size_bytes: 1 << 30 },
            kernel: kernel.map_or(KernelSpec::Host, |kernel| kernels[kernel].parse().expect("a kernel")),
            queue: Vec::new(),
            steps: Vec::new(),
        };
        let mut cells = Vec::new();
        for filesystem in 0..2 {
            if kernels.is_empty() {
                cells.push(cell(cells.len(), filesystem, None));
            }
            for kernel in 0..kernels.len() {
                cells.push(cell(cells.len(), filesystem, Some(kernel)));
            }
        }
        let factor = |name: &str, levels: &[&str]| Factor {
            name: name.into(),
            levels: levels.iter().map(|level| (*level).to_owned()).collect(),
            numbers: None,
        };
        let kernel = (!kernels.is_empty()).then(|| factor(KERNEL_FACTOR, kernels));
        let last = cells.last().expect("there are some").clone();
        let figure = PublishedFigure { cell: last.label, column: "time".into(), value: Some(1.0), note: None };
        Plan {
            study: String::new(),
            title: String::new(),
            about: String::new(),
            source: String::new(),
            attachments: Vec::new(),
            quick: false,
            warm_up: 0,
            perturbed: 0,
            budget: None,
            repeats: Repeats { min: 1, max: 1, until: None },
            order: Order::Blocks,
            seed: 1,
            factors: std::iter::once(factor("filesystem", &filesystems)).chain(kernel).collect(),
            cells,
            columns: Vec::new(),
            baseline: Some(last.index),
            compare: None,
            expected_duration: None,
            published: Some(Published {
                source: String::new(),
                memory_bytes: None,
                model: None,
                figures: vec![figure],
            }),
        }
    }

    fn labels(plan: &Plan) -> Vec<&str> {
        plan.cells.iter().map(|cell| cell.label.as_str()).collect()
    }

    fn uml(which: &str) -> KernelSpec {
        KernelSpec::Uml(which.into())
    }

    #[test]
    fn one_other_kernel_for_all_changes_no_label() {
        let under = plan(&[]).under_kernels(|_| vec![uml("6.1")]);
        assert_eq!(labels(&under), ["ext4", "xfs"]);
        assert_eq!(under.factors.len(), 1);
        assert!(under.cells.iter().all(|cell| cell.kernel == uml("6.1")));
    }

    #[test]
    fn several_kernels_become_a_factor_and_everything_finds_its_cell() {
        let under = plan(&[]).under_kernels(|_| vec![uml("5.10"), uml("6.1")]);
        assert_eq!(labels(&under), ["ext4 · uml:5.10", "ext4 · uml:6.1", "xfs · uml:5.10", "xfs · uml:6.1"]);
        assert_eq!(under.factors[1].levels, ["uml:5.10", "uml:6.1"]);
        assert_eq!(under.cells[3].levels, [1, 1]);
        assert_eq!((under.cells[3].index, under.baseline), (3, Some(2)));
        assert_eq!(under.published.expect("kept").figures[0].cell, "xfs · uml:5.10");
        let mixed = plan(&[]).under_kernels(|cell| vec![if cell.index == 0 { KernelSpec::Host } else { uml("6.1") }]);
        assert_eq!(labels(&mixed), ["ext4 · host", "xfs · uml:6.1"]);
    }

    #[test]
    fn cells_that_become_doubles_are_one() {
        let study = plan(&["host", "uml:6.1"]);
        let under = study.under_kernels(|cell| match &cell.kernel {
            KernelSpec::Host => vec![uml("6.1")],
            other => vec![other.clone()],
        });
        assert_eq!(labels(&under), ["ext4 · uml:6.1", "xfs · uml:6.1"]);
        assert_eq!((under.baseline, under.factors[1].levels.len()), (Some(1), 1));
        assert_eq!(under.published.expect("kept").figures[0].cell, "xfs · uml:6.1");
    }

    #[test]
    fn kernels_are_read_as_they_are_written() {
        for text in ["host", "uml:6.1", "uml:/a b/linux", "qemu:/boot/vmlinuz"] {
            assert_eq!(text.parse::<KernelSpec>().expect("a kernel").written(), text);
        }
        for text in ["", "hosts", "uml", "uml:", "xen:4"] {
            assert!(text.parse::<KernelSpec>().is_err(), "{text}");
        }
    }
}
