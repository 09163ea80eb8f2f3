//! Whether a plan made from a recorded study does the same work as the recorded plan, and how they differ.

use super::run::tries;
use fstone_analysis::text::{counted, listing};
use fstone_model::{
    Cell, Plan,
    study::{FilesystemSpec, StepAction},
    text,
};
use std::path::Path;

/// How many rows are named in which something differs; more are only counted.
const NAMED: usize = 3;

/// A cell as far as its figures depend on it: where a source lies on the host does not count.
pub(super) fn work(cell: &Cell) -> Cell {
    let mut cell = cell.clone();
    for step in &mut cell.steps {
        if let StepAction::CopyIn { source, .. } = &mut step.action {
            *source = Path::new(source).file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
    }
    cell
}

/// How the plan here differs from the one there, one line each: "device: directory there, loop 64 MiB here".
pub(super) fn differences(there: &Plan, here: &Plan) -> Vec<String> {
    let mut told = Vec::new();
    let mut tell = |what: &str, there: String, here: String| {
        if there != here {
            told.push(text::line(&format!("{what}: {there} there, {here} here")));
        }
    };
    tell("trials", tries(there), tries(here));
    tell("blocks to warm up", there.warm_up.to_string(), here.warm_up.to_string());
    tell("seed", there.seed.to_string(), here.seed.to_string());
    tell("kernel", each(there, |cell| cell.kernel.written()), each(here, |cell| cell.kernel.written()));
    tell("device", each(there, |cell| cell.device.describe()), each(here, |cell| cell.device.describe()));
    let lacks = |plan: &Plan, cell: &Cell| !plan.cells.iter().any(|other| other.label == cell.label);
    let only = |plan: &Plan, other: &Plan| plan.cells.iter().filter(|cell| lacks(other, cell)).cloned().collect();
    let (gone, new): (Vec<Cell>, Vec<Cell>) = (only(there, here), only(here, there));
    let of = |cells: &[Cell]| format!("{}: {}", counted(cells.len(), "row"), named(cells));
    if !gone.is_empty() {
        told.push(format!("only there, {}", of(&gone)));
    }
    if !new.is_empty() {
        told.push(format!("only here, {}", of(&new)));
    }
    for (what, part) in PARTS {
        let other = |cell: &&Cell| {
            let same = there.cells.iter().find(|before| before.label == cell.label);
            same.is_some_and(|before| !part(&work(before), &work(cell)))
        };
        let other: Vec<Cell> = here.cells.iter().filter(other).cloned().collect();
        if !other.is_empty() {
            told.push(format!("{what} of {}", of(&other)));
        }
    }
    told
}

type Part = (&'static str, fn(&Cell, &Cell) -> bool);

const PARTS: [Part; 3] = [
    ("other mkfs or mount options", |a, b| {
        // Where a tree lies on the host does not count.
        let of = |cell: &Cell| FilesystemSpec {
            tree: cell.filesystem.tree.as_ref().map(|_| String::new()),
            ..cell.filesystem.clone()
        };
        of(a) == of(b)
    }),
    ("other settings of the device's queue", |a, b| a.queue == b.queue),
    ("other steps", |a, b| a.steps == b.steps),
];

fn each(plan: &Plan, part: impl Fn(&Cell) -> String) -> String {
    let mut found: Vec<String> = Vec::new();
    for cell in &plan.cells {
        let part = part(cell);
        if !found.contains(&part) {
            found.push(part);
        }
    }
    listing(&found)
}

fn named(cells: &[Cell]) -> String {
    let mut names: Vec<String> = cells.iter().take(NAMED).map(|cell| text::line(&cell.label)).collect();
    if cells.len() > NAMED {
        names.push(format!("{} more", cells.len() - NAMED));
    }
    listing(&names)
}
