//! The figure of a column, in the form that fits what was varied.

use super::{
    bars, dots,
    figure::{Chapter, Figure, MAX_ROWS, slug},
    frame::{ceiling, extent},
    lines, rows,
};
use crate::{Analysis, analysis::in_words, legend::BEYOND, text::counted};
use fstone_stats::CONFIDENCE_TEXT;

const MAX_BARS: usize = 24;
/// A numeric factor with fewer levels is better shown as groups.
const MIN_AXIS_LEVELS: usize = 4;
/// How many rows a description names.
const TOLD: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Dots,
    Bars,
    Lines,
}

/// The figures of a column: one, or one per sweep; none when no row has a figure.
pub(super) fn figures<'a>(analysis: &'a Analysis<'a>, column: usize) -> Vec<Figure<'a>> {
    let all: Vec<usize> = (0..analysis.rows.len()).collect();
    let (low, _) = extent(analysis, column, &all);
    if !low.is_finite() {
        return Vec::new();
    }
    match form(analysis, low) {
        Form::Lines => {
            let sweeps = &analysis.structure.sweeps;
            (0..sweeps.len())
                .filter(|sweep| extent(analysis, column, &sweeps[*sweep].rows).0.is_finite())
                .map(|sweep| figure(analysis, column, Form::Lines, Some(sweep)))
                .collect()
        }
        form => vec![figure(analysis, column, form, None)],
    }
}

fn figure<'a>(analysis: &'a Analysis<'a>, column: usize, form: Form, sweep: Option<usize>) -> Figure<'a> {
    let view = &analysis.columns[column];
    let ranked = rows::ranked(analysis);
    let sweep = sweep.map(|sweep| &analysis.structure.sweeps[sweep]);
    let shown: Vec<usize> =
        ranked.into_iter().filter(|row| sweep.is_none_or(|sweep| sweep.rows.contains(row))).collect();
    let (low, high) = extent(analysis, column, &shown);
    let mut title = crate::text::title(&view.header);
    // One sweep alone needs no name of its own.
    let mut stem = vec![view.header.as_str()];
    if let Some(sweep) = sweep.filter(|_| analysis.structure.sweeps.len() > 1) {
        let over = &analysis.structure.varied[sweep.axis].name;
        title.push_str(&format!(" over {over}"));
        if !sweep.title.is_empty() {
            title.push_str(&format!(" ({})", sweep.title));
        }
        stem.extend(["over", over]);
    }
    Figure {
        slug: slug(&stem),
        chapter: Chapter::Column,
        title,
        caption: caption(analysis, column, form, &shown, low > 0.0 && high - low <= high / 2.0),
        description: description(analysis, column, &shown),
        // Where values are within a factor of two a logarithmic axis shows the same.
        logarithmic: form != Form::Bars && low > 0.0 && high / low > 2.0,
        number: 0,
        draw: match (form, sweep) {
            (Form::Lines, Some(sweep)) => Box::new(move |look| lines::draw(analysis, column, sweep, look)),
            (Form::Bars, _) => Box::new(move |look| bars::draw(analysis, column, look)),
            _ => Box::new(move |look| dots::draw(analysis, column, look)),
        },
    }
}

fn of_device(analysis: &Analysis<'_>, column: usize, shown: &[usize]) -> String {
    let view = &analysis.columns[column];
    let Some(best) = view.ceiling else { return String::new() };
    let told = view.scale.with_unit(best.value);
    let mut words = match ceiling(analysis, column, shown) {
        Some(_) => format!(" The dotted line is the best of the device alone, {told}."),
        None => format!(" The best of the device alone, {told}, is beyond the axis."),
    };
    if shown.iter().any(|row| view.is_beyond_device(&analysis.rows[*row].entries[column])) {
        words.push_str(&format!(" {BEYOND} marks figures that are better, so memory served them."));
    }
    words
}

fn form(analysis: &Analysis<'_>, low: f64) -> Form {
    let structure = &analysis.structure;
    let subjects = structure.subject.map_or(1, |subject| structure.varied[subject].levels.len());
    let few = subjects <= super::theme::SERIES || structure.varied.len() == 1;
    let levels = structure.sweeps.iter().map(|sweep| structure.varied[sweep.axis].levels.len()).max();
    // A single sweep of three levels is better shown as groups.
    let worth = structure.sweeps.len() > 1 || levels.is_some_and(|levels| levels >= MIN_AXIS_LEVELS);
    if few && worth && levels.is_some() {
        Form::Lines
    } else if structure.varied.len() == 2 && few && low >= 0.0 && analysis.rows.len() <= MAX_BARS {
        Form::Bars
    } else {
        Form::Dots
    }
}

fn caption(analysis: &Analysis<'_>, column: usize, form: Form, shown: &[usize], cut: bool) -> String {
    let rough = shown.iter().any(|row| analysis.rows[*row].entries[column].is_unreliable());
    let dashed = if rough { ", dashed where too few trials make it rough" } else { "" };
    let mut caption = match form {
        Form::Dots => {
            format!("Each row: the mean and its {CONFIDENCE_TEXT} interval{dashed}; below, every single trial.")
        }
        Form::Bars => {
            format!("Bars are means, whiskers their {CONFIDENCE_TEXT} intervals{dashed}, points single trials.")
        }
        Form::Lines => {
            format!(
                "Lines are means, bands and whiskers their {CONFIDENCE_TEXT} intervals{dashed}, points single trials."
            )
        }
    };
    if form == Form::Dots
        && analysis.rows.iter().any(|row| row.entries[column].values.iter().any(|value| value.outlier))
    {
        caption.push_str(" A ring marks a trial far from the row's others.");
    }
    if let Some(name) = analysis.baseline_name().filter(|_| form == Form::Dots) {
        caption.push_str(&format!(" The dashed line is the baseline, {name}."));
    }
    caption.push_str(&of_device(analysis, column, shown));
    if cut && form != Form::Bars {
        caption.push_str(" The axis does not start at zero.");
    }
    if analysis.rows.len() > MAX_ROWS && form == Form::Dots {
        caption.push_str(&format!(" The first {MAX_ROWS} of {} rows; the table has all.", analysis.rows.len()));
    }
    caption
}

fn description(analysis: &Analysis<'_>, column: usize, shown: &[usize]) -> String {
    let view = &analysis.columns[column];
    let mut told: Vec<String> = shown
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
    if shown.len() > TOLD {
        told.push(format!("and {} in the table", counted(shown.len() - TOLD, "more row")));
    }
    format!("{} by row: {}.", crate::text::title(&view.header), told.join("; "))
}
