//! The steps of a trial.

use super::{
    MAXIMUM_STEPS, figures,
    load::{self, Files, Load, Made, Number},
    placeholder,
    service::Known,
    show::{self, Shown},
    source_tree,
    surface::{CommandSurface, CommandTable, StepSurface},
};
use crate::{
    decode::{At, Count, Field, OneOrMany, Text},
    diagnostic::{Diagnostic, Report, Span},
    loads::sysbench,
};
use fstone_model::{
    StepKind,
    age::Past,
    study::{PowerCut, Step, StepAction, TRIAL_STEP},
};
use std::{sync::Arc, time::Duration};

/// Names under which the lab records what is no step of the study: the trial itself, a guest in virtual time, and ageing.
const RESERVED: [&str; 3] = [TRIAL_STEP, "guest", StepKind::Age.name()];

/// Of power cuts, when a study does not say.
const DEFAULT_STATES: u32 = 200;
const DEFAULT_LOG_BYTES: u64 = 1 << 30;

const MINUTE: Duration = Duration::from_secs(60);

/// How long a step may take when the study does not say. Long enough for a slow disk that is healthy: what takes longer
/// is taken to hang.
///
/// mkfs, mount, remount, unmount, sync, trim 10 min each (unmounting writes back what is dirty); drop-caches 5 min; fsck
/// 3 h (the published studies saw 67 min); fragmentation and copy-in 1 h; a command and power-cut 2 h; a service 1 h to make its data; ageing a day; a load three times its time
/// limit and an hour, or 6 h when it has no time limit, and what its files take at 20 MB/s.
pub fn default_limit(action: &StepAction) -> Duration {
    match action {
        StepAction::Mkfs
        | StepAction::Mount
        | StepAction::Remount
        | StepAction::Unmount
        | StepAction::Sync
        | StepAction::Trim => 10 * MINUTE,
        StepAction::DropCaches => 5 * MINUTE,
        StepAction::Fsck { .. } => 180 * MINUTE,
        StepAction::Fragmentation | StepAction::CopyIn { .. } => 60 * MINUTE,
        StepAction::PowerCut(_) => 120 * MINUTE,
        StepAction::Command { .. } => 120 * MINUTE,
        StepAction::Service(service) => 60 * MINUTE + service.limit,
        StepAction::Age(_) => 24 * 60 * MINUTE,
        StepAction::Load(workload) => {
            let building = Duration::from_secs(workload.built_bytes() / 20_000_000);
            let time = workload.time_limit().map(|time| time.saturating_mul(3).saturating_add(60 * MINUTE));
            time.unwrap_or(360 * MINUTE).saturating_add(building)
        }
    }
}

/// A step, before a cell's numbers are known.
#[derive(Debug, Clone)]
pub(super) struct Template {
    pub(super) name: String,
    limit: Option<Duration>,
    pub(super) background: bool,
    /// With the load as its file has it.
    pub(super) action: StepAction,
    load: Option<Load>,
    /// Its texts in which names in braces are filled in.
    texts: Vec<At<String>>,
}

impl Template {
    fn plain(action: StepAction) -> Self {
        Self {
            name: action.kind().name().to_owned(),
            limit: None,
            background: false,
            action,
            load: None,
            texts: Vec::new(),
        }
    }

    const fn has_company(&self) -> bool {
        matches!(self.action, StepAction::Load(_) | StepAction::Command { .. })
    }

    pub(super) const fn load(&self) -> Option<&Load> {
        self.load.as_ref()
    }

    pub(super) fn texts(&self) -> Vec<&At<String>> {
        self.texts.iter().collect()
    }

    pub(super) fn step(
        &self,
        numbers: &[Number],
        variables: &[(String, String)],
        made: &mut Made,
        report: &mut Report,
    ) -> Step {
        let fill = |text: &String| {
            placeholder::fill(text, |name| {
                let variable = variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
                let number = || {
                    numbers
                        .iter()
                        .rev()
                        .find(|number| number.target.part.is_none() && number.target.parameter.name() == name)
                };
                variable.or_else(|| number().map(|number| number.target.parameter.plain(number.value)))
            })
        };
        let action = match (&self.load, &self.action) {
            (Some(load), _) => StepAction::Load(load.with(numbers, made, report)),
            (None, StepAction::Command { argv, shell, success, figures }) => StepAction::Command {
                argv: argv.iter().map(fill).collect(),
                shell: *shell,
                success: success.clone(),
                figures: figures.clone(),
            },
            (None, StepAction::Service(service)) => {
                let mut service = Arc::clone(service);
                Arc::make_mut(&mut service).words_mut().for_each(|word| *word = fill(word));
                StepAction::Service(service)
            }
            (None, StepAction::CopyIn { source, target }) => {
                StepAction::CopyIn { source: fill(source), target: fill(target) }
            }
            (None, action) => action.clone(),
        };
        self.check_sources(&action, report);
        let limit = self.limit.unwrap_or_else(|| default_limit(&action));
        Step { name: self.name.clone(), action, limit, background: self.background }
    }
}

impl Template {
    /// With its variables filled in, a text may name a source tree that cannot be made.
    fn check_sources(&self, action: &StepAction, report: &mut Report) {
        let texts: Vec<&String> = match action {
            StepAction::Command { argv, .. } => argv.iter().collect(),
            StepAction::CopyIn { source, target } => vec![source, target],
            StepAction::Service(service) => service.words().collect(),
            _ => return,
        };
        for (at, text) in self.texts.iter().zip(texts) {
            for (place, tree) in source_tree::found(text) {
                if tree.is_none() {
                    report.push(
                        Diagnostic::error(at.span, format!("`{}` is not a source tree", &text[place]))
                            .label("expected {source}, or {source:FILES} with a number of files"),
                    );
                }
            }
        }
    }
}

pub(super) struct Steps {
    /// In order; mkfs and mount first.
    pub(super) templates: Vec<Template>,
    pub(super) shown: Vec<Shown>,
    pub(super) complete: bool,
}

/// Every trial begins on an empty filesystem, so sysbench's `run` finds only what an earlier step left. Commands and copies may leave its files.
fn check_prepared(template: &Template, before: &[Template], report: &mut Report) {
    let may_prepare = |step: &Template| match &step.action {
        StepAction::Load(workload) => sysbench::leaves_files(workload),
        action => matches!(action, StepAction::Command { .. } | StepAction::CopyIn { .. }),
    };
    if let Some(load) = template.load().filter(|load| sysbench::needs_files(load.base()))
        && !before.iter().any(may_prepare)
    {
        let message = "`run` uses files that an earlier step prepared, and none does";
        report.push(Diagnostic::error(load.place(), message).help("leave out `run`, and the step does both"));
    }
}

/// The study's steps, with mkfs and mount before them.
pub(super) fn steps(
    surfaces: &[At<StepSurface>],
    services: &[Known],
    files: &mut Files<'_>,
    report: &mut Report,
) -> Steps {
    if let Some(first_too_many) = surfaces.get(MAXIMUM_STEPS) {
        report.push(Diagnostic::error(
            first_of(first_too_many.span),
            format!("a trial has at most {MAXIMUM_STEPS} steps"),
        ));
        return Steps { templates: Vec::new(), shown: Vec::new(), complete: false };
    }
    let mut templates: Vec<Template> = Vec::new();
    let mut named: Vec<(String, Span)> = Vec::new();
    let mut shown = Vec::new();
    let implied = implied(surfaces);
    for At { span, value: surface } in surfaces {
        let Some(mut template) = template(surface, services, files, report) else { continue };
        let place = surface.name.as_ref().map_or(first_of(*span), |name| name.span);
        match &surface.name {
            Some(Field { value: Text(name), .. }) => {
                if let Some((_, first)) = named.iter().find(|(known, _)| known == name) {
                    report.push(
                        Diagnostic::error(place, format!("a step named `{name}` is there already"))
                            .label("every step needs a name of its own")
                            .context(*first, "the first"),
                    );
                }
                if implied.contains(&name.as_str()) {
                    report.push(
                        Diagnostic::error(place, format!("a step named `{name}` is there already"))
                            .label("the trial begins with it, though it is not listed"),
                    );
                }
                if RESERVED.contains(&name.as_str()) {
                    report.push(
                        Diagnostic::error(place, format!("no step may be named `{name}`"))
                            .label("what a trial takes besides its steps is recorded under it"),
                    );
                }
                template.name.clone_from(name);
            }
            // Steps that nobody named are told apart by number.
            None => {
                let kind = template.name.clone();
                let taken = |name: &str| {
                    named.iter().any(|(known, _)| known == name)
                        || implied.contains(&name)
                        || surfaces
                            .iter()
                            .any(|other| other.value.name.as_ref().is_some_and(|other| other.value.0 == name))
                };
                let mut number = 2;
                while taken(&template.name) {
                    template.name = format!("{kind} {number}");
                    number += 1;
                }
            }
        }
        check_prepared(&template, &templates, report);
        named.push((template.name.clone(), place));
        if let Some(Field { value: OneOrMany(names), .. }) = &surface.show {
            let names: Vec<At<String>> =
                names.iter().map(|At { span, value: Text(name) }| At { span: *span, value: name.clone() }).collect();
            shown.extend(show::shown(&template.name, &template.action, &names, report));
        }
        templates.push(template);
    }
    let places: Vec<Span> = named.iter().map(|(_, place)| *place).collect();
    check_order(&templates, &places, report);
    let complete = templates.len() == surfaces.len();
    let is_started = |known: &Known| {
        templates
            .iter()
            .any(|one| matches!(&one.action, StepAction::Service(service) if service.name == known.service.name))
    };
    for known in services.iter().filter(|known| complete && !is_started(known)) {
        let error = Diagnostic::error(known.span, format!("no step starts `{}`", known.service.name));
        report.push(error.help(format!("add a step: service = \"{}\"", known.service.name)));
    }
    if !matches!(templates.first().map(|step| &step.action), Some(StepAction::Mkfs)) {
        // Under the names of `implied`.
        templates.insert(0, Template::plain(StepAction::Mkfs));
    }
    if !matches!(templates.get(1).map(|step| &step.action), Some(StepAction::Mount)) {
        templates.insert(1, Template::plain(StepAction::Mount));
    }
    Steps { templates, shown, complete }
}

/// Ages a filesystem after it is mounted, before the study's own steps.
pub(super) fn put_age(steps: &mut Vec<Step>, age: Arc<Past>) {
    let action = StepAction::Age(age);
    let at = steps.iter().position(|step| matches!(step.action, StepAction::Mount)).map_or(0, |mount| mount + 1);
    let limit = default_limit(&action);
    steps.insert(at, Step { name: action.kind().name().to_owned(), action, limit, background: false });
}

/// The names of the steps that a trial begins with and the study does not list.
fn implied(surfaces: &[At<StepSurface>]) -> Vec<&'static str> {
    let makes = surfaces.first().is_some_and(|first| first.value.mkfs.is_some());
    let mounts = surfaces.get(usize::from(makes)).is_some_and(|step| step.value.mount.is_some());
    [("mkfs", makes), ("mount", mounts)].into_iter().filter(|(_, is_listed)| !is_listed).map(|(name, _)| name).collect()
}

/// A table's first bytes: it may be many lines long.
fn first_of(span: Span) -> Span {
    Span::new(span.start, (span.start + 1).min(span.end))
}

/// Follows the filesystem through the steps: made first, and mounted when something is done in it.
fn check_order(templates: &[Template], places: &[Span], report: &mut Report) {
    let mut unmounted_by: Option<(usize, &str)> = None;
    for (index, template) in templates.iter().enumerate() {
        let place = places[index];
        if template.background && templates[index + 1..].iter().all(|next| next.background || !next.has_company()) {
            report.push(
                Diagnostic::error(place, "no load or command follows that this step could run beside")
                    .label("it runs in the background"),
            );
        }
        match &template.action {
            StepAction::Mkfs if index > 0 => report.push(
                Diagnostic::error(place, "the filesystem is made once, before anything else")
                    .label("`mkfs` can only be the first step"),
            ),
            StepAction::Mount => {
                let begins = index == 0 || (index == 1 && matches!(templates[0].action, StepAction::Mkfs));
                if !begins && unmounted_by.is_none() {
                    report.push(Diagnostic::error(place, "the filesystem is mounted already"));
                }
                unmounted_by = None;
            }
            StepAction::Mkfs => {}
            StepAction::PowerCut(_) => {
                let loads = templates[..index].iter().any(|before| matches!(before.action, StepAction::Load(_)));
                if !loads {
                    report.push(
                        Diagnostic::error(place, "there is no load during which the power could be cut")
                            .help("put a step `load = { … }` before it"),
                    );
                }
                unmounted_by = Some((index, template.action.kind().name()));
            }
            StepAction::Unmount | StepAction::Fsck { .. } => {
                if let (StepAction::Unmount, Some((by, _))) = (&template.action, unmounted_by) {
                    report.push(
                        Diagnostic::error(place, "the filesystem is not mounted here")
                            .context(places[by], "unmounted by this step"),
                    );
                }
                unmounted_by = Some((index, template.action.kind().name()));
            }
            action => {
                if let Some((by, kind)) = unmounted_by {
                    report.push(
                        Diagnostic::error(place, format!("`{}` needs the filesystem mounted", action.kind().name()))
                            .context(places[by], format!("unmounted by this `{kind}`"))
                            .help("put a step `mount = {}` before it"),
                    );
                }
            }
        }
    }
}

fn template(surface: &StepSurface, services: &[Known], files: &mut Files<'_>, report: &mut Report) -> Option<Template> {
    let simple = [
        (&surface.mkfs, StepAction::Mkfs),
        (&surface.mount, StepAction::Mount),
        (&surface.remount, StepAction::Remount),
        (&surface.unmount, StepAction::Unmount),
        (&surface.sync, StepAction::Sync),
        (&surface.drop_caches, StepAction::DropCaches),
        (&surface.trim, StepAction::Trim),
        (&surface.fragmentation, StepAction::Fragmentation),
    ];
    let mut template = if let Some((_, action)) = simple.into_iter().find(|(field, _)| field.is_some()) {
        Template::plain(action)
    } else if let Some(Field { value, .. }) = &surface.load {
        let load = load::load(value, files, report)?;
        let action = StepAction::Load(Arc::clone(load.base()));
        Template { load: Some(load), ..Template::plain(action) }
    } else if let Some(field) = &surface.command {
        let action = command(field, report)?;
        let name = match &action {
            StepAction::Command { argv, shell: false, .. } => argv[0].rsplit('/').next().unwrap_or_default().to_owned(),
            action => action.kind().name().to_owned(),
        };
        let words = match &field.value {
            CommandSurface::Argv(words) => words.as_slice(),
            CommandSurface::Table(table) => table.run.as_ref().map_or(&[][..], |run| run.value.0.as_slice()),
        };
        let texts =
            words.iter().map(|At { span, value: Text(word) }| At { span: *span, value: word.clone() }).collect();
        Template { name, texts, ..Template::plain(action) }
    } else if let Some(Field { span, value: Text(name), .. }) = &surface.service {
        let Some(known) = services.iter().find(|known| known.service.name == *name) else {
            report.push(
                Diagnostic::error(*span, format!("no service is called `{name}`"))
                    .label(format!("expected the name of a table [service.{name}]"))
                    .did_you_mean(name, services.iter().map(|known| known.service.name.as_str())),
            );
            return None;
        };
        let action = StepAction::Service(Arc::clone(&known.service));
        Template { name: name.clone(), texts: known.texts.clone(), ..Template::plain(action) }
    } else if let Some(Field { value, .. }) = &surface.fsck {
        let mode = value.mode.as_ref().map(|mode| mode.value.0).unwrap_or_default();
        Template::plain(StepAction::Fsck { mode })
    } else if let Some(Field { value, .. }) = &surface.power_cut {
        let sector_bytes = value.sector.as_ref().and_then(|field| {
            let sector = PowerCut::whole_sector(field.value.0);
            if sector.is_none() {
                let error = Diagnostic::error(field.span, "disks write no sectors of this size");
                report.push(error.label("expected 512 or 4096"));
            }
            sector
        });
        Template::plain(StepAction::PowerCut(PowerCut {
            states: value.states.as_ref().map_or(DEFAULT_STATES, |states| states.value.0 as u32),
            log_bytes: value.log.as_ref().map_or(DEFAULT_LOG_BYTES, |log| log.value.0),
            disk: value.disk.as_ref().map(|disk| disk.value.0).unwrap_or_default(),
            sector_bytes: sector_bytes.unwrap_or(PowerCut::USUAL_SECTOR),
        }))
    } else {
        let Field { value, .. } = surface.copy_in.as_ref()?;
        let (source, target) = (value.source.as_ref()?, value.target.as_ref()?);
        if !source.value.0.starts_with('/') && !source.value.0.starts_with('{') {
            report.push(
                Diagnostic::error(source.span, format!("`{}` depends on where fstone is started", source.value.0))
                    .label("expected an absolute path"),
            );
        }
        if !load::stays_beside(&target.value.0) {
            report.push(
                Diagnostic::error(target.span, format!("`{}` is not in the filesystem", target.value.0))
                    .label("expected a relative path without `..`"),
            );
        }
        let texts =
            [source, target].map(|field| At { span: field.span, value: field.value.0.clone() }).into_iter().collect();
        let action = StepAction::CopyIn { source: source.value.0.clone(), target: target.value.0.clone() };
        Template { texts, ..Template::plain(action) }
    };
    if let Some(Field { span, value, .. }) = &surface.limit {
        if value.0.is_zero() {
            report.push(Diagnostic::error(*span, "a step needs some time").label("expected more than 0 s"));
        }
        template.limit = Some(value.0);
    }
    if let Some(field) = surface.background.as_ref().filter(|field| field.value.0) {
        template.background = true;
        if let Some(limit) = &surface.limit {
            let error = Diagnostic::error(limit.span, "a step in the background ends with the foreground");
            report.push(error.label("that step's limit counts"));
        }
        let launched = matches!(&template.action, StepAction::Load(workload) if workload.launch.is_some());
        if launched || !matches!(template.action, StepAction::Load(_) | StepAction::Command { .. }) {
            let error = Diagnostic::error(field.key, "this step cannot run in the background");
            report.push(error.label("only a command or a load of one rank can"));
        }
    }
    Some(template)
}

fn command(field: &Field<CommandSurface>, report: &mut Report) -> Option<StepAction> {
    let words = |words: &[At<Text>]| words.iter().map(|At { value: Text(word), .. }| word.clone()).collect::<Vec<_>>();
    let (argv, shell, success, figures) = match &field.value {
        CommandSurface::Argv(argv) => (words(argv), false, vec![0], Vec::new()),
        CommandSurface::Table(CommandTable { run, shell, success, figures }) => {
            let run = run.as_ref()?;
            let OneOrMany(given) = &run.value;
            let is_shell = shell.as_ref().is_some_and(|shell| shell.value.0);
            // A lone string stands where its own value stands; in a list it stands behind the bracket.
            let is_list = given.first().is_none_or(|first| first.span != run.span);
            if is_shell == is_list {
                let expected = if is_shell { "a script as one string" } else { "program and arguments as a list" };
                let given = if is_shell { "with" } else { "without" };
                report.push(
                    Diagnostic::error(run.span, format!("{given} `shell = true`, `run` is {expected}"))
                        .label(format!("expected {expected}")),
                );
            }
            let success = success.as_ref().map_or_else(
                || vec![0],
                |success| {
                    let OneOrMany(codes) = &success.value;
                    codes
                        .iter()
                        .map(|At { value: Count(code), .. }| i32::try_from(*code).expect("at most 255"))
                        .collect()
                },
            );
            let figures = figures.as_ref().map(|field| figures::figures(&field.value, report)).unwrap_or_default();
            (words(given), is_shell, success, figures)
        }
    };
    if argv.is_empty() {
        report.push(Diagnostic::error(field.span, "there is no program").label("expected program and arguments"));
        return None;
    }
    Some(StepAction::Command { argv, shell, success, figures })
}

#[cfg(test)]
mod tests {
    use super::{MINUTE, default_limit};
    use fstone_model::{
        study::StepAction,
        workload::{Amount, Fileset, Phase, SizeDistribution, Stop, Workload},
    };
    use std::{sync::Arc, time::Duration};

    #[test]
    fn a_load_has_time_to_build_its_files() {
        let limit = |bytes, time| {
            let files = Fileset::new("data", Amount::Files(1), SizeDistribution::Fixed(bytes));
            let stop = Stop { time, ..Stop::default() };
            let phases = vec![Phase::new("run", Vec::new(), stop)];
            default_limit(&StepAction::Load(Arc::new(Workload::new("load", vec![files], phases))))
        };
        let time = Some(Duration::from_secs(60));
        assert_eq!(limit(0, time), 63 * MINUTE);
        assert_eq!(limit(0, None), 360 * MINUTE);
        // 5,000 s at 100 MB/s.
        assert!(limit(500_000_000_000, time) > 63 * MINUTE + Duration::from_secs(20_000));
    }
}
