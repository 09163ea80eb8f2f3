//! `fstone compare`: two runs, figure by figure, for people and for CI.

use super::{
    Context, now_unix_ns,
    publish::show,
    stored::{Place, figures, open},
};
use crate::{
    args::{Across, CompareArguments, CompareFormat},
    documents,
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
};
use fstone_analysis::{
    Analysis,
    runs::{self, CompareOptions, Mismatch, RunComparison, Setting},
};
use fstone_model::{Cell, Dataset};
use fstone_report::{compare, publish::anonymous};
use fstone_store::RecordError;

pub(crate) fn compare(context: &Context, arguments: &CompareArguments) -> CommandResult {
    if let Some(name) = &arguments.save_baseline {
        return save(context, arguments, name);
    }
    let (mut baseline, mut other) = match (&arguments.baseline, arguments.runs.as_slice()) {
        (None, [baseline, other]) => (find(context, baseline)?, find(context, other)?),
        (Some(name), rest @ ([] | [_])) => with_saved(context, name, rest.first().map(String::as_str))?,
        _ => {
            return Err(Failure::new(
                Exit::BadInput,
                "name two runs, or one and --baseline NAME: `fstone compare 3 7`, `fstone compare --baseline main 7`",
            ));
        }
    };
    if baseline.dataset.run.is_anonymous() || other.dataset.run.is_anonymous() {
        // What was left out of one of them says nothing about a difference.
        for named in [&mut baseline, &mut other] {
            named.dataset = anonymous(&named.dataset, show(&[])).or_exit(Exit::LabFailed)?;
        }
    }
    if baseline.dataset == other.dataset {
        return Err(Failure::new(Exit::BadInput, "both are the same run; compare it with another"));
    }
    match_single_rows(&mut baseline.dataset, &mut other.dataset);
    refuse_mismatches(&baseline, &other, &arguments.across)?;
    let (first, second) = (Analysis::of(&baseline.dataset), Analysis::of(&other.dataset));
    if let Some(unknown) =
        arguments.column.iter().find(|header| !first.columns.iter().any(|column| column.header == **header))
    {
        let known: Vec<&str> = first.columns.iter().map(|column| column.header.as_str()).collect();
        return Err(Failure::new(
            Exit::BadInput,
            format!("there is no column {unknown:?}; the columns are {}", known.join(", ")),
        ));
    }
    let options = CompareOptions {
        threshold: arguments.threshold,
        columns: arguments.column.clone(),
        required_power: arguments.require_power,
        allow_blind: arguments.allow_blind,
    };
    let comparison = RunComparison::of((&first, &baseline.name), (&second, &other.name), &options);
    let text = match arguments.format {
        CompareFormat::Terminal => {
            let color = arguments.output.is_none() && context.colored();
            compare::terminal(&comparison, terminal::width(), color)
        }
        CompareFormat::Markdown => compare::markdown(&comparison),
        CompareFormat::Junit => compare::junit(&comparison),
        CompareFormat::Json => compare::json(&comparison),
        CompareFormat::Html => compare::html(&comparison, None),
    };
    let found = match (comparison.has_regression(), comparison.is_undecided()) {
        (true, _) => Exit::Regression,
        (false, true) => Exit::Undecided,
        (false, false) => Exit::Success,
    };
    let delivered = documents::deliver(arguments.output.as_deref(), &text);
    Ok(match delivered {
        Ok(()) => found,
        Err(failure) => found.else_of(terminal::tell_failure(&failure)),
    })
}

/// Of runs with one row each on the same filesystem, these are compared whatever they are called: a directory as it is, and aged.
fn match_single_rows(baseline: &mut Dataset, other: &mut Dataset) {
    // A directory's says what it went through, too.
    let kind = |cell: &Cell| cell.filesystem.kind.split(", ").next().map(str::to_owned);
    if let ([before], [after]) = (&mut baseline.run.plan.cells[..], &mut other.run.plan.cells[..])
        && before.label != after.label
        && kind(before) == kind(after)
    {
        let both = format!("{} → {}", before.label, after.label);
        before.label.clone_from(&both);
        after.label = both;
    }
}

pub(crate) struct Named {
    pub(crate) dataset: Dataset,
    pub(crate) name: String,
}

/// A run by its number, or in a bundle.
pub(crate) fn find(context: &Context, name: &str) -> Result<Named, Failure> {
    let place = Place::of(name)?;
    let dataset = place.figures(context)?;
    let name = match &place {
        Place::Store(run) => format!("run {run}"),
        Place::Bundle(path) => {
            let file = path.file_name().map_or_else(|| name.into(), |file| file.to_string_lossy());
            format!("{file} (run {} of {})", dataset.run.id, dataset.run.inventory.host)
        }
    };
    Ok(Named { dataset, name })
}

/// The run saved under a name, and the one to compare with it: the last of its study unless it is given.
fn with_saved(context: &Context, name: &str, other: Option<&str>) -> Result<(Named, Named), Failure> {
    let store = open(context)?;
    let Some(run) = store.baseline(name).or_exit(Exit::LabFailed)? else {
        let known: Vec<String> =
            store.baselines().or_exit(Exit::LabFailed)?.into_iter().map(|baseline| baseline.name).collect();
        let known =
            if known.is_empty() { "none is saved yet".to_owned() } else { format!("saved are {}", known.join(", ")) };
        return Err(Failure::new(
            Exit::BadInput,
            format!("there is no baseline {name:?}; {known} (`fstone compare --save-baseline {name} RUN`)"),
        ));
    };
    let baseline = Named { dataset: figures(&store, run)?, name: format!("{name} (run {run})") };
    if let Some(other) = other {
        return Ok((baseline, find(context, other)?));
    }
    let runs = store.runs().or_exit(Exit::LabFailed)?;
    let last = runs.iter().rfind(|other| other.study == baseline.dataset.run.plan.study && other.id != run);
    let Some(last) = last else {
        return Err(Failure::new(
            Exit::BadInput,
            format!("{name} is run {run}, and there is no other run of {} yet", baseline.dataset.run.plan.study),
        ));
    };
    let other = Named { dataset: figures(&store, last.id)?, name: format!("run {}", last.id) };
    Ok((baseline, other))
}

fn save(context: &Context, arguments: &CompareArguments, name: &str) -> CommandResult {
    let [run] = arguments.runs.as_slice() else {
        return Err(Failure::new(
            Exit::BadInput,
            format!("name the run to save: `fstone compare --save-baseline {name} 3`"),
        ));
    };
    let Ok(run) = run.parse::<u64>() else {
        return Err(Failure::new(
            Exit::BadInput,
            format!("{run:?} is not the number of a run; import a bundle first (`fstone import`)"),
        ));
    };
    let dataset = figures(&open(context)?, run)?;
    if !dataset.trials.iter().any(|trial| trial.outcome.is_completed()) {
        let cure = match dataset.run.finished_unix_ns {
            None => "`fstone run` with `--resume` continues it",
            Some(_) => "`fstone list runs` shows those that have one",
        };
        let words = format!("run {run} has no completed trial that others could be compared with; {cure}");
        return Err(Failure::new(Exit::BadInput, words));
    }
    let mut store = context.open_store()?;
    let before = store.baseline(name).or_exit(Exit::LabFailed)?.filter(|before| *before != run);
    match store.save_baseline(name, run, now_unix_ns()) {
        Err(error @ RecordError::BaselineName { .. }) => Err(error).or_exit(Exit::BadInput)?,
        other => other.or_exit(Exit::LabFailed)?,
    }
    let replaced = before.map_or_else(String::new, |before| format!(" in place of run {before}"));
    terminal::print(&format!("Run {run} is now the baseline {name}{replaced}: `fstone compare --baseline {name}`.\n"));
    Ok(Exit::Success)
}

fn setting(across: Across) -> Setting {
    match across {
        Across::Study => Setting::Study,
        Across::Load => Setting::Load,
        Across::Executor => Setting::Executor,
        Across::Memory => Setting::Memory,
        Across::Device => Setting::Device,
        Across::Machine => Setting::Machine,
    }
}

/// Refuses runs whose difference says nothing of the filesystems.
pub(super) fn refuse_mismatches(baseline: &Named, other: &Named, across: &[Across]) -> Result<(), Failure> {
    let across: Vec<Setting> = across.iter().map(|across| setting(*across)).collect();
    let mut refused = runs::mismatches(&baseline.dataset, &other.dataset);
    refused.retain(|mismatch| !across.contains(&mismatch.setting));
    if refused.is_empty() {
        return Ok(());
    }
    Err(Failure::new(Exit::CannotHere, refusal(&baseline.name, &other.name, &refused)))
}

fn refusal(baseline: &str, other: &str, refused: &[Mismatch]) -> String {
    let mut text = format!("{other} is not compared with {baseline}:\n");
    for mismatch in refused {
        text.push_str(&format!("  {mismatch}\n"));
    }
    if refused.iter().any(|mismatch| mismatch.setting == Setting::Clock) {
        text.push_str("Run the study again with the other's clock: with --exact and the same --charge, or without");
        return text;
    }
    let words: Vec<&str> = refused.iter().map(|mismatch| mismatch.setting.word()).collect();
    text.push_str(&format!("To compare them anyway: --across {}", words.join(",")));
    text
}
