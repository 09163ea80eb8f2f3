//! filebench's personalities, read into the workload; and its way of printing results.
//!
//! [`parse`] takes a file in filebench's language, of version 1.5 and as far as its own personalities still use it of 1.4, and
//! gives the load that it runs. [`print()`] prints a load's report as filebench does. `docs/formats/filebench.md` says what differs.
//!
//! Reading order: `token` takes the text apart, `grammar` makes a `tree` of it with the `words` of the language, `resolve` goes through the
//! commands, with `value` and `random` for what variables mean, `files` for filesets and `flow` for what threads do.
//!
//! The language was learnt from filebench's documentation, from its personalities and from running it; no code is taken from it.

mod files;
mod flow;
mod format;
mod grammar;
mod options;
mod print;
mod random;
mod resolve;
#[cfg(test)]
mod tests;
mod token;
mod tree;
mod value;
mod words;

pub use format::FORMAT;
pub use options::{Options, Placement};
pub use print::print;

use crate::{Diagnostics, Source, diagnostic::Report};
use fstone_model::Workload;

/// The largest personality that is read; filebench's own have up to 14 KiB.
pub const MAXIMUM_SIZE: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq)]
pub struct Personality {
    pub workload: Workload,
    pub warnings: Option<Diagnostics>,
}

/// Reads a personality.
pub fn parse(source: &Source, options: Options) -> Result<Personality, Diagnostics> {
    let mut report = Report::new(source.clone());
    if !report.check_size(MAXIMUM_SIZE, "the personality") {
        return Err(report.into_diagnostics().expect("the size is wrong"));
    }
    let commands = grammar::commands(&mut report);
    let workload = resolve::workload(&commands, &stem(source.name()), options, &mut report);
    let (workload, warnings) = report.finish(workload)?;
    Ok(Personality { workload, warnings })
}

fn stem(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => file.to_owned(),
    }
}
