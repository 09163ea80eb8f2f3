//! Trials in virtual time: the whole trial is one job of a guest whose time is simulated, on a drive that is a model.
//!
//! Everything is done in the guest, mkfs and check too: what the host does takes the host's time. The steps' times are the
//! guest's own, and its randomness follows from the trial's seed. So a trial of the same plan, kernel and seed has the same
//! figures wherever and whenever it is made; the hash of its requests, which is recorded with it, is the proof.

use super::{
    guest::{BOOT, with_exact_counts},
    protocol::{DoneStep, Prepare, TRIAL, TrialReply, WholeTrial, decode, encode},
};
use crate::trial::{
    bench::{Bench, StepReport},
    host::{Halt, nanoseconds},
};
use fstone_model::{
    Outcome, StepResult, outcome::Reason, result::CommandRecord, study::DeviceSpec, units::format_duration,
};
use fstone_sandbox::exact::{ExactEnd, ExactReport, ExactSpec};

/// The step under whose name the guest itself is recorded.
const GUEST: &str = "guest";

impl Bench<'_, '_> {
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
            prepare: Prepare {
                device: "/dev/vda".to_owned(),
                filesystem: self.job.cell.filesystem.clone(),
                queue: self.job.cell.queue.clone(),
                seed: self.job.seed,
                time_disk: false,
                measure_null: false,
            },
            steps: self.job.cell.steps.clone(),
        };
        let report = spec.run(TRIAL, &encode(&trial), self.host.machine.stop.flag()).map_err(|error| {
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
        for (step, done) in plan.iter().zip(steps) {
            let mut report = StepReport::default();
            let ended = self.take_over(step, done.reply, &mut report);
            let load = report.load.as_deref();
            let figures = with_exact_counts(report.figures, load, &|number| exact.mark(number));
            self.record.steps.push(StepResult {
                step: step.name.clone(),
                started_ns: done.started_ns,
                duration_ns: done.duration_ns,
                commands: report.commands,
                figures,
                load: report.load,
            });
            ended?;
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
