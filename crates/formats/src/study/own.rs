//! Filesystems of a study's own: `[filesystem.NAME]`.
//!
//! Their commands are words, not a shell's text; the lab puts in what stands in braces.

use super::{
    placeholder,
    surface::{CommandWords, FilesystemSurface, OwnSurface, StudyFile},
};
use crate::{
    decode::{At, Field},
    diagnostic::{Diagnostic, Report, Span, closest},
};
use fstone_model::{
    own::{OwnCommand, OwnFilesystem},
    study::FilesystemType,
};
use std::sync::Arc;

const LONGEST_NAME: usize = 40;

pub(super) struct Own {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) filesystem: Arc<OwnFilesystem>,
}

impl Own {
    /// Its commands are the study's to write, so a level has nothing to add to them.
    pub(super) fn refuse_options(&self, level: &FilesystemSurface, report: &mut Report) {
        let keys = [
            level.mkfs.as_ref().map(|field| ("mkfs", field.key)),
            level.mount.as_ref().map(|field| ("mount", field.key)),
            level.tree.as_ref().map(|field| ("tree", field.key)),
        ];
        for (key, span) in keys.into_iter().flatten() {
            report.push(
                Diagnostic::error(span, format!("`{key}` is for the types that fstone knows itself"))
                    .context(self.span, "one of the study's own")
                    .help(format!(
                        "write options into the commands; for a row with others, add a second table: [filesystem.{}-2]",
                        self.name
                    )),
            );
        }
    }
}

pub(super) fn filesystems(
    surface: &StudyFile,
    types: &[FilesystemType],
    variables: &[(String, String)],
    report: &mut Report,
) -> Vec<Own> {
    let entries = surface.filesystem.iter().flat_map(|field| &field.value.0);
    let own = entries.filter_map(|(name, table)| {
        if !check_name(name, types, report) {
            return None;
        }
        Some(Own {
            name: name.value.clone(),
            span: name.span,
            filesystem: Arc::new(filesystem(&table.value, variables, report)?),
        })
    });
    own.collect()
}

fn check_name(name: &At<String>, types: &[FilesystemType], report: &mut Report) -> bool {
    let written = name.value.as_str();
    if types.iter().any(|known| known.name == written) {
        report.push(
            Diagnostic::error(name.span, format!("fstone knows `{written}` itself"))
                .label("expected another name")
                .help(format!("for example: [filesystem.my-{written}], and type = \"my-{written}\" in its level")),
        );
        return false;
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let good = written.starts_with(|c: char| c.is_ascii_lowercase()) && written.chars().all(plain);
    if !good || written.len() > LONGEST_NAME {
        report.push(
            Diagnostic::error(name.span, format!("no filesystem can be called `{}`", written.escape_debug())).label(
                format!("expected small letters, digits, `-`, `_` and `.`, a letter first, {LONGEST_NAME} at most"),
            ),
        );
    }
    good && written.len() <= LONGEST_NAME
}

fn filesystem(surface: &OwnSurface, variables: &[(String, String)], report: &mut Report) -> Option<OwnFilesystem> {
    let mut command = |which: OwnCommand| {
        let Some(field) = field_of(surface, which) else { return Vec::new() };
        check_command(which, field, variables, report);
        field.value.iter().map(|word| word.value.0.clone()).collect()
    };
    let own = OwnFilesystem {
        make: command(OwnCommand::Make),
        mount: command(OwnCommand::Mount),
        unmount: command(OwnCommand::Unmount),
        check: command(OwnCommand::Check),
        remove: command(OwnCommand::Remove),
        packages: surface.packages.as_ref().map(|field| packages(&field.value, report)).unwrap_or_default(),
        clients: surface.clients.as_ref().map_or(1, |field| u32::try_from(field.value.0).expect("at most 64")),
    };
    // One without has been reported.
    let field = surface.mount.as_ref()?;
    if !own.mount.iter().any(|word| word.contains("{mountpoint}")) {
        report.push(
            Diagnostic::error(field.span, "`mount` does not say where")
                .label("expected the word `{mountpoint}` among these")
                .help("for example: mount = [\"bindfs\", \"{directory}\", \"{mountpoint}\"]"),
        );
    }
    Some(own)
}

fn field_of(surface: &OwnSurface, which: OwnCommand) -> Option<&Field<CommandWords>> {
    match which {
        OwnCommand::Make => surface.make.as_ref(),
        OwnCommand::Mount => surface.mount.as_ref(),
        OwnCommand::Unmount => surface.unmount.as_ref(),
        OwnCommand::Check => surface.check.as_ref(),
        OwnCommand::Remove => surface.remove.as_ref(),
    }
}

fn check_command(which: OwnCommand, field: &Field<CommandWords>, variables: &[(String, String)], report: &mut Report) {
    if field.value.first().is_none_or(|program| program.value.0.trim().is_empty()) {
        report.push(
            Diagnostic::error(field.span, format!("`{}` is empty", which.word()))
                .label("expected a program and its arguments, or no such key"),
        );
    }
    let known: Vec<&str> =
        which.placeholders().iter().copied().chain(variables.iter().map(|(name, _)| name.as_str())).collect();
    for word in &field.value {
        // A script may have several lines.
        if let Some(letter) = word.value.0.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
            report.push(
                Diagnostic::error(word.span, format!("a command has the control character {letter:?}"))
                    .label("expected text that can be printed"),
            );
        }
        for name in placeholder::names(&word.value.0).filter(|name| !known.contains(name)) {
            report.push(unknown_name(which, name, word.span, &known));
        }
    }
}

fn unknown_name(which: OwnCommand, name: &str, span: Span, known: &[&str]) -> Diagnostic {
    let elsewhere = OwnCommand::ALL.iter().find(|other| other.placeholders().contains(&name));
    let listed: Vec<String> = known.iter().map(|name| format!("`{{{name}}}`")).collect();
    let note = format!("`{}` may have {}", which.word(), listed.join(", "));
    let message = match elsewhere {
        Some(_) => format!("`{}` has no `{{{name}}}`", which.word()),
        None => format!("nothing is called `{{{name}}}`"),
    };
    let diagnostic = Diagnostic::error(span, message).label("in these words").note(note);
    match (elsewhere, name) {
        (Some(_), "mountpoint" | "client") => diagnostic.help("nothing is mounted while it runs"),
        (Some(_), _) => diagnostic.help("use `{directory}`: the device may be gone by then"),
        (None, "mount") => diagnostic.help("did you mean `{mountpoint}`?"),
        (None, _) => match closest(name, known.iter().copied()) {
            Some(meant) => diagnostic.help(format!("did you mean `{{{meant}}}`?")),
            None => {
                diagnostic.help("where the braces are the command's own, put a blank behind the first: `{ print }`")
            }
        },
    }
}

/// Names as Debian allows them: they are printed as part of a command to type.
fn packages(words: &CommandWords, report: &mut Report) -> Vec<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    for word in words {
        let name = word.value.0.as_str();
        if !(name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)) {
            let message = format!("`{}` is no package's name", name.escape_debug());
            report.push(Diagnostic::error(word.span, message).label("expected small letters, digits, `+`, `-`, `.`"));
        }
    }
    words.iter().map(|word| word.value.0.clone()).collect()
}

pub(super) fn words(surface: &StudyFile) -> Vec<&str> {
    let tables = surface.filesystem.iter().flat_map(|field| &field.value.0);
    let fields =
        tables.flat_map(|(_, table)| OwnCommand::ALL.into_iter().filter_map(|which| field_of(&table.value, which)));
    fields.flat_map(|field| &field.value).map(|word| word.value.0.as_str()).collect()
}
