//! What became of an operation that was to be queued.

use crate::io::Direction;
use crate::worker::Picked;

/// What became of an attempt to queue an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Queued {
    /// It is in flight.
    Pushed(Flight),
    /// It is done: there was nothing to transfer, or the queue could not carry it.
    Done,
}

/// A transfer in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    pub(crate) picked: Picked,
    pub(crate) direction: Direction,
    pub(crate) length: usize,
}
