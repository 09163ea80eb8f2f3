//! A history for a terminal: a line per run, with a dot where its figure lies and a rule where the level changed.

use crate::{
    analysis::runs::{History, Point},
    terminal::grid::{Grid, GridColumn, GridRow, Style, paragraph},
    text::{line, shorten},
    when,
};

const PLOT: usize = 18;
/// A kernel's name is cut to this.
const KERNEL: usize = 22;

/// A history as terminal text. Ends with a line feed.
pub fn terminal(history: &History, columns: usize, color: bool) -> String {
    let columns = columns.max(40);
    let mut output = String::new();
    let paragraph = |text: &str, style, output: &mut String| paragraph(text, "", style, (columns, color), output);
    paragraph(&format!("{} · {} · {}", history.study, history.label, history.header), Style::Bold, &mut output);
    for sentence in history.sentences() {
        paragraph(&sentence, Style::Plain, &mut output);
    }
    if !history.points.is_empty() {
        output.push('\n');
        output.push_str(&table(history).render(columns, color));
    }
    for point in &history.points {
        if let Some(note) = &point.note {
            paragraph(&format!("Run {}: {note}", point.run), Style::Plain, &mut output);
        }
    }
    for left in history.left_out() {
        paragraph(&format!("Left out, {left}."), Style::Plain, &mut output);
    }
    output
}

fn table(history: &History) -> Grid {
    let points = &history.points;
    let values = || points.iter().filter_map(Point::median);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let place = |value: f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        (share * (PLOT - 1) as f64).round() as usize
    };
    let changed = |index: usize| history.changes.iter().any(|change| change.index == index);
    let column = |head: &str, unit: &str, cell: &dyn Fn(usize) -> (String, Style)| GridColumn {
        head: head.to_owned(),
        unit: unit.to_owned(),
        cells: (0..points.len()).map(|index| vec![cell(index)]).collect(),
    };
    let figure = |index: usize| {
        let entry = &points[index].entry;
        let half = entry.arm(&history.scale).map_or_else(String::new, |half| format!(" ± {half}"));
        (format!("{}{half}", entry.mean().map_or_else(String::new, |mean| history.scale.number(mean))), Style::Plain)
    };
    let dot = |index: usize| {
        let at = points[index].median().map_or(0, place);
        let mark = if changed(index) { '◆' } else { '•' };
        let dots: String = (0..PLOT).map(|column| if column == at { mark } else { '·' }).collect();
        (dots, if changed(index) { Style::Warn } else { Style::Dim })
    };
    Grid {
        label_heads: vec!["run".to_owned(), "started".to_owned()],
        columns: vec![
            column("kernel", "", &|index| (shorten(&points[index].kernel, KERNEL), Style::Plain)),
            column("mean", history.scale.symbol, &figure),
            column("", "median", &dot),
        ],
        rows: points
            .iter()
            .enumerate()
            .map(|(index, point)| {
                let names = point.names.iter().map(|name| format!(" ({})", line(name))).collect::<String>();
                let minute = when::minute(point.started_unix_ns);
                let labels = vec![format!("{}{names}", point.run), minute.trim_end_matches(" UTC").to_owned()];
                GridRow { labels, starts_block: changed(index) }
            })
            .collect(),
    }
}
