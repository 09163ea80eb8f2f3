//! Changes with their intervals, one row each, around zero: what a comparison of two runs looks like.

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, Px, Shape},
    figure::NARROW,
    frame::{axis_words, horizontal_axis},
    measure::{text_width, wrap_to},
};
use crate::{
    analysis::runs::{ComparedColumn, ComparedFigure, Verdict, interval_name},
    number::grouped,
    text::{joined, xml},
};
use fstone_stats::compare::Shift;

const TEXT: f64 = 12.0;
const STRIP: f64 = 24.0;
const LINE: f64 = 15.0;
/// No figure shows more rows than this; the table has all.
const MAX_ROWS: usize = 60;

/// The relative changes of a column as an SVG element for a page; `None` when no figure has one.
pub(crate) fn forest(column: &ComparedColumn, threshold: f64, width: f64, class: &str) -> Option<String> {
    let rows: Vec<(&ComparedFigure, Shift)> = column
        .figures
        .iter()
        .filter_map(|figure| Some((figure, figure.pair?.relative?)))
        .filter(|(_, shift)| shift.interval.low.is_finite() && shift.interval.high.is_finite())
        .take(MAX_ROWS)
        .collect();
    if rows.is_empty() {
        return None;
    }
    let narrow = width <= NARROW;
    let value = |shift: Shift| {
        let text = grouped(shift.estimate * 100.0, 1);
        format!("{}{text} %", if shift.estimate > 0.0 { "+" } else { "" })
    };
    let values = rows.iter().map(|(_, shift)| text_width(&value(*shift), TEXT)).fold(0.0, f64::max);
    let names = rows.iter().map(|(figure, _)| text_width(&figure.label, TEXT)).fold(0.0, f64::max);
    let names = if narrow { 0.0 } else { names.min(width * 0.34) + 1.0 };
    let (from, to) = if narrow { (8.0, width - values - 12.0) } else { (names + 16.0, width - values - 14.0) };
    let ends = rows.iter().flat_map(|(_, shift)| [shift.interval.low, shift.interval.high, shift.estimate]);
    // Room for the threshold too, and never so close that noise looks like much.
    let reach = ends.map(f64::abs).fold(threshold.max(0.01), f64::max) * 108.0;
    let axis = Axis::exact(-reach, reach, from, to);
    let mut canvas = Canvas::default();
    let top = 2.0;
    let strip = if narrow { STRIP + LINE } else { STRIP };
    let bottom = top + strip * rows.len() as f64;
    if threshold > 0.0 {
        let (left, right) = (axis.at(-threshold * 100.0), axis.at(threshold * 100.0));
        canvas.open("fs-6");
        canvas.rect(left, top, right - left, bottom - top, "class=\"fs-band\"");
        canvas.close();
    }
    horizontal_axis(&mut canvas, &axis, 1.0, if narrow { 4 } else { 6 }, top, bottom);
    canvas.line(axis.at(0.0), top, axis.at(0.0), bottom, "fs-axis");
    for (index, (figure, shift)) in rows.iter().enumerate() {
        let y = top + strip * (index as f64 + 1.0) - STRIP / 2.0;
        if narrow {
            let name = wrap_to(&figure.label, TEXT, width, 1).concat();
            canvas.text(8.0, y - 12.0, Anchor::Start, "fs-t", &name);
        } else {
            let name = wrap_to(&figure.label, TEXT, names, 1).concat();
            canvas.text(names, y + 4.0, Anchor::End, "fs-t", &name);
        }
        // Orange and blue, told apart by shape too: what is worse has a triangle that points the way it went.
        let (series, shape) = match figure.verdict {
            Verdict::Regression if shift.estimate < 0.0 => (1, Shape::Down),
            Verdict::Regression => (1, Shape::Triangle),
            Verdict::Improvement | Verdict::Difference => (0, Shape::Diamond),
            Verdict::Slight | Verdict::Unclear | Verdict::MayBeChance => (0, Shape::Circle),
            Verdict::NotFound | Verdict::TooFew | Verdict::NoFigure => (6, Shape::Ring),
        };
        canvas.open(&format!("fs-{series}"));
        let at = |value: f64| axis.at(value * 100.0);
        let reliable = shift.interval.is_reliable();
        canvas.interval((at(shift.interval.low), y), (at(shift.interval.high), y), reliable);
        canvas.mark(at(shift.estimate), y, shape, 4.4);
        canvas.close();
        canvas.text(width, y + 4.0, Anchor::End, "fs-t", &value(*shift));
    }
    let title = joined(&[&*format!("change of {} (%)", column.header), column.better.words()], ", ");
    let center = f64::midpoint(from, to);
    let end = axis_words(&mut canvas, &title, center, bottom + 34.0, width);
    Some(format!(
        "<svg class=\"fs {class}\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\">{}</svg>",
        xml(&description(&rows, column)),
        canvas.finish(),
        w = Px(width),
        h = Px(end - 4.0)
    ))
}

/// The same in words, for those who do not see it.
fn description(rows: &[(&ComparedFigure, Shift)], column: &ComparedColumn) -> String {
    let told: Vec<String> = rows
        .iter()
        .map(|(figure, shift)| {
            let percent = |value: f64| grouped(value * 100.0, 1);
            let (low, high) = (percent(shift.interval.low), percent(shift.interval.high));
            format!("{} {} % ({low} to {high}), {}", figure.label, percent(shift.estimate), figure.verdict.word())
        })
        .collect();
    let interval = interval_name(rows.iter().map(|(figure, _)| *figure));
    format!("Change of {} with its {interval}: {}", column.header, told.join("; "))
}
