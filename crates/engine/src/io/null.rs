//! The engine that does nothing, instantly: what a load on it costs is what fstone itself costs.

use super::plain::plain;
use super::{Completion, Direction, Fd, Io, Result, Setup, SetupError};
use std::time::Duration;

/// Pretends that every call succeeds.
#[derive(Debug)]
pub(crate) struct Null {
    buffer: Vec<u8>,
    queued: Vec<(u32, usize)>,
}

impl Io for Null {
    const REAL: bool = false;

    plain! {
        open close truncate fsync fdatasync advise syncfs fallocate stat unlink rename link symlink mkdir
        rmdir chmod utimens setxattr getxattr copy_file_range reflink list
    }

    fn new(setup: Setup) -> std::result::Result<Self, SetupError> {
        // The pages of one buffer serve all slots: nobody looks at the data.
        Ok(Self { buffer: vec![0; setup.block_bytes], queued: Vec::with_capacity(setup.depth as usize) })
    }

    #[inline]
    fn read(&mut self, _fd: Fd, buffer: &mut [u8], _offset: u64) -> Result<usize> {
        Ok(buffer.len())
    }

    #[inline]
    fn write(&mut self, _fd: Fd, data: &[u8], _offset: u64) -> Result<usize> {
        Ok(data.len())
    }

    fn slot(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.buffer
    }

    fn push(&mut self, slot: u32, _direction: Direction, _fd: Fd, length: usize, _offset: u64) -> Result<()> {
        self.queued.push((slot, length));
        Ok(())
    }

    fn push_fsync(&mut self, slot: u32, _fd: Fd, _data_only: bool) -> Result<()> {
        self.queued.push((slot, 0));
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        Ok(())
    }

    fn complete(&mut self, _least: u32, _wait: Option<Duration>, mut each: impl FnMut(Completion)) -> Result<()> {
        for (slot, length) in self.queued.drain(..) {
            each(Completion { slot, outcome: Ok(length) });
        }
        Ok(())
    }
}
