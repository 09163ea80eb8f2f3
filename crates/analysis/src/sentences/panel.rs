//! The answer where all rows are compared with each other.

use super::{
    teller::{Rank, Sentence, Teller},
    words::{amount, amount_against, effect, quoted},
};
use crate::{
    compare::{MAX_COMPARED_ROWS, PanelComparison},
    number::grouped,
    table::HARDLY,
    text::{counted, listing},
};
use fstone_model::{
    Better, Cell,
    study::{FILESYSTEM_FACTOR, FilesystemSpec},
};
use fstone_stats::CONFIDENCE_TEXT;

impl Teller<'_> {
    pub(super) fn only_row(&self) -> String {
        let row = (0..self.analysis.rows.len())
            .find(|row| self.analysis.rows[*row].entries[self.column].summary.is_some())
            .expect("counted by the caller");
        let (entry, scale) = (&self.analysis.rows[row].entries[self.column], &self.analysis.columns[self.column].scale);
        let label = quoted(&self.analysis.rows[row].label);
        match entry.interval {
            // Guests may move what seeds do not.
            _ if entry.half_width().unwrap_or(0.0) == 0.0
                && entry.values.len() > 1
                && entry.values.windows(2).all(|pair| pair[0].value == pair[1].value) =>
            {
                format!(
                    "In {}, {label} had {} in each of {}.",
                    self.header(),
                    self.value(row),
                    counted(entry.values.len(), "trial"),
                )
            }
            Some(interval) => format!(
                "In {}, {label} averaged {} over {} ({CONFIDENCE_TEXT} interval {} to {}).",
                self.header(),
                self.value(row),
                counted(entry.values.len(), "trial"),
                scale.number(interval.low),
                scale.with_unit(interval.high),
            ),
            None if entry.values.len() > 1 => format!(
                "In {}, {label} averaged {} over {}, whose variation is not known.",
                self.header(),
                self.value(row),
                counted(entry.values.len(), "trial"),
            ),
            None => format!(
                "In {}, {label} reached {} in a single trial, which says nothing about its variation.",
                self.header(),
                self.value(row),
            ),
        }
    }

    pub(super) fn one_panel(&self, sentences: &mut Vec<Sentence>) {
        let Some(panel) = self.panel(0) else {
            sentences.push(Sentence(Rank::Always, self.uncompared()));
            return;
        };
        if let Some(effects) = self.effects(panel).filter(|_| !panel.is_powerless()) {
            sentences.push(Sentence(Rank::Always, effects));
            return;
        }
        sentences.push(Sentence(Rank::Always, self.main(panel)));
        sentences.extend(self.other_columns());
        sentences.extend(self.against_baseline(panel).map(|text| Sentence(Rank::Detail, text)));
    }

    fn main(&self, panel: &PanelComparison) -> String {
        let rows = panel.together();
        if rows.len() == 1 {
            let count = panel.rows.len();
            let values = self.values(&panel.rows);
            return format!(
                "In {}, none of the {count} rows shares a block with another: no two are compared ({values}).",
                self.header()
            );
        }
        if let Some(exact_for) = self.exact_for(&rows).filter(|_| panel.is_powerless()) {
            return self.exact(panel, &rows, &exact_for);
        }
        if panel.is_powerless() {
            let what = match rows.len() {
                2 => "whether the two rows differ".to_owned(),
                count => format!("which of the {count} rows differ"),
            };
            return format!(
                "In {}, {} a row cannot show {what} ({}){}.",
                self.header(),
                self.trials(&rows),
                self.values(&rows),
                self.needed(&[panel]),
            );
        }
        if !panel.any_differ() {
            return self.no_difference(panel);
        }
        let best = self.best(panel);
        let best_row = best[0];
        let (rest, unknown): (Vec<usize>, Vec<usize>) =
            rows[best.len()..].iter().copied().partition(|row| panel.differ(best_row, *row));
        let Some((next, worst)) = rest.first().copied().zip(rest.last().copied()) else {
            return self.only_others_differ(panel);
        };
        let among = if panel.apart().is_empty() { "" } else { ", among rows that share blocks" };
        let verb = if best.len() == 1 { "is" } else { "are" };
        let mut text = format!(
            "In {}{among}, {} {verb} {} ({})",
            self.header(),
            self.names(&best),
            self.best_word(),
            self.values(&best)
        );
        let baseline = self.analysis.baseline_of(0).filter(|row| rows.contains(row) && *row != best_row);
        let lead = |other: usize, name: String| {
            let shift = panel.pair(other, best_row).filter(|pair| pair.differs)?.relative?;
            Some(amount_against(shift, &name))
        };
        let mut leads: Vec<String> = lead(next, self.name(next)).into_iter().collect();
        if let Some(baseline) = baseline.filter(|row| *row != next) {
            leads.extend(lead(baseline, format!("the baseline, {}", self.name(baseline))));
        }
        if !leads.is_empty() {
            // Between the best two of many the figures differ for each of a group.
            let of = if best.len() > 1 { format!("{} ", self.name(best_row)) } else { String::new() };
            text.push_str(&format!(": {of}{}", listing(&leads)));
        }
        // Those that are not told apart from the worst are as bad.
        let mut last: Vec<usize> =
            rest.iter().rev().copied().take_while(|row| *row == worst || !panel.differ(worst, *row)).collect();
        last.reverse();
        if (worst != next || leads.is_empty()) && rows.last() == Some(&worst) {
            let verb = if last.len() == 1 { "is" } else { "are" };
            text.push_str(&format!("; {} {verb} {} ({})", self.names(&last), self.worst_word(), self.values(&last)));
            let behind = baseline.filter(|row| *row != worst).or_else(|| self.analysis.baseline_of(0));
            let behind = behind.filter(|row| !last.contains(row) && rows.contains(row));
            if let Some(shift) = behind.and_then(|row| panel.pair(row, worst)).filter(|pair| pair.differs) {
                let of = if last.len() == 1 { String::new() } else { format!("{} ", self.name(worst)) };
                text.push_str(
                    &shift
                        .relative
                        .map_or_else(String::new, |shift| format!(", {of}{}", amount_against(shift, "the baseline"))),
                );
            }
        } else if rest.len() == 1 && best.len() > 1 {
            text.push_str(&format!(" ({})", self.value(worst)));
        }
        if !unknown.is_empty() {
            let from = self.name(best_row);
            let told =
                format!("; {} ({}) cannot be told apart from {from}", self.names(&unknown), self.values(&unknown));
            text.push_str(&told);
        }
        format!("{text}.")
    }

    /// Figures in virtual time that are exact for what was run; no test says more.
    fn exact(&self, panel: &PanelComparison, rows: &[usize], exact_for: &str) -> String {
        let (best, worst) = (rows[0], rows[rows.len() - 1]);
        let header = self.header();
        let equal = self.equal_to(best, rows);
        if equal.len() == rows.len() {
            return format!("In {header}, all {} rows have {}, {exact_for}.", rows.len(), self.value(best));
        }
        let scale = self.analysis.columns[self.column].scale.telling_apart(self.mean(best), self.mean(worst));
        let told = |row: usize, word: &str| {
            let same = self.equal_to(row, rows);
            let verb = if same.len() == 1 { "is" } else { "are" };
            format!("{} {verb} {word} ({})", self.names(&same), scale.with_unit(self.mean(row)))
        };
        let share = (self.mean(best) - self.mean(worst)).abs() / self.mean(best).abs().min(self.mean(worst).abs());
        let apart = match 100.0 * share {
            percent if percent < 0.01 => ", less than 0.01 % apart".to_owned(),
            percent if percent < 1.0 => format!(", {} % apart", grouped(percent, 2)),
            _ => String::new(),
        };
        let ends = format!("{} and {}{apart}", told(best, self.best_word()), told(worst, self.worst_word()));
        let rest = match panel.comparison.power_note() {
            Some(_) if !self.is_one_seed(rows) && panel.lacks_guests() => UNPROVEN.to_owned(),
            Some(note) if !self.is_one_seed(rows) => {
                format!("; {} would prove it", counted(note.repeats_needed, "trial"))
            }
            _ => format!(". {MOVED}"),
        };
        format!("In {header}, {ends}, {exact_for}{}.", rest.trim_end_matches('.'))
    }

    /// Rows that differ, but none from the best.
    fn only_others_differ(&self, panel: &PanelComparison) -> String {
        let pairs = panel.compared_pairs().filter(|pair| pair.differs);
        let most = pairs.max_by(|a, b| b.adjusted_p.total_cmp(&a.adjusted_p)).expect("some differ");
        let (a, b) = (panel.rows[most.baseline], panel.rows[most.other]);
        let told = most.relative.map_or_else(
            || self.both(b, a),
            |shift| format!("{} is {}", self.name(b), amount_against(shift, &self.name(a))),
        );
        format!(
            "In {}, no row can be told apart from the best, {}; {told}.",
            self.header(),
            self.name(panel.together()[0])
        )
    }

    /// Figures without a comparison: more rows than are compared.
    pub(super) fn uncompared(&self) -> String {
        let rows = &self.analysis.rows;
        let mean = |row: &usize| rows[*row].entries[self.column].mean();
        let mut present: Vec<usize> = (0..rows.len()).filter(|row| mean(row).is_some()).collect();
        present.sort_by(|a, b| mean(a).unwrap_or(0.0).total_cmp(&mean(b).unwrap_or(0.0)));
        let (low, high) = (present[0], *present.last().expect("at least two"));
        let mut panels = self.analysis.structure.panels.iter();
        let are_many =
            panels.any(|panel| panel.rows.iter().filter(|row| mean(row).is_some()).count() > MAX_COMPARED_ROWS);
        let why = if are_many {
            "So many rows are not compared in words"
        } else {
            "None has another row to be compared with"
        };
        format!(
            "In {}, the means of {} lie between {} ({}) and {} ({}). {why}.",
            self.header(),
            counted(present.len(), "row"),
            self.value(low),
            self.analysis.label_in_words(low),
            self.value(high),
            self.analysis.label_in_words(high),
        )
    }

    /// What it takes to show a difference in these panels, which are powerless.
    pub(super) fn needed(&self, panels: &[&PanelComparison]) -> String {
        let Some(needed) =
            panels.iter().filter_map(|panel| panel.comparison.power_note()).map(|note| note.repeats_needed).max()
        else {
            return String::new();
        };
        let rows: Vec<usize> = panels.iter().flat_map(|panel| panel.together()).collect();
        match self.fewest_and_most(&rows) {
            _ if needed == 0 => ": all perturbed guests of a row failed".to_owned(),
            (fewest, _) if fewest >= needed => ": that takes more blocks that the rows share".to_owned(),
            (_, most) if most < needed => format!(": that takes at least {}", counted(needed, "trial")),
            _ => format!(": that takes at least {} of every row", counted(needed, "trial")),
        }
    }

    fn no_difference(&self, panel: &PanelComparison) -> String {
        let rows = panel.together();
        let first = format!(
            "In {}, no difference was found between {} ({})",
            self.header(),
            if rows.len() == 2 { self.names(&rows) } else { format!("the {} rows", rows.len()) },
            self.values(&rows),
        );
        let reaches: Option<Vec<f64>> = panel
            .compared_pairs()
            // How far the larger may exceed the smaller, whichever that is.
            .map(|pair| {
                pair.relative.map(|shift| (-shift.interval.low.ln_1p()).max(shift.interval.high.ln_1p()).exp_m1())
            })
            .collect();
        let unknown = reaches.iter().flatten().filter(|reach| **reach > HARDLY).count();
        let reach = reaches.and_then(|reaches| reaches.into_iter().reduce(f64::max)).filter(|reach| *reach > 0.0);
        let second = reach.map(|reach| {
            if unknown > 0 {
                return format!("; almost nothing is known about {}", counted(unknown, "pair"));
            }
            // Rounded up: it is a bound.
            if reach >= 1.0 {
                let times = grouped(((1.0 + reach) * 10.0).ceil() / 10.0, 1);
                return format!("; with {CONFIDENCE_TEXT} confidence none exceeds a factor of {times}");
            }
            let percent = if reach < 0.1 { (reach * 1000.0).ceil() / 10.0 } else { (reach * 100.0).ceil() };
            let percent = grouped(percent, usize::from(reach < 0.1));
            format!("; with {CONFIDENCE_TEXT} confidence none exceeds {percent} %")
        });
        format!("{first}{}.", second.unwrap_or_default())
    }

    fn against_baseline(&self, panel: &PanelComparison) -> Option<String> {
        let baseline = self.analysis.baseline_of(0).filter(|row| panel.rows.contains(row))?;
        let told = |row: &usize| {
            let pair = panel.pair(baseline, *row).filter(|pair| pair.differs)?;
            Some(match pair.relative {
                Some(shift) => format!("{} is {}", self.name(*row), amount(shift)),
                // Of what may be none nothing is a share.
                None => format!("{} has {}", self.name(*row), self.value(*row)),
            })
        };
        let told: Vec<String> = panel.rows.iter().filter_map(told).collect();
        let of = if told.iter().any(|text| text.contains(" has ")) {
            format!(" ({})", self.value(baseline))
        } else {
            String::new()
        };
        (!told.is_empty()).then(|| format!("Against the baseline, {}{of}, {}.", self.name(baseline), listing(&told)))
    }

    /// What one option does to every column, if the rows are two that differ in nothing else. `None` for any others.
    fn effects(&self, panel: &PanelComparison) -> Option<String> {
        let rows = panel.together();
        let [a, b] = rows[..] else { return None };
        let baseline = self.analysis.baseline_of(0).filter(|row| rows.contains(row)).unwrap_or(a.min(b));
        let (baseline, other) = if baseline == a { (a, b) } else { (b, a) };
        let (baseline, other, name) = self.difference(baseline, other)?;
        let mut columns: Vec<usize> = vec![self.column];
        let directed =
            |column: &usize| *column != self.column && self.analysis.columns[*column].better != Better::Neither;
        columns.extend((0..self.analysis.columns.len()).filter(directed));
        let told = |column: &usize| {
            let pair = self.analysis.comparisons[*column].panels[0].as_ref()?.pair(baseline, other)?;
            let pair = Some(pair).filter(|pair| pair.can_differ)?;
            let header = &self.analysis.columns[*column].header;
            let text = match pair.relative {
                Some(shift) => effect(shift, pair.differs, header),
                // Of 0 nothing is a share.
                None if pair.differs => {
                    let of = Teller { analysis: self.analysis, column: *column };
                    let verb = if pair.shift.estimate > 0.0 { "raises" } else { "lowers" };
                    format!("{verb} {header} from {} to {}", of.value(baseline), of.value(other))
                }
                None => return None,
            };
            Some((*column == self.column, pair.differs, text))
        };
        let mut told: Vec<(bool, bool, String)> = columns.iter().filter_map(told).collect();
        // The main column first, then what is found.
        told.sort_by_key(|(main, differs, _)| (!main, !differs));
        let more = told.len().saturating_sub(MAX_EFFECTS);
        let mut effects: Vec<String> = told.into_iter().take(MAX_EFFECTS).map(|(.., text)| text).collect();
        if more > 0 {
            effects.push(format!("{} as the table shows", counted(more, "more column")));
        }
        // An option keeps its spelling.
        (!effects.is_empty()).then(|| format!("{name} {}.", listing(&effects)))
    }

    /// What two rows differ in if it is one option, as (the row without it, the row with it, its name).
    fn difference(&self, baseline: usize, other: usize) -> Option<(usize, usize, String)> {
        let structure = &self.analysis.structure;
        let subject = &structure.varied[structure.subject?];
        let cell = |row: usize| -> &Cell { &self.analysis.dataset.run.plan.cells[row] };
        if subject.name != FILESYSTEM_FACTOR {
            let name = format!("{} instead of {}", self.name(other), self.name(baseline));
            return Some((baseline, other, name));
        }
        let (before, after) = (&cell(baseline).filesystem, &cell(other).filesystem);
        if before.kind != after.kind || before.own != after.own || before.tree != after.tree {
            return None;
        }
        let (less, more) = (options(before), options(after));
        let only = |of: &[String], other: &[String], row: usize| -> Vec<String> {
            let options = of.iter().filter(|option| !other.contains(option));
            options.map(|option| format!("{option}{}", self.mark(row))).collect()
        };
        match (only(&less, &more, baseline).as_slice(), only(&more, &less, other).as_slice()) {
            ([], [added]) => Some((baseline, other, added.clone())),
            ([removed], []) => Some((other, baseline, removed.clone())),
            ([removed], [added]) => Some((baseline, other, format!("{added} instead of {removed}"))),
            _ => None,
        }
    }
}

/// What seeds that agree do not show alone.
pub(super) const UNPROVEN: &str = "; nothing proves it, since perturbed guests failed";

/// What one seed does not show.
pub(super) const MOVED: &str =
    "How far a rebuilt kernel, say, moves such figures is not known; --perturbed 2 shows it.";

/// More effects of an option than these are in the table.
const MAX_EFFECTS: usize = 5;

fn options(filesystem: &FilesystemSpec) -> Vec<String> {
    let mount = filesystem.mount.split(',').filter(|option| !option.is_empty()).map(str::to_owned);
    mount.chain(mkfs_options(&filesystem.mkfs)).collect()
}

/// A flag belongs to the value that follows it.
fn mkfs_options(words: &[String]) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    for word in words {
        match options.last_mut() {
            Some(last) if !word.starts_with('-') && !last.contains(' ') => last.push_str(&format!(" {word}")),
            _ => options.push(word.clone()),
        }
    }
    options
}
