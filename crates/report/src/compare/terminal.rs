//! A comparison for a terminal: the answer, a table per column, outcomes, and what was different.

use crate::{
    analysis::runs::{RunComparison, Verdict, caveat, change, interval_name},
    legend::NOTHING,
    terminal::grid::{Grid, GridColumn, GridRow, Style, paragraph},
    text::joined,
};

/// A comparison as terminal text. Ends with a line feed.
pub fn terminal(comparison: &RunComparison<'_>, columns: usize, color: bool) -> String {
    let columns = columns.max(40);
    let mut output = String::new();
    let screen = (columns, color);
    paragraph(&super::title(comparison), "", Style::Bold, screen, &mut output);
    for note in comparison.note_lines() {
        paragraph(&note, "", Style::Plain, screen, &mut output);
    }
    output.push('\n');
    for sentence in comparison.sentences() {
        paragraph(&sentence, "", Style::Plain, screen, &mut output);
    }
    for index in 0..comparison.columns.len() {
        let column = &comparison.columns[index];
        if column.figures.is_empty() {
            continue;
        }
        let title = joined(&[&*column.header, column.scale.symbol, column.better.words()], ", ");
        output.push('\n');
        output.push_str(&Style::Bold.paint(&title, color));
        output.push('\n');
        output.push_str(&table(comparison, index).render(columns, color));
    }
    section("Outcomes that changed", &comparison.outcome_lines(), screen, &mut output);
    section("Other differences", &comparison.change_lines(), screen, &mut output);
    section("Not compared", &comparison.unmatched_lines(), screen, &mut output);
    output.push('\n');
    paragraph(&caveat(comparison), "", Style::Plain, screen, &mut output);
    output
}

fn section(title: &str, lines: &[String], screen: (usize, bool), output: &mut String) {
    if lines.is_empty() {
        return;
    }
    output.push_str(&format!("\n{}\n", Style::Bold.paint(title, screen.1)));
    for line in lines {
        paragraph(line, "· ", Style::Plain, screen, output);
    }
}

fn table(comparison: &RunComparison<'_>, index: usize) -> Grid {
    let column = &comparison.columns[index];
    let grid_column = |head: &str, cells: Vec<(String, Style)>| GridColumn {
        head: head.to_owned(),
        unit: String::new(),
        cells: cells.into_iter().map(|cell| vec![cell]).collect(),
    };
    let number = |value: Option<f64>| match value {
        Some(value) => (column.scale.number(value), Style::Plain),
        None => (NOTHING.to_owned(), Style::Dim),
    };
    let figures = &column.figures;
    let changes = figures.iter().map(|figure| figure.pair.map(|pair| change(column, &pair)));
    let (estimates, intervals): (Vec<_>, Vec<_>) = changes
        .map(|told| match told {
            Some((estimate, interval)) => ((estimate, Style::Plain), (interval, Style::Dim)),
            None => ((NOTHING.to_owned(), Style::Dim), (String::new(), Style::Dim)),
        })
        .unzip();
    let verdict = |verdict: Verdict| match verdict {
        Verdict::Regression | Verdict::Unclear => Style::Warn,
        Verdict::Improvement | Verdict::Difference => Style::Bold,
        Verdict::Slight | Verdict::MayBeChance => Style::Plain,
        Verdict::NotFound | Verdict::TooFew | Verdict::NoFigure => Style::Dim,
    };
    Grid {
        label_heads: vec!["row".to_owned()],
        columns: vec![
            grid_column("before", figures.iter().map(|figure| number(figure.before())).collect()),
            grid_column("after", figures.iter().map(|figure| number(figure.after())).collect()),
            grid_column("change", estimates),
            grid_column(interval_name(figures).trim_end_matches(" interval"), intervals),
            grid_column(
                "verdict",
                figures.iter().map(|figure| (figure.verdict.word().to_owned(), verdict(figure.verdict))).collect(),
            ),
        ],
        rows: figures
            .iter()
            .map(|figure| GridRow { labels: vec![figure.label.clone()], starts_block: false })
            .collect(),
    }
}
