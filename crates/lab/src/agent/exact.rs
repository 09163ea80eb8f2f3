//! Trials in virtual time: the whole trial is one job of a guest whose time is simulated, on a drive that is a model.
//!
//! Everything is done in the guest, mkfs and check too: what the host does takes the host's time. The steps' times are the
//! guest's own, and its randomness follows from the trial's seed. So a trial of the same plan, kernel and seed has the same
//! figures wherever and whenever it is made; the hash of its requests, which is recorded with it, is the proof.

use super::{
    guest::{BOOT, GUEST_PLACE, with_exact_counts},
    protocol::{DoneStep, Ground, Opening, StepEnd, TRIAL, TrialReply, WholeTrial, decode, encode},
};
use crate::{
    place::device::Purpose,
    trial::{
        executor::{Making, Whom},
        record::{Halt, nanoseconds},
        watch::Watch,
    },
};
use fstone_model::{
    Outcome, StepResult, outcome::Reason, result::CommandRecord, study::DeviceSpec, units::format_duration,
};
use fstone_sandbox::exact::{ExactEnd, ExactReport, ExactSpec};

/// The step under whose name the guest itself is recorded.
const GUEST: &str = "guest";

impl Making<'_, '_> {
    /// Makes the whole trial in a guest.
    pub(crate) fn simulate(&mut self) -> Result<(), Halt> {
        let options = self.options()?;
        let seat = self.guest.as_ref().expect("set up with a guest");
        let DeviceSpec::Loop { sector_bytes, .. } = self.job.cell.device else {
            let words = "a drive that is simulated is an image: device = { loop = … }";
            return Err(Halt::Outcome(Outcome::Skipped(Reason::new(BOOT, words))));
        };
        let spec = ExactSpec {
            memory_bytes: options.memory_bytes,
            sector_bytes,
            seed: self.job.seed,
            charge: options.charge,
            ..ExactSpec::new(
                seat.kernel.binary.clone(),
                &options.agent,
                &seat.image,
                &seat.directory,
                options.model.clone(),
            )
        };
        let trial = WholeTrial {
            opening: Opening {
                ground: Ground::Device {
                    path: "/dev/vda".into(),
                    purpose: Purpose::GuestDisk,
                    place: GUEST_PLACE.into(),
                },
                mounts: true,
                filesystem: self.job.cell.filesystem.clone(),
                queue: self.job.cell.queue.clone(),
                seed: self.job.seed,
                time_disk: false,
                measure_null: false,
            },
            steps: self.job.cell.steps.clone(),
        };
        let stop = &self.host.machine.stop;
        let watch = Watch { stop, cancel: Some(self.host.cancel), limit: None, gauge: self.gauge.as_ref() };
        let ran = watch.over(|| spec.run(TRIAL, &encode(&trial), stop.flag()));
        let report = ran.map_err(|error| {
            let words = format!("failed to boot a guest: {error}");
            Halt::Outcome(Outcome::Failed(Reason::new(BOOT, words)))
        })?;
        self.record.steps.push(what_it_was(&spec, &report));
        if let Some(guest) = &mut self.guest {
            guest.stillborn = Some(report.console_log.clone());
        }
        match &report.end {
            ExactEnd::Done(body) => match decode(body) {
                Ok(TrialReply::Done(steps)) => self.take_all_over(steps, &report),
                Ok(TrialReply::Not(outcome)) => Err(Halt::Outcome(outcome)),
                Err(words) => Err(Halt::Outcome(Outcome::Failed(Reason::new(BOOT, words)))),
            },
            ExactEnd::Failed(words) => Err(Halt::Outcome(Outcome::Failed(Reason::new(GUEST, words)))),
            ExactEnd::GuestEnded(ending) => Err(Halt::Outcome(ending.outcome(GUEST))),
            ExactEnd::Stopped => Err(Halt::Stopped(GUEST.to_owned())),
        }
    }

    fn take_all_over(&mut self, steps: Vec<DoneStep>, exact: &ExactReport) -> Result<(), Halt> {
        let plan = self.job.cell.steps.clone();
        let (told, ended_well) = (steps.len(), steps.last().is_none_or(|last| matches!(last.reply.end, StepEnd::Done)));
        if told > plan.len() || (ended_well && told < plan.len()) {
            let words = format!("it told of {told} steps, and the trial has {}", plan.len());
            return Err(Halt::Outcome(Outcome::Failed(Reason::new(GUEST, words))));
        }
        for (step, done) in plan.iter().zip(steps) {
            let reply = self.take_over(done.reply, Whom::Guest)?;
            let load = reply.load.as_deref();
            let figures = with_exact_counts(reply.figures, load, &|number| exact.mark(number));
            self.record.steps.push(StepResult {
                step: step.name.clone(),
                started_ns: done.started_ns,
                duration_ns: nanoseconds(reply.duration),
                commands: reply.commands,
                figures,
                load: reply.load,
            });
            self.verdict(step, Whom::Guest, reply.end)?;
        }
        Ok(())
    }
}

/// The guest itself as a step: what it was made of, and the hash of all that it asked its drive.
fn what_it_was(spec: &ExactSpec, report: &ExactReport) -> StepResult {
    let counted = &report.counters;
    let requests = counted.reads + counted.writes + counted.flushes + counted.discards;
    let charge = if spec.charge.is_zero() { "nothing".to_owned() } else { format_duration(spec.charge) };
    let output_tail = format!(
        "{} of virtual time, {requests} requests, trace {}",
        format_duration(report.virtual_time),
        report.trace
    );
    let argv = [
        spec.kernel.display().to_string(),
        format!("model={}", spec.model.name()),
        format!("seed={}", spec.seed),
        format!("system call={charge}"),
    ];
    StepResult {
        step: GUEST.to_owned(),
        started_ns: 0,
        duration_ns: nanoseconds(report.virtual_time),
        commands: vec![CommandRecord {
            argv: argv.to_vec(),
            status: None,
            duration_ns: nanoseconds(report.real_time),
            output_tail,
        }],
        figures: Vec::new(),
        load: None,
    }
}
