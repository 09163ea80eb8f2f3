//! What the parts of a page share.

use crate::{Analysis, svg};

pub(crate) fn css() -> String {
    format!("{}{}", include_str!("../../templates/report.css"), svg::style())
}

/// What a row is called where there is one column for its name.
pub(super) fn name(analysis: &Analysis<'_>, row: usize) -> String {
    if analysis.structure.panels.len() == 1 {
        analysis.labels(row).join(" · ")
    } else {
        analysis.rows[row].label.clone()
    }
}
