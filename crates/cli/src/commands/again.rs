//! `fstone verify --again`: makes a run's trials in virtual time again, and holds every figure and every request against
//! what was recorded.
//!
//! As in `rerun`, the plan of a bundle is not trusted: the study in it is read again, and what it would run or read on this
//! machine has to be permitted.

use super::{Context, alike::work, cancel_on_signals, carry_out::lab_options, rerun, run};
use crate::{
    args::{RerunArguments, RunArguments, VerifyArguments},
    executors,
    exit::Exit,
    paths,
    progress::{Expected, RunProgress},
    sources,
    studies::Study,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_analysis::{profile, text::counted};
use fstone_files::OwnDirectory;
use fstone_lab::{
    inventory::{self, InventoryContext},
    machine::Machine,
    run::{
        carry_out::{LabError, Recorder, RecorderError, RunEnd, carry_out_schedule},
        schedule::Schedule,
    },
    trial::DIGEST,
};
use fstone_model::{Dataset, Figure, Plan, StepResult, Trial, metric::catalog, result::TrialId, text};
use std::sync::atomic::{AtomicBool, Ordering};

/// What the name of the directory begins with in which aged filesystems are for as long as it takes.
const AGED_ANEW: &str = "aged-anew-";
/// The step under which a guest in virtual time is recorded, with the hash of its requests.
const GUEST: &str = "guest";

pub(super) fn again(context: &Context, arguments: &VerifyArguments, recorded: &Dataset) -> CommandResult {
    let run = &recorded.run;
    if let Some(cell) = run.plan.cells.iter().find(|cell| !cell.kernel.is_exact()) {
        let words = format!(
            "{}: only trials in virtual time come out the same again, and {} was not one; `fstone rerun` repeats a run and compares it by its intervals",
            arguments.what,
            text::line(&cell.label)
        );
        return Err(Failure::new(Exit::BadInput, words));
    }
    let asked = RerunArguments {
        bundle: (&arguments.what).into(),
        allow_commands: arguments.allow_commands,
        ..RerunArguments::default()
    };
    let options =
        RunArguments { jobs: arguments.jobs, ..rerun::options(recorded, &asked, &text::line(&arguments.what))? };
    let mut plan = run::plan(context, &Study::recorded(&run.plan), &options)?;
    rerun::refuse_places(&plan, &asked)?;
    rerun::permit(&plan, arguments.allow_commands)?;
    sources::provide(&mut plan, None, sources::Missing::Make)?;
    let changed = differences(context, &options, recorded, &plan)?;

    let cancel = cancel_on_signals()?;
    let progress = RunProgress::new(Expected::default());
    let mut against = Against { recorded, cancel: &cancel, trials: 0, figures: 0, difference: None };
    let mut lab = lab_options(context, &options, &plan, None)?;
    // What is kept proves nothing: filesystems are aged anew, where none is kept.
    let cache = paths::own_cache();
    let anew = lab.aged.as_ref().map(|_| {
        OwnDirectory::remove_left(&cache, AGED_ANEW);
        OwnDirectory::make(&cache, AGED_ANEW)
    });
    let anew = anew.transpose().with_context(|| format!("cannot make a directory in {}", cache.display()));
    let anew = anew.or_exit(Exit::LabFailed)?;
    lab.aged = anew.as_ref().map(|anew| anew.path().to_owned());
    // Those that were made, whatever rule or budget had decided which.
    let trials = recorded.trials.iter().map(|trial| trial.id);
    let schedule = Schedule::exactly(&plan, trials).map_err(LabError::from);
    let end = schedule.and_then(|schedule| carry_out_schedule(schedule, &lab, &[], &mut against, &progress, &cancel));
    progress.finish();
    let Against { trials, figures, difference, .. } = against;
    if end.or_exit(Exit::LabFailed)? == RunEnd::Cancelled && difference.is_none() && trials < recorded.trials.len() {
        return Ok(Exit::Interrupted);
    }
    let missing = recorded.trials.len().saturating_sub(trials);
    let difference = difference.or_else(|| (missing > 0).then(|| format!("{missing} recorded trials were not made")));
    match difference {
        None => {
            terminal::print(&format!(
                "Repeated: {}. {}, and the requests to the drive with their times, are the same to the last bit.\n",
                counted(trials, "trial"),
                counted(figures, "figure")
            ));
            Ok(Exit::Success)
        }
        Some(difference) => {
            let mut told = format!("! {}\n", text::line(&difference));
            for change in &changed {
                told.push_str(&format!("  not as recorded: {}\n", text::line(change)));
            }
            terminal::print(&told);
            Ok(Exit::Regression)
        }
    }
}

/// What differs between here and there. Without the same work and the same kernel there is nothing to verify; other things,
/// such as a tool's version, explain a difference if there is one.
fn differences(
    context: &Context,
    options: &RunArguments,
    recorded: &Dataset,
    plan: &Plan,
) -> Result<Vec<String>, Failure> {
    let run = &recorded.run;
    let there = &run.inventory;
    let fstone = format!("{} ({})", there.fstone_version, there.fstone_commit);
    let cannot = |words: String| Err(Failure::new(Exit::CannotHere, words));
    let same = plan.cells.len() == run.plan.cells.len()
        && plan.seed == run.plan.seed
        && plan.cells.iter().zip(&run.plan.cells).all(|(here, there)| work(here) == work(there));
    if !same {
        return cannot(format!(
            "this fstone makes a different plan from the recorded study than fstone {fstone} did; verify it with that version"
        ));
    }
    let mut changed = Vec::new();
    for (name, value) in executors::guest_settings(context, options, plan)? {
        let Some((_, before)) = there.settings.iter().find(|(known, _)| *known == name) else { continue };
        if *before == value {
            continue;
        }
        if name.starts_with("kernel ") && sha256(before) != sha256(&value) {
            return cannot(format!(
                "{name} is a different build here: {value}; the recorded one is {before}. Build that one (fstone kernel build)"
            ));
        }
        changed.push(format!("{name}: {before} then, {value} now"));
    }
    let looked = InventoryContext {
        plan,
        work_directory: &context.work_directory,
        fstone_version: env!("CARGO_PKG_VERSION"),
        fstone_commit: env!("FSTONE_COMMIT"),
    };
    let here = inventory::take(&looked, &*Machine::host().runner);
    for (tool, version) in &there.tools {
        if let Some((_, now)) = here.tools.iter().find(|(known, now)| known == tool && now != version) {
            changed.push(format!("{tool}: {version} then, {now} now"));
        }
    }
    if there.fstone_commit != env!("FSTONE_COMMIT") {
        changed.push(format!("fstone: {fstone} then, {} ({}) now", env!("CARGO_PKG_VERSION"), env!("FSTONE_COMMIT")));
    }
    Ok(changed)
}

/// The hash at the end of what was recorded of a kernel.
fn sha256(told: &str) -> &str {
    told.rsplit_once("sha256 ").map_or("", |(_, digest)| digest)
}

/// Compares each trial with the recorded one, and ends the run at the first difference.
struct Against<'a> {
    recorded: &'a Dataset,
    cancel: &'a AtomicBool,
    trials: usize,
    figures: usize,
    difference: Option<String>,
}

impl Recorder for Against<'_> {
    fn trial_started(&mut self, _: TrialId, _: u32) -> Result<(), RecorderError> {
        Ok(())
    }

    fn trial_finished(&mut self, trial: &Trial) -> Result<(), RecorderError> {
        let Some(before) = self.recorded.trials.iter().find(|other| other.id == trial.id) else { return Ok(()) };
        if self.difference.is_some() {
            return Ok(());
        }
        self.trials += 1;
        match first_difference(before, trial) {
            Ok(figures) => self.figures += figures,
            Err(what) => {
                let cell = &self.recorded.run.plan.cells[trial.id.cell as usize];
                self.difference = Some(format!("{}, trial {}: {what}", cell.label, trial.id.number()));
            }
        }
        if self.difference.is_some() {
            self.cancel.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// The function of the kernel that did the most more or less, if its work was counted.
fn function_at_fault(before: &StepResult, now: &StepResult) -> String {
    let [before, now] = [before, now].map(|step| profile::of_step("", step));
    let change = before.zip(now).and_then(|(before, now)| profile::changes(&before, &now).into_iter().next());
    change.map_or_else(String::new, |change| format!(" (most of it in {})", text::line(&change.function)))
}

/// That of an aged image, unless it was recorded without or was left out of a bundle.
fn digest(step: &StepResult) -> Option<&str> {
    let command = step.commands.iter().find(|command| command.argv == [DIGEST])?;
    Some(command.output_tail.as_str()).filter(|digest| !digest.is_empty())
}

/// How many figures are the same; `Err` is the first difference.
fn first_difference(before: &Trial, now: &Trial) -> Result<usize, String> {
    if before.seed != now.seed {
        return Err(format!("its seed was {}, and is {} now", before.seed, now.seed));
    }
    // Words may name this machine's places.
    let ended = |trial: &Trial| (trial.outcome.word(), trial.outcome.reason().map(|reason| reason.step.clone()));
    if ended(before) != ended(now) {
        return Err(format!("it {} then, and {} now", before.outcome.word(), now.outcome.word()));
    }
    let names = |trial: &Trial| trial.steps.iter().map(|step| step.step.clone()).collect::<Vec<_>>();
    if names(before) != names(now) {
        return Err(format!("its steps were {:?}, and are {:?} now", names(before), names(now)));
    }
    let mut same = 0;
    for (before, now_step) in before.steps.iter().zip(&now.steps) {
        // Older runs have one that follows from the host.
        fn exact(step: &StepResult) -> impl Iterator<Item = &Figure> {
            step.figures.iter().filter(|figure| figure.metric != catalog::MAXIMUM_RESIDENT_BYTES.name)
        }
        if !exact(before).map(|figure| &figure.metric).eq(exact(now_step).map(|figure| &figure.metric)) {
            return Err(format!("step {} has other figures", before.step));
        }
        for (before_figure, now) in exact(before).zip(exact(now_step)) {
            if before_figure.value.to_bits() != now.value.to_bits() {
                return Err(format!(
                    "step {}, {}: {} then, {} now{}",
                    before.step,
                    before_figure.metric,
                    before_figure.value,
                    now.value,
                    function_at_fault(before, now_step)
                ));
            }
            same += 1;
        }
        if let (Some(then), Some(now)) = (digest(before), digest(now_step))
            && then != now
        {
            return Err(format!("step {}: the image's SHA-256 was {then}, and is {now} now", before.step));
        }
        // Last, for a figure says more than a hash.
        let told = |step: &StepResult| step.commands.first().map(|command| command.output_tail.clone());
        if before.step == GUEST && told(before) != told(now_step) {
            let [before, now] = [told(before), told(now_step)].map(Option::unwrap_or_default);
            return Err(format!("the guest took {before} then, {now} now"));
        }
    }
    Ok(same)
}
