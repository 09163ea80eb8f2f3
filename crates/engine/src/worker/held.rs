//! The handles of a thread's program.

use crate::fileset::Hold;
use crate::io::Fd;

/// What is open in a handle, or was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) fileset: usize,
    pub(crate) file: u32,
    /// None once it was closed.
    pub(super) fd: Option<Fd>,
    pub(super) hold: Hold,
    pub(crate) cursor: u64,
    /// How large the file is to be: as was drawn for it when it was made, or as it was when it was opened.
    pub(crate) wanted: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Handles(Vec<Option<Held>>);

impl Handles {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![None; count])
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn last(&self, handle: usize) -> Option<Held> {
        self.0[handle]
    }

    pub(super) fn open(&self, handle: usize) -> Option<(Held, Fd)> {
        let held = self.0[handle]?;
        Some((held, held.fd?))
    }

    pub(super) fn put(&mut self, handle: usize, held: Option<Held>) {
        self.0[handle] = held;
    }

    pub(crate) fn move_to(&mut self, handle: usize, cursor: u64) {
        if let Some(held) = &mut self.0[handle] {
            held.cursor = cursor;
        }
    }
}
