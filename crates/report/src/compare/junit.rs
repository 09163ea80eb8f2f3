//! A comparison as JUnit XML, which every CI system shows: a suite per column, a case per row. A regression is a failure;
//! where too few trials could tell nothing, or only the later run has anything to tell, the case is skipped. What is missing, blind or
//! unclear or falls short of a required power is an error, and so is a comparison of nothing.

use crate::{
    analysis::runs::{ComparedColumn, ComparedFigure, OutcomeChange, RunComparison, Turn, Verdict, difference},
    text::xml,
    when,
};

/// What the users of the two runs say about them, for each suite; nothing where they say nothing.
fn properties(comparison: &RunComparison<'_>) -> String {
    let runs = [("before", comparison.baseline), ("after", comparison.other)];
    let notes = runs.into_iter().filter_map(|(when, analysis)| Some((when, analysis.dataset.run.note.as_ref()?)));
    let property = |(when, note): (&str, &fstone_model::Note)| {
        format!("<property name=\"note {when}\" value=\"{}\"/>\n", text(note.as_str()))
    };
    let told: String = notes.map(property).collect();
    if told.is_empty() { told } else { format!("<properties>\n{told}</properties>\n") }
}

/// A comparison as JUnit XML. Ends with a line feed.
pub fn junit(comparison: &RunComparison<'_>) -> String {
    let study = &comparison.other.dataset.run.plan.study;
    let stamp = when::iso(comparison.other.dataset.run.started_unix_ns);
    let failures = comparison.count(Verdict::Regression) + worse(comparison).count();
    let short: Vec<&ComparedFigure> = match comparison.required_power {
        Some(share) => comparison.could_miss(share).into_iter().map(|(_, figure)| figure).collect(),
        None if comparison.allow_blind => Vec::new(),
        None => comparison.blind().into_iter().map(|(_, figure)| figure).collect(),
    };
    let open = |figure: &ComparedFigure| figure.is_missing() || figure.verdict == Verdict::Unclear;
    let is_short = |figure: &ComparedFigure| open(figure) || short.iter().any(|other| std::ptr::eq(*other, figure));
    let missing = not_compared(comparison);
    let cases = comparison.figures().count() + comparison.outcomes.len() + missing.len();
    let errors = comparison.figures().filter(|(_, figure)| is_short(figure)).count()
        + comparison.outcomes.iter().filter(|change| change.is_missing).count()
        + missing.iter().filter(|missing| missing.is_error).count();
    let mut output = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{cases}\" failures=\"{failures}\" errors=\"{errors}\">\n",
        text(&format!("{study}: {} against {}", comparison.other_name, comparison.baseline_name))
    );
    let notes = properties(comparison);
    for column in &comparison.columns {
        let count = |verdict| column.figures.iter().filter(|figure| figure.verdict == verdict).count();
        output.push_str(&format!(
            "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" timestamp=\"{stamp}\">\n{notes}",
            text(&column.header),
            column.figures.len(),
            count(Verdict::Regression),
            column.figures.iter().filter(|figure| is_short(figure)).count(),
            column.figures.iter().filter(|figure| is_skipped(figure) && !is_short(figure)).count(),
        ));
        for figure in &column.figures {
            output.push_str(&case(study, column, figure, is_short(figure)));
        }
        output.push_str("</testsuite>\n");
    }
    if !comparison.outcomes.is_empty() {
        output.push_str(&format!(
            "<testsuite name=\"outcomes\" tests=\"{}\" failures=\"{}\" errors=\"{}\" timestamp=\"{stamp}\">\n{notes}",
            comparison.outcomes.len(),
            worse(comparison).count(),
            comparison.outcomes.iter().filter(|change| change.is_missing).count()
        ));
        for change in &comparison.outcomes {
            let message = text(&format!("{}; before: {}", change.other, change.baseline));
            let body = match change.turn {
                Turn::Worse => format!("<failure type=\"outcome\" message=\"{message}\"/>"),
                Turn::Unknown if change.is_missing => format!("<error type=\"missing\" message=\"{message}\"/>"),
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
    if !missing.is_empty() {
        let errors = missing.iter().filter(|missing| missing.is_error).count();
        output.push_str(&format!(
            "<testsuite name=\"not compared\" tests=\"{}\" errors=\"{errors}\" skipped=\"{}\" timestamp=\"{stamp}\">\n{notes}",
            missing.len(),
            missing.len() - errors
        ));
        for missing in &missing {
            let element = if missing.is_error { "error type=\"not compared\"" } else { "skipped" };
            output.push_str(&format!(
                "<testcase classname=\"{}.not-compared\" name=\"{}\"><{element} message=\"{}\"/></testcase>\n",
                text(study),
                text(&missing.name),
                text(&missing.message)
            ));
        }
        output.push_str("</testsuite>\n");
    }
    output.push_str("</testsuites>\n");
    output
}

struct NotCompared {
    name: String,
    message: String,
    is_error: bool,
}

fn not_compared(comparison: &RunComparison<'_>) -> Vec<NotCompared> {
    let nothing = (comparison.compared() == 0).then(|| NotCompared {
        name: "anything".to_owned(),
        message: "there is no figure that both runs have".to_owned(),
        is_error: true,
    });
    let lines = comparison.unmatched_lines();
    let unmatched = comparison.unmatched.iter().zip(lines).map(|(only, message)| NotCompared {
        name: only.name.clone(),
        message,
        is_error: comparison.lacks(only),
    });
    nothing.into_iter().chain(unmatched).collect()
}

fn is_skipped(figure: &ComparedFigure) -> bool {
    matches!(figure.verdict, Verdict::TooFew | Verdict::NoFigure)
}

fn worse<'c>(comparison: &'c RunComparison<'_>) -> impl Iterator<Item = &'c OutcomeChange> {
    comparison.outcomes.iter().filter(|change| change.turn == Turn::Worse)
}

fn case(study: &str, column: &ComparedColumn, figure: &ComparedFigure, is_short: bool) -> String {
    let told = text(&difference(column, figure));
    let body = match figure.verdict {
        Verdict::Regression => format!("<failure type=\"regression\" message=\"{told}\"/>"),
        _ if figure.is_missing() => format!("<error type=\"missing\" message=\"{told}\"/>"),
        verdict if is_short => format!("<error type=\"power\" message=\"{}: {told}\"/>", verdict.word()),
        Verdict::TooFew | Verdict::NoFigure => format!("<skipped message=\"{}\"/>", figure.verdict.word()),
        verdict => format!("<system-out>{}: {told}</system-out>", verdict.word()),
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
