//! Where a thread stood when its phase ended, for a thread that continues.

use super::state::ActionStanding;
use super::thread::Worker;
use super::tour::Tour;
use crate::io::Io;

/// Where a thread stood.
#[derive(Debug, Default)]
pub(crate) struct ThreadStanding {
    actions: Vec<ActionStanding>,
    tour: Option<Box<Tour>>,
    moved: u64,
    /// Place in a sequence.
    pub(crate) sequence: usize,
}

impl<E: Io> Worker<'_, E> {
    /// Where it stands, at its end.
    pub(crate) fn standing(&mut self, sequence: usize) -> ThreadStanding {
        let actions = self.states.iter().map(super::state::ActionState::standing).collect();
        ThreadStanding { actions, tour: self.tour.take(), moved: self.moved, sequence }
    }

    /// Goes on from where the thread of its number stood, if its group continues; gives the place in a sequence.
    pub(crate) fn resume(&mut self) -> usize {
        let Some(from) = self.load.standing_of(&self.group.spec, self.number) else { return 0 };
        self.states.iter_mut().zip(from.actions).for_each(|(state, from)| state.resume(from));
        (self.tour, self.moved) = (from.tour, from.moved);
        from.sequence
    }
}
