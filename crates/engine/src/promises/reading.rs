//! Reading the files of a state.

use super::ahead::Ahead;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// What files are read with, look after look: fresh memory is what costs a guest most.
#[derive(Debug, Default)]
pub(super) struct Reader {
    buffer: Vec<u8>,
    ahead: Option<Ahead>,
    tried: bool,
}

impl Reader {
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        self.buffer.resize(256 << 10, 0);
        &mut self.buffer
    }

    /// Reads the beginnings of files, as many as the kernel lets it.
    pub(super) fn read(&mut self, paths: &[&str], each: impl FnMut(usize, &mut [u8])) {
        if !self.tried {
            (self.ahead, self.tried) = (Ahead::new(), true);
        }
        self.ahead = self.ahead.take().and_then(|ahead| ahead.read(paths, each).ok());
    }
}

pub(super) struct Blocks<'r> {
    /// None where the buffer holds all of it.
    pub(super) file: Option<&'r File>,
    pub(super) length: u64,
    pub(super) buffer: &'r mut [u8],
    pub(super) held: Range<u64>,
}

impl Blocks<'_> {
    /// So many bytes, which have to be within the file and fewer than there is room for.
    pub(super) fn part(&mut self, at: u64, length: u64) -> io::Result<&[u8]> {
        if !(self.held.start <= at && at + length <= self.held.end) {
            let bytes = (self.length - at).min(self.buffer.len() as u64);
            self.held = 0..0;
            let file = self.file.ok_or(io::ErrorKind::UnexpectedEof)?;
            file.read_exact_at(&mut self.buffer[..bytes as usize], at)?;
            self.held = at..at + bytes;
        }
        let from = (at - self.held.start) as usize;
        Ok(&self.buffer[from..from + length as usize])
    }

    /// What is wrong with a part that has to be zeros, and is within the file.
    pub(super) fn other_than_zeros(&mut self, part: Range<u64>) -> Option<String> {
        const STEP: u64 = 4096;
        let mut at = part.start;
        while at < part.end {
            // Holes may be much larger than what is to be read of them.
            if let Some(file) = self.file.filter(|_| !self.held.contains(&at)) {
                match rustix::fs::seek(file, SeekFrom::Data(at)) {
                    Ok(data) if data > at => {
                        at = data;
                        continue;
                    }
                    Err(Errno::NXIO) => return None,
                    _ => {}
                }
            }
            let bytes = STEP.min(part.end - at);
            match self.part(at, bytes) {
                Ok(found) => {
                    if let Some(place) = found.iter().position(|byte| *byte != 0) {
                        return Some(format!("byte {}: data where zeros were synced", at + place as u64));
                    }
                }
                Err(error) => return Some(format!("byte {at}: {error}")),
            }
            at += bytes;
        }
        None
    }
}

/// Opens what is at a path and says how long it is; `None` when that is no file. A guest is slow at system calls.
pub(super) fn open(path: &Path) -> Option<io::Result<(File, u64)>> {
    // Without waiting, should it be a pipe by now.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) => return path.is_file().then_some(Err(error)),
    };
    match file.metadata() {
        Ok(metadata) => metadata.is_file().then(|| Ok((file, metadata.len()))),
        Err(error) => Some(Err(error)),
    }
}
