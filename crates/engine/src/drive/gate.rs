//! Where threads wait for each other: all are ready before any begins.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
struct State<E> {
    ready: u32,
    failed: Option<E>,
    open: Option<bool>,
    done: u32,
    released: bool,
}

/// A gate for the threads of a phase. `E` is why a thread could not get ready.
#[derive(Debug)]
pub(crate) struct Gate<E> {
    state: Mutex<State<E>>,
    changed: Condvar,
    opened: Condvar,
    released: Condvar,
}

impl<E> Gate<E> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State { ready: 0, failed: None, open: None, done: 0, released: false }),
            changed: Condvar::new(),
            opened: Condvar::new(),
            released: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread is ready, or cannot be. Waits until the gate opens; `false` if the thread is to end without having begun.
    pub(crate) fn ready(&self, outcome: Result<(), E>) -> bool {
        let mut state = self.state();
        state.ready += 1;
        let fine = outcome.is_ok();
        if let Err(error) = outcome {
            state.failed.get_or_insert(error);
        }
        self.changed.notify_one();
        while fine && state.open.is_none() {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        fine && state.open == Some(true)
    }

    pub(crate) fn await_ready(&self, threads: u32) -> Result<(), E> {
        let mut state = self.state();
        while state.ready < threads && state.failed.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.failed.take().map_or(Ok(()), Err)
    }

    /// Lets the threads begin, or ends them.
    pub(crate) fn open(&self, begin: bool) {
        self.state().open = Some(begin);
        self.opened.notify_all();
    }

    pub(crate) fn done(&self) {
        self.state().done += 1;
        self.changed.notify_one();
    }

    pub(crate) fn await_release(&self) {
        let state = self.state();
        drop(self.released.wait_while(state, |state| !state.released).unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn release(&self) {
        self.state().released = true;
        self.released.notify_all();
    }

    pub(crate) fn so_many_done(&self) -> u32 {
        self.state().done
    }

    /// Waits until so many threads are done, or the time is over; whether they are.
    pub(crate) fn await_done(&self, threads: u32, time: Duration) -> bool {
        let state = self.state();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, time, |state| state.done < threads)
            .unwrap_or_else(PoisonError::into_inner);
        state.done >= threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_begins_before_all_are_ready() {
        let gate: Gate<&str> = Gate::new();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| gate.ready(Ok(())))).collect();
            assert_eq!(gate.await_ready(3), Ok(()));
            assert!(threads.iter().all(|thread| !thread.is_finished()));
            gate.open(true);
            for thread in threads {
                assert!(thread.join().expect("no panic"));
            }
        });
        assert!(!gate.await_done(1, Duration::ZERO));
        gate.done();
        assert!(gate.await_done(1, Duration::ZERO));
    }

    #[test]
    fn one_that_cannot_sends_all_home() {
        let gate: Gate<&str> = Gate::new();
        std::thread::scope(|scope| {
            let good = scope.spawn(|| gate.ready(Ok(())));
            let bad = scope.spawn(|| gate.ready(Err("no")));
            assert_eq!(gate.await_ready(2), Err("no"));
            gate.open(false);
            assert!(!good.join().expect("no panic"));
            assert!(!bad.join().expect("no panic"));
        });
    }
}
