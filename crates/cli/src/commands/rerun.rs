//! `fstone rerun`: what a bundle's run did, done again on this machine, and the two compared.
//!
//! A bundle comes from someone else. Its plan is not trusted: the study that is in it is read again like any study file,
//! with the options of its recorded command line, so that what a study may not say a bundle may not either. Devices and
//! directories of the other machine are never used, and programs of the study run only when the user says so.

use super::{
    Context,
    alike::differences,
    destroy,
    reaches::{listed, named_places},
    run,
    stored::{open, without_loads},
};
use crate::{
    args::{Arguments, Command, ExecutorChoice, NamedKernel, RerunArguments, RunArguments},
    exit::Exit,
    progress::Expected,
    sources,
    studies::{self, Study},
    terminal::{self, CommandResult, Failure, OrExit},
};
use clap::Parser as _;
use fstone_analysis::{
    Analysis,
    runs::{CompareOptions, RunComparison, mismatches},
    text::{capitalised, counted},
};
use fstone_formats::study::DeviceChoice;
use fstone_model::{Dataset, Plan, study::DeviceSpec, text, units};
use fstone_report::compare;
use fstone_store::bundle;
use std::time::Duration;

pub(crate) fn rerun(context: &Context, arguments: &RerunArguments) -> CommandResult {
    let mut recorded = bundle::read(&arguments.bundle).or_exit(Exit::BadInput)?;
    let options = options(&recorded, arguments, &arguments.bundle.display().to_string())?;
    let plan = run::plan(context, &Study::recorded(&recorded.run.plan), &options)?;
    refuse_places(&plan, arguments)?;
    run::check_places(context, &options)?;
    let mut told_plan = plan.clone();
    sources::provide(&mut told_plan, options.source.as_deref(), sources::Missing::Name)?;
    announce(&recorded, &told_plan);
    if options.dry_run {
        let described = fstone_lab::run::describe::describe(&told_plan, &context.work_directory);
        let told = listed(&told_plan).map_or_else(String::new, |listed| {
            format!("\n{}\nWithout --dry-run it asks first, or needs --allow-commands.\n", capitalised(&listed))
        });
        terminal::print(&format!("{described}\n{told}"));
        return Ok(Exit::Success);
    }
    permit(&told_plan, arguments.allow_commands)?;
    destroy::confirm(context, [&plan], &options.allow_destroy, &options.allow_destroy_data)?;
    let done = run::carry_out(context, &options, &context.command_line(&options), plan, Expected::default())?;
    let Some(id) = done.run.filter(|_| done.work == Exit::Success) else { return Ok(done.exit()) };
    let store = open(context)?;
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
    Ok(done.exit())
}

/// The options the run was started with, as far as they are the study's affair, and this machine's in place of the rest.
pub(super) fn options(recorded: &Dataset, arguments: &RerunArguments, name: &str) -> Result<RunArguments, Failure> {
    let run = &recorded.run;
    if run.is_anonymous() {
        let words = "it is anonymous, and its command line was left out; ask whoever exported it for a bundle without --anonymous";
        return Err(Failure::new(Exit::CannotHere, format!("cannot repeat {name}: {words}")));
    }
    let unknown = |why: &str| {
        Failure::new(
            Exit::BadInput,
            format!("cannot repeat {name}: its command line is {:?}, {why}", run.command.join(" ")),
        )
    };
    let parsed = Arguments::try_parse_from(&run.command).map_err(|_| unknown("which this fstone does not know"))?;
    let started = match parsed.command {
        Command::Run(started) => *started,
        // As an older fstone recorded it.
        Command::Rerun(_) => {
            return Err(unknown("which does not contain the options; repeat the bundle that it names"));
        }
        _ => return Err(unknown("which is not that of a run")),
    };
    let device = match (&arguments.device, &started.device) {
        (None, Some(there)) if is_a_place(there) => return Err(elsewhere(&format!("{there:?}"))),
        (here, there) => here.clone().or_else(|| there.clone()),
    };
    // Another machine's paths mean nothing here.
    let (elsewhere, kernel): (Vec<_>, Vec<_>) = started.kernel.into_iter().partition(|kernel| match kernel {
        NamedKernel::There(kernel) => kernel.path().is_some(),
        NamedKernel::Tree(_) => true,
    });
    for kernel in elsewhere {
        terminal::tell(&format!("--kernel {}: a path of the other machine, left out.", text::line(&kernel.written())));
    }
    // Where everything was done in the work directory without being asked to, no filesystem is made here.
    let in_place = run.plan.cells.iter().all(|cell| matches!(cell.device, DeviceSpec::Directory { path: None }));
    let executor = match started.executor {
        ExecutorChoice::Directory if arguments.device.is_some() => ExecutorChoice::Auto,
        ExecutorChoice::Auto if in_place && device.is_none() && kernel.is_empty() && !started.exact => {
            ExecutorChoice::Directory
        }
        other => other,
    };
    Ok(RunArguments {
        study: Some(name_of(&run.plan)),
        quick: run.plan.quick,
        duration: started.duration,
        repeats: arguments.repeats.or(started.repeats),
        // Repeats that are asked for now are asked for in its place.
        budget: started.budget.filter(|_| arguments.repeats.is_none()),
        resolution: started.resolution.filter(|_| arguments.repeats.is_none()),
        only: started.only,
        set: started.set,
        device_size: arguments.device_size.or(started.device_size),
        device,
        seed: Some(run.plan.seed),
        executor,
        exact: started.exact,
        kernel,
        model: started.model.map(|model| model.rsplit('/').next().unwrap_or_default().to_owned()),
        charge: started.charge,
        cpu: started.cpu.map(|cpu| cpu.rsplit('/').next().unwrap_or_default().to_owned()),
        perturbed: started.perturbed,
        guest_memory: started.guest_memory,
        published: started.published,
        guest_disk: started.guest_disk,
        keep_going: started.keep_going,
        dry_run: arguments.dry_run,
        allow_destroy: arguments.allow_destroy.clone(),
        allow_destroy_data: arguments.allow_destroy_data.clone(),
        source: arguments.source.clone(),
        output: arguments.output.clone(),
        note: arguments.note.clone(),
        ..RunArguments::default()
    })
}

/// Whether a `--device` names something on the machine where it was typed.
fn is_a_place(device: &str) -> bool {
    matches!(device.parse(), Ok(DeviceChoice::Block(_) | DeviceChoice::Directory(Some(_))))
}

/// What `fstone run` would call the study: one that is not built in is a file, as its report shows it.
fn name_of(plan: &Plan) -> String {
    let is_built_in = studies::names().any(|name| name == plan.study)
        && studies::find(&plan.study).is_ok_and(|study| study.has_text(&plan.source));
    if is_built_in { plan.study.clone() } else { format!("./{}.toml", plan.study) }
}

/// A block device or directory that the bundle names belongs to another machine.
pub(super) fn refuse_places(plan: &Plan, arguments: &RerunArguments) -> Result<(), Failure> {
    let named: Vec<String> = named_places(plan).iter().map(|path| format!("{path:?}")).collect();
    if named.is_empty() || arguments.device.is_some() {
        return Ok(());
    }
    Err(elsewhere(&named.join(", ")))
}

fn elsewhere(places: &str) -> Failure {
    let words = format!(
        "the bundle's study works on {places} of its own machine; name the place on this machine with --device"
    );
    Failure::new(Exit::CannotHere, words)
}

/// Refuses what a bundle would run and read, unless the user permits it: on the command line, or asked at the terminal.
pub(super) fn permit(plan: &Plan, allowed: bool) -> Result<(), Failure> {
    let Some(listed) = listed(plan).filter(|_| !allowed) else { return Ok(()) };
    if terminal::is_interactive() && terminal::agrees(&format!("{}\nMay it?", capitalised(&listed))) {
        return Ok(());
    }
    Err(Failure::new(Exit::CannotHere, format!("{listed}\ncheck them, then permit them with --allow-commands")))
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
    let different = differences(&run.plan, plan);
    if !different.is_empty() {
        terminal::tell(&format!("Not as it was there:\n  {}", different.join("\n  ")));
    }
}
