//! What is generated from the definitions: schema, list of keys, completions, manual.

use crate::{
    args::Arguments,
    exit::Exit,
    keys,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;
use std::{fs, io, path::Path};

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
    write_pages(command, directory)
        .with_context(|| format!("cannot write the manual into {}", directory.display()))
        .or_exit(Exit::LabFailed)?;
    Ok(Exit::Success)
}

fn write_pages(mut command: clap::Command, directory: &Path) -> io::Result<()> {
    clap_mangen::generate_to(command.clone(), directory)?;
    // Lists of keys read badly as the help of a command: their pages are made of sections.
    command.build();
    for subcommand in command.get_subcommands() {
        let Some(sections) = keys::sections(subcommand.get_name()) else { continue };
        let man = Man::new(subcommand.clone());
        let mut page = Vec::new();
        man.render_title(&mut page)?;
        man.render_name_section(&mut page)?;
        man.render_description_section(&mut page)?;
        sections.to_writer(&mut page)?;
        fs::write(directory.join(man.get_filename()), page)?;
    }
    Ok(())
}
