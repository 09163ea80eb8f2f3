//! Footnotes for what did not complete, and warnings about what did; each said once.

use crate::{
    clock,
    compare::{ColumnComparison, PanelComparison},
    drift::Drifting,
    number::{grouped, p_value},
    table::{ColumnView, Row},
    text,
};
use fstone_model::{Dataset, StepResult, Trial, study::DeviceSpec, units::format_duration};
use fstone_stats::compare::PowerNote;
use std::{collections::HashMap, time::Duration};

/// Why trials did not complete, in the words of the program or kernel that refused, or have doubtful figures. One per distinct reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footnote {
    /// Its number, from 1.
    pub number: usize,
    pub word: &'static str,
    pub step: String,
    /// The kernel's or the tool's own words; may be several lines. Words that differ in a number alone (a file's, a
    /// count) are the same reason; these are the first trial's.
    pub words: String,
    /// Whether some trial's words differ from these in a number.
    pub alike: bool,
    pub cure: Option<String>,
    pub rows: Vec<FootnoteRow>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FootnoteRow {
    pub row: usize,
    /// How many of its trials ended so.
    pub trials: usize,
    /// How many trials it has, with those in perturbed guests.
    pub of: usize,
}

impl Footnote {
    /// "refused at mount: ext4: Unknown parameter 'nomballoc'", on one line.
    pub fn sentence(&self) -> String {
        let mut sentence = self.word.to_owned();
        if !self.step.is_empty() {
            sentence.push_str(&format!(" at {}", self.step));
        }
        let words = text::line(&self.words);
        if !words.is_empty() {
            sentence.push_str(&format!(": {words}{}", if self.alike { ", and the like" } else { "" }));
        }
        if let Some(cure) = &self.cure {
            sentence.push_str(&format!(" (fix: {cure})"));
        }
        sentence
    }

    /// The sentence, with whose trials it was where a row has others.
    pub fn told(&self, rows: &[Row<'_>]) -> String {
        match self.share(rows) {
            Some(share) => format!("{share}: {}", self.sentence()),
            None => self.sentence(),
        }
    }

    /// "2 of 3 trials of ext4" when some of a row's trials did complete or ended otherwise; else `None`. Then rows of which all
    /// trials ended so are named, too.
    pub fn share(&self, rows: &[Row<'_>]) -> Option<String> {
        let told = |row: &FootnoteRow| match (rows[row.row].label.as_str(), row.trials, row.of) {
            (label, 1, 1) => format!("the trial of {label}"),
            (label, trials, of) if trials == of => format!("all {of} trials of {label}"),
            (label, trials, of) => format!("{trials} of {of} trials of {label}"),
        };
        let is_partial = self.rows.iter().any(|row| row.trials < row.of);
        is_partial.then(|| text::listing(&self.rows.iter().map(told).collect::<Vec<_>>()))
    }
}

/// Something a reader must know before believing the figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub text: String,
    /// The rows it is about; empty when it is about the run.
    pub rows: Vec<usize>,
    /// How many trials said so; 0 when it was worked out here.
    pub trials: usize,
}

impl Warning {
    /// What, for which rows if not for all, and in how many trials if in several.
    pub fn told(&self, rows: &[Row<'_>]) -> String {
        let trials = if self.trials > 1 { format!(", {} trials", self.trials) } else { String::new() };
        format!("{}{}{trials}", self.text, touched(&self.rows, rows))
    }
}

/// Rows named under a warning before the rest is a count.
const NAMED_ROWS: usize = 3;

/// " (ext4; xfs; 3 more)" for some of all rows, or nothing when it is about the run or every row.
pub fn touched(some: &[usize], rows: &[Row<'_>]) -> String {
    if some.is_empty() || some.len() == rows.len() {
        return String::new();
    }
    let mut names: Vec<String> = some.iter().take(NAMED_ROWS).map(|row| rows[*row].label.clone()).collect();
    if some.len() > NAMED_ROWS {
        names.push(format!("{} more", some.len() - NAMED_ROWS));
    }
    format!(" ({})", names.join("; "))
}

/// Rows whose filesystem the running kernel lacks. One sentence says so, in place of a row and a footnote for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    pub rows: Vec<usize>,
    /// "Not in this kernel: f2fs and jfs. …"
    pub sentence: String,
}

/// `None` when there is no such row, or no other.
pub(super) fn lacking(dataset: &Dataset, rows: &[Row<'_>]) -> Option<Lacking> {
    let mut names: Vec<String> = Vec::new();
    let mut lacking = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let name = row.trials.first().and_then(|trial| trial.outcome.lacking_filesystem());
        let Some(name) = name.filter(|_| row.trials.iter().all(|trial| trial.outcome.lacking_filesystem().is_some()))
        else {
            continue;
        };
        lacking.push(index);
        let name = text::line(name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if lacking.is_empty() || lacking.len() == rows.len() {
        return None;
    }
    let plan = &dataset.run.plan;
    let mut sentence = format!("Not in this kernel: {}", names.join(", "));
    // The disk of a guest is an image.
    if lacking.iter().all(|row| matches!(plan.cells[*row].device, DeviceSpec::Loop { .. })) {
        let quick = if plan.quick { " --quick" } else { "" };
        let time = plan.expected_duration.map(|time| {
            let minutes = (time.saturating_mul(GUESTS_TAKE)).as_secs().div_ceil(60);
            format!(", about {}", format_duration(Duration::from_secs(60 * minutes)))
        });
        sentence.push_str(&format!(
            "; `fstone run {}{quick} --executor uml` shows them{}",
            text::line(&plan.study),
            time.unwrap_or_default()
        ));
    }
    Some(Lacking { rows: lacking, sentence: format!("{sentence}.") })
}

/// A study takes about this many times longer in user-mode Linux than on the host: small-file takes 8½ minutes in place of 4.
const GUESTS_TAKE: u32 = 2;

/// Collects the reasons and gives each row its numbers. Those of `last` come last: tables show neither these rows nor their reasons.
pub(super) fn footnotes(rows: &mut [Row<'_>], last: &[usize]) -> Vec<Footnote> {
    let mut footnotes: Vec<Footnote> = Vec::new();
    let shown = (0..rows.len()).filter(|row| !last.contains(row));
    for index in shown.chain(last.iter().copied()).collect::<Vec<_>>() {
        let row = &mut rows[index];
        let all: Vec<&Trial> = row.all().collect();
        for trial in &all {
            let Some((word, step, words, cure)) = reason(trial) else { continue };
            let known = footnotes.iter().position(|note| {
                note.word == word
                    && note.step == step
                    && note.cure == cure
                    && without_numbers(&note.words) == without_numbers(&words)
            });
            let at = match known {
                Some(known) => {
                    footnotes[known].alike |= footnotes[known].words != words;
                    known
                }
                None => {
                    let number = footnotes.len() + 1;
                    footnotes.push(Footnote { number, word, step, words, alike: false, cure, rows: Vec::new() });
                    number - 1
                }
            };
            let of = all.len();
            match footnotes[at].rows.last_mut() {
                Some(last) if last.row == index => last.trials += 1,
                _ => footnotes[at].rows.push(FootnoteRow { row: index, trials: 1, of }),
            }
            if !row.footnotes.contains(&(at + 1)) {
                row.footnotes.push(at + 1);
            }
        }
    }
    footnotes
}

fn reason(trial: &Trial) -> Option<(&'static str, String, String, Option<String>)> {
    let Some(reason) = trial.outcome.reason() else {
        let doubt = |step: &StepResult| Some((text::line(&step.step), step.load.as_ref()?.doubt()?));
        let (step, words) = trial.steps.iter().find_map(doubt)?;
        return Some(("doubtful", step, words, None));
    };
    let cure = reason.cure.as_deref().map(text::line);
    Some((trial.outcome.word(), text::line(&reason.step), text::block(&reason.words), cure))
}

/// The warnings of trials and loads, each once, followed by those of the statistics.
pub(super) fn warnings(
    dataset: &Dataset,
    rows: &[Row<'_>],
    columns: &[ColumnView],
    comparisons: &[ColumnComparison],
    drifts: &[Drifting],
) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        for trial in row.all() {
            let of_loads = trial
                .steps
                .iter()
                .filter_map(|step| Some((step, step.load.as_ref()?)))
                .flat_map(|(step, load)| load.warnings.iter().map(move |warning| (step, warning)))
                // The trial passes on what its steps warned of, with the step's name in front, and what it ran beside.
                .filter(|(step, warning)| {
                    let name = |told: &String| Some(told.strip_suffix(*warning)?.starts_with(&step.step));
                    !trial.warnings.iter().any(|told| name(told) == Some(true))
                })
                .map(|(_, warning)| warning);
            let mut said = Vec::new();
            for warning in trial.warnings.iter().chain(of_loads) {
                let at = *known.entry(without_numbers(warning)).or_insert_with(|| {
                    warnings.push(Warning { text: text::line(warning), rows: Vec::new(), trials: 0 });
                    warnings.len() - 1
                });
                if !said.contains(&at) {
                    warnings[at].trials += 1;
                    said.push(at);
                }
                if warnings[at].rows.last() != Some(&index) {
                    warnings[at].rows.push(index);
                }
            }
        }
    }
    warnings.extend(drift(drifts, columns));
    // One seed in virtual time is exact for it.
    if !clock::is_one_seed(dataset) {
        warnings.extend(power(rows, columns, comparisons));
        warnings.extend(doubted(rows, columns));
    }
    warnings.extend(apart(comparisons));
    warnings.extend(widened(columns, comparisons));
    warnings.extend(columns.iter().enumerate().filter_map(|(index, column)| outliers(rows, index, column)));
    warnings
}

fn drift(drifts: &[Drifting], columns: &[ColumnView]) -> Option<Warning> {
    if drifts.is_empty() {
        return None;
    }
    let told: Vec<String> = drifts
        .iter()
        .map(|drift| {
            let p = p_value(drift.drift.p);
            let p = if p.starts_with('<') { p } else { format!("= {p}") };
            format!("{} {} (p {p})", columns[drift.column].header, drift.change())
        })
        .collect();
    Some(Warning {
        text: format!(
            "Drift from the first trial to the last (Mann–Kendall): {}; the shuffled order keeps it out of the \
             comparison, but it widens the intervals",
            text::listing(&told),
        ),
        rows: Vec::new(),
        trials: 0,
    })
}

/// "No difference found" would be misleading if none could have been found.
fn power(rows: &[Row<'_>], columns: &[ColumnView], comparisons: &[ColumnComparison]) -> Option<Warning> {
    let panels = comparisons
        .iter()
        .enumerate()
        .flat_map(|(column, compared)| compared.panels.iter().flatten().map(move |panel| (column, panel)));
    let noted = panels.clone().filter_map(|(column, panel)| Some((column, panel, panel.comparison.power_note()?)));
    let noted: Vec<_> = noted.filter(|(.., note)| note.repeats_needed > 0).collect();
    // The first of those with the most such pairs: max_by_key takes the last, so look from the end.
    let &(column, panel, note) = noted.iter().rev().max_by_key(|(.., note)| note.powerless_pairs)?;
    let is_of_all = noted.iter().all(|(.., note)| note.powerless_pairs == note.pairs) && noted.len() == panels.count();
    let counts = || panel.rows.iter().map(|row| rows[*row].entries[column].values.len());
    let (fewest, most) = (counts().min()?, counts().max()?);
    let what = if note.powerless_pairs == note.pairs {
        let trials = if fewest == most {
            text::counted(most, "trial")
        } else {
            format!("{fewest} to {}", text::counted(most, "trial"))
        };
        let such = |of: &&(usize, &PanelComparison, PowerNote)| of.1.rows == panel.rows && of.2 == note;
        let mut headers: Vec<&str> = noted.iter().filter(such).map(|of| columns[of.0].header.as_str()).collect();
        headers.dedup();
        let with = if is_of_all { "With".to_owned() } else { format!("In {}, with", text::listing(&headers)) };
        format!("{with} {trials} a row no test can tell these rows apart, however far apart they are")
    } else {
        format!(
            "{} of {} pairs of rows have too few trials to be told apart, however far apart they are",
            note.powerless_pairs, note.pairs
        )
    };
    let cure = if fewest >= note.repeats_needed {
        "it takes more blocks that the rows share".to_owned()
    } else {
        format!(
            "it takes at least {} of every row, and more for a difference that is not glaring",
            text::counted(note.repeats_needed, "trial")
        )
    };
    let mut rows = if is_of_all { Vec::new() } else { panel.rows.clone() };
    rows.sort_unstable();
    Some(Warning { text: format!("{what}; {cure}"), rows, trials: 0 })
}

/// Rows whose seeds agree, but whose perturbed guests all failed: more seeds would not help.
fn doubted(rows: &[Row<'_>], columns: &[ColumnView]) -> Option<Warning> {
    let rows: Vec<usize> =
        (0..rows.len()).filter(|row| (0..columns.len()).any(|column| rows[*row].is_doubted(column))).collect();
    (!rows.is_empty()).then(|| Warning {
        text: "Seeds agree, but all perturbed guests failed, so nothing shows that the figures are exact: no test can tell \
               these rows from others; see why the guests failed"
            .to_owned(),
        rows,
        trials: 0,
    })
}

/// A row that makes the intervals of all others wide, for each such row.
fn widened(columns: &[ColumnView], comparisons: &[ColumnComparison]) -> Vec<Warning> {
    let mut found: Vec<(usize, Vec<&str>, f64)> = Vec::new();
    for (column, compared) in columns.iter().zip(comparisons) {
        for (row, times) in compared.panels.iter().flatten().filter_map(|panel| panel.widened) {
            match found.iter_mut().find(|(known, ..)| *known == row) {
                Some((_, headers, most)) => {
                    headers.push(&column.header);
                    *most = most.max(times);
                }
                None => found.push((row, vec![&column.header], times)),
            }
        }
    }
    let told = |(row, headers, times): (usize, Vec<&str>, f64)| Warning {
        text: format!(
            "One row scatters so much in {} that the intervals of the others are up to {} times as wide as without it",
            text::listing(&headers),
            grouped(times, 1)
        ),
        rows: vec![row],
        trials: 0,
    };
    found.into_iter().map(told).collect()
}

/// Rows that are not compared with the others, because what made their blocks differ would count as a difference between rows.
fn apart(comparisons: &[ColumnComparison]) -> Option<Warning> {
    let mut rows: Vec<usize> =
        comparisons.iter().flat_map(|column| &column.panels).flatten().flat_map(PanelComparison::apart).collect();
    rows.sort_unstable();
    rows.dedup();
    (!rows.is_empty()).then(|| Warning {
        text: "Rows that share no block with the others are not compared with them, since a difference could come from the \
               machine or the time of day"
            .to_owned(),
        rows,
        trials: 0,
    })
}

/// Warnings that differ in a figure alone ("mix off by 2.1 points") are one warning; the first is shown. In a command between backquotes
/// a number is no figure: another log or crash state is another command.
fn without_numbers(text: &str) -> String {
    let mut key = String::with_capacity(text.len());
    let mut quoted = false;
    for c in text.chars() {
        quoted ^= c == '`';
        match c {
            c if quoted => key.push(c),
            c if c.is_ascii_digit() => {
                if !key.ends_with('#') {
                    key.push('#');
                }
            }
            '.' | ',' if key.ends_with('#') => {}
            c => key.push(c),
        }
    }
    key
}

fn outliers(rows: &[Row<'_>], index: usize, column: &ColumnView) -> Option<Warning> {
    let touched: Vec<usize> =
        (0..rows.len()).filter(|row| rows[*row].entries[index].values.iter().any(|value| value.outlier)).collect();
    let count: usize =
        touched.iter().map(|row| rows[*row].entries[index].values.iter().filter(|v| v.outlier).count()).sum();
    (count > 0).then(|| Warning {
        text: format!(
            "{}: {} far from the row's others; counted in, and marked in the figures",
            column.header,
            if count == 1 { "1 trial lies".to_owned() } else { format!("{count} trials lie") }
        ),
        rows: touched,
        trials: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn warnings_that_differ_in_figures_alone_are_alike() {
        assert_eq!(without_numbers("mix off by 2.13 points"), without_numbers("mix off by 12,000.5 points"));
        assert_ne!(without_numbers("mix off by 2 points"), without_numbers("mix off by 2 blocks"));
        assert_eq!(without_numbers("done. 3"), "done. #");
        let lost =
            |log, state| without_numbers(&format!("3 promises lost; `fstone crash-state {log} {state} --image FILE`"));
        assert_ne!(lost("ext4-1.disk-log", "181-all-0"), lost("ext4-2.disk-log", "181-all-0"));
        assert_ne!(lost("ext4-1.disk-log", "181-all-0"), lost("ext4-1.disk-log", "203-all-0"));
    }
}
