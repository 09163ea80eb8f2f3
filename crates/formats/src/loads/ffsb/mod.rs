//! FFSB profiles, read into the workload; and its way of printing results.
//!
//! [`parse`] takes all three dialects (4.x, 5.x, 6.0), told apart by what the profile says, and gives a [`Profile`];
//! [`Profile::workload`] is the load it describes, [`convert`] says it as a workload file, [`header`] and [`print()`] are what
//! FFSB prints before and after a run.
//! `docs/formats/ffsb.md` says, option by option, what differs from the original and why.
//!
//! Reading order: `lines` and `sections` read the text, `old` rewrites the 4.x dialect as sections, `inherit` spells
//! out what sections take over from each other, `groups` checks threadgroups, `resolve` the rest, and makes the profile, `workload` says it in
//! the words of the model.
//!
//! The format was learnt from FFSB's documentation and from running it; no code is taken from it.

mod convert;
mod findings;
mod format;
mod groups;
mod inherit;
pub mod keyword;
mod lines;
mod old;
mod print;
mod profile;
mod resolve;
mod resolver;
mod sections;
#[cfg(test)]
mod tests;
mod workload;

pub use convert::convert;
pub use format::FORMAT;
pub use print::{header, print};
pub use profile::{Ageing, CALLS, Dialect, Filesystem, Group, Op, Profile, ReadSettings, Stats, WriteSettings};
pub use resolve::Options;
pub use workload::Placement;

use crate::{
    Diagnostics, Source,
    diagnostic::{Diagnostic, Report},
};
use findings::Findings;
use lines::{Shape, lines};

/// The largest profile read, bytes; real ones have a few hundred lines.
pub const MAXIMUM_SIZE: usize = 256 << 10;

/// Reads a profile.
///
/// # Errors
/// Everything that is wrong with it, each with its place. Warnings alone are no failure; they are in
/// [`Profile::warnings`].
pub fn parse(source: &Source, options: &Options) -> Result<Profile, Diagnostics> {
    let mut size = Report::new(source.clone());
    if !size.check_size(MAXIMUM_SIZE, "the profile") {
        return Err(size.into_diagnostics().expect("the size is wrong"));
    }
    let mut findings = Findings::new(source);
    let dialect = detect(source.text());
    let root = if dialect == Dialect::V4 {
        old::read(source.text(), &mut findings)
    } else {
        sections::read(source.text(), dialect, &mut findings)
    };
    if dialect == Dialect::V4 && options.seconds.is_none() {
        findings.push(
            Diagnostic::whole("a profile of FFSB 4 does not say how long to run")
                .help("give the seconds after the profile's name"),
        );
    }
    let profile = resolve::resolve(root, &stem(source.name()), dialect, *options, &mut findings);
    let (mut profile, warnings) = findings.into_report().finish(profile)?;
    profile.warnings = warnings;
    Ok(profile)
}

/// The dialect, by words that only one of them has. 6.0 refuses every word that is 5.x's own.
fn detect(text: &str) -> Dialect {
    let mut dialect = Dialect::V6;
    let mut in_section = false;
    for line in lines(text) {
        match line.shape() {
            Shape::Section { name, .. } if name.text == "config" => return Dialect::V4,
            Shape::Section { .. } => in_section = true,
            Shape::Setting { key, .. } => match key.text {
                // 4.x has no section before its own [config0].
                "numconfigs" | "numfiles" | "initialcreateweight" if !in_section => return Dialect::V4,
                "num_filesystems" | "num_threadgroups" | "bufferedio" | "fsync_file" | "meta_weight" => {
                    dialect = Dialect::V5;
                }
                _ => {}
            },
        }
    }
    dialect
}

fn stem(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => file.to_owned(),
    }
}
