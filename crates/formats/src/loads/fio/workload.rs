//! Jobs in the words of the model.
//!
//! Each clone of a job is a group of one thread, since each has files of its own. Jobs between two stonewalls are the groups
//! of a phase. A phase with jobs that write and verify is followed by one in which they read back what they wrote.

use super::{
    actions::{actions, tour},
    ends::{apart, ends_for_want_of_a_block, pass, reads_back, stop},
    files::{Filesets, Look, MOST_FILES, Place, Placement, error, note},
    job::{Direction, Ends, Engine, Hint, Job, Service, Sync, Trims},
    removals::Removals,
    text::Findings,
};
use crate::{
    Span,
    diagnostic::{Diagnostic, closest},
};
use fstone_model::workload::{
    Action, Actions, Advice, Arrivals, Batches, CpuPolicy, DataPattern, ErrorPolicy, FileChoice, FinalSync,
    FsyncPolicy, IoEngineKind, IoOverrides, IoSettings, LatencyTarget, LeastRate, MAXIMUM_THREADS, OpenPolicy,
    OpenSync, Operation, Pattern, Phase, Rate, Region, Steady, Stop, ThreadGroup, Tour, Workload,
};
use std::{collections::HashMap, time::Duration};

/// Where a job's figures are in the report of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub job: usize,
    pub clone: u32,
    pub group: String,
    /// The names of those of its further loops, where each is a phase of its own.
    pub again: Vec<String>,
    pub verify: Vec<String>,
}

impl Part {
    /// All its groups, also those that go on with it or read back.
    pub fn groups(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.group).chain(&self.again).chain(&self.verify)
    }
}

struct Back<'p> {
    job: usize,
    place: &'p Place,
    name: String,
    written: ThreadGroup,
}

/// A job whose loops are phases of their own.
struct Loops<'p> {
    count: u64,
    part: usize,
    job: usize,
    place: &'p Place,
    group: ThreadGroup,
}

#[derive(Default)]
struct Level<'p> {
    number: usize,
    groups: Vec<ThreadGroup>,
    /// In a phase before them.
    first_read: Vec<ThreadGroup>,
    /// In a phase behind them.
    back: Vec<Back<'p>>,
    loops: Vec<Loops<'p>>,
    /// The longest of any job.
    ramp: Duration,
}

struct Phases<'p> {
    jobs: &'p [Job],
    filesets: &'p Filesets<'p>,
    io: IoSettings,
    names: HashMap<String, u32>,
    all: Vec<Phase>,
    parts: Vec<Part>,
    /// The number of the last level.
    last: usize,
}

pub(super) fn workload(
    name: &str,
    jobs: &[Job],
    placement: Placement,
    size_of: &Look<'_>,
    findings: &mut Findings,
) -> (Workload, Vec<Part>) {
    let levels = levels(jobs, findings);
    let mut filesets = Filesets::new(size_of);
    let clones = clones(jobs, &levels, placement, &mut filesets, findings);
    if let (Some((one, other)), Some(job)) = (filesets.conflict(), jobs.first()) {
        let what = format!("files of `{one}` and of `{other}` can have the same names");
        error(job, findings, what, "give one of the jobs another name or a directory");
    }
    check_steady(jobs, findings);
    let io = io(jobs, findings);
    let last = levels.iter().copied().max().unwrap_or(0);
    let mut making =
        Phases { jobs, filesets: &filesets, io, names: HashMap::new(), all: Vec::new(), parts: Vec::new(), last };
    let to_remove = Removals::of(jobs, &clones, &levels);
    for number in 0..=last {
        let mut level = Level { number, ..Level::default() };
        for (index, clone, place) in clones.iter().filter(|(index, ..)| levels[*index] == number) {
            making.clone_of(*index, *clone, place, &mut level, findings);
        }
        if !level.groups.is_empty() || !level.first_read.is_empty() {
            let at_level = jobs.iter().zip(&levels).filter(|(_, at)| **at == number).map(|(job, _)| job);
            making.level(level, &at_level.collect::<Vec<_>>(), findings);
        }
        making.all.extend(to_remove.phase(number, &filesets));
    }
    let Phases { all: phases, parts, .. } = making;
    let share = |percent: u32| f64::from(percent) / 100.0;
    let workload = Workload {
        name: name.to_owned(),
        filesets: filesets.into_filesets(),
        phases,
        io,
        data: DataPattern {
            compressible: share(jobs.iter().map(|job| job.compress_percent).max().unwrap_or(0)),
            duplicate: share(jobs.iter().map(|job| job.dedupe_percent).max().unwrap_or(0)),
            stamped: jobs.iter().any(|job| job.verify),
            repeat: repeated(jobs, findings),
        },
        on_error: on_error(jobs, findings),
        final_sync: FinalSync::None,
        callout: None,
        launch: None,
        replay: None,
        series_interval: log_interval(jobs, findings),
    };
    fit_targets(&workload, jobs, &parts, findings);
    possible_settings(&workload, jobs, &parts, findings);
    (workload, parts)
}

fn clones(
    jobs: &[Job],
    levels: &[usize],
    placement: Placement,
    filesets: &mut Filesets<'_>,
    findings: &mut Findings,
) -> Vec<(usize, u32, Place)> {
    let mut clones = Vec::new();
    let mut files = 0u64;
    for (index, job) in jobs.iter().enumerate() {
        for clone in 0..job.clones {
            let Some(place) = filesets.of(job, clone, levels[index], placement, findings) else { break };
            files = files.saturating_add(place.files);
            if files > MOST_FILES {
                error(job, findings, format!("more than {MOST_FILES} files"), "give a smaller nrfiles or numjobs");
                return clones;
            }
            clones.push((index, clone, place));
        }
    }
    clones
}

impl<'p> Phases<'p> {
    fn clone_of(&mut self, index: usize, clone: u32, place: &'p Place, level: &mut Level<'p>, findings: &mut Findings) {
        let job = &self.jobs[index];
        let name = unique(&mut self.names, &group_name(job, clone));
        let mut part = Part { job: index, clone, group: name.clone(), again: Vec::new(), verify: Vec::new() };
        let (count, once) = apart(job, place);
        let group = group(&once, clone, place, name.clone(), self.io, self.filesets);
        if job.pre_read && !job.engine.of_files() && job.engine != Engine::Null {
            let name = unique(&mut self.names, &format!("{name} pre-read"));
            let mut reader = reader(job, place, name, &group, self.filesets);
            let cached = IoSettings { sync: settings(job).sync, ..IoSettings::default() };
            reader.io = overrides(cached, self.io);
            level.first_read.push(reader);
        }
        if job.create_only {
            self.parts.push(part);
            return;
        }
        check_parts(job, &group, findings);
        if reads_back(job) {
            let name = unique(&mut self.names, &format!("{name} verify"));
            part.verify.push(name.clone());
            level.back.push(Back { job: index, place, name, written: group.clone() });
        }
        if count > 1 {
            level.loops.push(Loops { count, part: self.parts.len(), job: index, place, group: group.clone() });
        }
        level.ramp = level.ramp.max(job.ramp);
        level.groups.push(group);
        self.parts.push(part);
    }

    fn level(&mut self, level: Level<'p>, jobs: &[&Job], findings: &mut Findings) {
        let Level { number, mut groups, first_read, back, loops, ramp } = level;
        let searching = searches(jobs.iter().copied(), findings);
        if groups.len() as u64 > MAXIMUM_THREADS {
            let what = format!("{} clones at once; at most {MAXIMUM_THREADS} can run", groups.len());
            error(jobs.last().unwrap_or(&&self.jobs[0]), findings, what, "give a smaller numjobs");
        }
        let name = if self.all.is_empty() { "run".to_owned() } else { format!("run {}", number + 1) };
        if !first_read.is_empty() {
            self.all.push(Phase::unmeasured(format!("{name} pre-read"), first_read, Stop::default()));
        }
        if groups.is_empty() {
            return;
        }
        let first = self.all.len();
        self.ahead(&name, &mut groups, ramp, searching);
        let stop = if all_end(jobs, number < self.last, findings) { first_end(&groups) } else { Stop::default() };
        self.all.push(Phase::new(name.clone(), groups, stop));
        self.read_back(&name, back, (self.all.len() - first) as u32);
        for number in 2..=loops.iter().map(|of| of.count).max().unwrap_or(1) {
            self.further_loop(&name, number, &loops);
        }
    }

    /// Adds what groups do before they are measured: a ramp, and a search for their queue depths. They go on from there.
    fn ahead(&mut self, name: &str, groups: &mut [ThreadGroup], ramp: Duration, searching: bool) {
        if !ramp.is_zero() {
            let mut groups = groups.to_vec();
            for group in &mut groups {
                unfinished(group);
                group.start_delay = Duration::ZERO;
                group.latency_target = None;
                // The time that a job runs begins behind it.
                group.stop.time = None;
            }
            let stop = Stop { time: Some(ramp), ..Stop::default() };
            self.all.push(Phase::unmeasured(format!("{name} ramp"), groups, stop));
        }
        if searching {
            let mut groups_of_search = groups.to_vec();
            if !ramp.is_zero() {
                groups_of_search.iter_mut().for_each(goes_on);
            }
            groups_of_search.iter_mut().for_each(unfinished);
            self.all.push(Phase::unmeasured(format!("{name} search"), groups_of_search, Stop::default()));
            groups.iter_mut().for_each(at_found_depth);
        }
        if searching || !ramp.is_zero() {
            groups.iter_mut().for_each(goes_on);
        }
    }

    fn read_back(&mut self, name: &str, back: Vec<Back<'_>>, written_in: u32) {
        if back.is_empty() {
            return;
        }
        let read_back =
            |of: Back<'_>| read_back(&self.jobs[of.job], of.place, of.name, &of.written, self.filesets, written_in);
        let groups = back.into_iter().map(read_back).collect();
        self.all.push(Phase::new(format!("{name} verify"), groups, Stop::default()));
    }

    fn further_loop(&mut self, name: &str, number: u64, loops: &[Loops<'p>]) {
        let (mut groups, mut back) = (Vec::new(), Vec::new());
        for of in loops.iter().filter(|of| number <= of.count) {
            let part = &mut self.parts[of.part];
            let name = unique(&mut self.names, &format!("{} loop {number}", part.group));
            let written = ThreadGroup { name: name.clone(), start_delay: Duration::ZERO, ..of.group.clone() };
            part.again.push(name);
            if reads_back(&self.jobs[of.job]) {
                let name = unique(&mut self.names, &format!("{} verify", written.name));
                part.verify.push(name.clone());
                back.push(Back { job: of.job, place: of.place, name, written: written.clone() });
            }
            groups.push(written);
        }
        let unlinking = |of: &&Loops<'p>| number <= of.count && self.jobs[of.job].removes_between();
        let unlinked = loops.iter().filter(unlinking).flat_map(|of| unlinked(of, &self.jobs[of.job], self.filesets));
        let unlinked: Vec<ThreadGroup> = unlinked.collect();
        if !unlinked.is_empty() {
            self.all.push(Phase::unmeasured(format!("{name} unlink {number}"), unlinked, Stop::default()));
        }
        let name = format!("{name} loop {number}");
        self.all.push(Phase::new(name.clone(), groups, Stop::default()));
        self.read_back(&name, back, 1);
    }
}

/// Reports a job that goes through several files, of each of which it has a part: files are gone through by their number, and then as a whole.
fn check_parts(job: &Job, group: &ThreadGroup, findings: &mut Findings) {
    let goes_through = |action: &Action| matches!(action.choice, FileChoice::RoundRobin | FileChoice::Concatenated);
    if group.region != Region::Whole && group.actions.all().into_iter().any(goes_through) {
        let what = format!("`{}` works on a part of each of several files", job.name);
        error(job, findings, what, "give jobs of one name the same filesize, and files a whole number of blocks");
    }
}

fn searches<'j>(jobs: impl Iterator<Item = &'j Job>, findings: &mut Findings) -> bool {
    let what = "a job that ends when it has found its queue depth";
    let cure = "give both a latency_target, or latency_run=1 to the other, or put a stonewall between them";
    all_or_none(jobs, findings, |job| job.latency_target.is_some() && !job.latency_run, what, cure)
}

fn all_end(jobs: &[&Job], others_follow: bool, findings: &mut Findings) -> bool {
    let apart = jobs.iter().skip(1).any(|job| job.new_group);
    for job in jobs.iter().filter(|job| job.exit_all) {
        let (what, cure) = match job.exit_what {
            Ends::Group if apart => ("of its group alone", "give exit_what=stonewall, or leave new_group out"),
            Ends::All if others_follow => ("and those that have not begun", "give exit_what=stonewall"),
            _ => continue,
        };
        error(job, findings, format!("`{}` ends the jobs that run beside it, {what}", job.name), cure);
    }
    let cure = "give exitall to both, or put a stonewall between them";
    all_or_none(jobs.iter().copied(), findings, |job| job.exit_all, "a job with exitall", cure)
}

/// Whether this is so of jobs that run at once: of all, or of none. Of some it is an error.
fn all_or_none<'j>(
    jobs: impl Iterator<Item = &'j Job>,
    findings: &mut Findings,
    is_so: impl Fn(&Job) -> bool,
    what: &str,
    cure: &str,
) -> bool {
    let (so, others): (Vec<&Job>, Vec<&Job>) = jobs.partition(|job| is_so(job));
    if let Some(other) = others.first().filter(|_| !so.is_empty()) {
        error(other, findings, format!("`{}` runs beside {what}", other.name), cure);
    }
    !so.is_empty()
}

/// The end of a phase that ends when the first of its groups does. A group's own time begins behind its delay.
fn first_end(groups: &[ThreadGroup]) -> Stop {
    let ends = groups.iter().filter_map(|group| Some(group.stop.time? + group.start_delay));
    Stop { time: ends.min(), first_done: true, ..Stop::default() }
}

/// A group that goes on where it was in the phase before. What that has cached stays: fio does not open its files anew in between.
fn goes_on(group: &mut ThreadGroup) {
    group.continues = true;
    group.invalidate = false;
}

/// A group that another phase goes on with: nothing is judged in it, and nothing is synced at its end.
fn unfinished(group: &mut ThreadGroup) {
    (group.least_rate, group.steady) = (None, None);
    (group.fsync.at_end, group.fsync.after_last) = (false, false);
}

fn at_found_depth(group: &mut ThreadGroup) {
    if let Some(target) = group.latency_target.take() {
        let time = group.stop.time.map_or(target.window, |time| time.min(target.window));
        // What the search has moved is not counted: it may have been all of the job.
        group.stop = Stop { time: Some(time), ..Stop::default() };
    }
}

fn fit_targets(workload: &Workload, jobs: &[Job], parts: &[Part], findings: &mut Findings) {
    let groups = workload.phases.iter().flat_map(|phase| phase.groups.iter().map(move |group| (phase, group)));
    for (phase, group) in groups {
        let Some(why) = workload.unfit_target(phase, group) else { continue };
        let part = parts.iter().find(|part| part.group == group.name && part.clone == 0);
        if let Some(job) = part.map(|part| &jobs[part.job]) {
            let what = format!("`{}` cannot look for the queue depth that keeps its latency_target: {why}", job.name);
            error(job, findings, what, "give it ioengine=libaio or io_uring and an iodepth above 1, or leave it out");
        }
    }
}

/// The bytes that jobs write again and again, which are the same of all.
fn repeated(jobs: &[Job], findings: &mut Findings) -> Vec<u8> {
    let mut writing = jobs.iter().filter(|job| job.direction.writes && !job.engine.of_files());
    let Some(first) = writing.next() else { return Vec::new() };
    let data = |job: &Job| (job.pattern.clone(), job.dedupe_percent, job.compress_percent);
    if let Some(other) = writing.find(|job| data(job) != data(first)) {
        let what = format!("`{}` and `{}` write different data", first.name, other.name);
        error(
            other,
            findings,
            what,
            "give all jobs that write the same buffer_pattern, dedupe_percentage and buffer_compress_percentage, or run them one by one with \
             --section",
        );
    }
    // Duplicates are of random blocks; the compressible part of them has the pattern.
    match (first.dedupe_percent, first.compress_percent) {
        (1.., 0) => Vec::new(),
        _ => first.pattern.clone(),
    }
}

/// Reports jobs of one group that are steady when another one is not.
fn check_steady(jobs: &[Job], findings: &mut Findings) {
    let steady = |job: &Job| job.steady.map(|of| (of, job.steady_window, job.steady_ramp));
    let groups = groups(jobs);
    for ((job, group), (before, of_before)) in jobs.iter().zip(&groups).skip(1).zip(jobs.iter().zip(&groups)) {
        if group == of_before && steady(job) != steady(before) {
            let what = format!("`{}` and `{}` differ in steadystate or its options", before.name, job.name);
            error(job, findings, what, "as in fio, give all jobs of a group the same, or this one new_group");
        }
    }
}

/// What follows an error after which a job does not go on.
fn on_error(jobs: &[Job], findings: &mut Findings) -> ErrorPolicy {
    let Some(first) = jobs.iter().find(|job| job.ends_all) else { return ErrorPolicy::StopGroup };
    for other in jobs.iter().filter(|job| !job.ends_all) {
        let what = format!("`{}` ends all jobs with its first error, as `{}` does", other.name, first.name);
        note(other, findings, what, "what one job says of errors holds for all");
    }
    ErrorPolicy::Stop
}

fn log_interval(jobs: &[Job], findings: &mut Findings) -> Duration {
    const USUAL: Duration = Duration::from_millis(500);
    let logging = jobs.iter().filter(|job| job.logs.iter().any(Option::is_some));
    let shortest = logging.clone().map(|job| job.log_interval.unwrap_or(USUAL)).min().unwrap_or(USUAL);
    for job in logging.filter(|job| job.log_interval != Some(shortest)) {
        note(
            job,
            findings,
            format!("the logs of `{}` have a line every {} ms", job.name, shortest.as_millis()),
            "fio's have one for each operation without log_avg_msec; all logs of a load have the shortest of any job",
        );
    }
    shortest
}

/// The number of each job's group in the results: a new one begins behind a stonewall, and with `new_group`.
pub(super) fn groups(jobs: &[Job]) -> Vec<u32> {
    let begins = |(index, job): (usize, &Job)| u32::from(index > 0 && (job.stonewall || job.new_group));
    let begins = jobs.iter().enumerate().map(begins);
    begins
        .scan(0, |group, more| {
            *group += more;
            Some(*group)
        })
        .collect()
}

/// In which phase each job runs: after a stonewall, those behind it; and after the job that it waits for.
fn levels(jobs: &[Job], findings: &mut Findings) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::new();
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (index, job) in jobs.iter().enumerate() {
        first.entry(&job.name).or_insert(index);
    }
    let mut base = 0;
    for (index, job) in jobs.iter().enumerate() {
        if job.stonewall && index > 0 {
            base = levels.iter().max().map_or(0, |level| level + 1);
        }
        let mut level = base;
        if let Some(name) = &job.wait_for {
            match first.get(name.as_str()) {
                Some(other) if *other < index => level = level.max(levels[*other] + 1),
                // That has been told.
                _ if *name == job.name => {}
                known => waits_in_vain(job, name, known.is_some(), &jobs[..index], findings),
            }
        }
        levels.push(level);
    }
    levels
}

fn waits_in_vain(job: &Job, name: &str, stands_below: bool, before: &[Job], findings: &mut Findings) {
    let span = job.waits_at.as_ref().map_or_else(Span::default, |(_, span)| *span);
    let diagnostic = if stands_below {
        let what = format!("`{}` waits for `{name}`, which stands below it", job.name);
        Diagnostic::error(span, what).help(format!("move the section `{name}` above `{}`", job.name))
    } else {
        let what = format!("`{}` waits for `{name}`, but no job before it has that name", job.name);
        let names = before.iter().map(|job| job.name.as_str());
        let diagnostic = Diagnostic::error(span, what);
        match closest(name, names) {
            Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
            None => diagnostic.help("name a job that stands above it, or leave wait_for out"),
        }
    };
    match &job.waits_at {
        Some((source, _)) => findings.at(source, diagnostic),
        None => findings.report().push(diagnostic),
    }
}

pub(super) fn group_name(job: &Job, clone: u32) -> String {
    if job.clones == 1 { job.name.clone() } else { format!("{}.{clone}", job.name) }
}

pub(super) fn unique(names: &mut HashMap<String, u32>, name: &str) -> String {
    let mut unique = name.to_owned();
    while names.contains_key(&unique) {
        let seen = names.entry(name.to_owned()).or_default();
        *seen += 1;
        unique = format!("{name} ({seen})");
    }
    names.insert(unique.clone(), 1);
    unique
}

fn io(jobs: &[Job], findings: &mut Findings) -> IoSettings {
    let nulls = jobs.iter().filter(|job| job.engine == Engine::Null).count();
    if nulls > 0 && nulls < jobs.len() {
        let job = jobs.iter().find(|job| job.engine == Engine::Null).unwrap_or(&jobs[0]);
        error(job, findings, "ioengine=null beside jobs of other engines".into(), "give it a job file of its own");
    }
    jobs.first().map_or_else(IoSettings::default, settings)
}

fn settings(job: &Job) -> IoSettings {
    IoSettings {
        engine: match job.engine {
            Engine::Libaio => IoEngineKind::Libaio,
            Engine::IoUring => IoEngineKind::IoUring,
            Engine::Mmap => IoEngineKind::Mmap,
            Engine::Falloc => IoEngineKind::Falloc,
            Engine::Splice => IoEngineKind::Splice,
            Engine::Null => IoEngineKind::Null,
            _ => IoEngineKind::Psync,
        },
        direct: job.direct,
        sync: match job.sync {
            // The flag of a descriptor says nothing of a mapping.
            _ if job.engine == Engine::Mmap => OpenSync::None,
            Sync::None => OpenSync::None,
            Sync::Sync => OpenSync::Sync,
            Sync::Dsync => OpenSync::Dsync,
        },
        queue_depth: job.depth,
        polled: job.polled,
        uncached: job.uncached,
        no_wait: job.no_wait,
        atomic: job.atomic,
    }
}

fn possible_settings(workload: &Workload, jobs: &[Job], parts: &[Part], findings: &mut Findings) {
    for group in workload.phases.iter().flat_map(|phase| &phase.groups) {
        let part = parts.iter().find(|part| part.group == group.name && part.clone == 0);
        if let (Some((setting, why, cure)), Some(part)) = (workload.refused_setting(group), part) {
            let job = &jobs[part.job];
            error(job, findings, format!("`{}` cannot have {}: {why}", job.name, setting.word()), cure);
        }
    }
}

fn overrides(own: IoSettings, io: IoSettings) -> IoOverrides {
    IoOverrides {
        engine: (own.engine != io.engine).then_some(own.engine),
        direct: (own.direct != io.direct).then_some(own.direct),
        sync: (own.sync != io.sync).then_some(own.sync),
        queue_depth: (own.queue_depth != io.queue_depth).then_some(own.queue_depth),
        polled: (own.polled != io.polled).then_some(own.polled),
        uncached: (own.uncached != io.uncached).then_some(own.uncached),
        no_wait: (own.no_wait != io.no_wait).then_some(own.no_wait),
        atomic: (own.atomic != io.atomic).then_some(own.atomic),
    }
}

fn group(job: &Job, clone: u32, place: &Place, name: String, io: IoSettings, filesets: &Filesets<'_>) -> ThreadGroup {
    let mut group = ThreadGroup::new(name, 1, actions(job, place));
    group.tour = tour(job, place);
    if group.tour.is_some_and(|tour| tour != Tour::OneByOne) {
        group.tour_operations = job.service_operations;
    }
    group.backlog = job.in_backlog().then_some(job.backlog);
    group.tour_open = group.tour.and_then(|_| job.opened_of(place.files));
    group.io = overrides(settings(job), io);
    group.open = if job.engine.of_files() { OpenPolicy::PerOperation } else { OpenPolicy::KeepOpen };
    if !job.think.is_zero() {
        // fio counts no blocks where only the time is given.
        let usual = if job.think_after.is_some() { u64::MAX } else { 1 };
        (group.think_time, group.think_every) = (job.think, job.think_every.unwrap_or(usual));
        (group.think_after, group.think_spin) = (job.think_after, job.think_spin.min(job.think));
    }
    group.start_delay = delay(job, clone);
    group.invalidate = job.invalidate && !job.pre_read && !job.engine.of_files() && job.engine != Engine::Null;
    // A pass of fio's mappings gives up the mapped pages alone, and the page cache keeps them.
    let cold_again = group.invalidate && !job.direct && job.engine != Engine::Mmap;
    group.invalidate_every = pass(job, place).filter(|_| cold_again);
    if !job.engine.of_files() && job.engine != Engine::Null {
        group.advice = match job.hint {
            Hint::None => Advice::None,
            Hint::Sequential => Advice::Sequential,
            Hint::Random => Advice::Random,
            Hint::ByType if job.direction.random => Advice::Random,
            Hint::ByType => Advice::Sequential,
        };
    }
    group.cpus = job.cpus.clone();
    if job.split_cpus && !job.cpus.is_empty() {
        // A group of one thread: its CPU is known.
        group.cpus = vec![job.cpus[clone as usize % job.cpus.len()]];
        group.cpu_policy = CpuPolicy::Shared;
    }
    pace(job, &mut group);
    if !job.engine.of_files() {
        group.region = region(place, filesets);
        group.fsync = FsyncPolicy { at_close: job.close_fsync && group.tour_open.is_some(), ..fsyncs(job, place) };
    }
    group.stop = stop(job, place);
    if job.depth > 1 {
        let least = job.complete_least.min(job.depth);
        let below = |number: Option<u32>| number.filter(|number| *number < job.depth);
        // fio reaps one by one unless it is to wait for more. That makes no difference to requests that are submitted one by one and not waited
        // for either, and reaping all costs fewer calls.
        let usual = job.submit == Some(1) && least == 1 && job.low.is_none() && job.complete_most.is_none();
        let most = (!usual).then(|| job.complete_most.unwrap_or(0).max(least));
        group.batches = Batches { submit: below(job.submit), least, refill_at: below(job.low), most: below(most) };
    }
    group.latency_target = job.latency_target.map(|latency| LatencyTarget {
        latency,
        share: job.latency_percent / 100.0,
        window: job.latency_window,
        follow: job.latency_run,
    });
    let least = |direction: usize| {
        let [bytes, operations] = [job.least_bytes, job.least_operations].map(|least| least[direction].unwrap_or(0));
        (bytes, operations)
    };
    let [reads, writes] = [least(0), least(1)];
    let (bytes, operations) = if job.direction.reads { reads } else { writes };
    let of_writes = (job.direction.reads && job.direction.writes && reads != writes).then_some(writes);
    let every = job.least_every;
    group.least_rate = Some(LeastRate { bytes, operations, every, of_writes })
        .filter(|least| [false, true].map(|writes| least.of(writes)) != [(0, 0); 2]);
    // fio lets the second go by in which the ramp ends.
    let ramp = job.steady_ramp.saturating_add(Duration::from_secs(u64::from(!job.steady_ramp.is_zero())));
    group.steady = job.steady.map(|of| Steady { window: job.steady_window, ramp, ..of });
    group.own_series = job.logs.iter().any(Option::is_some);
    group.goes_on_after = job.goes_on_after();
    group
}

/// A clone's own between the least and the most, the same in each run.
fn delay(job: &Job, clone: u32) -> Duration {
    let [least, most] = job.delay;
    // A step of splitmix64.
    let mut bits = (job.seed ^ ((u64::from(clone) + 1) << 32)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    least + (most - least).mul_f64((bits >> 32) as f64 / f64::from(u32::MAX))
}

fn region(place: &Place, filesets: &Filesets<'_>) -> Region {
    let whole = place.filesets.iter().all(|fileset| filesets.size_of(*fileset) == Some(place.length));
    if place.offset == 0 && (whole || place.file_bytes.is_none()) {
        return Region::Whole;
    }
    Region::At { offset_bytes: place.offset, length_bytes: Some(place.length), step_bytes: 0 }
}

fn pace(job: &Job, group: &mut ThreadGroup) {
    let [reads, writes] = job.read_and_write_weights().map(|weight| weight > 0);
    if reads && writes && !job.engine.of_files() {
        group.direction_rates = [job.rate(0), job.rate(1)];
    } else {
        let used = if job.direction.trims == Trims::Only { [false, false, true] } else { [reads, writes, false] };
        // Each has the rate, the trims and the writes after them.
        let times = if job.direction.trims == Trims::First { 2.0 } else { 1.0 };
        match (0..3).filter(|direction| used[*direction]).find_map(|direction| job.rate(direction)) {
            Some(Rate::Operations(operations)) => group.rate_per_second = Some(times * operations),
            Some(Rate::Bytes(bytes)) => group.bytes_per_second = Some(bytes),
            None => {}
        }
    }
    let of_directions = group.direction_rates.iter().flatten().any(|rate| matches!(rate, Rate::Operations(_)));
    if job.poisson && (of_directions || group.rate_per_second.is_some()) {
        group.arrivals = Arrivals::Poisson;
    }
}

fn fsyncs(job: &Job, place: &Place) -> FsyncPolicy {
    if !job.direction.writes || job.direction.trims == Trims::Only {
        return FsyncPolicy::default();
    }
    // fio's next is the write after a trim, or the trim, even where a sync is due.
    if job.direction.trims == Trims::First {
        return FsyncPolicy { at_end: job.end_fsync, ..FsyncPolicy::default() };
    }
    FsyncPolicy {
        every_operations: job.fsync_every,
        data_every: job.fdatasync_every.max(job.range.1),
        range_flags: job.range.0,
        between: true,
        after_last: ends_for_want_of_a_block(job, place),
        at_end: job.end_fsync,
        counts_writes: job.direction.reads || job.in_backlog(),
        ..FsyncPolicy::default()
    }
}

/// What removes the files of a job before another loop. Those that are written are made again, without blocks.
fn unlinked(of: &Loops<'_>, job: &Job, filesets: &Filesets<'_>) -> Vec<ThreadGroup> {
    let one = |fileset: &u32| {
        let mut actions = vec![("unlink", Operation::Unlink, FileChoice::RoundRobin)];
        if !job.engine.of_files() {
            let size_bytes = filesets.size_of(*fileset).unwrap_or(0);
            actions.push(("create", Operation::Create { block_bytes: 0, fsync: false }, FileChoice::Uniform));
            actions.push(("truncate", Operation::Truncate { size_bytes }, FileChoice::Same));
        }
        let operations = filesets.files_of(*fileset) * actions.len() as u64;
        let action = |(name, operation, choice): (&str, Operation, FileChoice)| Action {
            choice,
            ..Action::new(name, operation, Some(*fileset))
        };
        let name = format!("{} unlink {fileset}", of.group.name);
        let actions = Actions::Sequence(actions.into_iter().map(action).collect());
        let stop = Stop { operations: Some(operations), ..Stop::default() };
        ThreadGroup { stop, ..ThreadGroup::new(name, 1, actions) }
    };
    of.place.filesets.iter().map(one).collect()
}

/// The group that reads back what a job wrote in so many phases, each block once.
fn read_back(
    job: &Job,
    place: &Place,
    name: String,
    written: &ThreadGroup,
    filesets: &Filesets<'_>,
    phases: u32,
) -> ThreadGroup {
    let mut group = reader(job, place, name, written, filesets);
    for action in group.actions.all_mut() {
        if let Operation::Read(transfer) = &mut action.operation {
            transfer.pattern = Pattern::Written { phases };
        }
        action.choice = FileChoice::Concatenated;
        action.blocks = None;
    }
    group.tour = None;
    // fio opens the files anew. It does not sync them: what is still to be written back comes from the page cache.
    group.invalidate = written.invalidate;
    group.stop = Stop { once_through: true, ..Stop::default() };
    group
}

/// The group that reads a job's files, each from the start of its part on.
fn reader(job: &Job, place: &Place, name: String, written: &ThreadGroup, filesets: &Filesets<'_>) -> ThreadGroup {
    let mut reader = job.clone();
    reader.direction = Direction::READS;
    reader.blocks = [job.blocks[1].clone(), job.blocks[1].clone()];
    reader.service = Service::Sequential;
    reader.time_based = false;
    reader.runtime = None;
    reader.number_ios = None;
    reader.io_size = None;
    reader.loops = 1;
    reader.backlog = 0;
    let mut group = ThreadGroup::new(name, 1, actions(&reader, place));
    group.tour = tour(&reader, place);
    group.io = written.io;
    group.open = OpenPolicy::KeepOpen;
    group.region = region(place, filesets);
    group.stop = stop(&reader, place);
    group.goes_on_after = job.goes_on_after();
    group
}
