//! Figures published elsewhere.

use super::surface::{Figure, PublishedRow, PublishedSurface, PublishedValue};
use crate::{
    decode::{At, Text, listed},
    diagnostic::{Diagnostic, Report, Span},
};
use fstone_model::{
    metric::{Unit, catalog},
    study::{Column, Published, PublishedFigure},
    units,
};

/// The figures; reports what does not fit the study. `labels` are those of all its cells.
pub(super) fn published(
    surface: &PublishedSurface,
    labels: &[String],
    columns: &[Column],
    report: &mut Report,
) -> Option<Published> {
    let headers: Vec<Option<&Column>> = surface
        .columns
        .as_ref()?
        .value
        .iter()
        .map(|At { span, value: Text(header) }| {
            let column = columns.iter().find(|column| column.header == *header);
            if column.is_none() {
                let known: Vec<&str> = columns.iter().map(|column| column.header.as_str()).collect();
                report.push(
                    Diagnostic::error(*span, format!("the table has no column `{header}`"))
                        .label("no such column")
                        .did_you_mean(header, known.iter().copied())
                        .note(format!("its columns are {}", listed(&known))),
                );
            }
            column
        })
        .collect();
    let mut figures = Vec::new();
    for (At { span, value: label }, row) in &surface.row.as_ref()?.value.0 {
        if !labels.contains(label) {
            report.push(
                Diagnostic::error(*span, format!("the study has no row `{label}`"))
                    .label("no such row")
                    .did_you_mean(label, labels.iter().map(String::as_str)),
            );
        }
        let cells = cells(row, headers.len(), report);
        for (column, (value, note)) in headers.iter().zip(cells) {
            let Some(column) = column else { continue };
            let (value, note) = value.map_or((None, note.clone()), |value| read(&value, note, column, report));
            figures.push(PublishedFigure { cell: label.clone(), column: column.header.clone(), value, note });
        }
    }
    let memory_bytes = surface.memory.as_ref().map(|memory| memory.value.0);
    let model = surface.model.as_ref().map(|model| model.value.0.clone());
    Some(Published { source: surface.source.as_ref()?.value.0.trim().to_owned(), memory_bytes, model, figures })
}

type Cell<'s> = (Option<At<&'s PublishedValue>>, Option<String>);

fn cells<'s>(row: &'s At<PublishedRow>, columns: usize, report: &mut Report) -> Vec<Cell<'s>> {
    match &row.value {
        PublishedRow::Note(note) => vec![(None, Some(note.clone())); columns],
        PublishedRow::Figures(figures) => {
            if figures.len() != columns {
                report.push(
                    Diagnostic::error(row.span, format!("{} of {columns} figures", figures.len()))
                        .label("expected one figure per column, or one text in place of all"),
                );
            }
            figures.iter().map(|At { span, value }| (Some(At { span: *span, value }), None)).collect()
        }
    }
}

fn read(
    figure: &At<&PublishedValue>,
    note: Option<String>,
    column: &Column,
    report: &mut Report,
) -> (Option<f64>, Option<String>) {
    match figure.value {
        PublishedValue::Number(number) => (Some(*number), note),
        PublishedValue::Text(text) if !text.trim_start().starts_with(|c: char| c.is_ascii_digit()) => {
            (None, Some(text.clone()))
        }
        PublishedValue::Text(text) => (quantity(text, figure.span, column, report), note),
        PublishedValue::Remarked(remarked) => {
            let note = remarked.note.as_ref().map(|note| note.value.0.clone());
            let value = remarked.value.as_ref().and_then(|field| match &field.value {
                Figure::Number(number) => Some(*number),
                Figure::Text(text) => quantity(text, field.span, column, report),
            });
            (value, note)
        }
    }
}

/// A quantity in the base unit of a column's metric.
fn quantity(text: &str, span: Span, column: &Column, report: &mut Report) -> Option<f64> {
    // Latencies of single operations are not in the catalog by name.
    let unit = catalog::find(&column.metric).map_or(Unit::Nanoseconds, |metric| metric.unit);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse::<f64>().ok();
    let suffix = text[end..].trim();
    let one = |suffix: &str| format!("1 {suffix}");
    let scale = match unit {
        Unit::Seconds => units::parse_duration(&one(suffix)).ok().map(|time| time.as_secs_f64()),
        Unit::Nanoseconds => units::parse_duration(&one(suffix)).ok().map(|time| time.as_secs_f64() * 1e9),
        Unit::Bytes => units::parse_bytes(&one(suffix)).ok().map(|bytes| bytes as f64),
        Unit::BytesPerSecond => {
            suffix.strip_suffix("/s").and_then(|bytes| units::parse_bytes(&one(bytes)).ok()).map(|bytes| bytes as f64)
        }
        Unit::PerSecond => (suffix.is_empty() || suffix == "/s").then_some(1.0),
        Unit::Percent => (suffix.is_empty() || suffix == "%").then_some(1.0),
        Unit::Count | Unit::Ratio => suffix.is_empty().then_some(1.0),
    };
    let value = number.zip(scale).map(|(number, scale)| number * scale);
    if value.is_none() {
        let example = match unit {
            Unit::Seconds => "\"4004 s\"",
            Unit::Nanoseconds => "\"1.5 ms\"",
            Unit::Bytes => "\"1 GiB\"",
            Unit::BytesPerSecond => "\"32.7 MiB/s\"",
            Unit::PerSecond => "7090",
            Unit::Percent => "\"8.6 %\"",
            Unit::Count | Unit::Ratio => "1.5",
        };
        report.push(
            Diagnostic::error(span, format!("`{text}` is not a figure of `{}`", column.metric))
                .label(format!("expected something like {example}")),
        );
    }
    value
}
