//! Published and today: each row's ratio to the baseline, then and now, on one logarithmic axis.

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, Px, Shape},
    figure::{Chapter, Drawing, Figure, Look, slug},
    frame::{axis_words, horizontal_axis},
    rows::{RowLayout, ranked},
};
use crate::{Analysis, analysis::Published, number};

/// The figure; `None` when fewer than two ratios are known on both sides.
pub(super) fn figure<'a>(analysis: &'a Analysis<'a>, published: &'a Published, column: usize) -> Option<Figure<'a>> {
    let entry = move |row: usize| &published.entries[row][column];
    let rows: Vec<usize> =
        ranked(analysis).into_iter().filter(|row| entry(*row).then.is_some() || entry(*row).is_reference).collect();
    let both = rows.iter().filter(|row| entry(**row).then.is_some() && entry(**row).now.is_some()).count();
    if both < 2 {
        return None;
    }
    let header = &analysis.columns[column].header;
    let told: Vec<String> = rows
        .iter()
        .filter(|row| !entry(**row).is_reference)
        .map(|row| {
            let told = |ratio: Option<f64>| ratio.map_or_else(|| "not known".to_owned(), number::ratio);
            format!("{}: {} then, {} now", analysis.rows[*row].label, told(entry(*row).then), told(entry(*row).now))
        })
        .collect();
    Some(Figure {
        slug: slug(&[header, "then and now"]),
        chapter: Chapter::Published(column),
        title: format!("{}: ratio to the baseline, then and now", crate::text::title(header)),
        caption:
            "A diamond is the published ratio, a dot today's. Machines differ, ratios on one machine can be compared."
                .to_owned(),
        description: format!("{header}, ratio to the baseline: {}.", told.join("; ")),
        logarithmic: false,
        number: 0,
        draw: Box::new(move |look| draw(analysis, published, column, &rows, look)),
    })
}

fn draw(analysis: &Analysis<'_>, published: &Published, column: usize, rows: &[usize], look: Look) -> Drawing {
    let entry = |row: usize| &published.entries[row][column];
    let value = |row: usize| {
        let told = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), number::ratio);
        if entry(row).is_reference {
            "baseline".to_owned()
        } else {
            format!("{} → {}", told(entry(row).then), told(entry(row).now))
        }
    };
    let mut canvas = Canvas::default();
    let head = legend_height(&mut canvas, look.width);
    let layout = RowLayout::new(analysis, rows, look, &value);
    let ratios = rows.iter().flat_map(|row| [entry(*row).then, entry(*row).now]).flatten().chain([1.0]);
    let axis = Axis::logarithmic(ratios.clone(), layout.from, layout.to)
        .unwrap_or_else(|| Axis::linear(ratios, true, layout.from, layout.to));
    canvas.raw(&format!("<g transform=\"translate(0 {})\">", Px(head)));
    horizontal_axis(&mut canvas, &axis, 1.0, if look.is_narrow() { 4 } else { 7 }, layout.top, layout.bottom);
    let one = axis.at(1.0);
    canvas.line(one, layout.top, one, layout.bottom, "fs-axis fs-zero");
    layout.headings(&mut canvas);
    for placed in &layout.rows {
        layout.words(&mut canvas, placed);
        let (then, now) = (entry(placed.row).then, entry(placed.row).now);
        if let (Some(then), Some(now)) = (then, now) {
            canvas.line(axis.at(then), placed.y, axis.at(now), placed.y, "fs-ghost");
        }
        if let Some(then) = then {
            canvas.open("fs-1");
            canvas.mark(axis.at(then), placed.y, Shape::Diamond, 4.0);
            canvas.close();
        }
        if let Some(now) = now {
            canvas.open("fs-0");
            canvas.mark(axis.at(now), placed.y, Shape::Circle, 4.4);
            canvas.close();
        }
    }
    let center = f64::midpoint(layout.from, layout.to);
    let bottom =
        axis_words(&mut canvas, "ratio to the baseline, logarithmic", center, layout.bottom + 34.0, look.width);
    canvas.close();
    Drawing { width: look.width, height: head + bottom - 4.0, body: canvas.finish() }
}

/// A legend of two marks; gives its height.
pub(super) fn legend_height(canvas: &mut Canvas, width: f64) -> f64 {
    for (x, series, shape, words) in [(5.0, 1, Shape::Diamond, "published"), (95.0, 0, Shape::Circle, "today")] {
        canvas.open(&format!("fs-{series}"));
        canvas.mark(x, 8.0, shape, 4.0);
        canvas.close();
        canvas.text((x + 11.0).min(width), 12.0, Anchor::Start, "fs-t", words);
    }
    24.0
}
