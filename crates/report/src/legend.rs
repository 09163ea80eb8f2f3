//! What the marks in a table mean: the same words under every table.

use crate::{Analysis, text::counted};

/// The lines under the main table, in order; plain text.
pub(crate) fn legend(analysis: &Analysis<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let any = analysis.entries().any(|entry| !entry.values.is_empty());
    if !any {
        return lines;
    }
    let intervals = analysis.entries().any(|entry| entry.interval.is_some());
    let count = match analysis.common_count() {
        Some(count) => format!("Mean of {}", counted(count, "trial")),
        None => "Mean of n trials".to_owned(),
    };
    lines.push(match (analysis.common_count(), intervals) {
        (Some(1), _) => "Single trials: nothing is known of how much they vary.".to_owned(),
        (_, true) => format!("{count} ± the longer arm of its 95 % interval."),
        (_, false) => format!("{count}."),
    });
    let directions: Vec<&str> = [("↑", "↑ higher is better"), ("↓", "↓ lower is better")]
        .into_iter()
        .filter(|(arrow, _)| analysis.columns.iter().any(|column| column.arrow() == *arrow))
        .map(|(_, words)| words)
        .collect();
    if !directions.is_empty() {
        lines.push(format!("{}.", directions.join(", ")));
    }
    if analysis.has_unreliable() {
        lines.push(format!("{UNRELIABLE} fewer than 5 trials: the interval itself is rough."));
    }
    if analysis.has_letters() {
        let within =
            if analysis.structure.panels.len() > 1 { "Within a column and block of rows" } else { "Within a column" };
        lines.push(format!(
            "{within}, rows that share a letter cannot be told apart (rank tests, Holm-corrected to 5 % over all pairs)."
        ));
    }
    if let Some(baseline) = analysis.baseline_name() {
        lines.push(format!("× is the ratio of means to the baseline, {baseline}."));
    }
    lines
}

/// Stands behind an interval from too few trials.
pub(crate) const UNRELIABLE: &str = "†";

/// What `×` stands behind when a row has no figures in a column.
pub(crate) const NOTHING: &str = "–";
