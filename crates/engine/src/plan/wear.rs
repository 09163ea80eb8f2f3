//! A phase that wears out: when its time is over its threads wait, and then go on to what the furthest have done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    waiting: u32,
    /// Whether those that wait are to go on; none until that is known.
    goes_on: Option<bool>,
}

/// Where threads wait when the time is over.
#[derive(Debug, Default)]
pub(crate) struct WearOut {
    state: Mutex<State>,
    decided: Condvar,
    over: AtomicBool,
}

impl WearOut {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the time is over and does not count any more.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// A thread's time is over. Waits until it is known how far to go; `false` when no further.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.state();
        state.waiting += 1;
        loop {
            match state.goes_on {
                Some(goes_on) => return goes_on,
                None => state = self.decided.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub(crate) fn waiting(&self) -> u32 {
        self.state().waiting
    }

    pub(crate) fn is_decided(&self) -> bool {
        self.state().goes_on.is_some()
    }

    /// Has those that wait go on, or end. Limits are set by then.
    pub(crate) fn decide(&self, goes_on: bool) {
        self.over.store(goes_on, Ordering::Relaxed);
        self.state().goes_on = Some(goes_on);
        self.decided.notify_all();
    }
}
