//! Choices that have to be made again: the file was removed by another thread, or there is none for the moment.

use super::choice::Choice;
use crate::io::Io;
use crate::measure::Call;
use crate::plan::{Guide, Selector};
use crate::worker::{Fault, Worker};
use fstone_model::workload::{FileChoice, Operation};
use rustix::io::Errno;
use std::time::Duration;

/// How long a thread waits for a file to come into being before that is a failure of the load.
const PATIENCE: Duration = Duration::from_secs(10);
/// After so many choices that found nothing, a thread sleeps before the next.
const SPINS: u32 = 64;
const NAP: Duration = Duration::from_micros(100);

#[derive(Debug, Default)]
pub(super) struct Patience {
    performed: u64,
    times: u32,
    since: u64,
}

impl<E: Io> Worker<'_, E> {
    /// Notes that the thread is done for want of files, if that is what its choice comes to.
    #[cold]
    pub(super) fn ran_out(&self, index: usize) {
        let action = &self.group.actions[index];
        let leaves = action.operation.is_of_leaves();
        if action.choice == FileChoice::Rotation || matches!(action.guide, Some(Guide::Numbers(_))) || leaves {
            let what = match action.operation {
                Operation::Create { .. } | Operation::Mkdir => "free name",
                _ if leaves => "directory",
                _ => "file",
            };
            let (group, name) = (&self.group.spec.name, &action.name);
            let _ = self.load.phase.ran_out.set(format!("{group}: {name} found no {what} left"));
        }
    }

    /// Counts a choice that found nothing and lets other threads run. After [`PATIENCE`] without an operation it is a failure.
    #[cold]
    pub(super) fn miss(&mut self, index: usize, performed: u64, patience: &mut Patience, choice: &mut Choice) {
        // To have read all that was written is no miss.
        self.tally.actions[index].missed += u64::from(!self.states[index].all_read);
        let clock = self.load.clock;
        let now = clock.now();
        if patience.times == 0 || patience.performed != performed {
            *patience = Patience { performed, times: 0, since: now };
        }
        patience.times = patience.times.saturating_add(1);
        let group = self.group;
        if matches!(group.selector, Selector::Sequence(_)) && group.actions[index].choice == FileChoice::Same {
            // The rest of the round would be about the file that is gone.
            choice.restart();
            self.previous = None;
        }
        if clock.between(patience.since, now) > PATIENCE.as_nanos() as u64 {
            self.failed(index, Fault::new(Call::Choose, Errno::NOENT), None);
            patience.times = 0;
        } else if patience.times > SPINS {
            std::thread::sleep(NAP);
        } else {
            std::thread::yield_now();
        }
    }
}
