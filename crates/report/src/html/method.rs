//! How the figures were made, in a few lines, and what weakens them.

use crate::{
    Analysis,
    analysis::MAX_COMPARED_ROWS,
    legend::overlap,
    number::grouped,
    text::{counted, line, listing},
};
use fstone_model::{
    Better, Cell,
    study::{DeviceSpec, Order},
};
use fstone_stats::{
    ALPHA_TEXT, CONFIDENCE_TEXT,
    compare::Basis,
    outliers::{THRESHOLD, small_sample_threshold},
};

pub(super) fn method(analysis: &Analysis<'_>) -> Vec<String> {
    let plan = &analysis.dataset.run.plan;
    let repeats = match (plan.repeats.min, plan.repeats.max, plan.repeats.until) {
        (min, max, Some(until)) if min < max => format!(
            "Each of the {} is tried {min} to {max} times: until the half-width of its {CONFIDENCE_TEXT} interval is below {} % of \
             the value. Looking at the figures after every trial costs confidence, and the intervals are wider to make up for it.",
            counted(plan.cells.len(), "row"),
            grouped(until * 100.0, usize::from(until < 0.1)),
        ),
        (_, max, _) => format!(
            "Each of the {} is tried {}.",
            counted(plan.cells.len(), "row"),
            if max == 1 { "once".to_owned() } else { format!("{max} times") }
        ),
    };
    let order = match plan.order {
        Order::Blocks => format!(
            "Trials run in complete blocks, each row once in a block and in a shuffled order (seed {}), so that slow changes of the machine do not favour any row.{} {}",
            plan.seed,
            warm_up(plan.warm_up),
            made(analysis)
        ),
        Order::AsWritten => {
            "Trials ran in the order written, not shuffled: a slow change of the machine would favour some rows."
                .to_owned()
        }
    };
    let mut lines = vec![
        repeats,
        order,
        format!(
            "Figures are means of completed trials: geometric for positive quantities, which are compared by ratios, arithmetic for shares and for anything that can be zero. Rows and blocks are fitted by least squares, so effects that a block has on all rows cancel out of every comparison. ± is the {CONFIDENCE_TEXT} interval of a row over the blocks of this run{}.",
            overlap(analysis).map(|words| format!("; {words}")).unwrap_or_default(),
        ),
        compared(analysis),
        format!(
            "No trial is left out. Trials far from the others in their row are marked: beyond a modified z-score of {THRESHOLD}, \
             or up to {} in rows of fewer than ten trials.",
            small_sample_threshold(),
        ),
    ];
    lines.extend(drift(analysis));
    lines
}

fn compared(analysis: &Analysis<'_>) -> String {
    let within = if analysis.structure.panels.len() > 1 { "column and block of rows" } else { "column" };
    let mut text = format!(
        "All pairs of rows within a {within} are compared at once by Tukey’s studentised range, each row’s scatter moderated by that \
         of all, so that in at most {ALPHA_TEXT} of tables any pair is called different by mistake; differences have intervals that \
         hold together with {CONFIDENCE_TEXT}. More than {MAX_COMPARED_ROWS} rows are not compared.",
    );
    let ranks = analysis.compared_by(Basis::Ranks);
    if !ranks.is_empty() {
        text.push_str(&format!(
            " In {} the figures are too far from normal for that: exact rank tests within blocks (Mann–Whitney, signed ranks) with Hodges–Lehmann shifts were used instead.",
            line(&listing(&ranks)),
        ));
    }
    let exact = analysis.compared_by(Basis::Exact);
    if !exact.is_empty() {
        text.push_str(&format!(
            " In {} nothing varies within a row, so figures are compared as they are.",
            line(&listing(&exact))
        ));
    }
    text
}

fn warm_up(blocks: u32) -> String {
    if blocks == 0 {
        return String::new();
    }
    format!(" {} ran first and was not recorded.", counted(blocks as usize, "warm-up block"))
}

fn made(analysis: &Analysis<'_>) -> &'static str {
    let given = |cell: &Cell| matches!(cell.device, DeviceSpec::Directory { .. });
    if analysis.dataset.run.plan.cells.iter().any(given) {
        "No filesystem was made: the loads ran in a directory of an existing one, in whatever state it was."
    } else {
        "Every trial has a fresh filesystem."
    }
}

fn drift(analysis: &Analysis<'_>) -> Option<String> {
    let directed = analysis.columns.iter().filter(|column| column.better != Better::Neither).count();
    if directed == 0 || analysis.completed() < 8 {
        return None;
    }
    let names: Vec<&str> = analysis.drifts.iter().map(|drift| analysis.columns[drift.column].header.as_str()).collect();
    Some(if names.is_empty() {
        "Drift over the run was tested (Mann–Kendall) and not found.".to_owned()
    } else {
        format!("Drift over the run was tested (Mann–Kendall) and found in {}.", line(&listing(&names)))
    })
}

pub(super) fn warnings(analysis: &Analysis<'_>) -> Vec<String> {
    analysis.warnings.iter().map(|warning| warning.told(&analysis.rows)).collect()
}
