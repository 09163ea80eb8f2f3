//! `fstone run`: study → plan → trials → store → report.

use super::{Context, cancel_on_signals, fresh_identity, fresh_seed, now_unix_ns, reaches, repeats, report, sacrifice};
use crate::{
    args::RunArguments,
    documents,
    executors::{self, Chosen},
    exit::Exit,
    paths,
    progress::{Expected, RunProgress},
    recorder::StoreRecorder,
    sources,
    studies::{self, Study},
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_formats::study::{DeviceChoice, Overrides, source_trees};
use fstone_lab::{
    inventory::{self, InventoryContext},
    machine::Machine,
    run::carry_out::{LabOptions, RunEnd},
};
use fstone_model::{Dataset, Inventory, Plan, dataset::Run, study::DeviceSpec};
use fstone_store::{RunSummary, Store};
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

/// How long the device is read before a run, as `hdparm -t` does.
const RAW_READ_TIME: Duration = Duration::from_secs(2);

pub(crate) fn run(context: &Context, arguments: &RunArguments) -> CommandResult {
    if let (true, Some(study)) = (arguments.resume, &arguments.study) {
        return resume(context, arguments, study);
    }
    let names: Vec<String> = match &arguments.study {
        Some(name) => vec![name.clone()],
        None => studies::names().map(str::to_owned).collect(),
    };
    // Every study is read before the first one starts: a typo in the last is not found after hours.
    let mut plans = Vec::new();
    for name in names {
        let study = studies::find(&name).or_exit(Exit::BadInput)?;
        plans.push(plan(context, &study, arguments)?);
    }
    if let Some(source) = &arguments.source
        && plans.iter().all(|plan| source_trees(plan).is_empty())
    {
        let words = format!("--source {}: no step of the study unpacks a source tree", source.display());
        return Err(Failure::new(Exit::BadInput, words));
    }
    if arguments.dry_run {
        for plan in &mut plans {
            sources::provide(plan, arguments.source.as_deref(), sources::Missing::Name)?;
            let seed = match arguments.seed {
                Some(seed) => seed.to_string(),
                None => format!(
                    "{0} (a run of this order: --seed {0}; without it each draws another, unless the study has one)",
                    plan.seed
                ),
            };
            let (cells, trials) = (plan.cells.len(), repeats(plan.repeats));
            let head = format!("{}: {}\n{cells} cells, {trials} trials each, seed {seed}\n\n", plan.study, plan.title);
            let plan = fstone_lab::run::describe::describe(plan, &context.work_directory);
            terminal::print(&format!("{head}{plan}\n"));
        }
        return Ok(Exit::Success);
    }
    sacrifice::confirm(&plans, &arguments.allow_destroy)?;
    let mut exit = Exit::Success;
    let mut agenda = Agenda::of(&plans);
    for plan in plans {
        match carry_out(context, arguments, plan, agenda.next_study())? {
            Exit::Success => {}
            Exit::Interrupted => return Ok(Exit::Interrupted),
            other => exit = other,
        }
        agenda.study_done();
    }
    Ok(exit)
}

/// How long several studies will take, one after the other: as their authors say, corrected by how long those that are
/// done really took.
struct Agenda {
    expected: VecDeque<Option<Duration>>,
    expected_until_now: Duration,
    started: Instant,
}

impl Agenda {
    fn of(plans: &[Plan]) -> Self {
        let expected = plans.iter().map(|plan| plan.expected_duration).collect();
        Self { expected, expected_until_now: Duration::ZERO, started: Instant::now() }
    }

    /// What to expect of the next study and of those after it.
    fn next_study(&self) -> Expected {
        self.expected_after(self.started.elapsed())
    }

    fn expected_after(&self, elapsed: Duration) -> Expected {
        let pace = if self.expected_until_now.is_zero() {
            1.0
        } else {
            elapsed.as_secs_f64() / self.expected_until_now.as_secs_f64()
        };
        let mut studies = self.expected.iter().map(|time| time.map(|time| time.mul_f64(pace)));
        // One study of which nothing is known makes the sum unknown.
        Expected { study: studies.next().flatten(), later: studies.sum() }
    }

    fn study_done(&mut self) {
        self.expected_until_now += self.expected.pop_front().flatten().unwrap_or_default();
    }
}

/// The plan of a study as this command line changes it.
pub(super) fn plan(context: &Context, study: &Study, arguments: &RunArguments) -> Result<Plan, Failure> {
    let device = arguments.device.as_deref().map(str::parse::<DeviceChoice>).transpose();
    let device = device.map_err(|words| Failure::new(Exit::BadInput, format!("--device: {words}")))?;
    let overrides = Overrides {
        quick: arguments.quick,
        duration: arguments.duration,
        repeats: arguments.repeats,
        device,
        device_size: arguments.device_size,
        seed: arguments.seed,
        fresh_seed: Some(fresh_seed()),
        only: arguments.only.clone(),
        variables: arguments.set.clone(),
    };
    let (plan, warnings) = study.compile(&overrides).or_exit(Exit::BadInput)?;
    // What a built-in study does it does on purpose.
    if let Some(warnings) = warnings.filter(|_| !study.is_built_in()) {
        terminal::tell(warnings.to_string().trim_end());
    }
    let directory = plan.cells.iter().find_map(|cell| match &cell.device {
        DeviceSpec::Directory { path } => Some(path.clone()),
        _ => None,
    });
    if let Some(path) = directory {
        return on_directory(context, &plan, path.as_deref());
    }
    match executors::choose(context, arguments, &plan)? {
        Chosen::Plan(plan) => Ok(*plan),
        Chosen::Directory => on_directory(context, &plan, None),
    }
}

/// The plan on the filesystem that is already there.
fn on_directory(context: &Context, plan: &Plan, path: Option<&str>) -> Result<Plan, Failure> {
    let directory = path.map_or_else(|| context.work_directory.clone(), PathBuf::from);
    let name = inventory::filesystem_of(&directory).unwrap_or_else(|| "a filesystem".into());
    Ok(plan.on_directory(&format!("{name}, as it is"), path))
}

fn lab_options(context: &Context, arguments: &RunArguments) -> Result<LabOptions, Failure> {
    Ok(LabOptions {
        work_directory: context.work_directory.clone(),
        allow_destroy: arguments.allow_destroy.clone(),
        measure_null: true,
        patience: LabOptions::PATIENCE,
        closing_limit: LabOptions::CLOSING_LIMIT,
        agent: std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()),
        guests: Some(executors::guests(context, arguments)?),
    })
}

pub(super) fn carry_out(
    context: &Context,
    arguments: &RunArguments,
    mut plan: Plan,
    expected: Expected,
) -> CommandResult {
    let cancel = cancel_on_signals()?;
    sources::provide(&mut plan, arguments.source.as_deref(), sources::Missing::Make)?;
    let mut store = context.open_store()?;

    terminal::tell(&format!(
        "{}: {} cells, {} trials each; seed {}",
        plan.study,
        plan.cells.len(),
        repeats(plan.repeats),
        plan.seed
    ));
    let run = Run {
        id: 0,
        identity: fresh_identity(),
        started_unix_ns: now_unix_ns(),
        finished_unix_ns: None,
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        inventory: take_inventory(context, arguments, &plan)?,
        plan,
    };
    let id = store.begin_run(&run).or_exit(Exit::LabFailed)?;
    reaches::note_begun(&store, id, &run.plan)?;
    let begun = Dataset { run: Run { id, ..run }, trials: Vec::new() };
    trials(context, arguments, &mut store, &begun, expected, None, &cancel)
}

/// Goes on with the last run of a study that has no end.
fn resume(context: &Context, arguments: &RunArguments, study: &str) -> CommandResult {
    let cancel = cancel_on_signals()?;
    let mut store = context.open_store()?;
    let runs = store.runs().or_exit(Exit::LabFailed)?;
    let name = Path::new(study).file_stem().map_or_else(|| study.into(), |stem| stem.to_string_lossy());
    let unfinished =
        |run: &&RunSummary| run.study == name && run.finished_unix_ns.is_none() && run.imported_unix_ns.is_none();
    let Some(last) = runs.iter().filter(unfinished).max_by_key(|run| run.id) else {
        return Err(Failure::new(
            Exit::BadInput,
            format!("there is no unfinished run of {name} in {}", context.store.display()),
        ));
    };
    let dataset = store.dataset(last.id).or_exit(Exit::LabFailed)?;
    reaches::refuse_foreign(context, &store, last.id, &dataset.run.plan)?;
    let (then, now) = (&dataset.run.inventory, take_inventory(context, arguments, &dataset.run.plan)?);
    // Figures of two machines in one table would compare the machines.
    let changed: Vec<String> = [
        ("kernel", &then.kernel, &now.kernel),
        ("host", &then.host, &now.host),
        ("fstone", &then.fstone_commit, &now.fstone_commit),
    ]
    .into_iter()
    .filter(|(_, then, now)| then != now)
    .map(|(what, then, now)| format!("{what}: {then} then, {now} now"))
    .chain(
        then.tools
            .iter()
            .filter(|tool| !now.tools.contains(tool))
            .map(|(tool, version)| format!("{tool}: {version} then")),
    )
    .chain(
        then.settings
            .iter()
            .filter(|(name, _)| !inventory::STATES.contains(&name.as_str()))
            .filter(|setting| !now.settings.contains(setting))
            .map(|(name, value)| format!("{name}: {value} then")),
    )
    .collect();
    let changed = changed.join("; ");
    if !changed.is_empty() && !arguments.changed_machine {
        return Err(Failure::new(
            Exit::CannotHere,
            format!(
                "run {} cannot go on here, the machine has changed ({changed}); start a new run, or add --changed-machine",
                last.id
            ),
        ));
    }
    sacrifice::confirm([&dataset.run.plan], &arguments.allow_destroy)?;
    terminal::tell(&format!("{name}: going on with run {}, {} trials are finished", last.id, dataset.trials.len()));
    let warning = (!changed.is_empty()).then(|| format!("made on another machine than the run began on: {changed}"));
    trials(context, arguments, &mut store, &dataset, Expected::default(), warning, &cancel)
}

/// Carries out what a run still lacks, and shows it.
fn trials(
    context: &Context,
    arguments: &RunArguments,
    store: &mut Store,
    begun: &Dataset,
    expected: Expected,
    warning: Option<String>,
    cancel: &AtomicBool,
) -> CommandResult {
    let id = begun.run.id;
    // With sudo, what is above the work directory belongs to the caller; the work directory itself is root's.
    if let Some(parent) = context.work_directory.parent() {
        paths::create_directory(parent)
            .with_context(|| format!("cannot make {}; name another with --work-directory", parent.display()))
            .or_exit(Exit::LabFailed)?;
    }
    let options = lab_options(context, arguments)?;
    let progress = RunProgress::new(expected);
    let mut recorder = StoreRecorder { store, run: id, warning };
    let end = fstone_lab::run::carry_out::carry_out(
        &begun.run.plan,
        &options,
        &begun.trials,
        &mut recorder,
        &progress,
        cancel,
    );
    progress.finish();
    let end = end.with_context(|| format!("run {id} stopped; finished trials are kept")).or_exit(Exit::LabFailed)?;
    let interrupted = matches!(end, RunEnd::Cancelled);
    if !interrupted {
        store.finish_run(id, now_unix_ns()).or_exit(Exit::LabFailed)?;
        reaches::forget_begun(store, id);
    }
    let dataset = store.dataset(id).or_exit(Exit::LabFailed)?;
    let page = show(context, arguments, store, &dataset)?;
    if interrupted {
        terminal::tell(&format!(
            "Interrupted: everything was undone, {} finished trials are kept as run {id}; `--resume` goes on with it.",
            dataset.trials.len()
        ));
        return Ok(Exit::Interrupted);
    }
    terminal::tell(&format!("Run {id} is in {}; the report: {}", context.store.display(), page.display()));
    let any = dataset.trials.iter().any(|trial| trial.outcome.is_completed());
    Ok(if any { Exit::Success } else { Exit::NothingCompleted })
}

/// The machine as it is before the run, its raw read speed included.
fn take_inventory(context: &Context, arguments: &RunArguments, plan: &Plan) -> Result<Inventory, Failure> {
    let inventory_context = InventoryContext {
        plan,
        work_directory: &context.work_directory,
        fstone_version: env!("CARGO_PKG_VERSION"),
        fstone_commit: env!("FSTONE_COMMIT"),
    };
    let mut inventory = inventory::take(&inventory_context, &*Machine::host().runner);
    inventory.settings.extend(executors::guest_settings(context, arguments, plan)?);
    let device = inventory::named_device(plan);
    match inventory::raw_read(device.unwrap_or(&context.work_directory), RAW_READ_TIME) {
        Ok(read) => inventory.raw_read_bytes_per_second = Some(read.bytes_per_second),
        Err(error) => terminal::tell(&format!("No raw read speed: failed to {error}.")),
    }
    Ok(inventory)
}

/// Prints the table and writes the page, and the index of all pages beside it.
fn show(context: &Context, arguments: &RunArguments, store: &Store, dataset: &Dataset) -> Result<PathBuf, Failure> {
    let options = fstone_report::Options { published: arguments.published };
    let overhead = executors::overhead(dataset);
    terminal::print_document(&fstone_report::terminal(
        dataset,
        &fstone_report::TerminalOptions { width: terminal::width(), color: context.colored(), options },
    ));
    if let Some(overhead) = overhead {
        terminal::print(&format!("{overhead}\n"));
    }
    let directory =
        arguments.output.clone().unwrap_or_else(|| context.store.parent().unwrap_or(Path::new(".")).join("reports"));
    let run = &dataset.run;
    let page = directory.join(report::page_name(&run.plan.study, run.id, &run.identified()));
    documents::write(&page, fstone_report::html(dataset, &options))?;
    report::write_index(store, &directory)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_later_studies_goes_by_what_earlier_ones_took() {
        let minutes = |minutes: u64| Some(Duration::from_secs(60 * minutes));
        let mut agenda = Agenda {
            expected: [minutes(4), minutes(5), minutes(3)].into(),
            expected_until_now: Duration::ZERO,
            started: Instant::now(),
        };
        assert_eq!(agenda.expected_after(Duration::ZERO), Expected { study: minutes(4), later: minutes(8) });
        agenda.study_done();
        let twice_as_long = minutes(8).expect("a time");
        assert_eq!(agenda.expected_after(twice_as_long), Expected { study: minutes(10), later: minutes(6) });
        agenda.expected[1] = None;
        assert_eq!(agenda.expected_after(twice_as_long).later, None);
    }
}
