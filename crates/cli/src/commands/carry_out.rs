//! What new and resumed runs share: options of the lab, the machine's inventory, the trials, and what is shown of them.

use super::{Context, merge, now_unix_ns, program, reaches, report};
use crate::{
    args::RunArguments,
    documents, executors,
    exit::Exit,
    judge::RunJudge,
    launcher,
    live::Live,
    paths,
    progress::{Expected, RunProgress},
    recorder::StoreRecorder,
    terminal::{self, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_lab::{
    agent::GuestOptions,
    inventory::{self, InventoryContext},
    machine::Machine,
    place::{AGED_BENEATH, presence::Presence, work_directory::WorkDirectory},
    run::{
        carry_out::{LabError, LabOptions, RunEnd, carry_out_schedule},
        schedule::Schedule,
    },
    trial::removal_of,
};
use fstone_model::{
    Dataset, Inventory, Plan, Trial,
    study::{DeviceSpec, StepAction},
    text,
};
use fstone_store::Store;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// How long the device is read before a run, as `hdparm -t` does. A debug build, whose figures nobody uses, only shows that it can be done: its
/// tests make hundreds of runs.
const RAW_READ_TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 50 } else { 2000 });

/// So long for a file's blocks, for writing, and for flushes.
const RAW_WRITE_TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 20 } else { 700 });

/// The lab's settings; everything that makes trials comes through here.
pub(super) fn lab_options(
    context: &Context,
    arguments: &RunArguments,
    plan: &Plan,
    presence: Option<Arc<Presence>>,
) -> Result<LabOptions, Failure> {
    refuse_ranks(plan)?;
    let options = laboratory(context, executors::guests(context, arguments, plan)?)?;
    let ages = plan.cells.iter().any(|cell| cell.past().is_some());
    // Its filesystem may have been aged.
    let in_directory = plan.cells.iter().any(|cell| matches!(cell.device, DeviceSpec::Directory { .. }));
    if ages {
        let cache = paths::own_cache();
        paths::create_in_own_cache(&cache)
            .with_context(|| format!("cannot make {}", cache.display()))
            .or_exit(Exit::LabFailed)?;
    }
    Ok(LabOptions {
        aged: (ages || in_directory).then(paths::aged),
        allow_destroy: arguments.allow_destroy.clone(),
        jobs: arguments.jobs,
        presence,
        keep_going: arguments.keep_going,
        ..options
    })
}

/// A plan from another machine, or from another build, may have loads of several ranks.
fn refuse_ranks(plan: &Plan) -> Result<(), Failure> {
    let launched = plan
        .cells
        .iter()
        .flat_map(|cell| &cell.steps)
        .find(|step| matches!(&step.action, StepAction::Load(load) if load.launch.is_some()));
    match (launcher::NO_RANKS, launched) {
        (Some((why, cure)), Some(step)) => {
            Err(Failure::new(Exit::CannotHere, format!("step {:?}: {why}; {cure}", text::line(&step.name))))
        }
        _ => Ok(()),
    }
}

pub(super) fn laboratory(context: &Context, guests: GuestOptions) -> Result<LabOptions, Failure> {
    context.check_named_work_directory()?;
    // With sudo, what is above the work directory belongs to the caller; the work directory itself is root's.
    WorkDirectory::examine(&context.work_directory)
        .context("failed to use the work directory")
        .or_exit(Exit::LabFailed)?;
    if let Some(parent) = context.work_directory.parent() {
        paths::create_directory(parent)
            .with_context(|| format!("cannot make {}; name another with --work-directory", parent.display()))
            .or_exit(Exit::LabFailed)?;
    }
    Ok(LabOptions {
        work_directory: context.work_directory.clone(),
        allow_destroy: Vec::new(),
        measure_null: true,
        patience: LabOptions::PATIENCE,
        closing_limit: LabOptions::CLOSING_LIMIT,
        agent: std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()),
        guests: Some(guests),
        jobs: None,
        presence: None,
        aged: None,
        keep_going: false,
    })
}

/// Joins the runs of this machine; with `--wait`, once no other is in progress. Before anything is measured.
pub(super) fn join(
    context: &Context,
    arguments: &RunArguments,
    cancel: &AtomicBool,
) -> Result<Option<Arc<Presence>>, Failure> {
    let joined = if arguments.wait {
        let waiting = |who: &str| terminal::tell(&format!("Waiting for {}.", text::line(who)));
        match Presence::enter_after_others(&context.presence, cancel, waiting) {
            Ok(None) => return Err(Failure::new(Exit::Interrupted, "interrupted while waiting; nothing was begun")),
            Ok(Some(presence)) => Ok(presence),
            Err(error) => Err(error),
        }
    } else {
        Presence::enter(&context.presence)
    };
    match joined {
        Ok(presence) => Ok(Some(Arc::new(presence))),
        Err(error) if arguments.wait => {
            Err(Failure::new(Exit::LabFailed, format!("cannot wait: {}: {error}", context.presence.display())))
        }
        Err(error) => {
            let path = context.presence.display();
            terminal::tell(&format!("Other runs on this machine will not be noticed: {path}: {error}."));
            Ok(None)
        }
    }
}

pub(super) struct Work<'a> {
    pub(super) context: &'a Context,
    pub(super) arguments: &'a RunArguments,
    pub(super) options: &'a LabOptions,
    pub(super) cancel: &'a AtomicBool,
    pub(super) identity: &'a str,
}

pub(super) struct Done {
    /// Its number; `None` when nothing was recorded.
    pub(super) run: Option<u64>,
    pub(super) work: Exit,
    pub(super) page: Exit,
}

impl Done {
    /// The exit status: the result of the trials takes precedence over whether the page could be written.
    pub(super) const fn exit(&self) -> Exit {
        self.work.else_of(self.page)
    }
}

pub(super) struct Carried {
    /// Its number; `None` when it did not come to its first trial.
    run: Option<u64>,
    all_undone: bool,
    end: Result<RunEnd, Failure>,
}

impl Work<'_> {
    pub(super) fn carry_out(
        &self,
        plan: &Plan,
        finished: &[Trial],
        mut recorder: StoreRecorder<'_>,
        expected: Expected,
    ) -> Carried {
        let progress = if self.arguments.live {
            RunProgress::live(expected, Live::new(plan, finished))
        } else {
            RunProgress::new(expected)
        };
        let progress = progress.watched(self.identity);
        let (options, cancel) = (self.options, self.cancel);
        let schedule = if let Some(blocks) = &self.arguments.blocks {
            Schedule::only(plan, blocks.0.iter().copied(), finished)
        } else if plan.budget.is_some() {
            Schedule::judged(plan, finished, Box::new(RunJudge::new(plan)))
        } else {
            Schedule::new(plan, finished)
        };
        let end = schedule
            .map_err(LabError::from)
            .and_then(|schedule| carry_out_schedule(schedule, options, finished, &mut recorder, &progress, cancel));
        let left_behind = progress.finish();
        for left in &left_behind {
            terminal::tell(&format!("Left behind: {left}."));
        }
        let end = match recorder.run() {
            Some(run) => end.with_context(|| format!("run {run} stopped; finished trials are kept")),
            None => end.context("the run did not start; nothing was recorded"),
        };
        Carried { run: recorder.run(), all_undone: left_behind.is_empty(), end: end.or_exit(Exit::LabFailed) }
    }

    pub(super) fn conclude(&self, store: &mut Store, carried: Carried) -> Result<Done, Failure> {
        let end = carried.end?;
        let Some(id) = carried.run else {
            terminal::tell("Interrupted before the first trial; nothing was recorded.");
            return Ok(Done { run: None, work: Exit::Interrupted, page: Exit::Success });
        };
        // If other blocks of the run are made elsewhere, this was only a part.
        let lacking = match &self.arguments.blocks {
            Some(_) if end == RunEnd::Completed => merge::finish_if_complete(store, id)?,
            _ => Vec::new(),
        };
        if end == RunEnd::Completed && self.arguments.blocks.is_none() {
            store.finish_run(id, now_unix_ns()).or_exit(Exit::LabFailed)?;
            reaches::forget_begun(store, id)();
        }
        let dataset = store.shown(id).or_exit(Exit::LabFailed)?;
        // Its trials are kept, whatever becomes of the page.
        let page = show(self.context, self.arguments, store, &dataset);
        let shown = page.as_ref().map_or_else(terminal::tell_failure, |_| Exit::Success);
        let done = |work| Ok(Done { run: Some(id), work, page: shown });
        match end {
            RunEnd::Completed => {}
            RunEnd::Cancelled => {
                let aged = dataset.run.plan.cells.iter().filter(|cell| cell.past().is_some());
                let aged = aged.filter_map(|cell| match &cell.device {
                    DeviceSpec::Directory { path: Some(path) } => Some(Path::new(path).join(AGED_BENEATH)),
                    _ => None,
                });
                let aged: BTreeSet<_> = aged.filter(|path| path.exists()).collect();
                let undone = if carried.all_undone && aged.is_empty() { "everything was undone, " } else { "" };
                terminal::tell(&format!(
                    "Interrupted: {undone}run {id} keeps its finished trials ({}); `--resume` continues it.",
                    dataset.trials.len()
                ));
                for path in aged {
                    let (there, removal) = (path.display(), removal_of(&path));
                    terminal::tell(&format!("{there} stays, and later runs take it up; `{removal}` removes it."));
                }
                return done(Exit::Interrupted);
            }
            RunEnd::FailedAlike(reason) => {
                terminal::tell(&format!(
                    "Stopped: the first trials of {} failed alike, at {}: {}\n\
                     They are kept as run {id}; `--resume` runs the rest anyway, as `--keep-going` would have done.",
                    match dataset.run.plan.cells.len() {
                        1 => "its only row".to_owned(),
                        rows => format!("all {rows} rows"),
                    },
                    text::line(&reason.step),
                    text::line(reason.words.lines().next().unwrap_or_default())
                ));
                return done(Exit::NothingCompleted);
            }
        }
        if !lacking.is_empty() {
            let lacking = merge::written(&lacking);
            terminal::tell(&format!(
                "Run {id} lacks block(s) {lacking}. Elsewhere: `fstone blocks BUNDLE {lacking}` with what `fstone export {id} BUNDLE` makes, \
                 then `fstone import --into {id}` here; or all of them here, with `--resume`."
            ));
        }
        let store = self.context.store.display();
        let page = page.map_or_else(|_| "it has no page".to_owned(), |page| format!("the report: {}", page.display()));
        terminal::tell(&format!("Run {id} is in {store}; {page}"));
        if let (true, Some(study)) = (self.arguments.quick, &self.arguments.study) {
            let program = program();
            terminal::tell(&format!(
                "Next: {program} report {id} --answer long   (what else it found)\n      \
                 {program} run {study} --dry-run   (the whole study, and how long it takes)\n      \
                 {program} list studies   (other questions)"
            ));
        }
        let any = dataset.trials.iter().any(|trial| trial.outcome.is_completed());
        done(if any { Exit::Success } else { Exit::NothingCompleted })
    }
}

/// Describes the machine, for a command that makes no trials itself.
pub(super) fn take_machine(context: &Context, arguments: &RunArguments, plan: &Plan) -> Result<Inventory, Failure> {
    let inventory_context = InventoryContext {
        plan,
        work_directory: &context.work_directory,
        fstone_version: env!("CARGO_PKG_VERSION"),
        fstone_commit: env!("FSTONE_COMMIT"),
    };
    let mut inventory = inventory::take(&inventory_context, &*Machine::host().runner);
    inventory.settings.extend(executors::guest_settings(context, arguments, plan)?);
    Ok(inventory)
}

/// Describes the machine before the run, including the speed of the device.
pub(super) fn take_inventory(context: &Context, arguments: &RunArguments, plan: &Plan) -> Result<Inventory, Failure> {
    let mut inventory = take_machine(context, arguments, plan)?;
    if !inventory::takes_host_time(plan) {
        return Ok(inventory);
    }
    let device = inventory::named_device(plan);
    match inventory::raw_read(device.unwrap_or(&context.work_directory), RAW_READ_TIME) {
        Ok(read) => inventory.raw_read_bytes_per_second = Some(read.bytes_per_second),
        Err(error) => terminal::tell(&format!("No raw read speed: failed to {error}.")),
    }
    if inventory.raw_read_bytes_per_second.is_some() && inventory::tests_work_directory(plan) {
        match inventory::raw_write(&context.work_directory, RAW_WRITE_TIME) {
            Ok(write) => {
                inventory.raw_write_bytes_per_second = Some(write.bytes_per_second);
                inventory.flushes_per_second = Some(write.flushes_per_second);
            }
            Err(error) => terminal::tell(&format!("No raw write speed: failed to {error}.")),
        }
    }
    Ok(inventory)
}

pub(super) fn show(
    context: &Context,
    arguments: &RunArguments,
    store: &Store,
    dataset: &Dataset,
) -> Result<PathBuf, Failure> {
    let options = fstone_report::Options { published: arguments.published, ..fstone_report::Options::default() };
    let overhead = executors::overhead(dataset);
    terminal::print_document(&fstone_report::terminal(
        dataset,
        &fstone_report::TerminalOptions { width: terminal::width(), color: context.colored(), options },
    ));
    if let Some(overhead) = overhead {
        terminal::print(&format!("{overhead}\n"));
    }
    let directory = arguments.output.clone().unwrap_or_else(|| report::usual_directory(context));
    let run = &dataset.run;
    let page = directory.join(report::page_name(&run.plan.study, run.id, &run.identified()));
    documents::write(&page, fstone_report::html(dataset, &options))?;
    report::write_index(store, &directory, &[])?;
    Ok(page)
}
