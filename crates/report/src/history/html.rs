//! A history as one self-contained page without scripts.

use crate::{
    analysis::in_words,
    analysis::runs::History,
    html::css,
    svg::{NARROW, WIDE, timeline},
    when,
};
use askama::Template;

#[derive(Template)]
#[template(path = "history.html")]
struct Page {
    css: String,
    title: String,
    kicker: String,
    sentences: Vec<String>,
    plot: Option<String>,
    rows: Vec<Row>,
    left_out: Vec<String>,
    back: Option<String>,
}

struct Row {
    run: u64,
    names: String,
    started: String,
    kernel: String,
    note: Option<String>,
    figure: String,
    changed: bool,
}

/// A history as an HTML page; `back` is the address of the page it was reached from, for a link.
pub fn html(history: &History, back: Option<&str>) -> String {
    let plot = timeline(history, WIDE, "fs-wide").zip(timeline(history, NARROW, "fs-narrow"));
    Page {
        css: css(),
        title: format!("{}: {}", history.label, history.header),
        kicker: format!("Study {} · history", history.study),
        sentences: history.sentences(),
        plot: plot.map(|(wide, narrow)| format!("{wide}{narrow}")),
        rows: history
            .points
            .iter()
            .enumerate()
            .map(|(index, point)| Row {
                run: point.run,
                names: point.names.join(", "),
                started: when::minute(point.started_unix_ns),
                kernel: point.kernel.clone(),
                note: point.note.clone(),
                figure: in_words(&history.scale, &point.entry),
                changed: history.changes.iter().any(|change| change.index == index),
            })
            .collect(),
        left_out: history.left_out(),
        back: back.map(str::to_owned),
    }
    .render()
    .expect("writing to a string does not fail")
}
