//! How a command ends that could not do its work.

use crate::exit::Exit;
use std::io;

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

/// Output that did not arrive.
pub(super) fn cannot_print(error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("cannot write to standard output")
}
