//! Which run `--resume` goes on with.

use super::{RunState, elsewhere};
use crate::{
    exit::Exit,
    studies,
    terminal::{Failure, OrExit},
};
use fstone_model::{dataset::Run, text};
use fstone_store::{RunSummary, Store};
use std::path::Path;

/// The run that `--resume` continues: this machine's last unfinished one, whose process has ended.
fn resumable<'a>(runs: &'a [RunSummary], name: &str, store: &Path) -> Result<&'a RunSummary, Failure> {
    let is_foreign =
        |run: &RunSummary| run.imported_unix_ns.is_some() || matches!(RunState::of(run), RunState::Elsewhere(_));
    let unfinished = || runs.iter().filter(|run| run.study == name && run.finished_unix_ns.is_none());
    // A store may be shared with other machines, and have runs of theirs that are in progress.
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
                "run {id} of {name} was imported, and only the machine that started it ({}) can continue it; start a new run here, or repeat its bundle with `fstone rerun`",
                text::line(&run.host)
            ),
        )),
        RunState::Elsewhere(holder) => Err(Failure::new(
            Exit::CannotHere,
            format!(
                "run {id} of {name} was started {}, and may still be in progress there; resume it there, or start a new run here",
                elsewhere(holder)
            ),
        )),
        RunState::InProgress(holder) => Err(Failure::new(
            Exit::CannotHere,
            format!(
                "run {id} of {name} is still in progress (process {}); wait until it ends, or stop it first",
                holder.process
            ),
        )),
        RunState::Finished | RunState::Unfinished => Ok(run),
    }
}

pub(super) fn last_unfinished(store: &Store, study: &str, path: &Path) -> Result<RunSummary, Failure> {
    let runs = store.runs().or_exit(Exit::LabFailed)?;
    let name = Path::new(study).file_stem().map_or_else(|| study.into(), |stem| stem.to_string_lossy());
    resumable(&runs, &name, path).cloned()
}

/// Refuses to continue a run of another study of the same name. If its file is not there any more, the name is enough.
pub(super) fn refuse_another_study(study: &str, id: u64, run: &Run) -> Result<(), Failure> {
    let Ok(found) = studies::find(study) else { return Ok(()) };
    // Another fstone may have other built-in studies, and is a change of the machine.
    let is_other_fstone = found.is_built_in() && run.inventory.fstone_commit != env!("FSTONE_COMMIT");
    if found.has_text(&run.plan.source) || is_other_fstone {
        return Ok(());
    }
    let words = format!(
        "run {id}, the last unfinished one of {}, was started with another study than {} is now; restore the study to continue the run, or start a new one",
        text::line(&run.plan.study),
        text::line(study)
    );
    Err(Failure::new(Exit::BadInput, words))
}
