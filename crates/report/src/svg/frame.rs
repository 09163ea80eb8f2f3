//! What plots with two axes have in common: tick labels, grid lines, legends.

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, Shape},
    measure::{text_width, wrap},
};
use crate::{
    Analysis,
    analysis::{ColumnView, Entry},
    legend::BEYOND,
    number::grouped,
    text::joined,
};

/// Font size of tick labels and legends.
pub(super) const TEXT: f64 = 12.0;
const SMALL: f64 = 11.0;
pub(super) const LINE: f64 = 15.0;

/// The most by which an axis is extended to reach the device's ceiling.
const REACH: f64 = 2.0;

/// Ticks further apart than this factor are labelled each with the decimals it needs: "0.1", "10", "1,000".
const OWN_DECIMALS: f64 = 50.0;

/// Labels for ticks: as many decimals as tell them apart, and no more.
pub(super) fn tick_labels(ticks: &[f64], divisor: f64) -> Vec<String> {
    let scaled: Vec<f64> = ticks.iter().map(|tick| tick / divisor).collect();
    let needed: Vec<usize> = scaled.iter().map(|tick| decimals(*tick)).collect();
    let most = needed.iter().copied().max().unwrap_or(0);
    let wide = match (scaled.first(), scaled.last()) {
        (Some(first), Some(last)) => *first > 0.0 && last / first >= OWN_DECIMALS,
        _ => false,
    };
    scaled.iter().zip(needed).map(|(tick, own)| grouped(*tick, if wide { own } else { most })).collect()
}

/// The fewest decimals that show a round number as it is.
fn decimals(value: f64) -> usize {
    let shown = |decimals: usize| {
        let power = 10f64.powi(i32::try_from(decimals).unwrap_or(0));
        (value * power).round() / power
    };
    (0..6).find(|decimals| (shown(*decimals) - value).abs() <= value.abs() * 1e-3 + 1e-12).unwrap_or(6)
}

pub(super) fn labels_width(axis: &Axis, divisor: f64, wanted: usize) -> f64 {
    tick_labels(&axis.ticks(wanted, divisor), divisor).iter().map(|label| text_width(label, SMALL)).fold(0.0, f64::max)
}

/// Horizontal grid lines from `left` to `right` with their labels to the left of `left`.
pub(super) fn vertical_axis(canvas: &mut Canvas, axis: &Axis, divisor: f64, wanted: usize, left: f64, right: f64) {
    let ticks = axis.ticks(wanted, divisor);
    for (tick, label) in ticks.iter().zip(tick_labels(&ticks, divisor)) {
        let y = axis.at(*tick);
        canvas.line(left, y, right, y, "fs-grid");
        canvas.text(left - 6.0, y + 4.0, Anchor::End, "fs-m fs-s", &label);
    }
}

/// Vertical grid lines from `top` to `bottom` with their labels under `bottom`; labels that would touch are left out.
pub(super) fn horizontal_axis(canvas: &mut Canvas, axis: &Axis, divisor: f64, wanted: usize, top: f64, bottom: f64) {
    let ticks = axis.ticks(wanted, divisor);
    let mut free_from = f64::NEG_INFINITY;
    for (tick, label) in ticks.iter().zip(tick_labels(&ticks, divisor)) {
        let x = axis.at(*tick);
        canvas.line(x, top, x, bottom, "fs-grid");
        let half = text_width(&label, SMALL) / 2.0;
        // Beyond its ends a plot has a little room to the left, and none to the right.
        let middle = x.min(axis.to() - half).max(axis.from() - 8.0 + half);
        if middle - half > free_from {
            canvas.text(middle, bottom + 15.0, Anchor::Middle, "fs-m fs-s", &label);
            free_from = middle + half + 6.0;
        }
    }
}

/// The lowest and the highest value or end of an interval; infinite without any.
pub(super) fn extent(analysis: &Analysis<'_>, column: usize, rows: &[usize]) -> (f64, f64) {
    rows.iter()
        .flat_map(|row| analysis.rows[*row].entries[column].drawn())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// The device's ceiling, where the axis of these rows can reach it.
pub(super) fn ceiling(analysis: &Analysis<'_>, column: usize, rows: &[usize]) -> Option<f64> {
    let value = analysis.columns[column].ceiling?.value;
    let (low, high) = extent(analysis, column, rows);
    (low / REACH <= value && value <= high * REACH).then_some(value)
}

/// A dotted line across a plot at what the device can do by itself.
pub(super) fn device_line(canvas: &mut Canvas, axis: &Axis, device: Option<f64>, left: f64, right: f64) {
    if let Some(y) = device.map(|device| axis.at(device)) {
        canvas.line(left, y, right, y, "fs-axis fs-device");
    }
}

pub(super) fn beyond_device(canvas: &mut Canvas, column: &ColumnView, entry: &Entry, (x, y): (f64, f64)) {
    if column.is_beyond_device(entry) {
        canvas.text(x, y - 8.0, Anchor::Middle, "fs-m fs-s", BEYOND);
    }
}

/// What a column's axis says: name, unit, and which way is better.
pub(super) fn axis_title(column: &ColumnView, logarithmic: bool) -> String {
    joined(&[&*column.with_unit(), column.better.words(), if logarithmic { "logarithmic" } else { "" }], ", ")
}

/// A horizontal axis's title, centred under its labels, wrapped to the drawing; the y of the line after it.
pub(super) fn axis_words(canvas: &mut Canvas, title: &str, center: f64, y: f64, width: f64) -> f64 {
    // As wide as it can be while staying centred and inside.
    let room = 2.0 * center.min(width - center);
    let lines = wrap(title, TEXT, room);
    for (index, line) in lines.iter().enumerate() {
        canvas.text(center, y + LINE * index as f64, Anchor::Middle, "fs-t", line);
    }
    y + LINE * lines.len() as f64
}

/// A legend in as many lines as it takes: a mark and a name per series. Gives the height it took.
pub(super) fn legend(canvas: &mut Canvas, names: &[&str], width: f64, bars: bool) -> f64 {
    const MARK: f64 = 16.0;
    const GAP: f64 = 18.0;
    let (mut x, mut y) = (0.0, 12.0);
    for (series, name) in names.iter().enumerate() {
        let lines = wrap(name, TEXT, width - MARK);
        let longest = lines.iter().map(|line| text_width(line, TEXT)).fold(0.0, f64::max);
        if x > 0.0 && x + MARK + longest > width {
            (x, y) = (0.0, y + LINE + 3.0);
        }
        canvas.open(&format!("fs-{series}"));
        if bars {
            canvas.rect(x, y - 9.0, 10.0, 10.0, "class=\"fs-mark\"");
        } else {
            canvas.mark(x + 5.0, y - 4.0, Shape::of(series), 4.0);
        }
        canvas.close();
        for (index, line) in lines.iter().enumerate() {
            canvas.text(x + MARK, y + LINE * index as f64, Anchor::Start, "fs-t", line);
        }
        y += LINE * (lines.len() - 1) as f64;
        x += MARK + longest + GAP;
    }
    y + 12.0
}

#[cfg(test)]
mod tests {
    use super::tick_labels;

    #[test]
    fn labels_have_the_decimals_they_need() {
        assert_eq!(tick_labels(&[0.0, 0.5, 1.0], 1.0), ["0.0", "0.5", "1.0"]);
        assert_eq!(tick_labels(&[10_000.0, 20_000.0], 1.0), ["10,000", "20,000"]);
        assert_eq!(tick_labels(&[0.25, 0.5], 1.0), ["0.25", "0.50"]);
        assert_eq!(tick_labels(&[0.1, 10.0, 1000.0], 1.0), ["0.1", "10", "1,000"]);
        assert_eq!(tick_labels(&[-20.0, 0.0, 20.0], 1.0), ["−20", "0", "20"]);
    }
}
