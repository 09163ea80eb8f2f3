//! `fstone blocks`: some blocks of a run that another machine began, whole, in a bundle for `fstone import --into`.

use super::{
    Context,
    begun::Begun,
    cancel_on_signals,
    carry_out::{join, lab_options, take_inventory},
    merge::{check_blocks, incomplete, written},
    reaches, sacrifice,
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
use fstone_lab::run::carry_out::{RunEnd, carry_out_blocks};
use fstone_model::{
    Dataset, Trial,
    dataset::{BlockOrigin, Run},
    text,
};
use fstone_store::bundle::{self, ExportError};
use rustix::fs::Access;
use std::collections::HashSet;

/// What Slurm calls the node that a task runs on.
const NODE: &str = "SLURMD_NODENAME";

pub(crate) fn blocks(context: &Context, arguments: &BlocksArguments) -> CommandResult {
    let Dataset { run, trials } = bundle::read(&arguments.bundle).or_exit(Exit::BadInput)?;
    let wanted = &arguments.blocks.0;
    check_blocks(&run.plan, &arguments.blocks)?;
    if let Some(trial) = trials.iter().find(|trial| wanted.contains(&trial.id.repetition)) {
        let words = format!("{} has trials of block {} already", arguments.bundle.display(), trial.id.repetition + 1);
        return Err(Failure::new(Exit::BadInput, words));
    }
    if arguments.output.symlink_metadata().is_ok() {
        return Err(ExportError::Exists { path: arguments.output.clone() }).or_exit(Exit::BadInput);
    }
    require_directory_of(&arguments.output, " with --output")?;
    refuse_another_program(&run, arguments.program.as_deref())?;
    refuse_shared_directory(context, arguments.local)?;
    reaches::permit(&run.plan, arguments.allow_commands)?;
    sacrifice::confirm(context, [&run.plan], &arguments.allow_destroy)?;
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
    let end = carry_out_blocks(&run.plan, wanted, &options, &finished, &mut begun, &progress, &cancel);
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
            let directory = directory.display();
            terminal::tell(&format!(
                "Interrupted: trials of an incomplete block are kept in {directory}, and this machine can continue with them there."
            ));
            Ok(Exit::Interrupted)
        }
    }
}

/// The name of this node, where a cluster has given it one.
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
        model: started.model,
        guest_memory: started.guest_memory,
        guest_disk: started.guest_disk,
        allow_destroy: arguments.allow_destroy.clone(),
        // Whether all rows fail is seen where all blocks are.
        keep_going: true,
        ..RunArguments::default()
    })
}

/// The run with the whole blocks among these trials, and no others.
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
