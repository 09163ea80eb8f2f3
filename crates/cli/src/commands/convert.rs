//! `fstone convert`: the load of any format as a workload file.

use super::{Context, load::beside};
use crate::{
    args::ConvertArguments,
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_files::read_text;
use fstone_formats::{
    Source, ffsb,
    loads::{self, Document},
    native,
};
use fstone_model::{text, units::format_bytes};
use fstone_record::{EMPTY, Ending, Likeness, Reader};
use std::{fmt::Write as _, fs::File, io::BufReader, path::Path};

pub(crate) fn convert(_context: &Context, arguments: &ConvertArguments) -> CommandResult {
    let path = &arguments.file;
    if let Ok(mut reader) = Reader::open(path) {
        return recording(path, &mut reader);
    }
    let name = path.display().to_string();
    let text = read_text(path).with_context(|| format!("cannot read {name}")).or_exit(Exit::BadInput)?;
    if is_study(&text) {
        let words = format!("{name} is a study, not a load; `fstone run {name}` takes it");
        return Err(Failure::new(Exit::BadInput, words));
    }
    let source = Source::new(name, text);
    // Profiles of FFSB have had any name.
    let format = loads::by_extension(source.name()).unwrap_or(ffsb::FORMAT);
    let mut document = Document { source: &source, seconds: arguments.seconds, loader: &mut beside(path) };
    let (text, warnings) = format.convert(&mut document).or_exit(Exit::BadInput)?;
    if let Some(warnings) = warnings {
        terminal::tell(&format!("{warnings}\n"));
    }
    print(&text)
}

/// Whether a file has the tables of a study, which no load has.
fn is_study(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == "[[step]]") && text.lines().any(|line| line.starts_with("title"))
}

/// A recording: a workload that resembles it, and how far it does.
fn recording(path: &Path, reader: &mut Reader<BufReader<File>>) -> CommandResult {
    let name = path.file_stem().map(|name| text::line(&name.to_string_lossy())).unwrap_or_default();
    let failed = || format!("cannot read {}", path.display());
    let Likeness { workload, calls, covered, left_out, speed } =
        fstone_record::likeness(reader, &name).with_context(failed).or_exit(Exit::LabFailed)?;
    if calls == 0 {
        return Err(Failure::new(Exit::BadInput, format!("cannot convert {}: {EMPTY}", path.display())));
    }
    let share = 100.0 * covered as f64 / calls.max(1) as f64;
    let mut text = format!(
        "# Resembles {name}: {share:.0} % of its {calls} calls are part of these operations. Their order, and which file each is about, are not\n\
         # the application's. Measure both, in a study with the steps load = {{ replay = \"{name}.rec\" }} and load = {{ workload = … }}.\n"
    );
    if let Some(speed) = speed {
        let _ = writeln!(text, "# {speed}");
    }
    if reader.ending() != Some(Ending::Whole) {
        let _ = writeln!(text, "# The recording was not finished, or is damaged: this is of what it has.");
    }
    for (what, count) in left_out {
        let _ = writeln!(text, "# Not in it: {count} {what}");
    }
    print(&format!("{text}{}", native::print(&workload)))
}

fn print(text: &str) -> CommandResult {
    if text.len() > native::MAXIMUM_BYTES {
        let words = format!(
            "as a workload file this load would have {}, but fstone reads at most {}: run the file as it is",
            format_bytes(text.len() as u64),
            format_bytes(native::MAXIMUM_BYTES as u64)
        );
        return Err(Failure::new(Exit::BadInput, words));
    }
    terminal::print_document(text);
    Ok(Exit::Success)
}
