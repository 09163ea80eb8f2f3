//! An index page of many runs.

use super::shared::css;
use crate::{Analysis, text::line, when};
use askama::Template;
use fstone_model::Dataset;

/// A run as the index shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// Where its page is, relative to the index.
    pub href: String,
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
    /// Host name.
    pub host: String,
    /// Kernel name and release.
    pub kernel: String,
    /// Trials that completed.
    pub completed: usize,
    /// All trials.
    pub trials: usize,
    /// What its user says about it.
    pub note: Option<String>,
    /// The first sentence of the answer.
    pub answer: String,
}

impl IndexEntry {
    /// The entry of a run whose page is at `href`. The load engine's reports do not matter for it.
    #[must_use]
    pub fn of(dataset: &Dataset, href: &str) -> Self {
        let analysis = Analysis::of(dataset);
        let run = &dataset.run;
        Self {
            href: href.to_owned(),
            id: run.id,
            study: line(&run.plan.study),
            title: line(&run.plan.title),
            quick: run.plan.quick,
            started_unix_ns: run.started_unix_ns,
            host: line(&run.inventory.host),
            kernel: line(&run.inventory.kernel).split(' ').take(2).collect::<Vec<_>>().join(" "),
            completed: analysis.completed(),
            trials: dataset.trials.len(),
            note: run.note.as_ref().map(|note| line(note.as_str())),
            answer: analysis.sentences().into_iter().next().unwrap_or_default(),
        }
    }
}

#[derive(Template)]
#[template(path = "index.html")]
struct Page {
    css: String,
    studies: Vec<Study>,
    runs: usize,
}

struct Study {
    id: String,
    name: String,
    title: String,
    runs: Vec<Line>,
}

struct Line {
    href: String,
    id: u64,
    when: String,
    quick: bool,
    host: String,
    kernel: String,
    trials: String,
    note: Option<String>,
    answer: String,
}

/// An index of runs, by study, the newest first.
#[must_use]
pub fn index(entries: &[IndexEntry]) -> String {
    let mut newest: Vec<&IndexEntry> = entries.iter().collect();
    newest.sort_by_key(|entry| std::cmp::Reverse((entry.started_unix_ns, entry.id)));
    let mut studies: Vec<Study> = Vec::new();
    for entry in newest {
        let at = studies.iter().position(|study| study.name == entry.study).unwrap_or_else(|| {
            let id = format!("study-{}", studies.len() + 1);
            studies.push(Study { id, name: entry.study.clone(), title: entry.title.clone(), runs: Vec::new() });
            studies.len() - 1
        });
        studies[at].runs.push(Line {
            href: safe(&entry.href),
            id: entry.id,
            when: when::minute(entry.started_unix_ns),
            quick: entry.quick,
            host: entry.host.clone(),
            kernel: entry.kernel.clone(),
            trials: if entry.completed == entry.trials {
                entry.trials.to_string()
            } else {
                format!("{} of {}", entry.completed, entry.trials)
            },
            note: entry.note.clone(),
            answer: entry.answer.clone(),
        });
    }
    Page { css: css(), runs: entries.len(), studies }.render().expect("writing to a string does not fail")
}

/// Whether the start of a page is that of an index that fstone made, of whichever version.
#[must_use]
pub fn is_index(head: &str) -> bool {
    head.contains("<title>Runs · fstone</title>")
}

/// A relative address, whatever it was: one with a scheme could be a script.
fn safe(href: &str) -> String {
    let href = line(href);
    let scheme = href.split(['/', '?', '#']).next().is_some_and(|head| head.contains(':'));
    if scheme { format!("./{href}") } else { href }
}

#[cfg(test)]
mod tests {
    use super::{index, is_index, safe};

    #[test]
    fn an_index_is_known_by_its_title() {
        let page = index(&[]);
        assert!(is_index(page.split_once("<style>").expect("it has one").0));
        assert!(!is_index("<!doctype html><title>My benchmarks with fstone</title>"));
    }

    #[test]
    fn addresses_stay_relative() {
        assert_eq!(safe("run-3.html"), "run-3.html");
        assert_eq!(safe("javascript:alert(1)"), "./javascript:alert(1)");
        assert_eq!(safe("runs/a:b.html"), "runs/a:b.html");
    }
}
