//! The agent's end of a trial that is one job: every step, by this kernel's own clock, and what only the lab can do asked for
//! in between.

use super::{
    loads::Loads,
    protocol::{Advice, AgentHost, DoneStep, Question, StateCheck, StepEnd, StepReply},
};
use crate::trial::{record::failed, session::Session};
use fstone_model::{Outcome, Step, metric::catalog, outcome::Reason, study::StepAction, units::nanoseconds};
use rustix::{
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec, clock_gettime},
};
use std::time::Instant;

/// A kernel whose work takes time has a tick so often (`CONFIG_HZ`).
const TICK_NS: u64 = 10_000_000;

/// Waits for the next tick, and as long after it as the trial began late. What the agent does between steps takes time as well, and
/// depends on how it was compiled: it shall not move what kernel threads do to another side of a tick.
fn wait_for_tick(late_ns: u64) {
    let now = clock_gettime(ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let late_ns = late_ns % TICK_NS;
    let until_ns = (now_ns.saturating_sub(late_ns) / TICK_NS + 1) * TICK_NS + late_ns;
    let until = Timespec { tv_sec: (until_ns / 1_000_000_000) as i64, tv_nsec: (until_ns % 1_000_000_000) as i64 };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}

/// Makes every step up to the first that does not end as it should. `late_ns`: how late the trial began, if the kernel counts its work.
pub(super) fn carry_out(
    session: &mut Session,
    steps: &[Step],
    late_ns: Option<u64>,
    host: &dyn AgentHost,
) -> Vec<DoneStep> {
    let clock = Instant::now();
    let mut done = Vec::new();
    let mut loads = Loads::default();
    for (index, step) in steps.iter().enumerate() {
        if let Some(late_ns) = late_ns {
            wait_for_tick(late_ns);
        }
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
                Advice::Look { mark, check } => {
                    let state = StateCheck { step: step.clone(), mark };
                    let found =
                        if check { session.look_at_state(step, &state) } else { session.mount_state(step, &state) };
                    ask(Question::Found(found?))?
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
