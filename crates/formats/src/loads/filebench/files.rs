//! Files and filesets in the words of the model.

use super::options::Placement;
use super::random::drawn;
use super::tree::Attribute;
use super::value::{Amount, Attributes, Scope};
use crate::diagnostic::{Diagnostic, Report, Span};
use fstone_model::workload::{self, Directories, Existing, Fileset, MAXIMUM_FILES, SizeDistribution};

/// What filebench takes where no size is given.
const DEFAULT_SIZE: u64 = 1024;
const BUILD_BLOCK: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) fileset: Fileset,
    pub(super) entries: u64,
    /// About how large a file is.
    pub(super) typical: u64,
    pub(super) leafdirs: bool,
}

pub(super) fn files(
    one: bool,
    attributes: &[Attribute],
    scope: &Scope,
    placement: Placement,
    place: Span,
    report: &mut Report,
) -> Option<Files> {
    let of = Attributes::new(attributes, scope);
    let what = if one { "file" } else { "fileset" };
    let Some(name) = of.text("name", report) else {
        report.push(Diagnostic::error(place, format!("this {what} has no name")).help("name=bigfileset"));
        return None;
    };
    let path = of.text("path", report);
    if path.is_none() {
        report.push(Diagnostic::error(place, format!("this {what} has no path")).help("path=$dir"));
    }
    if name.value.is_empty() || name.value.split('/').any(|part| matches!(part, "" | "." | "..")) {
        report
            .push(Diagnostic::error(name.span, format!("no {what} can be called that")).label("expected a plain name"));
        return None;
    }
    let leafdirs = of.number("leafdirs", 0, report);
    let entries = if one { 1 } else { of.number("entries", 0, report) };
    if leafdirs > 0 && entries > 0 {
        report.push(
            Diagnostic::error(of.span("leafdirs", place), "files and leaf directories in one fileset")
                .help("define a fileset of each"),
        );
    }
    if entries.max(leafdirs) == 0 {
        report.push(Diagnostic::error(name.span, format!("`{}` is empty", name.value)).help("entries=1000"));
    }
    if entries.max(leafdirs) > MAXIMUM_FILES {
        report.push(
            Diagnostic::error(of.span("entries", place), "too many files")
                .label(format!("expected at most {MAXIMUM_FILES}")),
        );
    }
    let size_attribute = if of.get("size").is_some() { "size" } else { "filesize" };
    let size = match of.amount(size_attribute, report) {
        None => SizeDistribution::Fixed(DEFAULT_SIZE),
        Some(Amount::Fixed(size)) => SizeDistribution::Fixed(size),
        Some(Amount::Drawn(random)) => {
            drawn(scope, &random, report).map_or(SizeDistribution::Fixed(DEFAULT_SIZE), |drawn| drawn.sizes())
        }
    };
    refused(&of, place, report);
    let preallocated = preallocated(&of, place, report);
    let directory = match (placement, path) {
        (Placement::AsWritten, Some(path)) => format!("{}/{}", path.value.trim_end_matches('/'), name.value),
        _ => name.value.clone(),
    };
    let typical = size.typical_bytes();
    Some(Files {
        span: name.span,
        entries,
        typical,
        leafdirs: leafdirs > 0,
        fileset: Fileset {
            directory,
            directories: if one { flat() } else { directories(&of, entries.max(leafdirs), place, report) },
            leaf_directories: leafdirs,
            preallocated,
            build_block_bytes: BUILD_BLOCK,
            existing: if of.flag("reuse", report) || of.flag("trusttree", report) {
                Existing::Reuse
            } else {
                Existing::Rebuild
            },
            ..Fileset::new(name.value.clone(), workload::Amount::Files(entries), size)
        },
        name: name.value,
    })
}

const fn flat() -> Directories {
    Directories::Flat { count: 0, root_too: false }
}

/// Attributes that are refused, and those that change nothing.
fn refused(of: &Attributes<'_>, place: Span, report: &mut Report) {
    if of.get("dirdepthrv").is_some() {
        report.push(
            Diagnostic::error(of.span("dirdepthrv", place), "directories of a drawn depth are not made")
                .help("leave it out: the depth follows from entries and dirwidth"),
        );
    }
    if of.flag("writeonly", report) {
        report.push(
            Diagnostic::warning(of.span("writeonly", place), "`writeonly` changes nothing here")
                .note("files that are written are opened for reading and writing"),
        );
    }
    if of.get("cached").is_some() && !of.flag("cached", report) {
        report.push(
            Diagnostic::warning(of.span("cached", place), "`cached` is from filebench 1.4 and has no effect")
                .note("filebench 1.5 refuses it")
                .help("to begin with a cold cache, put `remount = {}` before the load in a study"),
        );
    }
}

/// The share of the files that exist at first: a percentage, or all where the attribute stands alone.
fn preallocated(of: &Attributes<'_>, place: Span, report: &mut Report) -> f64 {
    let Some(attribute) = of.get("prealloc") else { return 0.0 };
    let Some(value) = &attribute.value else { return 1.0 };
    match of.scope.plain(value, report).map(|plain| plain.value) {
        Some(super::tree::Value::Flag(all)) => f64::from(u8::from(all)),
        _ => {
            let percent = of.scope.number(value, report).unwrap_or(100);
            if percent > 100 {
                report.push(
                    Diagnostic::error(of.span("prealloc", place), format!("{percent} % of the files cannot exist"))
                        .label("expected a percentage"),
                );
            }
            percent.min(100) as f64 / 100.0
        }
    }
}

/// A tree in whose leaves about `dirwidth` files are, as deep as filebench's is on average.
fn directories(of: &Attributes<'_>, entries: u64, place: Span, report: &mut Report) -> Directories {
    if of.get("dirwidth").is_none() {
        report.push(
            Diagnostic::error(place, "this fileset has no `dirwidth`")
                .help("dirwidth=20: files in each directory, on average"),
        );
        return flat();
    }
    let width = of.number("dirwidth", 0, report);
    if width < 2 {
        if of.get("dirwidth").is_some() && !report.has_errors() {
            report.push(
                Diagnostic::error(of.span("dirwidth", place), "a directory holds at least 2")
                    .label("expected 2 or more"),
            );
        }
        return flat();
    }
    let depth = ((entries.max(1) as f64).ln() / (width as f64).ln()).round() as u32;
    let leaves = entries as f64 / width as f64;
    match depth {
        0 | 1 => flat(),
        _ if leaves < 1.5 => flat(),
        _ => {
            // Of the trees that are about as deep, the one with about as many leaves.
            let trees = (depth.saturating_sub(3).max(1)..=depth).map(|levels| {
                let per_level = leaves.powf(1.0 / f64::from(levels)).round().max(2.0);
                let off = (per_level.powi(levels.cast_signed()) / leaves).ln().abs();
                (per_level as u32, levels, off + 0.05 * f64::from(levels.abs_diff(depth - 1)))
            });
            let best = trees.min_by(|one, other| one.2.total_cmp(&other.2));
            best.map_or(flat(), |(width, depth, _)| Directories::Tree { width, depth })
        }
    }
}
