//! Memory of queued transfers: a slot for each request in flight.

use crate::data::memory::Aligned;

/// The slots of an engine that queues. They never move.
#[derive(Debug)]
pub(super) struct Slots {
    memory: Aligned,
    block_bytes: usize,
}

impl Slots {
    pub(super) fn new(depth: u32, block_bytes: usize) -> Self {
        Self { memory: Aligned::new(block_bytes * depth as usize), block_bytes }
    }

    pub(super) fn all(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }

    #[inline]
    pub(super) fn get(&mut self, slot: u32) -> &mut [u8] {
        let start = slot as usize * self.block_bytes;
        &mut self.memory.bytes_mut()[start..start + self.block_bytes]
    }

    /// Never gives the memory back: the kernel may still write to it.
    pub(super) fn abandon(&mut self) {
        std::mem::forget(std::mem::take(&mut self.memory));
    }
}
