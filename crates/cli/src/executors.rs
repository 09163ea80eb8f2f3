//! Which executor runs a study's trials, as far as the command line and this machine decide.

use crate::{
    args::{ExecutorChoice, Missing, NamedKernel, RunArguments},
    commands::Context,
    exit::Exit,
    paths,
    rights::is_root,
    studies::Study,
    terminal::{self, Failure},
};
use fstone_drive::{Drive, Kind, Model, Processor};
use fstone_files::read_text;
use fstone_lab::{
    agent::{DEFAULT_MODEL, Flavour, GuestOptions, default_kernel, missing_kernel, missing_named_kernel},
    filesystem,
    inventory::too_little_memory,
};
use fstone_model::{
    Cell, Dataset, Plan,
    inventory::{CHARGE_SETTING, GUEST_MEMORY_SETTING, MODEL_SETTING, PROCESSOR_SETTING},
    metric::catalog,
    study::{DeviceSpec, DiskTruth, KernelSpec, PowerCut, StepAction},
    units::{format_bytes, format_duration},
};
use std::{path::Path, time::Duration};

pub(crate) enum Chosen {
    Plan(Box<Plan>),
    /// The workload alone, on the filesystem that is there.
    Directory,
}

/// Decides by the command line; reports on standard error what a user would not expect.
pub(crate) fn choose(context: &Context, arguments: &RunArguments, plan: &Plan) -> Result<Chosen, Failure> {
    if !arguments.kernel.is_empty() {
        let timed = |kernel: &&KernelSpec| !kernel.is_exact();
        let kernels = there(&arguments.kernel)?;
        if let Some(kernel) = kernels.iter().find(timed).filter(|_| arguments.exact) {
            let words = "--exact needs a kernel whose time can be simulated, exact:NAME (`fstone kernel list`)";
            return Err(Failure::new(Exit::BadInput, format!("{words}; {} is not one", kernel.written())));
        }
        all_there(&kernels, |kernel| missing_kernel(kernel, &context.kernels))?;
        return Ok(Chosen::Plan(Box::new(plan.under_kernels(|_| kernels.clone()))));
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
                "there is no kernel whose time can be simulated; build one with `fstone kernel build` (about eight minutes of CPU time, once; no root)",
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

/// The kernels that are named. Those that have to be built were built, unless nothing is to be done at all.
fn there(kernels: &[NamedKernel]) -> Result<Vec<KernelSpec>, Failure> {
    let there = |kernel: &NamedKernel| match kernel {
        NamedKernel::There(kernel) => Ok(kernel.clone()),
        NamedKernel::Tree(tree) => {
            let words = format!(
                "--dry-run builds nothing: run `fstone kernel build {tree}` first, and name the kernel that it built"
            );
            Err(Failure::new(Exit::BadInput, words))
        }
    };
    kernels.iter().map(there).collect()
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

/// The running kernel for root, where it has any of the study's filesystems and all steps can be made there; else user-mode
/// Linux; else a directory. The whole study goes the same way: rows of different executors could not be compared.
fn automatic(context: &Context, plan: &Plan, uml: Option<KernelSpec>) -> Chosen {
    let is_asked_about = |cell: &&Cell| {
        // Devices and directories of the machine are only available on the machine itself.
        cell.kernel == KernelSpec::Host && matches!(cell.device, DeviceSpec::Loop { .. })
    };
    let has = |cell: &Cell| {
        let known = filesystem::find(&cell.filesystem.kind);
        known.is_none_or(|known| filesystem::kernel_has(known.kernel_name()))
    };
    let cuts_power = |cell: &Cell| cell.steps.iter().any(|step| matches!(step.action, StepAction::PowerCut(_)));
    let power_cuts = plan.cells.iter().filter(is_asked_about).any(cuts_power);
    let mut asked = plan.cells.iter().filter(is_asked_about).peekable();
    if asked.peek().is_none() || (is_root() && !power_cuts && asked.any(has)) {
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
    let why = match (power_cuts, is_root()) {
        (true, _) => "Power cuts need a guest",
        (false, true) => "The running kernel has none of these filesystems",
        (false, false) => "Not root",
    };
    terminal::tell(&format!(
        "{why}: running the study in user-mode Linux ({}). Compare its figures with each other only.",
        uml.written()
    ));
    Chosen::Plan(Box::new(
        plan.under_kernels(|cell| vec![if is_asked_about(&cell) { uml.clone() } else { cell.kernel.clone() }]),
    ))
}

/// The filesystems of the plan that the running kernel lacks, where a run in user-mode Linux can have them, and what to compare them with
/// there: the baseline, or the first row that runs here. Nothing where no row, or every row, is here.
pub(crate) fn rows_for_guests(context: &Context, plan: &Plan) -> Option<(KernelSpec, Vec<String>)> {
    let in_guest = |cell: &&Cell| cell.kernel == KernelSpec::Host && matches!(cell.device, DeviceSpec::Loop { .. });
    // One that no kernel has is no better off in a guest.
    let lacks = |cell: &Cell| {
        filesystem::find(&cell.filesystem.kind)
            .is_some_and(|known| known.unusable().is_none() && !filesystem::kernel_has(known.kernel_name()))
    };
    let mut names: Vec<String> = Vec::new();
    for cell in plan.cells.iter().filter(in_guest).filter(|cell| lacks(cell)) {
        if !names.contains(&cell.filesystem.name) {
            names.push(cell.filesystem.name.clone());
        }
    }
    let baseline = plan.baseline.and_then(|index| plan.cells.get(index as usize));
    if names.is_empty() {
        return None;
    }
    let Some(partner) = baseline.into_iter().chain(&plan.cells).filter(in_guest).find(|cell| !lacks(cell)) else {
        terminal::tell(
            "No second run in user-mode Linux, because no row runs here; --executor uml runs all of them there.",
        );
        return None;
    };
    names.push(partner.filesystem.name.clone());
    let Some(kernel) = default_kernel(&context.kernels, Flavour::Uml) else {
        terminal::tell("No second run: user-mode Linux is not installed (apt-get install user-mode-linux).");
        return None;
    };
    Some((kernel, names))
}

/// What a power cut cannot show, and what a drive without a model of its cache loses in one.
pub(crate) fn tell_of_power_cuts(plan: &Plan) {
    let cuts = |cell: &&Cell| cell.steps.iter().any(|step| matches!(step.action, StepAction::PowerCut(_)));
    if plan.cells.iter().any(|cell| cuts(&cell)) {
        terminal::tell(
            "Power cuts: a guest's disk has no FUA, so a filesystem that relies on FUA alone may look safe (docs/durability.md).",
        );
    }
    let constant = |(_, model): &(String, Model)| model.kind() == Kind::Constant;
    for (name, _) in models(plan).unwrap_or_default().into_iter().filter(constant) {
        if plan.cells.iter().filter(cuts).any(|cell| cell.device.model() == Some(&name)) {
            terminal::tell(&format!(
                "Power cuts: the write cache of {name} is volatile, so what was written and not flushed can be lost."
            ));
        }
    }
}

/// Nothing gets warmer in virtual time.
pub(crate) fn leave_out_warm_up(plan: &mut Plan) {
    if plan.cells.iter().all(|cell| cell.kernel.is_exact()) {
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

pub(crate) fn guests(context: &Context, arguments: &RunArguments, plan: &Plan) -> Result<GuestOptions, Failure> {
    let options = GuestOptions::new(context.kernels.clone(), &paths::own_cache());
    let processor = processor(context, arguments, plan)?;
    let call = processor.as_ref().map(|one| Duration::from_nanos(one.system_call_ns()));
    let compares = arguments.published && plan.cells.iter().all(|cell| cell.kernel.is_exact());
    let of_the_day = plan.published.as_ref().filter(|_| compares).and_then(|published| published.memory_bytes);
    Ok(GuestOptions {
        models: models(plan)?,
        charge: arguments.charge.or(call).unwrap_or(options.charge),
        processor,
        first_block: arguments.blocks.as_ref().and_then(|blocks| blocks.0.first()).copied().unwrap_or(0),
        memory_bytes: arguments.guest_memory.or(of_the_day).unwrap_or(options.memory_bytes),
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
    let options = guests(context, arguments, plan)?;
    let mut settings = vec![(GUEST_MEMORY_SETTING.to_owned(), format_bytes(options.memory_bytes))];
    if plan.cells.iter().any(|cell| cell.kernel.is_exact()) {
        settings
            .extend(options.models.iter().map(|(name, model)| (format!("{MODEL_SETTING}{name}"), model.to_string())));
        settings.push((CHARGE_SETTING.to_owned(), format_duration(options.charge)));
        settings.extend(options.processor.as_ref().map(|one| (PROCESSOR_SETTING.to_owned(), one.to_string())));
        settings.extend(exact_kernels(context, plan));
    }
    if plan.cells.iter().any(|cell| !matches!(cell.kernel, KernelSpec::Host | KernelSpec::Exact(_))) {
        settings.push(("guest disk".to_owned(), options.speed.to_string()));
    }
    Ok(settings)
}

/// The seed of runs in virtual time: always the same, so that any two of them can be compared seed by seed.
pub(crate) const EXACT_SEED: u64 = 1;

/// Perturbed guests of each row, unless the user says another number or many seeds show the scatter anyway.
const PERTURBED: u32 = 2;
const ENOUGH_SEEDS: u32 = 5;

/// Refuses options that no trial would use.
pub(crate) fn refuse_unused(arguments: &RunArguments, plan: &Plan) -> Result<(), Failure> {
    let given = |options: &[(bool, &'static str)]| options.iter().find(|(is_given, _)| *is_given).map(|one| one.1);
    let of_virtual_time = given(&[
        (arguments.model.is_some(), "--model"),
        (arguments.perturbed.is_some(), "--perturbed"),
        (arguments.cpu.is_some(), "--cpu"),
        (arguments.charge.is_some(), "--charge"),
        (arguments.jobs.is_some(), "--jobs"),
    ]);
    let of_guests = given(&[
        (arguments.guest_memory.is_some(), "--guest-memory"),
        (arguments.guest_disk.is_some(), "--guest-disk"),
    ]);
    let words = match (of_virtual_time, of_guests) {
        (Some(option), _) if plan.cells.iter().all(|cell| !cell.kernel.is_exact()) => {
            format!("{option} is for trials in virtual time: add --exact, or --kernel exact:VERSION")
        }
        // What is missing runs in guests, too.
        (_, Some(option))
            if arguments.missing == Missing::Skip && plan.cells.iter().all(|cell| cell.kernel == KernelSpec::Host) =>
        {
            format!("{option} is for trials in guests: add --executor uml, or --kernel")
        }
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::BadInput, words))
}

/// Settings of runs in virtual time: which model each cell's drive is, with its text among what is recorded, and
/// the seed, unless the user or the study (which would not have the one that was drawn) says another.
pub(crate) fn make_exact(
    plan: &mut Plan,
    study: &Study,
    arguments: &RunArguments,
    drawn_seed: u64,
) -> Result<(), Failure> {
    let bad = |words: String| Failure::new(Exit::BadInput, words);
    refuse_unused(arguments, plan)?;
    if !plan.cells.iter().any(|cell| cell.kernel.is_exact()) {
        return match plan.cells.iter().find_map(|cell| cell.device.model()) {
            Some(name) => {
                Err(bad(format!("the study's device is the model {name}, a drive in virtual time: add --exact")))
            }
            None => Ok(()),
        };
    }
    let usual = !plan.quick && plan.repeats.min < ENOUGH_SEEDS && plan.budget.is_none() && arguments.blocks.is_none();
    plan.perturbed = arguments.perturbed.unwrap_or(if usual { PERTURBED } else { 0 });
    // What the study says is of real time.
    plan.expected_duration = None;
    if plan.seed == drawn_seed && arguments.seed.is_none() && plan.cells.iter().all(|cell| cell.kernel.is_exact()) {
        plan.seed = EXACT_SEED;
    }
    let mut attached = |option: &str, named: Option<&str>| match named {
        Some(path) if path.ends_with(".toml") => {
            let name = file_name(path);
            let text =
                study.recorded_file(&name).map_or_else(|| read_text(Path::new(path)), |text| Ok(text.to_owned()));
            let text = text.map_err(|error| bad(format!("{option} {path}: {error}")))?;
            match plan.attachments.iter().find(|(known, _)| *known == name) {
                Some((_, known)) if *known != text => {
                    let words = "the run would have another file of this name; rename one of them";
                    return Err(bad(format!("{option} {path}: {words}")));
                }
                Some(_) => {}
                None => plan.attachments.push((name.clone(), text)),
            }
            Ok(Some(name))
        }
        other => Ok(other.map(str::to_owned)),
    };
    let named = attached("--model", arguments.model.as_deref())?;
    attached("--cpu", arguments.cpu.as_deref())?;
    let of_the_day = plan.published.as_ref().filter(|_| arguments.published).and_then(|one| one.model.as_deref());
    let usual = of_the_day.unwrap_or(DEFAULT_MODEL);
    for cell in plan.cells.iter_mut().filter(|cell| cell.kernel.is_exact()) {
        if let DeviceSpec::Loop { model, .. } = &mut cell.device {
            let own = model.take().unwrap_or_else(|| usual.to_owned());
            *model = Some(named.clone().unwrap_or(own));
        }
    }
    let models = models(plan)?;
    let forgets = |cut: &PowerCut| matches!(cut.disk, DiskTruth::ForgetsFlushes);
    for cell in plan.cells.iter().filter(|cell| cell.kernel.is_exact()) {
        let cuts = cell.steps.iter().any(|step| matches!(&step.action, StepAction::PowerCut(cut) if forgets(cut)));
        let Some(name) = cell.device.model().filter(|_| cuts) else { continue };
        let durable = |(known, model): &(String, Model)| known == name && Drive::new(model, 1 << 30).is_durable();
        if models.iter().any(durable) {
            let words = "has a buffer that survives a loss of power, so it gets no flush that it could forget";
            return Err(bad(format!(
                "disk = \"forgets-flushes\": the drive {name} {words}; take another --model, as sata-ssd"
            )));
        }
    }
    Ok(())
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What the kernel's work is charged as, if its kernels count it.
fn processor(context: &Context, arguments: &RunArguments, plan: &Plan) -> Result<Option<Processor>, Failure> {
    let Some(named) = arguments.cpu.as_deref().filter(|named| *named != "free") else { return Ok(None) };
    let name = file_name(named);
    let processor = match plan.attachments.iter().find(|(known, _)| *known == name) {
        // With its ending, so that nobody takes it for one that is built in.
        Some((_, text)) => Processor::parse(&name, text),
        None => Processor::find(named),
    };
    let processor = processor.map_err(|error| Failure::new(Exit::BadInput, format!("--cpu {named}: {error}")))?;
    match without_counts(context, plan) {
        Some(words) => Err(Failure::new(Exit::CannotHere, format!("--cpu: {words}"))),
        None => Ok(Some(processor)),
    }
}

fn models(plan: &Plan) -> Result<Vec<(String, Model)>, Failure> {
    let mut models: Vec<(String, Model)> = Vec::new();
    for name in plan.cells.iter().filter_map(|cell| cell.device.model()) {
        if models.iter().any(|(known, _)| known == name) {
            continue;
        }
        let file = plan.attachments.iter().find(|(known, _)| known == name);
        let model = match file {
            Some((_, text)) => Model::parse(name.trim_end_matches(".toml"), text),
            None => Model::find(name),
        };
        let model = model.map_err(|error| Failure::new(Exit::BadInput, format!("the model {name}: {error}")))?;
        models.push((name.to_owned(), model));
    }
    Ok(models)
}

/// Refuses a --cpu that no kernel can be charged for, and says which column of the kernels' work would stay empty.
pub(crate) fn check_work(context: &Context, arguments: &RunArguments, plan: &Plan) -> Result<(), Failure> {
    let is_charged = processor(context, arguments, plan)?.is_some();
    let of_work = [
        catalog::KERNEL_WORK,
        catalog::KERNEL_WORK_PER_OPERATION,
        catalog::KERNEL_BACKGROUND_WORK,
        catalog::KERNEL_INTERRUPT_WORK,
        catalog::KERNEL_COPIES,
        catalog::KERNEL_TIME,
    ];
    // Of a phase with its name ahead.
    let is_of = |known: &str, metric: &str| {
        metric.strip_suffix(known).is_some_and(|phase| phase.is_empty() || phase.ends_with(' '))
    };
    let asks = |metric: &str| of_work.iter().any(|known| is_of(known.name, metric));
    if let Some(column) = plan.columns.iter().find(|column| asks(&column.metric)) {
        let in_real_time = || {
            let is_real = |cell: &Cell| !cell.kernel.is_exact();
            let words = "only kernels in virtual time count their work: build one with `fstone kernel build --counting`, and name it with --kernel";
            plan.cells.iter().any(is_real).then(|| words.to_owned())
        };
        let words = without_counts(context, plan).or_else(in_real_time);
        let uncharged = || "the kernel's work takes no time; let it with --cpu MODEL (`fstone device`)".to_owned();
        let words = words.or_else(|| (column.metric == catalog::KERNEL_TIME.name && !is_charged).then(uncharged));
        words.iter().for_each(|words| terminal::tell(&format!("{}: {words}", column.header)));
    }
    Ok(())
}

fn without_counts(context: &Context, plan: &Plan) -> Option<String> {
    let store = fstone_sandbox::kernel::Store::new(&context.kernels);
    let kernels = exact_names(plan).into_iter().filter_map(|name| store.find(&name).ok());
    let mut without = kernels.filter(|kernel| !kernel.counts).map(|kernel| kernel.name());
    without.next().map(|name| {
        format!(
            "the kernel {name} does not count its work; build one that does with `fstone kernel build --counting`, and name it with --kernel \
             (`fstone kernel list`)"
        )
    })
}

fn exact_names(plan: &Plan) -> Vec<String> {
    let mut names: Vec<String> =
        plan.cells.iter().filter(|cell| cell.kernel.is_exact()).map(|cell| cell.kernel.written()).collect();
    names.sort();
    names.dedup();
    names
}

/// What each of the plan's kernels is, to the last bit: figures in virtual time belong to one build of a kernel.
fn exact_kernels(context: &Context, plan: &Plan) -> Vec<(String, String)> {
    let store = fstone_sandbox::kernel::Store::new(&context.kernels);
    let known = |name: String| {
        let kernel = store.find(&name).ok()?;
        let digest = kernel.digest().ok()?;
        Some((format!("kernel {name}"), format!("{}, sha256 {digest}", kernel.source)))
    };
    exact_names(plan).into_iter().filter_map(known).collect()
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
    let boot = boot.map_or_else(String::new, |(_, time)| format!(", {time} of it to boot its guest"));
    let of = match trials {
        1 => String::new(),
        trials => format!(" (medians of {trials} trials)"),
    };
    Some(format!("A trial took {overhead} outside its steps{boot}, and {settling} to settle{of}."))
}
