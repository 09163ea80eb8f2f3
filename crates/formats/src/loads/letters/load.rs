//! Command lines as loads of a study or of a file.

use super::{CommandLine, Given, Kind, Opt};
use crate::{
    Diagnostics,
    diagnostic::Report,
    loads::{CommandOnly, Load},
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

/// Reads a command line of `program` as a load, and warns of the options that only the command obeys.
pub(in crate::loads) fn load(
    line: &CommandLine,
    program: &str,
    options: &'static [Opt],
    parse: impl FnOnce(&CommandLine) -> Result<(Workload, Option<Diagnostics>), Diagnostics>,
) -> Result<Load, Diagnostics> {
    let mut report = Report::new(line.source.clone());
    // What is wrong with them is an error of `parse`.
    for given in Given::read(line, options, &mut Report::new(line.source.clone())) {
        let is_off = given.option.kind == Kind::Flag && given.number == 0;
        let only = given.option.command_only.filter(|(_, part)| !is_off && given.text.contains(part));
        if let Some((why, part)) = only {
            let is_directive = why == CommandOnly::Output && !part.is_empty();
            let option = if is_directive { part.to_owned() } else { given.option.written() };
            report.push(why.warning(program, &option, given.span));
        }
    }
    let (workload, warnings) = parse(line)?;
    if let Some(warnings) = warnings {
        report.append(warnings);
    }
    Ok(Load { workload, warnings: report.into_diagnostics(), keeps_total: false })
}
