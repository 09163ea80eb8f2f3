//! The lab's part in a trial that is one job of an exact guest: what the guest cannot do by itself it asks for, and is
//! answered while its time stands still.
//!
//! That is the step `power-cut`. What the guest is told follows from its trial, the disk and the seed; what the step found is
//! added up here, and put into its place when the guest is gone.

use super::{
    host_checks::HostChecks,
    power_cut::{Found, states_of},
    record::{Halt, Record, failed},
};
use crate::{
    agent::protocol::{Advice, DoneStep, Question, StepEnd, StepReply, decode, encode},
    events::{Event, LoadProgress, ProgressSink},
};
use fstone_model::{
    Cell, Outcome,
    age::Past,
    study::{DiskTruth, PowerCut, StepAction},
};
use fstone_sandbox::{
    exact::{Attendant, StoppedDisk},
    power::{CrashState, States},
};
use std::{path::Path, time::Instant};

pub(super) struct Attending<'a> {
    cell: &'a Cell,
    seed: u64,
    kept: &'a Path,
    sink: &'a dyn ProgressSink,
    checks: Option<HostChecks>,
    cutting: Option<Cutting>,
    /// What was found, by the place of the step in the trial, and the warnings.
    done: Vec<(usize, Found, Vec<String>)>,
    halt: Option<Halt>,
    since: Instant,
}

struct Cutting {
    index: usize,
    cut: PowerCut,
    states: States,
    chosen: Vec<CrashState>,
    /// How many of them were shown; the last of these is.
    shown: usize,
    found: Found,
    since: Instant,
}

impl<'a> Attending<'a> {
    pub(super) fn new(
        (cell, seed): (&'a Cell, u64),
        kept: &'a Path,
        sink: &'a dyn ProgressSink,
        checks: Option<HostChecks>,
    ) -> Self {
        Self { cell, seed, kept, sink, checks, cutting: None, done: Vec::new(), halt: None, since: Instant::now() }
    }

    /// Adds what was found to what the guest told of its steps, and to a bad end of the guest the state that it came to in.
    pub(super) fn settle(
        mut self,
        told: Result<Vec<DoneStep>, Halt>,
        record: &mut Record,
    ) -> Result<Vec<DoneStep>, Halt> {
        let told = told.map_err(|halt| match halt {
            Halt::Outcome(outcome) => in_it(self.cutting.as_mut(), outcome),
            halt => halt,
        });
        let end = match told.as_ref().map(|steps| steps.last()) {
            Ok(Some(DoneStep { reply: StepReply { end: StepEnd::Outcome(outcome), .. }, .. })) => {
                Some(in_it(self.cutting.as_mut(), outcome.clone()))
            }
            _ => None,
        };
        if let Some(mut unfinished) = self.cutting.take() {
            // How the guest ended says more than how the check did.
            drop(unfinished.found.finish());
            let warnings = self.warnings(&unfinished);
            self.done.push((unfinished.index, unfinished.found, warnings));
        }
        let mut steps = match told {
            Ok(steps) => steps,
            Err(halt) => {
                // There are no steps to which they could be added.
                record.warnings.extend(self.done.into_iter().flat_map(|(.., warnings)| warnings));
                return Err(halt);
            }
        };
        for (index, found, warnings) in self.done {
            let Some(step) = steps.get_mut(index) else { continue };
            step.reply.figures.extend(found.figures());
            step.reply.warnings.extend(warnings);
        }
        if let (Some(last), Some(end)) = (steps.last_mut(), end) {
            // It asked for what could not be done, or could not look at a state.
            last.reply.end = match self.halt.unwrap_or(end) {
                Halt::Outcome(outcome) => StepEnd::Outcome(outcome),
                Halt::Lab(error) => StepEnd::Lab(error.to_string()),
                Halt::Stopped(step) => StepEnd::Lab(format!("{step} was stopped")),
            };
        }
        Ok(steps)
    }

    fn advise(&mut self, question: Question, disk: &mut StoppedDisk<'_>) -> Result<Advice, Halt> {
        match question {
            Question::Made => {
                let step = self.cell.steps.first().ok_or_else(senseless)?;
                disk.begin_log_anew().map_err(|error| failed(step, format!("begin a log of the disk: {error}")))?;
                Ok(Advice::GoOn)
            }
            Question::Cut { step: index, loads } => {
                let step = self.cell.steps.get(index).ok_or_else(senseless)?;
                let StepAction::PowerCut(cut) = step.action else { return Err(senseless()) };
                let states = states_of(step, cut, disk.log(), loads)?;
                let chosen = states.choose(cut.states as usize, self.seed);
                let (found, since) = (Found::with(self.checks.take()), Instant::now());
                self.cutting = Some(Cutting { index, cut, states, chosen, shown: 0, found, since });
                self.go_on(disk)
            }
            Question::Found(reply) => {
                let cutting = self.cutting.as_mut().ok_or_else(senseless)?;
                let step = self.cell.steps.get(cutting.index).ok_or_else(senseless)?;
                let state = *cutting.state().ok_or_else(senseless)?;
                cutting.found.looked_at(step, state, reply, |mirror| disk.mirror(mirror))?;
                let (tried, elapsed) = (cutting.shown, cutting.since.elapsed());
                self.sink.event(&Event::Load(cutting.found.progress(tried, cutting.chosen.len(), elapsed)));
                self.go_on(disk)
            }
        }
    }

    fn go_on(&mut self, disk: &mut StoppedDisk<'_>) -> Result<Advice, Halt> {
        let cutting = self.cutting.as_mut().ok_or_else(senseless)?;
        let step = self.cell.steps.get(cutting.index).ok_or_else(senseless)?;
        let cannot = |error| failed(step, format!("show a crash state: {error}"));
        if let Some(&state) = cutting.chosen.get(cutting.shown) {
            disk.show(Some((&mut cutting.states, state))).map_err(cannot)?;
            cutting.shown += 1;
            let mark = cutting.states.log().last_mark_before(state.cut());
            return Ok(Advice::Look { mark, check: !cutting.found.checks_here() });
        }
        cutting.found.finish()?;
        disk.show(None).map_err(cannot)?;
        let mut cutting = self.cutting.take().ok_or_else(senseless)?;
        self.checks = cutting.found.checks.take();
        let warnings = self.warnings(&cutting);
        self.done.push((cutting.index, cutting.found, warnings));
        Ok(Advice::GoOn)
    }

    fn warnings(&self, cutting: &Cutting) -> Vec<String> {
        let Some(step) = self.cell.steps.get(cutting.index) else { return Vec::new() };
        let kept = Some((self.kept, cutting.states.log())).filter(|_| cutting.cut.disk == DiskTruth::Sound);
        cutting.found.told(step, self.cell, kept)
    }
}

impl Attendant for Attending<'_> {
    fn written(&mut self, bytes: u64) {
        if let (Some(Past::Aged(age)), Some(size)) = (self.cell.past(), self.cell.device.size_bytes()) {
            // What is written to the disk is nearly what is written to files.
            let share = bytes as f64 / (age.overwrites * size as f64);
            if share < 1.0 {
                self.sink.event(&Event::Load(LoadProgress::of_ageing(self.since.elapsed(), share, 0, bytes)));
            }
        }
    }

    fn answer(&mut self, question: &[u8], disk: &mut StoppedDisk<'_>) -> Vec<u8> {
        let advice = decode(question).map_err(|words| Halt::Lab(super::ExecutorError::Agent(words)));
        encode(&advice.and_then(|question| self.advise(question, disk)).unwrap_or_else(|halt| {
            self.halt.get_or_insert(halt);
            Advice::GiveUp
        }))
    }
}

impl Cutting {
    /// The state that is shown.
    fn state(&self) -> Option<&CrashState> {
        self.chosen.get(self.shown.checked_sub(1)?)
    }
}

fn in_it(cutting: Option<&mut Cutting>, outcome: Outcome) -> Halt {
    let halt = Halt::Outcome(outcome);
    let Some(cutting) = cutting else { return halt };
    match cutting.state() {
        Some(&state) => cutting.found.end_in(state, halt),
        None => halt,
    }
}

fn senseless() -> Halt {
    Halt::Lab(super::ExecutorError::Agent("a question that makes no sense".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{agent::protocol::StateReply, events::Silent, testing};
    use fstone_model::outcome::Reason;
    use fstone_sandbox::power::Log;

    fn empty_log(directory: &Path) -> Log {
        let index = r#"{"entries":[],"flushes":[],"marks":[],"events":9,"atom":8,"data_bytes":0,"disk_bytes":4096}"#;
        let length = (index.len() as u64).to_le_bytes();
        let mut bytes = [b"fstone disk log 1\n", &length[..], index.as_bytes()].concat();
        bytes.resize(2 * 4096, 0);
        let path = directory.join("log");
        std::fs::write(&path, bytes).expect("ours");
        Log::load(&path, directory).expect("a log")
    }

    fn lossy(state: &str) -> Found {
        let mut found = Found::default();
        let words = Some("mount: EUCLEAN".to_owned());
        found.add(state.parse().expect("a state"), &StateReply { words, ..StateReply::default() });
        found
    }

    #[test]
    fn what_was_found_before_the_guest_ended_is_told_and_its_log_kept() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let cut = PowerCut { states: 2, log_bytes: 1 << 20, disk: DiskTruth::Sound, sector_bytes: 4096 };
        let step = testing::step("power-cut", StepAction::PowerCut(cut));
        let cell = testing::cell(0, "ext4", "", &[step.clone(), step]);
        let kept = place.path().join("kept");
        let mut attending = Attending::new((&cell, 1), &kept, &Silent, None);
        attending.done.push((2, lossy("3-all-1"), vec!["the first".to_owned()]));
        let states = States::new(empty_log(place.path()), 0..9, None);
        let chosen = vec!["4-none-1".parse().expect("a state")];
        let (found, since) = (lossy("4-none-1"), Instant::now());
        attending.cutting = Some(Cutting { index: 3, cut, states, chosen, shown: 1, found, since });
        let mut record = Record::default();
        let hung = Halt::Outcome(Outcome::Hung(Reason::new("power-cut", "it took too long")));
        let Err(Halt::Outcome(Outcome::Hung(reason))) = attending.settle(Err(hung), &mut record) else {
            panic!("another end")
        };
        assert!(reason.words.starts_with("in crash state 4-none-1: "), "{}", reason.words);
        let [first, second, log] = &record.warnings[..] else { panic!("{:?}", record.warnings) };
        assert_eq!(first, "the first");
        assert!(second.contains("4-none-1: mount: EUCLEAN; `fstone crash-state "), "{second}");
        assert!(second.contains(" 4-none-1 --image FILE` writes it"), "{second}");
        assert!(log.contains("fstone crash-state") && log.contains(" 4-none-1 --image"), "{log}");
        assert_eq!(std::fs::read_dir(&kept).expect("it is there").count(), 1);
    }

    #[test]
    fn the_log_of_a_state_in_which_the_guest_hangs_is_kept() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let cut = PowerCut { states: 2, log_bytes: 1 << 20, disk: DiskTruth::Sound, sector_bytes: 4096 };
        let step = testing::step("power-cut", StepAction::PowerCut(cut));
        let cell = testing::cell(0, "ext4", "", &[step]);
        for (outcome, is_kept) in [
            (Outcome::Hung(Reason::new("power-cut", "it took too long")), true),
            (Outcome::Crashed(Reason::new("power-cut", "it panicked")), true),
            (Outcome::Skipped(Reason::new("power-cut", "there is no e2fsck")), false),
        ] {
            let kept = place.path().join(outcome.word());
            let mut attending = Attending::new((&cell, 1), &kept, &Silent, None);
            let states = States::new(empty_log(place.path()), 0..9, None);
            let chosen = vec!["3-all-1".parse().expect("a state"), "4-none-1".parse().expect("a state")];
            let (found, since) = (Found::default(), Instant::now());
            attending.cutting = Some(Cutting { index: 0, cut, states, chosen, shown: 2, found, since });
            let mut record = Record::default();
            assert!(attending.settle(Err(Halt::Outcome(outcome)), &mut record).is_err());
            assert_eq!(record.warnings.len(), usize::from(is_kept), "{:?}", record.warnings);
            assert_eq!(kept.exists(), is_kept);
            for words in &record.warnings {
                assert!(
                    words.contains("the state in which it ended") && words.contains(" 4-none-1 --image"),
                    "{words}"
                );
            }
        }
    }
}
