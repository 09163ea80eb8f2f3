//! What a run with a budget still has to find out.

use crate::{looks::Judging, run::Analysis, table::HARDLY, text::listing};
use fstone_model::Dataset;
use fstone_stats::sequential::{Answered, OpenPair};

/// More open pairs than this are a count.
const MAX_NAMED: usize = 3;

/// How many pairs of rows of a run are decided in its most important column, within each panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// Pairs that were told apart or shown to be alike.
    pub decided: usize,
    /// All pairs; 0 while no two rows that are compared have figures.
    pub pairs: usize,
    /// The other pairs that can be judged, by the plan's cells.
    pub open: Vec<OpenPair>,
    /// The rows of each panel of which too little is known to judge it: all its pairs are open.
    pub waiting: Vec<Vec<usize>>,
    /// Whether this is a look at any panel: otherwise what the last one found holds until the next.
    pub is_look: bool,
    /// The same in words: "decided 31 of 36; left: ext4 / ext4 today (± 6 %)".
    pub words: String,
}

impl Open {
    pub fn of(dataset: &Dataset) -> Self {
        let analysis = Analysis::of(dataset);
        let resolution = dataset.run.plan.budget.map_or(0.0, |budget| budget.resolution);
        let column = analysis.primary();
        let panels = column.map_or(&[][..], |column| &analysis.comparisons[column].panels);
        // Panels begin to be judged at different blocks, so their looks need not fall together.
        let mut held = panels.iter().flatten().map(|panel| panel.judging == Judging::AtTheNextLook).peekable();
        let is_look = held.peek().is_none() || !held.all(|held| held);
        let mut of_all =
            Self { decided: 0, pairs: 0, open: Vec::new(), waiting: Vec::new(), is_look, words: String::new() };
        for panel in panels.iter().flatten() {
            if panel.judging == Judging::TooSoon {
                of_all.pairs += panel.compared_pairs().count();
                of_all.waiting.push(panel.rows.clone());
                continue;
            }
            let answered = Answered::of(&panel.comparison, resolution);
            of_all.decided += answered.decided;
            of_all.pairs += answered.pairs;
            let trials = |row: &usize| column.map_or(0, |column| analysis.rows[*row].entries[column].values.len());
            let trials: Vec<usize> = panel.rows.iter().map(trials).collect();
            let by_row = |pair: OpenPair| OpenPair { rows: (panel.rows[pair.rows.0], panel.rows[pair.rows.1]), ..pair };
            of_all.open.extend(OpenPair::of(&panel.comparison, resolution, &trials).into_iter().map(by_row));
        }
        of_all.open.sort_by(|a, b| a.more_blocks.total_cmp(&b.more_blocks));
        of_all.words = of_all.in_words(&analysis);
        of_all
    }

    fn in_words(&self, analysis: &Analysis<'_>) -> String {
        if self.decided == 0 && self.open.is_empty() {
            return "nothing is decided yet".to_owned();
        }
        let mut words = format!("decided {} of {}", self.decided, self.pairs);
        let name = |pair: &OpenPair| {
            let (a, b) = (&analysis.rows[pair.rows.0].label, &analysis.rows[pair.rows.1].label);
            let width = match pair.half_width {
                Some(width) if width > HARDLY => " (hardly known)".to_owned(),
                Some(width) => format!(" (± {:.0} %)", 100.0 * width),
                None => String::new(),
            };
            format!("{a} / {b}{width}")
        };
        let mut left: Vec<String> = self.open.iter().take(MAX_NAMED).map(name).collect();
        let more = self.pairs - self.decided - left.len();
        if more > 0 {
            left.push(format!("{more} more"));
        }
        if !left.is_empty() {
            words.push_str(&format!("; left: {}", listing(&left)));
        }
        words
    }
}
