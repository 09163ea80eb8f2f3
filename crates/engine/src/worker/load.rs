//! What all threads of a phase share.

use super::checkpoint::ThreadCheckpoint;
use super::descriptors::Kept;
use crate::audit::Touched;
use crate::data::Depot;
use crate::fileset::Files;
use crate::measure::{Clock, Collector};
use crate::plan::PhasePlan;
use crate::promises::Witness;
use crate::random::derive;
use fstone_model::load::ThreadReport;
use fstone_model::workload::{ErrorPolicy, ThreadGroup};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const SHUFFLE_STREAM: u64 = 0x7368_7566_666c;

/// What all threads of a phase share.
pub(crate) struct Load<'a> {
    pub(crate) clock: Clock,
    pub(crate) files: &'a [Files],
    pub(crate) stamped: bool,
    /// Whether names may be symbolic links, as FFSB and sysbench have it.
    pub(crate) follows_links: bool,
    pub(crate) on_error: ErrorPolicy,
    pub(crate) depot: &'a Depot,
    pub(crate) collector: &'a Collector,
    pub(crate) audit: &'a Touched,
    pub(crate) seed: u64,
    pub(crate) phase_number: u64,
    pub(crate) cancel: &'a AtomicBool,
    /// Set when an error is to end the load.
    pub(crate) halted: &'a AtomicBool,
    pub(crate) verified_bytes: &'a AtomicU64,
    /// Writes that O_DIRECT could not carry.
    pub(crate) indirect: &'a AtomicU64,
    pub(crate) phase: &'a PhasePlan,
    pub(crate) measured: bool,
    /// Ticks of the phase's start; set before the gate opens.
    pub(crate) start: AtomicU64,
    pub(crate) first_point: u64,
    pub(crate) point_ticks: u64,
    pub(crate) kept: Kept,
    pub(crate) witness: Option<Witness>,
    pub(crate) perturbation: Option<u64>,
    /// Where the threads of groups stood when the phase before ended, by the names of the groups.
    pub(crate) checkpoints: Mutex<HashMap<String, Vec<Option<ThreadCheckpoint>>>>,
    /// The generation of the first write of each phase until this one, where data is stamped.
    pub(crate) generations: &'a [u64],
    pub(crate) so_far: SoFar,
}

/// What threads that are at work have done, by their groups' numbers and their own.
pub(crate) struct SoFar {
    /// Whether somebody wants it, and not only that they have begun.
    pub(crate) wanted: AtomicBool,
    threads: Mutex<BTreeMap<(usize, u64), ThreadReport>>,
}

impl SoFar {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { wanted: AtomicBool::new(wanted), threads: Mutex::default() }
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, BTreeMap<(usize, u64), ThreadReport>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    pub(crate) fn note(&self, thread: (usize, u64), report: ThreadReport) {
        self.threads().insert(thread, report);
    }

    pub(crate) fn ended(&self, thread: (usize, u64)) {
        self.threads().remove(&thread);
    }

    pub(crate) fn all(&self) -> Vec<ThreadReport> {
        self.threads().values().cloned().collect()
    }
}

impl Load<'_> {
    pub(crate) const fn links(&self) -> OFlags {
        if self.follows_links { OFlags::empty() } else { OFlags::NOFOLLOW }
    }

    /// The seed of the order in which files come that are taken in a random order, the same for all threads of a phase.
    pub(crate) fn shuffle_seed(&self) -> u64 {
        derive(self.seed, &[SHUFFLE_STREAM, self.phase_number])
    }

    /// Where the thread of this number stood in the phase before, if its group continues. Only to be asked once.
    pub(super) fn checkpoint_of(&self, group: &ThreadGroup, thread: u64) -> Option<ThreadCheckpoint> {
        if !group.continues {
            return None;
        }
        let mut checkpoints = self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
        checkpoints.get_mut(&group.name)?.get_mut(thread as usize)?.take()
    }

    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
        self.phase.limits.ended.store(true, Ordering::Relaxed);
    }
}
