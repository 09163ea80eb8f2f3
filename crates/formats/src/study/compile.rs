//! A study put together.

use super::{
    MAXIMUM_BYTES, age,
    bounds::{self, RecordSize},
    cells::Combinations,
    device,
    factor::Factor,
    form::{Form, check_names, find, full_form, quick_form},
    level::{self, Setting},
    load::{self, Files, Loader, Made, Number},
    overrides::Overrides,
    own_rows, placeholder, published, service, set, show,
    step::{self, Steps, Template},
    surface::StudyFile,
};
use crate::{
    decode::{At, Field, Text, document},
    diagnostic::{Diagnostic, Diagnostics, Report, Source},
    native::{Parameter, Target},
};
use fstone_model::kernels::KERNEL_FACTOR;
use fstone_model::study::{self, Budget, Cell, DeviceSpec, FilesystemSpec, FilesystemType, KernelSpec, Plan, Repeats};

/// When repeats are a range and neither the study nor the command line says when it is enough.
const DEFAULT_UNTIL: f64 = 0.02;
/// What does not matter when time is dealt out and nobody says.
const DEFAULT_RESOLUTION: f64 = 0.05;
/// The fewest and the most repeats when time is dealt out: what can be compared, and an end.
const WITHIN_BUDGET: Repeats = Repeats { min: 2, max: 10_000, until: None };
const DEFAULT_SEED: u64 = 1;

/// Reads a study file. `loader` reads a file that the study names, and `types` are the filesystems it may make.
///
/// The study is checked whole, with and without `[quick]`, whichever is asked for.
///
/// # Errors
/// Everything that is wrong with the study, the files it names, and the overrides.
pub fn compile(
    source: &Source,
    loader: &Loader<'_>,
    types: &[FilesystemType],
    overrides: &Overrides,
) -> Result<Plan, Diagnostics> {
    compile_with_warnings(source, loader, types, overrides).map(|(plan, _)| plan)
}

/// As [`compile`], with what may not have been meant: keywords of a profile that FFSB skips, for instance.
pub fn compile_with_warnings(
    source: &Source,
    loader: &Loader<'_>,
    types: &[FilesystemType],
    overrides: &Overrides,
) -> Result<(Plan, Option<Diagnostics>), Diagnostics> {
    let mut report = Report::new(source.clone());
    if !report.check_size(MAXIMUM_BYTES, "the study") {
        return Err(report.into_diagnostics().expect("the size is wrong"));
    }
    let mut files = Files::new(loader);
    let plan = document(&mut report).and_then(|surface| plan(&surface, &mut files, types, overrides, &mut report));
    for model in plan.iter().flat_map(|plan| &plan.cells).filter_map(|cell| cell.device.model()) {
        if model.ends_with(".toml") {
            files.attach(model, &mut report);
        }
    }
    let (plan, warnings) = report.finish(plan)?;
    let mut plan = plan.expect("there is a plan, or an error");
    plan.attachments = files.into_attachments();
    Ok((plan, warnings))
}

fn plan(
    surface: &StudyFile,
    files: &mut Files<'_>,
    types: &[FilesystemType],
    overrides: &Overrides,
    report: &mut Report,
) -> Option<Plan> {
    let no_steps = Vec::new();
    let step_surfaces = surface.step.as_ref().map_or(&no_steps, |field| &field.value);
    let services = service::services(surface, report);
    let steps = step::steps(step_surfaces, &services, files, report);
    let loads = || step_surfaces.iter().filter_map(|step| step.value.load.as_ref());
    if let (Some((why, cure)), Some(place)) =
        (overrides.no_ranks, loads().find_map(|load| load::place_of_launch(&load.value)))
    {
        let label = "a load of several ranks is asked for here";
        report.push(Diagnostic::error(place, why).label(label).help(cure));
    }
    let shows_nothing = step_surfaces.iter().all(|step| step.value.show.is_none());
    let unasked = surface.step.as_ref().filter(|_| shows_nothing).map(|field| {
        let actions = steps.templates.iter().map(|template| (template.name.as_str(), &template.action));
        show::unasked(actions, field.key)
    });
    let mut shown = unasked.unwrap_or_else(|| steps.shown.clone());
    // The first column is what the answer is about.
    shown.sort_by_key(|one| steps.templates.iter().any(|step| step.background && step.name == one.step));
    let columns = show::columns(&shown, report);
    if let Some(field) = surface.step.as_ref().filter(|_| shows_nothing && columns.is_empty() && steps.complete) {
        report.push(
            Diagnostic::error(field.key, "no step shows anything, so the table has no columns")
                .help("add to a step, for example: show = [\"time\"]"),
        );
    }
    let mut full = full_form(surface, files, types, report);
    check_names(surface, &full, &steps, report);
    let mut quick = surface.quick.as_ref().map(|field| quick_form(&field.value, &full, field.key, report));
    if let Some(form) = if overrides.quick { quick.as_mut() } else { Some(&mut full) } {
        form.set_variables(&overrides.variables, report);
    }
    if overrides.quick && quick.is_none() {
        report.push(
            Diagnostic::whole("this study has no quick form")
                .help("leave --quick out, or add a table [quick] to the study"),
        );
    }
    let all = Combinations::of(&full.factors, full.sweeps, full.place, report);
    let of_quick =
        quick.as_ref().map(|quick| (quick, Combinations::of(&quick.factors, quick.sweeps, quick.place, report)));

    // Whatever is asked for, both forms have to be right. The other one is made without the command line's changes.
    let none = Overrides::default();
    let (full_overrides, quick_overrides) = if overrides.quick { (&none, overrides) } else { (overrides, &none) };
    let mut made = cells(&full, all.clone().only(&full_overrides.only, report), &steps, full_overrides, report);
    let mut form = &full;
    if let Some((quick, combinations)) = of_quick {
        let of_quick = cells(quick, combinations.only(&quick_overrides.only, report), &steps, quick_overrides, report);
        if overrides.quick {
            (made, form) = (of_quick, quick);
        }
    }
    let (combinations, cells) = made;

    let labels: Vec<String> = all.cells.iter().map(|cell| all.label(cell)).collect();
    let baseline = surface.baseline.as_ref().and_then(|field| baseline(field, &all, &combinations, report));
    let compare = surface.compare.as_ref().and_then(|field| compared_factor(field, &all, report));
    let published =
        surface.published.as_ref().and_then(|field| published::published(&field.value, &labels, &columns, report));
    let published = published.map(|mut published| {
        published.figures.retain(|figure| cells.iter().any(|cell| cell.label == figure.cell));
        published
    });
    Some(Plan {
        study: stem(report.source().name()).to_owned(),
        title: surface.title.as_ref()?.value.0.clone(),
        about: surface.about.as_ref().map(|field| field.value.0.trim().to_owned()).unwrap_or_default(),
        source: report.source().text().to_owned(),
        attachments: Vec::new(),
        quick: overrides.quick,
        warm_up: form.warm_up,
        perturbed: 0,
        repeats: overridden_repeats(form.repeats, overrides, report),
        budget: overrides
            .budget
            .map(|time| Budget { time, resolution: overrides.resolution.unwrap_or(DEFAULT_RESOLUTION) }),
        order: surface.order.as_ref().map(|field| field.value.0).unwrap_or_default(),
        seed: overrides
            .seed
            .or(surface.seed.as_ref().map(|field| field.value.0))
            .or(overrides.fresh_seed)
            .unwrap_or(DEFAULT_SEED),
        factors: combinations.factors.iter().map(model_factor).collect(),
        cells,
        columns,
        baseline,
        compare,
        // The author's word is about the study as written.
        expected_duration: form.expected_duration.filter(|_| !overrides.change_the_time()),
        published,
    })
}

fn cells(
    form: &Form<'_>,
    combinations: Combinations,
    steps: &Steps,
    overrides: &Overrides,
    report: &mut Report,
) -> (Combinations, Vec<Cell>) {
    let set = set::numbers(&overrides.variables, report);
    let numbers = numbers(form, overrides, set, report);
    check_numbers(&numbers, &combinations.factors, steps, report);
    if overrides.device.is_some() && find(&form.factors, "device").is_some() {
        report.push(Diagnostic::whole("--device cannot be given: the device is a factor of this study"));
    }
    let mut device = form.device.and_then(|field| device::device(&field.value, report));
    device = device.map(|device| device::overridden(device, overrides, report));
    if !bounds::commands_fit(form, steps, report) {
        return (combinations, Vec::new());
    }
    let mut made = Made::default();
    let mut record = RecordSize::default();
    let cells = (0..)
        .zip(&combinations.cells)
        .map(|(index, levels)| {
            let mut cell = Cell {
                index,
                levels: levels.iter().map(|level| u32::try_from(*level).expect("few levels")).collect(),
                label: combinations.label(levels),
                filesystem: FilesystemSpec::default(),
                device: device.clone().unwrap_or(DeviceSpec::Directory { path: None }),
                kernel: KernelSpec::Host,
                queue: Vec::new(),
                steps: Vec::new(),
            };
            let mut numbers = numbers.clone();
            let (mut background, mut age) = (None, None);
            for (factor, level) in combinations.factors.iter().zip(levels) {
                let At { span, value: level } = &factor.levels[*level];
                match level.setting.clone() {
                    Setting::Filesystem(filesystem, its_age) => (cell.filesystem, age) = (filesystem, its_age),
                    Setting::Device(device) => cell.device = device::overridden(device, overrides, report),
                    Setting::Kernel(kernel) => cell.kernel = kernel,
                    Setting::Background(name) => background = Some(name),
                    Setting::Queue(name, value) => cell.queue.push((name.to_owned(), value)),
                    Setting::Number(target, value) => {
                        numbers.push(Number { target, value, span: Some(*span), prevails: false });
                    }
                }
            }
            if let Some(tree) = &mut cell.filesystem.tree {
                *tree = placeholder::fill(tree, |name| form.variable(name).map(str::to_owned));
            }
            own_rows::settle(&mut cell, &form.variables);
            let step = |template: &Template| template.step(&numbers, &form.variables, &mut made, report);
            cell.steps = steps.templates.iter().map(step).collect();
            // Before others than those of the templates are among the steps.
            bounds::check_filesets(&cell, steps, &numbers, report);
            if let Some(age) = age {
                step::put_age(&mut cell.steps, age);
            }
            if let Some(only) = background {
                cell.steps.retain(|step| !step.background || step.name == only);
            }
            cell
        })
        .take_while(|cell| record.takes(cell))
        .collect::<Vec<_>>();
    own_rows::check_cells(&cells, form.place, report);
    age::check_cells(&cells, form.place, report);
    if cells.len() < combinations.cells.len() {
        report.push(bounds::plan_too_long(form.place, combinations.cells.len(), cells.len()));
    }
    (combinations, cells)
}

/// The numbers that go before those of the steps: the form's, and before them the command line's.
fn numbers(form: &Form<'_>, overrides: &Overrides, set: Vec<(Target, u64)>, report: &mut Report) -> Vec<Number> {
    let mut numbers = form.numbers.clone();
    for (target, value) in set {
        if find(&form.factors, &target.to_string()).is_some() {
            report.push(
                Diagnostic::whole(format!("--set {target}: it is a factor of this study"))
                    .help(format!("choose among its levels: --only {target}=LEVEL")),
            );
        }
        numbers.retain(|number| number.target != target);
        numbers.push(Number { target, value, span: None, prevails: true });
    }
    if let Some(duration) = overrides.duration {
        let target = Target::whole(Parameter::Duration);
        if find(&form.factors, &target.to_string()).is_some() {
            report.push(Diagnostic::whole("--duration cannot be given: the duration is a factor of this study"));
        }
        numbers.retain(|number| number.target != target);
        let value = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        numbers.push(Number { target, value, span: None, prevails: true });
    }
    numbers
}

/// Every number has to change something, or the table would have rows that only differ in name.
fn check_numbers(numbers: &[Number], factors: &[Factor], steps: &Steps, report: &mut Report) {
    // A step that could not be read might have been the one that takes it.
    if !steps.complete {
        return;
    }
    let loads = || steps.templates.iter().filter_map(Template::load);
    let names = |template: &Template, target: &Target| {
        target.part.is_none()
            && template
                .texts()
                .iter()
                .any(|text| placeholder::names(&text.value).any(|name| name == target.parameter.name()))
    };
    let is_taken = |number: &Number| {
        loads().any(|load| load.takes(number)) || steps.templates.iter().any(|template| names(template, &number.target))
    };
    for number in numbers.iter().filter(|number| !is_taken(number)) {
        if number.target.part.is_some() {
            report.push(load::no_such_part(&number.target, number.span, loads()));
            continue;
        }
        let message = format!("nothing has `{}`", number.target);
        report.push(match number.span {
            Some(span) => Diagnostic::error(span, message).label("it would change nothing"),
            None if number.target.parameter == Parameter::Duration => {
                Diagnostic::whole("--duration: no load of this study runs for a given time")
            }
            None => Diagnostic::whole(format!("--set {}: no step of this study uses it", number.target)),
        });
    }
    let backgrounds = || steps.templates.iter().filter(|template| template.background).map(|step| step.name.as_str());
    for level in factors.iter().flat_map(|factor| &factor.levels) {
        if let Setting::Background(name) = &level.value.setting
            && name != level::NO_BACKGROUND
            && !backgrounds().any(|known| known == name)
        {
            report.push(
                Diagnostic::error(level.span, format!("no step of the background is called `{name}`"))
                    .label("expected \"none\" or the name of a step with `background = true`")
                    .did_you_mean(name, backgrounds()),
            );
        }
    }
    for factor in factors {
        let Some(Setting::Number(target, value)) = factor.levels.first().map(|level| level.value.setting.clone())
        else {
            continue;
        };
        let number = Number { target, value, span: None, prevails: false };
        if is_taken(&number) {
            continue;
        }
        let target = &number.target;
        report.push(if target.part.is_some() && !loads().any(|load| target.is_in(load.base())) {
            load::no_such_part(target, Some(factor.key), loads())
        } else {
            let or_command =
                if target.part.is_none() { format!(", and no command has `{{{target}}}`") } else { String::new() };
            Diagnostic::error(factor.key, format!("no load has `{target}`, or each sets it itself{or_command}"))
                .label("this factor would change nothing")
        });
    }
}

/// The cell that ratios refer to: the one of this label, or the first that has a level of this name.
fn baseline(field: &Field<Text>, all: &Combinations, planned: &Combinations, report: &mut Report) -> Option<u32> {
    let Text(wanted) = &field.value;
    let find = |combinations: &Combinations| {
        let has_level = |cell: &[usize]| {
            combinations.factors.iter().zip(cell).any(|(factor, level)| factor.levels[*level].value.name == *wanted)
        };
        let by_label = combinations.cells.iter().position(|cell| combinations.label(cell) == *wanted);
        by_label.or_else(|| combinations.cells.iter().position(|cell| has_level(cell)))
    };
    if find(all).is_none() {
        let levels = all.factors.iter().flat_map(|factor| &factor.levels).map(|level| level.value.name.as_str());
        report.push(
            Diagnostic::error(field.span, format!("no row is called `{wanted}`, and none has such a level"))
                .label("no such row")
                .did_you_mean(wanted, levels),
        );
    }
    find(planned).map(|index| u32::try_from(index).expect("few cells"))
}

/// The factor that rows are compared by. The kernel may become one by `--kernel`.
fn compared_factor(field: &Field<Text>, all: &Combinations, report: &mut Report) -> Option<String> {
    let Text(wanted) = &field.value;
    let names: Vec<&str> = all.factors.iter().map(|factor| factor.name.as_str()).chain([KERNEL_FACTOR]).collect();
    if names.contains(&wanted.as_str()) {
        return Some(wanted.clone());
    }
    report.push(
        Diagnostic::error(field.span, format!("no factor is called `{wanted}`"))
            .label("no such factor")
            .did_you_mean(wanted, names),
    );
    None
}

fn overridden_repeats(of_study: Repeats, overrides: &Overrides, report: &mut Report) -> Repeats {
    if overrides.budget.is_some() {
        return WITHIN_BUDGET;
    }
    let Some((min, max)) = overrides.repeats else { return of_study };
    if min == 0 || min > max {
        report.push(Diagnostic::whole("--repeats: at least 1, and MIN not above MAX"));
    }
    let until = (min != max).then(|| of_study.until.unwrap_or(DEFAULT_UNTIL));
    Repeats { min, max, until }
}

fn model_factor(factor: &Factor) -> study::Factor {
    study::Factor {
        name: factor.name.clone(),
        levels: factor.levels.iter().map(|level| level.value.name.clone()).collect(),
        numbers: factor.levels.iter().map(|level| level.value.number).collect(),
    }
}

fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => file,
    }
}
