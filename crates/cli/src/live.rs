//! What `fstone run --live` shows besides progress: what the load is doing now, and what is known after each block.

use crate::judge::RunJudge;
use fstone_lab::{events::LoadProgress, run::budget::Judge as _};
use fstone_model::{Plan, Trial, lately::Lately, result::TrialId, text};
use fstone_report::live_figures;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How often a log gets a line about a load; on a terminal, the line is redrawn each time.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

pub(crate) struct Live(Mutex<State>);

struct State {
    /// Says what is known; `None` if the budget's own judge does.
    judge: Option<RunJudge>,
    block: Option<u32>,
    logged: Option<Instant>,
}

impl Live {
    pub(crate) fn new(plan: &Plan, finished: &[Trial]) -> Self {
        let mut judge = plan.budget.is_none().then(|| RunJudge::new(plan));
        if let Some(judge) = &mut judge {
            finished.iter().for_each(|trial| judge.take(trial));
        }
        Self(Mutex::new(State { judge, block: None, logged: None }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a load does just now, for a terminal.
    pub(crate) fn figures(progress: &LoadProgress) -> String {
        lately(progress).map(live_figures).unwrap_or_default()
    }

    /// The same for a log: at once, then once in a while.
    pub(crate) fn line(&self, progress: &LoadProgress) -> Option<String> {
        let lately = lately(progress)?;
        let mut state = self.state();
        if state.logged.is_some_and(|logged| logged.elapsed() < LOG_INTERVAL) {
            return None;
        }
        state.logged = Some(Instant::now());
        Some(log_line(progress, lately))
    }

    pub(crate) fn step_started(&self) {
        self.state().logged = None;
    }

    /// A trial begins; what is known when it is the first of a block. Between two trials nothing is measured.
    pub(crate) fn trial_started(&self, id: TrialId) -> Option<String> {
        let mut state = self.state();
        let before = state.block.replace(id.repetition).filter(|block| *block != id.repetition)?;
        let found = state.judge.as_mut()?.judge();
        Some(format!("after block {}, not final: {}", before + 1, text::line(&found.words)))
    }

    pub(crate) fn trial_finished(&self, trial: &Trial) {
        if let Some(judge) = &mut self.state().judge {
            judge.take(trial);
        }
    }
}

/// "  read 20 s, in the last 1 s: 12,345/s · 48.2 MiB/s": lines of a log are further apart than what they tell.
fn log_line(progress: &LoadProgress, lately: &Lately) -> String {
    let tenths = (lately.interval.as_secs_f64() * 10.0).round() / 10.0;
    let (phase, elapsed) = (text::line(&progress.phase), progress.elapsed.as_secs());
    format!("  {phase} {elapsed} s, in the last {tenths} s: {}", live_figures(lately))
}

/// What a load did lately; nothing while its files are being made.
fn lately(progress: &LoadProgress) -> Option<&Lately> {
    progress.lately.as_ref().filter(|_| progress.phase != "setup")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::Histogram;

    #[test]
    fn a_log_says_what_time_its_figures_are_of() {
        let (second, elapsed) = (Duration::from_micros(1_000_300), Duration::from_secs(20));
        let lately = Lately::of(second, 3000, 0, &Histogram::default());
        let progress = LoadProgress {
            phase: "read".into(),
            elapsed,
            expected: None,
            operations: 60_000,
            bytes: 0,
            lately: Some(lately.clone()),
        };
        let line = log_line(&progress, &lately);
        assert!(line.starts_with("  read 20 s, in the last 1 s: 2,999"), "{line}");
    }
}
