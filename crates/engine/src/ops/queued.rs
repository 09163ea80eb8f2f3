//! What became of an operation that was to be queued.

use crate::data::Destination;
use crate::io::Fd;
use crate::measure::Call;
use crate::worker::Picked;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Queued {
    Pushed(Flight),
    /// A write that the queue cannot carry, to be done when nothing is in flight. The file is held until then.
    Odd(OddWrite),
    /// There was nothing to transfer.
    Done,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct OddWrite {
    pub(super) picked: Picked,
    pub(super) fd: Fd,
    pub(super) length: usize,
    pub(super) destination: Destination,
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
