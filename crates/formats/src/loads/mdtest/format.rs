//! mdtest's options as one of the load formats.

use super::{options::OPTIONS, parse::parse};
use crate::{
    Diagnostics,
    loads::{
        Load, LoadFormat,
        letters::{self, CommandLine},
    },
};

pub const FORMAT: LoadFormat = LoadFormat {
    key: "mdtest",
    about: "Options of `mdtest`, as on its command line, without -d: `mdtest = \"-n 1000 -F -w 3901\"`.",
    extensions: &["mdtest"],
    words: Some(|words| read(&CommandLine::of_arguments(words))),
    file: |document| read(&CommandLine::of_text(document.source, "mdtest")),
    converted: None,
};

fn read(line: &CommandLine) -> Result<Load, Diagnostics> {
    letters::load(line, "mdtest", OPTIONS, |line| {
        let nowhere = |_: &str| Err("a load of a study or a file reads no other files".to_owned());
        let mdtest = parse(line, &mut { nowhere })?;
        Ok((mdtest.plan().workload, mdtest.warnings))
    })
}
