//! `fstone run --resume`: going on with a run that was interrupted or killed.

use super::{
    Context, RunState, cancel_on_signals,
    carry_out::{Work, join, lab_options, take_inventory},
    elsewhere, reaches, sacrifice,
};
use crate::{
    args::RunArguments,
    exit::Exit,
    progress::Expected,
    recorder::StoreRecorder,
    terminal::{self, CommandResult, Failure, OrExit},
};
use fstone_analysis::text::counted;
use fstone_lab::{inventory, place::holder::this_process};
use fstone_model::text;
use fstone_store::RunSummary;
use std::path::Path;

/// The run that `--resume` goes on with: this machine's last unfinished one, whose process has ended.
fn resumable<'a>(runs: &'a [RunSummary], name: &str, store: &Path) -> Result<&'a RunSummary, Failure> {
    let is_foreign =
        |run: &RunSummary| run.imported_unix_ns.is_some() || matches!(RunState::of(run), RunState::Elsewhere(_));
    let unfinished = || runs.iter().filter(|run| run.study == name && run.finished_unix_ns.is_none());
    // A store may be shared with other machines, and have runs of theirs that are going on.
    let last = unfinished().filter(|run| !is_foreign(run)).max_by_key(|run| run.id);
    let Some(run) = last.or_else(|| unfinished().max_by_key(|run| run.id)) else {
        let words = format!("there is no unfinished run of {name} in {}", store.display());
        return Err(Failure::new(Exit::BadInput, words));
    };
    let id = run.id;
    match RunState::of(run) {
        _ if run.imported_unix_ns.is_some() => Err(Failure::new(
            Exit::CannotHere,
            format!(
                "run {id} of {name} was imported, and only the machine that began it ({}) can go on with it; start a new \
                 run here, or repeat its bundle with `fstone rerun`",
                text::line(&run.host)
            ),
        )),
        RunState::Elsewhere(holder) => Err(Failure::new(
            Exit::CannotHere,
            format!(
                "run {id} of {name} was begun {}, and may be going on there; resume it there, or start a new run here",
                elsewhere(holder)
            ),
        )),
        RunState::GoingOn(holder) => Err(Failure::new(
            Exit::CannotHere,
            format!(
                "run {id} of {name} is still going on, in process {}; wait for its end, or stop it first",
                holder.process
            ),
        )),
        RunState::Finished | RunState::Unfinished => Ok(run),
    }
}

/// Goes on with an unfinished run of a study.
pub(super) fn resume(context: &Context, arguments: &RunArguments, study: &str) -> CommandResult {
    let cancel = cancel_on_signals()?;
    let mut store = context.open_store()?;
    let runs = store.runs().or_exit(Exit::LabFailed)?;
    let name = Path::new(study).file_stem().map_or_else(|| study.into(), |stem| stem.to_string_lossy());
    let last = resumable(&runs, &name, &context.store)?;
    let dataset = store.figures(last.id).or_exit(Exit::LabFailed)?;
    reaches::refuse_foreign(context, &store, last.id, &dataset.run.plan)?;
    let presence = join(context, arguments, &cancel)?;
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
    sacrifice::confirm(context, [&dataset.run.plan], &arguments.allow_destroy)?;
    if !store.take_over(last.id, last.holder.as_ref(), &this_process()).or_exit(Exit::LabFailed)? {
        let words = format!("run {} of {name} was just taken over by another `--resume`", last.id);
        return Err(Failure::new(Exit::CannotHere, words));
    }
    terminal::tell(&format!(
        "{name}: going on with run {}; finished so far: {}",
        last.id,
        counted(dataset.trials.len(), "trial")
    ));
    let warning = (!changed.is_empty()).then(|| format!("made on another machine than the run began on: {changed}"));
    let options = lab_options(context, arguments, &dataset.run.plan, presence)?;
    let work = Work { context, arguments, options: &options, cancel: &cancel };
    let recorder = StoreRecorder::of_known(&mut store, last.id, warning);
    let carried = work.carry_out(&dataset.run.plan, &dataset.trials, recorder, Expected::default());
    Ok(work.conclude(&mut store, carried)?.exit())
}
