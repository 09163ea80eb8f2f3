//! A workload file, read into the workload.

use super::{
    action::{self, ActionSurface, Role},
    sizes::size,
    steps::{program, surfaces},
    surface::{
        DirectoriesSurface, FilesetSurface, FsyncSurface, GoesOnSurface, GroupSurface, IoSurface, LatencyTargetSurface,
        PhaseSurface, RegionSurface, RegionWord, StopSurface, WorkloadFile,
    },
    value::{block, bytes, flag, or, small, text, word},
};
use crate::{
    decode::{At, Count, Field, Listed, OrTable, Real, Share, Size, Text, Time, document},
    diagnostic::{Diagnostic, Diagnostics, Report, Source},
};
use fstone_model::workload::{
    Action, Actions, Advice, Amount, Arrivals, Batches, CpuPolicy, DEFAULT_BUILD_BLOCK_BYTES, DataPattern, Directories,
    ErrorPolicy, Existing, FailedPart, FileChoice, Fileset, FinalSync, FsyncPolicy, IoEngineKind, IoOverrides,
    IoSettings, LatencyTarget, LeastRate, MAXIMUM_FILES, MAXIMUM_REPEAT, MAXIMUM_THREADS, Naming, OpenPolicy, Pattern,
    Phase, Rate, Region, Sharing, SizeDistribution, Steady, Stop, ThreadGroup, Tolerated, Tour, Weighted, Workload,
    name_clashes,
};
use std::{
    collections::HashMap,
    path::{Component, Path},
    time::Duration,
};

pub const MAXIMUM_BYTES: usize = 1 << 20;
/// How long a queue depth is tried for a latency target, unless the file says otherwise.
pub(super) const DEFAULT_WINDOW: Duration = Duration::from_secs(1);
pub(super) const LEAST_RATE_EVERY: Duration = Duration::from_secs(1);
pub(super) const STEADY_WINDOW: Duration = Duration::from_secs(60);

/// Reads a workload file.
pub fn parse(source: &Source) -> Result<Workload, Diagnostics> {
    let mut report = Report::new(source.clone());
    if !report.check_size(MAXIMUM_BYTES, "the workload file") {
        return Err(report.into_diagnostics().expect("the size is wrong"));
    }
    let workload = document(&mut report).and_then(|surface| workload(&surface, &mut report));
    let (workload, _warnings) = report.finish(workload)?;
    Ok(workload.expect("there is a workload, or an error"))
}

fn workload(surface: &WorkloadFile, report: &mut Report) -> Option<Workload> {
    let (no_filesets, no_phases) = (Vec::new(), Vec::new());
    let fileset_surfaces = surface.fileset.as_ref().map_or(&no_filesets, |field| &field.value);
    if let Some(field) = surface.fileset.as_ref().filter(|field| field.value.is_empty()) {
        report.push(
            Diagnostic::error(field.span, "there are no files to work on").label("expected at least one fileset"),
        );
    }
    unique(fileset_surfaces.iter().filter_map(|at| at.value.name.as_ref()), "fileset", report);
    let filesets: Vec<Fileset> = fileset_surfaces.iter().map(|at| fileset(&at.value, report)).collect();
    distinct_names(&filesets, fileset_surfaces, report);
    let names: Vec<&str> = filesets.iter().map(|fileset| fileset.name.as_str()).collect();
    let phase_surfaces = surface.phase.as_ref().map_or(&no_phases, |field| &field.value);
    unique(phase_surfaces.iter().filter_map(|at| at.value.name.as_ref()), "phase", report);
    let phases: Vec<Phase> = phase_surfaces.iter().map(|at| phase(&at.value, &names, report)).collect();
    let data = surface.data.as_ref().map_or_else(DataPattern::default, |Field { value, .. }| DataPattern {
        compressible: or(value.compressible.as_ref(), 0.0, |Share(share)| share),
        duplicate: or(value.duplicate.as_ref(), 0.0, |Share(share)| share),
        stamped: flag(value.stamped.as_ref(), false),
        repeat: value.repeat.as_ref().map_or_else(Vec::new, |field| hexadecimal(field, report)),
    });
    let series_interval = or(surface.series_interval.as_ref(), Workload::SERIES_INTERVAL, |Time(time)| time);
    if let Some(field) = surface.series_interval.as_ref().filter(|field| field.value.0.is_zero()) {
        report.push(Diagnostic::error(field.span, "a point of the series needs some time"));
    }
    let default_io = surface.io.as_ref().map_or_else(IoOverrides::default, |field| io(&field.value));
    let default_io = default_io.over(IoSettings::default());
    null_for_all(default_io, phase_surfaces, report);
    let workload = Workload {
        name: text(surface.name.as_ref(), ""),
        io: default_io,
        filesets,
        phases,
        data,
        on_error: word(surface.on_error.as_ref(), ErrorPolicy::Stop),
        final_sync: word(surface.final_sync.as_ref(), FinalSync::Syncfs),
        callout: surface.callout.as_ref().map(|field| field.value.0.clone()),
        launch: None,
        replay: None,
        series_interval,
    };
    used_depths(&workload, surface, phase_surfaces, report);
    possible_settings(&workload, phase_surfaces, report);
    fit_targets(&workload, phase_surfaces, report);
    Some(workload)
}

fn hexadecimal(field: &Field<Text>, report: &mut Report) -> Vec<u8> {
    let Text(text) = &field.value;
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let fits = digits.filter(|digits| digits.len() % 2 == 0 && (2..=2 * MAXIMUM_REPEAT).contains(&digits.len()));
    let Some(digits) = fits else {
        report.push(
            Diagnostic::error(field.span, "these are not bytes")
                .label(format!("expected two hexadecimal digits for each, at most {MAXIMUM_REPEAT}"))
                .help("for example: repeat = \"deadbeef\""),
        );
        return Vec::new();
    };
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

fn used_depths(workload: &Workload, surface: &WorkloadFile, phases: &[At<PhaseSurface>], report: &mut Report) {
    // What an empty group could do is not known.
    if workload.phases.iter().flat_map(|phase| &phase.groups).any(|group| group.actions.all().is_empty()) {
        return;
    }
    let Some(((phase, group), why)) = workload.unused_depth() else { return };
    let depth_of = |io: &Option<Field<IoSurface>>| io.as_ref()?.value.queue_depth.as_ref().map(|field| field.span);
    let own = || depth_of(&phases.get(phase)?.value.group.as_ref()?.value.get(group)?.value.io);
    let name = &workload.phases[phase].groups[group].name;
    let mut groups = workload.phases.iter().flat_map(|phase| &phase.groups);
    let user = groups.find(|group| group.io.queue_depth.is_none() && workload.one_at_a_time(group).is_none());
    let (span, help) = match (own(), user) {
        (Some(span), _) => (span, "leave it out".to_owned()),
        (None, user) => {
            let Some(span) = depth_of(&surface.io) else { return };
            let help = user.map(|user| format!("give it to the groups that can use it, like `{}`", user.name));
            (span, help.unwrap_or_else(|| "leave it out".to_owned()))
        }
    };
    report.push(
        Diagnostic::error(span, format!("the queue depth would change nothing for group `{name}`"))
            .label(why)
            .help(format!("{help}; docs/workload-file.md says what a queue needs")),
    );
}

fn fit_targets(workload: &Workload, phases: &[At<PhaseSurface>], report: &mut Report) {
    let surfaces = phases.iter().flat_map(|phase| phase.value.group.iter().flat_map(|field| &field.value));
    let groups = workload.phases.iter().flat_map(|phase| phase.groups.iter().map(move |group| (phase, group)));
    for ((phase, group), surface) in groups.zip(surfaces) {
        let Some(field) = &surface.value.latency_target else { continue };
        if let Some(why) = workload.unfit_target(phase, group).filter(|_| !group.actions.all().is_empty()) {
            report.push(
                Diagnostic::error(field.span, format!("group `{}` cannot look for a queue depth", group.name))
                    .label(why)
                    .help("docs/workload-file.md says what a latency target needs"),
            );
        }
    }
}

fn unique<'s>(names: impl Iterator<Item = &'s Field<Text>>, what: &str, report: &mut Report) {
    let mut seen: HashMap<&str, &Field<Text>> = HashMap::new();
    for field in names {
        let first = *seen.entry(&field.value.0).or_insert(field);
        if !std::ptr::eq(first, field) {
            report.push(
                Diagnostic::error(field.span, format!("a {what} named `{}` is there already", field.value.0))
                    .label("the name again")
                    .context(first.span, "the first"),
            );
        }
    }
}

/// Two filesets whose files are called alike would take each other's files for their own.
fn distinct_names(filesets: &[Fileset], surfaces: &[At<FilesetSurface>], report: &mut Report) {
    for (first, later) in name_clashes(filesets) {
        let place = |at: &At<FilesetSurface>| at.value.name.as_ref().map_or(at.span, |name| name.span);
        let names = format!("filesets {} and {} use the same names", filesets[first].name, filesets[later].name);
        report.push(
            Diagnostic::error(place(&surfaces[later]), names)
                .label("give one a directory")
                .context(place(&surfaces[first]), "the other"),
        );
    }
}

fn io(surface: &IoSurface) -> IoOverrides {
    IoOverrides {
        engine: surface.engine.as_ref().map(|field| field.value.0),
        direct: surface.direct.as_ref().map(|field| field.value.0),
        sync: surface.sync.as_ref().map(|field| field.value.0),
        queue_depth: surface.queue_depth.as_ref().map(|field| small(Some(field))),
        polled: surface.polled.as_ref().map(|field| field.value.0),
        uncached: surface.uncached.as_ref().map(|field| field.value.0),
        no_wait: surface.no_wait.as_ref().map(|field| field.value.0),
        atomic: surface.atomic.as_ref().map(|field| field.value.0),
    }
}

fn possible_settings(workload: &Workload, phases: &[At<PhaseSurface>], report: &mut Report) {
    let surfaces = phases.iter().flat_map(|phase| phase.value.group.iter().flat_map(|field| &field.value));
    let groups = workload.phases.iter().flat_map(|phase| &phase.groups);
    for (surface, group) in surfaces.zip(groups) {
        let Some((setting, why, cure)) = workload.refused_setting(group) else { continue };
        let what = format!("group `{}` cannot have {}", group.name, setting.word());
        report.push(Diagnostic::error(surface.span, what).label(why).help(cure));
    }
}

/// The null engine is for a whole workload: beside groups that do something it would measure nothing.
fn null_for_all(io: IoSettings, phases: &[At<PhaseSurface>], report: &mut Report) {
    let groups = phases.iter().filter_map(|phase| phase.value.group.as_ref()).flat_map(|field| &field.value);
    for engine in groups.filter_map(|group| group.value.io.as_ref()?.value.engine.as_ref()) {
        if (engine.value.0 == IoEngineKind::Null) != (io.engine == IoEngineKind::Null) {
            report.push(
                Diagnostic::error(engine.span, "the null engine is for a whole workload")
                    .label("the other groups have another")
                    .help("at the top of the file: io = { engine = \"null\" }"),
            );
        }
    }
}

fn fileset(surface: &FilesetSurface, report: &mut Report) -> Fileset {
    if let Some(field) = surface.name.as_ref().filter(|field| field.value.0 == action::ANY) {
        report.push(Diagnostic::error(field.span, "no fileset can be called `*`").label("`*` stands for any of them"));
    }
    if let Some(field) = &surface.directory {
        let Text(path) = &field.value;
        if path.contains('\0') || !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            report.push(
                Diagnostic::error(field.span, format!("`{path}` is not below the load's directory"))
                    .label("expected a relative path without `.` and `..`"),
            );
        }
    }
    let names = [&surface.file_prefix, &surface.file_name, &surface.directory_prefix, &surface.leaf_prefix];
    for field in names.into_iter().flatten() {
        if field.value.0.contains(['/', '\0']) || field.value.0.len() > 200 {
            report.push(
                Diagnostic::error(field.span, "no file can be called that").label("expected a short name without `/`"),
            );
        }
    }
    let amount = if let Some(field) = &surface.bytes {
        Amount::Bytes(field.value.0)
    } else if let Some(field) = &surface.utilization {
        Amount::Utilization(field.value.0)
    } else {
        Amount::Files(or(surface.files.as_ref(), 0, |Count(files)| files))
    };
    if let Some(field) = &surface.file_name {
        let problem = match (&surface.file_prefix, &surface.directories, amount) {
            (Some(_), ..) => Some("there is a `file-prefix`, too"),
            (_, Some(_), _) => Some("the file is in the fileset's directory itself"),
            (.., Amount::Files(1)) => None,
            _ => Some("expected `files = 1`"),
        };
        if let Some(problem) = problem {
            report.push(Diagnostic::error(field.key, "`file-name` names one file").label(problem));
        }
    }
    let naming = Naming::default();
    let size = surface.size.as_ref().map_or(SizeDistribution::Fixed(0), |field| size(&field.value, field.span, report));
    if let (Some(field), Amount::Bytes(bytes)) = (&surface.bytes, amount)
        && bytes / size.typical_bytes().max(1) > MAXIMUM_FILES
    {
        report.push(
            Diagnostic::error(field.span, "too many files")
                .label(format!("at this size of a file more than {MAXIMUM_FILES} would be needed to hold it")),
        );
    }
    Fileset {
        name: text(surface.name.as_ref(), ""),
        directory: text(surface.directory.as_ref(), ""),
        amount,
        directories: directories(surface.directories.as_ref(), report),
        leaf_directories: or(surface.leaf_directories.as_ref(), 0, |Count(leaves)| leaves),
        size,
        naming: Naming {
            file_prefix: text(surface.file_name.as_ref().or(surface.file_prefix.as_ref()), &naming.file_prefix),
            directory_prefix: text(surface.directory_prefix.as_ref(), &naming.directory_prefix),
            exact: surface.file_name.is_some(),
            leaf_prefix: surface.leaf_prefix.as_ref().map(|field| text(Some(field), "")),
        },
        preallocated: or(surface.preallocated.as_ref(), 1.0, |Share(share)| share),
        build_block_bytes: surface.build_block.as_ref().map_or(DEFAULT_BUILD_BLOCK_BYTES, |field| block(field, report)),
        existing: word(surface.existing.as_ref(), Existing::Rebuild),
        fill: flag(surface.fill.as_ref(), true),
        allocate: flag(surface.allocate.as_ref(), false),
        grows: flag(surface.grows.as_ref(), false),
        made_when_opened: flag(surface.made_when_opened.as_ref(), false),
        ranks: word(surface.ranks.as_ref(), Sharing::Private),
    }
}

fn directories(field: Option<&Field<DirectoriesSurface>>, report: &mut Report) -> Directories {
    let none = Directories::Flat { count: 0, root_too: false };
    let Some(field) = field else { return none };
    let table = match &field.value {
        OrTable::Plain(Count(count)) => return Directories::Flat { count: *count, root_too: false },
        OrTable::Table(table) => table,
    };
    if let Some(Field { value: Count(count), .. }) = table.count {
        return Directories::Flat { count, root_too: flag(table.parent_too.as_ref(), false) };
    }
    if let Some(field) = &table.parent_too {
        report.push(
            Diagnostic::error(field.key, "`parent-too` beside `tree`").label("files of a tree are in its leaves"),
        );
    }
    let Some(Field { span, value: tree, .. }) = &table.tree else { return none };
    let depth = tree.depth.as_ref().map_or(0, |Field { value: Count(depth), .. }| u32::try_from(*depth).unwrap_or(0));
    let width = small(tree.width.as_ref());
    if let Some(field) = tree.depth.as_ref().filter(|field| field.value.0 == 0 && tree.each.is_none()) {
        report.push(
            Diagnostic::error(field.span, "a tree without levels").label("expected 1 or more, or `each` beside it"),
        );
    }
    if u64::from(width).checked_pow(depth).is_none_or(|leaves| leaves > MAXIMUM_FILES) {
        report.push(
            Diagnostic::error(*span, "too many directories")
                .label(format!("expected at most {MAXIMUM_FILES}, which are `width` to the power of `depth`")),
        );
    }
    if let Some(Field { value: Count(each), .. }) = tree.each {
        if Directories::of_tree(width, depth).0 > MAXIMUM_FILES {
            report.push(
                Diagnostic::error(*span, "too many directories")
                    .label(format!("expected at most {MAXIMUM_FILES} on all levels together")),
            );
        }
        return Directories::Filled { width, depth, each, leaves_only: flag(tree.leaves_only.as_ref(), false) };
    }
    if let Some(field) = &tree.leaves_only {
        report.push(
            Diagnostic::error(field.key, "`leaves-only` without `each`").label("files are in the leaves already"),
        );
    }
    Directories::Tree { width, depth }
}

fn phase(surface: &PhaseSurface, filesets: &[&str], report: &mut Report) -> Phase {
    let no_groups = Vec::new();
    let surfaces = surface.group.as_ref().map_or(&no_groups, |field| &field.value);
    unique(surfaces.iter().filter_map(|at| at.value.name.as_ref()), "group", report);
    let groups: Vec<ThreadGroup> = surfaces.iter().map(|at| group(&at.value, filesets, report)).collect();
    let stop = surface.stop.as_ref().map_or_else(Stop::default, |field| self::stop(&field.value));
    posted_where_somebody_waits(surfaces, report);
    wears_out_after_its_time(surface, surfaces, report);
    let rank_shift = or(surface.rank_shift.as_ref(), 0, |Count(by)| u32::try_from(by).unwrap_or(u32::MAX));
    let node_shift = or(surface.node_shift.as_ref(), 0, |Count(by)| u32::try_from(by).unwrap_or(u32::MAX));
    if let (Some(_), Some(field)) = (&surface.rank_shift, &surface.node_shift) {
        report.push(Diagnostic::error(field.key, "`node-shift` beside `rank-shift`").label("give one of them"));
    }
    // That the first who is done ends all is no end by itself.
    let ends = |stop: &Stop| Stop { first_done: false, wear_out: false, ..*stop } != Stop::default();
    if let Some(name) = surface.name.as_ref().filter(|_| !ends(&stop) && !groups.iter().all(|group| ends(&group.stop)))
    {
        report.push(
            Diagnostic::error(name.span, format!("phase `{}` never ends", name.value.0))
                .label("neither it nor each of its groups has an end")
                .help("for example: stop = { time = \"30 s\" }"),
        );
    }
    let threads: u64 = groups.iter().map(|group| u64::from(group.threads)).sum();
    if let Some(name) = surface.name.as_ref().filter(|_| threads > MAXIMUM_THREADS) {
        report.push(
            Diagnostic::error(name.span, format!("phase `{}` has {threads} threads", name.value.0))
                .label(format!("at most {MAXIMUM_THREADS} are run")),
        );
    }
    if let Some(field) = surface.group.as_ref().filter(|field| field.value.is_empty()) {
        report.push(Diagnostic::error(field.span, "a phase needs threads").label("expected at least one group"));
    }
    Phase {
        name: text(surface.name.as_ref(), ""),
        measured: flag(surface.measured.as_ref(), true),
        groups,
        stop,
        rank_shift,
        node_shift,
        syncs: flag(surface.syncs.as_ref(), false),
        drops_caches: or(surface.drops_caches.as_ref(), 0, |Count(which)| which as u32),
    }
}

/// Reports a `wear-out` where there is no time that could be over, or something that ends the phase all the same.
fn wears_out_after_its_time(phase: &PhaseSurface, groups: &[At<GroupSurface>], report: &mut Report) {
    let wears_out = |stop: &StopSurface| flag(stop.wear_out.as_ref(), false);
    let of_groups = groups.iter().filter_map(|group| group.value.stop.as_ref());
    for field in of_groups.filter(|field| wears_out(&field.value)).filter_map(|field| field.value.wear_out.as_ref()) {
        report.push(
            Diagnostic::error(field.key, "`wear-out` of a group")
                .label("it is all groups of a phase that go on after its time"),
        );
    }
    let Some(stop) = phase.stop.as_ref().map(|field| &field.value).filter(|stop| wears_out(stop)) else { return };
    let Some(field) = &stop.wear_out else { return };
    if stop.time.is_none() {
        report.push(
            Diagnostic::error(field.key, "`wear-out` without a time")
                .label("it says what is done when the time is over")
                .help("for example: stop = { time = \"300 s\", wear-out = true }"),
        );
    }
    if flag(stop.first_done.as_ref(), false) {
        report.push(
            Diagnostic::error(field.key, "`wear-out` beside `first-done`")
                .label("one has all go on until the last is done, the other ends with the first"),
        );
    }
}

/// Reports posts that nobody waits for, and events at several rates.
fn posted_where_somebody_waits(groups: &[At<GroupSurface>], report: &mut Report) {
    let programs = groups.iter().filter_map(|group| group.value.program.as_ref());
    let steps: Vec<_> = programs.flat_map(|field| self::surfaces(&field.value)).collect();
    let waits = || steps.iter().filter_map(|step| step.wait.as_ref()?.value.name.as_ref());
    for to in steps.iter().filter_map(|step| step.post.as_ref()?.value.to.as_ref()) {
        if !waits().any(|name| name.value == to.value) {
            let names = waits().map(|name| name.value.0.as_str());
            report.push(
                Diagnostic::error(to.span, format!("nobody waits for posts to `{}`", to.value.0))
                    .did_you_mean(&to.value.0, names),
            );
        }
    }
    let mut rates = steps.iter().filter_map(|step| step.pace.as_ref()?.value.rate.as_ref());
    let Some(first) = rates.next() else { return };
    for other in rates.filter(|rate| rate.value != first.value) {
        report.push(
            Diagnostic::error(other.span, "another rate of events in the same phase")
                .label("all steps of a phase share the events")
                .context(first.span, "the first"),
        );
    }
}

fn stop(surface: &StopSurface) -> Stop {
    Stop {
        time: surface.time.as_ref().map(|field| field.value.0),
        operations: surface.operations.as_ref().map(|field| field.value.0),
        bytes: surface.bytes.as_ref().map(|field| field.value.0),
        once_through: flag(surface.once_through.as_ref(), false),
        first_done: flag(surface.first_done.as_ref(), false),
        wear_out: flag(surface.wear_out.as_ref(), false),
        full: flag(surface.full.as_ref(), false),
        utilization: surface.utilization.as_ref().map(|field| field.value.0),
    }
}

fn group(surface: &GroupSurface, filesets: &[&str], report: &mut Report) -> ThreadGroup {
    let actions = if let Some(field) = &surface.mix {
        not_empty(field, report);
        let weighted = |at: &At<ActionSurface>, report: &mut Report| Weighted {
            weight: small(at.value.weight.as_ref()),
            action: action::read(&at.value, filesets, Role::Mix, report),
        };
        Actions::Mix(field.value.iter().map(|at| weighted(at, report)).collect())
    } else if let Some(field) = &surface.sequence {
        not_empty(field, report);
        let actions = field.value.iter().enumerate().map(|(index, at)| {
            let place = if index == 0 { Role::First } else { Role::Later };
            action::read(&at.value, filesets, place, report)
        });
        Actions::Sequence(actions.collect())
    } else if let Some(field) = &surface.program {
        Actions::Program(program(field, filesets, report))
    } else if let Some(Field { value, .. }) = &surface.ratio
        && let (Some(first), Some(second)) = (&value.first, &value.second)
    {
        Actions::Ratio {
            first: action::read(&first.value, filesets, Role::Ratio, report),
            second: action::read(&second.value, filesets, Role::Ratio, report),
            ratio: or(value.value.as_ref(), 1.0, |crate::decode::Real(ratio)| ratio),
        }
    } else {
        Actions::Sequence(Vec::new())
    };
    within_region(surface, &actions, report);
    ThreadGroup {
        name: text(surface.name.as_ref(), ""),
        threads: small(surface.threads.as_ref()),
        io: surface.io.as_ref().map_or_else(IoOverrides::default, |field| io(&field.value)),
        open: word(surface.open.as_ref(), OpenPolicy::PerOperation),
        think_time: or(surface.think_time.as_ref(), Duration::ZERO, |Time(time)| time),
        think_every: match (&surface.think_every, &surface.think_after) {
            (Some(field), _) => field.value.0,
            (None, Some(_)) => u64::MAX,
            (None, None) => 1,
        },
        think_after: surface.think_after.as_ref().map(|field| field.value.0),
        think_spin: or(surface.think_spin.as_ref(), Duration::ZERO, |Time(time)| time),
        rate_per_second: surface.rate.as_ref().map(|field| field.value.0),
        bytes_per_second: bandwidth(surface, &actions, report),
        direction_rates: direction_rates(surface, &actions, report),
        arrivals: arrivals(surface, report),
        invalidate: flag(surface.invalidate.as_ref(), false),
        invalidate_every: surface.invalidate_every.as_ref().map(|field| field.value.0),
        advice: word(surface.advice.as_ref(), Advice::None),
        region: surface.region.as_ref().map_or(Region::Whole, |field| region(&field.value)),
        start_delay: or(surface.start_delay.as_ref(), Duration::ZERO, |Time(time)| time),
        cpus: cpus(surface, report),
        cpu_policy: word(surface.cpu_policy.as_ref(), CpuPolicy::Shared),
        fsync: surface.fsync.as_ref().map_or_else(FsyncPolicy::default, |field| fsync(&field.value)),
        stop: surface.stop.as_ref().map_or_else(Stop::default, |field| stop(&field.value)),
        own_series: flag(surface.own_series.as_ref(), false),
        batches: surface.batches.as_ref().map_or_else(Batches::default, |field| Batches {
            submit: field.value.submit.as_ref().map(|submit| small(Some(submit))),
            least: field.value.least.as_ref().map_or(1, |least| small(Some(least))),
            refill_at: field
                .value
                .refill_at
                .as_ref()
                .map(|low| u32::try_from(low.value.0).expect("the type allows no more")),
            most: field.value.most.as_ref().map(|most| small(Some(most))),
        }),
        latency_target: surface.latency_target.as_ref().map(|field| latency_target(&field.value)),
        continues: flag(surface.continues.as_ref(), false),
        tour: tour(surface, &actions, report),
        process: surface.process.as_ref().map(|field| field.value.0.clone()),
        tour_operations: surface.tour_operations.as_ref().map_or(1, |field| field.value.0),
        tour_open: surface.tour_open.as_ref().map(|field| field.value.0),
        backlog: surface.backlog.as_ref().map(|field| field.value.0),
        least_rate: surface.least_rate.as_ref().map(|Field { value, .. }| LeastRate {
            bytes: bytes(value.bandwidth.as_ref()),
            operations: value.rate.as_ref().map_or(0, |field| field.value.0),
            every: or(value.every.as_ref(), LEAST_RATE_EVERY, |Time(time)| time),
            of_writes: (value.write_bandwidth.is_some() || value.write_rate.is_some()).then(|| {
                let operations = value.write_rate.as_ref().map_or(0, |field| field.value.0);
                (bytes(value.write_bandwidth.as_ref()), operations)
            }),
        }),
        steady: surface.steady.as_ref().map(|Field { value, .. }| Steady {
            bytes: flag(value.bytes.as_ref(), false),
            slope: flag(value.slope.as_ref(), false),
            limit: match &value.share {
                Some(share) => share.value.0,
                None => or(value.below.as_ref(), 0.0, |crate::decode::Real(below)| below),
            },
            relative: value.share.is_some(),
            window: or(value.window.as_ref(), STEADY_WINDOW, |Time(time)| time),
            ramp: or(value.ramp.as_ref(), Duration::ZERO, |Time(time)| time),
        }),
        goes_on_after: surface.goes_on_after.as_ref().map_or_else(Vec::new, |field| goes_on_after(&field.value)),
        actions,
    }
}

fn tour(surface: &GroupSurface, actions: &Actions, report: &mut Report) -> Option<Tour> {
    let field = surface.tour.as_ref()?;
    let Actions::Mix(mix) = actions else {
        report.push(
            Diagnostic::error(field.key, "`tour` without a `mix`")
                .label("it is a mix whose actions share their places"),
        );
        return None;
    };
    for action in mix.iter().map(|weighted| &weighted.action).filter(|action| !action.fits_tour()) {
        report.push(
            Diagnostic::error(field.key, format!("`{}` cannot be part of a tour", action.name))
                .label("expected reads and writes of one block, `random` or by a `cursor`, without a `choice` and each on one fileset"),
        );
    }
    Some(field.value.0)
}

fn latency_target(surface: &LatencyTargetSurface) -> LatencyTarget {
    LatencyTarget {
        latency: or(surface.latency.as_ref(), Duration::ZERO, |Time(time)| time),
        share: or(surface.share.as_ref(), 1.0, |Share(share)| share),
        window: or(surface.window.as_ref(), DEFAULT_WINDOW, |Time(time)| time),
        follow: flag(surface.follow.as_ref(), false),
    }
}

/// A rate in bytes, of a group that moves some and has no other rate.
fn bandwidth(surface: &GroupSurface, actions: &Actions, report: &mut Report) -> Option<u64> {
    let field = surface.bandwidth.as_ref()?;
    if field.value.0 == 0 {
        report.push(Diagnostic::error(field.span, "a rate is above 0").label("expected a size such as \"10 MiB\""));
    }
    if let Some(rate) = &surface.rate {
        report.push(
            Diagnostic::error(field.key, "`bandwidth` beside `rate`")
                .label("a group keeps one rate, of bytes or of operations")
                .context(rate.key, "the other"),
        );
    }
    if !actions.all().is_empty() && actions.all().iter().all(|action| action.operation.nature().largest_block == 0) {
        report.push(
            Diagnostic::error(field.key, "a rate in bytes for operations that move none")
                .help("`rate` is in operations per second"),
        );
    }
    Some(field.value.0)
}

/// Rates of the reads and of the writes of a mix.
fn direction_rates(surface: &GroupSurface, actions: &Actions, report: &mut Report) -> [Option<Rate>; 2] {
    let of = |operations: &Option<Field<Real>>, bytes: &Option<Field<Size>>, writes: bool, report: &mut Report| {
        let (rate, key) = match (operations, bytes) {
            (None, None) => return None,
            (Some(field), _) => (Rate::Operations(field.value.0), field.key),
            (None, Some(field)) => (Rate::Bytes(field.value.0), field.key),
        };
        let others = [surface.rate.as_ref().map(|field| field.key), surface.bandwidth.as_ref().map(|field| field.key)];
        let beside = bytes.as_ref().filter(|_| operations.is_some()).map(|field| field.key);
        if let Some(other) = others.into_iter().flatten().next().or(beside) {
            report.push(
                Diagnostic::error(key, "two rates of the same operations")
                    .label("a rate is of bytes or of operations, of all or of reads and writes")
                    .context(other, "the other"),
            );
        }
        if rate == Rate::Bytes(0) {
            report.push(Diagnostic::error(key, "a rate is above 0").label("expected a size such as \"10 MiB\""));
        }
        let such = |action: &&&Action| action.operation.nature().writes() == writes;
        let all = actions.all();
        let largest = all.iter().filter(such).map(|action| action.operation.nature().largest_block).max();
        if !matches!(actions, Actions::Mix(_)) || largest.is_none() {
            report.push(Diagnostic::error(key, "a rate of operations that the group has not").label(if writes {
                "expected a `mix` with writes"
            } else {
                "expected a `mix` with reads"
            }));
        } else if matches!(rate, Rate::Bytes(_)) && largest == Some(0) {
            report.push(Diagnostic::error(key, "a rate in bytes for operations that move none"));
        }
        Some(rate)
    };
    [
        of(&surface.read_rate, &surface.read_bandwidth, false, report),
        of(&surface.write_rate, &surface.write_bandwidth, true, report),
    ]
}

fn region(surface: &RegionSurface) -> Region {
    match surface {
        OrTable::Plain(Listed(RegionWord::Whole)) => Region::Whole,
        OrTable::Plain(Listed(RegionWord::Split)) => Region::Split,
        OrTable::Table(table) => Region::At {
            offset_bytes: bytes(table.offset.as_ref()),
            length_bytes: table.length.as_ref().map(|field| field.value.0),
            step_bytes: bytes(table.step.as_ref()),
        },
    }
}

/// Reports actions that go through whole files, where threads have parts of them.
fn within_region(surface: &GroupSurface, actions: &Actions, report: &mut Report) {
    let Some(field) = surface.region.as_ref().filter(|field| region(&field.value) != Region::Whole) else { return };
    for action in actions.all() {
        let Some(transfer) = action.operation.nature().transfer else { continue };
        let shared = matches!(transfer.pattern, Pattern::Cursor { shared: true });
        let read_back = matches!(transfer.pattern, Pattern::Written { .. });
        let alone = matches!(action.choice, FileChoice::Uniform | FileChoice::Same | FileChoice::Rotation);
        if shared || !(alone || read_back) {
            report.push(
                Diagnostic::error(field.span, format!("`{}` goes through whole files", action.name))
                    .label("each thread has a part of them")
                    .help("expected the choice \"uniform\" or \"same\", and no shared cursor"),
            );
        }
    }
}

fn arrivals(surface: &GroupSurface, report: &mut Report) -> Arrivals {
    let no_rate = [&surface.rate, &surface.read_rate, &surface.write_rate].into_iter().all(Option::is_none);
    if let Some(field) = surface.arrivals.as_ref().filter(|_| no_rate) {
        report.push(
            Diagnostic::error(field.key, "`arrivals` without a `rate`")
                .label("it would change nothing")
                .help("`rate` says how many operations arrive per second"),
        );
    }
    word(surface.arrivals.as_ref(), Arrivals::Even)
}

fn goes_on_after(surface: &GoesOnSurface) -> Vec<Tolerated> {
    let of = |part: FailedPart, list: &Option<Field<Vec<At<Count<1, 4095>>>>>| -> Vec<Tolerated> {
        let numbers = list.iter().flat_map(|field| &field.value);
        numbers
            .map(|at| Tolerated { part, errno: i32::try_from(at.value.0).expect("the type allows no more") })
            .collect()
    };
    let checks = flag(surface.verify.as_ref(), false).then_some(Tolerated { part: FailedPart::Verify, errno: 0 });
    let mut all = of(FailedPart::Read, &surface.read);
    all.extend(of(FailedPart::Write, &surface.write));
    all.extend(checks);
    all
}

fn cpus(surface: &GroupSurface, report: &mut Report) -> Vec<u32> {
    if let Some(field) = surface.cpus.as_ref().filter(|field| field.value.is_empty()) {
        report.push(Diagnostic::error(field.span, "there is no CPU to run on").label("expected at least one number"));
    }
    if let Some(field) = surface.cpu_policy.as_ref().filter(|_| surface.cpus.is_none()) {
        report.push(Diagnostic::error(field.key, "`cpu-policy` without `cpus`").label("it would change nothing"));
    }
    let cpus = surface.cpus.iter().flat_map(|field| &field.value);
    cpus.map(|at| u32::try_from(at.value.0).expect("the type allows no more")).collect()
}

fn not_empty(field: &Field<Vec<At<ActionSurface>>>, report: &mut Report) {
    if field.value.is_empty() {
        report
            .push(Diagnostic::error(field.span, "a group needs something to do").label("expected at least one action"));
    }
}

fn fsync(surface: &FsyncSurface) -> FsyncPolicy {
    FsyncPolicy {
        every_operations: or(surface.every.as_ref(), 0, |Count(every)| every),
        all_files: flag(surface.all_files.as_ref(), false),
        between: flag(surface.between.as_ref(), false),
        after_last: flag(surface.after_last.as_ref(), false),
        counted: flag(surface.counted.as_ref(), false),
        at_end: flag(surface.at_end.as_ref(), false),
        at_close: flag(surface.at_close.as_ref(), false),
        data_only: flag(surface.data_only.as_ref(), false),
        counts_writes: flag(surface.counts_writes.as_ref(), false),
        data_every: or(surface.data_every.as_ref(), 0, |Count(every)| every),
        range_flags: or(surface.range_flags.as_ref(), 0, |Count(flags)| flags as u32),
    }
}
