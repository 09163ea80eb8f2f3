//! Looks, while something runs, whether it has to stop before its time.
//!
//! It never touches what it watches: how much room is left a [`Gauge`] finds out on a thread of its own, which may wait for
//! a dead filesystem for ever without anybody waiting for it.

use crate::{
    place::device::{Devices, Space},
    stop::{Stop, StopReason},
};
use std::{
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How often it looks. A limit is exceeded by so much at most.
const LOOK: Duration = Duration::from_millis(50);

/// How much room the filesystem of a directory has, as of the last look that came back.
pub(crate) struct Gauge {
    directory: PathBuf,
    seen: Arc<Mutex<Option<Space>>>,
}

impl Gauge {
    pub(crate) fn of(directory: PathBuf, devices: Arc<dyn Devices>) -> Self {
        let path = directory.clone();
        let seen = Arc::new(Mutex::new(None));
        let reader = Arc::downgrade(&seen);
        // Without the thread nobody watches, and the trial goes on.
        drop(std::thread::Builder::new().name("space".to_owned()).spawn(move || {
            while let Some(seen) = reader.upgrade() {
                // Not while it is looked at: a dropped gauge ends this thread.
                drop(seen);
                let space = devices.space(&path).ok();
                let Some(seen) = reader.upgrade() else { return };
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = space;
                drop(seen);
                // One system call. What can be written between two looks at 5 GB/s is the reserve.
                std::thread::sleep(LOOK);
            }
        }));
        Self { directory, seen }
    }

    fn space(&self) -> Option<Space> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Watch<'a> {
    pub(crate) stop: &'a Stop,
    pub(crate) cancel: Option<&'a AtomicBool>,
    pub(crate) limit: Option<Duration>,
    /// Where something grows; `None` where nothing does.
    pub(crate) gauge: Option<&'a Gauge>,
}

impl Watch<'_> {
    pub(crate) fn over<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.cancel.is_none() && self.limit.is_none() && self.gauge.is_none() {
            // Where time is simulated, a watch would make it pass.
            return work();
        }
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
            if self.cancel.is_some_and(|cancel| cancel.load(Ordering::Acquire)) {
                self.stop.request(StopReason::Cancelled);
            } else if let Some(limit) = self.limit
                && started.elapsed() >= limit
            {
                self.stop.request(StopReason::Limit(limit));
            }
            if let Some(gauge) = self.gauge
                && let Some(space) = gauge.space().filter(Space::is_used_up)
            {
                let directory = gauge.directory.clone();
                self.stop.request(StopReason::Space { directory, free_bytes: space.free_bytes });
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
        let gauge = Gauge::of("/".into(), Arc::new(devices));
        let watch = Watch { stop: &stop, cancel: Some(&cancel), limit: Some(limit), gauge: Some(&gauge) };
        watch.over(|| {
            let started = Instant::now();
            while !stop.is_requested() && started.elapsed() < Duration::from_millis(500) {
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
        assert_eq!(reason(long, false, 1000), Some(StopReason::Space { directory: "/".into(), free_bytes: 1000 }));
        let short = Duration::from_millis(1);
        assert_eq!(reason(short, false, u64::MAX), Some(StopReason::Limit(short)));
    }

    #[test]
    fn a_filesystem_that_does_not_answer_keeps_nobody_waiting() {
        let devices = FakeDevices::new();
        devices.set_dead();
        let gauge = Gauge::of("/".into(), Arc::new(devices));
        let stop = Stop::default();
        let limit = Duration::from_millis(60);
        let watch = Watch { stop: &stop, cancel: None, limit: Some(limit), gauge: Some(&gauge) };
        watch.over(|| std::thread::sleep(Duration::from_millis(200)));
        assert_eq!(stop.reason(), Some(StopReason::Limit(limit)));
    }
}
