//! Programs that run beside the steps of a trial, such as a database.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A service, with its commands as words. `{data}` stands for its directory, which has its name and is in the mounted filesystem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    pub name: String,
    /// Fills its directory, once in a trial; empty if that needs no program.
    pub make: Vec<String>,
    pub start: Vec<String>,
    pub ready: Ready,
    /// Ends it; SIGTERM if empty.
    pub stop: Vec<String>,
    /// Relative path in its directory of a file that it writes its log to, besides what it prints.
    pub log: Option<String>,
    /// The user that it runs as if fstone is root.
    pub user: Option<String>,
    /// How long it may take to be ready, and to stop.
    pub limit: Duration,
}

/// How it is known that a service answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// This command succeeds.
    Command(Vec<String>),
    /// This Unix socket, or this address and port, accepts a connection.
    Socket(String),
    /// Its log has this text.
    Line(String),
}

impl Service {
    /// Its commands, with what they are for.
    pub fn commands(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        let ready = if let Ready::Command(words) = &self.ready { &words[..] } else { &[] };
        let all = [("make", &self.make[..]), ("start", &self.start), ("ready", ready), ("stop", &self.stop)];
        all.into_iter().filter(|(_, words)| !words.is_empty())
    }

    /// All its texts in which names in braces are filled in.
    pub fn words(&self) -> impl Iterator<Item = &String> {
        let ready = match &self.ready {
            Ready::Command(words) => &words[..],
            Ready::Socket(text) | Ready::Line(text) => std::slice::from_ref(text),
        };
        self.make.iter().chain(&self.start).chain(ready).chain(&self.stop)
    }

    /// The same, in the same order.
    pub fn words_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let ready = match &mut self.ready {
            Ready::Command(words) => &mut words[..],
            Ready::Socket(text) | Ready::Line(text) => std::slice::from_mut(text),
        };
        self.make.iter_mut().chain(&mut self.start).chain(ready).chain(&mut self.stop)
    }
}
