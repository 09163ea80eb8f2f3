//! `fstone run`: study → plan → trials → store → report.

use super::{
    Context, cancel_on_signals,
    carry_out::{Done, Work, join, lab_options, take_inventory},
    destroy, fresh_identity, fresh_seed, kernel, merge, now_unix_ns, repeats, resume, slurm,
};
use crate::{
    args::{ExecutorChoice, Missing, NamedKernel, RunArguments, USUAL_SOURCE},
    executors::{self, Chosen, EXACT_SEED},
    exit::Exit,
    launcher, paths,
    progress::Expected,
    recorder::StoreRecorder,
    sources,
    studies::{self, Study},
    terminal::{self, CommandResult, Failure, OrExit},
};
use fstone_analysis::text::{counted, listing};
use fstone_formats::study::{DeviceChoice, Overrides, source_trees};
use fstone_lab::{
    agent::{Flavour, default_kernel},
    inventory,
};
use fstone_model::{
    Plan,
    dataset::Run,
    study::{Cell, DeviceSpec, FILESYSTEM_FACTOR, FilesystemSpec, KernelSpec, StepAction},
    text,
    units::format_duration,
};
use std::{
    collections::VecDeque,
    path::PathBuf,
    time::{Duration, Instant},
};

pub(crate) fn run(context: &Context, arguments: &RunArguments) -> CommandResult {
    let arguments = &arguments.told_apart().map_err(|words| Failure::new(Exit::BadInput, words))?;
    if arguments.slurm {
        slurm::refuse_without_slurm()?;
    }
    if let (true, Some(study)) = (arguments.resume, &arguments.study) {
        if arguments.slurm {
            return slurm::go_on(context, arguments, study);
        }
        return resume::resume(context, arguments, study);
    }
    check_places(context, arguments)?;
    let (arguments, command) = &with_kernels(context, arguments)?;
    let names: Vec<String> = match &arguments.study {
        Some(name) => vec![name.clone()],
        None => studies::names().map(str::to_owned).collect(),
    };
    // Every study is read before the first one starts, so that a typo in the last is not found after hours.
    let (mut plans, mut parts) = (Vec::new(), Vec::new());
    for name in names {
        let study = studies::find(&name).or_exit(Exit::BadInput)?;
        let (first, own) =
            (plan(context, &study, arguments)?, Part { arguments: arguments.clone(), command: command.clone() });
        let second = if arguments.missing == Missing::Uml { own.in_guests(context, &name, &first) } else { None };
        plans.push(first);
        parts.push(own);
        if let Some(part) = second {
            plans.push(plan(context, &study, &part.arguments)?);
            parts.push(part);
        }
    }
    if let Some(source) = &arguments.source
        && plans.iter().all(|plan| source_trees(plan).is_empty())
    {
        let words = format!("--source {}: no step of the study unpacks a source tree", source.display());
        return Err(Failure::new(Exit::BadInput, words));
    }
    if arguments.dry_run {
        for plan in &mut plans {
            sources::provide(plan, arguments.source.as_deref(), sources::Missing::Name)?;
            let seed = match arguments.seed {
                Some(seed) => seed.to_string(),
                None if plan.seed == EXACT_SEED && plan.cells.iter().all(|cell| cell.kernel.is_exact()) => {
                    format!("{EXACT_SEED} (the same in every run in virtual time; --seed chooses another)")
                }
                None => format!(
                    "{0} (for this order use --seed {0}; otherwise each run draws another, unless the study has one)",
                    plan.seed
                ),
            };
            let (cells, trials) = (counted(plan.cells.len(), "cell"), tries(plan));
            let head = format!("{}: {}\n{cells}, {trials}, seed {seed}\n\n", plan.study, plan.title);
            let plan = fstone_lab::run::describe::describe(plan, &context.work_directory);
            terminal::print(&format!("{head}{plan}\n"));
        }
        return Ok(Exit::Success);
    }
    for plan in &plans {
        if arguments.slurm {
            slurm::refuse(plan, arguments)?;
        }
        if let Some(blocks) = &arguments.blocks {
            merge::check_blocks(plan, blocks)?;
        }
    }
    destroy::confirm(context, &plans, &arguments.allow_destroy, &arguments.allow_destroy_data)?;
    let mut agenda = Agenda::of(&plans);
    let ends = plans.into_iter().zip(&parts).map(|(plan, part)| {
        let done = carry_out(context, &part.arguments, &part.command, plan, agenda.next_study());
        agenda.study_done();
        Ok(done?.exit())
    });
    Ok(one_after_the_other(ends, terminal::tell_failure))
}

/// Builds the kernels that are to be built. The options with their names, and the command line that says the same: the trees
/// may be other ones when it is read again.
fn with_kernels(context: &Context, arguments: &RunArguments) -> Result<(RunArguments, Vec<String>), Failure> {
    if arguments.exact && arguments.kernel.is_empty() && !arguments.dry_run {
        offer_a_kernel(context)?;
    }
    let is_tree = |kernel: &NamedKernel| matches!(kernel, NamedKernel::Tree(_));
    if arguments.dry_run || !arguments.kernel.iter().any(is_tree) {
        return Ok((arguments.clone(), own_command()));
    }
    let mut built = arguments.clone();
    let counting = arguments.cpu.as_deref().is_some_and(|cpu| cpu != "free");
    for at in 0..built.kernel.len() {
        if let NamedKernel::Tree(tree) = &built.kernel[at] {
            let made = NamedKernel::There(KernelSpec::Exact(kernel::build(context, tree, None, counting)?.release));
            // The second build takes the name from the first, and both rows would run the second.
            if built.kernel.contains(&made) {
                let words = format!(
                    "two kernels would have the name {}; build each with `fstone kernel build TREE --name NAME` and use these names",
                    made.written()
                );
                return Err(Failure::new(Exit::BadInput, words));
            }
            built.kernel[at] = made;
        }
    }
    let command = context.command_line(&built);
    Ok((built, command))
}

/// Asks a person for whom `--exact` finds no kernel whether to build one, and does. What is missing then is said where it is looked for.
fn offer_a_kernel(context: &Context) -> Result<(), Failure> {
    const QUESTION: &str = "There is no kernel whose time can be simulated yet. Build one now? It takes about eight minutes of CPU time, once, \
                            and installs nothing.";
    let lacks = default_kernel(&context.kernels, Flavour::Exact).is_none();
    if lacks && terminal::is_interactive() && terminal::agrees(QUESTION) {
        kernel::build(context, USUAL_SOURCE, None, false)?;
    }
    Ok(())
}

/// Makes runs until one is interrupted. What one came to keeps none of the others: why it failed is told, and the status at the
/// end is that of the first failure, else that of the last run which was no success.
fn one_after_the_other(ends: impl Iterator<Item = CommandResult>, tell: impl Fn(&Failure) -> Exit) -> Exit {
    let (mut exit, mut failed) = (Exit::Success, None);
    for end in ends {
        match end {
            Ok(Exit::Success) => {}
            Ok(Exit::Interrupted) => return Exit::Interrupted,
            Ok(other) => exit = other,
            Err(failure) => match tell(&failure) {
                Exit::Interrupted => return Exit::Interrupted,
                other => failed = failed.or(Some(other)),
            },
        }
    }
    failed.unwrap_or(exit)
}

pub(super) fn check_places(context: &Context, arguments: &RunArguments) -> Result<(), Failure> {
    context.check_named_store()?;
    context.check_named_work_directory()?;
    let Some(output) = &arguments.output else { return Ok(()) };
    paths::require_directory_of(output, " with --output")?;
    if output.metadata().is_ok_and(|found| !found.is_dir()) {
        let words = format!("{} is not a directory; name one for the reports with --output", output.display());
        return Err(Failure::new(Exit::BadInput, words));
    }
    Ok(())
}

struct Part {
    arguments: RunArguments,
    command: Vec<String>,
}

impl Part {
    /// The second run: of the rows that the running kernel lacks, with one that it has to compare them with. Rows of two executors
    /// cannot be compared, so they are not put into one table.
    fn in_guests(&self, context: &Context, study: &str, first: &Plan) -> Option<Self> {
        let (kernel, names) = executors::rows_for_guests(context, first)?;
        let (lacking, partner) = (&names[..names.len() - 1], &names[names.len() - 1]);
        terminal::tell(&format!(
            "The running kernel lacks {}: a second run tests them in user-mode Linux ({}), with {}. Compare its figures with each other only.",
            text::line(&listing(lacking)),
            kernel.written(),
            text::line(partner)
        ));
        let others = self.arguments.only.iter().filter(|(factor, _)| factor != FILESYSTEM_FACTOR).cloned();
        let arguments = RunArguments {
            study: Some(study.to_owned()),
            // One of them, where several were asked for.
            all: false,
            executor: ExecutorChoice::Uml,
            missing: Missing::Skip,
            only: names.iter().map(|name| (FILESYSTEM_FACTOR.to_owned(), name.clone())).chain(others).collect(),
            ..self.arguments.clone()
        };
        Some(Self { command: context.command_line(&arguments), arguments })
    }
}

pub(super) fn own_command() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// How long several studies will take, one after the other: as their authors say, corrected by how long those that are
/// done really took.
struct Agenda {
    expected: VecDeque<Option<Duration>>,
    expected_until_now: Duration,
    started: Instant,
}

impl Agenda {
    fn of(plans: &[Plan]) -> Self {
        let expected = plans.iter().map(|plan| plan.expected_duration).collect();
        Self { expected, expected_until_now: Duration::ZERO, started: Instant::now() }
    }

    fn next_study(&self) -> Expected {
        self.expected_after(self.started.elapsed())
    }

    fn expected_after(&self, elapsed: Duration) -> Expected {
        let pace = if self.expected_until_now.is_zero() {
            1.0
        } else {
            elapsed.as_secs_f64() / self.expected_until_now.as_secs_f64()
        };
        let mut studies = self.expected.iter().map(|time| time.map(|time| time.mul_f64(pace)));
        // One study of which nothing is known makes the sum unknown.
        Expected { study: studies.next().flatten(), later: studies.sum() }
    }

    fn study_done(&mut self) {
        self.expected_until_now += self.expected.pop_front().flatten().unwrap_or_default();
    }
}

pub(super) fn plan(context: &Context, study: &Study, arguments: &RunArguments) -> Result<Plan, Failure> {
    let device = arguments.device.as_deref().map(str::parse::<DeviceChoice>).transpose();
    let device = device.map_err(|words| Failure::new(Exit::BadInput, format!("--device: {words}")))?;
    let drawn_seed = fresh_seed();
    let overrides = Overrides {
        quick: arguments.quick,
        duration: arguments.duration,
        repeats: arguments.repeats,
        budget: arguments.budget,
        resolution: arguments.resolution,
        device,
        device_size: arguments.device_size,
        seed: arguments.seed,
        fresh_seed: Some(drawn_seed),
        only: arguments.only.clone(),
        variables: arguments.set.clone(),
        // What it would do can be looked at everywhere.
        no_ranks: launcher::NO_RANKS.filter(|_| !arguments.dry_run),
    };
    let (plan, warnings) = study.compile(&overrides).or_exit(Exit::BadInput)?;
    // What a built-in study does it does on purpose.
    if let Some(warnings) = warnings.filter(|_| !study.is_built_in()) {
        terminal::tell(warnings.to_string().trim_end());
    }
    let directory = plan.cells.iter().find_map(|cell| match &cell.device {
        DeviceSpec::Directory { path } => Some(path.clone()),
        _ => None,
    });
    if let Some(path) = directory {
        refuse_in_directory(arguments, &plan)?;
        return on_directory(context, &plan, path.as_deref());
    }
    match executors::choose(context, arguments, &plan)? {
        Chosen::Plan(mut plan) => {
            refuse_own_in_guests(&plan)?;
            executors::place_images(&mut plan);
            executors::leave_out_warm_up(&mut plan);
            executors::tell_of_power_cuts(&plan);
            executors::make_exact(&mut plan, study, arguments, drawn_seed)?;
            executors::check_work(context, arguments, &plan)?;
            Ok(*plan)
        }
        Chosen::Directory => {
            executors::check_work(context, arguments, &plan)?;
            on_directory(context, &plan, None)
        }
    }
}

/// The commands of a study are the host's to run.
fn refuse_own_in_guests(plan: &Plan) -> Result<(), Failure> {
    let in_guest = |cell: &&Cell| cell.filesystem.own.is_some() && cell.kernel != KernelSpec::Host;
    let Some(cell) = plan.cells.iter().find(in_guest) else { return Ok(()) };
    let name = &cell.filesystem.kind;
    let words = format!(
        "{name} is described by the study itself and cannot be made in a guest ({}); leave its rows out with --only filesystem=NAME, or run the study with --executor host",
        cell.kernel.written()
    );
    Err(Failure::new(Exit::BadInput, words))
}

fn on_directory(context: &Context, plan: &Plan, path: Option<&str>) -> Result<Plan, Failure> {
    let directory = path.map_or_else(|| context.work_directory.clone(), PathBuf::from);
    let name = inventory::filesystem_of(&directory).unwrap_or_else(|| "a filesystem".into());
    let left = left_out_in_directory(plan);
    if !left.is_empty() {
        terminal::tell(&format!(
            "Left out, because {} is measured as it is: {}.",
            directory.display(),
            left.join(", ")
        ));
    }
    let mut others: Vec<&str> = plan.cells.iter().map(|cell| &*cell.filesystem.kind).collect();
    others.retain(|kind| *kind != name);
    if let (Some(kind), true) = (others.first(), left.is_empty()) {
        terminal::tell(&format!(
            "{} is on {name}, which is measured, whatever `type` says ({kind}).",
            directory.display()
        ));
    }
    let how = plan.past().map_or_else(|| "as it is".to_owned(), |past| format!("aged: {}", past.brief()));
    Ok(plan.on_directory(&format!("{name}, {how}"), path))
}

const OWN_FILESYSTEM: &str = "or have filesystems made for the study: --device loop --device-size SIZE";

/// What was asked for and a directory cannot have: it is on one filesystem, and the running kernel's.
fn refuse_in_directory(arguments: &RunArguments, plan: &Plan) -> Result<(), Failure> {
    let refused = |what: &str, why: &str, cure: &str| {
        Err(Failure::new(Exit::BadInput, format!("{what}: {why}; {cure}, {OWN_FILESYSTEM}")))
    };
    let is_guest = |kernel: &NamedKernel| !matches!(kernel, NamedKernel::There(KernelSpec::Host));
    let option = arguments.exact.then_some("--exact");
    let option = option.or(arguments.kernel.iter().any(is_guest).then_some("--kernel"));
    let is_guests = matches!(arguments.executor, ExecutorChoice::Uml | ExecutorChoice::Qemu);
    if let Some(option) = option.or(is_guests.then_some("--executor")) {
        return refused(option, "a directory is measured by the running kernel", &format!("leave {option} out"));
    }
    executors::refuse_unused(arguments, plan)?;
    let rows = || plan.cells.iter();
    let label = |cell: &Cell| text::line(&cell.label);
    if let Some(cell) = rows().find(|cell| !matches!(cell.device, DeviceSpec::Directory { .. })) {
        let why = format!("{} cannot be in one run with a directory", cell.device.describe());
        return refused(&label(cell), &why, "take other rows with --only");
    }
    if let Some(cell) = rows().find(|cell| !cell.queue.is_empty()) {
        return refused(
            &label(cell),
            "the queue of a directory's device is not fstone's to set",
            "leave that factor out",
        );
    }
    // With --device, a study for filesystems of its own is measured on one that is there.
    if arguments.device.is_some() {
        return Ok(());
    }
    if let Some(cell) = rows().find(|cell| cell.kernel != KernelSpec::Host) {
        let why = format!("{} cannot be had in a directory", cell.kernel.written());
        return refused(&label(cell), &why, "take other rows with --only");
    }
    if let Some(cell) = rows().find(|cell| cell.filesystem.name != plan.cells[0].filesystem.name) {
        return refused(&label(cell), "a directory has one filesystem", "take one with --only filesystem=NAME");
    }
    if let Some(cell) = rows().find(|cell| is_made(&cell.filesystem)) {
        let why = "fstone does not make or mount the filesystem of a directory";
        return refused(&label(cell), why, "leave out `mkfs`, `mount` and `tree`");
    }
    Ok(())
}

fn is_made(spec: &FilesystemSpec) -> bool {
    !spec.mkfs.is_empty() || !spec.mount.is_empty() || spec.tree.is_some()
}

/// What of a study for filesystems of its own is not done in a directory.
fn left_out_in_directory(plan: &Plan) -> Vec<String> {
    let (mut names, mut steps): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for cell in &plan.cells {
        if !names.contains(&&*cell.filesystem.name) {
            names.push(&cell.filesystem.name);
        }
        for step in cell.steps.iter().filter(|step| !step.action.works_in_a_directory()) {
            let is_usual = matches!(step.action, StepAction::Mkfs | StepAction::Mount);
            if !is_usual && !steps.contains(&&*step.name) {
                steps.push(&step.name);
            }
        }
    }
    let of_filesystems = names.len() > 1 || plan.cells.iter().any(|cell| is_made(&cell.filesystem));
    let filesystems = of_filesystems.then(|| format!("the factor filesystem ({})", names.join(", ")));
    let is_other = plan.cells.iter().any(|cell| cell.kernel != KernelSpec::Host);
    let kernels = is_other.then(|| "the factor kernel".to_owned());
    filesystems.into_iter().chain(kernels).chain(steps.iter().map(|name| format!("the step {name}"))).collect()
}

pub(super) fn tries(plan: &Plan) -> String {
    match plan.budget {
        Some(budget) => format!(
            "trials for {} or until all pairs of rows are told apart or closer than {} %",
            format_duration(budget.time),
            100.0 * budget.resolution
        ),
        None => {
            let perturbed = match plan.perturbed {
                0 => String::new(),
                some => format!(" and {some} in perturbed guests"),
            };
            let one = plan.repeats.max == 1;
            format!("{} {}{perturbed} each", repeats(plan.repeats), if one { "trial" } else { "trials" })
        }
    }
}

pub(super) fn carry_out(
    context: &Context,
    arguments: &RunArguments,
    command: &[String],
    mut plan: Plan,
    expected: Expected,
) -> Result<Done, Failure> {
    if arguments.slurm {
        return slurm::carry_out(context, arguments, command, plan);
    }
    let cancel = cancel_on_signals()?;
    let presence = join(context, arguments, &cancel)?;
    sources::provide(&mut plan, arguments.source.as_deref(), sources::Missing::Make)?;
    let mut store = context.open_store()?;

    let cells = counted(plan.cells.len(), "cell");
    terminal::tell(&format!("{}: {cells}, {}; seed {}", plan.study, tries(&plan), plan.seed));
    let run = Run {
        blocks: Vec::new(),
        id: 0,
        identity: fresh_identity(),
        started_unix_ns: now_unix_ns(),
        finished_unix_ns: None,
        command: command.to_vec(),
        inventory: take_inventory(context, arguments, &plan)?,
        note: arguments.note.clone(),
        plan,
    };
    let options = lab_options(context, arguments, &run.plan, presence)?;
    let work = Work { context, arguments, options: &options, cancel: &cancel, identity: &run.identity };
    let recorder = StoreRecorder::of_new(&mut store, &run);
    let carried = work.carry_out(&run.plan, &[], recorder, expected);
    work.conclude(&mut store, carried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_that_fails_keeps_no_other_from_being_run() {
        let fails = |exit| Err(Failure::new(exit, "no"));
        let came_to = |ends: Vec<CommandResult>| {
            let (mut made, told) = (0, std::cell::Cell::new(0));
            let exit = one_after_the_other(ends.into_iter().inspect(|_| made += 1), |failure| {
                told.set(told.get() + 1);
                failure.exit
            });
            (exit, made, told.get())
        };
        use Exit::{CannotHere, Interrupted, LabFailed, NothingCompleted, Success};
        assert_eq!(came_to(vec![Ok(Success), Ok(Success)]), (Success, 2, 0));
        assert_eq!(came_to(vec![fails(LabFailed), Ok(NothingCompleted), Ok(Success)]), (LabFailed, 3, 1));
        assert_eq!(came_to(vec![Ok(NothingCompleted), fails(CannotHere), fails(LabFailed)]), (CannotHere, 3, 2));
        assert_eq!(came_to(vec![fails(LabFailed), Ok(Interrupted), Ok(Success)]), (Interrupted, 2, 1));
        assert_eq!(came_to(vec![fails(Interrupted), Ok(Success)]), (Interrupted, 1, 1));
    }

    #[test]
    fn the_time_of_later_studies_goes_by_what_earlier_ones_took() {
        let minutes = |minutes: u64| Some(Duration::from_secs(60 * minutes));
        let mut agenda = Agenda {
            expected: [minutes(4), minutes(5), minutes(3)].into(),
            expected_until_now: Duration::ZERO,
            started: Instant::now(),
        };
        assert_eq!(agenda.expected_after(Duration::ZERO), Expected { study: minutes(4), later: minutes(8) });
        agenda.study_done();
        let twice_as_long = minutes(8).expect("a time");
        assert_eq!(agenda.expected_after(twice_as_long), Expected { study: minutes(10), later: minutes(6) });
        agenda.expected[1] = None;
        assert_eq!(agenda.expected_after(twice_as_long).later, None);
    }
}
