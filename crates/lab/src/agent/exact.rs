//! Trials in virtual time: the whole trial is one job of a guest whose time is simulated, on a drive that is a model.
//!
//! Everything is done in the guest, mkfs and check too: what the host does takes the host's time. The steps' times are the
//! guest's own, and its randomness follows from the trial's seed. So a trial of the same plan, kernel and seed has the same
//! figures wherever and whenever it is made; the hash of its requests, which is recorded with it, is the proof.

use super::{
    BOOT, DEFAULT_MODEL, GuestOptions, GuestSeat,
    counts::{count_exactly, without_the_hosts},
    guest::{named_paths, recordings},
    protocol::{DoneStep, Opening, StepEnd, TRIAL, TrialReply, WholeTrial, decode, encode},
};
use crate::{
    filesystem,
    stop::Stop,
    trial::{
        Job,
        record::{Halt, Record, skipped},
        watch::Watch,
    },
};
use fstone_drive::Model;
use fstone_model::{
    Outcome, Step, StepResult,
    outcome::Reason,
    result::{CommandRecord, KERNEL_WORK, Perturbation},
    study::{DeviceSpec, StepAction},
    units::{format_bytes, format_duration, nanoseconds},
};
use fstone_sandbox::{
    agent::EXCHANGE,
    exact::{Attendant, ExactEnd, ExactReport, ExactSpec},
    guest::{Ending, Waiting},
};
use std::{io, os::unix::fs::symlink, path::Path, sync::Arc, time::Duration};

/// The step under whose name the guest itself is recorded.
const GUEST: &str = "guest";

pub(crate) fn simulate(
    seat: &mut GuestSeat,
    &Job { cell, id, seed, .. }: &Job<'_>,
    options: &GuestOptions,
    (watch, stop): (&Watch<'_>, &Stop),
    record: &mut Record,
    attendant: &mut dyn Attendant,
) -> Result<Vec<DoneStep>, Halt> {
    let DeviceSpec::Loop { sector_bytes, model, .. } = &cell.device else {
        return Err(skipped(BOOT, "a drive that is simulated is an image: device = { model = …, size = … }".into()));
    };
    let name = model.as_deref().unwrap_or(DEFAULT_MODEL);
    let own = options.models.iter().find(|(known, _)| known == name);
    let model = own
        .map_or_else(|| Model::find(name), |(_, model)| Ok(model.clone()))
        .map_err(|error| Halt::Outcome(Outcome::Refused(Reason::new(BOOT, format!("the model {name}: {error}")))))?;
    let perturbed = id.perturbation();
    let spec = ExactSpec {
        memory_bytes: perturbed.map_or(options.memory_bytes, |one| one.memory_bytes(options.memory_bytes)),
        sector_bytes: *sector_bytes,
        seed,
        charge: options.charge,
        processor: options.processor.clone(),
        log: seat.log(cell),
        base: seat.base.clone(),
        readable: named_paths(cell),
        needed: recordings(cell).collect(),
        ..ExactSpec::new(seat.kernel.binary.clone(), &options.agent, &seat.image, &seat.directory, model)
    };
    let mut opening = Opening { time_disk: false, ..seat.opening(cell, seed, options, false) };
    if let Some(filesystem) = filesystem::find(&cell.filesystem.kind) {
        opening.filesystem.mkfs = filesystem.seeded(&cell.filesystem.mkfs, seed);
    }
    let delay_ns = perturbed.map_or(0, Perturbation::delay_ns);
    let steps = with_recordings(&cell.steps, &seat.directory).map_err(|error| {
        Halt::Outcome(Outcome::Failed(Reason::new(BOOT, format!("link to the recording: {error}"))))
    })?;
    let trial = WholeTrial { opening, steps, delay_ns, counts_work: seat.kernel.counts };
    let ran = watch.over(|| spec.run_attended(TRIAL, &encode(&trial), stop.flag(), Some(attendant)));
    let report = ran.map_err(|error| {
        let words = format!("failed to boot a guest: {error}");
        Halt::Outcome(Outcome::Failed(Reason::new(BOOT, words)))
    })?;
    record.steps.push(what_it_was(&spec, perturbed, seat.kernel.counts, &report));
    record.warnings.extend(report.not_enforced.clone());
    seat.stillborn = Some(report.console_log.clone());
    let mut steps = match &report.end {
        ExactEnd::Done(body) => match decode(body) {
            Ok(TrialReply::Done(steps)) => steps,
            Ok(TrialReply::Not(outcome)) => return Err(Halt::Outcome(outcome)),
            Err(words) => return Err(Halt::Outcome(Outcome::Failed(Reason::new(BOOT, words)))),
        },
        ExactEnd::Failed(words) => return Err(Halt::Outcome(Outcome::Failed(Reason::new(GUEST, words)))),
        ExactEnd::GuestEnded(ending) => return Err(Halt::Outcome(with_cure(ending, ending.outcome(GUEST), &spec))),
        ExactEnd::Stopped => return Err(Halt::Stopped(GUEST.to_owned())),
    };
    let (told, planned) = (steps.len(), cell.steps.len());
    let ended_well = steps.last().is_none_or(|last| matches!(last.reply.end, StepEnd::Done));
    if told > planned || (ended_well && told < planned) {
        let words = format!("it told of {told} steps, and the trial has {planned}");
        return Err(Halt::Outcome(Outcome::Failed(Reason::new(GUEST, words))));
    }
    for step in &mut steps {
        count_exactly(&mut step.reply, &|number| report.mark(number));
        without_the_hosts(&mut step.reply);
        // Once for each row: some ten thousand bytes a step.
        if perturbed.is_some() || id.repetition > options.first_block {
            step.reply.commands.retain(|command| command.argv != [KERNEL_WORK]);
        }
    }
    Ok(steps)
}

/// The steps with recordings by names in the guest's directory, which are the same wherever they are on the host.
fn with_recordings(steps: &[Step], directory: &Path) -> io::Result<Vec<Step>> {
    let mut steps = steps.to_vec();
    for (number, step) in steps.iter_mut().enumerate() {
        if let StepAction::Load(load) = &mut step.action
            && let Some(replay) = &mut Arc::make_mut(load).replay
        {
            let name = format!("recording-{number}");
            symlink(&replay.file, directory.join(&name))?;
            replay.file = format!("{EXCHANGE}/{name}");
        }
    }
    Ok(steps)
}

/// A guest that computes without end has one likely cause: nothing in it takes virtual time.
fn with_cure(ending: &Ending, outcome: Outcome, spec: &ExactSpec) -> Outcome {
    match (ending, outcome) {
        (Ending::Hung { waiting: Waiting::Heartbeat, .. }, Outcome::Hung(reason)) if spec.charge.is_zero() => {
            Outcome::Hung(reason.with_cure("system calls take no virtual time here, so a load by time may never end: leave --charge out"))
        }
        (Ending::Hung { waiting: Waiting::Heartbeat, .. }, Outcome::Hung(reason)) => Outcome::Hung(reason.with_cure(
            "a program that neither makes system calls nor reads the clock takes no virtual time: give it an amount, not a time",
        )),
        (_, outcome) => outcome,
    }
}

fn what_it_was(spec: &ExactSpec, perturbed: Option<Perturbation>, counts: bool, report: &ExactReport) -> StepResult {
    let counted = &report.counters;
    let requests = counted.reads + counted.writes + counted.flushes + counted.discards;
    let charge = if spec.charge.is_zero() { "nothing".to_owned() } else { format_duration(spec.charge) };
    let output_tail = format!(
        "{} of virtual time, {requests} requests, trace {}",
        format_duration(report.virtual_time),
        report.trace
    );
    let mut argv = vec![
        spec.kernel.display().to_string(),
        format!("model={}", spec.model.name()),
        format!("seed={}", spec.seed),
        format!("system call={charge}"),
    ];
    argv.extend(spec.processor.as_ref().map(|processor| format!("processor={}", processor.name())));
    if let Some(perturbed) = perturbed {
        let later = format_duration(Duration::from_nanos(perturbed.delay_ns()));
        let memory = format_bytes(spec.memory_bytes);
        let threads = if counts { "" } else { ", threads of loads yield by chance" };
        argv.push(format!("perturbed: {memory} of memory, work starts {later} later{threads}"));
    }
    StepResult {
        step: GUEST.to_owned(),
        started_ns: 0,
        duration_ns: nanoseconds(report.virtual_time),
        commands: vec![CommandRecord { argv, status: None, duration_ns: nanoseconds(report.real_time), output_tail }],
        figures: Vec::new(),
        load: None,
    }
}
