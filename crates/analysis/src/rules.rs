//! The rules of Hoefler & Belli ("Scientific Benchmarking of Parallel Computing Systems", SC 2015), as far as a machine can check them.
//!
//! Each rule checks what a report is about to show, not how it was meant to be made: a report that breaks a rule says so.

use crate::{
    ceiling::is_on_device,
    clock,
    compare::{MAX_COMPARED_ROWS, PanelComparison},
    machines::{Machine, machines},
    run::Analysis,
    text::{counted, has, listing},
};
use fstone_model::{
    Cell, Inventory, LoadReport, Unit, load_metric,
    study::{KernelSpec, Order, StepAction},
};
use fstone_stats::compare::{Basis, Scale};

/// Anderson and Darling's statistic says little of fewer residuals (Stephens, "Goodness-of-Fit Techniques", 1986, tabulates it from
/// here on).
const MIN_RESIDUALS: usize = 8;
/// Two ways to compute the same figure may differ by this share.
const ROUNDING: f64 = 1e-6;
/// More problems than this are a count.
const MAX_TOLD: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its number in the paper.
    pub number: u8,
    /// What it asks, as far as it was checked.
    pub asks: &'static str,
    pub finding: Finding,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It is, and by what.
    Holds(String),
    Broken(String),
    /// There is nothing in the report that it is about, and why.
    NotApplicable(String),
}

impl Rule {
    pub const fn is_broken(&self) -> bool {
        matches!(self.finding, Finding::Broken(_))
    }

    /// "holds", "does not hold" or "does not apply".
    pub const fn verdict(&self) -> &'static str {
        match self.finding {
            Finding::Holds(_) => "holds",
            Finding::Broken(_) => "does not hold",
            Finding::NotApplicable(_) => "does not apply",
        }
    }

    pub fn words(&self) -> &str {
        match &self.finding {
            Finding::Holds(words) | Finding::Broken(words) | Finding::NotApplicable(words) => words,
        }
    }
}

type Check = (&'static str, fn(&Analysis<'_>) -> Finding);

/// In the order of the paper, whose first rule is number 1.
const CHECKS: [Check; 12] = [
    ("ratios name their base and show its own figure", base_of_ratios),
    ("omissions are reported with their reason", left_out),
    ("means suit what they summarise", means),
    ("ratios are ratios of means; no mean is a mean of ratios", ratios_of_means),
    ("figures that vary have an interval", intervals),
    ("normality is tested, not assumed", normality),
    ("differences are tested, all pairs of a column together", tests),
    ("mean latencies come with percentiles from enough operations", percentiles),
    ("factors, levels and the set-up are recorded", set_up),
    ("how and in which order times were measured is recorded", measurement),
    ("the best that the device can do is known", upper_bound),
    ("lines join ordered levels only", lines),
];

impl Analysis<'_> {
    pub fn rules(&self) -> Vec<Rule> {
        let of = |(number, (asks, check)): (u8, &Check)| Rule { number, asks, finding: check(self) };
        (1..).zip(&CHECKS).map(of).collect()
    }

    pub fn rules_in_words(&self) -> String {
        if self.completed() == 0 {
            return "No trial completed, so no rule of Hoefler & Belli (SC 2015) applies.".to_owned();
        }
        let rules = self.rules();
        let applicable = rules.iter().filter(|rule| !matches!(rule.finding, Finding::NotApplicable(_))).count();
        let broken: Vec<String> = rules
            .iter()
            .filter(|rule| rule.is_broken())
            .map(|rule| format!("{} ({})", rule.number, rule.words()))
            .collect();
        let of = "rules of Hoefler & Belli (SC 2015) that apply and that a program can check";
        match broken.len() {
            0 => format!("All {applicable} {of} hold."),
            1 => format!("Of the {applicable} {of}, one does not hold: {}.", broken[0]),
            count => format!("Of the {applicable} {of}, {count} do not hold: {}.", listing(&broken)),
        }
    }
}

/// Broken by any problem; else it holds by what is said.
fn unless(mut problems: Vec<String>, holds: impl FnOnce() -> String) -> Finding {
    // Panels of a column often have the same one.
    problems.dedup();
    if problems.is_empty() {
        return Finding::Holds(holds());
    }
    let more = problems.len().saturating_sub(MAX_TOLD);
    let mut told: Vec<String> = problems.into_iter().take(MAX_TOLD).collect();
    if more > 0 {
        told.push(format!("{more} more"));
    }
    Finding::Broken(told.join("; "))
}

fn base_of_ratios(analysis: &Analysis<'_>) -> Finding {
    let mut problems = Vec::new();
    let mut any = false;
    for row in &analysis.rows {
        let base = analysis.baseline_of(row.panel);
        for (entry, column) in row.entries.iter().zip(&analysis.columns).filter(|(entry, _)| entry.ratio.is_some()) {
            any = true;
            let index = analysis.columns.iter().position(|other| std::ptr::eq(other, column));
            let shown = base.zip(index).and_then(|(base, index)| analysis.rows[base].entries[index].mean());
            if shown.is_none() || entry.mean().is_none() {
                problems.push(format!("{} of {} has a ratio without its base", column.header, row.label));
            }
        }
    }
    match analysis.baseline_name() {
        _ if !any => Finding::NotApplicable("no ratios are shown".to_owned()),
        None => Finding::Broken("ratios are shown, but no baseline is named".to_owned()),
        Some(name) => unless(problems, || format!("the base is {name}, whose own figures are in the table")),
    }
}

fn left_out(analysis: &Analysis<'_>) -> Finding {
    let mut problems = Vec::new();
    if analysis.dataset.run.finished_unix_ns.is_none() {
        problems.push("the run has not ended, so trials are missing".to_owned());
    }
    let silent: Vec<&str> = analysis
        .rows
        .iter()
        .filter(|row| row.completed == 0 && row.footnotes.is_empty())
        .map(|row| row.label.as_str())
        .collect();
    if !silent.is_empty() {
        problems.push(format!("{} {} no trial and no reason", listing(&silent), has(silent.len())));
    }
    unless(problems, || {
        let failed = analysis.trials() - analysis.completed();
        match failed {
            0 => "every row of the study was run, and every trial completed".to_owned(),
            _ => format!("{} did not complete, each with its reason", counted(failed, "trial")),
        }
    })
}

fn compared<'a>(analysis: &'a Analysis<'_>) -> impl Iterator<Item = (usize, &'a PanelComparison)> {
    let columns = analysis.comparisons.iter().enumerate();
    columns.flat_map(|(column, of)| of.panels.iter().flatten().map(move |panel| (column, panel)))
}

const fn is_rate(unit: Unit) -> bool {
    matches!(unit, Unit::PerSecond | Unit::BytesPerSecond)
}

fn means(analysis: &Analysis<'_>) -> Finding {
    let mut problems = Vec::new();
    for (column, panel) in compared(analysis) {
        let view = &analysis.columns[column];
        if is_rate(view.unit) && panel.comparison.scale == Scale::Differences {
            problems.push(format!("{}: rates that include zeros have arithmetic means", view.header));
            continue;
        }
        let entry = |row: &usize| &analysis.rows[*row].entries[column];
        let blocks = |row: &usize| -> Vec<u32> {
            let row = &analysis.rows[*row];
            let mut blocks: Vec<u32> =
                row.entries[column].values.iter().map(|value| row.trials[value.trial].id.repetition).collect();
            blocks.sort_unstable();
            blocks
        };
        // If a row lacks a block, the published figure is not just the mean of its own figures.
        let whole = panel.rows.windows(2).all(|pair| blocks(&pair[0]) == blocks(&pair[1]));
        // A fit rounds by the size of what it fits, and a row may be all zeros.
        let of_panel = panel.rows.iter().flat_map(|row| &entry(row).values);
        let size = of_panel.fold(0.0, |size: f64, value| size.max(value.value.abs()));
        for row in panel.rows.iter().filter(|_| whole) {
            let values: Vec<f64> = entry(row).values.iter().map(|value| value.value).collect();
            let n = values.len() as f64;
            let expected = match panel.comparison.scale {
                Scale::Ratios => (values.iter().map(|value| value.ln()).sum::<f64>() / n).exp(),
                Scale::Differences => values.iter().sum::<f64>() / n,
            };
            if entry(row).mean().is_none_or(|mean| (mean - expected).abs() > ROUNDING * size) {
                problems
                    .push(format!("{} of {} is not the mean of its trials", view.header, analysis.rows[*row].label));
            }
        }
    }
    if analysis.completed() == 0 {
        return Finding::NotApplicable("no trial completed".to_owned());
    }
    unless(problems, || {
        "rates, times and sizes have geometric means, which favour neither a rate nor its time, shares arithmetic ones"
            .to_owned()
    })
}

fn ratios_of_means(analysis: &Analysis<'_>) -> Finding {
    let mut problems = Vec::new();
    let mut any = false;
    for row in &analysis.rows {
        for (column, entry) in row.entries.iter().enumerate() {
            let base = analysis.baseline_of(row.panel).and_then(|base| analysis.rows[base].entries[column].mean());
            let (Some(ratio), Some(mean), Some(base)) = (entry.ratio, entry.mean(), base) else { continue };
            any = true;
            if (ratio - mean / base).abs() > ROUNDING * ratio.abs() {
                let header = &analysis.columns[column].header;
                problems.push(format!("the ratio of {header} of {} is not that of the means", row.label));
            }
        }
    }
    if !any {
        return Finding::NotApplicable("no ratios are shown".to_owned());
    }
    unless(problems, || "every ratio is a row’s mean over that of the base".to_owned())
}

fn intervals(analysis: &Analysis<'_>) -> Finding {
    let shown: Vec<_> = analysis.entries().filter(|entry| !entry.values.is_empty()).collect();
    if shown.is_empty() {
        return Finding::NotApplicable("no trial completed".to_owned());
    }
    if clock::is_one_seed(analysis.dataset) {
        return Finding::NotApplicable("figures are exact for their seed".to_owned());
    }
    let without = shown.iter().filter(|entry| entry.interval.is_none() && !entry.counted_nothing()).count();
    let problems = if without == 0 {
        Vec::new()
    } else {
        let columns = 0..analysis.columns.len();
        let doubted =
            columns.map(|column| analysis.rows.iter().filter(|row| row.is_doubted(column)).count()).sum::<usize>();
        let why = match doubted {
            0 => "for want of repeats",
            _ if doubted >= without => "since perturbed guests failed",
            _ => "since perturbed guests failed or for want of repeats",
        };
        vec![format!("{} of {} have none, {why}", without, counted(shown.len(), "figure"))]
    };
    unless(problems, || {
        let exact: Vec<&str> = analysis
            .columns
            .iter()
            .enumerate()
            .filter(|(column, _)| {
                let mut of = compared(analysis).filter(|(of, _)| of == column).peekable();
                of.peek().is_some() && of.all(|(_, panel)| panel.comparison.basis == Basis::Exact)
            })
            .map(|(_, column)| column.header.as_str())
            .collect();
        match exact.as_slice() {
            [] => "every figure has one".to_owned(),
            exact => format!("every figure has one; {} does not vary", listing(exact)),
        }
    })
}

fn normality(analysis: &Analysis<'_>) -> Finding {
    let by_means: Vec<(usize, &PanelComparison)> =
        compared(analysis).filter(|(_, panel)| panel.comparison.basis == Basis::Means).collect();
    if by_means.is_empty() || clock::is_one_seed(analysis.dataset) {
        return Finding::NotApplicable("nothing rests on normality".to_owned());
    }
    let residuals = |column: usize, panel: &PanelComparison| -> usize {
        panel.rows.iter().map(|row| analysis.rows[*row].entries[column].values.len()).sum()
    };
    let few: Vec<(usize, usize)> = by_means
        .iter()
        .map(|(column, panel)| (*column, residuals(*column, panel)))
        .filter(|(_, residuals)| *residuals < MIN_RESIDUALS)
        .collect();
    let mut counts: Vec<(usize, Vec<&str>)> = Vec::new();
    for (column, residuals) in few {
        let header = analysis.columns[column].header.as_str();
        match counts.iter_mut().find(|(count, _)| *count == residuals) {
            Some((_, headers)) if headers.contains(&header) => {}
            Some((_, headers)) => headers.push(header),
            None => counts.push((residuals, vec![header])),
        }
    }
    let problems = counts
        .iter()
        .map(|(count, headers)| {
            format!("{}: {} are too few for a test of normality", listing(headers), counted(*count, "residual"))
        })
        .collect();
    unless(problems, || {
        let ranks = compared(analysis).filter(|(_, panel)| panel.comparison.basis == Basis::Ranks).count();
        let took = if ranks > 0 { "; where the test failed, rank tests are used" } else { ", and passed" };
        format!("residuals were tested by Anderson and Darling’s statistic{took}")
    })
}

fn tests(analysis: &Analysis<'_>) -> Finding {
    let mut problems = Vec::new();
    let mut any = false;
    for (column, of) in analysis.comparisons.iter().enumerate() {
        let header = &analysis.columns[column].header;
        for (panel, compared) in analysis.structure.panels.iter().zip(&of.panels) {
            let present =
                panel.rows.iter().filter(|row| !analysis.rows[**row].entries[column].values.is_empty()).count();
            any |= present > 1;
            match compared {
                None if present > MAX_COMPARED_ROWS => {
                    problems.push(format!("{header}: {present} rows are too many to compare"));
                }
                Some(compared) if compared.is_powerless() => {
                    let why =
                        if compared.lacks_guests() { "since perturbed guests failed" } else { "with so few trials" };
                    problems.push(format!("{header}: {why} no difference can show"));
                }
                Some(compared) => {
                    let apart = |interval: &fstone_stats::Interval| interval.low > 0.0 || interval.high < 0.0;
                    let contradicts = compared.comparison.pairs.iter().any(|pair| {
                        // With ties a rank test may find what its interval does not: that counts as none.
                        (pair.differs && pair.adjusted_p > compared.comparison.alpha)
                            || pair.differs != apart(&pair.shift.interval)
                    });
                    if contradicts {
                        problems.push(format!("{header}: a difference contradicts its interval or its p-value"));
                    }
                }
                None => {}
            }
        }
    }
    if !any {
        return Finding::NotApplicable("there are no two rows to compare".to_owned());
    }
    if clock::is_one_seed(analysis.dataset) {
        return Finding::NotApplicable("figures are exact for their seed".to_owned());
    }
    unless(problems, || {
        "every difference has a p-value over all pairs of its column and an interval that leaves out zero".to_owned()
    })
}

/// The reports of a step's loads, in completed trials.
fn reports<'a>(analysis: &'a Analysis<'_>, step: &'a str) -> impl Iterator<Item = &'a LoadReport> {
    let trials = analysis.rows.iter().flat_map(|row| &row.trials).filter(|trial| trial.outcome.is_completed());
    trials.flat_map(|trial| &trial.steps).filter(move |of| of.step == step).filter_map(|of| of.load.as_deref())
}

fn percentiles(analysis: &Analysis<'_>) -> Finding {
    let mut problems = Vec::new();
    let mut any = false;
    for column in &analysis.columns {
        if let Some(part) = column.metric.strip_suffix("latency mean") {
            any = true;
            let beside = |other: &str| {
                other.strip_prefix(part).and_then(|rest| rest.strip_prefix("latency ")).is_some_and(|of| of != "mean")
            };
            let drawn = reports(analysis, &column.step)
                .any(|report| report.operations.iter().any(|operation| operation.latency.count() > 0));
            if !drawn && !analysis.columns.iter().any(|other| other.step == column.step && beside(&other.metric)) {
                problems.push(format!("{} is a mean alone", column.header));
            }
        }
        let Some((name, percentile)) = column.metric.rsplit_once(" latency p") else { continue };
        let Ok(percentile) = percentile.parse::<f64>() else { continue };
        any = true;
        // A load without any has no such figure either.
        let counts = reports(analysis, &column.step).map(|report| load_metric::latencies_of(report, name));
        let too_few = counts.filter(|behind| behind.count() > 0 && !behind.has_percentile(percentile));
        if let Some(fewest) = too_few.map(|behind| behind.count()).min() {
            problems.push(format!("{}: {fewest} latencies of a trial are too few for this percentile", column.header));
        }
    }
    let drawn = || analysis.columns.iter().any(|column| reports(analysis, &column.step).next().is_some());
    if !any && !drawn() {
        return Finding::NotApplicable("no latency is shown".to_owned());
    }
    unless(problems, || "means have percentiles beside them, in columns or in the figures of the load".to_owned())
}

fn set_up(analysis: &Analysis<'_>) -> Finding {
    let run = &analysis.dataset.run;
    let inventory = &run.inventory;
    let facts = [
        ("the kernel", inventory.kernel.is_empty()),
        ("the processor", inventory.cpu_model.is_empty() || inventory.cpus == 0),
        ("the memory", inventory.memory_bytes == 0),
        ("fstone’s version", inventory.fstone_version.is_empty()),
        ("the study file", run.plan.source.is_empty()),
        ("the device", inventory.device.is_none() && run.plan.cells.iter().any(is_on_device)),
        ("the tools’ versions", inventory.tools.is_empty() && run.plan.cells.iter().any(makes_filesystem)),
    ];
    let missing: Vec<&str> = facts.iter().filter(|(_, missing)| *missing).map(|(fact, _)| *fact).collect();
    let mut problems = Vec::new();
    if !missing.is_empty() {
        problems.push(format!("not recorded: {}", listing(&missing)));
    }
    let unread: Vec<&str> = analysis
        .rows
        .iter()
        .filter(|row| {
            let cell = run.plan.cells.iter().find(|cell| cell.index == row.cell);
            let of_host = cell.is_some_and(|cell| mounts(cell) && cell.kernel == KernelSpec::Host);
            let completed = |trial: &&&fstone_model::Trial| trial.outcome.is_completed();
            of_host && row.trials.iter().filter(completed).any(|trial| trial.effective.mount.is_none())
        })
        .map(|row| row.label.as_str())
        .collect();
    if !unread.is_empty() {
        problems.push(format!("mount options in force were not read back for {}", listing(&unread)));
    }
    unless(problems, || {
        format!(
            "{} of {}, the machine, its tools, the options in force and the study file",
            counted(run.plan.cells.len(), "row"),
            counted(analysis.structure.varied.len(), "factor")
        )
    })
}

fn makes_filesystem(cell: &Cell) -> bool {
    cell.steps.iter().any(|step| matches!(step.action, StepAction::Mkfs))
}

fn mounts(cell: &Cell) -> bool {
    cell.steps.iter().any(|step| matches!(step.action, StepAction::Mount))
}

fn measurement(analysis: &Analysis<'_>) -> Finding {
    let plan = &analysis.dataset.run.plan;
    let mut problems = Vec::new();
    if plan.order == Order::AsWritten && plan.cells.len() > 1 {
        problems.push("trials ran in the order written, so that drift of the machine favours some rows".to_owned());
    }
    let loads = analysis.rows.iter().flat_map(|row| &row.trials).flat_map(|trial| &trial.steps);
    let without = loads.filter_map(|step| step.load.as_deref()).filter(|load| load.clock.source.is_empty()).count();
    if without > 0 {
        let verb = if without == 1 { "does" } else { "do" };
        problems.push(format!("{} {verb} not say which clock was used", counted(without, "load")));
    }
    let all = analysis.completed();
    if 2 * analysis.disturbed > all {
        let verb = if analysis.disturbed == 1 { "was" } else { "were" };
        problems.push(format!(
            "{} of {} {verb} disturbed by other work on the machine",
            analysis.disturbed,
            counted(all, "trial")
        ));
    }
    unless(problems, || match plan.order {
        Order::Blocks => format!(
            "each step’s time is recorded separately, trials ran in shuffled blocks (seed {}), and loads record what their clock costs",
            plan.seed
        ),
        Order::AsWritten => "each step’s time is recorded separately, and there is only one row".to_owned(),
    })
}

fn upper_bound(analysis: &Analysis<'_>) -> Finding {
    let run = &analysis.dataset.run;
    if !run.plan.cells.iter().any(is_on_device) {
        return Finding::NotApplicable("nothing was measured on a device of this machine".to_owned());
    }
    let machines = machines(analysis.dataset);
    // Of every machine that made trials.
    let known = |rate: fn(&Inventory) -> Option<f64>| {
        let known = |machine: &Machine<'_>| rate(machine.inventory).is_some_and(|rate| rate > 0.0);
        !machines.is_empty() && machines.iter().all(known)
    };
    let measured = [
        ("reads", known(|machine| machine.raw_read_bytes_per_second)),
        ("writes", known(|machine| machine.raw_write_bytes_per_second)),
        ("flushes", known(|machine| machine.flushes_per_second)),
    ];
    let of: Vec<&str> = measured.iter().filter(|(_, known)| *known).map(|(what, _)| *what).collect();
    if of.is_empty() {
        return Finding::Broken("the device’s own speed was not measured".to_owned());
    }
    Finding::Holds(format!("the device’s own {} were measured before the run", listing(&of)))
}

fn lines(analysis: &Analysis<'_>) -> Finding {
    let sweeps = &analysis.structure.sweeps;
    if sweeps.is_empty() {
        return Finding::NotApplicable("no figure joins rows by a line".to_owned());
    }
    let ordered = |axis: usize| {
        let factor = &analysis.structure.varied[axis];
        factor.numbers.as_ref().is_some_and(|numbers| {
            let mut distinct = numbers.clone();
            distinct.sort_unstable();
            distinct.dedup();
            distinct.len() == numbers.len() && numbers.len() == factor.levels.len()
        })
    };
    let mut axes: Vec<usize> = sweeps.iter().map(|sweep| sweep.axis).collect();
    axes.sort_unstable();
    axes.dedup();
    let name = |axis: &usize| analysis.structure.varied[*axis].name.as_str();
    let problems = axes
        .iter()
        .filter(|axis| !ordered(**axis))
        .map(|axis| format!("the levels of {} have no order", name(axis)))
        .collect();
    unless(problems, || {
        format!("lines run over {}, whose levels are numbers", listing(&axes.iter().map(name).collect::<Vec<_>>()))
    })
}
