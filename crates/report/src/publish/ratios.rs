//! A study's page: the ratios that its runs found, side by side.

use crate::{
    Analysis,
    analysis::runs::{Across, AcrossColumn, Ratio},
    html::{IndexEntry, css},
    legend::UNRELIABLE,
    number::ratio,
};
use askama::Template;

#[derive(Template)]
#[template(path = "ratios.html")]
struct Page<'a> {
    css: String,
    title: &'a str,
    study: &'a str,
    back: &'a str,
    groups: Vec<Group<'a>>,
    /// The mark of ratios from too few trials, if there are any.
    rough: Option<&'static str>,
}

/// Runs that did the same work.
struct Group<'a> {
    /// From 1.
    number: usize,
    /// What they have in common and other groups do not: "quick version".
    title: String,
    runs: Vec<&'a IndexEntry>,
    columns: Vec<Column<'a>>,
}

struct Column<'a> {
    id: String,
    header: &'a str,
    direction: &'static str,
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    label: &'a str,
    against: &'a str,
    cells: Vec<Option<Cell>>,
}

struct Cell {
    ratio: String,
    interval: String,
    differs: bool,
    mark: &'static str,
}

/// The page of a study's runs, whose entries in the index are these; `back` is the index's address.
pub(super) fn html(runs: &[&Analysis<'_>], entries: &[&IndexEntry], all: &[Across], back: &str) -> String {
    let groups = all.iter().enumerate().map(|(number, across)| Group {
        number: number + 1,
        title: title(runs[across.runs[0]], number + 1, all.len(), across.runs.len()),
        runs: across.runs.iter().map(|run| entries[*run]).collect(),
        columns: across.columns.iter().enumerate().map(|(index, of)| column(of, number, index)).collect(),
    });
    let rows = all.iter().flat_map(|across| &across.columns).flat_map(|column| &column.rows);
    let is_rough = rows.flat_map(|row| row.ratios.iter().flatten()).any(|ratio| ratio.is_rough);
    let rough = is_rough.then_some(UNRELIABLE);
    Page { css: css(), title: &entries[0].title, study: &entries[0].study, back, groups: groups.collect(), rough }
        .render()
        .expect("writing to a string does not fail")
}

/// What the runs of a set have in common: "Set 2: quick version on the running kernel, 3 runs".
fn title(first: &Analysis<'_>, number: usize, sets: usize, runs: usize) -> String {
    let run = &first.dataset.run;
    let version = if run.plan.quick { "quick version" } else { "full size" };
    let told = match fstone_analysis::clock::heading(run) {
        Some(clock) => format!("{version} in {clock}"),
        None => {
            let executors = fstone_analysis::executors(&run.plan);
            let executors: Vec<&str> = executors.into_iter().map(fstone_analysis::of_executor).collect();
            format!("{version} on {}", crate::text::listing(&executors))
        }
    };
    let told = format!("{told}, {}", crate::text::counted(runs, "run"));
    if sets > 1 { format!("Set {number}: {told}") } else { crate::text::capitalised(&told) }
}

fn column(of: &AcrossColumn, group: usize, index: usize) -> Column<'_> {
    let cell = |found: &Ratio| Cell {
        ratio: ratio(found.ratio),
        interval: found.interval.map_or_else(String::new, |(low, high)| format!("{} to {}", ratio(low), ratio(high))),
        differs: found.differs,
        mark: if found.is_rough { UNRELIABLE } else { "" },
    };
    Column {
        id: format!("column-{group}-{index}"),
        header: &of.header,
        direction: of.better.words(),
        rows: of
            .rows
            .iter()
            .map(|row| Row {
                label: &row.label,
                against: &row.against,
                cells: row.ratios.iter().map(|found| found.as_ref().map(cell)).collect(),
            })
            .collect(),
    }
}
