//! When a phase or a group ends, and the counts towards it.

use crate::measure::Clock;
use crossbeam_utils::CachePadded;
use fstone_model::workload::Stop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Operations beyond which a quota is handed out in batches, per thread.
const LARGE_QUOTA: u64 = 10_000;
const BATCH: u64 = 16;

#[derive(Debug)]
pub(crate) struct Limits {
    operations: Option<AtomicU64>,
    batch: u64,
    bytes: Option<u64>,
    pub(crate) time_ticks: Option<u64>,
    pub(crate) utilization: Option<f64>,
    /// Whether the first thread that is done ends all.
    pub(crate) first_done: bool,
    /// Whether a full filesystem ends it.
    pub(crate) full: bool,
    claimed: CachePadded<AtomicU64>,
    moved: CachePadded<AtomicU64>,
    pub(crate) ended: CachePadded<AtomicBool>,
}

impl Limits {
    /// `one_by_one`: operations are counted whether they are limited or not, and handed out singly.
    pub(super) fn new(stop: &Stop, threads: u64, clock: &Clock, one_by_one: bool) -> Self {
        let stop = &Stop { operations: stop.operations.or(one_by_one.then_some(u64::MAX / 2)), ..*stop };
        let large = !one_by_one && stop.operations.is_some_and(|operations| operations / threads.max(1) >= LARGE_QUOTA);
        Self {
            operations: stop.operations.map(AtomicU64::new),
            batch: if large { BATCH } else { 1 },
            bytes: stop.bytes,
            time_ticks: stop.time.map(|time| clock.ticks(time)),
            utilization: stop.utilization,
            first_done: stop.first_done,
            full: stop.full,
            claimed: CachePadded::default(),
            moved: CachePadded::default(),
            ended: CachePadded::default(),
        }
    }

    /// Counts what was done before.
    pub(super) fn go_on(&self, operations: u64, bytes: u64) {
        self.count(operations);
        self.moved(bytes);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Whether operations or bytes are counted towards a stop.
    pub(crate) fn counts(&self) -> (bool, bool) {
        (self.operations.is_some(), self.bytes.is_some())
    }

    /// Claims operations; how many the caller may perform, 0 for no more, `u64::MAX` when there is no quota.
    #[inline]
    pub(crate) fn claim(&self) -> u64 {
        let Some(quota) = &self.operations else { return u64::MAX };
        let quota = quota.load(Ordering::Relaxed);
        let before = self.claimed.fetch_add(self.batch, Ordering::Relaxed);
        quota.saturating_sub(before).min(self.batch)
    }

    pub(crate) fn give_back(&self, operations: u64) {
        if self.operations.is_some() {
            self.claimed.fetch_sub(operations, Ordering::Relaxed);
        }
    }

    /// Operations claimed until now, of those that are counted one by one. A claim that was refused because the quota was used up is
    /// none.
    pub(crate) fn claimed(&self) -> u64 {
        let claimed = self.claimed.load(Ordering::Relaxed);
        self.operations.as_ref().map_or(claimed, |quota| claimed.min(quota.load(Ordering::Relaxed)))
    }

    pub(crate) fn set_quota(&self, operations: u64) {
        if let Some(quota) = &self.operations {
            quota.store(operations, Ordering::Relaxed);
        }
    }

    /// Claims a single one for what the loop does not choose (fsyncs of a policy); whether there was any left.
    pub(crate) fn claim_one(&self) -> bool {
        let Some(quota) = &self.operations else { return true };
        let left = self.claimed.fetch_add(1, Ordering::Relaxed) < quota.load(Ordering::Relaxed);
        if !left {
            self.give_back(1);
        }
        left
    }

    fn count(&self, operations: u64) {
        if self.operations.is_some() {
            self.claimed.fetch_add(operations, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn moved(&self, bytes: u64) {
        if let Some(limit) = self.bytes
            && self.moved.fetch_add(bytes, Ordering::Relaxed) + bytes >= limit
        {
            self.ended.store(true, Ordering::Relaxed);
        }
    }
}
