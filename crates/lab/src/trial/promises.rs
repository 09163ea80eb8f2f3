//! What an agent remembers of its loads: what they were promised, and where in the disk's log.

use crate::meters::Marker;
use fstone_engine::Witness;
use fstone_sandbox::agent::is_exact;
use std::{
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// How often the disk is told where the load is, at most. What was acknowledged since the last mark is not asked for in a
/// state that lies behind it, so marks should be close; each costs the guest some 50 µs.
const MARK_PERIOD: Duration = Duration::from_millis(5);

/// The same at its shortest in virtual time. A mark is charged there as two system calls, and a load on a modelled SSD may be over
/// after 5 ms. Where nothing was acknowledged meanwhile it is doubled, up to the usual one: each time that the guest
/// wakes takes real time.
const SHORTEST_PERIOD: Duration = Duration::from_micros(200);

/// The longest in virtual time until something is acknowledged: a load on a modelled SSD that begins late would be over before it is
/// looked at.
const PERIOD_BEFORE: Duration = Duration::from_millis(1);

/// What loads were promised, and where in the disk's log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Promises {
    witness: Witness,
    /// In the order in which they were set.
    marks: Arc<Mutex<Vec<Mark>>>,
}

/// A mark in the disk's log, and where it is among the load's calls.
#[derive(Debug, Clone, Copy)]
struct Mark {
    number: u64,
    /// What had been acknowledged then, before it was set, was done before it.
    before: u64,
    /// What began then, when it had been set, was done after it.
    after: u64,
}

impl Promises {
    pub(super) const fn witness(&self) -> &Witness {
        &self.witness
    }

    pub(super) fn mark(&self, marker: &Marker) {
        // One at a time, or two threads could put theirs down in the other order.
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        // In this order: whatever is promised at that moment was there before the mark.
        let before = self.witness.moment();
        if let Some(number) = marker.mark() {
            marks.push(Mark { number, before, after: self.witness.moment() });
        }
    }

    /// When the power was cut behind a mark of the disk and before the next: what had been acknowledged before the first moment
    /// was there, and what began after the second was not.
    pub(super) fn cut(&self, mark: Option<u64>) -> Range<u64> {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let count = marks.partition_point(|known| mark.is_some_and(|mark| known.number <= mark));
        let start = count.checked_sub(1).map_or(0, |last| marks[last].before);
        start..marks.get(count).map_or(u64::MAX, |next| next.after)
    }

    /// Does something while the disk is told again and again how far the load is.
    pub(super) fn marking<T>(&self, marker: &Marker, work: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        let (shortest, before) = if is_exact() { (SHORTEST_PERIOD, PERIOD_BEFORE) } else { (MARK_PERIOD, MARK_PERIOD) };
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                let (mut last, mut period, mut longest) = (self.witness.moment(), shortest, before);
                while !done.load(Ordering::Acquire) {
                    thread::sleep(period);
                    let now = self.witness.moment();
                    period = (period * 2).min(longest);
                    if now != last {
                        self.mark(marker);
                        (last, period, longest) = (now, shortest, MARK_PERIOD);
                    }
                }
            });
            let result = work();
            done.store(true, Ordering::Release);
            result
        });
        self.mark(marker);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_between_two_marks() {
        let promises = Promises::default();
        let marks = [(3, 10, 12), (4, 20, 23), (7, 30, 31)];
        let marks = marks.map(|(number, before, after)| Mark { number, before, after });
        promises.marks.lock().expect("ours").extend(marks);
        // Behind a mark that is of nobody here, what the last one before it says counts.
        let expected = [(None, 0..12), (Some(2), 0..12), (Some(3), 10..23), (Some(5), 20..31), (Some(9), 30..u64::MAX)];
        for (mark, cut) in expected {
            assert_eq!(promises.cut(mark), cut, "{mark:?}");
        }
    }
}
