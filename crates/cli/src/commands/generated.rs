//! What is generated from the definitions: schema, list of keys, completions, manual.

use crate::{
    args::Arguments,
    documents,
    exit::Exit,
    keys,
    terminal::{self, CommandResult, Failure, OrExit},
};
use clap::CommandFactory;
use clap_mangen::Man;
use std::{io, path::Path};

pub(crate) fn schema() -> CommandResult {
    let schema = serde_json::to_string_pretty(&fstone_formats::study::schema()).or_exit(Exit::LabFailed)?;
    terminal::print_document(&(schema + "\n"));
    Ok(Exit::Success)
}

pub(crate) fn keys(text: &str) -> CommandResult {
    terminal::print_document(text);
    Ok(Exit::Success)
}

pub(crate) fn completions(shell: clap_complete::Shell) -> CommandResult {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "fstone", &mut text);
    terminal::print_document(&String::from_utf8_lossy(&text));
    Ok(Exit::Success)
}

pub(crate) fn manual(directory: Option<&Path>) -> CommandResult {
    let command = Arguments::command();
    let Some(directory) = directory else {
        let mut text = Vec::new();
        Man::new(command).render(&mut text).or_exit(Exit::LabFailed)?;
        terminal::print_document(&String::from_utf8_lossy(&text));
        return Ok(Exit::Success);
    };
    if !directory.is_dir() {
        let words = format!("there is no directory {}; make it, or name another with --directory", directory.display());
        return Err(Failure::new(Exit::BadInput, words));
    }
    write_pages(command, directory).map_err(|Failure { exit, error }| Failure {
        exit,
        error: error.context(format!("cannot write the manual into {}", directory.display())),
    })?;
    Ok(Exit::Success)
}

fn write_pages(command: clap::Command, directory: &Path) -> Result<(), Failure> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        let man = Man::new(command.clone());
        let mut page = Vec::new();
        render(&man, command.get_name(), &mut page).or_exit(Exit::LabFailed)?;
        documents::publish(&directory.join(man.get_filename()), page)?;
        waiting.extend(command.get_subcommands().filter(|of| !of.is_hide_set()).cloned());
    }
    Ok(())
}

/// Lists of keys read badly as the help of a command: their pages are made of sections.
fn render(man: &Man, command: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let Some(sections) = keys::sections(command) else { return man.render(page) };
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_description_section(page)?;
    sections.to_writer(page)
}
