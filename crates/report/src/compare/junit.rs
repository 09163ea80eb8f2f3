//! A comparison as JUnit XML, which every CI system shows: a suite per column, a case per row. A regression is a failure;
//! where too few trials could tell nothing, the case is skipped.

use crate::{
    analysis::runs::{ComparedColumn, ComparedFigure, OutcomeChange, RunComparison, Turn, Verdict, difference},
    text::xml,
    when,
};

/// A comparison as JUnit XML. Ends with a line feed.
#[must_use]
pub fn junit(comparison: &RunComparison<'_>) -> String {
    let study = &comparison.other.dataset.run.plan.study;
    let stamp = when::iso(comparison.other.dataset.run.started_unix_ns);
    let failures = comparison.count(Verdict::Regression) + worse(comparison).count();
    let cases = comparison.figures().count() + comparison.outcomes.len();
    let mut output = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{cases}\" failures=\"{failures}\">\n",
        text(&format!("{study}: {} against {}", comparison.other_name, comparison.baseline_name))
    );
    for column in &comparison.columns {
        let count = |verdict| column.figures.iter().filter(|figure| figure.verdict == verdict).count();
        output.push_str(&format!(
            "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" timestamp=\"{stamp}\">\n",
            text(&column.header),
            column.figures.len(),
            count(Verdict::Regression),
            count(Verdict::TooFew) + count(Verdict::NoFigure),
        ));
        for figure in &column.figures {
            output.push_str(&case(study, column, figure));
        }
        output.push_str("</testsuite>\n");
    }
    if !comparison.outcomes.is_empty() {
        output.push_str(&format!(
            "<testsuite name=\"outcomes\" tests=\"{}\" failures=\"{}\" timestamp=\"{stamp}\">\n",
            comparison.outcomes.len(),
            worse(comparison).count()
        ));
        for change in &comparison.outcomes {
            let message = text(&format!("{}; before: {}", change.other, change.baseline));
            let body = match change.turn {
                Turn::Worse => format!("<failure type=\"outcome\" message=\"{message}\"/>"),
                Turn::Unknown => format!("<skipped message=\"{message}\"/>"),
                Turn::Better => format!("<system-out>{message}</system-out>"),
            };
            output.push_str(&format!(
                "<testcase classname=\"{}.outcome\" name=\"{}\">{body}</testcase>\n",
                text(study),
                text(&change.label)
            ));
        }
        output.push_str("</testsuite>\n");
    }
    output.push_str("</testsuites>\n");
    output
}

fn worse<'c>(comparison: &'c RunComparison<'_>) -> impl Iterator<Item = &'c OutcomeChange> {
    comparison.outcomes.iter().filter(|change| change.turn == Turn::Worse)
}

fn case(study: &str, column: &ComparedColumn, figure: &ComparedFigure) -> String {
    let told = text(&difference(column, figure));
    let body = match figure.verdict {
        Verdict::Regression => format!("<failure type=\"regression\" message=\"{told}\"/>"),
        Verdict::TooFew | Verdict::NoFigure => format!("<skipped message=\"{}\"/>", figure.verdict.word()),
        Verdict::Improvement | Verdict::Difference | Verdict::Slight | Verdict::NotFound => {
            format!("<system-out>{}: {told}</system-out>", figure.verdict.word())
        }
    };
    format!(
        "<testcase classname=\"{}.{}\" name=\"{}\">{body}</testcase>\n",
        text(study),
        text(&column.header),
        text(&figure.label)
    )
}

/// For attributes and text; what is special to XML or forbidden in it is not in the result.
fn text(text: &str) -> String {
    xml(&crate::text::line(text))
}
