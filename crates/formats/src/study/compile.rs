//! A study put together.

use super::{
    MAXIMUM_BYTES,
    cells::Combinations,
    device,
    factor::{self, Factor},
    level::Setting,
    load::{Files, Loader, Number},
    overrides::Overrides,
    placeholder, published, show,
    step::{self, Steps, Template},
    surface::{DeviceSurface, QuickSurface, RepeatsSurface, StudyFile, SweepSurface},
};
use crate::{
    decode::{At, Field, Text, document},
    diagnostic::{Diagnostic, Diagnostics, Report, Source, Span},
    native::Parameter,
};
use fstone_model::study::{self, Cell, DeviceSpec, FilesystemSpec, KernelSpec, Plan, Repeats};

/// Repeats of a study that does not say how many.
const DEFAULT_REPEATS: Repeats = Repeats { min: 3, max: 3, until: None };
/// When repeats are a range and neither the study nor the command line says when it is enough.
const DEFAULT_UNTIL: f64 = 0.02;
/// The seed of a study that does not say one.
const DEFAULT_SEED: u64 = 1;

/// Reads a study file. `loader` reads a file that the study names.
///
/// The study is checked whole, with and without `[quick]`, whichever is asked for.
///
/// # Errors
/// Everything that is wrong with the study, the files it names, and the overrides.
pub fn compile(source: &Source, loader: &Loader<'_>, overrides: &Overrides) -> Result<Plan, Diagnostics> {
    let mut report = Report::new(source.clone());
    if !report.check_size(MAXIMUM_BYTES, "the study") {
        return Err(report.into_diagnostics().expect("the size is wrong"));
    }
    let mut files = Files::new(loader);
    let plan = document(&mut report).and_then(|surface| plan(&surface, &mut files, overrides, &mut report));
    let (plan, _warnings) = report.finish(plan)?;
    let mut plan = plan.expect("there is a plan, or an error");
    plan.attachments = files.into_attachments();
    Ok(plan)
}

/// A form of the study: with or without `[quick]`.
struct Form<'s> {
    factors: Vec<Factor>,
    sweeps: &'s [At<SweepSurface>],
    device: Option<&'s Field<DeviceSurface>>,
    /// Numbers that go before those of the steps.
    numbers: Vec<Number>,
    /// What commands have in braces, and its value.
    variables: Vec<(String, String)>,
    repeats: Repeats,
    expected_duration: Option<std::time::Duration>,
    /// Where a wrong number of combinations is shown.
    place: Span,
}

fn plan(surface: &StudyFile, files: &mut Files<'_>, overrides: &Overrides, report: &mut Report) -> Option<Plan> {
    let no_steps = Vec::new();
    let step_surfaces = surface.step.as_ref().map_or(&no_steps, |field| &field.value);
    let steps = step::steps(step_surfaces, files, report);
    let columns = show::columns(&steps.shown, report);
    let shows_nothing = step_surfaces.iter().all(|step| step.value.show.is_none());
    if let Some(field) = surface.step.as_ref().filter(|_| shows_nothing) {
        report.push(
            Diagnostic::error(field.key, "no step shows anything, so the table has no columns")
                .help("add to a step, for example: show = [\"time\"]"),
        );
    }
    let full = full_form(surface, report);
    check_names(surface, &full, &steps, report);
    let quick = surface.quick.as_ref().map(|field| quick_form(&field.value, &full, field.key, report));
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
        repeats: overridden_repeats(form.repeats, overrides, report),
        order: surface.order.as_ref().map(|field| field.value.0).unwrap_or_default(),
        seed: overrides.seed.or(surface.seed.as_ref().map(|field| field.value.0)).unwrap_or(DEFAULT_SEED),
        factors: combinations.factors.iter().map(model_factor).collect(),
        cells,
        columns,
        baseline,
        expected_duration: form.expected_duration,
        published,
    })
}

fn full_form<'s>(surface: &'s StudyFile, report: &mut Report) -> Form<'s> {
    let factors = surface.factor.as_ref().map_or_else(Vec::new, |field| factor::factors(&field.value, report));
    if let (Some(device), Some(factor)) = (&surface.device, find(&factors, "device")) {
        report.push(
            Diagnostic::error(device.key, "`device` is a factor as well")
                .label("only one of the two can be here")
                .context(factor.key, "the factor"),
        );
    }
    if !surface.given.has("device") && find(&factors, "device").is_none() {
        report.push(
            Diagnostic::whole("the study does not say what filesystems are made on")
                .help("for example: device = { loop = { size = \"32 GiB\" } }"),
        );
    }
    Form {
        factors,
        sweeps: surface.sweep.as_ref().map_or(&[], |field| &field.value),
        device: surface.device.as_ref(),
        numbers: Vec::new(),
        variables: variables(surface, report),
        repeats: surface.repeats.as_ref().map_or(DEFAULT_REPEATS, |field| repeats(field, report)),
        expected_duration: surface.expected_duration.as_ref().map(|field| field.value.0),
        place: surface.factor.as_ref().map_or(Span::new(0, 0), |field| field.key),
    }
}

fn quick_form<'s>(surface: &'s QuickSurface, full: &Form<'s>, place: Span, report: &mut Report) -> Form<'s> {
    let factors = match &surface.factor {
        Some(field) => factor::restrict(&full.factors, &field.value, true, report),
        None => full.factors.clone(),
    };
    for (parameter, field) in &surface.numbers.0 {
        if let Some(factor) = find(&factors, parameter.name()) {
            report.push(
                Diagnostic::error(field.key, format!("`{parameter}` is a factor of this study"))
                    .context(factor.key, "the factor")
                    .help(format!("give its levels under [quick.factor]: {parameter} = […]")),
            );
        }
    }
    if let (Some(device), Some(factor)) = (&surface.device, find(&factors, "device")) {
        report.push(
            Diagnostic::error(device.key, "`device` is a factor of this study")
                .context(factor.key, "the factor")
                .help("name its levels under [quick.factor]: device = […]"),
        );
    }
    let number = |(parameter, field): &(Parameter, Field<u64>)| Number {
        parameter: *parameter,
        value: field.value,
        span: Some(field.span),
        prevails: true,
    };
    Form {
        factors,
        sweeps: surface.sweep.as_ref().map_or(full.sweeps, |field| &field.value),
        device: surface.device.as_ref().or(full.device),
        numbers: surface.numbers.0.iter().map(number).collect(),
        variables: quick_variables(surface, &full.variables, report),
        repeats: surface.repeats.as_ref().map_or(full.repeats, |field| repeats(field, report)),
        expected_duration: surface.expected_duration.as_ref().map(|field| field.value.0).or(full.expected_duration),
        place,
    }
}

/// The study's variables; reports names that mean something else.
fn variables(surface: &StudyFile, report: &mut Report) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for (name, value) in surface.variables.iter().flat_map(|field| &field.value.0) {
        let is_name = name.value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        let is_taken = placeholder::OF_THE_LAB.contains(&name.value.as_str())
            || Parameter::ALL.iter().any(|parameter| parameter.name() == name.value);
        if is_taken {
            report.push(
                Diagnostic::error(name.span, format!("`{{{}}}` has a meaning already", name.value))
                    .label("expected another name"),
            );
        } else if !is_name || name.value.is_empty() {
            report.push(
                Diagnostic::error(name.span, format!("no variable can be called `{}`", name.value))
                    .label("expected small letters, digits and `-`"),
            );
        } else {
            variables.push((name.value.clone(), value.value.0.clone()));
        }
    }
    variables
}

fn quick_variables(surface: &QuickSurface, full: &[(String, String)], report: &mut Report) -> Vec<(String, String)> {
    let mut variables = full.to_vec();
    for (name, value) in surface.variables.iter().flat_map(|field| &field.value.0) {
        match variables.iter_mut().find(|(known, _)| *known == name.value) {
            Some((_, known)) => known.clone_from(&value.value.0),
            None => report.push(
                Diagnostic::error(name.span, format!("the study has no variable `{}`", name.value))
                    .label("no such variable")
                    .did_you_mean(&name.value, full.iter().map(|(known, _)| known.as_str())),
            ),
        }
    }
    variables
}

/// Every name in braces that looks like one of the study's is one, and every variable is used.
fn check_names(surface: &StudyFile, form: &Form<'_>, steps: &Steps, report: &mut Report) {
    let numbers = form.factors.iter().map(|factor| factor.name);
    let variables = form.variables.iter().map(|(name, _)| name.as_str());
    let known: Vec<&str> = variables.chain(numbers).collect();
    let texts: Vec<&At<String>> = steps.templates.iter().flat_map(Template::texts).collect();
    for At { span, value } in &texts {
        placeholder::check(value, *span, &known, report);
    }
    for (name, _) in surface.variables.iter().flat_map(|field| &field.value.0) {
        let is_used = texts.iter().any(|text| placeholder::names(&text.value).any(|used| used == name.value));
        if steps.complete && !is_used && form.variables.iter().any(|(known, _)| *known == name.value) {
            report.push(
                Diagnostic::error(name.span, format!("no command has `{{{}}}`", name.value))
                    .label("this variable would change nothing"),
            );
        }
    }
}

fn find<'f>(factors: &'f [Factor], name: &str) -> Option<&'f Factor> {
    factors.iter().find(|factor| factor.name == name)
}

/// The cells of a form, with its combinations.
fn cells(
    form: &Form<'_>,
    combinations: Combinations,
    steps: &Steps,
    overrides: &Overrides,
    report: &mut Report,
) -> (Combinations, Vec<Cell>) {
    let numbers = numbers(form, overrides, report);
    check_numbers(&numbers, &combinations.factors, steps, report);
    if overrides.device.is_some() && find(&form.factors, "device").is_some() {
        report.push(Diagnostic::whole("--device cannot be given: the device is a factor of this study"));
    }
    let mut device = form.device.and_then(|field| device::device(&field.value, report));
    device = device.map(|device| device::overridden(device, overrides, report));
    let cells = (0..)
        .zip(&combinations.cells)
        .map(|(index, levels)| {
            let mut cell = Cell {
                index,
                levels: levels.iter().map(|level| u32::try_from(*level).expect("few levels")).collect(),
                label: combinations.label(levels),
                filesystem: FilesystemSpec {
                    name: String::new(),
                    kind: String::new(),
                    mkfs: Vec::new(),
                    mount: String::new(),
                },
                device: device.clone().unwrap_or(DeviceSpec::Directory { path: None }),
                kernel: KernelSpec::Host,
                queue: Vec::new(),
                steps: Vec::new(),
            };
            let mut numbers = numbers.clone();
            for (factor, level) in combinations.factors.iter().zip(levels) {
                let At { span, value: level } = &factor.levels[*level];
                match level.setting.clone() {
                    Setting::Filesystem(filesystem) => cell.filesystem = filesystem,
                    Setting::Device(device) => cell.device = device::overridden(device, overrides, report),
                    Setting::Kernel(kernel) => cell.kernel = kernel,
                    Setting::Queue(name, value) => cell.queue.push((name.to_owned(), value)),
                    Setting::Number(parameter, value) => {
                        numbers.push(Number { parameter, value, span: Some(*span), prevails: false });
                    }
                }
            }
            cell.steps =
                steps.templates.iter().map(|template| template.step(&numbers, &form.variables, report)).collect();
            cell
        })
        .collect();
    (combinations, cells)
}

/// The numbers that go before those of the steps: the form's, and before them the command line's.
fn numbers(form: &Form<'_>, overrides: &Overrides, report: &mut Report) -> Vec<Number> {
    let mut numbers = form.numbers.clone();
    if let Some(duration) = overrides.duration {
        if find(&form.factors, Parameter::Duration.name()).is_some() {
            report.push(Diagnostic::whole("--duration cannot be given: the duration is a factor of this study"));
        }
        numbers.retain(|number| number.parameter != Parameter::Duration);
        let value = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        numbers.push(Number { parameter: Parameter::Duration, value, span: None, prevails: true });
    }
    numbers
}

/// Every number has to change something, or the table would have rows that only differ in name.
fn check_numbers(numbers: &[Number], factors: &[Factor], steps: &Steps, report: &mut Report) {
    // A step that could not be read might have been the one that takes it.
    if !steps.complete {
        return;
    }
    let names = |template: &Template, number: &Number| {
        template.texts().iter().any(|text| placeholder::names(&text.value).any(|name| name == number.parameter.name()))
    };
    let takes = |template: &Template, number: &Number| {
        template.load().is_some_and(|load| load.takes(number)) || names(template, number)
    };
    let is_taken = |number: &Number| steps.templates.iter().any(|template| takes(template, number));
    for number in numbers.iter().filter(|number| !is_taken(number)) {
        let message = format!("nothing has `{}`", number.parameter);
        report.push(match number.span {
            Some(span) => Diagnostic::error(span, message).label("it would change nothing"),
            None => Diagnostic::whole(format!("--{}: {message} to change", number.parameter)),
        });
    }
    for factor in factors {
        let Some(Setting::Number(parameter, value)) = factor.levels.first().map(|level| level.value.setting.clone())
        else {
            continue;
        };
        let number = Number { parameter, value, span: None, prevails: false };
        if !is_taken(&number) {
            report.push(
                Diagnostic::error(
                    factor.key,
                    format!("no load has `{parameter}`, or each sets it itself, and no command has `{{{parameter}}}`"),
                )
                .label("this factor would change nothing"),
            );
        }
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

fn repeats(field: &Field<RepeatsSurface>, report: &mut Report) -> Repeats {
    let small = |count: u64| u32::try_from(count).expect("at most 1000");
    match &field.value {
        RepeatsSurface::Fixed(count) => Repeats { min: *count, max: *count, until: None },
        RepeatsSurface::Range(range) => {
            let (Some(min), Some(max)) = (&range.min, &range.max) else { return DEFAULT_REPEATS };
            if min.value.0 > max.value.0 {
                report.push(
                    Diagnostic::error(min.span, "`min` is above `max`")
                        .label(format!("expected at most {}", max.value.0))
                        .context(max.span, "`max`"),
                );
            }
            let until = range.until.as_ref().map(|until| until.value.0);
            Repeats { min: small(min.value.0), max: small(max.value.0), until }
        }
    }
}

fn overridden_repeats(of_study: Repeats, overrides: &Overrides, report: &mut Report) -> Repeats {
    let Some((min, max)) = overrides.repeats else { return of_study };
    if min == 0 || min > max {
        report.push(Diagnostic::whole("--repeats: at least 1, and MIN not above MAX"));
    }
    let until = (min != max).then(|| of_study.until.unwrap_or(DEFAULT_UNTIL));
    Repeats { min, max, until }
}

fn model_factor(factor: &Factor) -> study::Factor {
    study::Factor {
        name: factor.name.to_owned(),
        levels: factor.levels.iter().map(|level| level.value.name.clone()).collect(),
        numbers: factor.levels.iter().map(|level| level.value.number).collect(),
    }
}

/// A path's last part without extension.
fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => file,
    }
}
