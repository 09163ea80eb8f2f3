//! The common beginning and end of commands that run another program's command line as many tasks.

use super::ranks;
use crate::{
    exit::Exit,
    launcher,
    terminal::{self, Failure, OrExit},
};
use fstone_formats::{
    Diagnostics,
    letters::{self, CommandLine},
};
use fstone_model::text;
use serde_json::Value;
use std::ops::ControlFlow;

/// Reads the words of a command line. It ends here if they ask for help, and if they are wrong and another task reports it.
pub(super) fn begin<T>(
    words: &[String],
    help: fn() -> String,
    parse: impl FnOnce(&CommandLine) -> Result<T, Diagnostics>,
    warnings: fn(&T) -> Option<&Diagnostics>,
) -> Result<ControlFlow<Exit, T>, Failure> {
    if letters::asks_for_help(words) {
        terminal::print(&help());
        return Ok(ControlFlow::Break(Exit::Success));
    }
    let first = launcher::launched().is_none_or(|launched| launched.rank == 0);
    #[cfg(not(feature = "mpi"))]
    if let Some(launched) = launcher::launched() {
        return Err(ranks::refusal(&launched));
    }
    let parsed = match parse(&CommandLine::of_arguments(words)) {
        Err(_) if !first => return Ok(ControlFlow::Break(ranks::told_by_first())),
        parsed => parsed.or_exit(Exit::BadInput)?,
    };
    if let Some(warnings) = warnings(&parsed).filter(|_| first) {
        terminal::tell(&format!("{warnings}\n"));
    }
    Ok(ControlFlow::Continue(parsed))
}

/// The command line, each word quoted, as mdtest prints it.
pub(super) fn typed(program: &str, words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| text::quoted(word)).collect();
    format!("fstone {program} {}", words.join(" "))
}

/// A document for programs, with a line end.
pub(super) fn document(value: &Value) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(value).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_typed_again() {
        let words = ["-d", "/mnt/it's here"].map(str::to_owned);
        assert_eq!(typed("mdtest", &words), r"fstone mdtest '-d' '/mnt/it'\''s here'");
    }
}
