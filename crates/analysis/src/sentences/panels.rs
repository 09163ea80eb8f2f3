//! The answer where rows are compared in several places: at each number of threads, say.

use super::{
    columns::{NOTABLE, larger, size},
    panel::{MOVED, UNPROVEN},
    teller::{MAX_NAMES, Rank, Sentence, Teller},
    words::{quoted, span},
};
use crate::{
    compare::PanelComparison,
    text::{counted, line, listing},
};
use fstone_model::{Better, kernels::KERNEL_FACTOR, study::FILESYSTEM_FACTOR};
use fstone_stats::{ALPHA, compare::Shift};

/// A list of places longer than this, in characters, becomes a count.
const MAX_PLACES: usize = 60;

/// Of contrasts in several panels.
const LARGEST: &str = "the most";

impl Teller<'_> {
    /// The answer of a study in which more than the subject varies.
    pub(super) fn many_panels(&self, sentences: &mut Vec<Sentence>) {
        let compared = self.compared();
        if compared.is_empty() {
            sentences.push(Sentence(Rank::Always, self.uncompared()));
            return;
        }
        sentences.push(Sentence(Rank::Always, self.in_panels(&compared)));
        if compared.iter().all(|(_, panel)| panel.is_powerless() && self.is_one_seed(&panel.together())) {
            sentences.push(Sentence(Rank::Unknown, MOVED.to_owned()));
        }
        if compared.iter().any(|(_, panel)| panel.any_differ()) {
            let text = self.against_in_panels(&compared);
            sentences.extend(text.map(|text| Sentence(Rank::Contrast, text)));
        }
        let (mut agree, mut alike) = (Vec::new(), Vec::new());
        for column in (0..self.analysis.columns.len()).filter(|column| *column != self.column) {
            let teller = Teller { analysis: self.analysis, column };
            let of_column = teller.compared();
            if of_column.iter().all(|(_, panel)| panel.is_powerless()) {
                let of_panel = |(index, panel): &(usize, &PanelComparison)| {
                    let (size, text) = teller.exact_contrast(*index, panel)?;
                    Some((size, format!("{text} ({}, {LARGEST})", self.analysis.structure.places(&[*index]))))
                };
                let most = of_column.iter().filter_map(of_panel).max_by(|a, b| a.0.total_cmp(&b.0));
                sentences.extend(most.map(|(size, text)| {
                    let rank = if size >= NOTABLE.ln() { Rank::Contrast } else { Rank::Detail };
                    Sentence(rank, format!("In {}, {text}.", teller.header()))
                }));
                continue;
            }
            let directed = self.analysis.columns[column].better != Better::Neither;
            if !of_column.iter().any(|(_, panel)| panel.any_differ()) {
                if directed && !teller.is_moved_from_nothing() {
                    if of_column.iter().any(|(_, panel)| panel.is_powerless()) {
                        sentences.push(Sentence(Rank::Contrast, teller.in_panels(&of_column)));
                    } else {
                        alike.push(teller.header());
                    }
                }
                continue;
            }
            let contrast = teller.largest_contrast(&of_column);
            if directed && !self.agrees(&compared, &teller) {
                let mut text = teller.in_panels(&of_column);
                if let Some((_, contrast)) = contrast {
                    text.pop();
                    text.push_str(&format!("; {contrast}."));
                }
                sentences.push(Sentence(Rank::Contrast, text));
                continue;
            }
            if directed {
                agree.push(teller.header());
            }
            sentences.extend(contrast.map(|(size, contrast)| {
                let rank = if size >= NOTABLE.ln() { Rank::Contrast } else { Rank::Detail };
                Sentence(rank, format!("In {}, {contrast}.", teller.header()))
            }));
        }
        if !agree.is_empty() {
            sentences
                .push(Sentence(Rank::Contrast, format!("The same rows are among the best in {}.", listing(&agree))));
        }
        if !alike.is_empty() {
            sentences.push(Sentence(Rank::Contrast, format!("No rows differ clearly in {}.", listing(&alike))));
        }
    }

    fn compared(&self) -> Vec<(usize, &PanelComparison)> {
        let panels = 0..self.analysis.structure.panels.len();
        panels.filter_map(|index| Some((index, self.panel(index)?))).collect()
    }

    /// Whether the best row of each panel is among the best in another column, too. Where too few trials can tell, that is not known.
    fn agrees(&self, compared: &[(usize, &PanelComparison)], other: &Teller<'_>) -> bool {
        let mut led = compared.iter().filter(|(_, panel)| panel.any_differ()).peekable();
        // Where no row leads, none does so elsewhere.
        led.peek().is_some()
            && led.all(|(index, panel)| {
                let there = other.panel(*index).filter(|there| !there.is_powerless());
                there.is_some_and(|there| other.best(there).contains(&panel.together()[0]))
            })
    }

    fn in_panels(&self, compared: &[(usize, &PanelComparison)]) -> String {
        if compared.iter().all(|(_, panel)| panel.is_powerless()) {
            let rows: Vec<usize> = compared.iter().flat_map(|(_, panel)| panel.together()).collect();
            if let Some(exact_for) = self.exact_for(&rows) {
                let best = |panel: &PanelComparison| self.equal_to(panel.together()[0], &panel.together());
                let are_equal = |panel: &PanelComparison| best(panel).len() == panel.together().len();
                let leaders = self.leaders(compared, &|panel| (!are_equal(panel)).then(|| best(panel)));
                let equal =
                    compared.iter().filter(|(_, panel)| are_equal(panel)).map(|(index, _)| *index).collect::<Vec<_>>();
                let mut parts = self.leads(&leaders, compared.len(), true);
                if !equal.is_empty() {
                    parts.push(self.lead("all rows are equal", &equal, compared.len()));
                }
                let lacks_guests = compared.iter().any(|(_, panel)| panel.lacks_guests());
                let rest = if lacks_guests && !self.is_one_seed(&rows) { UNPROVEN } else { "" };
                return format!("In {}, {}, {exact_for}{rest}.", self.header(), listing(&parts));
            }
            let leaders = self.leaders(compared, &|panel| Some(panel.together()[..1].to_vec()));
            return format!(
                "In {}, the {} means are those of {}, but {} a cell cannot show which differ{}.",
                self.header(),
                self.best_word(),
                listing(&self.leads(&leaders, compared.len(), false)),
                self.trials(&rows),
                self.needed(&compared.iter().map(|(_, panel)| *panel).collect::<Vec<_>>()),
            );
        }
        let leaders = self.leaders(compared, &|panel| self.leader(panel));
        let (blind, seeing): (Vec<_>, Vec<_>) = compared.iter().copied().partition(|(_, panel)| panel.is_powerless());
        let alike: Vec<usize> =
            seeing.iter().filter(|(_, panel)| !panel.any_differ()).map(|(index, _)| *index).collect();
        let mut parts = Vec::new();
        if !leaders.is_empty() {
            parts.push(match leaders.len() {
                0..=MAX_NAMES => listing(&self.leads(&leaders, compared.len(), true)),
                _ => self.most_often(compared),
            });
        }
        if !alike.is_empty() {
            parts.push(self.lead(&self.none_found(), &alike, compared.len()));
        }
        let (apart, blind): (Vec<_>, Vec<_>) =
            blind.into_iter().partition(|(_, panel)| panel.compared_pairs().next().is_none());
        let (lacking, few): (Vec<_>, Vec<_>) = blind.into_iter().partition(|(_, panel)| panel.lacks_guests());
        let rows: Vec<usize> = few.iter().flat_map(|(_, panel)| panel.together()).collect();
        let too_few =
            if few.is_empty() { String::new() } else { self.trials(&rows) + " a row cannot show a difference" };
        let without_guests = "no difference can show, since perturbed guests failed,".to_owned();
        for (panels, why) in [(apart, "no rows share a block".to_owned()), (lacking, without_guests), (few, too_few)] {
            let places: Vec<usize> = panels.iter().map(|(index, _)| *index).collect();
            if !places.is_empty() {
                parts.push(self.lead(&why, &places, compared.len()));
            }
        }
        format!("In {}, {}.", self.header(), parts.join("; "))
    }

    /// "xfs is among the highest in 12 of 19 combinations and ext4 in 3": where too many rows lead to say where each does.
    fn most_often(&self, compared: &[(usize, &PanelComparison)]) -> String {
        let differing = compared.iter().filter(|(_, panel)| panel.any_differ());
        let mut counts: Vec<(String, usize)> = Vec::new();
        for name in differing.flat_map(|(_, panel)| self.best(panel)).map(|row| self.name(row)) {
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => counts.push((name, 1)),
            }
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let (of, word) = (compared.len(), self.best_word());
        let told = counts.iter().take(MAX_NAMES).enumerate().map(|(at, (name, count))| match at {
            0 => format!("{name} is among the {word} in {count} of {of} combinations"),
            _ => format!("{name} in {count}"),
        });
        listing(&told.collect::<Vec<_>>())
    }

    /// By how much a row differs most from the baseline of its panel, as a logarithm and in words, and where. What is picked from many
    /// panels has to be a difference after a correction for that.
    fn largest_contrast(&self, compared: &[(usize, &PanelComparison)]) -> Option<(f64, String)> {
        let of_panel = |(index, panel): &(usize, &PanelComparison)| {
            let baseline = self.analysis.baseline_of(*index)?;
            let found = panel
                .together()
                .into_iter()
                .filter_map(|row| Some((*index, row, baseline, panel.pair(baseline, row)?)));
            let found = found.filter(|(.., pair)| pair.differs && pair.adjusted_p * compared.len() as f64 <= ALPHA);
            found.max_by(|a, b| larger(&a.3, &b.3))
        };
        let found = compared.iter().filter_map(of_panel);
        let (index, row, baseline, pair) = found.max_by(|a, b| larger(&a.3, &b.3))?;
        let place = self.analysis.structure.places(&[index]);
        let largest = if compared.len() > 1 { format!(", {LARGEST}") } else { String::new() };
        Some((size(&pair), format!("{} ({place}{largest})", self.contrasted(row, baseline, &pair))))
    }

    /// Who leads where: (name, panels), in order of first appearance. The same rows have one name, whichever is best of them.
    fn leaders(
        &self,
        compared: &[(usize, &PanelComparison)],
        leading: &dyn Fn(&PanelComparison) -> Option<Vec<usize>>,
    ) -> Vec<(String, Vec<usize>)> {
        let mut leaders: Vec<(Vec<&str>, String, Vec<usize>)> = Vec::new();
        for (index, panel) in compared {
            let Some(rows) = leading(panel) else { continue };
            let mut levels: Vec<&str> = rows.iter().map(|row| self.level(*row)).collect();
            levels.sort_unstable();
            match leaders.iter_mut().find(|(known, ..)| *known == levels) {
                Some((.., panels)) => panels.push(*index),
                None => leaders.push((levels, self.any_of(&rows), vec![*index])),
            }
        }
        leaders.into_iter().map(|(_, name, panels)| (name, panels)).collect()
    }

    /// The best of a panel, and those that cannot be told apart from it; `None` where no two rows differ.
    fn leader(&self, panel: &PanelComparison) -> Option<Vec<usize>> {
        panel.any_differ().then(|| self.best(panel))
    }

    /// "xfs or ext4"
    fn any_of(&self, rows: &[usize]) -> String {
        let mut names: Vec<String> = rows.iter().map(|row| self.name(*row)).collect();
        if names.len() > MAX_NAMES {
            return format!("{} or one of {} others", names[0], names.len() - 1);
        }
        let last = names.pop().expect("a panel has a best row");
        if names.is_empty() { last } else { format!("{} or {last}", names.join(", ")) }
    }

    /// "no difference was found"; where rows are not compared by filesystem, between what: "no difference between kernels was found".
    fn none_found(&self) -> String {
        let structure = &self.analysis.structure;
        let between = match structure.subject.map(|subject| structure.varied[subject].name.as_str()) {
            None | Some(FILESYSTEM_FACTOR) => String::new(),
            Some(KERNEL_FACTOR) => " between kernels".to_owned(),
            Some(name) => format!(" between levels of {}", line(name)),
        };
        format!("no difference{between} was found")
    }

    /// "xfs at 4 threads"; with the verb, the first is "xfs is highest at 4 threads".
    fn leads(&self, leaders: &[(String, Vec<usize>)], of: usize, verb: bool) -> Vec<String> {
        let said = |first: bool| if first && verb { format!(" is {}", self.best_word()) } else { String::new() };
        let leaders = leaders.iter().enumerate();
        leaders.map(|(at, (name, panels))| self.lead(&format!("{name}{}", said(at == 0)), panels, of)).collect()
    }

    /// "at 16 threads", but "on xfs" and "with kernel 6.1".
    fn preposition(&self) -> &'static str {
        let structure = &self.analysis.structure;
        let others: Vec<&str> = structure.others().map(|index| structure.varied[index].name.as_str()).collect();
        match others.as_slice() {
            [FILESYSTEM_FACTOR] => "on",
            [name] if structure.panels.iter().all(|panel| panel.title.starts_with(name)) => "with",
            _ => "at",
        }
    }

    fn lead(&self, name: &str, panels: &[usize], of: usize) -> String {
        let places = self.analysis.structure.places(panels);
        if panels.len() <= MAX_NAMES && places.chars().count() <= MAX_PLACES {
            format!("{name} {} {places}", self.preposition())
        } else if panels.len() == of {
            format!("{name} in all {of} combinations")
        } else {
            format!("{name} in {} of {of} combinations", panels.len())
        }
    }

    /// A level's name, marked if any of its rows lost data.
    fn name_of_level(&self, level: &str) -> String {
        let mut rows = (0..self.analysis.rows.len()).filter(|row| self.level(*row) == level);
        let mark = rows.find(|row| !self.mark(*row).is_empty()).map_or("", |row| self.mark(row));
        format!("{}{mark}", quoted(level))
    }

    fn against_in_panels(&self, compared: &[(usize, &PanelComparison)]) -> Option<String> {
        let structure = &self.analysis.structure;
        let subject = structure.subject?;
        let has_baseline = |(index, panel): &&(usize, &PanelComparison)| {
            let mut pairs = panel.compared_pairs().filter(|pair| pair.can_differ);
            let baseline = self.analysis.baseline_of(*index);
            pairs.any(|pair| [pair.baseline, pair.other].iter().any(|place| Some(panel.rows[*place]) == baseline))
        };
        let compared: Vec<(usize, &PanelComparison)> = compared.iter().filter(has_baseline).copied().collect();
        let baseline_name = compared.iter().find_map(|(index, _)| {
            let row = self.analysis.baseline_of(*index)?;
            Some(self.level(row).to_owned())
        })?;
        let (mut parts, mut never) = (Vec::new(), Vec::new());
        for level in structure.varied[subject].levels.iter().filter(|level| **level != baseline_name) {
            let pairs: Vec<_> = compared
                .iter()
                .filter_map(|(index, panel)| {
                    let other = panel.rows.iter().copied().find(|row| self.level(*row) == level)?;
                    panel.pair(self.analysis.baseline_of(*index)?, other).filter(|pair| pair.can_differ)
                })
                .collect();
            let side = |up: bool| {
                let differing = pairs.iter().filter(|pair| pair.differs && (pair.shift.estimate > 0.0) == up);
                let count = differing.clone().count();
                // Where the baseline is 0 there is a difference, and no share of it.
                let shifts: Vec<Shift> = differing.filter_map(|pair| pair.relative).collect();
                let by = if shifts.is_empty() { String::new() } else { format!(" (by {})", span(&shifts)) };
                let word = if up { "higher" } else { "lower" };
                let all = count == pairs.len() && count == compared.len();
                let places = if all { "all".to_owned() } else { count.to_string() };
                (count > 0).then(|| format!("{word} in {places}{by}"))
            };
            let alike = pairs.iter().filter(|pair| !pair.differs).count();
            let mut told: Vec<String> = [side(true), side(false)].into_iter().flatten().collect();
            if told.is_empty() {
                if alike > 0 {
                    never.push(self.name_of_level(level));
                }
                continue;
            }
            if alike > 0 {
                told.push(format!("not clearly different in {alike}"));
            }
            parts.push(format!("{} is {}", self.name_of_level(level), listing(&told)));
        }
        if !never.is_empty() {
            let verb = if never.len() == 1 { "shows" } else { "show" };
            parts.push(format!("{} {verb} no clear difference anywhere", listing(&never)));
        }
        let told = !parts.is_empty() && parts.len() <= MAX_NAMES;
        let (baseline, places) = (self.name_of_level(&baseline_name), counted(compared.len(), "combination"));
        told.then(|| format!("Against the baseline, {baseline}, in {places}: {}.", parts.join("; ")))
    }
}
