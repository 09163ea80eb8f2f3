//! The table, and every comparison against the baseline.

use super::shared::name;
use crate::{
    Analysis,
    analysis::{amount, clock, either_way},
    legend,
    number::{grouped, p_value, ratio},
};
use fstone_model::Better;

const MAX_PAIRS: usize = 400;

pub(super) struct Table {
    pub(super) caption: String,
    pub(super) label_heads: Vec<String>,
    pub(super) counts: bool,
    pub(super) columns: Vec<Head>,
    /// One per panel.
    pub(super) groups: Vec<Vec<Row>>,
    pub(super) legend: Vec<String>,
    /// What ratios refer to; empty when there are none until the reader chooses a baseline.
    pub(super) ratio_note: Option<String>,
}

pub(super) struct Head {
    pub(super) header: String,
    pub(super) unit: String,
    /// What sorts first: "higher" or "lower".
    pub(super) best: &'static str,
    /// A style rule with the widths of a cell's parts.
    pub(super) widths: String,
    pub(super) letters: bool,
}

pub(super) struct Row {
    pub(super) cell: u32,
    pub(super) place: usize,
    /// Indices of the levels in the order of the label columns, comma separated.
    pub(super) levels: String,
    pub(super) labels: Vec<String>,
    pub(super) name: String,
    pub(super) notes: Vec<usize>,
    pub(super) count: usize,
    pub(super) cells: Vec<Cell>,
}

pub(super) enum Cell {
    Value {
        value: String,
        single: bool,
        half: String,
        rough: bool,
        beyond: bool,
        letters: String,
        ratio: String,
    },
    /// "refused", in the first column.
    Word(&'static str),
    Nothing,
}

pub(super) fn table(analysis: &Analysis<'_>) -> Table {
    let counts = analysis.common_count().is_none() && analysis.completed() > 0;
    let mut lines = legend::marks(analysis);
    lines.extend(definitions(analysis));
    lines.extend(legend::memory(analysis));
    lines.extend(legend::executors(analysis));
    lines.extend(analysis.lacking.iter().map(|lacking| lacking.sentence.clone()));
    let ratio_note = if analysis.rows.len() > 1 { Some(legend::ratios(analysis).unwrap_or_default()) } else { None };
    let mut place = 0;
    let groups = analysis
        .structure
        .panels
        .iter()
        .map(|panel| {
            panel
                .rows
                .iter()
                .filter(|row| analysis.is_shown(**row))
                .map(|row| {
                    place += 1;
                    row_view(analysis, *row, place - 1, counts)
                })
                .collect()
        })
        .filter(|group: &Vec<Row>| !group.is_empty())
        .collect();
    Table {
        caption: legend::what(analysis).unwrap_or_else(|| "No trial completed.".to_owned()),
        label_heads: analysis.label_heads().into_iter().map(str::to_owned).collect(),
        counts,
        columns: (0..analysis.columns.len()).map(|column| head(analysis, column, counts)).collect(),
        groups,
        legend: lines,
        ratio_note,
    }
}

/// More columns than this of one definition are not named one by one, where "the others" says as much.
const MAX_NAMED: usize = 3;

/// What the columns are and how they are made, each definition once.
fn definitions(analysis: &Analysis<'_>) -> Option<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for column in analysis.columns.iter().filter(|column| !column.about.is_empty()) {
        match groups.iter_mut().find(|(about, _)| *about == column.about) {
            Some((_, headers)) => headers.push(&column.header),
            None => groups.push((column.about, vec![&column.header])),
        }
    }
    let is_whole = analysis.columns.iter().all(|column| !column.about.is_empty());
    let most = (0..groups.len()).max_by_key(|index| (groups[*index].1.len(), usize::MAX - index));
    let others = most.filter(|index| is_whole && groups[*index].1.len() > MAX_NAMED).map(|index| groups.remove(index));
    let alone = groups.is_empty();
    let mut told: Vec<String> = groups
        .iter()
        .map(|(about, headers)| format!("{}: {about}", crate::text::title(&crate::text::listing(headers))))
        .collect();
    if let Some((about, _)) = others {
        told.push(format!("{}: {about}", if alone { "All columns" } else { "All other columns" }));
    }
    (!told.is_empty()).then(|| format!("{}.", told.join(". ")))
}

fn head(analysis: &Analysis<'_>, index: usize, counts: bool) -> Head {
    let column = &analysis.columns[index];
    let entries = || analysis.rows.iter().map(|row| &row.entries[index]);
    let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let value = widest(&mut entries().filter_map(|entry| Some(column.scale.number(entry.mean()?).chars().count())));
    // Ratios stand under the values; their "×" is wider than a digit.
    let ratios = widest(&mut entries().filter_map(|entry| Some(ratio(entry.ratio?).chars().count() + 1)));
    let value = value.max(ratios);
    let half = widest(&mut entries().map(|entry| match entry.arm(&column.scale) {
        Some(half) => half.chars().count() + 2 + legend::mark(column, entry).chars().count(),
        None if counts && entry.values.len() == 1 => "(1 trial)".len(),
        None => 0,
    }));
    let letters = widest(&mut entries().map(|entry| entry.letters.chars().count()));
    let direction = column.better.words();
    let unit = match (column.unit_line(), direction) {
        ("", direction) => direction.to_owned(),
        (unit, "") => unit.to_owned(),
        (unit, direction) => format!("{unit}, {direction}"),
    };
    Head {
        header: column.header.clone(),
        unit,
        best: if column.better == Better::Lower { "lower" } else { "higher" },
        widths: format!(".k{index}{{--v:{value}ch;--h:{half}ch;--l:{letters}ch}}"),
        letters: letters > 0,
    }
}

fn row_view(analysis: &Analysis<'_>, index: usize, place: usize, counts: bool) -> Row {
    let row = &analysis.rows[index];
    let cells = match row.word {
        Some(word) => {
            std::iter::once(Cell::Word(word)).chain((1..analysis.columns.len()).map(|_| Cell::Nothing)).collect()
        }
        None => (0..analysis.columns.len())
            .map(|column| {
                let (entry, view) = (&row.entries[column], &analysis.columns[column]);
                let scale = &view.scale;
                match entry.mean() {
                    Some(mean) => Cell::Value {
                        value: scale.number(mean),
                        single: counts && entry.values.len() == 1,
                        half: entry.arm(scale).unwrap_or_default(),
                        rough: entry.is_unreliable(),
                        beyond: view.is_beyond_device(entry),
                        letters: entry.letters.clone(),
                        ratio: entry.ratio.map(ratio).unwrap_or_default(),
                    },
                    None => Cell::Nothing,
                }
            })
            .collect(),
    };
    let mut labels: Vec<String> = analysis.labels(index).into_iter().map(str::to_owned).collect();
    if row.harm.is_some() {
        labels.last_mut().expect("a row has a label").push_str(&format!(" {}", legend::HARMED));
    }
    Row {
        cell: row.cell,
        place,
        levels: super::data::levels(analysis, index).iter().map(usize::to_string).collect::<Vec<_>>().join(","),
        labels,
        name: row.label.clone(),
        notes: row.footnotes.clone(),
        count: row.completed,
        cells,
    }
}

pub(super) struct Pair {
    pub(super) column: String,
    pub(super) row: String,
    pub(super) against: String,
    pub(super) difference: String,
    pub(super) p: String,
    pub(super) delta: String,
    pub(super) verdict: &'static str,
}

/// Each row against its panel's baseline, or every pair where there is no baseline; and a title.
pub(super) fn comparisons(analysis: &Analysis<'_>) -> (String, Vec<Pair>) {
    let with_baseline = analysis.baseline_name().is_some();
    let mut pairs = Vec::new();
    for (column, comparison) in analysis.comparisons.iter().enumerate() {
        for (index, panel) in comparison.panels.iter().enumerate() {
            let Some(panel) = panel else { continue };
            let baseline = analysis.baseline_of(index);
            let wanted: Vec<(usize, usize)> = if with_baseline {
                let Some(baseline) = baseline else { continue };
                panel.rows.iter().filter(|row| **row != baseline).map(|row| (baseline, *row)).collect()
            } else {
                let rows = &panel.rows;
                (0..rows.len()).flat_map(|i| (i + 1..rows.len()).map(move |j| (rows[j], rows[i]))).collect()
            };
            pairs.extend(wanted.into_iter().filter_map(|(against, row)| {
                let pair = panel.pair(against, row)?;
                let difference = match pair.relative {
                    _ if !pair.can_differ => "–".to_owned(),
                    Some(shift) if pair.differs => amount(shift),
                    Some(shift) => either_way(shift),
                    None => {
                        let scale = &analysis.columns[column].scale;
                        let interval = pair.shift.interval;
                        format!("{} to {}", scale.number(interval.low), scale.with_unit(interval.high))
                    }
                };
                Some(Pair {
                    column: analysis.columns[column].header.clone(),
                    row: name(analysis, row),
                    against: name(analysis, against),
                    difference,
                    p: if pair.can_differ { p_value(pair.adjusted_p) } else { "–".to_owned() },
                    delta: if pair.is_compared() { grouped(pair.cliffs_delta, 2) } else { "–".to_owned() },
                    verdict: match (pair.is_compared(), pair.can_differ, pair.differs) {
                        (false, ..) => "not compared: no common block",
                        (_, false, _) if clock::is_virtual(analysis.dataset) => "exact for one seed only",
                        (_, false, _) => "too few trials to tell",
                        (.., true) => "different",
                        (.., false) => "not told apart",
                    },
                })
            }));
        }
    }
    let title = if with_baseline { "Every comparison against the baseline" } else { "Every pair compared" };
    let all = pairs.len();
    pairs.truncate(MAX_PAIRS);
    let title = if all > MAX_PAIRS { format!("{title} (the first {MAX_PAIRS} of {all})") } else { title.to_owned() };
    (title, pairs)
}
