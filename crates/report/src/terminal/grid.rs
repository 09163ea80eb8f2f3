//! A table of text that fits a width: labels wrap, figures never do, and columns that do not fit side by side go below.

use crate::text::{width, wrap};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    Warn,
}

impl Style {
    /// The text in this style; untouched without colour.
    pub(crate) fn paint(self, text: &str, color: bool) -> String {
        let code = match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Warn => "33",
            Self::Plain => return text.to_owned(),
        };
        if color && !text.trim().is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Wrapped text; `mark` precedes the first line; the others are indented by its width.
pub(crate) fn paragraph(text: &str, mark: &str, style: Style, (columns, color): (usize, bool), output: &mut String) {
    let indent = width(mark);
    for (number, line) in wrap(text, columns - indent).into_iter().enumerate() {
        let lead = if number == 0 { mark.to_owned() } else { " ".repeat(indent) };
        output.push_str(&format!("{lead}{}\n", style.paint(&line, color)));
    }
}

/// Pieces of one cell, each with its style; together as wide as the column or less.
pub(crate) type Parts = Vec<(String, Style)>;

pub(crate) struct Grid {
    pub(crate) label_heads: Vec<String>,
    pub(crate) columns: Vec<GridColumn>,
    pub(crate) rows: Vec<GridRow>,
}

pub(crate) struct GridColumn {
    /// The heading, to be wrapped.
    pub(crate) head: String,
    /// Unit and direction, on a line of their own under the head.
    pub(crate) unit: String,
    /// One per row.
    pub(crate) cells: Vec<Parts>,
}

pub(crate) struct GridRow {
    /// One per label head.
    pub(crate) labels: Vec<String>,
    /// Whether a rule separates it from the row above.
    pub(crate) starts_block: bool,
}

const GAP: usize = 2;
/// A head is wrapped to this before it makes a column wider.
const HEAD_WIDTH: usize = 12;
/// A label column is not squeezed below this while figures can go below instead.
const LABEL_MIN: usize = 16;
const INDENT: usize = 2;

impl GridColumn {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(parts_width).max().unwrap_or(0);
        let words = self.head.split(' ').map(width).max().unwrap_or(0);
        cells.max(width(&self.unit)).max(width(&self.head).min(HEAD_WIDTH)).max(words.min(2 * HEAD_WIDTH))
    }
}

fn parts_width(parts: &Parts) -> usize {
    parts.iter().map(|(text, _)| width(text)).sum()
}

impl Grid {
    /// The table's lines, none wider than `limit` unless a single figure is.
    pub(crate) fn render(&self, limit: usize, color: bool) -> String {
        let natural: Vec<usize> = (0..self.label_heads.len())
            .map(|index| {
                let labels = self.rows.iter().map(|row| width(&row.labels[index])).max().unwrap_or(0);
                labels.max(width(&self.label_heads[index]))
            })
            .collect();
        let widths: Vec<usize> = self.columns.iter().map(GridColumn::width).collect();
        let mut output = String::new();
        for (number, chunk) in chunks(&natural, &widths, limit).into_iter().enumerate() {
            if number > 0 {
                output.push('\n');
            }
            let figures: usize = chunk.iter().map(|index| widths[*index] + GAP).sum();
            let labels = squeeze(&natural, limit.saturating_sub(figures));
            self.render_chunk(&labels, &chunk, &widths, color, &mut output);
        }
        output
    }

    fn render_chunk(&self, labels: &[usize], chunk: &[usize], widths: &[usize], color: bool, output: &mut String) {
        let total = labels.iter().sum::<usize>()
            + GAP * (labels.len() - 1)
            + chunk.iter().map(|index| widths[*index] + GAP).sum::<usize>();
        let rule = Style::Dim.paint(&"─".repeat(total), color);
        self.render_head(labels, chunk, widths, color, output);
        for (number, row) in self.rows.iter().enumerate() {
            if number == 0 || row.starts_block {
                output.push_str(&rule);
                output.push('\n');
            }
            // A label that repeats the one above says nothing, unless a rule is in between.
            let above = (number > 0 && !row.starts_block).then(|| &self.rows[number - 1].labels);
            let repeated = |index: usize| {
                index + 1 < labels.len() && above.is_some_and(|above| above[..=index] == row.labels[..=index])
            };
            let wrapped: Vec<Vec<String>> = row
                .labels
                .iter()
                .enumerate()
                .map(|(index, label)| if repeated(index) { Vec::new() } else { hanging(label, labels[index]) })
                .collect();
            let lines = wrapped.iter().map(Vec::len).max().unwrap_or(1).max(1);
            for line in 0..lines {
                let mut text = String::new();
                for (index, lines) in wrapped.iter().enumerate() {
                    if index > 0 {
                        text.push_str(&" ".repeat(GAP));
                    }
                    text.push_str(&pad_right(lines.get(line).map_or("", String::as_str), labels[index]));
                }
                if line == 0 {
                    for &index in chunk {
                        let parts = &self.columns[index].cells[number];
                        text.push_str(&" ".repeat(GAP + widths[index] - parts_width(parts)));
                        for (part, style) in parts {
                            text.push_str(&style.paint(part, color));
                        }
                    }
                }
                output.push_str(text.trim_end());
                output.push('\n');
            }
        }
        output.push_str(&rule);
        output.push('\n');
    }

    fn render_head(&self, labels: &[usize], chunk: &[usize], widths: &[usize], color: bool, output: &mut String) {
        let mut heads: Vec<Vec<String>> =
            self.label_heads.iter().zip(labels).map(|(head, width)| wrap(head, *width)).collect();
        heads.extend(chunk.iter().map(|&index| {
            let column = &self.columns[index];
            let mut lines = wrap(&column.head, widths[index]);
            lines.push(column.unit.clone());
            lines
        }));
        // Without any unit there is no line for units.
        if chunk.iter().all(|index| self.columns[*index].unit.is_empty()) {
            for head in heads.iter_mut().skip(labels.len()) {
                head.pop();
            }
        }
        let height = heads.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            let mut text = String::new();
            for (index, head) in heads.iter().enumerate() {
                let at = (line + head.len()).checked_sub(height);
                let words = at.and_then(|at| head.get(at)).map_or("", String::as_str);
                if index < labels.len() {
                    if index > 0 {
                        text.push_str(&" ".repeat(GAP));
                    }
                    text.push_str(&Style::Bold.paint(&pad_right(words, labels[index]), color));
                } else {
                    let column = widths[chunk[index - labels.len()]];
                    text.push_str(&" ".repeat(GAP + column - width(words)));
                    let is_unit = at.is_some_and(|at| at + 1 == head.len() && !words.is_empty() && head.len() > 1);
                    let style = if is_unit { Style::Dim } else { Style::Bold };
                    text.push_str(&style.paint(words, color));
                }
            }
            output.push_str(text.trim_end());
            output.push('\n');
        }
    }
}

/// Which columns stand side by side: all when the labels' least width leaves room, else as many as fit, then the next.
fn chunks(natural: &[usize], widths: &[usize], limit: usize) -> Vec<Vec<usize>> {
    let least: usize =
        natural.iter().map(|width| (*width).min(LABEL_MIN)).sum::<usize>() + GAP * natural.len().saturating_sub(1);
    let mut chunks: Vec<Vec<usize>> = vec![Vec::new()];
    let mut used = least;
    for (index, width) in widths.iter().enumerate() {
        let current = chunks.last_mut().expect("never empty");
        if used + GAP + width > limit && !current.is_empty() {
            chunks.push(vec![index]);
            used = least + GAP + width;
        } else {
            current.push(index);
            used += GAP + width;
        }
    }
    chunks
}

/// Label widths that fit into `room` together: the widest gives way first.
fn squeeze(natural: &[usize], room: usize) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let gaps = GAP * natural.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > room {
        let widest = widths.iter_mut().max().expect("there is a label column");
        if *widest <= 6 {
            break;
        }
        *widest -= 1;
    }
    widths
}

fn hanging(label: &str, limit: usize) -> Vec<String> {
    if width(label) <= limit {
        return vec![label.to_owned()];
    }
    let lines = wrap(label, limit.saturating_sub(INDENT).max(1));
    lines
        .into_iter()
        .enumerate()
        .map(|(n, line)| if n == 0 { line } else { format!("{}{line}", " ".repeat(INDENT)) })
        .collect()
}

fn pad_right(text: &str, to: usize) -> String {
    format!("{text}{}", " ".repeat(to.saturating_sub(width(text))))
}
