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
    Source,
    ffsb::Ffsb,
    loads::{self, Document},
    native,
};
use fstone_model::units::format_bytes;

pub(crate) fn convert(_context: &Context, arguments: &ConvertArguments) -> CommandResult {
    let path = &arguments.file;
    let name = path.display().to_string();
    let text = read_text(path).with_context(|| format!("cannot read {name}")).or_exit(Exit::BadInput)?;
    let source = Source::new(name, text);
    // Profiles of FFSB have had any name.
    let format = loads::by_extension(source.name()).unwrap_or(&Ffsb);
    let mut document = Document { source: &source, seconds: arguments.seconds, loader: &mut beside(path) };
    let (text, warnings) = format.convert(&mut document).or_exit(Exit::BadInput)?;
    if let Some(warnings) = warnings {
        terminal::tell(&format!("{warnings}\n"));
    }
    if text.len() > native::MAXIMUM_BYTES {
        let words = format!(
            "as a workload file this load would have {}, but fstone reads at most {}: run the file as it is",
            format_bytes(text.len() as u64),
            format_bytes(native::MAXIMUM_BYTES as u64)
        );
        return Err(Failure::new(Exit::BadInput, words));
    }
    terminal::print_document(&text);
    Ok(Exit::Success)
}
