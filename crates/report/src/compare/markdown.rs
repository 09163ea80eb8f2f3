//! A comparison as a comment on a pull request: what changed first, the rest folded away.

use crate::{
    analysis::runs::{
        ComparedColumn, ComparedFigure, RunComparison, Verdict, caveat, change, interval_name, probability,
    },
    legend::NOTHING,
    markdown::{escape, head},
    text::joined,
};
use fstone_stats::ALPHA_TEXT;

/// A comparison as Markdown. Ends with a line feed.
pub fn markdown(comparison: &RunComparison<'_>) -> String {
    let title = escape(&comparison.baseline.dataset.run.plan.title);
    let word = match (comparison.has_regression(), comparison.is_undecided()) {
        (true, _) => "regression",
        (false, true) => "undecided",
        (false, false) => "no regression",
    };
    let mut output = format!("### {title}: {word}\n\n");
    for note in comparison.note_lines() {
        output.push_str(&format!("{}  \n", escape(&note)));
    }
    if !comparison.note_lines().is_empty() {
        output.push('\n');
    }
    for sentence in comparison.sentences() {
        output.push_str(&format!("{}\n\n", escape(&sentence)));
    }
    let (told, rest): (Vec<_>, Vec<_>) = comparison
        .figures()
        .partition(|(_, figure)| !matches!(figure.verdict, Verdict::NotFound | Verdict::TooFew | Verdict::NoFigure));
    if !told.is_empty() {
        output.push_str(&table(&told));
        output.push('\n');
    }
    if !rest.is_empty() {
        let count = crate::text::counted(rest.len(), "figure");
        output.push_str(&fold(&format!("{count} without a difference that was found"), &table(&rest)));
    }
    let list = |lines: Vec<String>| lines.iter().map(|line| format!("- {}\n", escape(line))).collect::<String>();
    let outcomes = list(comparison.outcome_lines());
    if !outcomes.is_empty() {
        output.push_str(&format!("**Outcomes that changed**\n\n{outcomes}\n"));
    }
    let changes = list(comparison.change_lines());
    if !changes.is_empty() {
        output.push_str(&fold("Other differences", &changes));
    }
    let unmatched = list(comparison.unmatched_lines());
    if !unmatched.is_empty() {
        output.push_str(&fold("Not compared", &unmatched));
    }
    output.push_str(&format!(
        "{} Rank tests, Holm-corrected to {ALPHA_TEXT} over {}.\n",
        escape(&caveat(comparison)),
        crate::text::counted(comparison.compared(), "pair")
    ));
    output
}

fn fold(summary: &str, body: &str) -> String {
    format!("<details><summary>{}</summary>\n\n{body}\n</details>\n\n", escape(summary))
}

fn table(figures: &[(&ComparedColumn, &ComparedFigure)]) -> String {
    let interval = interval_name(figures.iter().map(|(_, figure)| *figure));
    let heads = ["row", "figure", "before", "after", "change", &interval, "p", "verdict"];
    let mut output = head(&heads.map(str::to_owned), 2);
    for (column, figure) in figures {
        let number =
            |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), |value| column.scale.with_unit(value));
        let (estimate, interval, p) = match figure.pair {
            Some(pair) => {
                let (estimate, interval) = change(column, &pair);
                (estimate, interval, probability(&pair))
            }
            None => (NOTHING.to_owned(), String::new(), String::new()),
        };
        let word = match figure.verdict {
            Verdict::Regression => format!("**{}**", figure.verdict.word()),
            other => other.word().to_owned(),
        };
        let cells = [
            escape(&figure.label),
            joined(&[&*escape(&column.header), column.better.arrow()], " "),
            number(figure.before()),
            number(figure.after()),
            estimate,
            interval,
            escape(&p),
            word,
        ];
        output.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    output
}
