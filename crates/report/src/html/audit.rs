//! What loads checked about themselves: their own cost, and what was done compared with what was asked for.

use super::shared::name;
use crate::{
    Analysis,
    analysis::{LoadRow, Loads, share_from_memory},
    number::{Scale, grouped},
};
use fstone_model::{
    LoadReport, Unit,
    load::{Audit, Expected},
};

/// Of more rows than this, those are listed whose loads cost most.
const MAX_ROWS: usize = 60;

pub(super) struct Audits {
    /// (what, of what), for what any row has.
    pub(super) heads: Vec<(&'static str, &'static str)>,
    pub(super) rows: Vec<AuditRow>,
    /// How many rows there are, when not all of them are listed.
    pub(super) of: Option<usize>,
}

pub(super) struct AuditRow {
    pub(super) cell: u32,
    pub(super) name: String,
    pub(super) step: String,
    /// One per head.
    pub(super) values: Vec<String>,
}

const HEADS: [(&str, &str); 8] = [
    ("own cost", "per operation"),
    ("share", "of the mean latency"),
    ("mix off by", "points"),
    ("files touched", "of expected"),
    ("blocks touched", "of expected"),
    ("bytes written", "of asked for"),
    ("rate", "of asked for"),
    ("served by memory", "of bytes read"),
];

pub(super) fn audit(analysis: &Analysis<'_>, loads: &Loads<'_>) -> Audits {
    let mut all: Vec<(&str, &LoadRow<'_>, [String; 8])> = loads
        .steps
        .iter()
        .flat_map(|step| {
            let name = step.step.as_str();
            step.rows.iter().map(move |of_row| (name, of_row, values(analysis, name, of_row)))
        })
        .filter(|(.., values)| values.iter().any(|value| value != NOTHING))
        .collect();
    let of = (all.len() > MAX_ROWS).then_some(all.len());
    if of.is_some() {
        let share =
            |row: &LoadRow<'_>| row.reports.iter().filter_map(|report| report.audit.overhead_share).fold(0.0, f64::max);
        all.sort_by(|(_, a, _), (_, b, _)| share(b).total_cmp(&share(a)));
        all.truncate(MAX_ROWS);
    }
    let told: Vec<usize> =
        (0..HEADS.len()).filter(|head| all.iter().any(|(.., values)| values[*head] != NOTHING)).collect();
    let rows = all.iter().map(|(step, of_row, values)| AuditRow {
        cell: analysis.rows[of_row.row].cell,
        name: name(analysis, of_row.row),
        step: (*step).to_owned(),
        values: told.iter().map(|head| values[*head].clone()).collect(),
    });
    Audits { heads: told.iter().map(|head| HEADS[*head]).collect(), rows: rows.collect(), of }
}

const NOTHING: &str = "–";

/// Own cost, its share, mix, files, blocks, bytes, rate, reads from memory.
fn values(analysis: &Analysis<'_>, step: &str, row: &LoadRow<'_>) -> [String; 8] {
    let audits = || row.reports.iter().map(|report: &&LoadReport| &report.audit);
    let largest = |pick: &dyn Fn(&Audit) -> Option<f64>| audits().filter_map(pick).reduce(f64::max);
    let told = |value: Option<f64>, tell: &dyn Fn(f64) -> String| value.map_or_else(|| NOTHING.to_owned(), tell);
    // The observation that is farthest from what was expected.
    let share = |pick: &dyn Fn(&Audit) -> Option<Expected>| {
        let shares =
            audits().filter_map(pick).filter(|pair| pair.expected > 0.0).map(|pair| pair.observed / pair.expected);
        let worst = shares.reduce(|a, b| if (a - 1.0).abs() >= (b - 1.0).abs() { a } else { b });
        told(worst, &|share| format!("{} %", grouped(share * 100.0, 1)))
    };
    [
        told(largest(&|audit| audit.null_ns_per_operation), &|ns| Scale::of_one(Unit::Nanoseconds, ns).with_unit(ns)),
        told(largest(&|audit| audit.overhead_share), &|share| format!("{} %", grouped(share * 100.0, 2))),
        told(largest(&|audit| audit.mix_error_points), &|points| grouped(points, 2)),
        share(&|audit| audit.distinct_files),
        share(&|audit| audit.distinct_blocks),
        share(&|audit| audit.written_bytes),
        share(&|audit| audit.rate),
        told(share_from_memory(&analysis.rows[row.row], step), &|share| format!("{} %", grouped(share * 100.0, 1))),
    ]
}
