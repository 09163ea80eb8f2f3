//! Loads of a study: read once, then given the numbers of each cell.

use super::surface::{LoadField, LoadSurface};
use crate::{
    Diagnostics, Source,
    decode::{Field, Text},
    diagnostic::{Diagnostic, Report, Span},
    loads::{self, Document, FileReader},
    native::{ApplyError, Parameter, Target},
};
use fstone_model::{
    Workload,
    workload::{Amount, Fileset, Launch, Replay, ReplayPace, SizeDistribution},
};
use std::{
    collections::HashMap,
    path::{Component, Path},
    sync::Arc,
};

/// What a loader puts before the description of an image that it gives instead of its content. No text file begins with it.
pub const IMAGE_MARK: char = '\0';

/// Reads a file that the study names, by the path written there; says why it cannot.
pub(super) type Loader<'l> = dyn Fn(&str) -> Result<String, String> + 'l;

/// Files that a study names, each read once.
pub(super) struct Files<'l> {
    loader: &'l Loader<'l>,
    read: Vec<(String, String)>,
    /// Loads made of them, by the key they were named under and name; `None` when the file makes none, which has been reported.
    loads: HashMap<(&'static str, String), Option<Base>>,
}

/// A load as it was read, and whether its total size stays when the number of its files changes.
#[derive(Debug, Clone)]
struct Base {
    workload: Arc<Workload>,
    keeps_total: bool,
}

impl<'l> Files<'l> {
    pub(super) fn new(loader: &'l Loader<'l>) -> Self {
        Self { loader, read: Vec::new(), loads: HashMap::new() }
    }

    /// The files read, as (name, content), in the order they were named.
    pub(super) fn into_attachments(self) -> Vec<(String, String)> {
        self.read
    }

    /// Reads a file that only goes with the study; reports that it cannot be had.
    pub(super) fn attach(&mut self, name: &str, report: &mut Report) {
        if self.read.iter().any(|(known, _)| known == name) {
            return;
        }
        let text = if stays_beside(name) {
            (self.loader)(name)
        } else {
            Err("it is not beside the study: give a relative path without `..`".to_owned())
        };
        match text {
            Ok(text) => self.read.push((name.to_owned(), text)),
            Err(why) => report.push(Diagnostic::whole(format!("`{name}` cannot be read: {why}"))),
        }
    }

    /// The load that a file holds, made once however many steps name it.
    fn load(&mut self, key: &'static str, read: FileReader, field: &Field<Text>, report: &mut Report) -> Option<Base> {
        let key = (key, field.value.0.clone());
        if let Some(load) = self.loads.get(&key) {
            return load.clone();
        }
        let source = self.source(field, report)?;
        let mut beside = |name: &str| self.text(name);
        let loaded = read(&mut Document { source: &source, seconds: None, loader: &mut beside });
        let load = taken(loaded, report);
        self.loads.insert(key, load.clone());
        load
    }

    fn beside(&mut self, name: &str) -> Result<String, String> {
        if !stays_beside(name) {
            return Err("it is not beside the study: expected a relative path without `..`".into());
        }
        if let Some((_, text)) = self.read.iter().find(|(known, _)| known == name) {
            return Ok(text.clone());
        }
        let text = (self.loader)(name)?;
        self.read.push((name.to_owned(), text.clone()));
        Ok(text)
    }

    fn text(&mut self, name: &str) -> Result<String, String> {
        let text = self.beside(name)?;
        let is_text = !text.starts_with(IMAGE_MARK);
        if is_text { Ok(text) } else { Err("it is no text, or larger than 16 MiB".to_owned()) }
    }

    pub(super) fn source(&mut self, field: &Field<Text>, report: &mut Report) -> Option<Source> {
        self.with(Self::text, field, report)
    }

    /// A file, or what the loader says of one that is no text.
    pub(super) fn described(&mut self, field: &Field<Text>, report: &mut Report) -> Option<Source> {
        self.with(Self::beside, field, report)
    }

    fn with(
        &mut self,
        read: fn(&mut Self, &str) -> Result<String, String>,
        field: &Field<Text>,
        report: &mut Report,
    ) -> Option<Source> {
        let Text(name) = &field.value;
        if !stays_beside(name) {
            report.push(
                Diagnostic::error(field.span, format!("`{name}` is not beside the study"))
                    .label("expected a relative path without `..`")
                    .note("a study and the files it names are kept together, so that a run can be repeated"),
            );
            return None;
        }
        match read(self, name) {
            Ok(text) => Some(Source::new(name, text)),
            Err(why) => {
                report.push(Diagnostic::error(field.span, format!("`{name}` cannot be read")).label(why));
                None
            }
        }
    }
}

/// Whether a path can only lead to something in or below the directory it starts from.
pub(super) fn stays_beside(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[derive(Debug, Clone)]
pub(super) struct Load {
    base: Arc<Workload>,
    place: Span,
    /// Numbers that the step sets itself, and where.
    own: Vec<(Target, u64, Span)>,
    /// The size of all files, when that is what the load keeps while their number changes (sysbench).
    total_bytes: Option<u64>,
}

/// A number that a cell gives its loads, and where that is said.
#[derive(Debug, Clone)]
pub(super) struct Number {
    pub(super) target: Target,
    pub(super) value: u64,
    /// Where it is said in the study; `None` when the command line says it.
    pub(super) span: Option<Span>,
    /// Whether it goes before a number that the step sets itself: `[quick]` and the command line do, factors do not.
    pub(super) prevails: bool,
}

pub(super) fn load(surface: &LoadSurface, files: &mut Files<'_>, report: &mut Report) -> Option<Load> {
    let own = surface.numbers.0.iter().map(|(target, field)| (target.clone(), field.value, field.span)).collect();
    let Base { workload: base, keeps_total } = base(surface, files, report)?;
    let base = launched(surface, replayed(surface, base, report), report);
    let total_bytes = match base.filesets.as_slice() {
        [Fileset { amount: Amount::Files(files), size: SizeDistribution::Fixed(bytes), .. }] if keeps_total => {
            Some(files * bytes)
        }
        _ => None,
    };
    let place = match surface.load.as_ref()? {
        LoadField::File { path, .. } => path.span,
        LoadField::Words { words, .. } => words.span,
    };
    let load = Load { base, place, own, total_bytes };
    // The numbers of the step itself have to fit the load, whatever the cells say.
    for (target, value, span) in &load.own {
        match target.apply(&mut Workload::clone(&load.base), *value) {
            Err(ApplyError::Absent(_)) if target.part.is_some() => {
                report.push(no_such_part(target, Some(*span), std::iter::once(&load)));
            }
            Err(error) => report.push(cannot_set(target, Some(*span), &error)),
            Ok(()) => {}
        }
    }
    Some(load)
}

/// Where the study says that the load has several ranks: by which launcher, or else how many.
pub(super) fn place_of_launch(surface: &LoadSurface) -> Option<Span> {
    let ranks = || surface.numbers.0.iter().find(|(target, _)| *target == Target::whole(Parameter::Ranks));
    surface.launch.as_ref().map(|launch| launch.span).or_else(|| ranks().map(|(_, field)| field.span))
}

/// What only a recording is given.
fn replayed(surface: &LoadSurface, base: Arc<Workload>, report: &mut Report) -> Arc<Workload> {
    let LoadSurface { pace, speed, cold, .. } = surface;
    let keys = [
        pace.as_ref().map(|field| field.key),
        speed.as_ref().map(|field| field.key),
        cold.as_ref().map(|field| field.key),
    ];
    let Some(first) = keys.into_iter().flatten().next() else { return base };
    let Some(replay) = base.replay.clone() else {
        let words = "only a replay has a pace of this kind, a speed or cold caches";
        report.push(Diagnostic::error(first, words).label("the load is no recording"));
        return base;
    };
    let replay = Replay {
        pace: pace.as_ref().map_or(replay.pace, |field| field.value.0),
        speed: speed.as_ref().map_or(replay.speed, |field| field.value.0),
        cold: cold.as_ref().map_or(replay.cold, |field| field.value.0),
        ..replay
    };
    if let Some(field) = speed {
        if !Replay::SPEEDS.contains(&replay.speed) {
            report.push(Diagnostic::error(field.span, "this number is out of range").label("expected 0.001 to 1000"));
        } else if replay.pace == ReplayPace::Full {
            report.push(Diagnostic::error(field.key, Replay::NO_WAITS));
        }
    }
    Arc::new(Workload { replay: Some(replay), ..Workload::clone(&base) })
}

fn launched(surface: &LoadSurface, base: Arc<Workload>, report: &mut Report) -> Arc<Workload> {
    let Some(place) = place_of_launch(surface) else { return base };
    let command = surface.launch.as_ref().map_or_else(|| vec![Launch::USUAL.to_owned()], |field| field.value.0.clone());
    if command.is_empty() {
        report.push(
            Diagnostic::error(place, "no launcher is named").label("expected \"mpirun\", \"srun\" or a command line"),
        );
    }
    if let Some(why) = base.unfit_for_ranks() {
        report.push(
            Diagnostic::error(place, format!("the load cannot be one of several ranks: it {why}"))
                .label("several ranks are asked for here"),
        );
    }
    let ranks = 1;
    Arc::new(Workload { launch: Some(Launch { command, ranks }), ..Workload::clone(&base) })
}

fn base(surface: &LoadSurface, files: &mut Files<'_>, report: &mut Report) -> Option<Base> {
    match surface.load.as_ref()? {
        LoadField::File { key, read, path } => files.load(key, *read, path, report),
        LoadField::Words { read, words } => taken(read(&words.value.0), report),
    }
}

fn taken(loaded: Result<loads::Load, Diagnostics>, report: &mut Report) -> Option<Base> {
    match loaded {
        Ok(load) => {
            load.warnings.into_iter().for_each(|warnings| report.append(warnings));
            Some(Base { workload: Arc::new(load.workload), keeps_total: load.keeps_total })
        }
        Err(diagnostics) => {
            report.append(diagnostics);
            None
        }
    }
}

/// Loads with the numbers of cells, each made once: most cells differ in a filesystem and have the same loads.
#[derive(Default)]
pub(super) struct Made(HashMap<Recipe, Arc<Workload>>);

/// The load as its file has it, which outlives what is made of it, and the numbers it is given.
type Recipe = (*const Workload, Vec<(Target, u64)>);

impl Load {
    pub(super) const fn base(&self) -> &Arc<Workload> {
        &self.base
    }

    pub(super) const fn place(&self) -> Span {
        self.place
    }

    /// Where the study says how much its files take: the number that a cell or the step gives it, or else the load itself.
    pub(super) fn place_of_size(&self, numbers: &[Number]) -> Span {
        let sizes =
            |parameter: Parameter| matches!(parameter, Parameter::Files | Parameter::FileSize | Parameter::TotalSize);
        let given = numbers.iter().filter(|number| sizes(number.target.parameter) && self.takes(number));
        let mut own = self.own.iter().filter(|(target, ..)| sizes(target.parameter)).map(|(.., span)| *span);
        given.filter_map(|number| number.span).next_back().or(own.next_back()).unwrap_or(self.place)
    }

    pub(super) fn takes(&self, number: &Number) -> bool {
        let is_own = self.own.iter().any(|(target, ..)| *target == number.target);
        (number.prevails || !is_own) && number.target.is_in(&self.base)
    }

    pub(super) fn with(&self, numbers: &[Number], made: &mut Made, report: &mut Report) -> Arc<Workload> {
        let own = self.own.iter().map(|(target, value, span)| Number {
            target: target.clone(),
            value: *value,
            span: Some(*span),
            prevails: false,
        });
        let given = || numbers.iter().filter(|number| self.takes(number)).cloned();
        let mut all: Vec<Number> =
            own.filter(|own| !given().any(|given| given.target == own.target)).chain(given()).collect();
        let says = |parameter: Parameter| all.iter().any(|number| number.target == Target::whole(parameter));
        if let (Some(value), true, false, false) =
            (self.total_bytes, says(Parameter::Files), says(Parameter::FileSize), says(Parameter::TotalSize))
        {
            let span =
                all.iter().find(|number| number.target.parameter == Parameter::Files).and_then(|number| number.span);
            all.push(Number { target: Target::whole(Parameter::TotalSize), value, span, prevails: false });
        }
        all.sort_by(|one, other| one.target.cmp(&other.target));
        let key = (Arc::as_ptr(&self.base), all.iter().map(|number| (number.target.clone(), number.value)).collect());
        if let Some(workload) = made.0.get(&key) {
            return Arc::clone(workload);
        }
        let mut workload = Workload::clone(&self.base);
        for number in all {
            if let Err(error) = number.target.apply(&mut workload, number.value) {
                report.push(cannot_set(&number.target, number.span, &error));
            }
        }
        // A load without numbers of its own stays the one that was read.
        let workload = if workload == *self.base { Arc::clone(&self.base) } else { Arc::new(workload) };
        made.0.insert(key, Arc::clone(&workload));
        workload
    }
}

fn cannot_set(target: &Target, span: Option<Span>, error: &ApplyError) -> Diagnostic {
    let message = format!("cannot set {target}: {error}");
    let diagnostic = match span {
        Some(span) => Diagnostic::error(span, message).label("set here"),
        None => Diagnostic::whole(message),
    };
    match error {
        ApplyError::Ambiguous { .. } => diagnostic.help(format!(
            "name the one that is meant: NAME.{target} = … here, --set NAME.{target}=… on the command line"
        )),
        _ => diagnostic,
    }
}

/// None of these loads has the part that a number belongs to, or the part has no such number.
pub(super) fn no_such_part<'l>(
    target: &Target,
    span: Option<Span>,
    loads: impl Iterator<Item = &'l Load>,
) -> Diagnostic {
    let (part, parameter) = (target.part.as_deref().unwrap_or_default(), target.parameter);
    let message = format!("no load has a part `{part}` with `{parameter}`");
    let diagnostic = match span {
        Some(span) => Diagnostic::error(span, message).label("it would change nothing"),
        None => Diagnostic::whole(format!("--set {target}: {message}")),
    };
    let mut known: Vec<String> = loads.flat_map(|load| target.parts(&load.base)).collect();
    known.sort();
    known.dedup();
    if known.is_empty() {
        return diagnostic;
    }
    diagnostic.did_you_mean(part, known.iter().map(String::as_str)).note(format!("there are {}", known.join(", ")))
}
