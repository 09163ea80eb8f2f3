//! What the host has sent and the drive has not completed, and what the host holds back until the drive takes it.
//!
//! A drive takes `queue-depth` commands at a time, in the order in which they come, whether its caches can answer them or not. Unless a flush is
//! a command of its queue, like SCSI's SYNCHRONIZE CACHE, it is taken when all before it are complete, and nothing is taken beside it: ATA's FLUSH
//! CACHE is no queued command.

use crate::request::Request;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

#[derive(Debug)]
pub(crate) struct Commands {
    depth: usize,
    flush_is_queued: bool,
    held_back: VecDeque<(u64, Request)>,
    under_way: usize,
    /// Whether what is under way has the drive for itself.
    alone: bool,
    /// When those that are under way will be complete, as far as that is decided.
    ends: BinaryHeap<Reverse<u64>>,
}

impl Commands {
    pub(crate) const fn new(depth: usize, flush_is_queued: bool) -> Self {
        Self { depth, flush_is_queued, held_back: VecDeque::new(), under_way: 0, alone: false, ends: BinaryHeap::new() }
    }

    pub(crate) fn arrive(&mut self, id: u64, request: Request) {
        self.held_back.push_back((id, request));
    }

    pub(crate) fn take(&mut self) -> Option<(u64, Request)> {
        let (_, first) = self.held_back.front()?;
        let alone = *first == Request::Flush && !self.flush_is_queued;
        if self.under_way > 0 && (alone || self.alone || self.under_way >= self.depth) {
            return None;
        }
        self.under_way += 1;
        self.alone = alone;
        self.held_back.pop_front()
    }

    pub(crate) fn ends_at(&mut self, at_ns: u64) {
        self.ends.push(Reverse(at_ns));
    }

    pub(crate) fn next_end(&self) -> Option<u64> {
        self.ends.peek().map(|Reverse(at_ns)| *at_ns)
    }

    pub(crate) fn end(&mut self) {
        self.ends.pop();
        self.under_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(commands: &mut Commands) -> Vec<u64> {
        std::iter::from_fn(|| commands.take()).map(|(id, _)| id).collect()
    }

    fn of(depth: usize, flush_is_queued: bool) -> Commands {
        let mut commands = Commands::new(depth, flush_is_queued);
        for id in 0..6 {
            commands.arrive(id, if id == 2 { Request::Flush } else { Request::Read(0..8) });
        }
        commands
    }

    #[test]
    fn so_many_are_taken_at_a_time_and_a_flush_alone() {
        let mut commands = of(3, false);
        assert_eq!(taken(&mut commands), [0, 1]);
        commands.ends_at(20);
        commands.ends_at(10);
        assert_eq!(commands.next_end(), Some(10));
        commands.end();
        assert_eq!((taken(&mut commands), commands.next_end()), (vec![], Some(20)));
        commands.end();
        assert_eq!((taken(&mut commands), commands.next_end()), (vec![2], None));
        commands.ends_at(30);
        commands.end();
        assert_eq!(taken(&mut commands), [3, 4, 5]);
    }

    #[test]
    fn a_flush_of_the_queue_is_taken_beside_others() {
        let mut commands = of(3, true);
        assert_eq!(taken(&mut commands), [0, 1, 2]);
        for id in 3..6 {
            commands.ends_at(id);
            commands.end();
            assert_eq!(taken(&mut commands), [id]);
        }
    }
}
