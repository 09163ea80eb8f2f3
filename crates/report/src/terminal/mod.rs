//! Text for a terminal: the answer, the table, footnotes and warnings.
//!
//! Fits the width given: row names wrap, columns that do not fit go below. Control characters in user text were made
//! visible when the analysis was built, so nothing in a dataset can act on the terminal.

pub(crate) mod grid;

use crate::{
    Analysis, Options,
    analysis::{Entry, Length, Published, clock, machines_in_words},
    legend::{HARMED, NOTHING, legend, mark},
    number,
    text::{counted, joined, line, shorten, width},
    when,
};
use fstone_model::Dataset;
use grid::{Grid, GridColumn, GridRow, Parts, Style, paragraph};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns there are. Below 40 it is taken as 40.
    pub width: usize,
    pub color: bool,
    pub options: Options,
}

impl Default for TerminalOptions {
    fn default() -> Self {
        Self { width: 80, color: false, options: Options::default() }
    }
}

/// A run as terminal text. Ends with a line feed.
pub fn terminal(dataset: &Dataset, options: &TerminalOptions) -> String {
    let analysis = Analysis::of(dataset);
    let printer = Printer { analysis: &analysis, width: options.width.max(40), color: options.color };
    let mut output = String::new();
    printer.head(&mut output);
    let sentences = analysis.answer(options.options.answer);
    printer.paragraph(&sentences.join(" "), "", &mut output);
    let more = analysis.answer(Length::Long).len() - sentences.len();
    if more > 0 {
        let more = format!("({} with --answer long)", counted(more, "more sentence"));
        output.push_str(&format!("{}\n", Style::Dim.paint(&more, printer.color)));
    }
    printer.warnings(&mut output);
    output.push('\n');
    output.push_str(&printer.table().render(printer.width, printer.color));
    printer.paragraph(&legend(&analysis).join(" "), "", &mut output);
    printer.footnotes(&mut output);
    if let Some(published) = analysis.published.as_ref().filter(|_| options.options.published) {
        printer.published(published, &mut output);
    }
    output.push('\n');
    printer.paragraph(&analysis.rules_in_words(), "", &mut output);
    output
}

struct Printer<'a> {
    analysis: &'a Analysis<'a>,
    width: usize,
    color: bool,
}

impl Printer<'_> {
    fn head(&self, output: &mut String) {
        let run = &self.analysis.dataset.run;
        paragraph(&line(&run.plan.title), "", Style::Bold, (self.width, self.color), output);
        let quick = if run.plan.quick { ", quick" } else { "" };
        let facts = [
            format!("run {} of {}{quick}", run.id, line(&run.plan.study)),
            when::minute(run.started_unix_ns),
            line(&run.inventory.host),
            run.kernel(),
            clock::heading(run).unwrap_or_default(),
        ];
        paragraph(&joined(&facts, " · "), "", Style::Dim, (self.width, self.color), output);
        if let Some(machines) = machines_in_words(self.analysis.dataset) {
            self.paragraph(&machines, "Blocks: ", output);
        }
        if let Some(note) = &run.note {
            self.paragraph(&line(note.as_str()), "Note: ", output);
        }
        output.push('\n');
    }

    fn paragraph(&self, text: &str, mark: &str, output: &mut String) {
        if !text.is_empty() {
            paragraph(text, mark, Style::Plain, (self.width, self.color), output);
        }
    }

    fn table(&self) -> Grid {
        let analysis = self.analysis;
        let order: Vec<usize> = analysis.order().into_iter().filter(|row| analysis.is_shown(*row)).collect();
        let mut columns = Vec::new();
        if analysis.common_count().is_none() && analysis.completed() > 0 {
            let count = |row: &usize| vec![(analysis.rows[*row].completed.to_string(), Style::Plain)];
            columns.push(GridColumn {
                head: "n".into(),
                unit: String::new(),
                cells: order.iter().map(count).collect(),
            });
        }
        for index in 0..analysis.columns.len() {
            let view = &analysis.columns[index];
            columns.push(GridColumn {
                head: view.header.clone(),
                unit: [view.unit_line(), view.better.arrow()].join(" ").trim().to_owned(),
                cells: self.cells(&order, index),
            });
        }
        Grid {
            label_heads: analysis.label_heads().into_iter().map(str::to_owned).collect(),
            columns,
            rows: self.rows(&order),
        }
    }

    fn rows(&self, order: &[usize]) -> Vec<GridRow> {
        let mut above = None;
        order
            .iter()
            .map(|&index| {
                let row = &self.analysis.rows[index];
                let mut labels: Vec<String> = self.analysis.labels(index).into_iter().map(str::to_owned).collect();
                if row.harm.is_some() {
                    labels.last_mut().expect("a row has a label").push_str(&format!(" {HARMED}"));
                }
                // Where figures stand, the numbers of footnotes go with the name.
                if row.word.is_none() && !row.footnotes.is_empty() {
                    let last = labels.last_mut().expect("a row has a label");
                    last.push_str(&format!(" {}", numbers(&row.footnotes)));
                }
                let starts_block = above.is_some_and(|above| above != row.panel);
                above = Some(row.panel);
                GridRow { labels, starts_block }
            })
            .collect()
    }

    /// A column's cells, points under points and ± under ±.
    fn cells(&self, order: &[usize], column: usize) -> Vec<Parts> {
        let analysis = self.analysis;
        let view = &analysis.columns[column];
        let scale = &view.scale;
        let entry = |row: usize| &analysis.rows[row].entries[column];
        let half = |entry: &Entry| entry.arm(scale);
        let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
        let half_width = widest(&mut order.iter().filter_map(|row| half(entry(*row))).map(|text| width(&text)));
        let letters_width = widest(&mut order.iter().map(|row| width(&entry(*row).letters)));
        let mark_width = widest(&mut order.iter().map(|row| width(&mark(view, entry(*row)))));
        let ratio = |entry: &Entry| entry.ratio.map_or_else(String::new, number::ratio);
        let ratio_width = widest(&mut order.iter().map(|row| width(&ratio(entry(*row)))));
        // Where all figures are of one trial, the legend says so.
        let counts = analysis.common_count().is_none();
        let single = counts && order.iter().any(|row| entry(*row).values.len() == 1);
        let tail_width = (if half_width > 0 { half_width + 3 } else { 0 }).max(if single { width(SINGLE) } else { 0 });
        let first = column == 0;
        order
            .iter()
            .map(|&index| {
                let row = &analysis.rows[index];
                if let Some(word) = row.word {
                    // Said once per row; what follows is empty.
                    let said = if first { format!("{word} {}", numbers(&row.footnotes)) } else { NOTHING.to_owned() };
                    return vec![(said.trim_end().to_owned(), if first { Style::Warn } else { Style::Dim })];
                }
                let entry = entry(index);
                let Some(mean) = entry.mean() else { return vec![(NOTHING.to_owned(), Style::Dim)] };
                let tail = match half(entry) {
                    Some(half) => format!(" ± {half:>half_width$}"),
                    None if counts && entry.values.len() == 1 => SINGLE.to_owned(),
                    None => String::new(),
                };
                let mut parts = vec![(scale.number(mean), Style::Plain), (format!("{tail:>tail_width$}"), Style::Dim)];
                if mark_width > 0 {
                    parts.push((format!("{:mark_width$}", mark(view, entry)), Style::Warn));
                }
                if letters_width > 0 {
                    parts.push((format!(" {:letters_width$}", entry.letters), Style::Plain));
                }
                if ratio_width > 0 {
                    parts.push((format!(" {:>ratio_width$}", ratio(entry)), Style::Dim));
                }
                parts
            })
            .collect()
    }

    fn footnotes(&self, output: &mut String) {
        for note in self.analysis.shown_footnotes() {
            self.paragraph(&note.told(&self.analysis.rows), &format!("[{}] ", note.number), output);
        }
    }

    fn published(&self, published: &Published, output: &mut String) {
        output.push_str(&format!("\n{}\n", Style::Bold.paint("Published, and today", self.color)));
        self.paragraph(&line(&published.source), "", output);
        for &index in &published.columns {
            output.push('\n');
            output.push_str(&self.published_column(published, index).render(self.width, self.color));
        }
        if !published.missing.is_empty() {
            self.paragraph(&format!("Published, but not in this run: {}.", published.missing.join("; ")), "", output);
        }
    }

    fn published_column(&self, published: &Published, index: usize) -> Grid {
        let analysis = self.analysis;
        let view = &analysis.columns[index];
        let entry = |row: usize| &published.entries[row][index];
        let order: Vec<usize> = analysis.order().into_iter().filter(|row| entry(*row).is_something()).collect();
        let column = |head: String, text: &dyn Fn(usize) -> Option<String>| GridColumn {
            head,
            unit: published.unit(index, view).to_owned(),
            cells: order.iter().map(|row| vec![(text(*row).unwrap_or_default(), Style::Plain)]).collect(),
        };
        let then = |row: usize| {
            published.figure(row, index, &view.scale).or_else(|| Some(shorten(entry(row).note.as_deref()?, 24)))
        };
        let now = |row: usize| {
            let row = &analysis.rows[row];
            row.entries[index]
                .mean()
                .map(|mean| published.today(index, &view.scale, mean))
                .or_else(|| row.word.map(str::to_owned))
        };
        let mut columns = vec![
            column(format!("{}, published", view.header), &then),
            column("today".to_owned(), &now),
            column("ratio then".to_owned(), &|row| entry(row).then.map(number::ratio)),
            column("ratio now".to_owned(), &|row| entry(row).now.map(number::ratio)),
        ];
        for ratio in &mut columns[2..] {
            ratio.unit.clear();
        }
        Grid {
            label_heads: analysis.label_heads().into_iter().map(str::to_owned).collect(),
            columns,
            rows: self.rows(&order),
        }
    }

    fn warnings(&self, output: &mut String) {
        if self.analysis.warnings.is_empty() {
            return;
        }
        output.push_str(&format!("\n{}\n", Style::Bold.paint("Warnings", self.color)));
        for warning in &self.analysis.warnings {
            self.paragraph(&warning.told(&self.analysis.rows), "! ", output);
        }
    }
}

const SINGLE: &str = " (1 trial)";

/// "[1] [3]".
fn numbers(footnotes: &[usize]) -> String {
    footnotes.iter().map(|number| format!("[{number}]")).collect::<Vec<_>>().join(" ")
}
