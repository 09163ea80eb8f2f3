//! Grouped bars for two factors, as published tables of such studies have them: from zero, with whiskers and trials.

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, Px},
    figure::{Drawing, Look},
    frame::{LINE, TEXT, axis_title, beyond_device, ceiling, device_line, labels_width, legend, vertical_axis},
    measure::{text_width, wrap},
};
use crate::{Analysis, analysis::in_words};

const HEIGHT: f64 = 230.0;
const TICKS: usize = 5;

/// Draws a column: a group per panel, a bar per level of the subject.
pub(super) fn draw(analysis: &Analysis<'_>, column: usize, look: Look) -> Drawing {
    let view = &analysis.columns[column];
    let structure = &analysis.structure;
    let mut canvas = Canvas::default();
    let no_names = Vec::new();
    let names = structure.subject.map_or(&no_names, |subject| &structure.varied[subject].levels);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut top = legend(&mut canvas, &names, look.width, true);
    for line in wrap(&axis_title(view, false), TEXT, look.width) {
        canvas.text(0.0, top + 10.0, Anchor::Start, "fs-m", &line);
        top += LINE;
    }
    top += 12.0;
    let rows: Vec<usize> = (0..analysis.rows.len()).collect();
    let device = ceiling(analysis, column, &rows);
    let values = analysis.rows.iter().flat_map(|row| row.entries[column].drawn()).chain(device);
    let axis = Axis::linear(values, true, top + HEIGHT, top);
    let left = labels_width(&axis, view.scale.divisor, TICKS) + 10.0;
    vertical_axis(&mut canvas, &axis, view.scale.divisor, TICKS, left, look.width);
    device_line(&mut canvas, &axis, device, left, look.width);
    let group = (look.width - left) / structure.panels.len() as f64;
    let bar = (group * 0.8 / names.len().max(1) as f64).min(54.0);
    let mut deepest = 0usize;
    for (index, panel) in structure.panels.iter().enumerate() {
        let middle = left + group * (index as f64 + 0.5);
        for (series, name) in names.iter().enumerate() {
            let of_series = panel
                .rows
                .iter()
                .find(|row| structure.subject.is_some_and(|subject| analysis.rows[**row].levels[subject] == *name));
            let Some(&row) = of_series else { continue };
            let x = middle + bar * (series as f64 - names.len() as f64 / 2.0);
            one(&mut canvas, analysis, (row, series, column), (x, bar), &axis);
        }
        let words = wrap(&panel.title, TEXT, group - 6.0);
        deepest = deepest.max(words.len());
        for (line, words) in words.iter().enumerate() {
            canvas.text(middle, top + HEIGHT + 18.0 + LINE * line as f64, Anchor::Middle, "fs-t", words);
        }
    }
    let zero = axis.at(0.0);
    canvas.line(left, zero, look.width, zero, "fs-axis");
    Drawing { width: look.width, height: top + HEIGHT + 10.0 + LINE * deepest as f64, body: canvas.finish() }
}

fn one(
    canvas: &mut Canvas,
    analysis: &Analysis<'_>,
    (row, series, column): (usize, usize, usize),
    (x, width): (f64, f64),
    axis: &Axis,
) {
    let view = &analysis.columns[column];
    let entry = &analysis.rows[row].entries[column];
    let (center, gap) = (x + width / 2.0, (width * 0.08).min(3.0));
    let Some(mean) = entry.mean() else {
        // The word where the bar would be; upright when the bar is narrower than the word.
        let word = analysis.rows[row].word.unwrap_or("–");
        let zero = axis.at(0.0) - 5.0;
        if text_width(word, 11.0) <= width {
            canvas.text(center, zero, Anchor::Middle, "fs-m fs-s", word);
        } else {
            canvas.raw(&format!("<g transform=\"translate({} {}) rotate(-90)\">", Px(center + 4.0), Px(zero)));
            canvas.text(0.0, 0.0, Anchor::Start, "fs-m fs-s", word);
            canvas.close();
        }
        return;
    };
    let title = format!("{}: {}", analysis.rows[row].label, in_words(&view.scale, entry));
    canvas.open_cell(series, analysis.rows[row].cell, column, &title);
    let (top, zero) = (axis.at(mean), axis.at(0.0));
    canvas.rect(x + gap, top, width - 2.0 * gap, (zero - top).max(0.0), "class=\"fs-mark\" fill-opacity=\".42\"");
    if let Some((low, high)) = entry.drawn_interval() {
        canvas.interval((center, axis.at(low)), (center, axis.at(high)), !entry.is_unreliable());
    }
    canvas.line(x + gap, top, x + width - gap, top, "fs-bar");
    beyond_device(canvas, view, entry, (center, top));
    // Trials beside the whisker, spread so that they do not hide each other.
    let step = (width * 0.5 / entry.values.len().max(1) as f64).min(4.0);
    let points: Vec<(f64, f64)> = entry
        .values
        .iter()
        .enumerate()
        .map(|(index, value)| {
            let side = (index as f64 - (entry.values.len() as f64 - 1.0) / 2.0) * step;
            (center + side, axis.at(value.value))
        })
        .collect();
    canvas.dots(&points, "fs-dots");
    canvas.close();
}
