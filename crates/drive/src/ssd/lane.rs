//! A channel or an interface: it moves one thing at a time.

use std::collections::BTreeMap;

/// What is booked on it, ahead of time: what is booked later passes earlier where there is room for it.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Begin and end of each time without a pause, in ascending order.
    busy: BTreeMap<u64, u64>,
}

impl Lane {
    /// Books the first `ns` nanoseconds without a pause that are free from `from_ns` on. Gives when they end. Nothing is ever booked
    /// before `now_ns` again.
    pub(super) fn book(&mut self, now_ns: u64, from_ns: u64, ns: u64) -> u64 {
        while self.busy.first_key_value().is_some_and(|(_, end)| *end < now_ns) {
            self.busy.pop_first();
        }
        let before = self.busy.range(..=from_ns).next_back().map_or(0, |(_, end)| *end);
        let mut begin = from_ns.max(before);
        for (&start, &end) in self.busy.range(begin..) {
            if start - begin >= ns {
                break;
            }
            begin = end;
        }
        let mut end = begin + ns;
        if let Some(after) = self.busy.remove(&end) {
            end = after;
        }
        match self.busy.range_mut(..=begin).next_back() {
            Some((_, touches)) if *touches == begin => *touches = end,
            _ => drop(self.busy.insert(begin, end)),
        }
        begin + ns
    }
}

#[cfg(test)]
mod tests {
    use super::Lane;

    #[test]
    fn what_is_booked_later_passes_where_there_is_room() {
        let mut lane = Lane::default();
        assert_eq!(lane.book(0, 100, 10), 110);
        assert_eq!(lane.book(0, 100, 10), 120);
        // Before both, with and without a pause.
        assert_eq!(lane.book(0, 50, 20), 70);
        assert_eq!(lane.book(0, 60, 30), 100);
        // No room between 0 and 50 from 45 on.
        assert_eq!(lane.book(0, 45, 6), 126);
        assert_eq!(lane.book(0, 45, 5), 50);
        assert_eq!(lane.busy.iter().map(|(begin, end)| (*begin, *end)).collect::<Vec<_>>(), [(45, 126)]);
        assert_eq!(lane.book(200, 300, 1), 301);
        assert_eq!(lane.busy.len(), 1);
    }
}
