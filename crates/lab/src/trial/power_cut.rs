//! Power cuts: the lab derives states from the log of the guest's disk, shows one after the other to the guest, which stays
//! up, and adds up what its agent finds.

use super::{
    agents::Agents,
    host_checks::{Checking, HostChecks},
    record::{Halt, failed, outcome_of_stop},
    who::Whom,
};
use crate::{
    agent::{
        DISK_LOG, GuestSeat, file_name,
        protocol::{STATE, STATE_UNCHECKED, StateCheck, StateReply, StepEnd, StepReply, decode, encode},
    },
    events::{Event, LoadProgress},
};
use fstone_model::{
    Cell, Outcome, Step,
    metric::{Figure, catalog},
    outcome::Reason,
    result::Effective,
    study::{DiskTruth, PowerCut},
    units::{format_bytes, format_duration},
};
use fstone_sandbox::power::{CrashState, Lie, Log, LogError, Mirror, States};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

const STATE_LIMIT: Duration = Duration::from_secs(120);
/// Losses that are told one by one.
const TOLD: usize = 3;

/// Logs are large: when so many are kept already, no more are.
const LOGS: u32 = 8;

#[derive(Default)]
pub(super) struct Found {
    /// `None` where the guest makes the filesystem's own check.
    pub(super) checks: Option<HostChecks>,
    /// What the guest looked at last. The host checks it while the guest looks at the next.
    unchecked: Option<(CrashState, StateReply, Checking)>,
    states: u64,
    mounted: u64,
    checked: u64,
    clean: u64,
    promises: u64,
    lost: u64,
    lossy: u64,
    recovery: Vec<u64>,
    told: Vec<(CrashState, String)>,
    /// How many of these, at the beginning, are of lost promises.
    losses_told: usize,
    ended_in: Option<CrashState>,
}

impl Agents<'_> {
    pub(super) fn cut_power(&mut self, step: &Step, cut: PowerCut) -> Result<StepReply, Halt> {
        let started = Instant::now();
        let disk = self.guest.as_ref().and_then(GuestSeat::disk);
        let log = disk.ok_or_else(|| failed(step, "there is no disk whose power could be cut".into()))?.log();
        let mut states = states_of(step, cut, log, self.guest.as_ref().and_then(GuestSeat::loads))?;
        let chosen = states.choose(cut.states as usize, self.job.seed);
        let mut found = Found::with(self.host_checks(step)?);
        let ended =
            self.try_states((step, started), &mut states, &chosen, &mut found).and_then(|()| self.show(step, None));
        // What was found before a bad end is told with it. Where the host has no room left, no log is kept.
        let (end, has_room) = match ended {
            Ok(()) => (StepEnd::Done, true),
            Err(Halt::Outcome(outcome)) => (StepEnd::Outcome(outcome), true),
            Err(Halt::Stopped(name)) => match outcome_of_stop(&name, self.machine.stop.reason().as_ref()) {
                Some(outcome) => (StepEnd::Outcome(outcome), false),
                None => return Err(Halt::Stopped(name)),
            },
            Err(halt) => return Err(halt),
        };
        let kept =
            Some((&*self.guest_options()?.kept, states.log())).filter(|_| has_room && cut.disk == DiskTruth::Sound);
        let warnings = found.told(step, self.job.cell, kept);
        Ok(StepReply {
            duration: started.elapsed(),
            commands: Vec::new(),
            figures: [vec![catalog::TIME.figure(started.elapsed().as_secs_f64())], found.figures()].concat(),
            load: None,
            beside: Vec::new(),
            warnings,
            effective: Effective::default(),
            uuid: None,
            mounted: false,
            end,
        })
    }

    fn try_states(
        &mut self,
        (step, started): (&Step, Instant),
        states: &mut States,
        chosen: &[CrashState],
        found: &mut Found,
    ) -> Result<(), Halt> {
        for (number, &state) in chosen.iter().enumerate() {
            let looked = self.look_at(step, states, state, found.checks_here());
            let reply = match looked {
                Ok(reply) => reply,
                Err(halt) => {
                    found.finish()?;
                    return Err(found.end_in(state, halt));
                }
            };
            found.looked_at(step, state, reply, |mirror| self.take_state(mirror))?;
            let (tried, elapsed) = (number + 1, started.elapsed());
            self.job.sink.event(&Event::Load(found.progress(tried, chosen.len(), elapsed)));
            if elapsed >= step.limit && tried < chosen.len() {
                found.finish()?;
                return Err(over_limit(step, tried, chosen.len()));
            }
        }
        found.finish()
    }

    fn show(&self, step: &Step, state: Option<(&mut States, CrashState)>) -> Result<(), Halt> {
        let Some(seat) = &self.guest else { return Ok(()) };
        let Some(disk) = seat.disk() else { return Ok(()) };
        disk.show(state, seat.directory()).map_err(|error| failed(step, format!("show a crash state: {error}")))
    }

    /// Has the guest look at a state, but for the filesystem's own check where the host makes that.
    fn look_at(
        &mut self,
        step: &Step,
        states: &mut States,
        state: CrashState,
        checked_here: bool,
    ) -> Result<StateReply, Halt> {
        let mark = states.log().last_mark_before(state.cut());
        self.show(step, Some((states, state)))?;
        let body = encode(&StateCheck { step: step.clone(), mark });
        let kind = if checked_here { STATE_UNCHECKED } else { STATE };
        self.ask(Whom::Guest, &step.name, kind, &body, STATE_LIMIT)
            .and_then(|body| decode::<StateReply>(&body).map_err(|words| failed(step, words)))
    }
}

fn over_limit(step: &Step, tried: usize, of: usize) -> Halt {
    let words =
        format!("not done within its limit of {}: {tried} of {of} states were tried", format_duration(step.limit));
    let cure = "give the step a longer `limit`, or fewer `states`";
    Halt::Outcome(Outcome::Hung(Reason::new(&step.name, words).with_cure(cure)))
}

pub(super) fn states_of(
    step: &Step,
    cut: PowerCut,
    log: Option<Result<Log, LogError>>,
    loads: Option<(u64, u64)>,
) -> Result<States, Halt> {
    let log = match log {
        Some(Ok(log)) => log.torn_at(u64::from(cut.sector_bytes)),
        Some(Err(LogError::Full { bound_bytes })) => {
            let words = format!("the load wrote more than {}, the limit of the disk's log", format_bytes(bound_bytes));
            let cure = "give the step a larger `log`, or the load less to do";
            return Err(Halt::Outcome(Outcome::Failed(Reason::new(&step.name, words).with_cure(cure))));
        }
        Some(Err(error)) => return Err(failed(step, format!("failed to keep a log of the disk: {error}"))),
        None => return Err(failed(step, "the disk kept no log".into())),
    };
    let (begin, end) = loads.ok_or_else(|| failed(step, "no load before it ran in the guest".into()))?;
    let event = |mark| log.event_of_mark(mark).ok_or_else(|| failed(step, "the disk's log lacks a mark".into()));
    let window = event(begin)?..event(end)? + 1;
    Ok(States::new(log, window, lie(cut.disk)))
}

/// Keeps the log of a disk with a state that is not as it should be: where, or in words why not.
fn keep_log(cell: &Cell, kept: &Path, log: &Log) -> Result<PathBuf, String> {
    let name = format!("{}-{}", cell.filesystem.name, cell.kernel.written());
    let place = kept.display();
    match kept_log(kept, &name, log) {
        Ok(Some(path)) => Ok(path),
        Ok(None) => Err(format!("the disk's log was not kept; {LOGS} of them are in {place}")),
        Err(error) => Err(format!("the disk's log could not be kept in {place}: {error}")),
    }
}

pub(super) const fn lie(disk: DiskTruth) -> Option<Lie> {
    match disk {
        DiskTruth::Sound => None,
        DiskTruth::ForgetsFlushes => Some(Lie::ForgetsFlushes),
        DiskTruth::Tears => Some(Lie::Tears),
        DiskTruth::Reorders => Some(Lie::Reorders),
    }
}

pub(super) fn in_state(state: CrashState, halt: Halt) -> Halt {
    let named = |reason: Reason| Reason { words: format!("in crash state {state}: {}", reason.words), ..reason };
    match halt {
        Halt::Outcome(Outcome::Failed(reason)) => Halt::Outcome(Outcome::Failed(named(reason))),
        Halt::Outcome(Outcome::Hung(reason)) => Halt::Outcome(Outcome::Hung(named(reason))),
        Halt::Outcome(Outcome::Crashed(reason)) => Halt::Outcome(Outcome::Crashed(named(reason))),
        halt => halt,
    }
}

fn kept_log(kept: &Path, name: &str, log: &Log) -> io::Result<Option<PathBuf>> {
    fs::create_dir_all(kept)?;
    let name = file_name(name);
    for number in 1..=LOGS {
        let path = kept.join(format!("{name}-{number}.{DISK_LOG}"));
        match log.save(&path) {
            Ok(()) => return Ok(Some(path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

impl Found {
    pub(super) fn with(checks: Option<HostChecks>) -> Self {
        Self { checks, ..Self::default() }
    }

    pub(super) const fn checks_here(&self) -> bool {
        self.checks.is_some()
    }

    /// What the guest found in a state, which this writes into the host's file where the host checks it.
    pub(super) fn looked_at(
        &mut self,
        step: &Step,
        state: CrashState,
        mut reply: StateReply,
        take: impl FnOnce(&mut Mirror) -> io::Result<bool>,
    ) -> Result<(), Halt> {
        let ended = match (self.finish(), reply.end.take(), &mut self.checks) {
            (Err(halt), ..) => Err(halt),
            (Ok(()), Some(outcome), _) => Err(self.end_in(state, Halt::Outcome(outcome))),
            (Ok(()), None, None) => Ok(()),
            (Ok(()), None, Some(checks)) => match take(&mut checks.mirror) {
                Ok(_) => {
                    self.unchecked = Some((state, reply, checks.begin(step)));
                    return Ok(());
                }
                Err(error) => Err(failed(step, format!("write what the disk shows into a file: {error}"))),
            },
        };
        // What the guest found counts all the same.
        self.add(state, &reply);
        ended
    }

    /// Waits for the check under way, if there is one.
    pub(super) fn finish(&mut self) -> Result<(), Halt> {
        let Some((state, mut reply, checking)) = self.unchecked.take() else { return Ok(()) };
        let ended = match checking.end() {
            Ok(checked) => {
                reply.clean = checked.clean;
                reply.words = reply.words.or(checked.words);
                Ok(())
            }
            // What the guest found there counts all the same.
            Err(halt) => Err(self.end_in(state, halt)),
        };
        self.add(state, &reply);
        ended
    }

    pub(super) fn end_in(&mut self, state: CrashState, halt: Halt) -> Halt {
        if matches!(&halt, Halt::Outcome(Outcome::Failed(_) | Outcome::Hung(_) | Outcome::Crashed(_))) {
            self.ended_in.get_or_insert(state);
        }
        in_state(state, halt)
    }

    pub(super) fn add(&mut self, state: CrashState, reply: &StateReply) {
        if reply.mounted.is_none() && reply.words.is_none() {
            // Something went wrong before it was known whether it can be mounted.
            return;
        }
        self.states += 1;
        if reply.mounted.is_none() {
            // Nothing that was promised can be reached.
            self.lossy += 1;
        }
        if let Some(time) = reply.mounted {
            self.mounted += 1;
            self.recovery.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        }
        if let Some(clean) = reply.clean {
            self.checked += 1;
            self.clean += u64::from(clean);
        }
        let mut told = reply.words.clone();
        if let Some(kept) = &reply.kept {
            self.promises += kept.checked;
            self.lost += kept.broken;
            if kept.broken > 0 {
                self.lossy += 1;
                let words = kept.first.as_ref().map_or(String::new(), |first| format!(": {first}"));
                // Reported before what the check found, which says less.
                let lost = format!("{} of {} promises lost{words}", kept.broken, kept.checked);
                if self.losses_told < TOLD {
                    self.told.insert(self.losses_told, (state, lost));
                    self.losses_told += 1;
                }
                told = None;
            }
        }
        self.told.extend(told.map(|words| (state, words)));
        self.told.truncate(TOLD);
    }

    pub(super) fn progress(&self, at: usize, of: usize, elapsed: Duration) -> LoadProgress {
        LoadProgress {
            phase: format!("power cut {at} of {of}, {} with a loss", self.lossy),
            elapsed,
            expected: None,
            operations: self.states,
            bytes: 0,
            lately: None,
        }
    }

    /// In words, each state with the command that writes it, for which the disk's log is kept in this directory. `None` for one that is
    /// not kept, such as of a disk that lies, which needs no explanation.
    pub(super) fn told(&self, step: &Step, cell: &Cell, kept: Option<(&Path, &Log)>) -> Vec<String> {
        let shows = !self.told.is_empty() || self.ended_in.is_some();
        let log = kept.filter(|_| shows).map(|(kept, log)| keep_log(cell, kept, log));
        let command = |state: CrashState| {
            let path = log.as_ref()?.as_ref().ok()?;
            Some(format!("`fstone crash-state {} {state} --image FILE` writes it into FILE", path.display()))
        };
        let mut all = Vec::new();
        for (state, words) in &self.told {
            let command = command(*state).map_or(String::new(), |command| format!("; {command}"));
            all.push(format!("crash state {state}: {words}{command}"));
        }
        if self.mounted > 0 && self.promises == 0 {
            all.push(
                "nothing was promised before any of the states, so nothing was checked: a load is promised what it syncs"
                    .to_owned(),
            );
        }
        let ended = self.ended_in.and_then(command);
        all.extend(ended.map(|command| format!("to examine the state in which it ended: {command}")));
        all.extend(log.as_ref().and_then(|log| log.as_ref().err().cloned()));
        all.into_iter().map(|words| format!("{}: {words}", step.name)).collect()
    }

    pub(super) fn figures(mut self) -> Vec<Figure> {
        let share = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
        let mut figures = vec![
            catalog::CRASH_STATES.figure(self.states as f64),
            catalog::PROMISES_CHECKED.figure(self.promises as f64),
            catalog::PROMISES_LOST.figure(self.lost as f64),
            catalog::LOSSY_STATES.figure(self.lossy as f64),
            catalog::STATES_MOUNTED.figure(share(self.mounted, self.states)),
        ];
        if self.checked > 0 {
            figures.push(catalog::STATES_CLEAN.figure(share(self.clean, self.checked)));
        }
        self.recovery.sort_unstable();
        if let Some(&longest) = self.recovery.last() {
            let median = self.recovery[(self.recovery.len() - 1) / 2];
            figures.push(catalog::RECOVERY_P50.figure(median as f64));
            figures.push(catalog::RECOVERY_MAX.figure(longest as f64));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{agent::protocol::KeptPromises, testing};
    use fstone_model::study::StepAction;

    #[test]
    fn a_state_that_was_not_looked_at_is_no_loss() {
        let figures = |replies: Vec<StateReply>| {
            let mut found = Found::default();
            for reply in replies {
                found.add("12-torn-9f2c".parse().expect("a state"), &reply);
            }
            let figures = found.figures();
            [&catalog::CRASH_STATES, &catalog::LOSSY_STATES, &catalog::STATES_MOUNTED]
                .map(|metric| figures.iter().find(|figure| figure.metric == metric.name).expect("a figure").value)
        };
        let hung = || Some(Outcome::Hung(Reason::new("power-cut", "it took too long")));
        let mounted = || StateReply { mounted: Some(Duration::from_millis(1)), ..StateReply::default() };
        let refused = || StateReply { words: Some("mount: EUCLEAN".into()), ..StateReply::default() };
        assert_eq!(figures(vec![mounted(), refused()]), [2.0, 1.0, 50.0]);
        assert_eq!(figures(vec![mounted(), StateReply { end: hung(), ..StateReply::default() }]), [1.0, 0.0, 100.0]);
        let lost = KeptPromises { checked: 3, broken: 1, first: None };
        let unchecked = StateReply { kept: Some(lost), end: hung(), ..mounted() };
        assert_eq!(figures(vec![unchecked, StateReply { end: hung(), ..refused() }]), [2.0, 2.0, 50.0]);
    }

    #[test]
    fn a_load_that_was_promised_nothing_has_not_kept_everything() {
        let cut = PowerCut { states: 1, log_bytes: 1 << 20, disk: DiskTruth::Sound, sector_bytes: 4096 };
        let step = testing::step("power-cut", StepAction::PowerCut(cut));
        let cell = testing::cell(0, "ext4", "", &[]);
        let told = |checked| {
            let mut found = Found::default();
            let kept = Some(KeptPromises { checked, broken: 0, first: None });
            let mounted = Some(Duration::from_millis(1));
            found.add("12-all-0".parse().expect("a state"), &StateReply { mounted, kept, ..StateReply::default() });
            found.told(&step, &cell, None)
        };
        assert_eq!(told(1), [""; 0]);
        let [words] = &told(0)[..] else { panic!("{:?}", told(0)) };
        assert!(words.starts_with("power-cut: nothing was promised before any of the states, so nothing was checked"));
    }
}
