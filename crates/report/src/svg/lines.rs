//! Lines over a numeric factor, with bands.

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, Shape, between, through},
    figure::{Drawing, Look},
    frame::{
        LINE, TEXT, axis_title, axis_words, beyond_device, ceiling, device_line, labels_width, legend, vertical_axis,
    },
    measure::{text_width, wrap},
};
use crate::{
    Analysis,
    analysis::{Sweep, in_words},
};

pub(super) const HEIGHT: f64 = 250.0;
pub(super) const TICKS: usize = 5;
/// Levels spread over more than this are spaced by their logarithm.
const LOGARITHMIC_FROM: f64 = 8.0;

pub(super) fn draw(analysis: &Analysis<'_>, column: usize, sweep: &Sweep, look: Look) -> Drawing {
    let view = &analysis.columns[column];
    let structure = &analysis.structure;
    let subject = structure.subject.filter(|subject| *subject != sweep.axis);
    let names: Vec<&str> =
        subject.map_or_else(Vec::new, |subject| structure.varied[subject].levels.iter().map(String::as_str).collect());
    let mut canvas = Canvas::default();
    let mut top = if names.len() > 1 { legend(&mut canvas, &names, look.width, false) } else { 0.0 };
    for line in wrap(&axis_title(view, look.logarithmic), TEXT, look.width) {
        canvas.text(0.0, top + 10.0, Anchor::Start, "fs-m", &line);
        top += LINE;
    }
    top += 12.0;
    let device = ceiling(analysis, column, &sweep.rows);
    let values = || sweep.rows.iter().flat_map(|row| analysis.rows[*row].entries[column].drawn()).chain(device);
    let (low_y, high_y) = (top + HEIGHT, top);
    let axis = Some(look)
        .filter(|look| look.logarithmic)
        .and_then(|_| Axis::logarithmic(values(), low_y, high_y))
        .unwrap_or_else(|| Axis::linear(values(), false, low_y, high_y));
    let left = labels_width(&axis, view.scale.divisor, TICKS) + 10.0;
    vertical_axis(&mut canvas, &axis, view.scale.divisor, TICKS, left, look.width);
    device_line(&mut canvas, &axis, device, left, look.width);
    let (levels, numbers): (Vec<&str>, Vec<u64>) = swept(analysis, sweep).into_iter().unzip();
    let across = positions(&numbers, left + 14.0, look.width - 14.0);
    let x_of = |row: usize| {
        let level = levels.iter().position(|level| *level == analysis.rows[row].levels[sweep.axis])?;
        across.get(level).copied()
    };
    let series_names = if names.is_empty() { vec![""] } else { names };
    for (series, name) in series_names.into_iter().enumerate() {
        let rows = sweep.rows.iter().copied();
        let rows = rows.filter(|row| subject.is_none_or(|subject| analysis.rows[*row].levels[subject] == name));
        let mut points: Vec<(f64, usize)> = rows.filter_map(|row| Some((x_of(row)?, row))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        line(&mut canvas, analysis, column, series, &points, &axis);
    }
    level_labels(&mut canvas, &levels, &across, top + HEIGHT, look.width);
    let center = f64::midpoint(left, look.width);
    let name = &structure.varied[sweep.axis].name;
    let bottom = axis_words(&mut canvas, name, center, top + HEIGHT + 38.0, look.width);
    Drawing { width: look.width, height: bottom - 4.0, body: canvas.finish() }
}

/// The levels that the sweep's rows have: (name, number).
pub(super) fn swept<'a>(analysis: &'a Analysis<'_>, sweep: &Sweep) -> Vec<(&'a str, u64)> {
    let factor = &analysis.structure.varied[sweep.axis];
    let numbers = factor.numbers.as_deref().unwrap_or_default();
    let used = |name: &str| sweep.rows.iter().any(|row| analysis.rows[*row].levels[sweep.axis] == name);
    factor.levels.iter().map(String::as_str).zip(numbers.iter().copied()).filter(|(name, _)| used(name)).collect()
}

pub(super) fn positions(numbers: &[u64], from: f64, to: f64) -> Vec<f64> {
    let values: Vec<f64> = numbers.iter().map(|number| *number as f64).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let place: Box<dyn Fn(f64) -> f64> = if high <= low {
        Box::new(|_| 0.5)
    } else if low > 0.0 && high / low >= LOGARITHMIC_FROM {
        Box::new(move |value| (value / low).ln() / (high / low).ln())
    } else {
        Box::new(move |value| (value - low) / (high - low))
    };
    values.into_iter().map(|value| from + place(value) * (to - from)).collect()
}

fn line(
    canvas: &mut Canvas,
    analysis: &Analysis<'_>,
    column: usize,
    series: usize,
    points: &[(f64, usize)],
    axis: &Axis,
) {
    let view = &analysis.columns[column];
    let entry = |row: usize| &analysis.rows[row].entries[column];
    canvas.open(&format!("fs-{series}"));
    // A band needs an interval on either side; where one is missing it is interrupted.
    for run in points.split(|(_, row)| entry(*row).interval.is_none()).filter(|run| run.len() > 1) {
        let edge = |pick: &dyn Fn((f64, f64)) -> f64| -> Vec<(f64, f64)> {
            run.iter().filter_map(|(x, row)| Some((*x, axis.at(pick(entry(*row).drawn_interval()?))))).collect()
        };
        canvas.path(&between(&edge(&|(_, high)| high), &edge(&|(low, _)| low)), "fs-band");
    }
    canvas.path(&through(points.iter().map(|(x, row)| Some((*x, axis.at(entry(*row).mean()?))))), "fs-line");
    canvas.close();
    for (x, row) in points {
        let entry = entry(*row);
        let Some(mean) = entry.mean() else { continue };
        let title = format!("{}: {}", analysis.rows[*row].label, in_words(&view.scale, entry));
        canvas.open_cell(series, analysis.rows[*row].cell, column, &title);
        if let Some((low, high)) = entry.drawn_interval() {
            canvas.interval((*x, axis.at(low)), (*x, axis.at(high)), !entry.is_unreliable());
        }
        let trials: Vec<(f64, f64)> = entry.values.iter().map(|value| (*x, axis.at(value.value))).collect();
        canvas.dots(&trials, "fs-dots");
        canvas.mark(*x, axis.at(mean), Shape::of(series), 4.2);
        beyond_device(canvas, view, entry, (*x, axis.at(mean)));
        canvas.close();
    }
}

/// The levels' names under the plot; those that would touch the one before are left out, never the last.
pub(super) fn level_labels(canvas: &mut Canvas, levels: &[&str], across: &[f64], y: f64, width: f64) {
    let mut order: Vec<usize> = (0..across.len().min(levels.len())).collect();
    order.sort_by(|a, b| across[*a].total_cmp(&across[*b]));
    let span = |index: usize| {
        let half = text_width(levels[index], 11.0) / 2.0;
        let middle = across[index].clamp(half, (width - half).max(half));
        (middle - half, middle + half, middle)
    };
    let Some(&last) = order.last() else { return };
    let before_last = span(last).0 - 6.0;
    let mut free_from = f64::NEG_INFINITY;
    for index in order {
        let (from, to, middle) = span(index);
        canvas.line(across[index], y, across[index], y + 4.0, "fs-axis");
        if index == last || (from >= free_from && to <= before_last) {
            canvas.text(middle, y + 18.0, Anchor::Middle, "fs-m fs-s", levels[index]);
            free_from = to + 6.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::positions;

    #[test]
    fn wide_ranges_are_spaced_by_their_logarithm() {
        let rounded: Vec<f64> = positions(&[1, 2, 4, 8], 0.0, 30.0).into_iter().map(f64::round).collect();
        assert_eq!(rounded, [0.0, 10.0, 20.0, 30.0]);
        assert_eq!(positions(&[10, 20, 30], 0.0, 10.0), [0.0, 5.0, 10.0]);
        assert_eq!(positions(&[7], 0.0, 10.0), [5.0]);
    }
}
