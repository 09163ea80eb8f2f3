//! A figure over runs: every trial, the mean with its interval, the level between change points, and a rule at each change.

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, Px, Shape},
    figure::NARROW,
    frame::{axis_words, labels_width, vertical_axis},
    measure::text_width,
};
use crate::{analysis::runs::History, text::xml};

const HEIGHT: f64 = 240.0;
const SMALL: f64 = 11.0;

/// The drawing as an SVG element for a page; `None` without a point.
pub(crate) fn timeline(history: &History, width: f64, class: &str) -> Option<String> {
    let points = &history.points;
    if points.is_empty() {
        return None;
    }
    let divisor = history.scale.divisor;
    let top = 30.0;
    let values = points.iter().flat_map(|point| point.entry.drawn());
    let up = Axis::linear(values, false, top + HEIGHT, top);
    let mut canvas = Canvas::default();
    let unit = if history.scale.symbol.is_empty() { String::new() } else { format!(" ({})", history.scale.symbol) };
    canvas.text(0.0, 11.0, Anchor::Start, "fs-m", &format!("{}{unit}", history.header));
    let left = labels_width(&up, divisor, 5) + 10.0;
    vertical_axis(&mut canvas, &up, divisor, 5, left, width);
    let across = Axis::exact(-0.5, points.len() as f64 - 0.5, left, width);
    let edges: Vec<usize> =
        std::iter::once(0).chain(history.changes.iter().map(|change| change.index)).chain([points.len()]).collect();
    for change in &history.changes {
        let x = across.at(change.index as f64 - 0.5);
        canvas.line(x, top - 10.0, x, top + HEIGHT, "fs-axis fs-zero");
        canvas.text(x, top - 14.0, Anchor::Middle, "fs-t fs-s fs-b", &format!("run {}", points[change.index].run));
    }
    canvas.open("fs-1");
    for (number, edge) in edges.windows(2).enumerate() {
        let level = match (history.changes.get(number), number.checked_sub(1).and_then(|n| history.changes.get(n))) {
            (Some(change), _) => change.before,
            (None, Some(change)) => change.after,
            // One level all along says nothing that the points do not.
            (None, None) => break,
        };
        let (from, to) = (across.at(edge[0] as f64 - 0.5), across.at(edge[1] as f64 - 0.5));
        canvas.line(from, up.at(level), to, up.at(level), "fs-line");
    }
    canvas.close();
    canvas.open("fs-0");
    for (index, point) in points.iter().enumerate() {
        let x = across.at(index as f64);
        let dots: Vec<(f64, f64)> = point.entry.values.iter().map(|value| (x, up.at(value.value))).collect();
        canvas.dots(&dots, "fs-dots");
        if let Some((low, high)) = point.entry.drawn_interval() {
            canvas.interval((x, up.at(low)), (x, up.at(high)), !point.entry.is_unreliable());
        }
        if let Some(mean) = point.entry.mean() {
            canvas.mark(x, up.at(mean), Shape::Circle, if width <= NARROW { 3.2 } else { 4.0 });
        }
    }
    canvas.close();
    let mut free_from = f64::NEG_INFINITY;
    for (index, point) in points.iter().enumerate() {
        let label = point.run.to_string();
        let (x, half) = (across.at(index as f64), text_width(&label, SMALL) / 2.0);
        if x - half > free_from {
            canvas.text(x, top + HEIGHT + 15.0, Anchor::Middle, "fs-m fs-s", &label);
            free_from = x + half + 6.0;
        }
    }
    let end = axis_words(&mut canvas, "run", f64::midpoint(left, width), top + HEIGHT + 34.0, width);
    Some(format!(
        "<svg class=\"fs {class}\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\">{}</svg>",
        xml(&history.sentences().join(" ")),
        canvas.finish(),
        w = Px(width),
        h = Px(end - 4.0)
    ))
}
