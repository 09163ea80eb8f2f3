//! The first page of a served store: its runs, those that are going on, and two to compare.

use super::shared::css;
use crate::{
    text::{counted, line},
    when,
};
use askama::Template;
use serde::{Deserialize, Serialize};

/// A run as the board shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardRun {
    /// Its number.
    pub id: u64,
    /// The study's short name.
    pub study: String,
    /// The study's title.
    pub title: String,
    /// Whether `[quick]` was applied.
    pub quick: bool,
    /// When it started, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// When it ended; `None` while it runs, or when it was killed.
    pub finished_unix_ns: Option<u64>,
    /// Host name.
    pub host: String,
    /// Kernel.
    pub kernel: String,
    /// What its user says about it.
    pub note: Option<String>,
    /// How many trials ended how: ("completed", 14).
    pub outcomes: Vec<(String, u64)>,
    /// Whether it has ended, in a word or two.
    pub state: &'static str,
    /// How it goes, while a process of this machine is at work on it.
    pub live: Option<Live>,
}

/// How a run goes that is going on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Live {
    /// The run.
    pub run: u64,
    /// Trials that are done.
    pub trials: u64,
    /// Trials there will be at least.
    pub planned: u64,
    /// The row that is tried now; `None` between two trials.
    pub current: Option<String>,
    /// For how long.
    pub since_seconds: Option<u64>,
    /// Since the run's start.
    pub running_seconds: u64,
    /// What it does just now; `None` where its process does not say.
    pub now: Option<Now>,
}

/// What a run does just now, in the words of `fstone run --live`. Each may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// The step: "load (read 3 s of 10 s)".
    pub step: String,
    /// What the load did in the last second or so: "12,345/s · 48.2 MiB/s · p50 80 µs, p99 1.2 ms".
    pub figures: String,
    /// "3 min left".
    pub left: String,
    /// Which rows are told apart so far.
    pub known: String,
}

#[derive(Template)]
#[template(path = "board.html")]
struct Page {
    css: String,
    runs: Vec<Row>,
    live: Vec<LiveRow>,
    histories: Vec<(String, String)>,
}

struct Row {
    id: u64,
    study: String,
    title: String,
    quick: bool,
    started: String,
    took: String,
    host: String,
    kernel: String,
    note: Option<String>,
    trials: String,
    /// Whether it is chosen as the one before, or after, until the reader chooses.
    is_before: bool,
    is_after: bool,
}

struct LiveRow {
    id: u64,
    title: String,
    trials: u64,
    planned: u64,
    words: String,
    figures: String,
    known: String,
}

/// The board as a page with a small script that keeps its progress up to date (it asks `/live.json`).
#[must_use]
pub fn board(runs: &[BoardRun]) -> String {
    let mut newest: Vec<&BoardRun> = runs.iter().collect();
    newest.sort_by_key(|run| std::cmp::Reverse(run.id));
    // The last run and the one before it of the same study are what most would compare.
    let chosen = newest.first().and_then(|after| {
        let before = newest.iter().skip(1).find(|run| run.study == after.study)?;
        Some((before.id, after.id))
    });
    let mut studies: Vec<&str> = Vec::new();
    for run in &newest {
        if !studies.contains(&run.study.as_str()) {
            studies.push(&run.study);
        }
    }
    Page {
        css: css(),
        histories: studies.into_iter().map(|study| (line(study), encoded(study))).collect(),
        live: newest
            .iter()
            .filter_map(|run| run.live.as_ref().map(|live| (run, live)))
            .map(|(run, live)| LiveRow {
                id: run.id,
                title: line(&run.title),
                trials: live.trials,
                planned: live.planned,
                words: words(live),
                figures: live.now.as_ref().map_or_else(String::new, |now| line(&now.figures)),
                known: live.now.as_ref().map_or_else(String::new, |now| line(&now.known)),
            })
            .collect(),
        runs: newest
            .into_iter()
            .map(|run| Row {
                id: run.id,
                study: line(&run.study),
                title: line(&run.title),
                quick: run.quick,
                started: when::minute(run.started_unix_ns),
                took: match run.finished_unix_ns {
                    Some(end) => when::duration(end.saturating_sub(run.started_unix_ns)),
                    None => run.state.to_owned(),
                },
                host: line(&run.host),
                kernel: line(&run.kernel).split(' ').take(2).collect::<Vec<_>>().join(" "),
                note: run.note.as_deref().map(line),
                trials: outcomes(&run.outcomes),
                is_before: chosen.is_some_and(|(before, _)| before == run.id),
                is_after: chosen.is_some_and(|(_, after)| after == run.id),
            })
            .collect(),
    }
    .render()
    .expect("writing to a string does not fail")
}

/// "14 completed, 1 refused".
fn outcomes(outcomes: &[(String, u64)]) -> String {
    if outcomes.is_empty() {
        return "none".to_owned();
    }
    outcomes.iter().map(|(word, count)| format!("{count} {}", line(word))).collect::<Vec<_>>().join(", ")
}

/// The same words as the script's.
fn words(live: &Live) -> String {
    let current =
        live.current.as_deref().map(|label| format!(", {} for {} s", line(label), live.since_seconds.unwrap_or(0)));
    let told =
        |words: &str, before: &str| if words.is_empty() { String::new() } else { format!("{before}{}", line(words)) };
    let (step, left) =
        live.now.as_ref().map_or_else(Default::default, |now| (told(&now.step, ", "), told(&now.left, " · ")));
    let trials = counted(live.planned as usize, "trial");
    format!("{} of at least {trials}{}{step}{left}", live.trials, current.unwrap_or_default())
}

/// For a query: everything but letters and digits percent-encoded.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => encoded.push(char::from(byte)),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[derive(Template)]
#[template(path = "message.html")]
struct Message<'a> {
    css: String,
    words: String,
    link: Option<(&'a str, &'a str)>,
}

/// A page that says one thing, with a link to go on by as (address, words).
#[must_use]
pub fn message(words: &str, link: Option<(&str, &str)>) -> String {
    Message { css: css(), words: line(words), link }.render().expect("writing to a string does not fail")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_in_queries() {
        assert_eq!(encoded("small-file"), "small-file");
        assert_eq!(encoded("a b&c=ü"), "a%20b%26c%3D%C3%BC");
    }
}
