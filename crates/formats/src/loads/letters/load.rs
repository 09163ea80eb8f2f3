//! Command lines as loads of a study or of a file.

use super::{CommandLine, Given, Opt};
use crate::{
    Diagnostics,
    diagnostic::{Diagnostic, Report},
    loads::Load,
};
use fstone_model::{
    Workload,
    workload::{ErrorPolicy, Fileset, FinalSync, IoSettings, Phase},
};

/// The load of a command line: what both programs leave to their phases is not asked for.
pub(in crate::loads) fn workload(
    name: &str,
    filesets: Vec<Fileset>,
    phases: Vec<Phase>,
    direct: bool,
    on_error: ErrorPolicy,
) -> Workload {
    Workload {
        io: IoSettings { direct, ..IoSettings::default() },
        on_error,
        final_sync: FinalSync::None,
        ..Workload::new(name, filesets, phases)
    }
}

/// Reads a command line of `program` as a load. Where it works and what is printed is not its to say: options of that have no effect,
/// which is told. `elsewhere` knows those that only this program has: what is said of them, and why.
pub(in crate::loads) fn load(
    line: &CommandLine,
    program: &str,
    options: &'static [Opt],
    elsewhere: impl Fn(&Given) -> Option<&'static str>,
    parse: impl FnOnce(&CommandLine) -> Result<(Workload, Option<Diagnostics>), Diagnostics>,
) -> Result<Load, Diagnostics> {
    let mut report = Report::new(line.source.clone());
    // What is wrong is told by `parse`.
    let given = Given::read(line, options, &mut Report::new(line.source.clone()));
    for given in &given {
        let (message, note) = match (elsewhere(given), given.option.name) {
            (Some(message), _) => {
                let note = "the study, or `fstone load --directory`, says where a load works";
                (message, note.to_owned())
            }
            (None, "results" | "json" | "rank-silence" | "rank-stillness" | "seed") => {
                ("this has no effect", format!("it is an option of the command `fstone {program}`"))
            }
            _ => continue,
        };
        report.push(Diagnostic::warning(given.span, message).note(note));
    }
    let (workload, warnings) = parse(line)?;
    if let Some(warnings) = warnings {
        report.append(warnings);
    }
    Ok(Load { workload, warnings: report.into_diagnostics(), keeps_total: false })
}
