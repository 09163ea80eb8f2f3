//! `fstone rerun`: what a bundle's run did, done again on this machine, and the two compared.
//!
//! A bundle comes from somebody else. Its plan is not trusted: the study that is in it is read again like any study file,
//! with the options of its recorded command line, so that what a study may not say a bundle may not either. Devices and
//! directories of the other machine are never used, and programs of the study run only when the user says so.

use super::{
    Context,
    compare::{open, without_loads},
    reaches::{listed, named_places},
    run::{self, carry_out},
    sacrifice,
};
use crate::{
    args::{Arguments, Command, RerunArguments, RunArguments},
    exit::Exit,
    progress::Expected,
    studies::Study,
    terminal::{self, CommandResult, Failure, OrExit},
};
use clap::Parser as _;
use fstone_analysis::{
    Analysis,
    runs::{CompareOptions, RunComparison, mismatches},
    text::counted,
};
use fstone_model::{Dataset, Plan, text, units};
use fstone_report::compare;
use fstone_store::bundle;
use std::time::Duration;

pub(crate) fn rerun(context: &Context, arguments: &RerunArguments) -> CommandResult {
    let mut recorded = bundle::read(&arguments.bundle).or_exit(Exit::BadInput)?;
    let options = options(&recorded, arguments, &arguments.bundle.display().to_string())?;
    let plan = run::plan(context, &Study::recorded(&recorded.run.plan), &options)?;
    refuse_places(&plan, arguments)?;
    announce(&recorded, &plan);
    if options.dry_run {
        let described = fstone_lab::run::describe::describe(&plan, &context.work_directory);
        let told = listed(&plan)
            .map_or_else(String::new, |listed| format!("\n{listed}\nIt asks, or needs --allow-commands.\n"));
        terminal::print(&format!("{described}\n{told}"));
        return Ok(Exit::Success);
    }
    permit(&plan, arguments.allow_commands)?;
    sacrifice::confirm(context, [&plan], &options.allow_destroy)?;
    let study = plan.study.clone();
    let exit = carry_out(context, &options, &run::own_command(), plan, Expected::default())?;
    if exit != Exit::Success {
        return Ok(exit);
    }
    let store = open(context)?;
    let runs = store.runs().or_exit(Exit::LabFailed)?;
    let Some(id) = runs.iter().rfind(|run| run.study == study).map(|run| run.id) else { return Ok(exit) };
    let again = store.figures(id).or_exit(Exit::LabFailed)?;
    without_loads(&mut recorded);
    let mut text = String::from("\n");
    for mismatch in mismatches(&recorded, &again) {
        text.push_str(&format!(
            "Not the same {}: {}; here {}.\n",
            mismatch.setting.word(),
            mismatch.baseline,
            mismatch.other
        ));
    }
    let (first, second) = (Analysis::of(&recorded), Analysis::of(&again));
    let names =
        (format!("the bundle (run {} of {})", recorded.run.id, recorded.run.inventory.host), format!("run {id} here"));
    let comparison = RunComparison::of((&first, &names.0), (&second, &names.1), &CompareOptions::default());
    terminal::print(&text);
    terminal::print_document(&compare::terminal(&comparison, terminal::width(), context.colored()));
    Ok(Exit::Success)
}

/// The options the run was started with, as far as they are the study's affair, and this machine's in place of the rest.
pub(super) fn options(recorded: &Dataset, arguments: &RerunArguments, name: &str) -> Result<RunArguments, Failure> {
    let run = &recorded.run;
    let unknown = |why: &str| {
        Failure::new(
            Exit::BadInput,
            format!("cannot repeat {name}: its command line is {:?}, {why}", run.command.join(" ")),
        )
    };
    let parsed = Arguments::try_parse_from(&run.command).map_err(|_| unknown("which this fstone does not know"))?;
    let started = match parsed.command {
        Command::Run(started) => *started,
        // A run that itself repeated a bundle: the study in the bundle has all there is to say.
        Command::Rerun(_) => RunArguments::default(),
        _ => return Err(unknown("which is not that of a run")),
    };
    Ok(RunArguments {
        study: Some(run.plan.study.clone()),
        quick: run.plan.quick,
        duration: started.duration,
        repeats: arguments.repeats.or(started.repeats),
        only: started.only,
        set: started.set,
        device_size: arguments.device_size.or(started.device_size),
        // "loop" and "zram" mean the same here; a path does not.
        device: arguments.device.clone().or(started.device.filter(|device| matches!(device.as_str(), "loop" | "zram"))),
        seed: Some(run.plan.seed),
        exact: started.exact,
        // Another machine's paths mean nothing here.
        kernel: started.kernel.into_iter().filter(|kernel| !kernel.written().contains('/')).collect(),
        model: started.model.map(|model| model.rsplit('/').next().unwrap_or_default().to_owned()),
        charge: started.charge,
        guest_memory: started.guest_memory,
        dry_run: arguments.dry_run,
        allow_destroy: arguments.allow_destroy.clone(),
        source: arguments.source.clone(),
        output: arguments.output.clone(),
        note: arguments.note.clone(),
        ..RunArguments::default()
    })
}

/// A block device or directory that the bundle names is another machine's.
pub(super) fn refuse_places(plan: &Plan, arguments: &RerunArguments) -> Result<(), Failure> {
    let named: Vec<String> = named_places(plan).iter().map(|path| format!("{path:?}")).collect();
    if named.is_empty() || arguments.device.is_some() {
        return Ok(());
    }
    let words = format!(
        "the bundle's study works on {} of its own machine; say where to work here with --device",
        named.join(", ")
    );
    Err(Failure::new(Exit::CannotHere, words))
}

/// Refuses what a bundle would run and read, unless the user permits it: on the command line, or asked at the terminal.
pub(super) fn permit(plan: &Plan, allowed: bool) -> Result<(), Failure> {
    let Some(listed) = listed(plan).filter(|_| !allowed) else { return Ok(()) };
    if terminal::is_interactive() && terminal::agrees(&format!("{listed}\nMay it?")) {
        return Ok(());
    }
    Err(Failure::new(Exit::CannotHere, format!("{listed}\nLook at them, and permit them with --allow-commands")))
}

fn announce(recorded: &Dataset, plan: &Plan) {
    let run = &recorded.run;
    let took = run.finished_unix_ns.map_or_else(
        || "did not finish".to_owned(),
        |end| format!("took {}", units::format_duration(Duration::from_nanos(end.saturating_sub(run.started_unix_ns)))),
    );
    terminal::tell(&format!(
        "Repeating {} of {}: {}, {} in all, {took} there.",
        text::line(&run.plan.title),
        text::line(&run.inventory.host),
        counted(plan.cells.len(), "cell"),
        counted(recorded.trials.len(), "trial")
    ));
    if plan.cells.len() != run.plan.cells.len() {
        terminal::tell(&format!(
            "The plan there had {}: this fstone, or this user, makes another one of the study.",
            counted(run.plan.cells.len(), "cell")
        ));
    }
}
