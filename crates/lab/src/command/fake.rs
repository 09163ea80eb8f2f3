//! A runner that runs nothing: for tests of everything above it.

use super::{CommandLine, CommandOutput, CommandRunner, RunError};
use crate::faults::Faults;
use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Answers commands from a script or from rules, and remembers them.
#[derive(Debug, Default)]
pub struct FakeRunner {
    script: Option<Mutex<VecDeque<(String, CommandOutput)>>>,
    rules: Vec<(String, CommandOutput)>,
    missing: Vec<String>,
    faults: Arc<Faults>,
    calls: Mutex<Vec<CommandLine>>,
}

impl FakeRunner {
    pub fn new() -> Self {
        Self::default()
    }

    /// Expects exactly these commands, as typed, in this order, and answers each with its output. Any other command
    /// panics, and so does [`Self::finish`] when one was not run.
    pub fn scripted<S: Into<String>>(script: impl IntoIterator<Item = (S, CommandOutput)>) -> Self {
        let script = script.into_iter().map(|(typed, output)| (typed.into(), output)).collect();
        Self { script: Some(Mutex::new(script)), ..Self::default() }
    }

    /// Commands that, as typed, start with `prefix` get this output. The first rule that fits wins.
    #[must_use]
    pub fn answering(mut self, prefix: &str, output: CommandOutput) -> Self {
        self.rules.push((prefix.to_owned(), output));
        self
    }

    #[must_use]
    pub fn without(mut self, program: &str) -> Self {
        self.missing.push(program.to_owned());
        self
    }

    #[must_use]
    pub fn with_faults(mut self, faults: Arc<Faults>) -> Self {
        self.faults = faults;
        self
    }

    pub fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).iter().map(CommandLine::typed).collect()
    }

    /// Asserts that a script was run to its end.
    ///
    /// # Panics
    /// When a scripted command was not run.
    pub fn finish(&self) {
        if let Some(script) = &self.script {
            let left = script.lock().unwrap_or_else(PoisonError::into_inner);
            assert!(left.is_empty(), "not run: {left:?}");
        }
    }
}

impl CommandRunner for FakeRunner {
    fn run(&self, command: &CommandLine, _limit: Duration) -> Result<CommandOutput, RunError> {
        if self.missing.contains(&command.program) {
            return Err(RunError::NotFound { program: command.program.clone() });
        }
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(command.clone());
        if self.faults.strikes() {
            return Ok(CommandOutput { status: 1, stderr: "injected fault".into(), ..CommandOutput::default() });
        }
        let typed = command.typed();
        if let Some(script) = &self.script {
            let next = script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((expected, output)) = next else { panic!("not in the script: {typed}") };
            assert_eq!(typed, expected, "another command was expected");
            return Ok(output);
        }
        let rule = self.rules.iter().find(|(prefix, _)| typed.starts_with(prefix));
        Ok(rule.map(|(_, output)| output.clone()).unwrap_or_default())
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        (!self.missing.iter().any(|missing| missing == program)).then(|| PathBuf::from("/usr/sbin").join(program))
    }
}
