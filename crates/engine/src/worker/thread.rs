//! A thread of the load: what it owns, and the tools that operations work with.

use super::plan::{GroupPlan, PhasePlan, PlannedAction, transfer_of};
use crate::data::memory::Aligned;
use crate::data::{Depot, Destination, Source};
use crate::fileset::build::stamp_name;
use crate::fileset::{Files, Hold, PathBuffer};
use crate::io::{Fd, Io};
use crate::measure::{Call, Clock, Collector, Done, ThreadSum, ThreadTally};
use crate::ops::Aim;
use crate::pattern::{Drawer, Space, distribution_of, positions};
use crate::random::{Random, derive};
use fstone_model::workload::{Distribution, ErrorPolicy, FileChoice, IoSettings, OpenPolicy};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An operation's failure. Of whole words, like [`Call`]: results that the compiler has to take apart byte by byte
/// cost the loop a fifth of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) call: Call,
    number: i32,
}

impl Fault {
    pub(crate) fn new(call: Call, errno: Errno) -> Self {
        Self { call, number: errno.raw_os_error() }
    }

    pub(crate) fn errno(self) -> Errno {
        Errno::from_raw_os_error(self.number)
    }
}

/// Why an operation was not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    /// It failed.
    Fault(Fault),
    /// A walk came to its end.
    Exhausted,
    /// The load is being stopped.
    Stopped,
}

impl Halt {
    pub(crate) fn fault(call: Call, errno: Errno) -> Self {
        Self::Fault(Fault::new(call, errno))
    }
}

pub(crate) type Outcome<T> = std::result::Result<T, Halt>;

/// What all threads of a load share.
pub(crate) struct Load<'a> {
    pub(crate) clock: Clock,
    pub(crate) files: &'a [Files],
    pub(crate) io: IoSettings,
    pub(crate) stamped: bool,
    pub(crate) on_error: ErrorPolicy,
    pub(crate) depot: &'a Depot,
    pub(crate) collector: &'a Collector,
    pub(crate) audit: &'a crate::audit::Touched,
    pub(crate) seed: u64,
    pub(crate) phase_number: u64,
    pub(crate) cancel: &'a AtomicBool,
    /// Set when an error is to end the load.
    pub(crate) halted: &'a AtomicBool,
    pub(crate) verified_bytes: &'a AtomicU64,
    /// Writes that O_DIRECT could not carry.
    pub(crate) indirect: &'a AtomicU64,
    pub(crate) phase: &'a PhasePlan,
    /// Whether the phase's operations are in the figures.
    pub(crate) measured: bool,
    /// Ticks of the phase's start; set before the gate opens.
    pub(crate) start: AtomicU64,
    /// Where the phase's points of the series begin.
    pub(crate) first_point: u64,
    pub(crate) point_ticks: u64,
    /// Whether every thread has descriptors of its own for files that stay open.
    pub(crate) own_descriptors: bool,
}

impl Load<'_> {
    /// Ends the load after an error.
    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
        self.phase.limits.ended.0.store(true, Ordering::Relaxed);
    }
}

/// A file an operation works on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Picked {
    pub(crate) fileset: usize,
    pub(crate) file: u32,
    pub(crate) hold: Hold,
    /// Which position of the file, by the numbering of [`positions`], where the choice says so.
    pub(crate) position: Option<u64>,
}

/// Which stream of the run's seed a thread's choices come from.
const THREAD_STREAM: u64 = 0x7468_7264;
const PERMUTATION_STREAM: u64 = 0x7065_726d;
/// Redraws of a busy file before a thread lets others run.
const SPINS: u32 = 64;

/// What a thread keeps for one action.
#[derive(Debug)]
pub(crate) struct ActionState<'a> {
    pub(crate) aim: Option<Aim<'a>>,
    pub(crate) drawer: Drawer,
    /// The size that a file had last, and how many positions that gives: most files have one size, and a division
    /// costs as much as the rest of the choice.
    pub(crate) positions: (u64, u64),
    /// Its own position in a walk that is not shared.
    pub(crate) cursor: u64,
    /// Its share of the files as one space, for [`FileChoice::Partitioned`].
    pub(crate) space: Option<Space>,
}

/// A thread of the load.
pub(crate) struct Worker<'a, E> {
    pub(crate) io: E,
    pub(crate) load: &'a Load<'a>,
    pub(crate) group: &'a GroupPlan,
    pub(crate) random: Random,
    /// The path last worked on.
    pub(crate) path: PathBuffer,
    /// A second one, for operations that need it.
    pub(crate) other_path: PathBuffer,
    pub(crate) source: Source<'a>,
    pub(crate) buffer: Aligned,
    pub(crate) listing: Vec<std::mem::MaybeUninit<u8>>,
    pub(crate) tally: ThreadTally,
    /// What it has handed over of that.
    pub(crate) sum: ThreadSum,
    /// What the operation has moved so far.
    pub(crate) done: Done,
    /// Whether operations, and bytes, are counted towards a stop of the group or the phase.
    pub(crate) counted: (bool, bool),
    pub(crate) states: Vec<ActionState<'a>>,
    /// Whether single calls are timed.
    time_calls: bool,
    /// When the next timed call of the operation begins: the end of the one before or the operation's start; 0 when that
    /// has to be asked.
    pub(crate) mark: u64,
    /// Fileset and file of the previous action.
    pub(crate) previous: Option<(usize, u32)>,
    /// Own descriptors of files that stay open, by fileset and file.
    pub(crate) descriptors: Vec<Vec<i32>>,
    pub(crate) extra_flags: OFlags,
    /// Where in the file data was found that is not what was written.
    pub(crate) damaged_at: u64,
}

impl<'a, E: Io> Worker<'a, E> {
    pub(crate) fn new(io: E, load: &'a Load<'a>, group: &'a GroupPlan, thread: u64, block_bytes: usize) -> Self {
        let (ours, all) = (group.limits.counts(), load.phase.limits.counts());
        let place = [THREAD_STREAM, load.phase_number, group.number as u64, thread];
        let states = group
            .actions
            .iter()
            .enumerate()
            .map(|(index, action)| {
                let distribution =
                    transfer_of(&action.operation).and_then(distribution_of).unwrap_or(Distribution::Uniform);
                let seed =
                    derive(load.seed, &[PERMUTATION_STREAM, load.phase_number, group.number as u64, index as u64]);
                ActionState {
                    aim: Aim::new(load, action, group.spec.open),
                    drawer: Drawer::new(distribution, seed),
                    positions: (0, 0),
                    cursor: 0,
                    space: share(load, group, action, thread),
                }
            })
            .collect();
        let mut extra_flags = OFlags::empty();
        if load.io.direct && E::CAPABILITIES.real {
            extra_flags |= OFlags::DIRECT;
        }
        match load.io.sync {
            fstone_model::workload::OpenSync::None => {}
            fstone_model::workload::OpenSync::Sync => extra_flags |= OFlags::SYNC,
            fstone_model::workload::OpenSync::Dsync => extra_flags |= OFlags::DSYNC,
        }
        Self {
            io,
            load,
            group,
            random: Random::new(derive(load.seed, &place)),
            path: PathBuffer::default(),
            other_path: PathBuffer::default(),
            source: load.depot.source(),
            buffer: Aligned::new(block_bytes),
            listing: Vec::new(),
            tally: ThreadTally::new(group.actions.len()),
            sum: ThreadSum::default(),
            done: Done::default(),
            counted: (ours.0 || all.0, ours.1 || all.1),
            states,
            time_calls: group.spec.open == OpenPolicy::PerOperation,
            mark: 0,
            previous: None,
            descriptors: Vec::new(),
            extra_flags,
            damaged_at: 0,
        }
    }

    pub(crate) fn files(&self, fileset: usize) -> &'a Files {
        &self.load.files[fileset]
    }

    /// Whether the thread should end now, whatever it is doing. Reads the clock.
    #[cold]
    pub(crate) fn should_stop(&self) -> bool {
        self.told_to_stop() || self.load.cancel.load(Ordering::Relaxed) || self.past(self.load.clock.now())
    }

    /// The same without the clock. Cancellation and errors reach it by way of the phase's limits.
    #[inline(always)]
    pub(crate) fn told_to_stop(&self) -> bool {
        self.group.limits.ended() || self.load.phase.limits.ended()
    }

    /// Whether the time of the phase or the group is over.
    #[inline]
    pub(crate) fn past(&self, now: u64) -> bool {
        now >= self.deadline()
    }

    pub(crate) fn deadline(&self) -> u64 {
        let ticks = match (self.load.phase.limits.time_ticks, self.group.limits.time_ticks) {
            (Some(phase), Some(group)) => phase.min(group),
            (Some(ticks), None) | (None, Some(ticks)) => ticks,
            (None, None) => return u64::MAX,
        };
        self.load.start.load(Ordering::Relaxed).saturating_add(ticks)
    }

    /// Makes a system call, noting how long it took where calls are timed. The time between two calls of one
    /// operation, some tens of nanoseconds, counts as the second's: that halves the readings of the clock.
    #[inline(always)]
    pub(crate) fn call<T>(
        &mut self,
        call: Call,
        make: impl FnOnce(&mut Self) -> std::result::Result<T, Errno>,
    ) -> Outcome<T> {
        if !self.time_calls {
            return make(self).map_err(|errno| Halt::fault(call, errno));
        }
        let start = if self.mark == 0 { self.load.clock.now() } else { self.mark };
        let result = make(self);
        let end = self.load.clock.now();
        self.mark = end;
        match result {
            Ok(value) => {
                self.tally.calls[call as usize].record(self.load.clock.between(start, end));
                Ok(value)
            }
            Err(errno) => Err(Halt::fault(call, errno)),
        }
    }

    /// Builds the path of a picked file.
    #[inline]
    pub(crate) fn name(&mut self, picked: &Picked) {
        let files = self.files(picked.fileset);
        files.layout.file(&mut self.path, picked.file, files.table.renamed(picked.file));
    }

    /// Lets go of a file.
    #[inline(always)]
    pub(crate) fn release(&mut self, picked: &Picked) {
        self.previous = Some((picked.fileset, picked.file));
        self.files(picked.fileset).table.release(picked.file, picked.hold);
    }

    /// Chooses a file for the action, does `work` with it, and lets go of it.
    #[inline(always)]
    pub(crate) fn with_file<T>(
        &mut self,
        index: usize,
        work: impl FnOnce(&mut Self, &Picked) -> Outcome<T>,
    ) -> Outcome<T> {
        let picked = self.choose(index)?;
        if self.load.measured {
            self.files(picked.fileset).table.touch(picked.file);
        }
        let outcome = work(self, &picked);
        self.release(&picked);
        outcome
    }

    /// The same for operations that need the file open; those that keep files open do not open it again.
    #[inline]
    pub(crate) fn with_open_file<T>(
        &mut self,
        index: usize,
        flags: OFlags,
        work: impl FnOnce(&mut Self, &Picked, Fd) -> Outcome<T>,
    ) -> Outcome<T> {
        let (picked, fd) = self.open_chosen(index, flags)?;
        let outcome = work(self, &picked, fd);
        self.close_chosen(&picked, fd, outcome)
    }

    /// The first half of [`Worker::with_open_file`].
    #[inline(always)]
    pub(crate) fn open_chosen(&mut self, index: usize, flags: OFlags) -> Outcome<(Picked, Fd)> {
        let picked = self.choose(index)?;
        if self.load.measured {
            self.files(picked.fileset).table.touch(picked.file);
        }
        let keep = self.group.spec.open == OpenPolicy::KeepOpen;
        match if keep { self.kept(&picked) } else { self.open(&picked, flags) } {
            Ok(fd) => Ok((picked, fd)),
            Err(halt) => {
                self.release(&picked);
                Err(halt)
            }
        }
    }

    /// The second half.
    #[inline(always)]
    pub(crate) fn close_chosen<T>(&mut self, picked: &Picked, fd: Fd, outcome: Outcome<T>) -> Outcome<T> {
        let keep = self.group.spec.open == OpenPolicy::KeepOpen;
        let outcome = if keep { outcome } else { self.close_after(fd, outcome) };
        self.release(picked);
        outcome
    }

    /// Opens a picked file with the workload's flags.
    fn open(&mut self, picked: &Picked, flags: OFlags) -> Outcome<Fd> {
        self.name(picked);
        let directory = self.files(picked.fileset).directory();
        let flags = self.data_flags(flags);
        self.call(Call::Open, |worker| worker.io.open(directory, worker.path.as_c(), flags))
    }

    /// Closes a file; an error of closing counts when there was none before.
    #[inline]
    pub(crate) fn close_after<T>(&mut self, fd: Fd, outcome: Outcome<T>) -> Outcome<T> {
        let closed = self.call(Call::Close, |worker| worker.io.close(fd));
        let value = outcome?;
        closed?;
        Ok(value)
    }

    /// Flags for opening data, with those of the workload.
    pub(crate) fn data_flags(&self, flags: OFlags) -> OFlags {
        let access = flags & OFlags::RWMODE;
        if E::CAPABILITIES.reads_to_write && access == OFlags::WRONLY {
            return (flags - OFlags::RWMODE) | OFlags::RDWR | self.extra_flags;
        }
        flags | self.extra_flags
    }

    /// Where a stamp says that data belongs.
    #[inline]
    pub(crate) fn destination(&self, picked: &Picked, offset: u64) -> Destination {
        Destination { file: stamp_name(picked.fileset as u32, picked.file), offset }
    }

    /// The descriptor of a file that stays open, opening it if it is new.
    #[inline(always)]
    pub(crate) fn kept(&mut self, picked: &Picked) -> Outcome<Fd> {
        if self.load.own_descriptors {
            let own = self.descriptors.get(picked.fileset).and_then(|files| files.get(picked.file as usize));
            if let Some(fd) = own.filter(|fd| **fd >= 0) {
                return Ok(Fd(*fd));
            }
            return self.keep_open(picked);
        }
        let shared = self.group.shared_descriptors[picked.fileset].as_ref();
        match shared.and_then(|shared| shared.slots.get(picked.file as usize)).map(|slot| slot.load(Ordering::Acquire))
        {
            Some(fd) if fd >= 0 => Ok(Fd(fd)),
            _ => self.keep_open(picked),
        }
    }

    #[cold]
    fn keep_open(&mut self, picked: &Picked) -> Outcome<Fd> {
        self.name(picked);
        let directory = self.files(picked.fileset).directory();
        let flags = self.data_flags(OFlags::RDWR);
        let fd = self.call(Call::Open, |worker| worker.io.open(directory, worker.path.as_c(), flags))?;
        if self.load.own_descriptors {
            if self.descriptors.len() <= picked.fileset {
                self.descriptors.resize_with(picked.fileset + 1, Vec::new);
            }
            let files = &mut self.descriptors[picked.fileset];
            if files.len() <= picked.file as usize {
                files.resize(picked.file as usize + 1, -1);
            }
            files[picked.file as usize] = fd.0;
            return Ok(fd);
        }
        let slot = self.group.shared_descriptors[picked.fileset]
            .as_ref()
            .and_then(|shared| shared.slots.get(picked.file as usize));
        match slot.map(|slot| slot.compare_exchange(-1, fd.0, Ordering::AcqRel, Ordering::Acquire)) {
            Some(Err(theirs)) => {
                self.call(Call::Close, |worker| worker.io.close(fd))?;
                Ok(Fd(theirs))
            }
            // Beyond the table there is nobody to close it: files that come into being during the load are few, or
            // the group would not keep files open.
            Some(Ok(_)) | None => Ok(fd),
        }
    }

    /// Closes the kept descriptor of a file that is about to go, if there is one.
    pub(crate) fn forget(&mut self, picked: &Picked) -> Outcome<()> {
        let slot = self.group.shared_descriptors[picked.fileset]
            .as_ref()
            .and_then(|shared| shared.slots.get(picked.file as usize));
        let fd = slot.map_or(-1, |slot| slot.swap(-1, Ordering::AcqRel));
        if fd >= 0 {
            self.call(Call::Close, |worker| worker.io.close(Fd(fd)))?;
        }
        Ok(())
    }

    /// Draws until a file is free; lets others run when that takes long.
    pub(super) fn until_free(
        &mut self,
        mut attempt: impl FnMut(&mut Self) -> Outcome<Option<Picked>>,
    ) -> Outcome<Picked> {
        let mut tries = 0;
        loop {
            if let Some(picked) = attempt(self)? {
                // What was waited is not the next call's.
                self.mark = 0;
                return Ok(picked);
            }
            tries += 1;
            if tries % SPINS == 0 {
                if self.should_stop() {
                    return Err(Halt::Stopped);
                }
                std::thread::yield_now();
            }
        }
    }

    /// Closes what the thread keeps open.
    pub(crate) fn close_kept(&mut self) {
        for fd in std::mem::take(&mut self.descriptors).into_iter().flatten().filter(|fd| *fd >= 0) {
            // The load is over and its figures taken; nothing was written since the last fsync that was asked for.
            let _ = self.io.close(Fd(fd));
        }
    }
}

/// A thread's share of a fileset, where files are dealt out.
fn share(load: &Load<'_>, group: &GroupPlan, action: &PlannedAction, thread: u64) -> Option<Space> {
    let (FileChoice::Partitioned, Some(fileset)) = (action.choice, action.fileset) else { return None };
    let roster = load.phase.rosters[fileset].as_ref()?;
    let (threads, count) = (u64::from(group.spec.threads).max(1), roster.len());
    // With more threads than files, some share one.
    let first = if count == 0 { 0 } else { thread % count };
    let step = if thread < count { threads } else { count.max(1) };
    let table = &load.files[fileset].table;
    Some(Space::new(roster, first, step.max(1), |file| match transfer_of(&action.operation) {
        Some(transfer) => positions(transfer, table.size(file)),
        None => 1,
    }))
}
