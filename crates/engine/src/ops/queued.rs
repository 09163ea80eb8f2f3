//! What became of an operation that was to be queued.

use crate::measure::Call;
use crate::worker::Picked;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Queued {
    Pushed(Flight),
    /// It is done: there was nothing to transfer, or the queue could not carry it.
    Done,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    pub(crate) picked: Picked,
    /// Read, write, fsync or fdatasync.
    pub(crate) call: Call,
    pub(crate) length: usize,
}

impl Flight {
    #[inline(always)]
    pub(crate) fn is_fsync(&self) -> bool {
        matches!(self.call, Call::Fsync | Call::Fdatasync)
    }
}
