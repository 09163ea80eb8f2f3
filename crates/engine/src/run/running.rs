//! A load on its way through its phases.

use super::durable::{self, Durable, SyncError};
use super::names::{collector_of, names};
use super::phase::{self, Checkpoints, GroupEnd, PhaseEnd, Watch};
use super::pretend::pretended;

use crate::audit::Touched;
use crate::data::Depot;
use crate::error::LoadError;
use crate::fileset::Files;
use crate::fileset::build;
use crate::fileset::existing::{drop_cached, union, without_data};
use crate::fileset::site::BuildContext;
use crate::measure::{Clock, Collector};
use crate::options::{Ownership, Progress, RunOptions};
use crate::peers::{Parted, Peers};
use crate::plan::{Found, PhasePlan};
use crate::promises::{Change, Witness};
use crate::worker::{Kept, Load, SoFar};
use fstone_model::load::{ErrorReport, PhaseReport, Span};
use fstone_model::ranks::PhasePassed;
use fstone_model::workload::operation::Data;
use fstone_model::workload::{
    Action, ByFileset, DataPattern, Existing, Fileset, FinalSync, IoEngineKind, MAXIMUM_BLOCK_BYTES, Operation,
    Pattern, Phase, Region, ThreadGroup, Transfer,
};
use fstone_model::{LoadReport, Workload};
use rustix::fs::{Mode, OFlags};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
const USUAL_INTERVAL: Duration = Duration::from_secs(1);

fn open_directory(directory: &Path) -> Result<rustix::fd::OwnedFd, LoadError> {
    rustix::fs::open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| LoadError::Directory { path: directory.to_owned(), errno })
}

pub(super) struct Running<'a> {
    /// As this rank has it, where there are several.
    pub(super) workload: Cow<'a, Workload>,
    /// As it was written.
    pub(super) written: &'a Workload,
    pub(super) directory: &'a Path,
    pub(super) options: &'a RunOptions<'a>,
    pub(super) clock: Clock,
    pub(super) depot: Depot,
    pub(super) files: Vec<Files>,
    uses: Vec<Uses>,
    pub(super) built: Vec<bool>,
    /// Filesets that have no holes, because they were laid out.
    whole: Vec<bool>,
    /// The parts of a fileset's files that were looked at for holes.
    looked_at: Vec<Vec<(Region, u32)>>,
    pub(super) written_bytes: u64,
    /// Whether files are made for their own sake.
    pub(super) prepares: bool,
    pub(super) collector: Collector,
    pub(super) touched: Touched,
    /// The filesets as the first measured phase found them, for the null engine; `None` before it.
    pub(super) pretended: Option<Vec<Fileset>>,
    pub(super) halted: AtomicBool,
    parted: AtomicBool,
    pub(super) interrupted: bool,
    phase_name: Option<String>,
    pub(super) verified_bytes: AtomicU64,
    pub(super) indirect: AtomicU64,
    pub(super) interval: Duration,
    pub(super) report: LoadReport,
    pub(super) cpu_ns: u64,
    pub(super) measured: Measured,
    /// The generation of the first write of each phase until now, where data is stamped.
    generations: Vec<u64>,
    checkpoints: Mutex<Checkpoints>,
    found: HashMap<String, Vec<Found>>,
}

struct Uses {
    metadata: bool,
    changes: bool,
    renames: bool,
}

impl Uses {
    fn of(workload: &Workload) -> Vec<Self> {
        let actions = ByFileset::of_phases(&workload.phases);
        let any =
            |fileset, kind: &dyn Fn(&Operation) -> bool| actions.on(fileset).any(|(_, action)| kind(&action.operation));
        (0..workload.filesets.len())
            .map(|fileset| Self {
                metadata: any(fileset, &|operation| *operation == Operation::Metadata),
                changes: any(fileset, &|operation| operation.nature().changes()),
                renames: any(fileset, &|operation| *operation == Operation::Rename),
            })
            .collect()
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    groups: usize,
    points: u64,
    pub(super) phases_ns: Vec<u64>,
    /// When each of their groups was at work, and its phase closed after all of them.
    pub(super) at_work: Vec<[Span; 2]>,
    /// How long each of their groups had operations to begin, since its phase's begin.
    pub(super) due_ns: Vec<u64>,
}

impl<'a> Running<'a> {
    pub(super) fn new(
        written: &'a Workload,
        directory: &'a Path,
        options: &'a RunOptions<'a>,
    ) -> Result<Self, LoadError> {
        let workload = match options.observer.peers() {
            Some(peers) => Cow::Owned(written.of_rank(peers.rank(), peers.size(), peers.whose())),
            None if written.names_ranks() => Cow::Owned(written.alone()),
            None => Cow::Borrowed(written),
        };
        if workload.io.engine != IoEngineKind::Null {
            open_directory(directory)?;
        }
        let measured: Vec<&ThreadGroup> = workload.measured_phases().flat_map(|phase| &phase.groups).collect();
        // A witness reads the stamps of what is written, and needs no ledger of its own for that.
        let witness = options.observer.witness().filter(|_| workload.io.engine != IoEngineKind::Null);
        let pattern = DataPattern { stamped: workload.data.stamped || witness.is_some(), ..workload.data.clone() };
        let files = workload
            .filesets
            .iter()
            .map(|spec| {
                let sizes = build::sizes(spec, pattern.stamped)?;
                Ok(Files::new(spec, sizes, build::names(spec.amount)))
            })
            .collect::<Result<Vec<Files>, LoadError>>()?;
        let blocks = workload.phases.iter().flat_map(|phase| &phase.groups).flat_map(|group| group.actions.all());
        let built = workload.filesets.iter().map(|fileset| fileset.build_block_bytes);
        let largest = blocks.map(|action| action.operation.nature().largest_block).chain(built).max().unwrap_or(0);
        let interval = match workload.series_interval {
            Duration::ZERO => USUAL_INTERVAL,
            interval => interval.max(SHORTEST_INTERVAL),
        };
        let depot = Depot::new(pattern, largest.min(MAXIMUM_BLOCK_BYTES) as usize, options.seed);
        Ok(Self {
            directory,
            options,
            clock: Clock::get(),
            depot: if workload.data.stamped { depot } else { depot.without_ledger() },
            written,
            uses: Uses::of(&workload),
            built: vec![false; files.len()],
            whole: vec![false; files.len()],
            looked_at: vec![Vec::new(); files.len()],
            written_bytes: 0,
            prepares: false,
            touched: Touched::nothing(files.len()),
            pretended: None,
            files,
            collector: collector_of(&measured),
            halted: AtomicBool::new(false),
            parted: AtomicBool::new(false),
            interrupted: false,
            phase_name: None,
            verified_bytes: AtomicU64::new(0),
            indirect: AtomicU64::new(0),
            interval,
            report: LoadReport { seed: options.seed, threads: written.threads(), ..LoadReport::default() },
            cpu_ns: 0,
            measured: Measured::default(),
            generations: Vec::new(),
            checkpoints: Mutex::default(),
            found: HashMap::new(),
            workload,
        })
    }

    fn real(&self) -> bool {
        self.workload.io.engine != IoEngineKind::Null
    }

    fn cancelled(&self) -> bool {
        self.options.cancel.load(Ordering::Relaxed)
    }

    /// Whether there was anything to build.
    pub(super) fn build(&mut self, wanted: &dyn Fn(usize) -> bool) -> Result<bool, LoadError> {
        let started = Instant::now();
        let (mut any, mut roots, mut laid_out) = (false, Vec::new(), Vec::new());
        let missing: Vec<usize> = (0..self.files.len()).filter(|index| !self.built[*index]).collect();
        for index in &missing {
            build::look(&self.files[*index], self.site(*index))?;
        }
        for index in missing.into_iter().filter(|index| wanted(*index)) {
            let witness = self.options.observer.witness().filter(|_| self.real());
            let begun = witness.map(Witness::tick);
            let mut files = std::mem::replace(
                &mut self.files[index],
                Files::new(&self.workload.filesets[index], build::sizes(&self.workload.filesets[index], false)?, 0),
            );
            let built = match self.options.observer.peers() {
                Some(peers) => super::in_common::build(&mut files, self.site(index), peers),
                None => build::build(&mut files, self.site(index)),
            };
            self.files[index] = files;
            if let (Some(witness), Some(begun)) = (witness, begun) {
                let root = build::root(self.directory, &self.workload.filesets[index]);
                let root = std::fs::canonicalize(&root).unwrap_or(root);
                witness.changed(begun, Change::Remade { below: root.to_string_lossy().into() });
                roots.push(root);
            }
            let built = built?;
            let files = &self.files[index];
            self.whole[index] = !(built.used || files.found || !files.spec.fill);
            self.report.warnings.extend(built.warnings);
            self.written_bytes += built.written_bytes;
            self.built[index] = true;
            if files.spec.fill && built.written_bytes > 0 && !built.used {
                laid_out.push(index);
            }
            any = true;
        }
        if any && self.real() {
            let synced = self.durable()?.sync(&self.files, self.workload.final_sync);
            synced.map_err(|error| self.unsettled(error))?;
            if self.options.ownership == Ownership::ByName {
                laid_out.iter().for_each(|index| drop_cached(&self.files[*index]));
            }
        }
        if let Some(witness) = self.options.observer.witness().filter(|_| self.syncs()) {
            roots.iter().for_each(|root| witness.settled(root));
        }
        self.report.setup_ns += u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(any)
    }

    /// Removes the directories of a fileset, which are empty; gives how many.
    pub(super) fn remove_directories(&mut self, index: usize) -> Result<u64, LoadError> {
        let spec = self.files[index].spec.clone();
        let mut files = Files::new(&spec, build::sizes(&spec, false)?, 0);
        build::remove_directories(&mut files, self.site(index))
    }

    pub(super) fn site(&self, index: usize) -> BuildContext<'_> {
        let (written, ownership) = (&self.written.filesets[index], self.options.ownership);
        let common = written.has_common_directories();
        let unasked =
            matches!(ownership, Ownership::Own | Ownership::AsWritten) && written.existing == Existing::Rebuild;
        BuildContext {
            directory: self.directory,
            depot: &self.depot,
            options: self.options,
            index: index as u32,
            real: self.real(),
            metadata: self.uses[index].metadata,
            changes: self.uses[index].changes,
            renames: self.uses[index].renames,
            prepares: self.prepares,
            directories_made: self.options.observer.peers().is_some_and(|peers| peers.rank() > 0) && common,
            at_once: self.real() && unasked && !common,
        }
    }

    fn unsettled(&self, error: SyncError) -> LoadError {
        LoadError::Setup {
            fileset: self.files[error.fileset].spec.name.clone(),
            call: error.call,
            path: self.directory.join(error.path),
            errno: error.errno,
            cure: crate::error::cure(error.errno),
        }
    }

    /// Makes durable what the phases left, as the workload wants it at its end, and tells a witness.
    fn sync(&self, durable: &Durable, told: &str) -> Result<(), SyncError> {
        self.options.observer.progress(&Progress { phase: told.to_owned(), ..Progress::default() });
        let witness = self.options.observer.witness();
        let begun = witness.map(Witness::tick);
        durable.sync(&self.files, self.workload.final_sync)?;
        if let (Some(witness), Some(begun)) = (witness, begun) {
            witness.changed(begun, Change::SyncedAll);
        }
        Ok(())
    }

    /// Whether measured phases end with a sync. Then each begins with nothing left to write: what a phase wrote is written back
    /// in its own interval or, when it is not measured, in none.
    fn syncs(&self) -> bool {
        self.real() && self.workload.final_sync != FinalSync::None
    }

    fn is_measured(&self, number: Option<usize>) -> bool {
        number.and_then(|number| self.workload.phases.get(number)).is_some_and(|phase| phase.measured)
    }

    fn durable(&self) -> Result<Durable, LoadError> {
        if !self.real() {
            return Ok(Durable::default());
        }
        Durable::find(self.files.iter().enumerate().filter(|(index, _)| self.built[*index]))
    }

    pub(super) fn phases(&mut self) -> Result<(), LoadError> {
        match self.all_phases() {
            // What the phases before did is not lost.
            Err(LoadError::Parted) if !self.measured.phases_ns.is_empty() => {
                self.parted.store(true, Ordering::Relaxed);
                self.report.warnings.push("the load of all ranks ended early, between phases".into());
                Ok(())
            }
            // Nor is it lost if the load is interrupted.
            Err(LoadError::Interrupted(_)) => {
                self.interrupted = true;
                let until = self
                    .phase_name
                    .as_ref()
                    .map_or_else(|| "before its first phase".into(), |name| format!("in phase {name:?}"));
                let unsynced =
                    if self.syncs() && self.workload.phases.iter().flat_map(|phase| &phase.groups).any(changes) {
                        ", without what it would have taken to make its writes durable"
                    } else {
                        ""
                    };
                self.report
                    .warnings
                    .push(format!("the load was interrupted {until}: these are the figures until then{unsynced}"));
                Ok(())
            }
            ended => ended,
        }
    }

    fn all_phases(&mut self) -> Result<(), LoadError> {
        if self.workload.phases.is_empty() {
            return self.build(&|_| true).map(drop);
        }
        let phases = self.workload.phases.clone();
        let filesets = self.workload.filesets.clone();
        // Files that have to be there are looked at before anything is done, and before others are made, which stay in memory.
        let required = |index: usize| filesets[index].existing == Existing::Require;
        if (0..filesets.len()).any(required) {
            self.build(&required)?;
            self.warn_of_holes(&phases[0], false);
            self.say_found();
        }
        for (number, phase) in phases.iter().enumerate() {
            let actions = ByFileset::of_phases([phase]);
            let built = self.build(&|index| phase.measured || actions.on(index).next().is_some())?;
            self.warn_of_holes(phase, false);
            if number == 0 && built {
                self.say_found();
            }
            if phase.measured && number > 0 && !self.is_measured(number.checked_sub(1)) && self.syncs() {
                self.sync(&self.durable()?, "sync").map_err(|error| self.unsettled(error))?;
            }
            if phase.measured && self.pretended.is_none() {
                self.callout()?;
                if !self.hands_files() {
                    self.touched = Touched::new(&self.workload, &self.files);
                }
                self.pretended = Some(pretended(&self.workload, &self.files));
            }
            self.settle(phase);
            self.phase_name = Some(phase.name.clone());
            self.generations.push(self.depot.generation());
            let own = self.take_others(number, phase)?;
            let ended =
                if phase.measured { self.measured_phase(number, phase) } else { self.unmeasured_phase(number, phase) };
            let given = self.give_back(number, own);
            ended.and(given)?;
            if self.cancelled() {
                return Err(LoadError::Interrupted(None));
            }
            if self.halted.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        phases.iter().for_each(|phase| self.warn_of_holes(phase, true));
        Ok(())
    }

    /// Syncs and drops caches, of the whole machine, if a phase says so.
    fn settle(&mut self, phase: &Phase) {
        if !self.real() {
            return;
        }
        if phase.syncs {
            rustix::fs::sync();
        }
        let which = phase.drops_caches;
        if which > 0
            && let Err(error) = std::fs::write("/proc/sys/vm/drop_caches", which.to_string())
        {
            let what =
                format!("the kernel's caches were not dropped before phase {:?}: {error}; run as root", phase.name);
            self.report.warnings.push(what);
        }
    }

    /// Warns if files of anybody's that a phase reads have parts without data. Of those that are not looked up before they are measured, when all is `over`.
    fn warn_of_holes(&mut self, phase: &Phase, over: bool) {
        let actions = ByFileset::of_phases([phase]);
        let reads = |(_, action): &&(&ThreadGroup, &Action)| {
            let nature = action.operation.nature();
            let written = |transfer: &&Transfer| matches!(transfer.pattern, Pattern::Written { .. });
            // One that follows another reads where that wrote.
            nature.data == Data::Kept
                && !action.follows
                && nature.transfer.filter(|transfer| !written(transfer)).is_some()
        };
        let shared = self.options.ownership.is_shared_directory();
        let real = self.real();
        for (index, files) in self.files.iter().enumerate().filter(|_| real) {
            let now = (files.spec.existing == Existing::Assume) == over;
            let looks = shared && self.built[index] && files.device.is_none() && now;
            if self.whole[index] || !looks {
                continue;
            }
            let looked_at = &mut self.looked_at[index];
            let before = looked_at.len();
            for part in actions.on(index).filter(reads).map(|(group, _)| (group.region, group.threads)) {
                if !looked_at.contains(&part) {
                    looked_at.push(part);
                }
            }
            let parts = &looked_at[before..];
            if parts.is_empty() {
                continue;
            }
            let (missing, all) = without_data(files, |size| {
                let of_threads = |&(region, threads): &(Region, u32)| {
                    (0..threads.into()).map(move |thread| region.of(size, thread, threads.into()))
                };
                union(parts.iter().flat_map(of_threads).collect())
            });
            // Less than one in a thousand changes no figure.
            if missing > all / 1000 {
                self.report.warnings.push(format!(
                    "{:.1} % of what is read of {:?} has no data: holes, or blocks that were allocated and never written, which the kernel \
                     reads as zeros without asking the device. Remove the files to have them made anew, or write them whole first",
                    missing as f64 * 100.0 / all as f64,
                    files.spec.name
                ));
            }
        }
    }

    /// Says that all files there are so far were found, if so.
    fn say_found(&self) {
        let built = || self.files.iter().zip(&self.built).filter(|(_, built)| **built).map(|(files, _)| files);
        let all_found = built().all(|files| files.found || files.table.live() == 0);
        if self.real() && all_found && built().any(|files| files.found) {
            self.options.observer.found();
        }
    }

    fn measured_phase(&mut self, number: usize, phase: &Phase) -> Result<(), LoadError> {
        let durable = if self.syncs() { self.durable()? } else { Durable::default() };
        // Measured phases that follow one another are one interval for the observer.
        let (begins, ends) = (!self.is_measured(number.checked_sub(1)), !self.is_measured(number.checked_add(1)));
        let before = Cell::new(usage());
        let peers = self.options.observer.peers();
        let begin_all = || {
            if begins {
                // What other ranks still make ready is not to be counted.
                peers.map_or(Ok(()), Peers::meet)?;
                self.options.observer.measured_begin();
            } else {
                self.options.observer.phase_begins();
            }
            before.set(usage());
            Ok(())
        };
        let (sync_ns, synced, after) = (Cell::new(0), Cell::new(None), Cell::new((0, 0)));
        let halted = || self.halted.load(Ordering::Relaxed);
        let finish = |end: &PhaseEnd| {
            if self.syncs() && !self.cancelled() && !self.has_parted() {
                synced.set(Some(self.sync(&durable, "final sync")));
                // From the end of the last operation on, so that no time in between is lost.
                sync_ns.set(self.clock.between(end.at, self.clock.now()));
            }
            after.set(usage());
            if ends && !halted() {
                // What other ranks still do is counted. If the load of all ranks ends early, or this one with an error, they are not waited for.
                let _ = peers.map_or(Ok(()), Peers::meet);
            }
            if ends || halted() || self.cancelled() {
                self.options.observer.measured_end();
            } else {
                self.options.observer.phase_ended();
            }
        };
        let ended = self.run_phase(number, phase, &self.collector, self.measured.groups, &begin_all, &finish);
        let (sync_ns, synced, after) = (sync_ns.get(), synced.take(), after.get());
        let mut end = match ended {
            Ok(end) => end,
            Err(error) => {
                self.options.observer.measured_end();
                return Err(error);
            }
        };
        self.keep_found(phase, std::mem::take(&mut end.found));
        let halted = self.halted.load(Ordering::Relaxed);
        for warning in durable.warnings.into_iter().filter(|_| synced.is_some()) {
            // Each sync gives the same warnings.
            if !self.report.warnings.contains(&warning) {
                self.report.warnings.push(warning);
            }
        }
        if let Some(Err(error)) = synced {
            self.collector.error(("", "final sync"), error.call, &error.path.to_string_lossy(), error.errno, None);
        }
        if let Some(who) = &end.ran_out
            && phase.stop.time.is_some_and(|time| u128::from(end.running_ns) < time.as_nanos())
        {
            self.report.warnings.push(format!(
                "phase {:?} ended before its time: {who}. Have more of them, or let it run for less",
                phase.name
            ));
        }
        let report = &mut self.report;
        if self.measured.groups == 0 {
            report.first_done_ns = end.first_done_ns;
        }
        report.last_done_ns = report.running_ns + end.last_done_ns;
        let phase_begin = report.elapsed_ns;
        // A group is at work as long as it has operations to begin, also while it waits for the next one.
        let work_end = |end: &GroupEnd| end.done_ns.max(end.worked_ns);
        let all_worked_ns = end.groups.iter().map(work_end).max().unwrap_or(end.last_done_ns);
        let closing = Span { begin_ns: phase_begin + all_worked_ns, end_ns: phase_begin + end.running_ns + sync_ns };
        let none_changes = !phase.groups.iter().any(changes);
        self.measured.at_work.extend(phase.groups.iter().zip(&end.groups).map(|(group, end)| {
            let delay = u64::try_from(group.start_delay.as_nanos()).unwrap_or(u64::MAX).min(work_end(end));
            let work = Span { begin_ns: phase_begin + delay, end_ns: phase_begin + work_end(end) };
            // What others wrote is not written back in the time of a group that only reads.
            let none = Span { begin_ns: work.end_ns, end_ns: work.end_ns };
            [work, if none_changes || changes(group) { closing } else { none }]
        }));
        self.measured.due_ns.extend(end.groups.iter().map(|group| group.due_ns));
        report.running_ns += end.running_ns;
        report.sync_ns += sync_ns;
        report.elapsed_ns = report.running_ns + report.sync_ns;
        report.phases.push(PhaseReport {
            name: phase.name.clone(),
            groups: phase.groups.iter().map(|group| group.name.clone()).collect(),
            elapsed_ns: end.running_ns + sync_ns,
            sync_ns,
        });
        report.process_user_ns += after.0.saturating_sub(before.get().0);
        report.process_system_ns += after.1.saturating_sub(before.get().1);
        self.cpu_ns += end.cpu_ns;
        report.per_thread.extend(end.threads);
        self.measured.phases_ns.push(end.running_ns);
        self.measured.groups += phase.groups.len();
        let interval = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        self.measured.points += end.running_ns.div_ceil(interval).max(1);
        if halted {
            let name = &phase.name;
            self.report.warnings.push(if self.has_parted() {
                format!("the load of all ranks ended early, in phase {name:?}; the final sync was left out")
            } else {
                format!("the load ended early, in phase {name:?}, after an error: see the errors")
            });
        }
        Ok(())
    }

    /// A phase for the state that it leaves behind. Of what happened only errors are kept.
    fn unmeasured_phase(&mut self, number: usize, phase: &Phase) -> Result<(), LoadError> {
        let groups: Vec<&ThreadGroup> = phase.groups.iter().collect();
        let collector = collector_of(&groups);
        let end = self.run_phase(number, phase, &collector, 0, &|| Ok(()), &|_| {})?;
        self.keep_found(phase, end.found);
        let errors = collector.finish(&names(std::iter::once(phase), &[]), self.interval).errors;
        if self.has_parted() {
            return Err(LoadError::Parted);
        }
        if self.halted.load(Ordering::Relaxed) {
            self.report.warnings.push(format!(
                "the load ended in phase {:?}, before anything was measured, after an error: see the errors",
                phase.name
            ));
        } else if !errors.is_empty() {
            self.report.warnings.push(format!("there were errors in phase {:?}, which is not measured", phase.name));
        }
        self.report.errors.extend(
            errors
                .into_iter()
                .map(|error| ErrorReport { operation: format!("{}: {}", phase.name, error.operation), ..error }),
        );
        Ok(())
    }

    fn keep_found(&mut self, phase: &Phase, found: Vec<(String, Vec<Found>)>) {
        for (name, found) in found {
            if let Some(lacks) = found.iter().find_map(|found| found.lacks) {
                self.report.warnings.push(format!("the latency target of {name} in phase {:?}: {lacks}", phase.name));
            }
            self.found.insert(name, found);
        }
    }

    fn run_phase(
        &self,
        number: usize,
        phase: &Phase,
        collector: &Collector,
        first_group: usize,
        begin: &dyn Fn() -> Result<(), Parted>,
        finish: &dyn Fn(&PhaseEnd),
    ) -> Result<PhaseEnd, LoadError> {
        let peers = self.options.observer.peers();
        let together =
            || begin().and_then(|()| peers.map_or(Ok(()), |peers| peers.begin(number))).map_err(LoadError::from);
        let parted = || {
            let parted = peers.is_some_and(Peers::parted);
            if parted {
                self.parted.store(true, Ordering::Relaxed);
            }
            parted
        };
        let next = self.workload.phases.get(number + 1);
        let continued =
            |name: &str| next.is_some_and(|next| next.groups.iter().any(|group| group.continues && group.name == name));
        let finish = |end: &PhaseEnd| {
            if let Some(peers) = peers {
                peers.ended(PhasePassed {
                    number: u32::try_from(number).unwrap_or(u32::MAX),
                    begin_ns: end.begin_ns,
                    end_ns: end.begin_ns + end.running_ns,
                    operations: end.totals.operations,
                    read_bytes: end.totals.read_bytes,
                    written_bytes: end.totals.written_bytes,
                    stonewall: end.stonewall,
                });
            }
            finish(end);
        };
        let watch = Watch {
            name: &phase.name,
            observer: self.options.observer,
            interval: self.interval,
            expected: phase.time_limit(),
            begin: &together,
            parted: &parted,
            continued: &continued,
            // A sync writes back all that closing would.
            so_far: &|elapsed, threads| self.tell_so_far(elapsed, threads),
            closes: self.real() && !self.syncs() && self.files.iter().any(durable::writes_back_at_close),
            finish: &finish,
        };
        let mut end = self.with_load(number, phase, collector, first_group, |load| phase::run(load, &watch))?;
        *self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner) = std::mem::take(&mut end.checkpoints);
        Ok(end)
    }

    fn has_parted(&self) -> bool {
        self.parted.load(Ordering::Relaxed)
    }

    pub(super) fn with_load<T>(
        &self,
        number: usize,
        phase: &Phase,
        collector: &Collector,
        first_group: usize,
        work: impl FnOnce(&Load<'_>) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let witnessed = self.options.observer.witness().is_some();
        let place = (number, phase);
        let mut plan = PhasePlan::new(&self.workload, place, &self.files, first_group, witnessed, &self.clock);
        let mut stood = std::mem::take(&mut *self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner));
        let mut checkpoints = HashMap::new();
        for group in &mut plan.groups {
            if group.spec.continues
                && let Some((shared, threads)) = stood.remove(&group.spec.name)
            {
                group.resume(shared);
                checkpoints.insert(group.spec.name.clone(), threads);
            }
            group.found = self.found.get(&group.spec.name).cloned().unwrap_or_default();
            group.log = self.options.observer.call_log(&group.spec.name);
        }
        let kept = Kept::plan(&plan.groups, &self.files, self.real())?;
        let load = Load {
            clock: self.clock,
            files: &self.files,
            stamped: self.workload.data.stamped,
            follows_links: self.options.ownership.follows_links(),
            on_error: self.workload.on_error,
            depot: &self.depot,
            collector,
            audit: &self.touched,
            seed: self.options.seed,
            phase_number: number as u64,
            cancel: self.options.cancel,
            halted: &self.halted,
            verified_bytes: &self.verified_bytes,
            indirect: &self.indirect,
            phase: &plan,
            measured: phase.measured,
            start: AtomicU64::new(0),
            first_point: if phase.measured { self.measured.points } else { 0 },
            point_ticks: self.clock.ticks(self.interval),
            kept,
            witness: self.options.observer.witness().cloned(),
            perturbation: self.options.observer.perturbation(),
            checkpoints: Mutex::new(checkpoints),
            generations: &self.generations,
            so_far: SoFar::new(self.options.observer.wants_reports()),
        };
        let set_alone = |alone| self.files.iter().for_each(|files| files.table.set_alone(alone));
        set_alone(plan.alone);
        let done = work(&load);
        set_alone(false);
        done
    }

    fn callout(&self) -> Result<(), LoadError> {
        let Some(command) = self.workload.callout.as_ref().filter(|_| self.real()) else { return Ok(()) };
        let failed = |status: String| LoadError::Callout { command: command.clone(), status };
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(command).current_dir(self.directory).stdin(std::process::Stdio::null());
        let ended = match self.options.observer.witness() {
            Some(witness) => witness.unobserved(self.directory, || shell.status()),
            None => shell.status(),
        };
        let status = ended.map_err(|error| failed(error.to_string()))?;
        if status.success() { Ok(()) } else { Err(failed(status.to_string())) }
    }
}

/// Whether a group leaves anything to be made durable.
fn changes(group: &ThreadGroup) -> bool {
    group.actions.all().iter().any(|action| action.operation.nature().changes())
}

/// User and system time of the process, in nanoseconds.
fn usage() -> (u64, u64) {
    crate::measure::clock::process_cpu_ns()
}
