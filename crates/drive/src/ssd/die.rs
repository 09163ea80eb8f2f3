//! A die: it does one thing at a time. Reads go before what it has not begun to program, to move or to erase; all that is in the
//! controller's memory meanwhile.

use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Read,
    Program,
    /// What makes room: a page that is moved, a block that is erased.
    Collect,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) work: Work,
    begin_ns: u64,
    pub(super) end_ns: u64,
    /// Of those that write at a time, the place that is free after it.
    pub(super) place: Option<usize>,
}

/// Times are booked ahead. Reads are asked for in the order in which they are ready.
#[derive(Debug, Clone, Default)]
pub(super) struct Die {
    /// In the order of time: first what is under way, then all reads.
    operations: VecDeque<Operation>,
    free_ns: u64,
    /// The page that it holds, and from when.
    held: Option<(u64, u64)>,
}

impl Die {
    pub(super) const fn free_ns(&self) -> u64 {
        self.free_ns
    }

    /// Does something after everything else, from when it can. Gives when that will be over, unless reads go before it.
    pub(super) fn append(&mut self, work: Work, from_ns: u64, ns: u64) -> u64 {
        let begin_ns = self.free_ns.max(from_ns);
        self.free_ns = begin_ns + ns;
        self.operations.push_back(Operation { work, begin_ns, end_ns: self.free_ns, place: None });
        self.free_ns
    }

    /// The last that was appended gives up a place among those that write at a time.
    pub(super) fn gives_up(&mut self, place: usize) {
        if let Some(last) = self.operations.back_mut() {
            last.place = Some(place);
        }
    }

    /// Senses a page that it does not hold. Gives when it is there. What it had not begun by then is put off: `put_off` gets it,
    /// and when it was to be over.
    pub(super) fn sense(&mut self, page: u64, ready_ns: u64, ns: u64, mut put_off: impl FnMut(u64, Operation)) -> u64 {
        self.pass(ready_ns);
        if let Some((_, since_ns)) = self.held.filter(|(held, _)| *held == page) {
            return since_ns.max(ready_ns);
        }
        let before = |one: &Operation| one.work == Work::Read || one.begin_ns < ready_ns;
        let index = self.operations.iter().take_while(|one| before(one)).count();
        let begin_ns = self.operations.range(..index).next_back().map_or(0, |one| one.end_ns).max(ready_ns);
        let sensed_ns = begin_ns + ns;
        self.operations.insert(index, Operation { work: Work::Read, begin_ns, end_ns: sensed_ns, place: None });
        let mut free_ns = sensed_ns;
        for one in self.operations.range_mut(index + 1..) {
            if one.begin_ns >= free_ns {
                break;
            }
            let was_ns = one.end_ns;
            one.end_ns = free_ns + (one.end_ns - one.begin_ns);
            one.begin_ns = free_ns;
            free_ns = one.end_ns;
            put_off(was_ns, *one);
        }
        self.free_ns = self.free_ns.max(free_ns);
        self.held = Some((page, sensed_ns));
        sensed_ns
    }

    pub(super) fn forget(&mut self, page: u64) {
        self.held.take_if(|(held, _)| *held == page);
    }

    /// Time has gone on: what was begun took the place of the page that it held before, and what is over is forgotten.
    pub(super) fn pass(&mut self, now_ns: u64) {
        for one in self.operations.iter().take_while(|one| one.begin_ns < now_ns) {
            if one.work != Work::Read {
                self.held.take_if(|(_, since_ns)| *since_ns <= one.begin_ns);
            }
        }
        while self.operations.front().is_some_and(|one| one.end_ns <= now_ns) {
            self.operations.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_go_before_what_is_not_begun() {
        let mut die = Die::default();
        assert_eq!(die.append(Work::Program, 100, 600), 700);
        assert_eq!(die.append(Work::Collect, 0, 50), 750);
        assert_eq!(die.append(Work::Program, 2000, 600), 2600);
        let mut moved = Vec::new();
        let mut put_off = |was, one: Operation| moved.extend((one.work == Work::Program).then_some((was, one.end_ns)));
        let mut sense = |die: &mut Die, page, ready_ns| die.sense(page, ready_ns, 50, &mut put_off);
        // Before the first, which is put off, by as much as it is in the way.
        assert_eq!(sense(&mut die, 1, 60), 110);
        // It holds the page until it begins with something.
        assert_eq!(sense(&mut die, 1, 105), 110);
        // One is under way, and another read waits, too.
        assert_eq!(sense(&mut die, 2, 200), 760);
        assert_eq!(sense(&mut die, 3, 201), 810);
        assert_eq!(sense(&mut die, 3, 809), 810);
        // That is under way now.
        assert_eq!(sense(&mut die, 3, 820), 910);
        assert_eq!(die.append(Work::Program, 0, 600), 3200);
        assert_eq!(sense(&mut die, 4, 1990), 2040);
        assert_eq!(die.append(Work::Program, 0, 600), 3840);
        assert_eq!(moved, [(700, 710), (2600, 2640), (3200, 3240)]);
    }
}
