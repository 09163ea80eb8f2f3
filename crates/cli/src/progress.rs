//! The progress of a run: a bar on a terminal, plain lines elsewhere. On standard error, so that standard
//! output holds the result alone.

use crate::{
    live::Live,
    terminal::{self, Bar},
    watched::Watched,
};
use fstone_analysis::text::shorten;
use fstone_engine::{CallLog, Observer, Progress};
use fstone_lab::events::{Event, LoadProgress, ProgressSink};
use fstone_model::{Outcome, Trial, text, units};
use fstone_report::html::Now;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How often a log gets a line about an ageing.
const LOG_INTERVAL: Duration = Duration::from_secs(20);

/// How long a run is expected to take before it has started, and what comes after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) study: Option<Duration>,
    /// Further studies of the same command; zero if there are none, `None` if unknown.
    pub(crate) later: Option<Duration>,
}

impl Expected {
    /// "3 min left, 17 min with the studies to come"; `remaining` is of this run alone.
    fn left(self, remaining: Option<Duration>) -> Option<String> {
        let study = remaining.or(self.study)?;
        let later = self.later.filter(|later| !later.is_zero());
        let with = later.map(|later| format!(", {} with the studies to come", about(study + later)));
        Some(format!("{} left{}", about(study), with.unwrap_or_default()))
    }
}

#[derive(Default)]
struct Current {
    /// "trial 3 of 64"; under a budget, "trial 3".
    count: String,
    label: String,
    step: String,
    remaining: Option<Duration>,
}

pub(crate) struct RunProgress {
    bar: Option<Bar>,
    current: Mutex<Current>,
    expected: Expected,
    started: Instant,
    left_behind: Mutex<Vec<String>>,
    /// When a log got its last line about an ageing.
    logged: Mutex<Option<Instant>>,
    live: Option<Live>,
    watched: Option<Watched>,
}

impl RunProgress {
    pub(crate) fn new(expected: Expected) -> Self {
        Self {
            bar: Bar::counting(),
            current: Mutex::default(),
            expected,
            started: Instant::now(),
            left_behind: Mutex::default(),
            logged: Mutex::default(),
            live: None,
            watched: None,
        }
    }

    /// One that also shows what the load does and what is known by now.
    pub(crate) fn live(expected: Expected, live: Live) -> Self {
        Self { bar: Bar::counting_above_a_line(), live: Some(live), ..Self::new(expected) }
    }

    /// The same, which `fstone serve` can ask what the run of this identity does just now.
    pub(crate) fn watched(self, identity: &str) -> Self {
        Self { watched: Watched::open(identity).ok(), ..self }
    }

    fn now(&self, change: impl FnOnce(&mut Now)) {
        if let Some(watched) = &self.watched {
            change(&mut watched.now());
        }
    }

    fn tell(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.above(line),
            None => terminal::tell(line),
        }
    }

    /// Removes the bar. Returns what the run left behind.
    pub(crate) fn finish(self) -> Vec<String> {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
        self.left_behind.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn show_load(&self, figures: &str) {
        if let Some(bar) = &self.bar {
            bar.say_below(&shorten(figures, terminal::width().saturating_sub(4)));
        }
    }

    fn show(&self, doing: &str) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.expected.left(current.remaining);
        self.now(|now| {
            now.step = format!("{}{doing}", current.step);
            now.left = left.clone().unwrap_or_default();
        });
        let Some(bar) = &self.bar else { return };
        let left = left.map(|left| format!("{left} · ")).unwrap_or_default();
        bar.say(&format!("{left}{} · {} · {}{doing}", current.count, current.label, current.step));
    }
}

fn count(finished: u32, total: Option<u32>) -> String {
    let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
    format!("trial {}{of}", finished + 1)
}

/// A time as precise as an estimate can be: whole seconds, whole minutes from two minutes on.
fn about(time: Duration) -> String {
    let seconds = time.as_secs().max(1);
    units::format_duration(Duration::from_secs(if seconds >= 120 { seconds.div_ceil(60) * 60 } else { seconds }))
}

fn outcome_line(trial: &Trial) -> String {
    let took = units::format_duration(Duration::from_millis(trial.duration_ns / 1_000_000));
    match &trial.outcome {
        Outcome::Completed => format!("completed in {took}"),
        other => {
            let reason = other
                .reason()
                .map(|reason| format!(" ({}): {}", text::line(&reason.step), first_line(&reason.words)))
                .unwrap_or_default();
            format!("{}{reason}", other.word())
        }
    }
}

/// The first line of a tool's or a kernel's words; the rest is in the report.
fn first_line(words: &str) -> &str {
    words.lines().next().unwrap_or_default()
}

impl ProgressSink for RunProgress {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::CleanedUp { what } => terminal::tell(&format!("Left over from an earlier run, now undone: {what}")),
            Event::NotCleanedUp { error } => {
                terminal::tell(&format!("Left over from an earlier run, not undone: {}", text::line(error)));
            }
            Event::OtherRun { who } => {
                let line = format!(
                    "Another run is in progress on this machine ({}), and each disturbs the other's figures. `--wait` waits until it ends.",
                    text::line(who)
                );
                self.tell(&line);
            }
            Event::ImageAwaited { image } => {
                self.tell(&format!("Waiting for another run, which makes or uses the aged filesystem {image}."));
            }
            Event::WarmUpStarted { label, finished, total } => {
                let count = format!("warm-up, {}", count(*finished, Some(*total)));
                match &self.bar {
                    Some(bar) => bar.set(u64::from(*finished), u64::from(*total)),
                    None => terminal::tell(&format!("{count}: {}", first_line(label))),
                }
                *self.current.lock().unwrap_or_else(PoisonError::into_inner) =
                    Current { count, label: first_line(label).to_owned(), ..Current::default() };
                self.show("");
            }
            Event::TrialStarted { id, label, finished, total, remaining } => {
                self.now(|now| now.total = total.map_or(0, u64::from));
                if let Some(known) = self.live.as_ref().and_then(|live| live.trial_started(*id)) {
                    self.now(|now| now.known.clone_from(&known));
                    self.tell(&known);
                }
                let (count, label) = (count(*finished, *total), first_line(label).to_owned());
                if let Some(bar) = &self.bar {
                    let (used, left) = (self.started.elapsed().as_secs(), remaining.unwrap_or_default().as_secs());
                    let (done, total) = total
                        .map_or((used, used.saturating_add(left)), |total| (u64::from(*finished), u64::from(total)));
                    bar.set(done, total);
                } else {
                    let left = self.expected.left(*remaining);
                    let left =
                        left.map(|left| format!(" ({} {left})", if total.is_some() { "about" } else { "at most" }));
                    terminal::tell(&format!("{count}{}: {label}", left.unwrap_or_default()));
                }
                *self.current.lock().unwrap_or_else(PoisonError::into_inner) =
                    Current { count, label, step: "device".into(), remaining: *remaining };
                self.show("");
            }
            Event::StepStarted { step, .. } => {
                #[cfg(debug_assertions)]
                crate::fault::rehearse(step);
                self.current.lock().unwrap_or_else(PoisonError::into_inner).step = (*step).to_owned();
                self.now(|now| now.figures.clear());
                if let Some(live) = &self.live {
                    live.step_started();
                    self.show_load("");
                }
                self.show("");
            }
            Event::Load(progress) => {
                let is_ageing = progress.phase == LoadProgress::AGEING;
                let time = match progress.expected {
                    Some(expected) if is_ageing => {
                        let (elapsed, written) = (whole_seconds(progress.elapsed), units::format_bytes(progress.bytes));
                        format!("{elapsed} of {}, {written} written", about(expected))
                    }
                    Some(expected) => {
                        format!("{} of {}", whole_seconds(progress.elapsed), units::format_duration(expected))
                    }
                    None => whole_seconds(progress.elapsed),
                };
                self.show(&format!(" ({} {time})", progress.phase));
                if is_ageing && self.bar.is_none() {
                    let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
                    if logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
                        *logged = Some(Instant::now());
                        terminal::tell(&format!("  {} {time}", progress.phase));
                    }
                }
                self.now(|now| now.figures = Live::figures(progress));
                match (&self.live, &self.bar) {
                    (Some(_), Some(_)) => self.show_load(&Live::figures(progress)),
                    (Some(live), None) => live.line(progress).iter().for_each(|line| terminal::tell(line)),
                    (None, _) => {}
                }
            }
            Event::Looked { words } => {
                self.now(|now| (*words).clone_into(&mut now.known));
                self.tell(words);
            }
            Event::TrialFinished(trial) => {
                self.now(|now| (now.step, now.figures) = Default::default());
                if let Some(live) = &self.live {
                    live.trial_finished(trial);
                }
                if trial.outcome.is_completed() && self.bar.is_some() {
                    return;
                }
                let label = self.current.lock().unwrap_or_else(PoisonError::into_inner).label.clone();
                let line = outcome_line(trial);
                match &self.bar {
                    Some(bar) => bar.above(&format!("{label}: {line}")),
                    None => terminal::tell(&format!("  {line}")),
                }
            }
            Event::LeftBehind { error } => {
                self.left_behind.lock().unwrap_or_else(PoisonError::into_inner).push(text::line(error));
            }
        }
    }
}

fn whole_seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

pub(crate) struct LiveLoad {
    bar: Option<Bar>,
    /// By group.
    logs: HashMap<String, Arc<dyn CallLog>>,
}

impl LiveLoad {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { bar: if wanted { Bar::spinning() } else { None }, logs: HashMap::new() }
    }

    pub(crate) fn with_logs(self, logs: HashMap<String, Arc<dyn CallLog>>) -> Self {
        Self { logs, ..self }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }
}

impl Observer for LiveLoad {
    fn progress(&self, progress: &Progress) {
        let Some(bar) = &self.bar else { return };
        bar.say(&fstone_report::live_line(&progress.phase, progress.elapsed, &progress.lately()));
        bar.tick();
    }

    fn call_log(&self, group: &str) -> Option<Arc<dyn CallLog>> {
        self.logs.get(group).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_round() {
        assert_eq!(about(Duration::from_millis(200)), "1 s");
        assert_eq!(about(Duration::from_secs(61)), "1 min 1 s");
        assert_eq!(about(Duration::from_secs(301)), "6 min");
    }

    #[test]
    fn a_number_of_trials_that_is_not_known_is_not_shown() {
        assert_eq!(count(1, Some(64)), "trial 2 of 64");
        assert_eq!(count(1, None), "trial 2");
    }

    #[test]
    fn what_is_left_includes_the_studies_to_come() {
        let minutes = |minutes: u64| Some(Duration::from_secs(60 * minutes));
        let left = |study, later, remaining| Expected { study, later }.left(remaining);
        assert_eq!(left(None, None, None), None);
        assert_eq!(left(minutes(4), minutes(0), None).as_deref(), Some("4 min left"));
        let all = left(minutes(4), minutes(9), minutes(3));
        assert_eq!(all.as_deref(), Some("3 min left, 12 min with the studies to come"));
    }
}
