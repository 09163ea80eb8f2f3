//! The figure of a column, in the form that fits what was varied.

use super::{Chapter, Figure, MAX_ROWS, bars, dots, lines, rows, slug};
use crate::{Analysis, analysis::in_words, text::counted};

/// A grouped bar plot has no more bars than this.
const MAX_BARS: usize = 24;
/// A numeric factor with fewer levels is better shown as groups.
const MIN_AXIS_LEVELS: usize = 4;
/// How many rows are told of in words.
const TOLD: usize = 16;

/// The forms there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Dots,
    Bars,
    Lines,
}

/// The figure; `None` when no row has a figure.
pub(super) fn figure<'a>(analysis: &'a Analysis<'a>, column: usize) -> Option<Figure<'a>> {
    let view = &analysis.columns[column];
    let values = || {
        analysis.rows.iter().flat_map(move |row| {
            let entry = &row.entries[column];
            let ends = entry.interval.map(|interval| [interval.low, interval.high]);
            entry.values.iter().map(|value| value.value).chain(ends.into_iter().flatten())
        })
    };
    let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        return None;
    }
    let form = form(analysis, low);
    Some(Figure {
        slug: slug(&[&view.header]),
        chapter: Chapter::Column,
        title: capital(&view.header),
        caption: caption(analysis, column, form, low > 0.0 && high - low <= high / 2.0),
        description: description(analysis, column),
        // Where values are within a factor of two a logarithmic axis shows the same.
        logarithmic: form != Form::Bars && low > 0.0 && high / low > 2.0,
        number: 0,
        draw: match form {
            Form::Dots => Box::new(move |look| dots::draw(analysis, column, look)),
            Form::Bars => Box::new(move |look| bars::draw(analysis, column, look)),
            Form::Lines => Box::new(move |look| lines::draw(analysis, column, look)),
        },
    })
}

fn form(analysis: &Analysis<'_>, low: f64) -> Form {
    let structure = &analysis.structure;
    let subjects = structure.subject.map_or(1, |subject| structure.varied[subject].levels.len());
    let few = subjects <= super::theme::SERIES;
    match (structure.axis, structure.varied.len()) {
        (Some(axis), 1 | 2)
            if structure.varied[axis].levels.len() >= MIN_AXIS_LEVELS && (few || structure.varied.len() == 1) =>
        {
            Form::Lines
        }
        (_, 2) if few && low >= 0.0 && analysis.rows.len() <= MAX_BARS => Form::Bars,
        _ => Form::Dots,
    }
}

fn caption(analysis: &Analysis<'_>, column: usize, form: Form, cut: bool) -> String {
    let rough = analysis.rows.iter().any(|row| row.entries[column].is_unreliable());
    let dashed = if rough { ", dashed where fewer than 5 trials make it rough" } else { "" };
    let mut caption = match form {
        Form::Dots => format!("Each row: the mean and its 95 % interval{dashed}; below, every single trial."),
        Form::Bars => format!("Bars are means, whiskers their 95 % intervals{dashed}, points single trials."),
        Form::Lines => "Lines are means, bands their 95 % intervals, points single trials.".to_owned(),
    };
    if form == Form::Dots
        && analysis.rows.iter().any(|row| row.entries[column].values.iter().any(|value| value.outlier))
    {
        caption.push_str(" A ring marks a trial far from the row's others.");
    }
    if let Some(name) = analysis.baseline_name().filter(|_| form == Form::Dots) {
        caption.push_str(&format!(" The dashed line is the baseline, {name}."));
    }
    if cut && form != Form::Bars {
        caption.push_str(" The axis does not start at zero.");
    }
    if analysis.rows.len() > MAX_ROWS && form == Form::Dots {
        caption.push_str(&format!(" The first {MAX_ROWS} of {} rows; the table has all.", analysis.rows.len()));
    }
    caption
}

fn description(analysis: &Analysis<'_>, column: usize) -> String {
    let view = &analysis.columns[column];
    let ranked = rows::ranked(analysis);
    let mut told: Vec<String> = ranked
        .iter()
        .take(TOLD)
        .map(|row| {
            let row = &analysis.rows[*row];
            match row.word {
                Some(word) => format!("{}: {word}", row.label),
                None => format!("{}: {}", row.label, in_words(&view.scale, &row.entries[column])),
            }
        })
        .collect();
    if ranked.len() > TOLD {
        told.push(format!("and {} in the table", counted(ranked.len() - TOLD, "more row")));
    }
    format!("{} by row: {}.", capital(&view.header), told.join("; "))
}

/// The text with a capital first letter, unless it begins with the name of a command.
pub(crate) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return String::new() };
    // Commands keep their spelling.
    if ["fsck", "mkfs", "mount", "tar", "rm"].iter().any(|command| text.split(' ').next() == Some(command)) {
        return text.to_owned();
    }
    format!("{}{}", first.to_uppercase(), characters.as_str())
}
