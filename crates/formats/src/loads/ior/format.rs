//! IOR's options as one of the load formats.

use super::{options::OPTIONS, parse::parse};
use crate::{
    Diagnostics,
    diagnostic::{Diagnostic, Report},
    loads::{
        Document, Load, LoadFormat, Reader,
        letters::{CommandLine, Given},
    },
};

/// Command lines of IOR.
pub struct IorFormat;

impl LoadFormat for IorFormat {
    fn key(&self) -> &'static str {
        "ior"
    }

    fn about(&self) -> &'static str {
        "Options of `ior`, as on its command line: `ior = \"-b 1g -t 1m -e\"`. The file has the name that -o gives it, without directories."
    }

    fn reader(&self) -> Reader {
        Reader::Words { extensions: &["ior"], read: |words| read(&CommandLine::of_arguments(words)) }
    }

    fn read_file(&self, document: &mut Document<'_, '_>) -> Result<Load, Diagnostics> {
        read(&CommandLine::of_text(document.source, "ior"))
    }
}

fn read(line: &CommandLine) -> Result<Load, Diagnostics> {
    let mut report = Report::new(line.source.clone());
    // What is wrong is told by `parse`.
    let given = Given::read(line, OPTIONS, &mut Report::new(line.source.clone()));
    for given in &given {
        let (message, note) = match given.option.name {
            "file" if given.text.contains('/') => (
                "the directory of -o has no effect",
                "where a load works is said by the study, or by `fstone load --directory`",
            ),
            "results" | "json" | "rank-silence" | "rank-stillness" | "seed" => {
                ("this has no effect", "it is an option of the command `fstone ior`")
            }
            _ => continue,
        };
        report.push(Diagnostic::warning(given.span, message).note(note));
    }
    let ior = parse(line)?;
    if let Some(warnings) = ior.warnings.clone() {
        report.append(warnings);
    }
    Ok(Load { workload: ior.plan().workload, warnings: report.into_diagnostics(), keeps_total: false })
}
