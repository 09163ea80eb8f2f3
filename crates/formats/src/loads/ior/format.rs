//! IOR's options as one of the load formats.

use super::{options::OPTIONS, parse::parse};
use crate::{
    Diagnostics,
    loads::{
        Load, LoadFormat,
        letters::{self, CommandLine},
    },
};

pub const FORMAT: LoadFormat = LoadFormat {
    key: "ior",
    about: "Options of `ior`, as on its command line: `ior = \"-b 1g -t 1m -e\"`. The file has the name given with -o, without directories.",
    extensions: &["ior"],
    words: Some(|words| read(&CommandLine::of_arguments(words))),
    file: |document| read(&CommandLine::of_text(document.source, "ior")),
    converted: None,
};

fn read(line: &CommandLine) -> Result<Load, Diagnostics> {
    letters::load(line, "ior", OPTIONS, |line| {
        let ior = parse(line)?;
        Ok((ior.plan().workload, ior.warnings))
    })
}
