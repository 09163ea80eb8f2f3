//! `fstone list`: built-in studies, and the runs and baselines in the store.

use super::{Context, RunState, age, repeats};
use crate::{
    args::{ListArguments, ListWhat},
    exit::Exit,
    paths, studies,
    terminal::{self, CommandResult, OrExit},
};
use fstone_analysis::{text::counted, when};
use fstone_formats::study::Overrides;
use fstone_model::{Plan, text, units};
use std::fmt::Write as _;

pub(crate) fn list(context: &Context, arguments: &ListArguments) -> CommandResult {
    let mut text = String::new();
    let wanted = |what| arguments.what.is_none_or(|only| only == what);
    if wanted(ListWhat::Studies) {
        text.push_str("Studies (fstone run NAME [--quick]):\n");
        let width = studies::names().map(str::len).max().unwrap_or_default();
        for name in studies::names() {
            let study = studies::find(name).or_exit(Exit::LabFailed)?;
            let compile = |quick| {
                let overrides = Overrides { quick, ..Overrides::default() };
                study.compile(&overrides).map(|(plan, _)| plan).or_exit(Exit::LabFailed)
            };
            let (full, quick) = (compile(false)?, compile(true)?);
            let _ = writeln!(text, "  {name:<width$} {}", full.title);
            let _ = writeln!(text, "  {:<width$} full: {}; --quick: {}", "", extent(&full), extent(&quick));
        }
    }
    if wanted(ListWhat::Runs) {
        if !text.is_empty() {
            text.push('\n');
        }
        let runs = match context.read_store()? {
            Some(store) => store.runs().or_exit(Exit::LabFailed)?,
            None => Vec::new(),
        };
        if runs.is_empty() {
            let _ = writeln!(text, "No runs yet in {}.", context.store.display());
        } else {
            let _ = writeln!(text, "Runs in {} (fstone report RUN):", context.store.display());
            let _ = writeln!(
                text,
                "  {:>4}  {:<20}  {:<16}  {:<10}  trials  note",
                "run", "started (UTC)", "study", "state"
            );
            for run in runs {
                let state = RunState::of(&run).word();
                let started = utc(run.started_unix_ns);
                let (study, note) = (text::line(&run.study), run.note.map(String::from).unwrap_or_default());
                // In virtual time the kernel is what a run was about.
                let kernel = Some(&run.kernel).filter(|kernel| kernel.starts_with("exact:"));
                let note = kernel.map_or_else(|| note.clone(), |kernel| format!("{kernel} {note}"));
                let line =
                    format!("  {:>4}  {started:<20}  {study:<16}  {state:<10}  {:>6}  {note}", run.id, run.trials);
                let _ = writeln!(text, "{}", text::line(line.trim_end()));
            }
        }
    }
    if wanted(ListWhat::Baselines) {
        let baselines = match context.read_store()? {
            Some(store) => store.baselines().or_exit(Exit::LabFailed)?,
            None => Vec::new(),
        };
        // Without any they are news only to those who ask.
        if arguments.what.is_some() && baselines.is_empty() {
            let _ = writeln!(text, "No baselines yet in {}.", context.store.display());
        }
        if !baselines.is_empty() {
            text.push_str(if text.is_empty() { "" } else { "\n" });
            let _ = writeln!(text, "Baselines (fstone compare --baseline NAME RUN):");
        }
        for baseline in baselines {
            let (run, saved) = (baseline.run, utc(baseline.saved_unix_ns));
            let _ = writeln!(text, "  run {run:>4}  saved {saved}  {}", text::line(&baseline.name));
        }
    }
    let aged = age::summary(&fstone_lab::trial::kept_images(&paths::aged())).filter(|_| arguments.what.is_none());
    text.extend(aged.map(|aged| format!("\n{aged} (fstone age list).\n")));
    terminal::print(&text);
    Ok(Exit::Success)
}

/// "10 cells × 3 to 10 trials, about 3 h".
fn extent(plan: &Plan) -> String {
    let cells = counted(plan.cells.len(), "cell");
    let plural = if plan.repeats.max == 1 { "" } else { "s" };
    let trials = repeats(plan.repeats);
    let time =
        plan.expected_duration.map(|time| format!(", about {}", units::format_duration(time))).unwrap_or_default();
    format!("{cells} × {trials} trial{plural}{time}")
}

/// "2026-11-21 20:15:07".
pub(super) fn utc(unix_ns: u64) -> String {
    when::iso(unix_ns).replace('T', " ").replace('Z', "")
}
