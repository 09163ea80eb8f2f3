//! splice: data goes through a pipe, and is copied once.
#![expect(unsafe_code, reason = "vmsplice lends pages to a pipe")]

use super::{Fd, Result, SetupError};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, retry_on_intr};
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, pipe_with, splice, vmsplice};

/// What a pipe holds.
const PIPE_BYTES: usize = 64 << 10;

/// The ends of an empty pipe: what is taken from it, and what is put into it.
pub(crate) struct Splice([OwnedFd; 2]);

impl Splice {
    pub(super) fn new() -> std::result::Result<Self, SetupError> {
        let failed = |errno| SetupError { call: "pipe2", errno, cure: "" };
        let (taken, put) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        Ok(Self([taken, put]))
    }

    pub(super) fn read(&mut self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let Self([taken, put]) = self;
        let wanted = buffer.len().min(PIPE_BYTES);
        let mut from = offset;
        let got = retry_on_intr(|| splice(fd.borrow(), Some(&mut from), &*put, None, wanted, SpliceFlags::MORE))?;
        let mut have = 0;
        while have < got {
            have += retry_on_intr(|| read(&*taken, &mut buffer[have..got]))?;
        }
        Ok(got)
    }

    pub(super) fn write(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<usize> {
        let Self([taken, put]) = self;
        let piece = [IoSliceRaw::from_slice(&data[..data.len().min(PIPE_BYTES)])];
        // SAFETY: the pipe is emptied or given up before this returns, so that no page is read when its owner has it back.
        let given = retry_on_intr(|| unsafe { vmsplice(&*put, &piece, SpliceFlags::NONBLOCK) })?;
        let mut have = 0;
        while have < given {
            let mut to = offset + have as u64;
            match retry_on_intr(|| {
                splice(&*taken, None, fd.borrow(), Some(&mut to), given - have, SpliceFlags::empty())
            }) {
                Ok(0) => return self.emptied(have, Errno::NOSPC),
                Ok(moved) => have += moved,
                Err(errno) => return self.emptied(have, errno),
            }
        }
        Ok(given)
    }

    /// A new pipe in place of one with data that was not written.
    fn emptied(&mut self, written: usize, errno: Errno) -> Result<usize> {
        *self = Self::new().map_err(|error| error.errno)?;
        if written > 0 { Ok(written) } else { Err(errno) }
    }
}
