//! mdtest's options as one of the load formats.

use super::{options::OPTIONS, parse::parse};
use crate::{
    Diagnostics,
    diagnostic::{Diagnostic, Report},
    loads::{
        Document, Load, LoadFormat, Reader,
        letters::{CommandLine, Given},
    },
};

/// Command lines of mdtest.
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
    let mut report = Report::new(line.source.clone());
    // What is wrong is told by `parse`.
    let given = Given::read(line, OPTIONS, &mut Report::new(line.source.clone()));
    for given in &given {
        let (message, note) = match given.option.name {
            "directory" => {
                ("-d has no effect", "where a load works is said by the study, or by `fstone load --directory`")
            }
            "results" | "json" | "rank-silence" | "rank-stillness" | "seed" => {
                ("this has no effect", "it is an option of the command `fstone mdtest`")
            }
            _ => continue,
        };
        report.push(Diagnostic::warning(given.span, message).note(note));
    }
    let nowhere = |_: &str| Err("a load of a study or a file reads no other files".to_owned());
    let mdtest = parse(line, &mut { nowhere })?;
    if let Some(warnings) = mdtest.warnings.clone() {
        report.append(warnings);
    }
    Ok(Load { workload: mdtest.plan().workload, warnings: report.into_diagnostics(), keeps_total: false })
}
