//! `fstone blocks`: some blocks of a run that another machine began, whole, in a bundle for `fstone import --into`.

use super::{
    Context,
    begun::Begun,
    cancel_on_signals,
    carry_out::{join, lab_options, take_inventory},
    destroy,
    merge::{check_blocks, incomplete, written},
    reaches,
    stored::begun_with,
};
use crate::{
    args::{BlocksArguments, RunArguments},
    exit::Exit,
    paths::{directory_of, require_directory_of},
    progress::{Expected, RunProgress},
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_analysis::text::counted;
use fstone_lab::run::{
    carry_out::{LabError, RunEnd, carry_out_schedule},
    schedule::Schedule,
};
use fstone_model::{
    Dataset, Trial,
    dataset::{BlockOrigin, Run},
    text,
};
use fstone_store::bundle::{self, ExportError};
use rustix::fs::Access;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

const NODE: &str = "SLURMD_NODENAME";

pub(crate) fn blocks(context: &Context, arguments: &BlocksArguments) -> CommandResult {
    let Dataset { run, trials } = bundle::read(&arguments.bundle).or_exit(Exit::BadInput)?;
    let wanted = &arguments.blocks.0;
    check_blocks(&run.plan, &arguments.blocks)?;
    if let Some(trial) = trials.iter().find(|trial| wanted.contains(&trial.id.repetition)) {
        let words = format!("{} has trials of block {} already", arguments.bundle.display(), trial.id.repetition + 1);
        return Err(Failure::new(Exit::BadInput, words));
    }
    refuse_existing(context, arguments, &run)?;
    require_directory_of(&arguments.output, " with --output")?;
    refuse_another_program(&run, arguments.program.as_deref())?;
    refuse_shared_directory(context, arguments.local)?;
    reaches::permit(&run.plan, arguments.allow_commands)?;
    destroy::confirm(context, [&run.plan], &arguments.allow_destroy, &arguments.allow_destroy_data)?;
    // Hours of trials must not be lost because a directory is not writable.
    let directory = directory_of(&arguments.output);
    rustix::fs::access(directory, Access::WRITE_OK)
        .map_err(std::io::Error::from)
        .with_context(|| format!("cannot write to {}", directory.display()))
        .or_exit(Exit::LabFailed)?;
    let started = started(&run, arguments)?;

    let cancel = cancel_on_signals()?;
    let presence = join(context, &started, &cancel)?;
    let inventory = take_inventory(context, &started, &run.plan)?;
    let options = lab_options(context, &started, &run.plan, presence)?;
    let machine = arguments.machine.clone().or_else(node).unwrap_or_else(|| inventory.host.clone());
    terminal::tell(&format!(
        "{}: {} {} of run {}, on {}; seed {}",
        run.plan.study,
        if wanted.len() == 1 { "block" } else { "blocks" },
        written(wanted),
        text::line(&run.identified()),
        text::line(&machine),
        run.plan.seed
    ));
    let progress = RunProgress::new(Expected::default());
    let mut begun = Begun::take_up(&run, wanted, directory, &machine, &inventory);
    let finished = begun.trials().to_vec();
    let schedule = Schedule::only(&run.plan, wanted.iter().copied(), &finished).map_err(LabError::from);
    let end =
        schedule.and_then(|schedule| carry_out_schedule(schedule, &options, &finished, &mut begun, &progress, &cancel));
    for left in &progress.finish() {
        terminal::tell(&format!("Left behind: {left}."));
    }
    // What is whole is kept, however it ended.
    let made = whole(run.clone(), begun.trials().to_vec(), &machine, &inventory)?;
    let blocks: Vec<u32> = made.run.blocks.iter().map(|origin| origin.block).collect();
    if !blocks.is_empty() {
        let trials = made.trials.len();
        if let Err(error) = bundle::write(made, &arguments.output) {
            begun.close(&[]);
            let exit = if matches!(error, ExportError::Exists { .. }) { Exit::BadInput } else { Exit::LabFailed };
            return Err(error).or_exit(exit);
        }
        let output = arguments.output.display();
        terminal::print(&format!(
            "{output} has {} {} of the run: {}.\n",
            if blocks.len() == 1 { "block" } else { "blocks" },
            written(&blocks),
            counted(trials, "trial")
        ));
    }
    begun.close(&blocks);
    match end.context("the blocks were not all made").or_exit(Exit::LabFailed)? {
        RunEnd::Completed => Ok(Exit::Success),
        RunEnd::Cancelled | RunEnd::FailedAlike(_) => {
            let rest = rest(wanted, &blocks);
            let next = again(context, arguments, &rest, !blocks.is_empty());
            terminal::tell(&format!(
                "Interrupted: trials of an incomplete block are kept in {}. On this machine `{next}` continues with them.",
                directory.display()
            ));
            Ok(Exit::Interrupted)
        }
    }
}

/// Refuses to write where something is. If that is what an earlier attempt made whole, says how to go on.
fn refuse_existing(context: &Context, arguments: &BlocksArguments, run: &Run) -> Result<(), Failure> {
    let output = &arguments.output;
    if output.symlink_metadata().is_err() {
        return Ok(());
    }
    let there =
        bundle::read(output).ok().filter(|there| there.run.identity == run.identity && there.run.plan == run.plan);
    let blocks: Vec<u32> = there.iter().flat_map(|there| &there.run.blocks).map(|origin| origin.block).collect();
    let rest = rest(&arguments.blocks.0, &blocks);
    if blocks.is_empty() || rest.len() == arguments.blocks.0.len() {
        return Err(ExportError::Exists { path: output.clone() }).or_exit(Exit::BadInput);
    }
    let (output, blocks) = (output.display(), written(&blocks));
    let words = match &rest[..] {
        [] => format!(
            "{output} has blocks {blocks} already: `fstone import --into RUN` takes it where the run was started"
        ),
        _ => format!("{output} has blocks {blocks} already; the others: `{}`", again(context, arguments, &rest, true)),
    };
    Err(Failure::new(Exit::BadInput, words))
}

fn rest(wanted: &[u32], there: &[u32]) -> Vec<u32> {
    wanted.iter().filter(|block| !there.contains(block)).copied().collect()
}

/// The command that makes these blocks; into another file in the same directory, which has the trials of an incomplete one, if
/// there is one with others (`other`).
fn again(context: &Context, arguments: &BlocksArguments, blocks: &[u32], other: bool) -> String {
    let path = |path: &Path| path.display().to_string();
    let output = if other { beside(&arguments.output, &written(blocks)) } else { arguments.output.clone() };
    let mut words =
        vec!["blocks".to_owned(), path(&arguments.bundle), written(blocks), "--output".into(), path(&output)];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    arguments.machine.iter().for_each(|machine| option("--machine", machine.clone()));
    arguments.allow_destroy.iter().for_each(|device| option("--allow-destroy", path(device)));
    arguments.allow_destroy_data.iter().for_each(|device| option("--allow-destroy-data", path(device)));
    if arguments.allow_commands {
        words.push("--allow-commands".into());
    }
    context.typed(&words)
}

/// "second.fstone" and "4-5" are "second-4-5.fstone", or the first of "second-4-5-2.fstone" and so on that is not there.
fn beside(output: &Path, blocks: &str) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let ending = output.extension().map_or_else(String::new, |ending| format!(".{}", ending.to_string_lossy()));
    let named = |number: String| output.with_file_name(format!("{stem}-{blocks}{number}{ending}"));
    let numbers = std::iter::once(String::new()).chain((2u32..).map(|number| format!("-{number}")));
    numbers.map(named).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| output.to_owned())
}

fn node() -> Option<String> {
    std::env::var(NODE).ok().filter(|name| !name.is_empty())
}

/// Figures of one run must come from one program: another build may measure differently.
fn refuse_another_program(run: &Run, digest: Option<&str>) -> Result<(), Failure> {
    let (here, there) = ((env!("CARGO_PKG_VERSION"), env!("FSTONE_COMMIT")), &run.inventory);
    if here != (there.fstone_version.as_str(), there.fstone_commit.as_str()) {
        let words = format!(
            "the run was started with fstone {} ({}), and this is {} ({}); use the same fstone on all machines",
            text::line(&there.fstone_version),
            text::line(&there.fstone_commit),
            here.0,
            here.1
        );
        return Err(Failure::new(Exit::CannotHere, words));
    }
    let Some(digest) = digest else { return Ok(()) };
    // The same commit may have been built twice, with other changes in the tree.
    let own = std::env::current_exe().and_then(|program| bundle::digest_of_file(&program));
    if own.context("cannot read this program").or_exit(Exit::LabFailed)? == digest {
        return Ok(());
    }
    let words = "the run was started with another build of fstone; use the same fstone on all machines";
    Err(Failure::new(Exit::CannotHere, words))
}

/// A task measures its node, and not what all nodes share.
fn refuse_shared_directory(context: &Context, local: bool) -> Result<(), Failure> {
    let existing = context.work_directory.ancestors().find(|path| path.exists());
    match existing.filter(|path| local && fstone_store::is_shared_between_hosts(path)) {
        None => Ok(()),
        Some(path) => Err(Failure::new(
            Exit::CannotHere,
            format!(
                "{} is on a filesystem that machines share, but a task works on its node's own disk: set TMPDIR or SLURM_TMPDIR to a directory that is local to the node",
                path.display()
            ),
        )),
    }
}

/// The options that the run was begun with, as far as they are about how trials are made: the plan has all the rest.
fn started(run: &Run, arguments: &BlocksArguments) -> Result<RunArguments, Failure> {
    let Some(started) = begun_with(run) else {
        let words = format!("the run's command line is {:?}, which this fstone does not know", run.command.join(" "));
        return Err(Failure::new(Exit::BadInput, words));
    };
    Ok(RunArguments {
        charge: started.charge,
        cpu: started.cpu,
        model: started.model,
        guest_memory: started.guest_memory,
        published: started.published,
        guest_disk: started.guest_disk,
        allow_destroy: arguments.allow_destroy.clone(),
        // Whether all rows fail is seen where all blocks are.
        keep_going: true,
        ..RunArguments::default()
    })
}

fn whole(run: Run, trials: Vec<Trial>, machine: &str, inventory: &fstone_model::Inventory) -> Result<Dataset, Failure> {
    let mut made = Dataset { run, trials };
    let broken: HashSet<u32> = incomplete(&made)?.into_iter().map(|(block, _)| block).collect();
    made.trials.retain(|trial| !broken.contains(&trial.id.repetition));
    let mut blocks: Vec<u32> = made.trials.iter().map(|trial| trial.id.repetition).collect();
    blocks.sort_unstable();
    blocks.dedup();
    made.run.blocks = blocks
        .into_iter()
        .map(|block| BlockOrigin { block, machine: machine.to_owned(), inventory: inventory.clone() })
        .collect();
    made.run.finished_unix_ns = None;
    made.trials.sort_by_key(|trial| trial.position);
    Ok(made)
}
