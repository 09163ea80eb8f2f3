//! mdtest's options as one of the load formats.

use super::{options::OPTIONS, parse::parse};
use crate::{
    Diagnostics,
    loads::{
        Document, Load, LoadFormat, Reader,
        letters::{self, CommandLine, Given},
    },
};

pub struct MdtestFormat;

impl LoadFormat for MdtestFormat {
    fn key(&self) -> &'static str {
        "mdtest"
    }

    fn about(&self) -> &'static str {
        "Options of `mdtest`, as on its command line, without -d: `mdtest = \"-n 1000 -F -w 3901\"`."
    }

    fn reader(&self) -> Reader {
        Reader::Words { extensions: &["mdtest"], read: |words| read(&CommandLine::of_arguments(words)) }
    }

    fn read_file(&self, document: &mut Document<'_, '_>) -> Result<Load, Diagnostics> {
        read(&CommandLine::of_text(document.source, "mdtest"))
    }
}

fn read(line: &CommandLine) -> Result<Load, Diagnostics> {
    let elsewhere = |given: &Given| (given.option.name == "directory").then_some("-d has no effect");
    letters::load(line, "mdtest", OPTIONS, elsewhere, |line| {
        let nowhere = |_: &str| Err("a load of a study or a file reads no other files".to_owned());
        let mdtest = parse(line, &mut { nowhere })?;
        Ok((mdtest.plan().workload, mdtest.warnings))
    })
}
