//! Dealing out a budget of time: which rows take part in the next block.
//!
//! After each block a [`Judge`] says which pairs of rows are still open, and about how many more blocks each would take. The time
//! that is left goes to the pairs that can be decided in it, the cheapest first; when none can, to all open pairs alike. Rows of
//! which too little is known to judge them take part until it is known, whatever is open elsewhere. All other rows rest, so blocks
//! are incomplete, which rows + blocks by least squares allow. A block takes as many of these as fit into the time that is left, and
//! the run ends when none fits.
//!
//! Whatever is decided follows from the trials of the blocks before, and from nothing else: no clock is asked. So a run that was
//! killed and is resumed decides the same. Time is the sum of the trials' own times; a warm-up is taken to last as long per
//! block as the first block did.

use fstone_model::{Trial, study::Budget};
use fstone_stats::sequential::OpenPair;
use std::collections::BTreeSet;

/// Says what trials have shown. Handed in: the lab makes trials and does not analyse them.
pub trait Judge {
    /// Takes a trial in. Trials come block by block.
    fn take(&mut self, trial: &Trial);

    fn judge(&mut self) -> Verdict;
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// All pairs that are compared; 0 while nothing can be judged.
    pub pairs: usize,
    pub open: Vec<OpenPair>,
    /// Cells that are compared with each other, and whose pairs are open because too little is known to judge them.
    pub waiting: Vec<Vec<u32>>,
    pub words: String,
}

/// How often a row is tried that has never completed, while others go on.
const TRIES: u32 = 3;

pub(super) struct Dealer<'a> {
    judge: Box<dyn Judge + 'a>,
    budget_seconds: f64,
    warm_up: u32,
    rows: Vec<Seen>,
    first_block_seconds: Option<f64>,
    used_seconds: f64,
    pub(super) participants: Vec<u32>,
    pub(super) ended: bool,
    /// What the last look found, until it is told.
    pub(super) words: Option<String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    trials: u32,
    seconds: f64,
    completed: bool,
}

impl std::fmt::Debug for Dealer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dealer").field("used_seconds", &self.used_seconds).finish_non_exhaustive()
    }
}

impl<'a> Dealer<'a> {
    pub(super) fn new(budget: Budget, warm_up: u32, cells: usize, judge: Box<dyn Judge + 'a>) -> Self {
        Self {
            judge,
            budget_seconds: budget.time.as_secs_f64(),
            warm_up,
            rows: vec![Seen::default(); cells],
            first_block_seconds: None,
            used_seconds: 0.0,
            participants: (0..).take(cells).collect(),
            ended: false,
            words: None,
        }
    }

    pub(super) fn take(&mut self, trial: &Trial) {
        let seconds = std::time::Duration::from_nanos(trial.duration_ns).as_secs_f64();
        let row = &mut self.rows[trial.id.cell as usize];
        row.trials += 1;
        row.seconds += seconds;
        row.completed |= trial.outcome.is_completed();
        self.used_seconds += seconds;
        self.judge.take(trial);
    }

    /// A block is over: whose turn it is next. `live`: cells that may be tried again.
    pub(super) fn end_block(&mut self, live: &[u32]) {
        let verdict = self.judge.judge();
        self.first_block_seconds.get_or_insert(self.used_seconds);
        self.participants = self.choose(&verdict, live);
        self.ended = self.participants.is_empty();
        self.words = Some(verdict.words);
    }

    fn choose(&self, verdict: &Verdict, live: &[u32]) -> Vec<u32> {
        let mut chosen = BTreeSet::new();
        for cells in self.wanted(verdict, live) {
            let with: BTreeSet<u32> = chosen.iter().copied().chain(cells).collect();
            if self.cost(with.iter().copied()) <= self.left_seconds() {
                chosen = with;
            }
        }
        chosen.into_iter().collect()
    }

    /// The cells that should take part, those that have to do so together in one list; what matters most comes first.
    fn wanted(&self, verdict: &Verdict, live: &[u32]) -> Vec<Vec<u32>> {
        if verdict.pairs == 0 {
            return vec![live.to_vec()];
        }
        let untold = |cell: &&u32| {
            let row = self.rows[**cell as usize];
            !row.completed && row.trials < TRIES
        };
        let alive = |cells: &Vec<u32>| cells.iter().copied().filter(|cell| live.contains(cell)).collect::<Vec<u32>>();
        let waiting = verdict.waiting.iter().map(alive).filter(|cells| cells.len() > 1);
        let of = |pair: &OpenPair| vec![pair.rows.0 as u32, pair.rows.1 as u32];
        let open = verdict.open.iter().filter(|pair| of(pair).iter().all(|cell| live.contains(cell)));
        let mut by_cost: Vec<(f64, Vec<u32>)> =
            open.map(|pair| (pair.more_blocks * self.cost(of(pair)), of(pair))).collect();
        by_cost.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        // Those that can be decided in what is left, if each had it for itself; what is dealt out wrongly is put right at the next look.
        let affordable = by_cost.iter().take_while(|(cost, _)| *cost <= self.left_seconds()).count();
        let served = if affordable > 0 { affordable } else { by_cost.len() };
        let served = by_cost.into_iter().take(served).map(|(_, cells)| cells);
        live.iter().filter(untold).map(|cell| vec![*cell]).chain(waiting).chain(served).collect()
    }

    pub(super) fn left_seconds(&self) -> f64 {
        let warm_up = f64::from(self.warm_up) * self.first_block_seconds.unwrap_or(0.0);
        self.budget_seconds - warm_up - self.used_seconds
    }

    fn cost(&self, cells: impl IntoIterator<Item = u32>) -> f64 {
        let mean = |cell: u32| {
            let row = self.rows[cell as usize];
            row.seconds / f64::from(row.trials.max(1))
        };
        cells.into_iter().map(mean).sum()
    }
}
