//! `fstone run --slurm`: whole blocks become tasks of a job array and come back as bundles.
//!
//! The process that began the run is the only one that opens its store: a task has its plan from a file and leaves its block in
//! another one, under a name that only one attempt can have. A task that Slurm lost, killed or moved is made again, and what
//! was merged once is never merged again.

mod cluster;
mod dispatcher;
mod home;
mod left;
mod options;

use super::{
    Context, cancel_on_signals,
    carry_out::{Done, show, take_machine},
    fresh_identity,
    merge::{finish_if_complete, incomplete},
    now_unix_ns, reaches,
    stored::begun_with,
    unfinished,
};
use crate::{
    args::RunArguments,
    exit::Exit,
    sources,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use dispatcher::{Dispatcher, End};
use fstone_analysis::text::counted;
use fstone_lab::place::holder::this_process;
use fstone_model::{Plan, dataset::Run, study::DeviceSpec, text::quoted};
use fstone_store::Store;

pub(crate) use cluster::refuse_without_slurm;
pub(super) use home::Home;
pub(super) use left::{delete, refuse_dealt_out, to_delete};

pub(super) fn refuse(plan: &Plan, arguments: &RunArguments) -> Result<(), Failure> {
    let refused = |words: &str| Err(Failure::new(Exit::BadInput, format!("--slurm: {words}")));
    if plan.budget.is_some() {
        return refused(
            "with a time budget each block depends on the results of all blocks before it, so blocks cannot run at once; use a number of repeats (--repeats)",
        );
    }
    if plan.cells.iter().any(|cell| cell.kernel.is_exact()) {
        return refused(
            "figures in virtual time are the same on every machine, so there is nothing to share out; see --jobs",
        );
    }
    if plan.cells.iter().any(|cell| matches!(cell.device, DeviceSpec::Block { .. })) {
        return refused(
            "a block device must be named and confirmed on its own machine, and nodes have others under the same name; use `fstone blocks` with --allow-destroy on each machine",
        );
    }
    options::refuse_own(&arguments.sbatch).or_else(|words| refused(&words))
}

pub(super) fn carry_out(
    context: &Context,
    arguments: &RunArguments,
    command: &[String],
    mut plan: Plan,
) -> Result<Done, Failure> {
    let cancel = cancel_on_signals()?;
    sources::provide(&mut plan, arguments.source.as_deref(), sources::Missing::Make)?;
    let mut store = context.open_store()?;
    let run = Run {
        id: 0,
        identity: fresh_identity(),
        started_unix_ns: now_unix_ns(),
        finished_unix_ns: None,
        command: remembered(context, arguments, command)?,
        inventory: take_machine(context, arguments, &plan)?,
        note: arguments.note.clone(),
        blocks: Vec::new(),
        plan,
    };
    let home = Home::of(&run, arguments.slurm_directory.as_deref(), &context.store)?;
    home.prepare(&run)?;
    let noted = home.noted()?;
    let id = match store.begin_run_of(&run, &this_process()) {
        Ok(id) => id,
        Err(error) => {
            home.remove();
            return Err(error).or_exit(Exit::LabFailed);
        }
    };
    reaches::note_begun(&store, id, &run.plan)?;
    terminal::tell(&format!(
        "{}: run {id}, {} in {}; seed {}; plan and blocks go through {}",
        run.plan.study,
        counted(run.plan.cells.len(), "cell"),
        counted(run.plan.repeats.min as usize, "block"),
        run.plan.seed,
        home.path().display()
    ));
    let mut dispatcher = Dispatcher::new((&home, noted), id, &arguments.sbatch, &cancel);
    let end = dispatcher.go(&mut store);
    if end.is_err() && !dispatcher.has_submitted() {
        // Nothing was submitted: a refusal by sbatch leaves nothing behind.
        let forget = reaches::forget_begun(&store, id);
        if store.delete_runs(&[(id, Some(&this_process()))]).is_ok() {
            forget();
            home.remove();
        }
    }
    conclude(context, arguments, &mut store, id, &home, end?)
}

/// The command line as `--resume` will read it, maybe in another directory: where the plan and the blocks are is said in full.
fn remembered(context: &Context, arguments: &RunArguments, command: &[String]) -> Result<Vec<String>, Failure> {
    let Some(named) = arguments.slurm_directory.as_deref().filter(|named| named.is_relative()) else {
        return Ok(command.to_vec());
    };
    let named = std::path::absolute(named)
        .with_context(|| format!("cannot say where {} is", named.display()))
        .or_exit(Exit::LabFailed)?;
    Ok(context.command_line(&RunArguments { slurm_directory: Some(named), ..arguments.clone() }))
}

pub(super) fn go_on(context: &Context, arguments: &RunArguments, study: &str) -> CommandResult {
    cluster::refuse_without_slurm()?;
    let cancel = cancel_on_signals()?;
    let mut store = context.open_store()?;
    let last = unfinished::last_unfinished(&store, study, &context.store)?;
    let dataset = store.figures(last.id).or_exit(Exit::LabFailed)?;
    let run = &dataset.run;
    unfinished::refuse_another_study(study, last.id, run)?;
    reaches::refuse_foreign(context, &store, last.id, &run.plan)?;
    refuse(&run.plan, arguments)?;
    if (run.inventory.fstone_version.as_str(), run.inventory.fstone_commit.as_str())
        != (env!("CARGO_PKG_VERSION"), env!("FSTONE_COMMIT"))
    {
        let words =
            format!("run {} was started with another fstone; continue with that one, or start a new run", last.id);
        return Err(Failure::new(Exit::CannotHere, words));
    }
    if let Some((block, _)) = incomplete(&dataset)?.first() {
        let words = format!(
            "block {} of run {} was started on this machine and is incomplete; finish it first with --resume alone, because a block comes from one machine",
            block + 1,
            last.id
        );
        return Err(Failure::new(Exit::CannotHere, words));
    }
    let then = begun_with(run);
    // The same one is not another one: a mount point is there while nothing is mounted on it.
    let begun_in = then.as_ref().and_then(|then| then.slurm_directory.as_deref());
    let names_another = arguments
        .slurm_directory
        .as_deref()
        .is_some_and(|named| std::path::absolute(named).ok().as_deref() != begun_in);
    if !names_another && let Some(directory) = left::out_of_reach(run) {
        let words = format!(
            "run {} has its blocks in {}, which is not there; make it reachable (is it mounted?), or name where all nodes see it now with --slurm-directory. If it is gone for good, `mkdir -p {}`",
            last.id,
            directory.display(),
            quoted(&directory.display().to_string())
        );
        return Err(Failure::new(Exit::CannotHere, words));
    }
    let named = arguments.slurm_directory.clone().or_else(|| then.as_ref()?.slurm_directory.clone());
    let home = Home::of(run, named.as_deref(), &context.store)?;
    left::refuse_another_home(context, run, last.id, &home)?;
    let options = match (arguments.sbatch.is_empty(), then) {
        (true, Some(then)) => then.sbatch,
        _ => arguments.sbatch.clone(),
    };
    if !store.take_over(last.id, last.holder.as_ref(), &this_process()).or_exit(Exit::LabFailed)? {
        let words = format!("run {} of {study} was just taken over by another `--resume`", last.id);
        return Err(Failure::new(Exit::CannotHere, words));
    }
    home.prepare(run)?;
    let noted = home.noted()?;
    terminal::tell(&format!(
        "{}: continuing run {}; finished so far: {}",
        run.plan.study,
        last.id,
        counted(dataset.trials.len(), "trial")
    ));
    let end = Dispatcher::new((&home, noted), last.id, &options, &cancel).go(&mut store)?;
    conclude(context, arguments, &mut store, last.id, &home, end).map(|done| done.exit())
}

fn conclude(
    context: &Context,
    arguments: &RunArguments,
    store: &mut Store,
    id: u64,
    home: &Home,
    end: End,
) -> Result<Done, Failure> {
    let is_complete = finish_if_complete(store, id)?.is_empty();
    let dataset = store.shown(id).or_exit(Exit::LabFailed)?;
    if let (End::Cancelled { left }, false) = (end, is_complete) {
        let tasks = match left {
            0 => "the tasks are cancelled".to_owned(),
            left => format!(
                "Slurm was told to cancel the tasks, and {} not ended yet (see `squeue --me`)",
                if left == 1 { "one has".to_owned() } else { format!("{left} have") }
            ),
        };
        terminal::tell(&format!(
            "Interrupted: {tasks}; run {id} keeps its finished blocks ({}). `--slurm --resume` continues it.",
            counted(dataset.trials.len(), "trial")
        ));
        return Ok(Done { run: Some(id), work: Exit::Interrupted, page: Exit::Success });
    }
    home.remove();
    // The figures are kept, whatever becomes of the page.
    let page = show(context, arguments, store, &dataset);
    let shown = page.as_ref().map_or_else(terminal::tell_failure, |_| Exit::Success);
    let store = context.store.display();
    let page = page.map_or_else(|_| "it has no page".to_owned(), |page| format!("the report: {}", page.display()));
    terminal::tell(&format!("Run {id} is in {store}; {page}"));
    let any = dataset.trials.iter().any(|trial| trial.outcome.is_completed());
    Ok(Done { run: Some(id), work: if any { Exit::Success } else { Exit::NothingCompleted }, page: shown })
}
