//! Looks, while a step runs, whether it has to stop before its time.

use crate::{
    place::device::Devices,
    stop::{Stop, StopReason},
};
use std::{
    path::Path,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How often it looks. A limit is exceeded by so much at most.
const LOOK: Duration = Duration::from_millis(50);
/// What it looks at.
pub(super) struct Watch<'a> {
    /// Asked to stop, with the reason.
    pub(super) stop: &'a Stop,
    /// The user's wish.
    pub(super) cancel: &'a AtomicBool,
    /// How long the step may take.
    pub(super) limit: Duration,
    /// Where images grow; `None` where nothing does.
    pub(super) space: Option<&'a Path>,
    /// Tells how much is free there.
    pub(super) devices: &'a dyn Devices,
}

impl Watch<'_> {
    /// Does something under watch, on this thread.
    pub(super) fn over<T>(&self, work: impl FnOnce() -> T) -> T {
        let done = (Mutex::new(false), Condvar::new());
        std::thread::scope(|scope| {
            scope.spawn(|| self.look_until(&done));
            // Also when `work` panics: the scope waits for its threads.
            let _end = End(&done);
            work()
        })
    }

    fn look_until(&self, (done, changed): &(Mutex<bool>, Condvar)) {
        let started = Instant::now();
        let mut ended = done.lock().unwrap_or_else(PoisonError::into_inner);
        while !*ended {
            if self.cancel.load(Ordering::Acquire) {
                self.stop.request(StopReason::Cancelled);
            } else if started.elapsed() >= self.limit {
                self.stop.request(StopReason::Limit(self.limit));
            }
            // One system call. What can be written between two looks at 5 GB/s is the reserve.
            if let Some(Ok(space)) = self.space.map(|path| self.devices.space(path))
                && space.is_used_up()
            {
                self.stop.request(StopReason::Space { free_bytes: space.free_bytes });
            }
            ended = changed.wait_timeout(ended, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

struct End<'a>(&'a (Mutex<bool>, Condvar));

impl Drop for End<'_> {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::device::FakeDevices;

    fn reason(limit: Duration, cancel: bool, free_bytes: u64) -> Option<StopReason> {
        let (stop, cancel, devices) = (Stop::default(), AtomicBool::new(cancel), FakeDevices::new());
        devices.set_free_bytes(free_bytes);
        let space = Some(Path::new("/"));
        let watch = Watch { stop: &stop, cancel: &cancel, limit, space, devices: &devices };
        watch.over(|| {
            let started = Instant::now();
            while !stop.is_requested() && started.elapsed() < Duration::from_millis(300) {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        stop.reason()
    }

    #[test]
    fn each_reason_is_told() {
        let long = Duration::from_secs(60);
        assert_eq!(reason(long, false, u64::MAX), None);
        assert_eq!(reason(long, true, u64::MAX), Some(StopReason::Cancelled));
        assert_eq!(reason(long, false, 1000), Some(StopReason::Space { free_bytes: 1000 }));
        let short = Duration::from_millis(1);
        assert_eq!(reason(short, false, u64::MAX), Some(StopReason::Limit(short)));
    }
}
