//! `fstone delete`: take runs out of the store.

use super::{
    Context, RunState, elsewhere,
    list::utc,
    reaches::forget_begun,
    report::{is_page, page_name, usual_directory, write_index},
    slurm,
    stored::{no_such_run, open},
};
use crate::{
    args::DeleteArguments,
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
};
use fstone_analysis::text::counted;
use fstone_model::text;
use fstone_store::RunSummary;
use std::{collections::BTreeSet, fmt::Write as _};

pub(crate) fn delete(context: &Context, arguments: &DeleteArguments) -> CommandResult {
    // What is not there makes no store.
    drop(open(context)?);
    let mut store = context.open_store()?;
    let (runs, baselines) = (store.runs().or_exit(Exit::LabFailed)?, store.baselines().or_exit(Exit::LabFailed)?);
    let (mut listed, mut homes, mut pages) = (String::new(), Vec::new(), Vec::new());
    let directory = usual_directory(context);
    let wanted: BTreeSet<u64> = arguments.runs.iter().copied().collect();
    for number in &wanted {
        let Some(run) = runs.iter().find(|run| run.id == *number) else {
            let Failure { exit, error } = no_such_run(*number);
            return Err(Failure::new(exit, format!("{error}. Nothing was deleted")));
        };
        refuse_running(run)?;
        // What was imported has its directory where it was begun.
        let home = match run.imported_unix_ns {
            None => slurm::to_delete(context, &store.figures(*number).or_exit(Exit::LabFailed)?.run, *number)?,
            Some(_) => None,
        };
        let _ = write!(
            listed,
            "run {number}: {}, started {}, {}, {}",
            text::line(&run.study),
            utc(run.started_unix_ns),
            RunState::of(run).word(),
            counted(run.trials as usize, "trial")
        );
        if let Some(note) = &run.note {
            let _ = write!(listed, ", note: {}", text::line(note.as_str()));
        }
        for baseline in baselines.iter().filter(|baseline| baseline.run == *number) {
            let _ = write!(listed, ", baseline {}", text::line(&baseline.name));
        }
        listed.push('\n');
        // A store may come from outside: what it names goes only if it says itself that it is fstone's.
        if let Some(home) = home.as_ref().filter(|home| home.is_marked()) {
            let _ = writeln!(listed, "  with its directory {}", home.path().display());
        }
        homes.extend(home);
        let page = directory.join(page_name(&run.study, run.id, &run.identity));
        if is_page(&page) {
            let _ = writeln!(listed, "  with its page {}", page.display());
            pages.push(page);
        }
    }
    if !arguments.yes {
        let agreed = terminal::is_interactive() && terminal::agrees(&format!("{listed}Delete for good?"));
        if !agreed {
            let words = format!("nothing was deleted; --yes deletes without asking:\n{}", listed.trim_end());
            return Err(Failure::new(Exit::CannotHere, words));
        }
    }
    let seen: Vec<_> =
        runs.iter().filter(|run| wanted.contains(&run.id)).map(|run| (run.id, run.holder.as_ref())).collect();
    let notes: Vec<_> = wanted.iter().map(|run| forget_begun(&store, *run)).collect();
    if let Some(taken) = store.delete_runs(&seen).or_exit(Exit::LabFailed)? {
        let words = format!("run {taken} was resumed meanwhile. Nothing was deleted");
        return Err(Failure::new(Exit::CannotHere, words));
    }
    notes.into_iter().for_each(|forget| forget());
    let runs_alone = listed.lines().filter(|line| !line.starts_with("  with its "));
    let mut deleted: String = runs_alone.map(|line| format!("deleted {line}\n")).collect();
    for home in &homes {
        // The run is gone by now: whatever becomes of this, its pages and the index follow.
        match slurm::delete(home) {
            Ok(words) => deleted.push_str(&words),
            Err(failure) => {
                terminal::tell_failure(&failure);
            }
        }
    }
    let gone: Vec<RunSummary> = runs.into_iter().filter(|run| wanted.contains(&run.id)).collect();
    let mut removed = false;
    for page in &pages {
        match std::fs::remove_file(page) {
            Ok(()) => {
                removed = true;
                let _ = writeln!(deleted, "deleted its page {}", page.display());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => terminal::tell(&format!("its page {} is still there: {error}", page.display())),
        }
    }
    terminal::print(&deleted);
    if removed {
        write_index(&store, &directory, &gone)?;
    }
    // Last: if this is interrupted before, no page is left that nothing would remove.
    if !store.empty_log() {
        terminal::tell(
            "Others are reading the store: the log beside it keeps what was deleted until a later run or delete empties it.",
        );
    }
    Ok(Exit::Success)
}

/// A run that may be in progress still writes its trials.
fn refuse_running(run: &RunSummary) -> Result<(), Failure> {
    let where_it_is = match RunState::of(run) {
        RunState::Finished | RunState::Unfinished => return Ok(()),
        RunState::InProgress(holder) => format!("is still in progress (process {})", holder.process),
        RunState::Elsewhere(holder) => format!("may still be in progress, {}", elsewhere(holder)),
    };
    let words = format!("run {} {where_it_is}; stop it first. Nothing was deleted", run.id);
    Err(Failure::new(Exit::CannotHere, words))
}
