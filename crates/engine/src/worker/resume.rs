//! A thread that continues where the one of its number stood in the phase before.

use super::standing::{ActionStanding, ThreadStanding};
use super::thread::Worker;
use crate::io::Io;

impl<E: Io> Worker<'_, E> {
    /// Where it stands, at its end.
    pub(crate) fn standing(&mut self, sequence: usize) -> ThreadStanding {
        let actions =
            self.states.iter().map(|state| ActionStanding { cursor: state.cursor, burst: state.burst }).collect();
        ThreadStanding { actions, tour: self.tour.take(), moved: self.moved, sequence }
    }

    /// Goes on from where the thread of its number stood, if its group continues; gives the place in a sequence.
    pub(crate) fn resume(&mut self) -> usize {
        let Some(from) = self.load.standing_of(&self.group.spec, self.number) else { return 0 };
        for (state, from) in self.states.iter_mut().zip(from.actions) {
            (state.cursor, state.burst) = (from.cursor, from.burst);
        }
        (self.tour, self.moved) = (from.tour, from.moved);
        from.sequence
    }
}
