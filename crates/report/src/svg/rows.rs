//! Rows with a name, a strip to draw on and a figure beside it: the skeleton of dot plots.

use super::{
    canvas::{Anchor, Canvas},
    figure::Look,
    measure::{BOLD, text_width, wrap_to},
};
use crate::Analysis;

const TEXT: f64 = 12.0;
const LINE: f64 = 15.0;
/// A strip has room for an interval and three layers of points below it.
const STRIP: f64 = 33.0;
const HEADING: f64 = 24.0;
/// A name longer than this many lines is shortened; the table has all of it.
const NAME_LINES: usize = 3;

pub(super) struct Placed {
    pub(super) row: usize,
    pub(super) y: f64,
    names: Vec<String>,
    name_y: f64,
    value: String,
    value_y: f64,
}

pub(super) struct RowLayout {
    pub(super) rows: Vec<Placed>,
    headings: Vec<(f64, Vec<String>)>,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    width: f64,
}

impl RowLayout {
    /// Places rows, which come panel by panel. `value` is the text to the right of a row.
    pub(super) fn new(analysis: &Analysis<'_>, rows: &[usize], look: Look, value: &dyn Fn(usize) -> String) -> Self {
        let name = |row: usize| {
            let row = &analysis.rows[row];
            analysis.structure.subject.map_or(row.label.clone(), |subject| row.levels[subject].clone())
        };
        let widest =
            |texts: &mut dyn Iterator<Item = String>| texts.map(|text| text_width(&text, TEXT)).fold(0.0, f64::max);
        let values = widest(&mut rows.iter().map(|row| value(*row)));
        let names = widest(&mut rows.iter().map(|row| name(*row)));
        let narrow = look.is_narrow();
        let name_width = if narrow { look.width } else { names.min(look.width * 0.34) + 1.0 };
        let (from, to) = if narrow { (8.0, look.width - 8.0) } else { (name_width + 16.0, look.width - values - 14.0) };
        let several = analysis.structure.panels.len() > 1;
        let mut layout = Self {
            rows: Vec::with_capacity(rows.len()),
            headings: Vec::new(),
            from,
            to,
            top: 2.0,
            bottom: 0.0,
            width: look.width,
        };
        let mut y = layout.top;
        let mut panel = None;
        for &row in rows {
            let of = analysis.rows[row].panel;
            if several && panel != Some(of) {
                let heading = wrap_to(&analysis.structure.panels[of].title, TEXT * BOLD, look.width, 2);
                layout.headings.push((y + 15.0, heading.clone()));
                y += HEADING + LINE * (heading.len() - 1) as f64;
                panel = Some(of);
            }
            let value = value(row);
            if narrow {
                // The name and, if it fits behind its last line, the figure; then the strip.
                let names = wrap_to(&name(row), TEXT, look.width, NAME_LINES);
                let last = names.last().map_or(0.0, |name| text_width(name, TEXT));
                let fits = last + text_width(&value, TEXT) + 12.0 <= look.width;
                let lines = names.len() + usize::from(!fits);
                let height = LINE * lines as f64;
                layout.rows.push(Placed {
                    row,
                    y: y + height + STRIP / 2.0,
                    names,
                    name_y: y + 12.0,
                    value,
                    value_y: y + height - 3.0,
                });
                y += height + STRIP + 6.0;
            } else {
                let names = wrap_to(&name(row), TEXT, name_width, NAME_LINES);
                let height = STRIP.max(LINE * names.len() as f64 + 6.0);
                let middle = y + height / 2.0;
                let name_y = middle + 4.0 - LINE * (names.len() - 1) as f64 / 2.0;
                layout.rows.push(Placed { row, y: middle, names, name_y, value, value_y: middle + 4.0 });
                y += height;
            }
        }
        layout.bottom = y + 2.0;
        layout
    }

    /// Writes a row's name and figure; to be called within the row's group, or outside any.
    pub(super) fn words(&self, canvas: &mut Canvas, placed: &Placed) {
        for (index, name) in placed.names.iter().enumerate() {
            canvas.text(0.0, placed.name_y + LINE * index as f64, Anchor::Start, "fs-t", name);
        }
        canvas.text(self.width, placed.value_y, Anchor::End, "fs-m", &placed.value);
    }

    pub(super) fn headings(&self, canvas: &mut Canvas) {
        for (y, lines) in &self.headings {
            for (index, line) in lines.iter().enumerate() {
                canvas.text(0.0, y + LINE * index as f64, Anchor::Start, "fs-t fs-b", line);
            }
        }
    }
}

/// Rows as figures show them: panel by panel, best first in the primary column, those without a figure last.
pub(super) fn ranked(analysis: &Analysis<'_>) -> Vec<usize> {
    let primary = analysis.primary();
    let mut ranked = Vec::with_capacity(analysis.rows.len());
    for panel in &analysis.structure.panels {
        let mut rows: Vec<usize> = panel.rows.iter().copied().filter(|row| analysis.is_shown(*row)).collect();
        if let Some(primary) = primary {
            let lower = analysis.columns[primary].better == fstone_model::Better::Lower;
            let key = |row: &usize| {
                let mean = analysis.rows[*row].entries[primary].mean();
                mean.map_or(f64::INFINITY, |mean| if lower { mean } else { -mean })
            };
            rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
        }
        ranked.extend(rows);
    }
    ranked
}
