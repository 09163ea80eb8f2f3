//! What the marks in a table mean: the same words under every table.

use crate::{
    Analysis,
    analysis::{ColumnView, Entry, MAX_COMPARED_ROWS, NOT_COMPARED, clock, number::grouped},
    text::{counted, line, listing},
};
use fstone_model::{Cell, Trial, study::DeviceSpec};
use fstone_stats::{ALPHA_TEXT, CONFIDENCE_TEXT, compare::Basis};

/// The lines under the main table, in order; plain text.
pub(crate) fn legend(analysis: &Analysis<'_>) -> Vec<String> {
    let mut lines: Vec<String> = what(analysis).into_iter().collect();
    if !lines.is_empty() {
        lines.extend(directions(analysis));
    }
    lines.extend(marks(analysis));
    lines.extend(ratios(analysis));
    lines.extend(memory(analysis));
    lines.extend(executors(analysis));
    lines.extend(analysis.lacking.iter().map(|lacking| lacking.sentence.clone()));
    lines
}

/// A filesystem in memory is no slower than memory, whatever it does.
pub(crate) fn memory(analysis: &Analysis<'_>) -> Option<String> {
    let cells = &analysis.dataset.run.plan.cells;
    let in_memory =
        |cell: &&Cell| matches!(cell.device, DeviceSpec::Loop { in_memory: true, .. } | DeviceSpec::Zram { .. });
    let device = &cells.iter().find(in_memory)?.device;
    Some(format!(
        "Filesystems are in memory ({}): figures compare with each other, not with a disk's.",
        device.describe()
    ))
}

/// When intervals may be read as a test: rows of different panels are not compared, and neither are too many.
pub(crate) fn overlap(analysis: &Analysis<'_>) -> Option<&'static str> {
    let apart = || {
        analysis.comparisons.iter().flat_map(|column| &column.panels).flatten().any(|panel| !panel.apart().is_empty())
    };
    if analysis.structure.panels.iter().any(|panel| panel.rows.len() > MAX_COMPARED_ROWS) || apart() {
        return None;
    }
    let several = analysis.structure.panels.len() > 1;
    Some(if several {
        "where two of one block of rows do not overlap, the rows differ"
    } else {
        "where two do not overlap, the rows differ"
    })
}

/// What may not be compared with what: a system call costs forty times as much in one executor as in another.
pub(crate) fn executors(analysis: &Analysis<'_>) -> Option<String> {
    let plan = &analysis.dataset.run.plan;
    let executors = crate::analysis::executors(plan);
    let names: Vec<&str> = executors.iter().map(|executor| crate::analysis::of_executor(executor)).collect();
    match executors.as_slice() {
        [] | ["host"] => None,
        ["exact"] => clock::heading(&analysis.dataset.run).map(|clock| {
            format!(
                "Measured in {clock}.{} Rows are compared seed by seed, and never with figures of another clock.",
                if clock::has_one_seed(analysis.dataset) {
                    ""
                } else {
                    " Each repeat has another seed, so variation is luck in layout, not noise."
                }
            )
        }),
        [_] => {
            let mut kernels: Vec<String> = plan.cells.iter().map(|cell| cell.kernel.written()).collect();
            kernels.dedup();
            let of = if kernels.len() == 1 { format!(" ({})", line(&kernels[0])) } else { String::new() };
            Some(format!("Measured in {}{of}: figures compare with each other, not with another executor's.", names[0]))
        }
        _ => Some(format!(
            "Figures of {} are not compared with each other, because the same call has a different cost in each.",
            listing(&names)
        )),
    }
}

/// What the figures are; `None` when there are none.
pub(crate) fn what(analysis: &Analysis<'_>) -> Option<String> {
    if !analysis.entries().any(|entry| !entry.values.is_empty()) {
        return None;
    }
    let intervals = analysis.entries().any(|entry| entry.interval.is_some());
    let count = match analysis.common_count() {
        Some(count) if analysis.rows.iter().any(|row| row.trials.iter().any(is_perturbed)) => {
            format!("Mean of {} of one seed", counted(count, "guest"))
        }
        Some(count) if clock::is_virtual(analysis.dataset) => format!("Mean of {}", counted(count, "seed")),
        Some(count) => format!("Mean of {}", counted(count, "trial")),
        None => "Mean of n trials".to_owned(),
    };
    let after = match analysis.dataset.run.plan.warm_up {
        0 => String::new(),
        blocks => format!(
            " (after {} that {} not counted)",
            counted(blocks as usize, "warm-up block"),
            if blocks == 1 { "is" } else { "are" }
        ),
    };
    let hardly = analysis.rows.iter().flat_map(|row| &row.entries).any(Entry::is_hardly_known);
    let hardly = if hardly {
        format!(", {} if that is more than ten times the mean", fstone_analysis::HARDLY_KNOWN)
    } else {
        String::new()
    };
    Some(match (analysis.common_count(), intervals) {
        (Some(1), _) if clock::is_virtual(analysis.dataset) => {
            "One seed: exact for this seed; how far other seeds and perturbed guests move it is not known (--perturbed 2)."
                .to_owned()
        }
        (Some(1), _) => "Single trials: their variation is unknown.".to_owned(),
        (_, true) => format!(
            "{count}{after} ± the longer arm of its {CONFIDENCE_TEXT} interval{hardly}{}.",
            overlap(analysis).map(|words| format!("; {words}")).unwrap_or_default()
        ),
        (_, false) => format!("{count}{after}."),
    })
}

fn directions(analysis: &Analysis<'_>) -> Option<String> {
    let told: Vec<&str> = [("↑", "↑ higher is better"), ("↓", "↓ lower is better")]
        .into_iter()
        .filter(|(arrow, _)| analysis.columns.iter().any(|column| column.better.arrow() == *arrow))
        .map(|(_, words)| words)
        .collect();
    (!told.is_empty()).then(|| format!("{}.", told.join(", ")))
}

fn is_perturbed(trial: &&Trial) -> bool {
    trial.id.perturbation().is_some()
}

/// How far perturbed guests move the figures of each column: "Perturbed guests move files/s by up to 19 % (ext3), fsck not at all."
fn bands(analysis: &Analysis<'_>) -> Option<String> {
    let mut moved: Vec<(String, Vec<&str>)> = Vec::new();
    for (index, column) in analysis.columns.iter().enumerate() {
        let bands = analysis.rows.iter().filter_map(|row| Some((row.entries[index].band()?, row)));
        let Some((band, row)) = bands.max_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        let how = match band {
            0.0 => "not at all".to_owned(),
            f64::INFINITY => {
                let guests = row.entries[index].guests.iter().map(|(_, value)| value.abs());
                format!("from 0 to {} ({})", column.scale.with_unit(guests.fold(0.0, f64::max)), row.label)
            }
            // Rounded up: it is a bound.
            band if band < 0.001 => "by less than 0.1 %".to_owned(),
            band if band < 0.1 => format!("by up to {} % ({})", grouped((band * 1000.0).ceil() / 10.0, 1), row.label),
            band => format!("by up to {} % ({})", grouped((band * 100.0).ceil(), 0), row.label),
        };
        match moved.iter_mut().find(|(known, _)| *known == how) {
            Some((_, columns)) => columns.push(&column.header),
            None => moved.push((how, vec![&column.header])),
        }
    }
    let told: Vec<String> = moved.iter().map(|(how, columns)| format!("{} {how}", listing(columns))).collect();
    (!told.is_empty()).then(|| format!("Perturbed guests of the same seed move {}.", told.join("; ")))
}

pub(crate) fn marks(analysis: &Analysis<'_>) -> Vec<String> {
    let mut lines: Vec<String> = bands(analysis).into_iter().collect();
    if analysis.has_unreliable() {
        lines.push(format!("{UNRELIABLE} too few trials: the interval itself is rough."));
    }
    let beyond = |column: usize| {
        let view = &analysis.columns[column];
        analysis.rows.iter().any(|row| view.is_beyond_device(&row.entries[column]))
    };
    if (0..analysis.columns.len()).any(beyond) {
        lines.push(format!("{BEYOND} better than the device alone, so memory served it."));
    }
    if analysis.rows.iter().any(|row| row.harm.is_some()) {
        lines.push(format!("{HARMED} lost or damaged data, or could not be checked, as the answer says."));
    }
    let by_ranks = analysis.compared_by(Basis::Ranks);
    if !by_ranks.is_empty() {
        lines.push(format!(
            "Rows are compared by ranks in {}, where single trials lie too far off for means.",
            listing(&by_ranks)
        ));
    }
    if analysis.has_letters() {
        let within =
            if analysis.structure.panels.len() > 1 { "Within a column and block of rows" } else { "Within a column" };
        lines.push(format!("{within}, rows that share a letter cannot be told apart ({ALPHA_TEXT} over all pairs)."));
        if analysis.entries().any(|entry| entry.letters == NOT_COMPARED) {
            lines.push(format!(
                "{NOT_COMPARED} in place of a letter: it shares no block with the others, and is not compared."
            ));
        }
    }
    lines
}

pub(crate) fn ratios(analysis: &Analysis<'_>) -> Option<String> {
    let baseline = analysis.baseline_name().filter(|_| analysis.entries().any(|entry| entry.ratio.is_some()));
    baseline.map(|baseline| format!("× is the ratio of means to the baseline, {baseline}."))
}

/// Stands behind an interval from too few trials.
pub(crate) const UNRELIABLE: &str = "†";

/// Follows the name of a row that lost or damaged data.
pub(crate) const HARMED: &str = "‡";

/// Follows a figure that is better than the device can be.
pub(crate) const BEYOND: &str = "▲";

pub(crate) fn mark(column: &ColumnView, entry: &Entry) -> String {
    let rough = if entry.is_unreliable() { UNRELIABLE } else { "" };
    let beyond = if column.is_beyond_device(entry) { BEYOND } else { "" };
    format!("{rough}{beyond}")
}

pub(crate) const NOTHING: &str = "–";
