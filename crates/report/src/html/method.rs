//! How the figures were made, in a few lines, and what weakens them.

use crate::{
    Analysis,
    analysis::{MAX_COMPARED_ROWS, touched},
    number::grouped,
    text::{counted, line, listing},
};
use fstone_model::{
    Better, Cell,
    study::{DeviceSpec, Order},
};

pub(super) fn method(analysis: &Analysis<'_>) -> Vec<String> {
    let plan = &analysis.dataset.run.plan;
    let repeats = match (plan.repeats.min, plan.repeats.max, plan.repeats.until) {
        (min, max, Some(until)) if min < max => format!(
            "Each of the {} is tried {min} to {max} times: until the half-width of its 95 % interval is below {} % of \
             the value. Looking after every trial costs confidence, which wider intervals pay back.",
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
            "Trials run in complete blocks, each row once in a block and in a shuffled order (seed {}), so that slow \
             changes of the machine favour no row. {}",
            plan.seed,
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
        "Figures are means of completed trials. The interval is the 95 % confidence interval of the mean: on each side \
         the farther of Student’s and a bias-corrected bootstrap (BCa, 2,000 resamples, seeded) stretched for small samples."
            .to_owned(),
        format!(
            "Rows are compared in pairs by rank tests (Mann–Whitney, or signed ranks over the blocks), corrected by Holm’s \
             method within a column{}, so that in at most 5 % of tables any pair is called different by mistake. \
             Differences are Hodges–Lehmann shifts with 95 % intervals. More than {MAX_COMPARED_ROWS} rows are not compared.",
            if analysis.structure.panels.len() > 1 { " and block of rows" } else { "" },
        ),
        "No trial is left out. Trials far from the others of their row (modified z-score above 3.5) are marked.".to_owned(),
    ];
    lines.extend(drift(analysis));
    lines
}

/// What a trial starts from.
fn made(analysis: &Analysis<'_>) -> &'static str {
    let given = |cell: &Cell| matches!(cell.device, DeviceSpec::Directory { .. });
    if analysis.dataset.run.plan.cells.iter().any(given) {
        "No filesystem was made: the loads worked in a directory of one that was there already, in whatever state it was."
    } else {
        "Every trial has a filesystem of its own, made anew."
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
    analysis
        .warnings
        .iter()
        .map(|warning| {
            let times =
                if warning.trials > 1 { format!(", {}", counted(warning.trials, "trial")) } else { String::new() };
            format!("{}{}{times}", warning.text, touched(&warning.rows, &analysis.rows))
        })
        .collect()
}
