//! What a run that `--slurm` began may have left when its dispatcher is gone: tasks that are still under way, and blocks that
//! they delivered and that are not merged.

use super::{
    cluster::{self, Task},
    home::{Home, Noted},
};
use crate::{
    commands::{Context, merge, stored::begun_with},
    exit::Exit,
    terminal::{self, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_model::{Dataset, dataset::Run, text::quoted};
use std::path::{Path, PathBuf};

/// Refuses to make blocks here that tasks may be making, or have delivered. The run's directory, which is not needed once the run is
/// complete.
pub(in crate::commands) fn refuse_dealt_out(
    context: &Context,
    dataset: &Dataset,
    id: u64,
) -> Result<Option<Home>, Failure> {
    let run = &dataset.run;
    if let Some(directory) = out_of_reach(run) {
        refuse_running_elsewhere(run, id, &directory)?;
        let words = format!(
            "run {id} was distributed by Slurm, and its tasks left their blocks in {0}, which is not there. Make it reachable (is it mounted?), so that no block is made twice. If it is gone for good, `mkdir -p {1}`",
            directory.display(),
            quoted(&directory.display().to_string())
        );
        return Err(Failure::new(Exit::CannotHere, words));
    }
    let Some(home) = of_ended_tasks(context, run, id)? else { return Ok(None) };
    let delivered = home.blocks()?;
    let lacking: Vec<u32> = merge::to_come(dataset)?.into_iter().filter(|block| delivered.contains(block)).collect();
    if lacking.is_empty() {
        return Ok(Some(home));
    }
    let words = format!(
        "Slurm's tasks have delivered block{} {} of run {id}, which nobody has merged. First merge {} with `{}`",
        if lacking.len() == 1 { "" } else { "s" },
        merge::written(&lacking),
        if lacking.len() == 1 { "it" } else { "them" },
        import(context, &home, id, &lacking)
    );
    Err(Failure::new(Exit::CannotHere, words))
}

/// The directory of a run that is to be deleted, to be removed with it. Refuses while tasks may be making its blocks.
pub(in crate::commands) fn to_delete(context: &Context, run: &Run, id: u64) -> Result<Option<Home>, Failure> {
    let Some(directory) = out_of_reach(run) else { return of_ended_tasks(context, run, id) };
    // A complete run has removed its own, unless its blocks were imported one by one.
    if run.finished_unix_ns.is_some() && directory.parent().is_some_and(Path::is_dir) {
        return Ok(None);
    }
    // Where there is no Slurm none of its tasks can be looked for.
    if cluster::refuse_without_slurm().is_ok() {
        refuse_running_elsewhere(run, id, &directory)?;
    }
    terminal::tell(&format!("{} is not there; what run {id} has in it stays", directory.display()));
    Ok(None)
}

/// Refuses to give a run another directory while the one that it was begun with has its blocks, or tasks still work for that one.
pub(super) fn refuse_another_home(context: &Context, run: &Run, id: u64, home: &Home) -> Result<(), Failure> {
    if home.exists() {
        return Ok(());
    }
    let directory = out_of_reach(run);
    if directory.is_none() {
        let first = of_run(context, run)?;
        if first.exists() {
            let words = format!(
                "run {id} has its blocks in {}; continue it without another --slurm-directory",
                first.path().display()
            );
            return Err(Failure::new(Exit::BadInput, words));
        }
    }
    if begun_with(run).is_none_or(|then| then.slurm) {
        refuse_running_elsewhere(run, id, directory.as_deref().unwrap_or(home.path()))?;
    }
    Ok(())
}

/// The run's directory below the one that `--slurm-directory` named as the run began, if it is not there now. That the named one is there
/// says nothing: a mount point is an empty directory while nothing is mounted on it.
pub(super) fn out_of_reach(run: &Run) -> Option<PathBuf> {
    let own = Home::below(&begun_with(run)?.slurm_directory?, run);
    (!own.is_dir()).then_some(own)
}

fn of_run(context: &Context, run: &Run) -> Result<Home, Failure> {
    let named = begun_with(run).and_then(|then| then.slurm_directory);
    Home::of(run, named.as_deref(), &context.store)
}

/// The run's directory, if it is there and nothing works for it any more; refuses if something does.
fn of_ended_tasks(context: &Context, run: &Run, id: u64) -> Result<Option<Home>, Failure> {
    let home = of_run(context, run)?;
    if !home.exists() {
        return Ok(None);
    }
    let Noted { mut jobs, is_submitting } = home.noted()?;
    let mut known = || -> Result<bool, String> {
        if is_submitting {
            jobs.extend(cluster::named(&home.job_name())?);
        }
        Ok(cluster::tasks(&jobs)?.values().any(Task::is_under_way))
    };
    let words = match known() {
        Ok(false) => return Ok(Some(home)),
        Ok(true) => {
            format!(
                "run {id} was distributed by Slurm, and some tasks may still be running; continue with --slurm --resume"
            )
        }
        Err(words) => format!(
            "run {id} was distributed by Slurm, and Slurm does not answer whether its tasks are still running: {words}. If none is, merge what `ls {0}/block-*.fstone` lists with `fstone import --into {id}`, then empty {0}",
            home.path().display()
        ),
    };
    Err(Failure::new(Exit::CannotHere, words))
}

/// Refuses if tasks are under way whose blocks would not be found.
fn refuse_running_elsewhere(run: &Run, id: u64, directory: &Path) -> Result<(), Failure> {
    let silent = |words| {
        let words = format!(
            "run {id} was distributed by Slurm by way of {}, which is not there, and Slurm does not answer whether its tasks are still running: {words}",
            directory.display()
        );
        Failure::new(Exit::CannotHere, words)
    };
    let found: Vec<u64> = cluster::named(&Home::job_name_of(run)).map_err(silent)?.into_iter().collect();
    let tasks = cluster::tasks(&found).map_err(silent)?;
    let running = tasks.iter().find(|(_, task)| task.is_under_way());
    let Some(((job, _), _)) = running else { return Ok(()) };
    let words = format!(
        "job {job} of run {id} is still running, and leaves its blocks in {}, which is not there. Make it reachable (is it mounted?) and continue with --slurm --resume, or end the job with `scancel {job}`",
        directory.display()
    );
    Err(Failure::new(Exit::CannotHere, words))
}

fn import(context: &Context, home: &Home, id: u64, blocks: &[u32]) -> String {
    let words = ["import".to_owned(), "--into".to_owned(), id.to_string()];
    let bundles = blocks.iter().map(|block| home.bundle(*block).display().to_string());
    let all: Vec<String> = words.into_iter().chain(bundles).collect();
    context.typed(&all)
}

pub(in crate::commands) fn delete(home: &Home) -> Result<String, Failure> {
    let path = home.path().display().to_string();
    if !home.is_marked() {
        return Ok(format!("{path} stays: nothing in it says that it was made for this run\n"));
    }
    home.remove();
    let stays = home.path().try_exists().with_context(|| path.clone()).or_exit(Exit::LabFailed)?;
    Ok(if stays {
        format!("{path} stays: it has files that are not fstone's\n")
    } else {
        format!("deleted its directory {path}\n")
    })
}
