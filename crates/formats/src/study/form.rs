//! The two forms of a study: whole, and quick.

use super::{
    factor::{self, Factor},
    load::{Files, Number},
    own, own_rows, placeholder, service, set,
    step::{Steps, Template},
    surface::{DeviceSurface, FilesystemSurface, QuickSurface, RepeatsSurface, StudyFile, SweepSurface, WarmUp},
};
use crate::{
    decode::{At, Count, Field, OrTable},
    diagnostic::{Diagnostic, Report, Span},
    native::{Parameter, Target},
};
use fstone_model::study::{FilesystemType, Repeats, StepAction};
use std::time::Duration;

const DEFAULT_REPEATS: Repeats = Repeats { min: 3, max: 3, until: None };

/// A form of the study: with or without `[quick]`.
pub(super) struct Form<'s> {
    pub(super) factors: Vec<Factor>,
    pub(super) sweeps: &'s [At<SweepSurface>],
    pub(super) device: Option<&'s Field<DeviceSurface>>,
    /// Numbers that go before those of the steps.
    pub(super) numbers: Vec<Number>,
    /// What commands have in braces, and its value.
    pub(super) variables: Vec<(String, String)>,
    pub(super) warm_up: u32,
    pub(super) repeats: Repeats,
    pub(super) expected_duration: Option<Duration>,
    /// Where a wrong number of combinations is shown.
    pub(super) place: Span,
}

impl Form<'_> {
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn set_variables(&mut self, values: &[(String, String)], report: &mut Report) {
        for (name, value) in values.iter().filter(|(name, _)| !set::is_number(name)) {
            if let Some((_, known)) = self.variables.iter_mut().find(|(known, _)| known == name) {
                known.clone_from(value);
                continue;
            }
            let known: Vec<&str> = self.variables.iter().map(|(known, _)| known.as_str()).collect();
            let diagnostic = Diagnostic::whole(format!("--set {name}: the study has no variable of this name"));
            let numbers = Parameter::ALL.map(Parameter::name);
            let diagnostic = diagnostic.did_you_mean(name, known.iter().copied().chain(numbers));
            let has = if known.is_empty() { "no variables".to_owned() } else { known.join(", ") };
            report.push(
                diagnostic.note(format!(
                    "it has {has}; of its loads, {} can be set, where a load has it",
                    numbers.join(", ")
                )),
            );
        }
    }
}

pub(super) fn full_form<'s>(
    surface: &'s StudyFile,
    files: &mut Files<'_>,
    types: &[FilesystemType],
    report: &mut Report,
) -> Form<'s> {
    let variables = variables(surface, report);
    let own = own::filesystems(surface, types, &variables, report);
    let factors = surface
        .factor
        .as_ref()
        .map_or_else(Vec::new, |field| factor::factors(&field.value, types, &own, files, report));
    own_rows::all_used(&own, &factors, report);
    if let (Some(device), Some(factor)) = (&surface.device, find(&factors, "device")) {
        report.push(
            Diagnostic::error(device.key, "`device` is a factor as well")
                .label("only one of the two can be here")
                .context(factor.key, "the factor"),
        );
    }
    if !surface.given.has("device") && find(&factors, "device").is_none() && !own_rows::need_nothing(&factors) {
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
        variables,
        warm_up: surface.warm_up.as_ref().map_or(0, |field| warm_up(field.value)),
        repeats: surface.repeats.as_ref().map_or(DEFAULT_REPEATS, |field| repeats(field, report)),
        expected_duration: surface.expected_duration.as_ref().map(|field| field.value.0),
        place: surface.factor.as_ref().map_or(Span::new(0, 0), |field| field.key),
    }
}

pub(super) fn quick_form<'s>(surface: &'s QuickSurface, full: &Form<'s>, place: Span, report: &mut Report) -> Form<'s> {
    let factors = match &surface.factor {
        Some(field) => factor::restrict(&full.factors, &field.value, true, report),
        None => full.factors.clone(),
    };
    for (target, field) in &surface.numbers.0 {
        if let Some(factor) = find(&factors, &target.to_string()) {
            report.push(
                Diagnostic::error(field.key, format!("`{target}` is a factor of this study"))
                    .context(factor.key, "the factor")
                    .help(format!("give its levels under [quick.factor]: {target} = […]")),
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
    let number = |(target, field): &(Target, Field<u64>)| Number {
        target: target.clone(),
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
        warm_up: surface.warm_up.as_ref().map_or(full.warm_up, |field| warm_up(field.value)),
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
            || (name.value == service::DATA && surface.service.is_some())
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
pub(super) fn check_names(surface: &StudyFile, form: &Form<'_>, steps: &Steps, report: &mut Report) {
    let numbers = form.factors.iter().map(|factor| factor.name.as_str());
    let variables = form.variables.iter().map(|(name, _)| name.as_str());
    let places = own_rows::places(&form.factors);
    let known: Vec<&str> = variables.chain(numbers).chain(places.iter().map(String::as_str)).collect();
    let of_filesystem = |entry: &(At<String>, At<FilesystemSurface>)| {
        let tree = entry.1.value.tree.as_ref()?;
        Some(At { span: tree.span, value: tree.value.0.clone() })
    };
    let filesystems = surface.factor.iter().filter_map(|factors| factors.value.filesystem.as_ref());
    let trees: Vec<At<String>> = filesystems.flat_map(|field| &field.value.0).filter_map(of_filesystem).collect();
    let texts: Vec<&At<String>> = steps.templates.iter().flat_map(Template::texts).chain(&trees).collect();
    for At { span, value } in &texts {
        placeholder::check(value, *span, &known, report);
    }
    for template in steps.templates.iter().filter(|template| !matches!(template.action, StepAction::Service(_))) {
        let has_data = |text: &&At<String>| placeholder::names(&text.value).any(|name| name == service::DATA);
        if let (Some(text), Some(services)) = (template.texts().into_iter().find(has_data), &surface.service) {
            let name = services.value.0.first().map_or("NAME", |(name, _)| name.value.as_str());
            report.push(
                Diagnostic::error(text.span, "`{data}` has no meaning here")
                    .label(format!("the directory of a service is {{mount}}/{name}")),
            );
        }
    }
    let of_own = own::words(surface);
    for (name, _) in surface.variables.iter().flat_map(|field| &field.value.0) {
        let mut used = texts.iter().map(|text| text.value.as_str()).chain(of_own.iter().copied());
        let is_used = used.any(|text| placeholder::names(text).any(|used| used == name.value));
        if steps.complete && !is_used && form.variables.iter().any(|(known, _)| *known == name.value) {
            report.push(
                Diagnostic::error(name.span, format!("no command has `{{{}}}`", name.value))
                    .label("this variable would change nothing"),
            );
        }
    }
}

pub(super) fn find<'f>(factors: &'f [Factor], name: &str) -> Option<&'f Factor> {
    factors.iter().find(|factor| factor.name == name)
}

fn warm_up(Count(blocks): WarmUp) -> u32 {
    u32::try_from(blocks).expect("at most ten")
}

fn repeats(field: &Field<RepeatsSurface>, report: &mut Report) -> Repeats {
    let small = |count: u64| u32::try_from(count).expect("at most 1000");
    match &field.value {
        OrTable::Plain(Count(count)) => Repeats { min: small(*count), max: small(*count), until: None },
        OrTable::Table(range) => {
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
