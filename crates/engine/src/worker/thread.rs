//! A thread of the load: what it owns, and the tools that operations work with.

use super::attempt::{Attempt, Incomplete};
use super::checkpoint::{ActionCheckpoint, ThreadCheckpoint};
use super::descriptors::OwnDescriptors;
use super::held::Handles;
use super::load::Load;
use super::picked::Picked;
use super::state::{ActionState, layout_seed};
use super::tour::Tour;
use crate::data::memory::Aligned;
use crate::data::{Destination, Source};
use crate::fileset::build::stamp_name;
use crate::fileset::{Files, PathBuffer};
use crate::io::{Fd, Io};
use crate::measure::{Call, Done, Rates, ThreadSum, ThreadTally};
use crate::plan::{GroupPlan, WearOut};
use crate::random::{Random, derive};
use fstone_model::load::ThreadUsage;
use fstone_model::workload::{IoEngineKind, OpenPolicy, OpenSync, Region};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::atomic::Ordering;

const THREAD_STREAM: u64 = 0x7468_7264;
const YIELD_STREAM: u64 = 0x7969_656c;
const TOUR_STREAM: u64 = 0x746f_7572;

/// A thread of the load.
pub(crate) struct Worker<'a, E> {
    pub(crate) io: E,
    pub(crate) load: &'a Load<'a>,
    pub(crate) group: &'a GroupPlan,
    /// Its number within the group.
    pub(crate) number: u64,
    pub(crate) random: Random,
    /// When a perturbed guest's thread gives up the processor.
    pub(crate) yields: Option<Random>,
    /// The path last worked on.
    pub(crate) path: PathBuffer,
    pub(crate) other_path: PathBuffer,
    pub(crate) source: Source<'a>,
    pub(crate) buffer: Aligned,
    pub(crate) listing: Vec<std::mem::MaybeUninit<u8>>,
    pub(crate) tally: ThreadTally,
    pub(crate) sum: ThreadSum,
    pub(crate) rates: Rates,
    /// What it had used when it began.
    pub(crate) used_before: ThreadUsage,
    pub(crate) done: Done,
    /// Bytes of the blocks that the operation has begun, whether they are moved or fail.
    pub(crate) begun_bytes: u64,
    /// Whether operations, and bytes, are counted: towards a stop of the group or the phase, or for a rate in bytes.
    pub(crate) counted: (bool, bool),
    pub(crate) states: Vec<ActionState<'a>>,
    pub(super) tour: Option<Box<Tour>>,
    /// Whether the operation whose turn it is writes, where the rates of a group say so.
    pub(crate) direction: Option<bool>,
    pub(crate) first_place: usize,
    time_calls: bool,
    /// When the next timed call of the operation begins: the end of the one before or the operation's start; 0 when that
    /// has to be asked.
    pub(crate) mark: u64,
    /// How long the operation did what is in no latency, in ticks.
    pub(crate) aside: u64,
    /// What it has moved since the page cache was dropped, where that is done at each pass.
    pub(super) moved: u64,
    /// Fileset and file of the action that was begun last.
    pub(crate) previous: Option<(usize, u32)>,
    pub(crate) own: OwnDescriptors,
    pub(crate) handles: Handles,
    pub(crate) extra_flags: OFlags,
    /// Where in the file data was found that is not what was written.
    pub(crate) damaged_at: u64,
}

impl<'a, E: Io> Worker<'a, E> {
    pub(crate) fn new(io: E, load: &'a Load<'a>, group: &'a GroupPlan, thread: u64, block_bytes: usize) -> Self {
        let (ours, all) = (group.limits.counts(), load.phase.limits.counts());
        let place = [THREAD_STREAM, load.phase_number, group.number as u64, thread];
        let mut states: Vec<ActionState<'a>> =
            (0..group.actions.len()).map(|index| ActionState::new(load, group, index, thread)).collect();
        // One that continues has its tour already, and all else is as before.
        let stood = load.checkpoint_of(&group.spec, thread).unwrap_or_default();
        for (state, stood) in states.iter_mut().zip(stood.actions) {
            (state.cursor, state.burst) = (stood.cursor, stood.burst);
        }
        let tour = stood.tour.or_else(|| {
            let seed = derive(load.seed, &[TOUR_STREAM, load.phase_number, group.number as u64, thread]);
            let layout = |index: usize| layout_seed(load, group, group.actions[index].fileset.unwrap_or(0));
            group.tour.as_ref().map(|plan| Box::new(Tour::new(load.files, plan, seed, layout)))
        });
        let mut extra_flags = load.links();
        if group.io.direct && E::REAL {
            extra_flags |= OFlags::DIRECT;
        }
        match group.io.sync {
            OpenSync::None => {}
            OpenSync::Sync => extra_flags |= OFlags::SYNC,
            // What rustix calls DSYNC is O_SYNC.
            OpenSync::Dsync => extra_flags |= OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned()),
        }
        Self {
            io,
            load,
            group,
            number: thread,
            random: Random::new(derive(load.seed, &place)),
            yields: load.perturbation.map(|number| {
                Random::new(derive(number, &[YIELD_STREAM, load.phase_number, group.number as u64, thread]))
            }),
            path: PathBuffer::default(),
            other_path: PathBuffer::default(),
            source: load.depot.source(),
            buffer: Aligned::new(block_bytes),
            listing: Vec::new(),
            tally: ThreadTally::new(group.actions.len()),
            sum: ThreadSum::default(),
            rates: Rates::default(),
            used_before: ThreadUsage::default(),
            done: Done::default(),
            begun_bytes: 0,
            counted: (ours.0 || all.0, ours.1 || all.1 || group.spec.is_paced_by_bytes()),
            states,
            tour,
            direction: None,
            first_place: stood.sequence,
            time_calls: group.spec.open == OpenPolicy::PerOperation,
            mark: 0,
            aside: 0,
            moved: stood.moved,
            previous: None,
            own: OwnDescriptors::default(),
            handles: Handles::new(group.handles()),
            extra_flags,
            damaged_at: 0,
        }
    }

    pub(crate) fn checkpoint(&mut self, sequence: usize) -> ThreadCheckpoint {
        let actions =
            self.states.iter().map(|state| ActionCheckpoint { cursor: state.cursor, burst: state.burst }).collect();
        ThreadCheckpoint { actions, tour: self.tour.take(), moved: self.moved, sequence }
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

    #[inline]
    pub(crate) fn past(&self, now: u64) -> bool {
        now >= self.deadline()
    }

    pub(crate) fn group_start(&self) -> u64 {
        self.load.start.load(Ordering::Relaxed).saturating_add(self.load.clock.ticks(self.group.spec.start_delay))
    }

    pub(crate) fn deadline(&self) -> u64 {
        if self.load.phase.wear.as_ref().is_some_and(WearOut::is_over) {
            return u64::MAX;
        }
        let after = |start: u64, ticks: Option<u64>| ticks.map_or(u64::MAX, |ticks| start.saturating_add(ticks));
        let phase = after(self.load.start.load(Ordering::Relaxed), self.load.phase.limits.time_ticks);
        phase.min(after(self.group_start(), self.group.limits.time_ticks))
    }

    /// Makes a system call, noting how long it took where calls are timed. The time between two calls of one
    /// operation, some tens of nanoseconds, counts as the second's: that halves the readings of the clock.
    #[inline(always)]
    pub(crate) fn call<T>(
        &mut self,
        call: Call,
        make: impl FnOnce(&mut Self) -> std::result::Result<T, Errno>,
    ) -> Attempt<T> {
        if !self.time_calls {
            return make(self).map_err(|errno| Incomplete::fault(call, errno));
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
            Err(errno) => Err(Incomplete::fault(call, errno)),
        }
    }

    /// The same for a call that is always timed: one that takes long, so that the clock's cost is nothing beside it.
    pub(crate) fn timed_call<T>(
        &mut self,
        call: Call,
        make: impl FnOnce(&mut Self) -> std::result::Result<T, Errno>,
    ) -> Attempt<T> {
        if self.time_calls {
            return self.call(call, make);
        }
        let start = self.load.clock.now();
        let value = make(self).map_err(|errno| Incomplete::fault(call, errno))?;
        self.tally.calls[call as usize].record(self.load.clock.between(start, self.load.clock.now()));
        Ok(value)
    }

    /// The fsync that an operation ends with; fdatasync where the group's policy says so.
    pub(crate) fn make_durable(&mut self, fd: Fd) -> Attempt<()> {
        if self.group.spec.fsync.data_only {
            return self.timed_call(Call::Fdatasync, |worker| worker.io.fdatasync(fd));
        }
        self.timed_call(Call::Fsync, |worker| worker.io.fsync(fd))
    }

    /// Begin and length of the part of a file that the thread moves data in.
    #[inline(always)]
    pub(crate) fn span(&self, picked: &Picked) -> Attempt<(u64, u64)> {
        let size = self.files(picked.fileset).table.size(picked.file);
        if self.group.spec.region == Region::Whole { Ok((0, size)) } else { self.region(size) }
    }

    #[inline(never)]
    fn region(&self, size: u64) -> Attempt<(u64, u64)> {
        let region = self.group.spec.region.of(size, self.number, u64::from(self.group.spec.threads));
        // An operation that finds nothing there would be repeated without end.
        if region.1 == 0 { Err(Incomplete::fault(Call::Choose, Errno::NODATA)) } else { Ok(region) }
    }

    /// Builds the path of a picked file.
    #[inline]
    pub(crate) fn name(&mut self, picked: &Picked) {
        let files = self.files(picked.fileset);
        files.layout.file(&mut self.path, picked.file, files.table.renamed(picked.file));
    }

    #[inline(always)]
    pub(crate) fn release(&mut self, picked: &Picked) {
        self.previous = Some((picked.fileset, picked.file));
        self.files(picked.fileset).table.release(picked.file, picked.hold);
    }

    pub(crate) fn data_flags(&self, flags: OFlags) -> OFlags {
        let access = flags & OFlags::RWMODE;
        // A shared mapping is made of files that are open for reading, even to be written.
        if self.group.io.engine == IoEngineKind::Mmap && access == OFlags::WRONLY {
            return (flags - OFlags::RWMODE) | OFlags::RDWR | self.extra_flags;
        }
        flags | self.extra_flags
    }

    #[inline]
    pub(crate) fn destination(&self, picked: &Picked, offset: u64) -> Destination {
        Destination { file: stamp_name(picked.fileset as u32, picked.file), offset }
    }
}
