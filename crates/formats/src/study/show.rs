//! The columns of the table: which metrics a step has, and what stands above them.

use crate::{
    decode::At,
    diagnostic::{Diagnostic, Report, Span, closest},
};
use fstone_model::{
    StepKind, load_metric,
    metric::{Metric, catalog},
    study::{Column, StepAction},
};

/// Names of a step's metrics, those that not every step has first.
fn metrics_of(action: &StepAction) -> Vec<String> {
    let of_step = catalog::ALL.iter().filter(|metric| metric.steps.contains(&action.kind()));
    let (of_all, own): (Vec<&Metric>, Vec<&Metric>) =
        of_step.partition(|metric| metric.steps.len() == StepKind::ALL.len());
    let mut names: Vec<String> = own.into_iter().chain(of_all).map(|metric| metric.name.to_owned()).collect();
    if let StepAction::Command { figures, .. } = action {
        names.splice(0..0, figures.iter().map(|figure| figure.name.clone()));
    }
    if let StepAction::Load(workload) = action {
        let further = load_metric::names(workload).into_iter().filter(|name| !names.contains(name));
        names.extend(further.collect::<Vec<_>>());
    }
    names
}

/// The names that have most words of this one, a few of them.
fn near(written: &str, known: &[String]) -> Option<String> {
    const SHOWN: usize = 6;
    let folded = written.to_lowercase();
    let words: Vec<&str> = folded.split([' ', '_', '-']).filter(|word| word.len() > 2).collect();
    let common = |name: &String| words.iter().filter(|word| name.to_lowercase().contains(**word)).count();
    let most = known.iter().map(common).max().filter(|most| *most > 0)?;
    let near: Vec<&str> = known.iter().filter(|name| common(name) == most).map(String::as_str).collect();
    let more = if near.len() > SHOWN { format!(" and {} more like these", near.len() - SHOWN) } else { String::new() };
    Some(format!("{}{more}", near[..near.len().min(SHOWN)].join(", ")))
}

/// "JOB METRIC" of a job with clones, which only each clone has: the metric of the whole load, and that of a clone.
fn of_clones<'k>(written: &str, known: &'k [String]) -> Option<(&'k str, &'k str)> {
    written.match_indices(' ').find_map(|(at, _)| {
        let (job, metric) = (&written[..at], &written[at + 1..]);
        let whole = known.iter().find(|name| *name == metric)?;
        let of_clone = |name: &&String| {
            let number = name.strip_prefix(job)?.strip_prefix('.')?.strip_suffix(metric)?.strip_suffix(' ')?;
            number.parse::<u32>().ok()
        };
        known.iter().find(|name| of_clone(name).is_some()).map(|clone| (whole.as_str(), clone.as_str()))
    })
}

const SUMS: [&str; 2] = [catalog::OPERATIONS_PER_SECOND.name, catalog::TRANSACTIONS_PER_SECOND.name];

#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) step: String,
    pub(super) metric: String,
    pub(super) is_load: bool,
    /// Whether no other kind of step has it.
    pub(super) is_special: bool,
    pub(super) span: Span,
}

pub(super) fn shown(step: &str, action: &StepAction, names: &[At<String>], report: &mut Report) -> Vec<Shown> {
    let known = if names.is_empty() { Vec::new() } else { metrics_of(action) };
    for At { span, value } in names.iter().filter(|name| !known.contains(&name.value)) {
        let what = match action {
            StepAction::Load(_) => "a load".to_owned(),
            action => format!("`{}`", action.kind().name()),
        };
        if let Some(metric) = catalog::find(value) {
            let kinds: Vec<&str> = metric.steps.iter().map(|kind| kind.name()).collect();
            report.push(
                Diagnostic::error(*span, format!("{what} has no metric `{value}`"))
                    .label("another kind of step has it")
                    .note(format!("steps that have it: {}", kinds.join(", "))),
            );
        } else {
            let diagnostic = Diagnostic::error(*span, format!("unknown metric `{value}`")).label("no such metric");
            if let Some((whole, one)) = of_clones(value, &known) {
                let note = format!("`{one}` and the like are of one clone each");
                report.push(diagnostic.help(format!("did you mean `{whole}`?")).note(note));
                continue;
            }
            report.push(match (closest(value, known.iter().map(String::as_str)), near(value, &known)) {
                (Some(metric), _) => diagnostic.help(format!("did you mean `{metric}`?")),
                (None, Some(near)) => diagnostic.note(format!("{what} has {near}")),
                (None, None) => diagnostic.note("docs/study-file.md has all, under \"Columns\""),
            });
        }
    }
    if let StepAction::Load(workload) = action
        && load_metric::mixes_paced_and_free(workload)
    {
        for At { span, .. } in names.iter().filter(|name| SUMS.contains(&name.value.as_str())) {
            let rates = load_metric::group_rates(workload).unwrap_or_default().join("`, `");
            report.push(
                Diagnostic::warning(*span, "some groups of this load are paced and others are not")
                    .label("a sum over both hides what the slower ones do")
                    .help(format!("show each group's: `{rates}`")),
            );
        }
    }
    let shown = |At { span, value }: &At<String>| Shown {
        step: step.to_owned(),
        metric: value.clone(),
        is_load: matches!(action, StepAction::Load(_)),
        is_special: match action {
            StepAction::Load(_) => false,
            StepAction::Command { figures, .. } => figures.iter().any(|figure| figure.name == *value),
            // The step `age` has no columns.
            _ => catalog::find(value).is_some_and(|metric| {
                metric.steps.strip_suffix(&[StepKind::Age]).unwrap_or(metric.steps) == [action.kind()]
            }),
        },
        span: *span,
    };
    names.iter().filter(|name| known.contains(&name.value)).map(shown).collect()
}

/// What a study shows that does not say what: the rate of each load, group by group, and what commands print. `span` is the steps' own.
pub(super) fn unasked<'a>(steps: impl Iterator<Item = (&'a str, &'a StepAction)>, span: Span) -> Vec<Shown> {
    let mut shown = Vec::new();
    for (step, action) in steps {
        let metrics = match action {
            StepAction::Load(workload) if workload.replay.is_some() => load_metric::of_replay(),
            StepAction::Load(workload) => load_metric::group_rates(workload)
                .unwrap_or_else(|| vec![catalog::OPERATIONS_PER_SECOND.name.to_owned()]),
            StepAction::Command { figures, .. } => figures.iter().map(|figure| figure.name.clone()).collect(),
            _ => continue,
        };
        let is_load = matches!(action, StepAction::Load(_));
        shown.extend(metrics.into_iter().map(|metric| Shown {
            step: step.to_owned(),
            metric,
            is_load,
            is_special: !is_load,
            span,
        }));
    }
    shown
}

/// The table's columns. Metrics of the only load that shows any, and one that a command prints, or only a check or a count of extents has, and
/// only one step shows, are called by their own names; everything else has its step's name before it: "fsck time".
pub(super) fn columns(shown: &[Shown], report: &mut Report) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for Shown { step, metric, is_load, is_special, span } in shown {
        let others = || shown.iter().filter(|other| other.step != *step);
        let is_plain = (*is_load && !others().any(|other| other.is_load))
            || (*is_special && !others().any(|other| other.metric == *metric));
        let header = if is_plain { metric.clone() } else { format!("{step} {metric}") };
        if columns.iter().any(|column| column.header == header) {
            report
                .push(Diagnostic::error(*span, format!("`{header}` is shown already")).label("the same column again"));
        }
        columns.push(Column { header, step: step.clone(), metric: metric.clone() });
    }
    columns
}
