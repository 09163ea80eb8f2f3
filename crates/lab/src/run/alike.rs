//! Whether the first trials of all rows failed alike. Then the rows share the cause, and more trials would only repeat it.

use fstone_model::{Outcome, Plan, Trial, outcome::Reason};
use std::collections::BTreeSet;

/// How many words of two reasons have to be the same. What follows often names a file, a device or a number, which
/// differ from row to row.
const WORDS: usize = 3;

#[derive(Debug)]
pub(super) struct FirstTrials {
    missing: BTreeSet<u32>,
    common: Common,
}

#[derive(Debug)]
enum Common {
    /// No trial has ended yet.
    Open,
    /// All failed so.
    Failure(Outcome),
    /// At least one completed, or failed in another way.
    Nothing,
}

impl FirstTrials {
    pub(super) fn new(plan: &Plan, finished: &[Trial]) -> Self {
        let mut first = Self { missing: plan.cells.iter().map(|cell| cell.index).collect(), common: Common::Open };
        for trial in finished {
            first.take(trial);
        }
        if first.missing.is_empty() {
            // The user has seen how they ended, and resumes.
            first.common = Common::Nothing;
        }
        first
    }

    /// Takes a trial in. The common failure, when this was the last row's first trial and all have failed alike. One row
    /// alone has nothing in common with another.
    pub(super) fn take(&mut self, trial: &Trial) -> Option<Reason> {
        let beside_others = !matches!(self.common, Common::Open);
        let is_last = self.missing.remove(&trial.id.cell) && self.missing.is_empty();
        self.common = match (std::mem::replace(&mut self.common, Common::Nothing), &trial.outcome) {
            (Common::Open, outcome) if !outcome.is_completed() => Common::Failure(outcome.clone()),
            (Common::Failure(first), outcome) if alike(&first, outcome) => Common::Failure(first),
            _ => Common::Nothing,
        };
        match &self.common {
            Common::Failure(outcome) if is_last && beside_others => outcome.reason().cloned(),
            _ => None,
        }
    }
}

/// The same outcome at the same step, in words that begin the same.
fn alike(one: &Outcome, other: &Outcome) -> bool {
    let beginning =
        |reason: &Reason| -> Vec<String> { reason.words.split_whitespace().take(WORDS).map(str::to_owned).collect() };
    one.word() == other.word()
        && match (one.reason(), other.reason()) {
            (Some(one), Some(other)) => one.step == other.step && beginning(one) == beginning(other),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(step: &str, words: &str) -> Outcome {
        Outcome::Failed(Reason::new(step, words))
    }

    #[test]
    fn alike_is_the_same_outcome_step_and_first_words() {
        let one = failed("load", "operations failed: open /mnt/1: no space");
        assert!(alike(&one, &failed("load", "operations failed: open /mnt/2: no space left")));
        assert!(!alike(&one, &failed("load", "operations failed: read /mnt/1: no space")));
        assert!(!alike(&one, &failed("command", "operations failed: open /mnt/1: no space")));
        assert!(!alike(&one, &Outcome::Hung(Reason::new("load", "operations failed: open /mnt/1: no space"))));
        assert!(!alike(&Outcome::Completed, &Outcome::Completed));
    }
}
