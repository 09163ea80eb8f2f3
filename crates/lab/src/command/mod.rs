//! Programs run by argv, never by a shell, with a limit, in a process group that dies with us.
//!
//! Everything outside this process that the lab starts goes through the [`CommandRunner`] trait: the real one is
//! [`SystemRunner`], the one for tests `FakeRunner`.

mod capture;
#[cfg(any(test, feature = "fakes"))]
mod fake;
mod system;

#[cfg(any(test, feature = "fakes"))]
pub use fake::FakeRunner;
pub use system::{SystemRunner, find_program};

use fstone_model::result::CommandRecord;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// The exit status of a shell, and of `unshare`, for a program that is not there.
pub(crate) const NOT_FOUND: i32 = 127;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The program's name, looked up in PATH and then in the directories of system tools.
    pub program: String,
    pub args: Vec<String>,
    /// Added to the environment. `LC_ALL=C` is always set, so that messages can be read.
    pub env: Vec<(String, String)>,
    /// Its working directory; ours when `None`.
    pub directory: Option<PathBuf>,
    /// Where it is to end before its time: how long after SIGTERM it is killed, for one that has something to put away. Nothing: it is
    /// killed at once.
    pub grace: Duration,
    /// Who it runs as; this process' user when `None`.
    pub user: Option<User>,
    /// Whether all that it prints is kept, for figures that are taken out of it.
    pub kept: bool,
}

/// A user by name and number, and the number of the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub user: u32,
    pub group: u32,
}

impl CommandLine {
    pub fn new<I>(program: &str, args: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Self {
            program: program.to_owned(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            directory: None,
            grace: Duration::ZERO,
            user: None,
            kept: false,
        }
    }

    #[must_use]
    pub fn in_directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    pub fn argv(&self) -> Vec<String> {
        let user = self.user.iter().flat_map(|user| ["runuser", "-u", user.name.as_str(), "--"]).map(str::to_owned);
        user.chain(std::iter::once(&self.program).chain(&self.args).cloned()).collect()
    }

    pub fn typed(&self) -> String {
        typed(&self.argv())
    }
}

/// An argument list as a person would type it into a shell: quoted where a shell would otherwise read it differently.
pub fn typed(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%^{}".contains(c);
    argv.iter()
        .map(
            |word| {
                if !word.is_empty() && word.chars().all(plain) {
                    word.clone()
                } else {
                    fstone_model::text::quoted(word)
                }
            },
        )
        .collect::<Vec<_>>()
        .join(" ")
}

/// Time and memory that a command and all its children used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    pub user: Duration,
    pub system: Duration,
    /// Largest resident set of any of its processes.
    pub maximum_resident_bytes: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit status; 128 + n when signal n ended it.
    pub status: i32,
    /// What it printed, its middle left out when long.
    pub stdout: String,
    /// What it printed as errors, its middle left out when long.
    pub stderr: String,
    /// From before it was started until it ended.
    pub duration: Duration,
    pub usage: ResourceUsage,
    /// All that it printed, as output and as errors, up to [`SEARCHED_BYTES`](fstone_model::output::SEARCHED_BYTES) each; empty unless that is kept.
    pub whole: [Vec<u8>; 2],
}

/// Longest [`CommandRecord::output_tail`], in bytes: some twenty lines, so that a week of trials stays small.
pub const RECORD_TAIL_BYTES: usize = 2048;

impl CommandOutput {
    pub fn record(&self, command: &CommandLine) -> CommandRecord {
        let mut text = self.stdout.trim_end().to_owned();
        if !self.stderr.trim().is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(self.stderr.trim_end());
        }
        CommandRecord {
            argv: command.argv(),
            status: Some(self.status),
            duration_ns: u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX),
            output_tail: tail(&text, RECORD_TAIL_BYTES).to_owned(),
        }
    }

    pub(crate) fn says(&self, words: &str) -> bool {
        self.stdout.contains(words) || self.stderr.contains(words)
    }

    /// The tool's own words about why it failed: what it said first on standard error, before it went on to explain
    /// its usage; else what it said on standard output.
    pub fn words(&self) -> String {
        self.said(|lines| lines.truncate(LINES))
    }

    /// The same of a script, which ends with the command that failed; it may print a summary after its error, as dd(1) does.
    pub fn last_words(&self) -> String {
        self.said(|lines| drop(lines.drain(..lines.len().saturating_sub(2 * LINES))))
    }

    fn said(&self, cut: impl Fn(&mut Vec<&str>)) -> String {
        let said = |text: &str| {
            let mut lines: Vec<&str> = text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .take_while(|line| !line.to_ascii_lowercase().starts_with("usage"))
                .collect();
            cut(&mut lines);
            lines.join("; ")
        };
        [said(&self.stderr), said(&self.stdout)]
            .into_iter()
            .find(|words| !words.is_empty())
            .unwrap_or_else(|| format!("exit status {}, without a word", self.status))
    }
}

/// Lines of a tool's output that a reason has.
const LINES: usize = 3;

/// The end of a text, at most this many bytes, from the start of a line where there is one.
fn tail(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let from = text.ceil_char_boundary(text.len() - bytes);
    let cut = &text[from..];
    cut.split_once('\n').map_or(cut, |(_, lines)| lines)
}

/// Why a command gave no exit status of its own; completes "failed to run a command: ".
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{program}: not found in PATH or in /usr/sbin, /sbin, /usr/local/sbin")]
    NotFound { program: String },
    #[error("{command}: {call}: {cause}")]
    System { command: String, call: &'static str, cause: std::io::Error },
    /// It ran longer than its limit and was killed with its process group.
    #[error("{command}: not done within {limit:?}; killed")]
    TimedOut { command: String, limit: Duration, output: Box<CommandOutput> },
    #[error("{command}: stopped on request")]
    Stopped {
        command: String,
        /// What it gave until then, when it had been started.
        output: Option<Box<CommandOutput>>,
    },
    /// It was killed and does not die: it hangs in the kernel.
    #[error("{command}: does not end even when killed: it hangs in the kernel (process {process})")]
    Unkillable { command: String, process: u32 },
}

pub trait CommandRunner: Send + Sync {
    /// Runs a command to its end, or until its limit.
    ///
    /// # Errors
    /// A [`RunError`]; an exit status other than 0 is none.
    fn run(&self, command: &CommandLine, limit: Duration) -> Result<CommandOutput, RunError>;

    fn find(&self, program: &str) -> Option<PathBuf>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_commands_are_quoted_as_a_shell_needs() {
        let command = CommandLine::new("mkfs.ext4", ["-O", "^has_journal,flex_bg", "a b", "it's", ""]);
        assert_eq!(command.typed(), r"mkfs.ext4 -O ^has_journal,flex_bg 'a b' 'it'\''s' ''");
    }

    #[test]
    fn words_are_the_first_lines_before_the_usage() {
        let mut output = CommandOutput {
            status: 1,
            stderr: "unknown option -d nosuch=3\nUsage: mkfs.xfs\n/* blocksize */ [-b]".into(),
            stdout: "banner".into(),
            ..CommandOutput::default()
        };
        assert_eq!(output.words(), "unknown option -d nosuch=3");
        output.stderr.clear();
        assert_eq!(output.words(), "banner");
        output.stdout.clear();
        assert_eq!(output.words(), "exit status 1, without a word");
    }

    #[test]
    fn a_record_keeps_whole_last_lines() {
        let output =
            CommandOutput { stdout: "line é\n".repeat(1000), stderr: "last".into(), ..CommandOutput::default() };
        let record = output.record(&CommandLine::new("x", [""; 0]));
        assert!(record.output_tail.len() <= RECORD_TAIL_BYTES);
        assert!(record.output_tail.starts_with("line é\n") && record.output_tail.ends_with("line é\nlast"));
    }
}
