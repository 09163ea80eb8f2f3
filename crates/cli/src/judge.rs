//! Connects the analysis to the lab's budget: a pair is open if the report would call it open.

use fstone_analysis::Open;
use fstone_lab::run::budget::{Judge, Verdict};
use fstone_model::{Dataset, Inventory, Plan, Trial, dataset::Run};

pub(crate) struct RunJudge {
    dataset: Dataset,
    found: Option<Verdict>,
}

impl RunJudge {
    pub(crate) fn new(plan: &Plan) -> Self {
        let run = Run {
            blocks: Vec::new(),
            id: 0,
            identity: String::new(),
            started_unix_ns: 0,
            // While trials are to come, no look is the last.
            finished_unix_ns: None,
            command: Vec::new(),
            plan: plan.clone(),
            inventory: Inventory::default(),
            note: None,
        };
        Self { dataset: Dataset { run, trials: Vec::new() }, found: None }
    }
}

impl Judge for RunJudge {
    fn take(&mut self, trial: &Trial) {
        let mut trial = trial.clone();
        // The figures are what is judged; the loads' own reports are large.
        for step in &mut trial.steps {
            step.load = None;
        }
        self.dataset.trials.push(trial);
    }

    fn judge(&mut self) -> Verdict {
        let open = Open::of(&self.dataset);
        if let Some(found) = self.found.as_ref().filter(|_| !open.is_look) {
            return found.clone();
        }
        let cells = |rows: Vec<usize>| rows.into_iter().map(|row| row as u32).collect();
        let waiting = open.waiting.into_iter().map(cells).collect();
        let found = Verdict { pairs: open.pairs, open: open.open, waiting, words: open.words };
        self.found.insert(found).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies;
    use fstone_formats::study::Overrides;
    use fstone_lab::run::schedule::Schedule;
    use fstone_model::{Outcome, StepResult, metric::catalog, result::Effective, result::TrialId, study::Factor};
    use std::{cell::Cell, time::Duration};

    /// SplitMix64, and a normal deviate as a sum of twelve uniform ones.
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) as f64 / u64::MAX as f64
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    struct Simulated {
        plan: Plan,
        levels: Vec<f64>,
        scatter: f64,
        seed: u64,
    }

    impl Simulated {
        fn new(levels: &[f64], scatter: f64, seconds: u64, resolution: f64, seed: u64) -> Self {
            let rows = ["ext3", "xfs", "ext4", "ext4 nodelalloc", "ext4 uninit_bg", "ext4 flex_bg"];
            let overrides = Overrides {
                quick: true,
                budget: Some(Duration::from_secs(seconds)),
                resolution: Some(resolution),
                only: rows[..levels.len()].iter().map(|row| ("filesystem".into(), (*row).into())).collect(),
                ..Overrides::default()
            };
            let study = studies::find("small-file").expect("built in");
            let (mut plan, _) = study.compile(&overrides).expect("it is right");
            plan.warm_up = 0;
            plan.columns.truncate(1);
            plan.seed = seed;
            Self { plan, levels: levels.to_vec(), scatter, seed }
        }

        fn trial(&self, id: TrialId, position: u32) -> Trial {
            let shared = 0.1 * Random(self.seed ^ u64::from(id.repetition) << 32).normal();
            let own = Random(self.seed ^ u64::from(id.repetition) << 32 ^ u64::from(id.cell + 1) << 8).normal();
            let value = 1e5 * self.levels[id.cell as usize] * (shared + self.scatter * own).exp();
            let step = StepResult {
                step: "load".into(),
                started_ns: 0,
                duration_ns: 1_000_000_000,
                commands: Vec::new(),
                figures: vec![catalog::TRANSACTIONS_PER_SECOND.figure(value)],
                load: None,
            };
            Trial {
                id,
                position,
                started_unix_ns: 0,
                duration_ns: 1_000_000_000,
                seed: 0,
                outcome: Outcome::Completed,
                steps: vec![step],
                effective: Effective::default(),
                warnings: Vec::new(),
            }
        }

        fn ended(&self, trials: Vec<Trial>) -> Dataset {
            let run = RunJudge::new(&self.plan).dataset.run;
            Dataset { run: Run { finished_unix_ns: Some(1), ..run }, trials }
        }

        fn go_on(&self, finished: &[Trial]) -> Vec<Trial> {
            self.go_on_judged_by(Box::new(RunJudge::new(&self.plan)), finished)
        }

        fn go_on_judged_by(&self, judge: Box<dyn Judge + '_>, finished: &[Trial]) -> Vec<Trial> {
            let mut schedule = Schedule::judged(&self.plan, finished, judge).expect("fits");
            let mut trials = finished.to_vec();
            while let Some(id) = schedule.next_trial() {
                let trial = self.trial(id, trials.len() as u32);
                schedule.finish(&trial).expect("of this plan");
                trials.push(trial);
            }
            trials
        }

        fn published(&self, trials: Vec<Trial>) -> Open {
            Open::of(&self.ended(trials))
        }

        /// Pairs that are called different in what is published.
        fn different(&self, trials: &[Trial]) -> usize {
            let dataset = self.ended(trials.to_vec());
            let analysis = fstone_analysis::Analysis::of(&dataset);
            let panel = analysis.comparisons[0].panels[0].as_ref().expect("several rows");
            panel.comparison.pairs.iter().filter(|pair| pair.differs).count()
        }
    }

    #[test]
    fn a_budget_is_spent_on_what_is_open_and_no_longer_than_that() {
        let simulated = Simulated::new(&[1.0, 2.0, 4.0, 1.1], 0.05, 400, 0.02, 3);
        let trials = simulated.go_on(&[]);
        let count = |cell| trials.iter().filter(|trial| trial.id.cell == cell).count();
        assert!(count(1) < count(0) && count(2) < count(3), "{:?}", [0, 1, 2, 3].map(count));
        assert!(trials.len() < 200, "it ends when all is told apart: {}", trials.len());
        let published = simulated.published(trials);
        assert_eq!((published.decided, published.pairs, published.words.as_str()), (6, 6, "decided 6 of 6"));
    }

    #[test]
    fn rows_that_are_alike_are_shown_to_be_and_what_is_open_is_named() {
        let alike = Simulated::new(&[1.0, 1.0, 1.001], 0.02, 600, 0.05, 4);
        let trials = alike.go_on(&[]);
        assert!(trials.len() < 60, "{}", trials.len());
        assert_eq!(alike.published(trials).decided, 3);
        let short = Simulated::new(&[1.0, 1.01, 2.0], 0.1, 18, 0.01, 5);
        let open = short.published(short.go_on(&[]));
        assert_eq!((open.decided, open.pairs), (2, 3));
        assert!(open.words.starts_with("decided 2 of 3; left: ") && open.words.contains(" (± "), "{}", open.words);
    }

    #[test]
    fn a_panel_that_cannot_be_judged_yet_is_not_left_behind_by_one_that_can() {
        let mut simulated = Simulated::new(&[1.0, 2.0, 4.0, 8.0, 1.0, 1.2], 0.02, 400, 0.01, 7);
        let factor = Factor { name: "threads".into(), levels: vec!["1".into(), "2".into()], numbers: Some(vec![1, 2]) };
        simulated.plan.factors.push(factor);
        for cell in &mut simulated.plan.cells {
            cell.levels.push(u32::from(cell.index >= 4));
        }
        let trials = simulated.go_on(&[]);
        let count = |cell| trials.iter().filter(|trial| trial.id.cell == cell).count();
        // Four rows have eight degrees of freedom after four blocks, two rows after nine.
        assert_eq!([0, 3, 4, 5].map(count), [4, 4, 9, 9]);
        let published = simulated.published(trials);
        assert_eq!((published.decided, published.pairs), (7, 7), "{}", published.words);
    }

    #[test]
    fn a_killed_run_is_resumed_as_if_it_had_not_been() {
        let simulated = Simulated::new(&[1.0, 1.05, 1.4, 2.0], 0.05, 40, 0.02, 6);
        let whole = simulated.go_on(&[]);
        assert!(whole.len() > 16 && whole.len() <= 40, "{}", whole.len());
        for done in 0..whole.len() {
            assert_eq!(simulated.go_on(&whole[..done]), whole, "after {done}");
        }
    }

    #[test]
    fn few_runs_of_equal_rows_call_any_two_different() {
        assert!(false_alarms(24, 4, 24) <= 4, "5 % promised, and five of 24 are beyond chance");
    }

    struct Watched<'a>(RunJudge, &'a Cell<bool>);

    impl Judge for Watched<'_> {
        fn take(&mut self, trial: &Trial) {
            self.0.take(trial);
        }

        fn judge(&mut self) -> Verdict {
            let verdict = self.0.judge();
            let waiting: usize = verdict.waiting.iter().map(|cells| cells.len() * (cells.len() - 1) / 2).sum();
            self.1.set(self.1.get() || verdict.open.len() + waiting < verdict.pairs);
            verdict
        }
    }

    /// Runs in which equal rows were called different, at any look or at the end. A resolution of nothing keeps them looking.
    fn false_alarms(runs: u64, rows: usize, seconds: u64) -> usize {
        let wrong = |seed: &u64| {
            let simulated = Simulated::new(&vec![1.0; rows], 0.1, seconds, 1e-6, 1000 + *seed);
            let at_a_look = Cell::new(false);
            let judge = Watched(RunJudge::new(&simulated.plan), &at_a_look);
            let trials = simulated.go_on_judged_by(Box::new(judge), &[]);
            at_a_look.get() || simulated.different(&trials) > 0
        };
        (0..runs).filter(wrong).count()
    }

    /// For docs/method/calibration.md: `cargo test --release -p fstone judge::tests::calibrate -- --ignored --nocapture`.
    #[test]
    #[ignore = "a calibration of some minutes"]
    fn calibrate() {
        println!("| rows | budget in blocks | runs | wrong |\n|--:|--:|--:|--:|");
        for (rows, blocks) in [(2, 30), (4, 10), (6, 8)] {
            let wrong = false_alarms(1000, rows, (rows * blocks) as u64);
            println!("| {rows} | {blocks} | 1000 | {:.1} % |", wrong as f64 / 10.0);
        }
    }
}
