//! The factors of a study, and which of their levels are used.

use super::{
    MAXIMUM_CELLS, age, device, filesystem,
    level::{Level, Setting},
    load::Files,
    own::Own,
    surface::{FactorsSurface, SweepSurface},
};
use crate::{
    decode::{At, Field, OneOrMany, Text, listed},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::study::FilesystemType;

#[derive(Debug, Clone)]
pub(super) struct Factor {
    /// "filesystem", "threads", "readers.threads", …
    pub(super) name: String,
    pub(super) key: Span,
    /// Its levels; none has another's name.
    pub(super) levels: Vec<At<Level>>,
}

/// The study's factors, in the order they are written.
pub(super) fn factors(
    surface: &FactorsSurface,
    types: &[FilesystemType],
    own: &[Own],
    files: &mut Files<'_>,
    report: &mut Report,
) -> Vec<Factor> {
    let mut factors = Vec::new();
    if let Some(Field { key, value, .. }) = &surface.filesystem {
        let levels = value.0.iter().map(|(name, surface)| {
            let filesystem = filesystem::filesystem(&name.value, &surface.value, types, own, report);
            let age = surface.value.age.as_ref().and_then(|field| age::age(field, &filesystem, files, report));
            At { span: name.span, value: named(&name.value, Setting::Filesystem(filesystem, age)) }
        });
        let levels = levels.collect();
        factors.push(Factor { name: "filesystem".to_owned(), key: *key, levels });
    }
    if let Some(Field { key, value, .. }) = &surface.device {
        let levels = value.0.iter().filter_map(|(name, surface)| {
            let device = device::device(&surface.value, report)?;
            Some(At { span: name.span, value: named(&name.value, Setting::Device(device)) })
        });
        let levels = levels.collect();
        factors.push(Factor { name: "device".to_owned(), key: *key, levels });
    }
    for (plain, Field { key, value, .. }) in &surface.plain.0 {
        factors.push(Factor { name: plain.clone(), key: *key, levels: value.clone() });
    }
    for factor in &factors {
        check(factor, report);
    }
    factors.sort_by_key(|factor| factor.key.start);
    factors
}

fn named(name: &str, setting: Setting) -> Level {
    Level { name: name.to_owned(), written: name.to_owned(), number: None, setting }
}

fn check(factor: &Factor, report: &mut Report) {
    if factor.levels.len() > MAXIMUM_CELLS {
        report.push(
            Diagnostic::error(factor.key, format!("factor `{}` has {} levels", factor.name, factor.levels.len()))
                .label(format!("at most {MAXIMUM_CELLS} are tried")),
        );
        return;
    }
    for (index, level) in factor.levels.iter().enumerate() {
        if level.value.name.trim().is_empty() || level.value.name.chars().any(char::is_control) {
            report.push(Diagnostic::error(level.span, "a level needs a name of one line"));
        }
        if let Some(first) = factor.levels[..index].iter().find(|first| first.value.name == level.value.name) {
            report.push(
                Diagnostic::error(level.span, format!("`{}` is there already", level.value.name))
                    .label("the same level again")
                    .context(first.span, "the first"),
            );
        }
    }
}

/// The factors with only the levels that are named, in the order they are named there. With `new_values`, plain values
/// need not be among the factor's levels.
pub(super) fn restrict(
    factors: &[Factor],
    surface: &SweepSurface,
    new_values: bool,
    report: &mut Report,
) -> Vec<Factor> {
    let mut restricted = factors.to_vec();
    let by_name = [("filesystem", &surface.filesystem), ("device", &surface.device)];
    for (name, field) in by_name {
        let Some(Field { key, value: OneOrMany(names), .. }) = field else { continue };
        let Some(factor) = find(&mut restricted, name, *key, report) else { continue };
        let known = std::mem::take(&mut factor.levels);
        for At { span, value: Text(name) } in names {
            match known.iter().find(|level| level.value.name == *name) {
                Some(level) => factor.levels.push(At { span: *span, value: level.value.clone() }),
                None => report.push(unknown_level(*span, &factor.name, name, &known)),
            }
        }
        check(factor, report);
    }
    for (plain, Field { key, value, .. }) in &surface.plain.0 {
        let Some(factor) = find(&mut restricted, plain, *key, report) else { continue };
        let known = std::mem::replace(&mut factor.levels, value.clone());
        if !new_values {
            for level in value.iter().filter(|level| !known.iter().any(|known| known.value == level.value)) {
                report.push(unknown_level(level.span, &factor.name, &level.value.written, &known));
            }
        }
        check(factor, report);
    }
    restricted
}

fn find<'f>(factors: &'f mut [Factor], name: &str, key: Span, report: &mut Report) -> Option<&'f mut Factor> {
    let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
    let position = names.iter().position(|known| *known == name);
    if position.is_none() {
        report.push(
            Diagnostic::error(key, format!("`{name}` is not a factor of this study"))
                .label(format!("the factors are {}", listed(&names))),
        );
    }
    position.map(|position| &mut factors[position])
}

fn unknown_level(span: Span, factor: &str, written: &str, known: &[At<Level>]) -> Diagnostic {
    /// More names than this do not help.
    const SHOWN: usize = 20;
    let diagnostic = Diagnostic::error(span, format!("factor `{factor}` has no level `{written}`"))
        .label("no such level")
        .did_you_mean(written, known.iter().map(|level| level.value.written.as_str()));
    let names: Vec<&str> = known.iter().map(|level| level.value.written.as_str()).take(SHOWN).collect();
    let more = if known.len() > SHOWN { ", …" } else { "" };
    diagnostic.note(format!("its levels are {}{more}", listed(&names)))
}
