//! Dot and interval: one strip per row, the mean and its interval above, every single trial below.

use super::{
    axis::Axis,
    canvas::{Canvas, Shape},
    figure::{Drawing, Look, MAX_ROWS},
    frame::{axis_title, axis_words, ceiling, horizontal_axis},
    rows::{Placed, RowLayout, ranked},
};
use crate::{
    Analysis,
    analysis::{Entry, in_words},
    legend::BEYOND,
};

/// Points of a strip: radius, and how many layers they are stacked in before they overlap.
const RADIUS: f64 = 2.2;
const LAYERS: usize = 3;

pub(super) fn draw(analysis: &Analysis<'_>, column: usize, look: Look) -> Drawing {
    let view = &analysis.columns[column];
    let mut rows = ranked(analysis);
    rows.truncate(MAX_ROWS);
    let entry = |row: usize| &analysis.rows[row].entries[column];
    let value = |row: usize| match entry(row).mean() {
        Some(mean) if view.is_beyond_device(entry(row)) => format!("{} {BEYOND}", view.scale.number(mean)),
        Some(mean) => view.scale.number(mean),
        None => analysis.rows[row].word.unwrap_or("–").to_owned(),
    };
    let layout = RowLayout::new(analysis, &rows, look, &value);
    let device = ceiling(analysis, column, &rows);
    let values = || rows.iter().flat_map(|row| entry(*row).drawn()).chain(device);
    let axis = Some(look)
        .filter(|look| look.logarithmic)
        .and_then(|_| Axis::logarithmic(values(), layout.from, layout.to))
        .unwrap_or_else(|| Axis::linear(values(), false, layout.from, layout.to));
    let mut canvas = Canvas::default();
    let wanted = if look.is_narrow() { 4 } else { 6 };
    horizontal_axis(&mut canvas, &axis, view.scale.divisor, wanted, layout.top, layout.bottom);
    if let Some(x) = device.map(|device| axis.at(device)) {
        canvas.line(x, layout.top, x, layout.bottom, "fs-axis fs-device");
    }
    baselines(&mut canvas, analysis, column, &layout, &axis);
    layout.headings(&mut canvas);
    for placed in &layout.rows {
        let row = &analysis.rows[placed.row];
        let title = format!("{}: {}", row.label, in_words(&view.scale, entry(placed.row)));
        layout.words(&mut canvas, placed);
        if entry(placed.row).summary.is_some() {
            canvas.open_cell(0, row.cell, column, &title);
            strip(&mut canvas, entry(placed.row), placed, &axis);
            canvas.close();
        }
    }
    let center = f64::midpoint(layout.from, layout.to);
    let bottom = axis_words(&mut canvas, &axis_title(view, look.logarithmic), center, layout.bottom + 34.0, look.width);
    Drawing { width: look.width, height: bottom - 4.0, body: canvas.finish() }
}

fn baselines(canvas: &mut Canvas, analysis: &Analysis<'_>, column: usize, layout: &RowLayout, axis: &Axis) {
    for (index, panel) in analysis.structure.panels.iter().enumerate() {
        let Some(mean) = panel.baseline.and_then(|row| analysis.rows[row].entries[column].mean()) else { continue };
        let ys: Vec<f64> = layout
            .rows
            .iter()
            .filter(|placed| analysis.rows[placed.row].panel == index)
            .map(|placed| placed.y)
            .collect();
        if let (Some(first), Some(last)) = (ys.first(), ys.last()) {
            let x = axis.at(mean);
            canvas.line(x, first - 15.0, x, last + 15.0, "fs-axis fs-zero");
        }
    }
}

fn strip(canvas: &mut Canvas, entry: &Entry, placed: &Placed, axis: &Axis) {
    let middle = placed.y - 7.0;
    if let Some((low, high)) = entry.drawn_interval() {
        canvas.interval((axis.at(low), middle), (axis.at(high), middle), !entry.is_unreliable());
    }
    if let Some(mean) = entry.mean() {
        let shape = if entry.interval.is_some() { Shape::Circle } else { Shape::Ring };
        canvas.mark(axis.at(mean), middle, shape, 4.4);
    }
    let xs: Vec<f64> = entry.values.iter().map(|value| axis.at(value.value)).collect();
    let points: Vec<(f64, f64)> =
        xs.iter().zip(layers(&xs)).map(|(x, layer)| (*x, placed.y + 3.0 + layer as f64 * 4.4)).collect();
    canvas.dots(&points, "fs-dots");
    for (value, (x, y)) in entry.values.iter().zip(&points) {
        if value.outlier {
            canvas.mark(*x, *y, Shape::Ring, 4.2);
        }
    }
}

/// The layer of each point, so that points side by side do not hide each other; beyond the last layer they overlap.
pub(super) fn layers(xs: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..xs.len()).collect();
    order.sort_by(|a, b| xs[*a].total_cmp(&xs[*b]));
    let mut ends = [f64::NEG_INFINITY; LAYERS];
    let mut layers = vec![0; xs.len()];
    for (turn, index) in order.into_iter().enumerate() {
        let free = ends.iter().position(|end| xs[index] - end >= 2.0 * RADIUS);
        let layer = free.unwrap_or(turn % LAYERS);
        ends[layer] = xs[index];
        layers[index] = layer;
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::layers;

    #[test]
    fn points_side_by_side_are_stacked() {
        assert_eq!(layers(&[10.0, 50.0, 11.0, 12.0]), [0, 0, 1, 2]);
        assert_eq!(layers(&[]), [0usize; 0]);
        assert!(layers(&[1.0; 50]).iter().all(|layer| *layer < super::LAYERS));
    }
}
