//! How a command ends that could not do its work.

use crate::exit::Exit;
use std::io;

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

pub(crate) type CommandResult = Result<Exit, Failure>;

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

pub(super) fn cannot_print(error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("cannot write to standard output")
}
