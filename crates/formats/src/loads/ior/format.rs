//! IOR's options as one of the load formats.

use super::{options::OPTIONS, parse::parse};
use crate::{
    Diagnostics,
    loads::{
        Document, Load, LoadFormat, Reader,
        letters::{self, CommandLine, Given},
    },
};

pub struct IorFormat;

impl LoadFormat for IorFormat {
    fn key(&self) -> &'static str {
        "ior"
    }

    fn about(&self) -> &'static str {
        "Options of `ior`, as on its command line: `ior = \"-b 1g -t 1m -e\"`. The file has the name given with -o, without directories."
    }

    fn reader(&self) -> Reader {
        Reader::Words { extensions: &["ior"], read: |words| read(&CommandLine::of_arguments(words)) }
    }

    fn read_file(&self, document: &mut Document<'_, '_>) -> Result<Load, Diagnostics> {
        read(&CommandLine::of_text(document.source, "ior"))
    }
}

fn read(line: &CommandLine) -> Result<Load, Diagnostics> {
    let elsewhere = |given: &Given| {
        (given.option.name == "file" && given.text.contains('/')).then_some("the directory of -o has no effect")
    };
    letters::load(line, "ior", OPTIONS, elsewhere, |line| {
        let ior = parse(line)?;
        Ok((ior.plan().workload, ior.warnings))
    })
}
