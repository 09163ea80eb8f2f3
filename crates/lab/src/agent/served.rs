//! The agent's end: takes jobs off a channel and does them with a [`Session`], wherever it is.

use super::{
    protocol::{
        Advice, AgentHost, Answer, FLUSH, LEAVE, OPEN, Opening, Question, SEQUENCE, SEQUENCE_STATE, STATE,
        STATE_UNCHECKED, STEP, SequenceDone, SequenceStateReply, StateCheck, StateReply, StepEnd, TRIAL, TrialReply,
        WholeTrial, decode, encode,
    },
    whole::carry_out,
};
use crate::{
    command::SystemRunner,
    events::LoadProgress,
    machine::Machine,
    meters,
    trial::{EngineLoader, record::Halt, session::Session},
};
use fstone_model::{Outcome, outcome::Reason};
use fstone_sandbox::agent::{Context, Handler, LoadError, is_guest, time_of_a_read};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How often the lab hears of a load at most. A guest may have one processor only, and it is being measured.
const PROGRESS_PERIOD: Duration = Duration::from_secs(1);

/// Whether this process is an agent. `main` asks this before it looks at its arguments.
pub fn is_agent() -> bool {
    fstone_sandbox::agent::is_agent()
}

pub fn main() -> ! {
    fstone_sandbox::agent::main(&mut Agent(Served::new(Machine::host())))
}

pub(super) struct Served {
    machine: Machine,
    session: Option<Session>,
}

impl Served {
    pub(super) const fn new(machine: Machine) -> Self {
        Self { machine, session: None }
    }

    /// Does a job. `Err` when it makes no sense.
    pub(super) fn serve(&mut self, kind: &str, body: &[u8], host: &dyn AgentHost) -> Result<Vec<u8>, String> {
        if kind == OPEN {
            return Ok(encode(&self.open(decode(body)?, host)));
        }
        if kind == TRIAL {
            return self.whole_trial(decode(body)?, host).map(|reply| encode(&reply));
        }
        let session = self.session.as_mut().ok_or_else(|| format!("{kind:?} came before its trial"))?;
        match kind {
            STEP => {
                let last = Mutex::new(None::<Instant>);
                let reply = session.run_step(&decode(body)?, &|progress| {
                    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                    if last.is_none_or(|last| last.elapsed() >= PROGRESS_PERIOD) {
                        *last = Some(Instant::now());
                        host.progress(&progress);
                    }
                });
                Ok(encode(&reply))
            }
            FLUSH => {
                let step: String = decode(body)?;
                Ok(encode(&match session.flush(&step) {
                    Err(Halt::Outcome(outcome)) => StepEnd::Outcome(outcome),
                    _ => StepEnd::Done,
                }))
            }
            STATE => {
                let check: StateCheck = decode(body)?;
                let ended = |end| StateReply { end: Some(end), ..StateReply::default() };
                Ok(encode(&or_outcome(session.look_at_state(&check.step, &check), ended)?))
            }
            STATE_UNCHECKED => {
                let check: StateCheck = decode(body)?;
                let ended = |end| StateReply { end: Some(end), ..StateReply::default() };
                Ok(encode(&or_outcome(session.mount_state(&check.step, &check), ended)?))
            }
            SEQUENCE => {
                let ended = |end| SequenceDone { end: Some(end), ..SequenceDone::default() };
                Ok(encode(&or_outcome(session.carry_out_sequence(&decode(body)?), ended)?))
            }
            SEQUENCE_STATE => {
                let ended = |end| SequenceStateReply { end: Some(end), ..SequenceStateReply::default() };
                Ok(encode(&or_outcome(session.look_at_sequence(&decode(body)?), ended)?))
            }
            LEAVE => match session.leave() {
                Ok(()) => Ok(encode(&std::mem::take(&mut session.warnings))),
                Err(error) => Err(error.to_string()),
            },
            other => Err(format!("{other:?} is not a job of a trial")),
        }
    }

    fn whole_trial(&mut self, trial: WholeTrial, host: &dyn AgentHost) -> Result<TrialReply, String> {
        // Where the kernel's work is counted, that of giving way would be, too.
        if trial.delay_ns > 0 && !trial.counts_work {
            self.machine.loader = Arc::new(EngineLoader { perturbation: Some(trial.delay_ns) });
        }
        if trial.counts_work {
            // It would be counted.
            self.machine.runner = Arc::new(SystemRunner::new(Arc::clone(&self.machine.stop)).seldom_looking());
        }
        match self.open(trial.opening, host) {
            Answer::Ready(_) => {}
            Answer::Not(outcome) => return Ok(TrialReply::Not(outcome)),
            Answer::Lab(words) => return Err(words),
        }
        let session = self.session.as_mut().ok_or("it was not opened")?;
        meters::may_count(trial.counts_work);
        std::thread::sleep(std::time::Duration::from_nanos(trial.delay_ns));
        let late_ns = trial.counts_work.then_some(trial.delay_ns);
        Ok(TrialReply::Done(carry_out(session, &trial.steps, late_ns, host)))
    }

    fn open(&mut self, opening: Opening, host: &dyn AgentHost) -> Answer {
        let filesystem = crate::filesystem::find(&opening.filesystem.kind).filter(|_| opening.mounts);
        for name in filesystem.map_or(&[][..], |filesystem| filesystem.facts().modules_asked_by_name) {
            // What a kernel does not have as a module it has built in, or does not need.
            let _ = host.load_module(name);
        }
        if let Some(filesystem) = filesystem
            && !self.machine.mounter.kernel_has(filesystem.kernel_name())
            && let Err(error) = host.load_module(filesystem.kernel_name())
        {
            let words = match error {
                LoadError::Unknown(_) | LoadError::NoList { .. } => {
                    format!("this kernel has no {}", filesystem.kernel_name())
                }
                error => error.to_string(),
            };
            return Answer::Not(Outcome::Skipped(Reason::new("mount", words)));
        }
        let timed = opening.time_disk;
        match Session::open(self.machine.clone(), opening) {
            Ok((session, mut opened)) => {
                // A disk that fails here will fail its trial, too, and say more there.
                opened.time_of_a_read =
                    session.device.as_ref().filter(|_| timed).and_then(|device| time_of_a_read(device.path()).ok());
                self.session = Some(session);
                Answer::Ready(opened)
            }
            Err(Halt::Outcome(outcome)) => Answer::Not(outcome),
            Err(Halt::Lab(error)) => Answer::Lab(error.to_string()),
            Err(Halt::Stopped(step)) => Answer::Lab(format!("{step} was stopped")),
        }
    }
}

fn or_outcome<T>(done: Result<T, Halt>, ended: impl FnOnce(Outcome) -> T) -> Result<T, String> {
    match done {
        Ok(reply) => Ok(reply),
        Err(Halt::Outcome(outcome)) => Ok(ended(outcome)),
        Err(Halt::Lab(error)) => Err(error.to_string()),
        Err(Halt::Stopped(step)) => Err(format!("{step} was stopped")),
    }
}

struct Agent(Served);

impl Handler for Agent {
    fn run(&mut self, kind: &str, body: &[u8], context: &Context<'_>) -> Result<Vec<u8>, String> {
        self.0.serve(kind, body, &Host(context))
    }
}

struct Host<'a>(&'a Context<'a>);

impl AgentHost for Host<'_> {
    fn progress(&self, progress: &LoadProgress) {
        self.0.progress(String::from_utf8_lossy(&encode(progress)));
    }

    fn load_module(&self, name: &str) -> Result<(), LoadError> {
        // On the host the kernel loads modules by itself.
        if is_guest() { self.0.load_module(name) } else { Err(LoadError::Unknown(name.to_owned())) }
    }

    fn ask(&self, question: &Question) -> Result<Advice, String> {
        decode(&self.0.ask(&encode(question))?)
    }
}
