//! What the terminal is, and how errors look on it.

use crate::{args::ColorWhen, exit::Exit};
use std::io::{IsTerminal, Write, stderr, stdout};

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

/// The result of every command.
pub(crate) type CommandResult = Result<Exit, Failure>;

/// Says which exit code an error means.
pub(crate) trait OrExit<T> {
    fn or_exit(self, exit: Exit) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrExit<T> for Result<T, E> {
    fn or_exit(self, exit: Exit) -> Result<T, Failure> {
        self.map_err(|error| Failure { exit, error: error.into() })
    }
}

impl Failure {
    pub(crate) fn new(exit: Exit, words: impl std::fmt::Display) -> Self {
        Self { exit, error: anyhow::anyhow!("{words}") }
    }
}

/// Whether to colour standard output.
pub(crate) fn colored(when: ColorWhen, stream: &impl IsTerminal) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => stream.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}

/// Columns of the terminal; 80 when it is none.
pub(crate) fn width() -> usize {
    rustix::termios::tcgetwinsize(stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns >= 40)
        .unwrap_or(80)
}

/// Prints to standard output; a reader that went away (`| head`) ends the program quietly.
pub(crate) fn print(text: &str) {
    let mut out = stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Text of others without control characters: nothing that a terminal obeys.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The same for text that may have several lines.
pub(crate) fn harmless_lines(text: &str) -> String {
    text.lines().map(harmless).collect::<Vec<_>>().join("\n")
}

/// Prints text of others, a line at least.
pub(crate) fn print_lines(text: &str) {
    print(&(harmless_lines(text) + "\n"));
}

/// Prints an error with everything that led to it, one cause a line.
pub(crate) fn print_failure(failure: &Failure) {
    let mut causes = failure.error.chain();
    let first = causes.next().map(ToString::to_string).unwrap_or_default();
    // Diagnostics of a file come with their own "error:" heads.
    let text = if first.starts_with("error") { first } else { format!("fstone: {first}") };
    let mut err = stderr().lock();
    let _ = writeln!(err, "{}", harmless_lines(text.trim_end()));
    for cause in causes {
        let _ = writeln!(err, "  because {}", harmless_lines(&cause.to_string()));
    }
}
