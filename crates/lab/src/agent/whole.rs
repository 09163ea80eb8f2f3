//! The agent's end of a trial that is one job: every step, by this kernel's own clock, and what only the lab can do asked for
//! in between.

use super::{
    loads::Loads,
    protocol::{Advice, AgentHost, DoneStep, Question, StateCheck, StepEnd, StepReply},
};
use crate::trial::{record::failed, session::Session};
use fstone_model::{Outcome, Step, metric::catalog, outcome::Reason, study::StepAction, units::nanoseconds};
use std::time::Instant;

/// Makes every step up to the first that does not end as it should.
pub(super) fn carry_out(session: &mut Session, steps: &[Step], host: &dyn AgentHost) -> Vec<DoneStep> {
    let clock = Instant::now();
    let mut done = Vec::new();
    let mut loads = Loads::default();
    for (index, step) in steps.iter().enumerate() {
        let started_ns = nanoseconds(clock.elapsed());
        let mut reply = match step.action {
            StepAction::PowerCut(_) => cut_power(session, (index, step), loads.marks(), host),
            _ => session.run_step(step, &|progress| host.progress(&progress)),
        };
        loads.note(step, &reply.figures);
        let is_made = step.action == StepAction::Mkfs && matches!(reply.end, StepEnd::Done);
        if is_made
            && session.is_watched()
            && loads.marks().is_none()
            && let Err(words) = begin_log(session, host)
        {
            reply.end = StepEnd::Outcome(Outcome::Failed(Reason::new(&step.name, words)));
        }
        let well = matches!(reply.end, StepEnd::Done);
        done.push(DoneStep { started_ns, reply });
        if !well {
            break;
        }
    }
    done
}

/// The disk's log begins when the filesystem is made, as where the host makes it: no power is cut before the first load, and
/// what a mkfs writes may be more than the log may hold.
fn begin_log(session: &Session, host: &dyn AgentHost) -> Result<(), String> {
    session.forget_device().map_err(|error| format!("write what mkfs left in memory: {error}"))?;
    match host.ask(&Question::Made)? {
        Advice::GoOn => Ok(()),
        _ => Err("the disk's log could not be begun".to_owned()),
    }
}

/// The step `power-cut`: the lab says when the disk shows a state, and is told what was found in it.
fn cut_power(
    session: &mut Session,
    (index, step): (usize, &Step),
    loads: Option<(u64, u64)>,
    host: &dyn AgentHost,
) -> StepReply {
    let unmounted = session.mounted.then(|| {
        let unmount = Step { action: StepAction::Unmount, ..step.clone() };
        session.run_step(&unmount, &|progress| host.progress(&progress))
    });
    let unmounted = match unmounted {
        Some(reply) if !matches!(reply.end, StepEnd::Done) => return reply,
        unmounted => unmounted,
    };
    let mut reply = session.timed(step, |session, _| {
        let ask = |question| host.ask(&question).map_err(|words| failed(step, words));
        let mut advice = ask(Question::Cut { step: index, loads })?;
        loop {
            advice = match advice {
                Advice::Look { mark } => {
                    let check = StateCheck { step: step.clone(), mark };
                    ask(Question::Found(session.look_at_state(step, &check)?))?
                }
                Advice::GoOn => return Ok(()),
                // Its own words take the place of these.
                Advice::GiveUp => return Err(failed(step, "the lab could not go on".to_owned())),
            };
        }
    });
    reply.figures = vec![catalog::TIME.figure(reply.duration.as_secs_f64())];
    if let Some(unmounted) = unmounted {
        reply.duration += unmounted.duration;
        reply.commands.splice(..0, unmounted.commands);
        reply.warnings.splice(..0, unmounted.warnings);
    }
    reply
}
