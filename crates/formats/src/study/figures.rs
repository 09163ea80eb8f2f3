//! Figures that commands print.

use super::{load::stays_beside, surface::FigureSurface};
use crate::{
    decode::{At, Entries, Field, Text},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::{
    Better, StepKind, Unit,
    load_metric::kind_of,
    metric::catalog,
    output::{ExpressionError, Find, From, OutputFigure, expression, series_of, unit, usually_better},
};

const LONGEST_NAME: usize = 100;
const UNITS: &str = "expected s, ms, µs, ns, /s, B, kB (1,000), KiB (1,024), MB/s, MiB/s, %, ratio or count";

pub(super) fn figures(entries: &Entries<FigureSurface>, report: &mut Report) -> Vec<OutputFigure> {
    entries.0.iter().filter_map(|(name, table)| figure(name, &table.value, report)).collect()
}

fn figure(name: &At<String>, surface: &FigureSurface, report: &mut Report) -> Option<OutputFigure> {
    check_name(name, report);
    let find = if let Some(Field { span, value: Text(text), .. }) = &surface.r#match {
        check_expression(text, *span, report);
        Find::Match(text.clone())
    } else if let Some(Field { span, value: Text(pointer), .. }) = &surface.json {
        if !pointer.starts_with('/') {
            let error = Diagnostic::error(*span, format!("`{pointer}` is not a JSON pointer"));
            report.push(error.label("expected a path that begins with `/`: \"/jobs/0/read/iops\""));
        }
        Find::Json(pointer.clone())
    } else {
        Find::Csv(surface.csv.as_ref()?.value.column.as_ref()?.value.0.clone())
    };
    let from = match &surface.from {
        None => From::Stdout,
        Some(Field { span, value: Text(text), .. }) => match text.as_str() {
            "stdout" => From::Stdout,
            "stderr" => From::Stderr,
            path => {
                if !stays_beside(path) {
                    report.push(
                        Diagnostic::error(*span, format!("`{path}` is not in the filesystem"))
                            .label("expected \"stdout\", \"stderr\" or a relative path without `..`"),
                    );
                }
                From::File(path.to_owned())
            }
        },
    };
    let known = kind_of(&name.value);
    if let (Some((Unit::Seconds | Unit::Nanoseconds | Unit::Bytes | Unit::BytesPerSecond, _)), None) =
        (known, &surface.unit)
    {
        let message = format!("fstone has a metric `{}`, of a unit that programs print in many ways", name.value);
        report.push(Diagnostic::error(name.span, message).label("it needs a `unit`"));
    }
    let (unit, scale) = unit_of(surface.unit.as_ref(), known, report);
    let better = surface.better.as_ref().map(|field| field.value.0);
    if let (Some((_, meant)), Some(field)) = (known, &surface.better)
        && field.value.0 != meant
    {
        report.push(
            Diagnostic::error(
                field.span,
                format!("fstone has a metric `{}`, whose better direction is another", name.value),
            )
            .label("leave it out, or take another name"),
        );
    }
    let better = better.or(known.map(|(_, better)| better)).unwrap_or(usually_better(unit));
    let several = surface.several.as_ref().map(|field| field.value.0).unwrap_or_default();
    Some(OutputFigure { name: name.value.clone(), from, find, several, unit, scale, better })
}

fn unit_of(field: Option<&Field<Text>>, known: Option<(Unit, Better)>, report: &mut Report) -> (Unit, f64) {
    let Some(Field { span, value: Text(text), .. }) = field else {
        return (known.map_or(Unit::Count, |(unit, _)| unit), 1.0);
    };
    let found = unit(text);
    if found.is_none() {
        report.push(Diagnostic::error(*span, format!("unknown unit `{text}`")).label(UNITS));
    }
    let (unit, scale) = found.unwrap_or((Unit::Count, 1.0));
    match known {
        Some((meant, _)) if found.is_some() && meant != unit => {
            // Seconds and nanoseconds are both times.
            let scale = match (unit, meant) {
                (Unit::Seconds, Unit::Nanoseconds) => Some(scale * 1e9),
                (Unit::Nanoseconds, Unit::Seconds) => Some(scale / 1e9),
                _ => None,
            };
            if scale.is_none() {
                report.push(
                    Diagnostic::error(*span, "fstone has a metric of this name, in another unit")
                        .label(format!("it is in {}", if meant == Unit::Count { "no unit" } else { meant.symbol() }))
                        .help("take another name"),
                );
            }
            (meant, scale.unwrap_or(1.0))
        }
        _ => (unit, scale),
    }
}

fn check_name(name: &At<String>, report: &mut Report) {
    if name.value.len() > LONGEST_NAME || name.value.trim().is_empty() || name.value.contains(char::is_control) {
        let error = Diagnostic::error(name.span, "no figure can be called so");
        report.push(error.label(format!("expected printable text of at most {LONGEST_NAME} bytes")));
    }
    if series_of(&name.value).is_some() {
        let error = Diagnostic::error(name.span, "no figure can be called so");
        report.push(error.label("this is how the numbers of a series are called"));
    }
    if catalog::find(&name.value).is_some_and(|metric| metric.steps.contains(&StepKind::Command)) {
        report.push(
            Diagnostic::error(name.span, format!("every command has a figure `{}` already", name.value))
                .label("expected another name"),
        );
    }
}

/// Where the expression is wrong is pointed at, if the file has it letter by letter.
fn check_expression(text: &str, span: Span, report: &mut Report) {
    let Err(error) = expression(text) else { return };
    let written = report.source().text().get(span.start..span.end).and_then(|written| written.find(text));
    let (place, label) = match (&error, written) {
        (ExpressionError::Syntax { place, .. }, Some(offset)) => {
            let start = span.start + offset + place.start;
            (Span::new(start, start + place.len().max(1)), "here")
        }
        (ExpressionError::Groups(_), _) => {
            (span, "put the number in parentheses: \"tps = ([0-9.]+)\"; others are (?:…)")
        }
        _ => (span, "in this expression"),
    };
    report.push(Diagnostic::error(place, error.to_string()).label(label));
}
