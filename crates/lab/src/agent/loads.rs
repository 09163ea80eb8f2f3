//! Where in the disk's log the loads are during which the power may be cut.

use crate::meters;
use fstone_model::{
    Step,
    metric::Figure,
    study::{FsckMode, StepAction},
};

/// The marks of the disk between which loads ran. After a repair they begin anew with the next load: a power cut during a
/// repair says nothing of the filesystem.
#[derive(Debug, Default)]
pub(super) struct Loads {
    marks: Option<(u64, u64)>,
    was_repaired: bool,
}

impl Loads {
    pub(super) fn note(&mut self, step: &Step, figures: &[Figure]) {
        match step.action {
            StepAction::Load(_) => self.add(figures),
            StepAction::Fsck { mode: FsckMode::Repair } => self.was_repaired = true,
            _ => {}
        }
    }

    fn add(&mut self, figures: &[Figure]) {
        let marks = meters::covered(self.marks.filter(|_| !self.was_repaired), figures);
        // A load without marks changes nothing.
        if marks.is_some() {
            (self.marks, self.was_repaired) = (marks, false);
        }
    }

    pub(super) const fn marks(&self) -> Option<(u64, u64)> {
        self.marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{meters::Readings, testing};

    #[test]
    fn no_power_is_cut_during_a_repair() {
        let mut loads = Loads::default();
        let after_load = |loads: &mut Loads, marks: &[(u64, u64)]| {
            loads.add(&Readings { marks: marks.to_vec(), ..Readings::default() }.figures());
            loads.marks()
        };
        let check = |mode| testing::step("fsck", StepAction::Fsck { mode });
        assert_eq!(after_load(&mut loads, &[(3, 4), (5, 6)]), Some((3, 6)));
        loads.note(&check(FsckMode::ReadOnly), &[]);
        assert_eq!(after_load(&mut loads, &[(7, 8)]), Some((3, 8)));
        loads.note(&check(FsckMode::Repair), &[]);
        assert_eq!(loads.marks(), Some((3, 8)), "the power is cut during the loads before");
        assert_eq!(after_load(&mut loads, &[]), Some((3, 8)));
        assert_eq!(after_load(&mut loads, &[(11, 12)]), Some((11, 12)));
        assert_eq!(after_load(&mut loads, &[(14, 15)]), Some((11, 15)));
    }
}
