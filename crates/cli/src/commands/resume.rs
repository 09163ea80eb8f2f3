//! `fstone run --resume`: continuing a run that was interrupted or killed.

use super::{
    Context, cancel_on_signals,
    carry_out::{Work, join, lab_options, take_inventory},
    changed::changed,
    destroy, reaches, slurm,
    stored::begun_with,
    unfinished::{last_unfinished, refuse_another_study},
};
use crate::{
    args::RunArguments,
    exit::Exit,
    progress::Expected,
    recorder::StoreRecorder,
    terminal::{self, CommandResult, Failure, OrExit},
};
use fstone_analysis::text::counted;
use fstone_lab::place::holder::this_process;
use fstone_model::{study::DeviceSpec, text};

pub(super) fn resume(context: &Context, arguments: &RunArguments, study: &str) -> CommandResult {
    let cancel = cancel_on_signals()?;
    let mut store = context.open_store()?;
    let last = last_unfinished(&store, study, &context.store)?;
    let name = &last.study;
    let dataset = store.figures(last.id).or_exit(Exit::LabFailed)?;
    refuse_another_study(study, last.id, &dataset.run)?;
    reaches::refuse_foreign(context, &store, last.id, &dataset.run.plan)?;
    let home = slurm::refuse_dealt_out(context, &dataset, last.id)?;
    // The other blocks are made elsewhere.
    let mut arguments = arguments.clone();
    arguments.blocks = begun_with(&dataset.run).and_then(|then| then.blocks);
    let arguments = &arguments;
    let presence = join(context, arguments, &cancel)?;
    let (then, now) = (&dataset.run.inventory, take_inventory(context, arguments, &dataset.run.plan)?);
    let changed = changed(then, &now);
    if !changed.is_empty() && !arguments.changed_machine {
        return Err(Failure::new(
            Exit::CannotHere,
            format!(
                "run {} cannot continue here, because the machine has changed ({changed}); start a new run, or add --changed-machine",
                last.id
            ),
        ));
    }
    destroy::confirm(context, [&dataset.run.plan], &arguments.allow_destroy, &arguments.allow_destroy_data)?;
    if !store.take_over(last.id, last.holder.as_ref(), &this_process()).or_exit(Exit::LabFailed)? {
        let words = format!("run {} of {name} was just taken over by another `--resume`", last.id);
        return Err(Failure::new(Exit::CannotHere, words));
    }
    // Blocks may have been merged while this process waited for others.
    let dataset = store.figures(last.id).or_exit(Exit::LabFailed)?;
    terminal::tell(&format!(
        "{name}: continuing run {}; finished so far: {}",
        last.id,
        counted(dataset.trials.len(), "trial")
    ));
    for cell in dataset.run.plan.cells.iter().filter(|cell| cell.past().is_some()) {
        if let DeviceSpec::Block { path } = &cell.device {
            terminal::tell(&format!(
                "Each trial on {} ages it from mkfs on, the interrupted one, too.",
                text::line(path)
            ));
        }
    }
    let warning =
        (!changed.is_empty()).then(|| format!("made on another machine than the run was started on: {changed}"));
    let options = lab_options(context, arguments, &dataset.run.plan, presence)?;
    let work = Work { context, arguments, options: &options, cancel: &cancel, identity: &last.identity };
    let recorder = StoreRecorder::of_known(&mut store, last.id, warning);
    let carried = work.carry_out(&dataset.run.plan, &dataset.trials, recorder, Expected::default());
    let exit = work.conclude(&mut store, carried)?.exit();
    // All blocks are in the store.
    if let Some(home) = home
        && store.figures(last.id).or_exit(Exit::LabFailed)?.run.finished_unix_ns.is_some()
    {
        home.remove();
    }
    Ok(exit)
}
