//! Facts and tables about one file, as text and as a page.

use crate::html::css;
use crate::text::{width, wrap};
use askama::Template;
use std::fmt::Write as _;

#[derive(Template)]
#[template(path = "sheet.html")]
pub struct Sheet {
    css: String,
    pub title: String,
    pub facts: Vec<(&'static str, String)>,
    pub grids: Vec<Grid>,
}

pub struct Grid {
    pub name: &'static str,
    /// Heads and widths in characters; a negative width aligns to the left, for a last column any.
    pub columns: Vec<(&'static str, i32)>,
    pub rows: Vec<Vec<String>>,
    pub more: Option<String>,
}

/// A fact about a file or a run on lines of their own.
pub fn fact(key: &str, value: &str, columns: usize) -> String {
    const INDENT: usize = 17;
    // Wrapping joins words by single spaces.
    let fits = width(value) <= columns - INDENT;
    let lines = if fits { vec![value.to_owned()] } else { wrap(value, columns - INDENT) };
    let lead = |number: usize| if number == 0 { key } else { "" };
    lines.iter().enumerate().map(|(number, line)| format!("  {:<14} {line}\n", lead(number))).collect()
}

impl Grid {
    fn is_number(&self, column: &usize) -> bool {
        self.columns[*column].1 >= 0
    }
}

impl Sheet {
    pub fn new(title: String) -> Self {
        Self { css: css(), title, facts: Vec::new(), grids: Vec::new() }
    }

    pub fn html(&self) -> String {
        self.render().expect("writing to a string does not fail")
    }

    pub fn text(&self, columns: usize) -> String {
        let mut text: String = self.facts.iter().map(|(key, value)| fact(key, value, columns)).collect();
        for grid in &self.grids {
            text.push('\n');
            let heads = grid.columns.iter().map(|(head, _)| (*head).to_owned()).collect();
            for row in std::iter::once(&heads).chain(&grid.rows) {
                let mut line = " ".to_owned();
                for (cell, (_, width)) in row.iter().zip(&grid.columns) {
                    let wide = width.unsigned_abs() as usize;
                    let _ = if *width < 0 { write!(line, " {cell:<wide$}") } else { write!(line, " {cell:>wide$}") };
                }
                let _ = writeln!(text, "{}", line.trim_end());
            }
            if let Some(more) = &grid.more {
                let _ = writeln!(text, "  {more}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::fact;

    #[test]
    fn a_fact_that_fits_is_printed_as_it_is() {
        assert_eq!(fact("over time", "│█  ▁   █│", 40), "  over time      │█  ▁   █│\n");
        assert_eq!(fact("a", "one two  three four", 30), "  a              one two three\n                 four\n");
    }
}
