//! Goes through the commands, and makes a phase of every run.

use super::files::{Files, files};
use super::flow::{Composite, Flow, World};
use super::options::Options;
use super::tree::{At, Attribute, Command, Quit, Thread};
use super::value::{Attributes, Scope};
use crate::diagnostic::{Diagnostic, Report, Span};
use fstone_model::workload::{
    Actions, IoOverrides, MAXIMUM_THREADS, OpenPolicy, OpenSync, Phase, Region, Step, Stop, ThreadGroup, Workload,
};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const USUAL_SECONDS: u64 = 60;
const MAXIMUM_RUNS: usize = 100;

/// What has been said until a run.
#[derive(Default)]
struct Said<'a> {
    scope: Scope,
    files: Vec<(bool, &'a [Attribute], Span)>,
    processes: Vec<(&'a [Attribute], &'a [Thread], Span)>,
    composites: HashMap<String, Composite>,
    rate: Option<&'a [Attribute]>,
    quit: Option<Quit>,
    syncs: bool,
    drops_caches: u32,
}

pub(super) fn workload(commands: &[At<Command>], name: &str, options: Options, report: &mut Report) -> Workload {
    let mut said = Said::default();
    let mut load = Workload::new(name, Vec::new(), Vec::new());
    let mut runs = 0;
    for command in commands {
        match &command.value {
            Command::Set { name, value } => {
                // What is set to another variable is set to what that is by now.
                if let Some(value) = said.scope.plain(value, report) {
                    said.scope.set(&name.value, value);
                }
            }
            Command::Mode(quit) => said.quit = Some(quit.value),
            Command::Files { one, attributes } => said.files.push((*one, attributes, command.span)),
            Command::Process { attributes, threads } => said.processes.push((attributes, threads, command.span)),
            Command::Flowop { attributes, locals, flowops } => {
                let of = Attributes::new(attributes, &said.scope);
                match of.text("name", report) {
                    None => report.push(Diagnostic::error(command.span, "this flowop has no name").help("name=dowork")),
                    Some(name) => {
                        let composite = Composite {
                            locals: locals.clone(),
                            attributes: attributes.clone(),
                            flowops: flowops.clone(),
                        };
                        said.composites.insert(name.value, composite);
                    }
                }
            }
            Command::Eventgen { attributes } => said.rate = Some(attributes),
            Command::Run { seconds } => {
                runs += 1;
                if runs > MAXIMUM_RUNS {
                    report.push(Diagnostic::error(command.span, format!("more than {MAXIMUM_RUNS} runs")));
                    break;
                }
                let seconds = match seconds {
                    Some(seconds) => said.scope.number(seconds, report).unwrap_or(USUAL_SECONDS),
                    None => USUAL_SECONDS,
                };
                said.run(&mut load, seconds, options, command.span, report);
                (said.syncs, said.drops_caches) = (false, 0);
            }
            Command::Settle { syncs, drops_caches } => {
                said.syncs |= syncs;
                said.drops_caches |= drops_caches;
            }
            Command::Quit => break,
            Command::Nothing => {}
            Command::Refused { why, cure } => report.push(Diagnostic::error(command.span, *why).help(*cure)),
        }
    }
    if runs == 0 && !said.processes.is_empty() {
        let place = said.processes.last().map_or_else(Span::default, |(_, _, span)| *span);
        if options.seconds.is_none() {
            report.push(
                Diagnostic::warning(place, format!("no `run` follows, so it runs for {USUAL_SECONDS} seconds"))
                    .note("filebench itself would load this file and run nothing")
                    .help(format!("end the file with: run {USUAL_SECONDS}")),
            );
        }
        said.run(&mut load, USUAL_SECONDS, options, place, report);
    }
    if load.phases.is_empty() && !report.has_errors() {
        report
            .push(Diagnostic::whole("there is nothing to run").help("define a process, and end the file with: run 60"));
    }
    load
}

impl Said<'_> {
    fn run(&self, load: &mut Workload, seconds: u64, options: Options, place: Span, report: &mut Report) {
        let mut all: Vec<Files> = Vec::new();
        for (one, attributes, span) in &self.files {
            let Some(made) = files(*one, attributes, &self.scope, options.placement, *span, report) else { continue };
            if let Some(first) = all.iter().find(|files| files.name == made.name) {
                report.push(
                    Diagnostic::error(made.span, format!("`{}` is defined already", made.name))
                        .context(first.span, "the first"),
                );
                continue;
            }
            all.push(made);
        }
        if load.phases.is_empty() {
            load.filesets = all.iter().map(|files| files.fileset.clone()).collect();
        } else if load.filesets.len() != all.len() {
            report.push(
                Diagnostic::error(place, "files that are defined between two runs")
                    .help("define all files before the first run, or make two files of this one"),
            );
        }
        let rate = self.rate.and_then(|attributes| {
            let rate = Attributes::new(attributes, &self.scope).number("rate", 0, report);
            (rate > 0).then_some(rate as f64)
        });
        if self.processes.is_empty() {
            report.push(
                Diagnostic::error(place, "there is no process to run").help("define process name=… { thread … }"),
            );
            return;
        }
        let mut groups: Vec<ThreadGroup> = Vec::new();
        for (attributes, threads, span) in &self.processes {
            self.process(attributes, threads, *span, &all, rate, &mut groups, report);
        }
        if groups.is_empty() && !report.has_errors() {
            report.push(
                Diagnostic::error(place, "there is no thread to run")
                    .label("every process or thread has 0 instances")
                    .help("instances=1"),
            );
        }
        posted(&groups, place, report);
        let threads: u64 = groups.iter().map(|group| u64::from(group.threads)).sum();
        if threads > MAXIMUM_THREADS {
            report.push(
                Diagnostic::error(place, format!("{threads} threads in all"))
                    .label(format!("at most {MAXIMUM_THREADS} are run")),
            );
        }
        let seconds = options.seconds.unwrap_or(seconds);
        let number = load.phases.len() + 1;
        let stop = Stop {
            time: Some(Duration::from_secs(if seconds == 0 { USUAL_SECONDS } else { seconds })),
            first_done: self.quit != Some(Quit::AllDone),
            ..Stop::default()
        };
        let name = if number == 1 { "run".to_owned() } else { format!("run {number}") };
        let (syncs, drops_caches) = (self.syncs, self.drops_caches);
        load.phases.push(Phase { syncs, drops_caches, ..Phase::new(name, groups, stop) });
    }

    #[expect(clippy::too_many_arguments, reason = "what a process is made of, and where it goes")]
    fn process(
        &self,
        attributes: &[Attribute],
        threads: &[Thread],
        span: Span,
        all: &[Files],
        rate: Option<f64>,
        groups: &mut Vec<ThreadGroup>,
        report: &mut Report,
    ) {
        let of = Attributes::new(attributes, &self.scope);
        let Some(process) = of.text("name", report) else {
            report.push(Diagnostic::error(span, "this process has no name").help("name=filereader"));
            return;
        };
        if of.number("nice", 0, report) > 0 {
            report.push(
                Diagnostic::error(of.span("nice", span), "`nice` is not done")
                    .help("start fstone with nice(1), or leave it out"),
            );
        }
        let instances = of.number("instances", 1, report);
        for thread in threads {
            let of = Attributes::new(&thread.attributes, &self.scope);
            let Some(name) = of.text("name", report) else {
                report.push(Diagnostic::error(thread.span, "this thread has no name").help("name=filereaderthread"));
                continue;
            };
            if of.get("ioprio").is_some() {
                report.push(
                    Diagnostic::error(of.span("ioprio", thread.span), "`ioprio` is not done")
                        .help("start fstone with ionice(1), or leave it out"),
                );
            }
            let count = of.number("instances", 1, report).saturating_mul(instances);
            if count == 0 {
                continue;
            }
            let world = World {
                files: all,
                composites: &self.composites,
                rate,
                memory: of.number("memsize", 0, report),
                processes: instances,
            };
            let mut flow = Flow::default();
            let steps = flow.steps(&thread.flowops, &self.scope, &world, report);
            if Step::actions(&steps).is_empty() {
                if !report.has_errors() {
                    report.push(Diagnostic::error(thread.span, "this thread does nothing with files"));
                }
                continue;
            }
            let mut full = format!("{}.{}", process.value, name.value);
            if process.value == name.value || threads.len() == 1 {
                full.clone_from(&process.value);
            }
            let taken = |name: &str| groups.iter().any(|group| group.name == name);
            if taken(&full) {
                full = (2..).map(|number| format!("{full} {number}")).find(|name| !taken(name)).unwrap_or(full);
            }
            let mut group = ThreadGroup::new(full, u32::try_from(count).unwrap_or(u32::MAX), Actions::Program(steps));
            if let Some((opening, _)) = flow.opening {
                group.io = IoOverrides {
                    direct: opening.direct.then_some(true),
                    // filebench's `dsync` is O_SYNC.
                    sync: opening.dsync.then_some(OpenSync::Sync),
                    ..IoOverrides::default()
                };
            }
            if threads.len() > 1 {
                group.process = Some(process.value.clone());
            }
            if flow.keeps_open {
                group.open = OpenPolicy::KeepOpen;
            }
            if let Some((bytes, _)) = flow.working_set.filter(|(bytes, _)| *bytes > 0) {
                group.region = Region::At { offset_bytes: 0, length_bytes: Some(bytes), step_bytes: 0 };
            }
            groups.push(group);
        }
    }
}

/// Reports posts to a flowop for which nobody waits.
fn posted(groups: &[ThreadGroup], place: Span, report: &mut Report) {
    let steps: Vec<&Step> = groups
        .iter()
        .flat_map(|group| match &group.actions {
            Actions::Program(steps) => Step::all(steps),
            _ => Vec::new(),
        })
        .collect();
    let waits: HashSet<&str> = steps
        .iter()
        .filter_map(|step| if let Step::Wait { name, .. } = step { Some(name.as_str()) } else { None })
        .collect();
    for step in &steps {
        if let Step::Post { to, .. } = step
            && !waits.contains(to.as_str())
        {
            report.push(
                Diagnostic::error(place, format!("no `semblock` or `block` is called `{to}`"))
                    .did_you_mean(to, waits.iter().copied()),
            );
        }
    }
}
