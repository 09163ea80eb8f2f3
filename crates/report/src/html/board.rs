//! The first page of a served store: its runs, those in progress, and two to compare.

use super::shared::css;
use crate::{
    text::{counted, line},
    when,
};
use askama::Template;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardRun {
    pub id: u64,
    pub study: String,
    pub title: String,
    pub quick: bool,
    pub started_unix_ns: u64,
    /// When it ended; `None` while it runs, or when it was killed.
    pub finished_unix_ns: Option<u64>,
    pub host: String,
    pub kernel: String,
    pub note: Option<String>,
    /// How many trials ended how: ("completed", 14).
    pub outcomes: Vec<(String, u64)>,
    pub state: &'static str,
    pub live: Option<Live>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    pub run: u64,
    pub trials: u64,
    /// Trials that the plan has at least.
    pub planned: u64,
    /// The row that is tried now; `None` between two trials.
    pub current: Option<String>,
    pub since_seconds: Option<u64>,
    /// What it does just now; `None` where its process does not say.
    pub now: Option<Now>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// Trials there will be in all as far as the run knows: a row that is skipped has one, whatever was planned. 0 until the run knows.
    pub total: u64,
    /// The step: "load (read 3 s of 10 s)".
    pub step: String,
    /// What the load did in the last second or so: "12,345/s · 48.2 MiB/s · p50 80 µs, p99 1.2 ms".
    pub figures: String,
    /// "3 min left".
    pub left: String,
    /// Which rows differ so far.
    pub known: String,
}

#[derive(Template)]
#[template(path = "board.html")]
struct Page {
    css: String,
    runs: Vec<Row>,
    live: Vec<LiveRow>,
    several: bool,
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
    /// Whether it is preselected as the run before, or after.
    is_before: bool,
    is_after: bool,
}

#[derive(Serialize)]
struct LiveRow {
    run: u64,
    title: String,
    trials: u64,
    planned: u64,
    words: String,
    figures: String,
    known: String,
}

impl LiveRow {
    fn of(run: &BoardRun) -> Option<Self> {
        let live = run.live.as_ref()?;
        let now = live.now.clone().unwrap_or_default();
        Some(Self {
            run: run.id,
            title: line(&run.title),
            trials: live.trials,
            planned: if now.total > 0 { now.total } else { live.planned },
            words: words(live),
            figures: line(&now.figures),
            known: line(&now.known),
        })
    }
}

/// What the board's script asks for: the runs in progress as a JSON array.
///
/// # Panics
/// Never: plain data always becomes JSON.
pub fn live_json(runs: &[BoardRun]) -> String {
    serde_json::to_string(&live_rows(runs.iter())).expect("plain data becomes JSON")
}

fn live_rows<'a>(runs: impl Iterator<Item = &'a BoardRun>) -> Vec<LiveRow> {
    runs.filter_map(LiveRow::of).collect()
}

/// The board as a page with a small script that keeps its progress up to date (it asks `/live.json`).
pub fn board(runs: &[BoardRun]) -> String {
    let mut newest: Vec<&BoardRun> = runs.iter().collect();
    newest.sort_by_key(|run| std::cmp::Reverse(run.id));
    // Most readers want to compare the last run with the one before it of the same study.
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
        live: live_rows(newest.iter().copied()),
        several: newest.len() > 1,
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

/// "17 of 41 trials, ext4 for 2 s, load (read 1 s of 10 s) · 1 min left".
fn words(live: &Live) -> String {
    let current =
        live.current.as_deref().map(|label| format!(", {} for {} s", line(label), live.since_seconds.unwrap_or(0)));
    let told =
        |words: &str, before: &str| if words.is_empty() { String::new() } else { format!("{before}{}", line(words)) };
    let (step, left) =
        live.now.as_ref().map_or_else(Default::default, |now| (told(&now.step, ", "), told(&now.left, " · ")));
    let total = match live.now.as_ref().map_or(0, |now| now.total) {
        0 => format!("at least {}", counted(live.planned as usize, "trial")),
        total => counted(total as usize, "trial"),
    };
    format!("{} of {total}{}{step}{left}", live.trials, current.unwrap_or_default())
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
pub fn message(words: &str, link: Option<(&str, &str)>) -> String {
    Message { css: css(), words: line(words), link }.render().expect("writing to a string does not fail")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: u64, live: Option<Live>) -> BoardRun {
        BoardRun {
            id,
            study: "small-file".to_owned(),
            title: "Small files".to_owned(),
            quick: true,
            started_unix_ns: 0,
            finished_unix_ns: None,
            host: "bench1".to_owned(),
            kernel: "Linux 6.12".to_owned(),
            note: None,
            outcomes: Vec::new(),
            state: "in progress",
            live,
        }
    }

    fn live(total: u64) -> Live {
        let now = Now { total, figures: "12,345/s".to_owned(), ..Now::default() };
        let current = Some("ext4".to_owned());
        Live { run: 1, trials: 17, planned: 56, current, now: Some(now), since_seconds: Some(2) }
    }

    /// Rows that are skipped have one trial each, so the plan's number is never reached.
    #[test]
    fn progress_is_out_of_the_trials_that_there_will_be() {
        let page = board(&[run(1, Some(live(41)))]);
        assert!(
            page.contains("17 of 41 trials, ext4 for 2 s") && page.contains("<progress max=\"41\" value=\"17\""),
            "{page}"
        );
        assert!(board(&[run(1, Some(live(0)))]).contains("17 of at least 56 trials"));
        assert_eq!(
            live_json(&[run(2, None), run(1, Some(live(41)))]),
            "[{\"run\":1,\"title\":\"Small files\",\"trials\":17,\"planned\":41,\
             \"words\":\"17 of 41 trials, ext4 for 2 s\",\"figures\":\"12,345/s\",\"known\":\"\"}]"
        );
    }

    #[test]
    fn a_page_without_runs_waits_for_one() {
        assert!(board(&[]).contains("fetch(\"/live.json\")"));
    }

    #[test]
    fn two_runs_can_be_compared_and_one_cannot() {
        assert!(!board(&[run(1, None)]).contains("Compare"));
        assert!(board(&[run(1, None), run(2, None)]).contains("Compare"));
    }

    #[test]
    fn names_are_safe_in_queries() {
        assert_eq!(encoded("small-file"), "small-file");
        assert_eq!(encoded("a b&c=ü"), "a%20b%26c%3D%C3%BC");
    }
}
