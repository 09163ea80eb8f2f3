//! Why a trial has to stop before its time: one flag that commands, loads and waits all look at.

use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The user wants the run to end (Ctrl-C, SIGTERM).
    Cancelled,
    Limit(Duration),
    /// The filesystem of this directory, in which a trial's image or files are, is nearly full.
    Space {
        directory: PathBuf,
        free_bytes: u64,
    },
    /// A service has ended by itself, and what needs it may wait for it in vain.
    Service,
}

/// A flag with its reason. The first reason stays until [`Stop::clear`].
#[derive(Debug, Default)]
pub struct Stop {
    flag: AtomicBool,
    reason: Mutex<Option<StopReason>>,
}

impl Stop {
    pub fn request(&self, reason: StopReason) {
        let mut held = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            *held = Some(reason);
        }
        self.flag.store(true, Ordering::Release);
    }

    pub fn is_requested(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    pub fn reason(&self) -> Option<StopReason> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The bare flag, for code that knows no reasons.
    pub const fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Forgets a request, unless the user made it: a cancelled run stays cancelled.
    pub fn clear(&self) {
        let mut held = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if *held != Some(StopReason::Cancelled) {
            *held = None;
            self.flag.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays_and_a_cancellation_is_never_forgotten() {
        let stop = Stop::default();
        assert!(!stop.is_requested());
        stop.request(StopReason::Limit(Duration::from_secs(1)));
        stop.request(StopReason::Space { directory: "/".into(), free_bytes: 1 });
        assert_eq!(stop.reason(), Some(StopReason::Limit(Duration::from_secs(1))));
        stop.clear();
        assert!(!stop.is_requested() && stop.reason().is_none());
        stop.request(StopReason::Cancelled);
        stop.clear();
        assert!(stop.is_requested());
    }
}
