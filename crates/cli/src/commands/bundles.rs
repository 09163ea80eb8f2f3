//! `fstone export`, `fstone import` and `fstone verify`: a run in one file, and whether its figures follow from what was
//! recorded.

use super::{
    Context, again, merge,
    publish::{left_out, show},
    stored::{no_such_run, open, read_or_exit},
};
use crate::{
    args::{ExportArguments, ImportArguments, VerifyArguments},
    exit::Exit,
    paths,
    terminal::{self, CommandResult, Failure, OrExit},
};
use fstone_analysis::{
    Analysis,
    text::{counted, listing},
};
use fstone_lab::trial::load_figures;
use fstone_model::{Dataset, LoadReport, StepResult, Trial, metric::catalog, text, units};
use fstone_report::publish::anonymous;
use fstone_store::{
    Store,
    bundle::{self, Imported, MergePart, Staged},
};
use std::path::Path;

pub(crate) fn export(context: &Context, arguments: &ExportArguments) -> CommandResult {
    let store = open(context)?;
    paths::require_directory_of(&arguments.file, "")?;
    let dataset = read_or_exit(store.dataset(arguments.run))?;
    let baselines = store.baselines().or_exit(Exit::LabFailed)?.into_iter();
    let named = baselines.filter(|baseline| baseline.run == arguments.run && !arguments.anonymous);
    let baselines: Vec<String> = named.map(|baseline| baseline.name).collect();
    let holds = if arguments.anonymous { left_out(&arguments.show) } else { contents(&dataset, &baselines) };
    let dataset = if arguments.anonymous {
        anonymous(&dataset, show(&arguments.show)).or_exit(Exit::LabFailed)?
    } else {
        dataset
    };
    match bundle::write_named(dataset, &baselines, &arguments.file) {
        Err(error @ bundle::ExportError::Exists { .. }) => return Err(error).or_exit(Exit::BadInput),
        other => other.or_exit(Exit::LabFailed)?,
    }
    let contents = bundle::verify(&arguments.file).or_exit(Exit::LabFailed)?;
    let packed = std::fs::metadata(&arguments.file).map_or(0, |metadata| metadata.len());
    terminal::print(&format!(
        "Run {} is in {}: {}, {} ({} unpacked).\n{holds}.\nIts SHA-256 digest, to pass on with it: {}\n",
        arguments.run,
        arguments.file.display(),
        counted(contents.trials as usize, "trial"),
        units::format_bytes(packed),
        units::format_bytes(contents.bytes),
        contents.digest
    ));
    Ok(Exit::Success)
}

/// What of the user's a bundle contains.
fn contents(dataset: &Dataset, baselines: &[String]) -> String {
    let run = &dataset.run;
    let mut parts = vec![
        format!("the name of this machine ({}), its hardware, mounts and kernel command line", run.inventory.host),
        "the study file and the files it names".to_owned(),
        "the command lines with their output".to_owned(),
    ];
    if !baselines.is_empty() {
        parts.push(format!("its names as a baseline ({})", baselines.join(", ")));
    }
    parts.extend(run.note.as_ref().map(|note| format!("the note ({})", note.as_str())));
    format!("It contains {}; --anonymous leaves out what may identify machine or user", text::line(&listing(&parts)))
}

pub(crate) fn import(context: &Context, arguments: &ImportArguments) -> CommandResult {
    // What is no bundle makes no store.
    let staged = arguments.files.iter().map(|file| Ok((file.display().to_string(), bundle::stage(file)?)));
    let staged: Vec<MergePart> = staged.collect::<Result<_, bundle::ImportError>>().or_exit(Exit::BadInput)?;
    if let Some(run) = arguments.into {
        return import_blocks(context, run, &staged);
    }
    let mut store = context.open_store()?;
    for (file, staged) in staged {
        import_run(&mut store, &file, staged)?;
    }
    Ok(Exit::Success)
}

fn import_blocks(context: &Context, run: u64, staged: &[MergePart]) -> CommandResult {
    let mut store = open_for_writing(context)?;
    let runs = store.runs().or_exit(Exit::LabFailed)?;
    let Some(summary) = runs.iter().find(|summary| summary.id == run) else {
        return Err(no_such_run(run));
    };
    merge::refuse_going_on(summary)?;
    let merged = merge::merge(&mut store, run, staged)?;
    let lacking = merge::finish_if_complete(&mut store, run)?;
    let (added, known) = (counted(merged.added as usize, "trial"), counted(merged.known as usize, "trial"));
    let mut words = match (merged.added, merged.known) {
        (0, _) => format!("Run {run} already has all of it ({known}); nothing was added. "),
        (_, 0) => format!("Added to run {run}: {added}. "),
        _ => format!("Added to run {run}: {added}; it already had {known}. "),
    };
    if lacking.is_empty() {
        words.push_str("It has all its blocks now.\n");
    } else {
        words.push_str(&format!(
            "It lacks block{} {}.\n",
            if lacking.len() == 1 { "" } else { "s" },
            merge::written(&lacking)
        ));
    }
    terminal::print(&words);
    Ok(Exit::Success)
}

fn open_for_writing(context: &Context) -> Result<Store, Failure> {
    drop(open(context)?);
    context.open_store()
}

fn import_run(store: &mut Store, file: &str, staged: Staged) -> Result<(), Failure> {
    let contents = staged.contents().clone();
    let imported = match staged.import(store, super::now_unix_ns()) {
        Err(error @ bundle::ImportError::Differs { .. }) => {
            let message = format!(
                "failed to {error}. Nothing was imported. Ask its author for the digest of the bundle, which is {} here; if they agree, import it into another store with --store",
                contents.digest
            );
            return Err(Failure::new(Exit::CannotHere, message));
        }
        other => other.or_exit(Exit::LabFailed)?,
    };
    let mut text = match imported {
        Imported::New(run) => format!(
            "{file} is run {run} here: {}, {} of {}, digest {}.\n",
            text::line(&contents.title),
            counted(contents.trials as usize, "trial"),
            text::line(&contents.host),
            contents.digest
        ),
        Imported::More { run, added } => format!(
            "{file} is run {run}, of which the store had an earlier state. Added: {}. It now has {}.\n",
            counted(added as usize, "trial"),
            contents.trials
        ),
        Imported::Known { run, trials } if trials == contents.trials => {
            format!("{file} is run {run}, which the store already has; nothing was imported.\n")
        }
        Imported::Known { run, trials } => format!(
            "{file} is an earlier state of run {run}, which the store already has with {}, including everything in the bundle. Nothing was imported.\n",
            counted(trials as usize, "trial")
        ),
    };
    let (Imported::New(run) | Imported::More { run, .. } | Imported::Known { run, .. }) = imported;
    for name in &contents.baselines {
        let shown = text::line(name);
        match store.baseline(name).or_exit(Exit::LabFailed)? {
            None => {
                store.save_baseline(name, run, super::now_unix_ns()).or_exit(Exit::LabFailed)?;
                text.push_str(&format!("It is the baseline {shown} here, too.\n"));
            }
            Some(other) if other != run => text.push_str(&format!(
                "It is the baseline {shown} where it comes from; here that is run {other}, and stays it.\n"
            )),
            Some(_) => {}
        }
    }
    terminal::print(&text);
    Ok(())
}

pub(crate) fn verify(context: &Context, arguments: &VerifyArguments) -> CommandResult {
    let (dataset, digest) = match arguments.what.parse::<u64>() {
        Ok(run) => (read_or_exit(open(context)?.dataset(run))?, None),
        Err(_) => {
            let path = Path::new(&arguments.what);
            let contents = bundle::verify(path).or_exit(Exit::BadInput)?;
            (bundle::read(path).or_exit(Exit::BadInput)?, Some(contents.digest))
        }
    };
    if arguments.again {
        return again::again(context, arguments, &dataset);
    }
    let verified = Verified::of(&dataset);
    let mut text = String::new();
    if let Some(digest) = digest {
        text.push_str(&format!("Every entry agrees with the manifest; digest {digest}.\n"));
    }
    text.push_str(&format!(
        "{}. Figures recomputed from the load engine's reports: {}, of which {} differ.\n\
         Readings (clocks, counters of the kernel and of tools): {}.\n\
         Figures of the table, computed from the trials: {} ({} × {}).\n",
        counted(dataset.trials.len(), "trial"),
        verified.recomputed,
        verified.wrong.len(),
        verified.read,
        verified.table.0 * verified.table.1,
        counted(verified.table.0, "row"),
        counted(verified.table.1, "column"),
    ));
    for line in verified.wrong.iter().take(MAX_TOLD) {
        text.push_str(&format!("! {}\n", text::line(line)));
    }
    let more = verified.wrong.len().saturating_sub(MAX_TOLD);
    if more > 0 {
        text.push_str(&format!("! and {more} more\n"));
    }
    terminal::print(&text);
    Ok(if verified.wrong.is_empty() { Exit::Success } else { Exit::Regression })
}

const MAX_TOLD: usize = 20;

#[derive(Default)]
struct Verified {
    /// Figures that follow from a load report.
    recomputed: usize,
    /// Figures that nothing else was recorded of.
    read: usize,
    /// Figures that are not what their report gives.
    wrong: Vec<String>,
    /// Rows and columns of the table.
    table: (usize, usize),
}

impl Verified {
    fn of(dataset: &Dataset) -> Self {
        let mut verified = Self::default();
        for trial in &dataset.trials {
            for step in &trial.steps {
                match &step.load {
                    Some(report) => {
                        let shown = dataset.run.plan.columns.iter().filter(|column| column.step == step.step);
                        verified.step(trial, step, report, shown.map(|column| column.metric.as_str()));
                    }
                    None => verified.read += step.figures.len(),
                }
            }
        }
        let table = Analysis::of(dataset);
        verified.table = (table.rows.len(), table.columns.len());
        verified
    }

    fn step<'a>(
        &mut self,
        trial: &Trial,
        step: &StepResult,
        report: &LoadReport,
        shown: impl Iterator<Item = &'a str>,
    ) {
        let place = |what: &str| {
            format!("cell {}, repetition {}, step {}, {what}", trial.id.cell, trial.id.repetition, step.step)
        };
        let again = load_figures(report, None);
        // Only what is shown: earlier versions recorded fewer figures of the same report.
        for metric in shown.filter(|metric| trial.outcome.is_completed() && step.figure(metric).is_none()) {
            if let Some(figure) = again.iter().find(|figure| figure.metric == metric) {
                self.wrong.push(place(&format!("{metric}: not recorded, but the raw data gives {}", figure.value)));
            }
        }
        for figure in &step.figures {
            let value = if figure.metric == catalog::WRITE_AMPLIFICATION.name {
                let device = step.figure(catalog::DEVICE_WRITTEN_BYTES.name).map(|figure| figure.value);
                device.filter(|_| report.written_bytes() > 0).map(|device| device / report.written_bytes() as f64)
            } else {
                again.iter().find(|other| other.metric == figure.metric).map(|other| other.value)
            };
            match value {
                None => self.read += 1,
                Some(value) => {
                    self.recomputed += 1;
                    if value.to_bits() != figure.value.to_bits() && !(value.is_nan() && figure.value.is_nan()) {
                        self.wrong.push(place(&format!(
                            "{}: {} is recorded, but the raw data gives {value}",
                            figure.metric, figure.value
                        )));
                    }
                }
            }
        }
    }
}
