//! What carries a study's trials out, as far as the command line and this machine decide it.

use crate::{
    args::{ExecutorChoice, RunArguments},
    commands::{Context, device},
    exit::Exit,
    paths,
    rights::is_root,
    terminal::{self, Failure, OrExit},
};
use fstone_lab::{
    agent::{Flavour, GuestOptions, default_kernel, missing_kernel, missing_named_kernel},
    filesystem,
    inventory::too_little_memory,
};
use fstone_model::{
    Cell, Dataset, Plan,
    metric::catalog,
    study::{DeviceSpec, KernelSpec},
    units::{format_bytes, format_duration},
};
use std::time::Duration;

/// What a study becomes.
pub(crate) enum Chosen {
    /// This plan.
    Plan(Box<Plan>),
    /// The workload alone, on the filesystem that is there.
    Directory,
}

/// Decides by the command line; tells on standard error what a person would not expect.
pub(crate) fn choose(context: &Context, arguments: &RunArguments, plan: &Plan) -> Result<Chosen, Failure> {
    if !arguments.kernel.is_empty() {
        all_there(&arguments.kernel, |kernel| missing_kernel(kernel, &context.kernels))?;
        return Ok(Chosen::Plan(Box::new(plan.under_kernels(|_| arguments.kernel.clone()))));
    }
    let mut own: Vec<KernelSpec> = Vec::new();
    for cell in &plan.cells {
        if !own.contains(&cell.kernel) {
            own.push(cell.kernel.clone());
        }
    }
    all_there(&own, |kernel| missing_named_kernel(kernel, &context.kernels))?;
    let default = |flavour| default_kernel(&context.kernels, flavour);
    let all_under = |kernel: KernelSpec| {
        let under = plan.under_kernels(|cell| match cell.kernel {
            KernelSpec::Host => vec![kernel.clone()],
            _ => vec![cell.kernel.clone()],
        });
        Ok(Chosen::Plan(Box::new(under)))
    };
    let missing = |words: &str| Err(Failure::new(Exit::CannotHere, words.to_owned()));
    if arguments.exact {
        return match default(Flavour::Exact) {
            Some(kernel) => all_under(kernel),
            None => missing(
                "there is no kernel whose time can be simulated; build one with `fstone kernel build`: some eight minutes of \
                 CPU, once, and no root",
            ),
        };
    }
    match arguments.executor {
        ExecutorChoice::Host => Ok(Chosen::Plan(Box::new(plan.clone()))),
        ExecutorChoice::Directory => Ok(Chosen::Directory),
        ExecutorChoice::Uml => match default(Flavour::Uml) {
            Some(kernel) => all_under(kernel),
            None => missing(
                "there is no user-mode Linux on this machine; get one with `fstone kernel add uml:6.1` (no root), or \
                 `apt-get install user-mode-linux`",
            ),
        },
        ExecutorChoice::Qemu => match default(Flavour::Qemu) {
            Some(kernel) => all_under(kernel),
            None => missing("there is no kernel for QEMU on this machine; get one with `fstone kernel add qemu:6.12`"),
        },
        ExecutorChoice::Auto => Ok(automatic(context, plan, default(Flavour::Uml))),
    }
}

/// Tells of kernels that are not there, whose rows will be skipped. Without any that is there, nothing can be run.
fn all_there(kernels: &[KernelSpec], missing: impl Fn(&KernelSpec) -> Option<String>) -> Result<(), Failure> {
    let missing: Vec<String> = kernels.iter().filter_map(missing).collect();
    if missing.len() == kernels.len() {
        return Err(Failure::new(Exit::CannotHere, missing.join("\n")));
    }
    for words in missing {
        terminal::tell(&format!("{words}; its rows will be skipped"));
    }
    Ok(())
}

/// The running kernel for root, where it has any of the study's filesystems; else user-mode Linux; else a directory. The
/// whole study goes the same way: rows of different executors could not be compared.
fn automatic(context: &Context, plan: &Plan, uml: Option<KernelSpec>) -> Chosen {
    let is_asked_about = |cell: &&Cell| {
        // What is on a device of the machine, or in a directory, is the machine's alone.
        cell.kernel == KernelSpec::Host && matches!(cell.device, DeviceSpec::Loop { .. })
    };
    let has = |cell: &Cell| {
        let known = filesystem::find(&cell.filesystem.kind);
        known.is_none_or(|known| filesystem::kernel_has(known.kernel_name()))
    };
    let mut asked = plan.cells.iter().filter(is_asked_about).peekable();
    if asked.peek().is_none() || (is_root() && asked.any(has)) {
        return Chosen::Plan(Box::new(plan.clone()));
    }
    let Some(uml) = uml else {
        if is_root() {
            return Chosen::Plan(Box::new(plan.clone()));
        }
        terminal::tell(&format!(
            "Not root: running the workload on the filesystem of {} as it is, as one row.\n\
             A fresh filesystem for each row of the study needs root, or user-mode Linux: fstone kernel add uml:6.1",
            context.work_directory.display()
        ));
        return Chosen::Directory;
    };
    let why = if is_root() { "The running kernel has none of these filesystems" } else { "Not root" };
    terminal::tell(&format!(
        "{why}: running the study in user-mode Linux ({}). Its figures compare with each other, and with no others.",
        uml.written()
    ));
    Chosen::Plan(Box::new(
        plan.under_kernels(|cell| vec![if is_asked_about(&cell) { uml.clone() } else { cell.kernel.clone() }]),
    ))
}

/// Nothing gets warmer in virtual time.
pub(crate) fn leave_out_warm_up(plan: &mut Plan) {
    if plan.cells.iter().all(|cell| matches!(cell.kernel, KernelSpec::Exact(_))) {
        plan.warm_up = 0;
    }
}

/// Moves images from memory to the work directory where memory cannot hold them, or where a guest's disk serves them. All or
/// none: rows of different devices could not be compared.
pub(crate) fn place_images(plan: &mut Plan) {
    let largest = plan.cells.iter().filter_map(|cell| match cell.device {
        DeviceSpec::Loop { in_memory: true, size_bytes, .. } => Some(size_bytes),
        _ => None,
    });
    let Some(largest) = largest.max() else { return };
    let in_guests = plan.cells.iter().any(|cell| cell.kernel != KernelSpec::Host);
    let lacking = too_little_memory(largest).filter(|_| !in_guests);
    if let Some(why) = &lacking {
        terminal::tell(&format!("Images are made in the work directory, not in memory: {why}."));
    }
    if lacking.is_none() && !in_guests {
        return;
    }
    for cell in &mut plan.cells {
        if let DeviceSpec::Loop { in_memory, .. } = &mut cell.device {
            *in_memory = false;
        }
    }
}

/// How guests are made.
pub(crate) fn guests(context: &Context, arguments: &RunArguments) -> Result<GuestOptions, Failure> {
    let options = GuestOptions::new(context.kernels.clone(), &paths::guests_cache());
    let model = arguments.model.as_deref().map(device::find).transpose().or_exit(Exit::BadInput)?;
    Ok(GuestOptions {
        model: model.unwrap_or(options.model),
        charge: arguments.charge.unwrap_or(options.charge),
        memory_bytes: arguments.guest_memory.unwrap_or(options.memory_bytes),
        speed: arguments.guest_disk.unwrap_or_default(),
        ..options
    })
}

/// What guests are made of, for the list of settings that bear on the figures; nothing where there are none.
pub(crate) fn guest_settings(
    context: &Context,
    arguments: &RunArguments,
    plan: &Plan,
) -> Result<Vec<(String, String)>, Failure> {
    if plan.cells.iter().all(|cell| cell.kernel == KernelSpec::Host) {
        return Ok(Vec::new());
    }
    let options = guests(context, arguments)?;
    let mut settings = vec![("guest memory".to_owned(), format_bytes(options.memory_bytes))];
    if plan.cells.iter().any(|cell| matches!(cell.kernel, KernelSpec::Exact(_))) {
        settings.push(("modelled drive".to_owned(), options.model.to_string()));
        settings.push(("charge of a system call".to_owned(), format_duration(options.charge)));
    }
    if plan.cells.iter().any(|cell| !matches!(cell.kernel, KernelSpec::Host | KernelSpec::Exact(_))) {
        settings.push(("guest disk".to_owned(), options.speed.to_string()));
    }
    Ok(settings)
}

/// What trials took beside what was measured, in one line: the median time outside their steps, and after them until the
/// machine was at rest. Nothing for trials in virtual time.
pub(crate) fn overhead(dataset: &Dataset) -> Option<String> {
    let median = |metric: &str| {
        let figures = dataset.trials.iter().flat_map(|trial| &trial.steps).filter_map(|step| step.figure(metric));
        let mut values: Vec<f64> = figures.map(|figure| figure.value).collect();
        values.sort_by(f64::total_cmp);
        let middle = Duration::try_from_secs_f64(*values.get(values.len() / 2)?).ok()?;
        let rounded = Duration::from_millis(u64::try_from(middle.as_millis()).unwrap_or(0));
        Some((values.len(), format_duration(rounded)))
    };
    let (trials, overhead) = median(catalog::TRIAL_OVERHEAD.name)?;
    let (_, settling) = median(catalog::SETTLING_TIME.name)?;
    let boot = median(catalog::BOOT_TIME.name);
    let boot = boot.map_or_else(String::new, |(guests, time)| format!(", {time} of it to boot one of {guests} guests"));
    Some(format!(
        "A trial took {overhead} beside its steps{boot}, and {settling} to settle (medians of {trials} trials)."
    ))
}
