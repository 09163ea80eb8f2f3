//! A history as JSON: unrounded, in base units.

use crate::analysis::runs::History;
use fstone_model::Better;
use fstone_stats::{Interval, series::ChangePoint};
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    /// Always "fstone-history".
    format: &'static str,
    /// Fields are added without changing it.
    version: u32,
    study: &'a str,
    row: &'a str,
    column: &'a str,
    better: Better,
    runs: Vec<RunPart<'a>>,
    /// `index` counts in `runs`: the first run after the change.
    changes: &'a [ChangePoint],
    /// (run, why).
    left_out: &'a [(u64, String)],
}

#[derive(Serialize)]
struct RunPart<'a> {
    run: u64,
    started_unix_ns: u64,
    kernel: &'a str,
    baselines: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    values: Vec<f64>,
    mean: Option<f64>,
    median: Option<f64>,
    interval: Option<Interval>,
}

/// A history as JSON, indented. Ends with a line feed.
pub fn json(history: &History) -> String {
    let document = Document {
        format: "fstone-history",
        version: 1,
        study: &history.study,
        row: &history.label,
        column: &history.header,
        better: history.better,
        runs: history
            .points
            .iter()
            .map(|point| RunPart {
                run: point.run,
                started_unix_ns: point.started_unix_ns,
                kernel: &point.kernel,
                baselines: &point.names,
                note: point.note.as_deref(),
                values: point.entry.values.iter().map(|value| value.value).collect(),
                mean: point.entry.mean(),
                median: point.median(),
                interval: point.entry.interval,
            })
            .collect(),
        changes: &history.changes,
        left_out: &history.left_out,
    };
    crate::json::pretty(&document)
}
