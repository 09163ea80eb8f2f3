//! Published and today over a numeric factor: two lines per sweep on one logarithmic axis, where equal factors are equal
//! distances, so that what was measured on different machines can be compared in its course.

use super::{
    axis::Axis,
    canvas::{Anchor, Canvas, Shape, through},
    figure::{Chapter, Drawing, Figure, Look, slug},
    frame::{LINE, TEXT, axis_title, axis_words, labels_width, vertical_axis},
    lines::{HEIGHT, TICKS, level_labels, positions, swept},
    measure::wrap,
    then_now::legend_height,
};
use crate::{
    Analysis,
    analysis::{Published, Sweep},
};

const MIN_POINTS: usize = 3;

pub(super) fn figures<'a>(analysis: &'a Analysis<'a>, published: &'a Published, column: usize) -> Vec<Figure<'a>> {
    let header = &analysis.columns[column].header;
    let figure = |sweep: &'a Sweep| {
        let rows: Vec<usize> =
            sweep.rows.iter().copied().filter(|row| published.entries[*row][column].value.is_some()).collect();
        // One line only: with a second subject, readers could not tell which is which.
        let subject = analysis.structure.subject.filter(|subject| *subject != sweep.axis);
        let of_one = |subject: usize| {
            let level = |row: &usize| &analysis.rows[*row].levels[subject];
            rows.windows(2).all(|pair| level(&pair[0]) == level(&pair[1]))
        };
        if rows.len() < MIN_POINTS || !subject.is_none_or(of_one) {
            return None;
        }
        let view = &analysis.columns[column];
        let told: Vec<String> = rows
            .iter()
            .filter_map(|row| {
                let then = published.entries[*row][column].value?;
                let now = analysis.rows[*row].entries[column]
                    .mean()
                    .map_or_else(|| "not known".to_owned(), |mean| view.scale.with_unit(mean));
                Some(format!("{}: {} then, {now} now", analysis.rows[*row].label, view.scale.with_unit(then)))
            })
            .collect();
        let over = &analysis.structure.varied[sweep.axis].name;
        let held = if sweep.title.is_empty() { String::new() } else { format!(" ({})", sweep.title) };
        Some(Figure {
            slug: slug(&[header, "over", over, "then and now"]),
            chapter: Chapter::Published(column),
            title: format!("{} over {over}{held}, then and now", crate::text::title(header)),
            caption: "Diamonds are the published figures, dots today's means. Compare the shapes: machines differ."
                .to_owned(),
            description: format!("{}.", told.join("; ")),
            logarithmic: false,
            number: 0,
            draw: Box::new(move |look| draw(analysis, published, column, sweep, &rows, look)),
        })
    };
    analysis.structure.sweeps.iter().filter_map(figure).collect()
}

fn draw(
    analysis: &Analysis<'_>,
    published: &Published,
    column: usize,
    sweep: &Sweep,
    rows: &[usize],
    look: Look,
) -> Drawing {
    let view = &analysis.columns[column];
    let then = |row: usize| published.entries[row][column].value;
    let now = |row: usize| analysis.rows[row].entries[column].mean();
    let mut canvas = Canvas::default();
    let mut top = legend_height(&mut canvas, look.width);
    for line in wrap(&axis_title(view, true), TEXT, look.width) {
        canvas.text(0.0, top + 10.0, Anchor::Start, "fs-m", &line);
        top += LINE;
    }
    top += 12.0;
    let values = || rows.iter().flat_map(|row| [then(*row), now(*row)]).flatten();
    let axis = Axis::logarithmic(values(), top + HEIGHT, top)
        .unwrap_or_else(|| Axis::linear(values(), true, top + HEIGHT, top));
    let left = labels_width(&axis, view.scale.divisor, TICKS) + 10.0;
    vertical_axis(&mut canvas, &axis, view.scale.divisor, TICKS, left, look.width);
    let (levels, numbers): (Vec<&str>, Vec<u64>) = swept(analysis, sweep).into_iter().unzip();
    let across = positions(&numbers, left + 14.0, look.width - 14.0);
    let mut placed: Vec<(f64, usize)> = rows
        .iter()
        .filter_map(|row| {
            let level = levels.iter().position(|level| *level == analysis.rows[*row].levels[sweep.axis])?;
            Some((*across.get(level)?, *row))
        })
        .collect();
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut line = |series: usize, shape: Shape, value: &dyn Fn(usize) -> Option<f64>| {
        let points: Vec<Option<(f64, f64)>> = placed.iter().map(|(x, row)| Some((*x, axis.at(value(*row)?)))).collect();
        canvas.open(&format!("fs-{series}"));
        canvas.path(&through(points.iter().copied()), "fs-line");
        for (x, y) in points.into_iter().flatten() {
            canvas.mark(x, y, shape, 4.2);
        }
        canvas.close();
    };
    line(1, Shape::Diamond, &then);
    line(0, Shape::Circle, &now);
    level_labels(&mut canvas, &levels, &across, top + HEIGHT, look.width);
    let center = f64::midpoint(left, look.width);
    let name = &analysis.structure.varied[sweep.axis].name;
    let bottom = axis_words(&mut canvas, name, center, top + HEIGHT + 38.0, look.width);
    Drawing { width: look.width, height: bottom - 4.0, body: canvas.finish() }
}
