//! Sequences of calls before power cuts, one after the other in a guest that stays up: between two of them the disk is wound
//! back to what it was before the first.

use super::{
    agents::Agents,
    explorer::{Explorer, SequenceFound},
    host_checks::HostChecks,
    power_cut::{in_state, lie},
    record::{Halt, failed},
    who::Whom,
};
use crate::agent::{
    GuestSeat,
    protocol::{
        Message, SEQUENCE, SEQUENCE_STATE, SequenceDone, SequenceJob, SequenceState, SequenceStateReply, SequenceWhat,
        StepEnd, StepReply, decode, encode,
    },
};
use fstone_engine::sequences::Sequence;
use fstone_files::{Owner, create_directories};
use fstone_model::{
    Outcome, Step,
    fnv::fnv1a,
    outcome::Reason,
    result::Effective,
    study::{DiskTruth, PowerCut},
    units::nanoseconds,
};
use fstone_sandbox::{
    power::{CrashState, Log, LogError, States},
    vhost::Disk,
};
use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

/// How long a sequence, or a single state, may take.
const LIMIT: Duration = Duration::from_secs(120);
impl Agents<'_> {
    pub(super) fn explore(&mut self, step: &Step, cut: PowerCut, explorer: &dyn Explorer) -> Result<StepReply, Halt> {
        let started = Instant::now();
        let done: SequenceDone = self.sequence_job(step, SEQUENCE, &job(step, SequenceWhat::Plant))?;
        done.end.map_or(Ok(()), |outcome| Err(Halt::Outcome(outcome)))?;
        self.with_disk(step, Disk::begin_log_anew)?;
        let mut checks = self.host_checks(step)?;
        while let Some(sequence) = explorer.next() {
            let mut found = SequenceFound::default();
            let ended = self.try_sequence(step, cut, &sequence, (explorer, checks.as_mut()), &mut found);
            found.note_end(&ended, None);
            // One that was given up, or that the lab failed in, is as if it had not been begun.
            if matches!(&ended, Ok(()) | Err(Halt::Outcome(_))) {
                explorer.found(&sequence, found).map_err(|words| failed(step, words))?;
            }
            ended?;
        }
        Ok(StepReply {
            duration: started.elapsed(),
            commands: Vec::new(),
            figures: Vec::new(),
            load: None,
            beside: Vec::new(),
            warnings: Vec::new(),
            effective: Effective::default(),
            uuid: None,
            mounted: false,
            end: StepEnd::Done,
        })
    }

    fn try_sequence(
        &mut self,
        step: &Step,
        cut: PowerCut,
        sequence: &Sequence,
        (explorer, checks): (&dyn Explorer, Option<&mut HostChecks>),
        found: &mut SequenceFound,
    ) -> Result<(), Halt> {
        let started = Instant::now();
        self.with_disk(step, |disk, directory| disk.show(None, directory).and_then(|()| disk.rewind(directory)))?;
        let what = SequenceWhat::Calls(sequence.to_string());
        let done: SequenceDone = self.sequence_job(step, SEQUENCE, &job(step, what))?;
        done.end.map_or(Ok(()), |outcome| Err(Halt::Outcome(outcome)))?;
        found.calls_ns = nanoseconds(started.elapsed());
        if done.refused.is_some() {
            found.refused = done.refused;
            found.time_ns = nanoseconds(started.elapsed());
            return Ok(());
        }
        let log = self.sequence_log(step)?.torn_at(u64::from(cut.sector_bytes));
        let events: Option<Vec<_>> = done.marks.iter().map(|mark| log.event_of_mark(*mark)).collect();
        let (Some(events), true) = (events, done.marks.len() == sequence.calls().len() + 1) else {
            return Err(failed(step, "the disk's log lacks a mark".into()));
        };
        // Until the end of the unmount: whatever is cut off there was persisted before.
        let window = events.first().map_or(0, |first| first + 1)..log.events() + 1;
        let mut states = States::new(log, window, lie(cut.disk));
        let chosen =
            states.choose_after(&events, cut.states as usize, self.job.seed ^ fnv1a(sequence.to_string().as_bytes()));
        let ended = self.look_at_states(step, &mut states, chosen, checks, found);
        // Of a sequence that was interrupted nothing is recorded, and a lab that failed may be short of room.
        if cut.disk == DiskTruth::Sound && matches!(ended, Ok(()) | Err(Halt::Outcome(_))) {
            found.log = explorer.log(sequence, found).and_then(|path| kept(&path, states.log()).then_some(path));
        }
        found.time_ns = nanoseconds(started.elapsed());
        ended
    }

    /// Shows each state to the guest, and adds what is found in it, also where looking comes to a bad end.
    fn look_at_states(
        &mut self,
        step: &Step,
        states: &mut States,
        chosen: Vec<CrashState>,
        mut checks: Option<&mut HostChecks>,
        found: &mut SequenceFound,
    ) -> Result<(), Halt> {
        for state in chosen {
            let mut reply = SequenceStateReply::default();
            let looked = self.look_at_one(step, states, state, checks.as_deref_mut(), &mut reply);
            found.add(state, reply);
            let ended = looked.map_err(|halt| in_state(state, halt));
            found.note_end(&ended, Some(state));
            ended?;
        }
        Ok(())
    }

    fn look_at_one(
        &mut self,
        step: &Step,
        states: &mut States,
        state: CrashState,
        checks: Option<&mut HostChecks>,
        reply: &mut SequenceStateReply,
    ) -> Result<(), Halt> {
        let mark = states.log().last_mark_before(state.cut());
        self.with_disk(step, |disk, directory| disk.show(Some((states, state)), directory))?;
        let body = SequenceState { step: step.clone(), mark, check: checks.is_none() };
        *reply = self.sequence_job(step, SEQUENCE_STATE, &encode(&body))?;
        if let Some(outcome) = reply.end.take() {
            return Err(Halt::Outcome(outcome));
        }
        let Some(checks) = checks else { return Ok(()) };
        let started = Instant::now();
        let taken = self.take_state(&mut checks.mirror);
        taken.map_err(|error| failed(step, format!("write what the disk shows into a file: {error}")))?;
        let checked = checks.check(step)?;
        reply.clean = checked.clean;
        reply.words = reply.words.take().or(checked.words);
        reply.checking = started.elapsed();
        Ok(())
    }

    fn sequence_job<T: Message>(&mut self, step: &Step, kind: &str, body: &[u8]) -> Result<T, Halt> {
        let reply = self.ask(Whom::Guest, &step.name, kind, body, LIMIT)?;
        decode(&reply).map_err(|words| failed(step, words))
    }

    fn with_disk(&self, step: &Step, work: impl FnOnce(&Disk, &Path) -> io::Result<()>) -> Result<(), Halt> {
        let Some(seat) = &self.guest else { return Err(failed(step, "there is no guest".into())) };
        let Some(disk) = seat.disk() else { return Err(failed(step, "there is no disk".into())) };
        work(disk, seat.directory()).map_err(|error| failed(step, format!("change what the disk shows: {error}")))
    }

    fn sequence_log(&self, step: &Step) -> Result<Log, Halt> {
        match self.guest.as_ref().and_then(GuestSeat::disk).and_then(Disk::log) {
            Some(Ok(log)) => Ok(log),
            Some(Err(error @ (LogError::Full { .. } | LogError::Host(_)))) => {
                let words = format!("failed to keep a log of the disk: {error}");
                Err(Halt::Outcome(Outcome::Failed(Reason::new(&step.name, words))))
            }
            None => Err(failed(step, "the disk kept no log".into())),
        }
    }
}

fn job(step: &Step, what: SequenceWhat) -> Vec<u8> {
    encode(&SequenceJob { step: step.clone(), what })
}

/// A log that cannot be kept costs no more than a counterexample's image: the sequence makes it again.
fn kept(path: &Path, log: &Log) -> bool {
    path.parent().is_none_or(|directory| create_directories(directory, Owner::caller()).is_ok())
        && log.save(path).is_ok()
}
