//! Figure against run order: did the machine change while it was measuring?

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, Shape},
    figure::{Chapter, Drawing, Figure, Look, MAX_ROWS, slug},
    frame::{axis_words, horizontal_axis, labels_width, vertical_axis},
};
use crate::{Analysis, text::counted};

const HEIGHT: f64 = 170.0;
/// Fewer points show nothing.
const MIN_POINTS: usize = 8;

/// The primary column's figure, and that of every column that drifted.
pub(super) fn figures<'a>(analysis: &'a Analysis<'a>) -> Vec<Figure<'a>> {
    (0..analysis.columns.len())
        .filter(|column| {
            Some(*column) == analysis.primary() || analysis.drifts.iter().any(|drift| drift.column == *column)
        })
        .filter_map(|column| figure(analysis, column))
        .collect()
}

/// For each row: (position from 1, deviation from the row's median in per cent).
fn deviations(analysis: &Analysis<'_>, column: usize) -> Vec<(usize, Vec<(f64, f64)>)> {
    analysis
        .rows
        .iter()
        .enumerate()
        .filter_map(|(index, row)| {
            let entry = &row.entries[column];
            let median = entry.summary?.median;
            let points: Vec<(f64, f64)> = entry
                .values
                .iter()
                .map(|value| (f64::from(row.trials[value.trial].position) + 1.0, (value.value / median - 1.0) * 100.0))
                .collect();
            (median > 0.0 && points.len() > 1).then_some((index, points))
        })
        .collect()
}

fn figure<'a>(analysis: &'a Analysis<'a>, column: usize) -> Option<Figure<'a>> {
    let header = &analysis.columns[column].header;
    let count: usize = deviations(analysis, column).iter().map(|(_, points)| points.len()).sum();
    if count < MIN_POINTS {
        return None;
    }
    let finding = match analysis.drifts.iter().find(|drift| drift.column == column) {
        Some(drift) => format!("It {} from the first trial to the last.", drift.change()),
        None => "No drift was found.".to_owned(),
    };
    Some(Figure {
        slug: slug(&[header, "run order"]),
        chapter: Chapter::Method,
        title: format!("{} in run order", crate::text::title(header)),
        caption: format!("Each point is a trial, against the median of its row; a slope is drift. {finding}"),
        description: format!(
            "{} of all rows, each against its row's median, in run order. {finding}",
            counted(count, "trial")
        ),
        logarithmic: false,
        number: 0,
        draw: Box::new(move |look| draw(analysis, column, look)),
    })
}

fn draw(analysis: &Analysis<'_>, column: usize, look: Look) -> Drawing {
    let mut rows = deviations(analysis, column);
    let points = || rows.iter().flat_map(|(_, points)| points.iter());
    let reach = points().map(|point| point.1.abs()).fold(0.0, f64::max).max(0.1) * 1.08;
    let top = 24.0;
    let up = Axis::exact(-reach, reach, top + HEIGHT, top);
    let mut canvas = Canvas::default();
    canvas.text(0.0, 11.0, Anchor::Start, "fs-m", "% from the row's median");
    let left = labels_width(&up, 1.0, 5) + 10.0;
    vertical_axis(&mut canvas, &up, 1.0, 5, left, look.width);
    let last = analysis.dataset.trials.len().max(2) as f64;
    let across = Axis::exact(0.0, last + 1.0, left, look.width);
    horizontal_axis(&mut canvas, &across, 1.0, if look.is_narrow() { 4 } else { 8 }, top, top + HEIGHT);
    canvas.line(left, up.at(0.0), look.width, up.at(0.0), "fs-axis");
    let place =
        |points: &[(f64, f64)]| -> Vec<(f64, f64)> { points.iter().map(|(x, y)| (across.at(*x), up.at(*y))).collect() };
    if rows.len() > MAX_ROWS {
        canvas.open("fs-0");
        let all: Vec<(f64, f64)> = rows.iter().flat_map(|(_, points)| place(points)).collect();
        canvas.dots(&all, "fs-dots");
        canvas.close();
        rows.clear();
    }
    for (row, points) in &rows {
        let cell = &analysis.rows[*row];
        canvas.open_cell(0, cell.cell, column, &cell.label);
        let placed = place(points);
        canvas.dots(&placed, "fs-dots");
        for (value, (x, y)) in cell.entries[column].values.iter().zip(&placed) {
            if value.outlier {
                canvas.mark(*x, *y, Shape::Ring, 4.2);
            }
        }
        canvas.close();
    }
    let center = f64::midpoint(left, look.width);
    let bottom = axis_words(&mut canvas, "trial, in the order they ran", center, top + HEIGHT + 34.0, look.width);
    Drawing { width: look.width, height: bottom - 4.0, body: canvas.finish() }
}
