//! What was different: options asked for and in force, and the commands that were run.

use crate::{
    Analysis,
    text::{block, line, listing, xml},
};
use fstone_model::{StepKind, Trial, result::KERNEL_WORK, study::Cell};
use std::collections::BTreeMap;

/// Of a list of words longer than this, only what rows do not share is shown.
const LIST_FROM: usize = 3;
/// Commands of more rows than this are left to the JSON.
const MAX_ROWS: usize = 60;

#[derive(Default)]
pub(super) struct Differences {
    pub(super) rows: Vec<Difference>,
    /// What the rows of a family share: (title, [(fact, value)]).
    pub(super) common: Vec<(String, Vec<(String, String)>)>,
}

/// Rows with the same filesystem and the same effect.
#[derive(PartialEq)]
pub(super) struct Difference {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) mkfs: String,
    /// The options that mkfs was really given, with those that were added to the study's.
    pub(super) mkfs_given: String,
    pub(super) mount: String,
    /// More than one when trials of the row differed.
    pub(super) in_force: Vec<String>,
    pub(super) facts: Vec<(String, String)>,
}

pub(super) fn differences(analysis: &Analysis<'_>) -> Differences {
    let mut rows: Vec<Difference> = Vec::new();
    for (row, cell) in analysis.rows.iter().zip(&analysis.dataset.run.plan.cells) {
        let completed: Vec<_> = row.trials.iter().filter(|trial| trial.outcome.is_completed()).collect();
        let Some(first) = completed.first() else { continue };
        let mut in_force: Vec<String> = Vec::new();
        for mount in completed.iter().filter_map(|trial| trial.effective.mount.as_deref()).map(line) {
            if !in_force.contains(&mount) {
                in_force.push(mount);
            }
        }
        let difference = Difference {
            name: line(&cell.filesystem.name),
            kind: line(&cell.filesystem.kind),
            mkfs: line(&cell.filesystem.mkfs.join(" ")),
            mkfs_given: line(&mkfs_given(cell, first)),
            mount: line(&cell.filesystem.mount),
            in_force,
            facts: first.effective.superblock.iter().map(|(name, value)| (line(name), line(value))).collect(),
        };
        if !rows.contains(&difference) {
            rows.push(difference);
        }
    }
    let mut families: Vec<String> = Vec::new();
    let mut common = Vec::new();
    for family in rows.iter().map(|row| family(&row.kind).to_owned()).collect::<Vec<_>>() {
        if families.contains(&family) {
            continue;
        }
        families.push(family.clone());
        let mut members: Vec<&mut Difference> =
            rows.iter_mut().filter(|row| self::family(&row.kind) == family).collect();
        let title = match members.len() {
            1 => format!("The superblock of {}", members[0].name),
            _ => format!("What the superblocks of {} have in common", kinds(&members)),
        };
        let shared = take_common(&mut members);
        if !shared.is_empty() {
            common.push((title, shared));
        }
    }
    Differences { rows, common }
}

/// The arguments of mkfs in the command that a trial ran, without the device, which differs from trial to trial.
fn mkfs_given(cell: &Cell, trial: &Trial) -> String {
    let is_mkfs = |name: &str| cell.steps.iter().any(|step| step.name == name && step.action.kind() == StepKind::Mkfs);
    let command = trial.steps.iter().find(|result| is_mkfs(&result.step)).and_then(|result| result.commands.first());
    let words = command.into_iter().flat_map(|command| command.argv.iter().skip(1));
    words.filter(|word| !word.starts_with("/dev/")).map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Filesystems whose superblocks have the same facts; any other is a family of its own.
fn family(kind: &str) -> &str {
    match kind {
        "ext2" | "ext3" | "ext4" => "ext",
        other => other,
    }
}

/// "ext3 and ext4".
fn kinds(rows: &[&mut Difference]) -> String {
    let mut kinds: Vec<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    listing(&kinds)
}

/// Removes from the rows what all of them share: whole facts, and the shared words of long lists.
fn take_common(rows: &mut [&mut Difference]) -> Vec<(String, String)> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in rows.iter().flat_map(|row| row.facts.iter()) {
        values.entry(name.clone()).or_default().push(value.clone());
    }
    let mut common = Vec::new();
    for (name, of_rows) in values {
        let everywhere = of_rows.len() == rows.len();
        if everywhere && of_rows.iter().all(|value| *value == of_rows[0]) {
            for row in rows.iter_mut() {
                row.facts.retain(|(other, _)| *other != name);
            }
            common.push((name, of_rows[0].clone()));
            continue;
        }
        let shared: Vec<&str> = of_rows[0]
            .split(' ')
            .filter(|word| of_rows.iter().all(|value| value.split(' ').any(|other| other == *word)))
            .collect();
        if everywhere
            && rows.len() > 1
            && !shared.is_empty()
            && of_rows.iter().any(|value| value.split(' ').count() > LIST_FROM)
        {
            for (_, value) in rows.iter_mut().flat_map(|row| row.facts.iter_mut()).filter(|(other, _)| *other == name) {
                let own: Vec<&str> = value.split(' ').filter(|word| !shared.contains(word)).collect();
                *value = if own.is_empty() {
                    "nothing beyond what all have".to_owned()
                } else {
                    format!("… {}", own.join(" "))
                };
            }
            common.push((format!("{name}, shared"), shared.join(" ")));
        }
    }
    common
}

/// (row, commands) of each row's first completed trial, or else its first.
pub(super) fn commands(analysis: &Analysis<'_>) -> Vec<(String, String)> {
    if analysis.rows.len() > MAX_ROWS {
        return Vec::new();
    }
    analysis
        .rows
        .iter()
        .filter_map(|row| {
            let trial = row.trials.iter().find(|trial| trial.outcome.is_completed()).or_else(|| row.trials.first())?;
            let lines: Vec<String> = trial
                .steps
                .iter()
                .flat_map(|step| &step.commands)
                .filter(|command| !command.argv.is_empty() && command.argv != [KERNEL_WORK])
                .map(|command| {
                    let ended = match command.status {
                        None | Some(0) => String::new(),
                        Some(status) => format!("   # exit status {status}"),
                    };
                    let typed: Vec<String> = command.argv.iter().map(|word| quoted(word)).collect();
                    format!("{}{ended}", typed.join(" "))
                })
                .collect();
            (!lines.is_empty()).then(|| (row.label.clone(), block(&lines.join("\n"))))
        })
        .collect()
}

/// Escaped for HTML, with a possible line break after each comma.
fn breakable(text: &str) -> String {
    xml(text).replace(',', ",<wbr>")
}

impl Difference {
    /// The mkfs options of the study and those that were added to them, as HTML.
    pub(super) fn mkfs_html(&self) -> String {
        let [asked, mut given] = [&self.mkfs, &self.mkfs_given].map(|text| text.split_whitespace().collect::<Vec<_>>());
        let name = match (0..given.len()).find(|at| given[*at..].starts_with(&asked)) {
            Some(at) => {
                given.drain(at..at + asked.len());
                "added"
            }
            None => "as run",
        };
        let mut lines = vec![breakable(&asked.join(" "))];
        if !given.is_empty() {
            lines.push(format!("<span class=\"soft\">{name}:</span> {}", breakable(&given.join(" "))));
        }
        lines.retain(|line| !line.is_empty());
        lines.join("<br>")
    }

    pub(super) fn mount_html(&self) -> String {
        breakable(&self.mount)
    }

    /// The mount options in force, as HTML; a line for each way that trials differed.
    pub(super) fn in_force_html(&self) -> String {
        self.in_force.iter().map(|mount| breakable(mount)).collect::<Vec<_>>().join("<br>")
    }
}

/// As a person would type it in a shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=,./:@+%^".contains(c));
    if plain { word.to_owned() } else { fstone_model::text::quoted(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_mkfs_are_shown_once_and_with_what_was_added() {
        let html = |asked: &str, given: &str| {
            let [mkfs, mkfs_given] = [asked, given].map(str::to_owned);
            Difference { mkfs, mkfs_given, ..row("", "", "") }.mkfs_html()
        };
        assert_eq!(html("-I 256", "-q -F -I 256"), "-I 256<br><span class=\"soft\">added:</span> -q -F");
        assert_eq!(html("-I 256", "-q -I 256 -n"), "-I 256<br><span class=\"soft\">added:</span> -q -n");
        assert_eq!(html("", "-q -f"), "<span class=\"soft\">added:</span> -q -f");
        assert_eq!(html("-I 256", "-I 256"), "-I 256");
        assert_eq!(html("-I 256", ""), "-I 256");
        assert_eq!(html("-b 1k -n", "-n -b 1k"), "-b 1k -n<br><span class=\"soft\">as run:</span> -n -b 1k");
        assert_eq!(html("", ""), "");
    }

    fn row(name: &str, features: &str, size: &str) -> Difference {
        Difference {
            name: name.into(),
            kind: "ext4".into(),
            mkfs: String::new(),
            mkfs_given: String::new(),
            mount: String::new(),
            in_force: Vec::new(),
            facts: vec![("features".into(), features.into()), ("block size".into(), size.into())],
        }
    }

    #[test]
    fn only_what_differs_is_left() {
        let mut rows = [
            row("a", "has_journal extent dir_index", "4096"),
            row("b", "has_journal extent dir_index flex_bg", "4096"),
        ];
        let common = take_common(&mut rows.iter_mut().collect::<Vec<_>>());
        assert_eq!(rows[0].facts, [("features".to_owned(), "nothing beyond what all have".to_owned())]);
        assert_eq!(rows[1].facts, [("features".to_owned(), "… flex_bg".to_owned())]);
        assert_eq!(common[0], ("block size".to_owned(), "4096".to_owned()));
        assert_eq!(common[1].1, "has_journal extent dir_index");
    }

    #[test]
    fn words_are_quoted_as_for_a_shell() {
        assert_eq!(quoted("-O"), "-O");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
