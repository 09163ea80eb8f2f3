//! What is generated from the definitions: schema, completions, manual.

use crate::{
    args::Arguments,
    exit::Exit,
    terminal::{self, CommandResult, OrExit},
};
use clap::CommandFactory;

/// The study file's JSON schema.
pub(crate) fn schema() -> CommandResult {
    let schema = serde_json::to_string_pretty(&fstone_formats::study::schema()).or_exit(Exit::LabFailed)?;
    terminal::print_document(&(schema + "\n"));
    Ok(Exit::Success)
}

/// Completions for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> CommandResult {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "fstone", &mut text);
    terminal::print_document(&String::from_utf8_lossy(&text));
    Ok(Exit::Success)
}

/// The manual page.
pub(crate) fn manual() -> CommandResult {
    let mut text = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut text).or_exit(Exit::LabFailed)?;
    terminal::print_document(&String::from_utf8_lossy(&text));
    Ok(Exit::Success)
}
