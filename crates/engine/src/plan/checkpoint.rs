//! Where a group stood when its phase ended: what its threads share, for a group that continues.

use super::group::GroupPlan;
use crate::pattern::Cover;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the threads of a group shared when it ended.
#[derive(Debug)]
pub(crate) struct GroupCheckpoint {
    origin: (u64, u64),
    done: (u64, u64),
    actions: Vec<SharedAction>,
}

#[derive(Debug)]
struct SharedAction {
    cursor: u64,
    turns: Vec<u64>,
    covers: Vec<Cover>,
}

impl GroupPlan {
    /// Where it stands, when all its threads have ended, after so many operations.
    pub(crate) fn checkpoint(&self, operations: u64) -> GroupCheckpoint {
        let actions = self.actions.iter().map(|action| SharedAction {
            cursor: action.cursor.load(Ordering::Relaxed),
            turns: action.turns.iter().map(|turns| turns.load(Ordering::Relaxed)).collect(),
            covers: action
                .covers
                .iter()
                .map(|cover| std::mem::take(&mut *cover.lock().unwrap_or_else(PoisonError::into_inner)))
                .collect(),
        });
        let done = (self.done_before + operations, self.limits.bytes());
        GroupCheckpoint { origin: self.origin, done, actions: actions.collect() }
    }

    pub(crate) fn resume(&mut self, from: GroupCheckpoint) {
        self.origin = from.origin;
        self.done_before = from.done.0;
        self.limits.go_on(from.done.0, from.done.1);
        for (action, from) in self.actions.iter_mut().zip(from.actions) {
            *action.cursor = AtomicU64::new(from.cursor);
            action.turns = from.turns.into_iter().map(AtomicU64::new).collect();
            action.covers = from.covers.into_iter().map(Into::into).collect();
        }
    }
}
