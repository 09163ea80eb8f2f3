//! Small multiples: a panel per row of the table, all with the same axes.

use super::{
    canvas::{Anchor, Canvas, Px},
    figure::{Look, MANY_TRIALS},
    measure::{BOLD, wrap_to},
    rows::ranked,
};
use crate::Analysis;

const MAX_PANELS: usize = 24;
const MAX_PANELS_OF_MANY: usize = 10;
const TITLE: f64 = 12.0;
const LINE: f64 = 15.0;
const GAP: f64 = 16.0;
/// A panel is not narrower than this.
const LEAST: f64 = 200.0;

pub(super) struct Panels {
    pub(super) width: f64,
    /// For each, its title's lines and the corner of its plot.
    places: Vec<(Vec<String>, f64, f64)>,
    /// The height of all.
    pub(super) total: f64,
}

impl Panels {
    /// Lays out panels of a height; `left` is kept for the labels of the vertical axis in every column.
    pub(super) fn new(titles: &[String], look: Look, left: f64, top: f64, height: f64) -> Self {
        let columns = ((look.width / (LEAST + left)) as usize).clamp(1, titles.len().max(1));
        let cell = (look.width - GAP * (columns - 1) as f64) / columns as f64;
        let wrapped: Vec<Vec<String>> =
            titles.iter().map(|title| wrap_to(title, TITLE * BOLD, cell - left, 3)).collect();
        let mut places = Vec::with_capacity(wrapped.len());
        let mut y = top;
        for (line, row) in wrapped.chunks(columns).enumerate() {
            let title_lines = row.iter().map(Vec::len).max().unwrap_or(1);
            y += LINE * title_lines as f64 + 4.0;
            for (index, title) in row.iter().enumerate() {
                places.push((title.clone(), (cell + GAP) * index as f64 + left, y));
            }
            y += height + if line + 1 == wrapped.len().div_ceil(columns) { 22.0 } else { 34.0 };
        }
        Self { width: cell - left, places, total: y }
    }

    /// Draws each panel in a group whose origin is the corner of its plot.
    pub(super) fn draw(&self, canvas: &mut Canvas, mut panel: impl FnMut(&mut Canvas, usize)) {
        for (index, (title, x, y)) in self.places.iter().enumerate() {
            canvas.raw(&format!("<g transform=\"translate({} {})\">", Px(*x), Px(*y)));
            for (line, words) in title.iter().enumerate() {
                let up = (title.len() - 1 - line) as f64;
                canvas.text(0.0, -LINE * up - 8.0, Anchor::Start, "fs-t fs-b", words);
            }
            panel(canvas, index);
            canvas.close();
        }
    }
}

/// The first rows by rank among those that are `present`, and what is to be said of the others.
pub(super) fn shown(analysis: &Analysis<'_>, present: &dyn Fn(usize) -> bool) -> (Vec<usize>, String) {
    let mut rows: Vec<usize> = ranked(analysis).into_iter().filter(|row| present(*row)).collect();
    let all = rows.len();
    rows.truncate(if analysis.dataset.trials.len() > MANY_TRIALS { MAX_PANELS_OF_MANY } else { MAX_PANELS });
    let note = if all > rows.len() { format!(" The first {} of {all} rows.", rows.len()) } else { String::new() };
    (rows, note)
}
