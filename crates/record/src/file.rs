//! The file: a header, then blocks, each compressed and with a checksum of its own.
//!
//! ```text
//! "fstone recording" (16 bytes) version (u32)
//! block: "blck" length (u32) raw length (u32) calls (u32) CRC-32 of the packed bytes (u32), packed bytes
//! ```
//! Numbers are little endian. The packed bytes are a zstd frame, whose content is a [`Block`] in postcard's format. Headers of blocks are
//! an index: they can be followed without unpacking anything. The last block has [`Block::end`]; a file without it was cut, and is
//! good to its last whole block.

use crate::call::{Block, Call, End, Entry, Node, Place, Start};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use zstd::bulk::{Compressor, Decompressor};

const MAGIC: &[u8; 16] = b"fstone recording";
const BLOCK: &[u8; 4] = b"blck";
/// Raised with every change to what a block holds, a new kind of call too: else an older fstone takes a recording for a damaged one.
pub const VERSION: u32 = 5;
/// A block is written when it has so many calls, or so many bytes of names and files.
const CALLS: usize = 8192;
const NAME_BYTES: usize = 512 << 10;
/// The largest block, unpacked: 8192 calls of at most 116 bytes, twice [`NAME_BYTES`], and the command with its directories.
const MOST_BYTES: usize = 4 << 20;
/// As zstd's bound for what does not compress.
const MOST_PACKED: usize = MOST_BYTES + (MOST_BYTES >> 8) + 64;
/// The kernel takes names of 4096 bytes: with each part hashed, 2048 parts of 16 bytes and a slash.
const MOST_NAME: usize = 2048 * 17;
/// Of files that are not recorded, for a message.
pub(crate) const OUTSIDE_NAMES: usize = 4;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read it: {0}")]
    Read(io::Error),
    #[error("it is no recording of fstone's")]
    Foreign,
    #[error(
        "it has version {found} of the format, and this fstone reads version {VERSION}: record again, or use the fstone that wrote it"
    )]
    Version { found: u32 },
    #[error("it has no beginning: its first block is missing or damaged")]
    NoStart,
}

/// Writes a recording. Holds one block.
pub struct Writer<W: Write> {
    out: W,
    block: Block,
    names: HashMap<Vec<u8>, u32>,
    name_bytes: usize,
    outside_names: Vec<Vec<u8>>,
    pub calls: u64,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// # Errors
    /// Those of writing.
    pub fn new(mut out: W, start: Start) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        let block = Block { start: Some(start), ..Block::default() };
        Ok(Self { out, block, names: HashMap::new(), name_bytes: 0, outside_names: Vec::new(), calls: 0, bytes: 20 })
    }

    /// # Errors
    /// Those of writing.
    pub fn entry(&mut self, entry: Entry) -> io::Result<()> {
        let target = match &entry.node {
            Node::Link { target: name } | Node::Name { of: name } => name.len(),
            Node::Directory | Node::File { .. } | Node::Special => 0,
        };
        self.name_bytes += entry.path.len() + target + 64;
        self.block.tree.push(entry);
        self.written_if_full()
    }

    /// The name's index in the block that the next call goes into.
    pub fn name(&mut self, name: &[u8]) -> u32 {
        if let Some(index) = self.names.get(name) {
            return *index;
        }
        let index = self.block.names.len() as u32;
        self.block.names.push(name.to_vec());
        self.names.insert(name.to_vec(), index);
        self.name_bytes += name.len() + 3;
        index
    }

    pub fn place(&mut self, base: u32, name: &[u8]) -> Place {
        Place { base, name: self.name(name) }
    }

    pub fn outside(&mut self, bytes: u64, name: Option<&[u8]>) {
        self.block.outside_calls += 1;
        self.block.outside_bytes = self.block.outside_bytes.saturating_add(bytes);
        // As many as are shown: a recording has no name that its user cannot see.
        if let Some(name) = name.filter(|_| self.outside_names.len() < OUTSIDE_NAMES) {
            let name = name[..name.len().min(MOST_NAME)].to_vec();
            if !self.outside_names.contains(&name) {
                self.outside_names.push(name.clone());
                self.block.outside_names.push(name);
            }
        }
    }

    /// # Errors
    /// Those of writing.
    pub fn call(&mut self, call: Call) -> io::Result<()> {
        self.block.calls.push(call);
        self.calls += u64::from(call.counts());
        self.written_if_full()
    }

    fn written_if_full(&mut self) -> io::Result<()> {
        let full = self.block.calls.len() >= CALLS || self.name_bytes >= NAME_BYTES;
        if full { self.write_block() } else { Ok(()) }
    }

    /// Writes what there is. Indices of names end with it.
    ///
    /// # Errors
    /// Those of writing.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.block == Block::default() { Ok(()) } else { self.write_block() }
    }

    fn write_block(&mut self) -> io::Result<()> {
        let raw = postcard::to_allocvec(&self.block).map_err(io::Error::other)?;
        let packed = packed(&raw)?;
        if raw.len() > MOST_BYTES || packed.len() > MOST_PACKED {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the names of its directories are too long"));
        }
        let calls = self.block.calls.len() as u32;
        let mut head = BLOCK.to_vec();
        for number in [packed.len() as u32, raw.len() as u32, calls, crc32fast::hash(&packed)] {
            head.extend(number.to_le_bytes());
        }
        head.extend(packed);
        self.out.write_all(&head)?;
        self.bytes += head.len() as u64;
        self.block = Block::default();
        self.names.clear();
        self.name_bytes = 0;
        Ok(())
    }

    /// # Errors
    /// Those of writing.
    pub fn finish(mut self, end: End) -> io::Result<(W, u64)> {
        self.block.end = Some(end);
        self.write_block()?;
        self.out.flush()?;
        Ok((self.out, self.bytes))
    }
}

/// How a recording ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Whole,
    /// It was cut, or is damaged from here on; the place in bytes.
    Cut(u64),
}

/// Reads a recording block by block.
pub struct Reader<R: Read> {
    input: R,
    at: u64,
    first: Option<Block>,
    ending: Option<Ending>,
    digest: crc32fast::Hasher,
    pub start: Start,
}

impl Reader<BufReader<File>> {
    /// # Errors
    /// If it cannot be read, or is no recording that this version knows.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::new(BufReader::with_capacity(1 << 20, File::open(path).map_err(ReadError::Read)?))
    }
}

/// Whether a file begins as a recording does, of whatever version.
pub fn is_recording(path: &Path) -> bool {
    let mut head = [0; 16];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *MAGIC
}

impl<R: Read> Reader<R> {
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let mut head = [0; 20];
        match input.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(ReadError::Foreign),
            other => other.map_err(ReadError::Read)?,
        }
        if head[..16] != *MAGIC {
            return Err(ReadError::Foreign);
        }
        let found = u32::from_le_bytes([head[16], head[17], head[18], head[19]]);
        if found != VERSION {
            return Err(ReadError::Version { found });
        }
        let mut reader = Self {
            input,
            at: 20,
            first: None,
            ending: None,
            digest: crc32fast::Hasher::new(),
            start: Start::default(),
        };
        let mut first = reader.read_block().map_err(ReadError::Read)?.ok_or(ReadError::NoStart)?;
        reader.start = first.start.take().ok_or(ReadError::NoStart)?;
        reader.first = Some(first);
        Ok(reader)
    }

    /// `None` at the end, after which [`Self::ending`] says whether that is the recording's.
    ///
    /// # Errors
    /// Those of reading.
    pub fn block(&mut self) -> io::Result<Option<Block>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.ending.is_some() { Ok(None) } else { self.read_block() }
    }

    /// Tells what was read until now from any other recording: of the heads of its blocks, which have a checksum each.
    pub fn digest(&self) -> u32 {
        self.digest.clone().finalize()
    }

    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    fn read_block(&mut self) -> io::Result<Option<Block>> {
        let block = self.whole_block()?;
        match &block {
            None => self.ending = Some(Ending::Cut(self.at)),
            Some(block) if block.end.is_some() => self.ending = Some(Ending::Whole),
            Some(_) => {}
        }
        Ok(block)
    }

    fn whole_block(&mut self) -> io::Result<Option<Block>> {
        let mut head = [0; 20];
        let mut packed = Vec::new();
        if !filled(&mut self.input, &mut head)? || head[..4] != *BLOCK {
            return Ok(None);
        }
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (length, raw_length) = (number(4) as usize, number(8) as usize);
        if length > MOST_PACKED || raw_length > MOST_BYTES {
            return Ok(None);
        }
        packed.resize(length, 0);
        if !filled(&mut self.input, &mut packed)? || crc32fast::hash(&packed) != number(16) {
            return Ok(None);
        }
        let Some(block) = unpacked(&packed, raw_length) else { return Ok(None) };
        self.digest.update(&head);
        self.at += (20 + length) as u64;
        Ok(Some(block))
    }
}

fn filled(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// As zstd packs it. What zstd needs for that is made once in a thread: that takes longer than to pack some kilobytes.
///
/// # Errors
/// If memory fails.
pub(crate) fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    thread_local!(static PACKER: RefCell<Compressor<'static>> = RefCell::new(Compressor::new(1).expect("a level of zstd's")));
    PACKER.with_borrow_mut(|packer| packer.compress(bytes))
}

/// A block in which every name is there and short enough.
fn unpacked(packed: &[u8], raw_length: usize) -> Option<Block> {
    thread_local!(static UNPACKER: RefCell<Decompressor<'static>> = RefCell::new(Decompressor::new().expect("memory")));
    let raw = UNPACKER.with_borrow_mut(|unpacker| unpacker.decompress(packed, raw_length)).ok()?;
    let block: Block = postcard::from_bytes(&raw).ok()?;
    let known = |place: Option<Place>| place.is_none_or(|place| (place.name as usize) < block.names.len());
    let is_sound = block.calls.iter().all(|call| known(call.at) && known(call.to));
    let is_short = |name: &Vec<u8>| name.len() <= MOST_NAME && !name.contains(&0);
    let is_plain = |entry: &Entry| match &entry.node {
        Node::Link { target: name } | Node::Name { of: name } => is_short(&entry.path) && is_short(name),
        Node::Directory | Node::File { .. } | Node::Special => is_short(&entry.path),
    };
    (is_sound && block.names.iter().all(is_short) && block.tree.iter().all(is_plain)).then_some(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Kind;
    use proptest::prelude::*;

    fn recording(calls: u32) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), Start { kernel: "6".into(), ..Start::default() }).expect("memory");
        let node = Node::File { size_bytes: 5, stored_bytes: 5 };
        writer.entry(Entry { path: b"a".to_vec(), mode: 0o644, node }).expect("memory");
        for number in 0..calls {
            let at = writer.place(0, format!("file{}", number % 1000).as_bytes());
            let call =
                Call { kind: Kind::Stat, thread: 1, begin_ns: u64::from(number), at: Some(at), ..Call::default() };
            writer.call(call).expect("memory");
        }
        writer.finish(End { at_ns: 7, status: 0 }).expect("memory").0
    }

    fn read(bytes: &[u8]) -> Option<(usize, Ending)> {
        let mut reader = Reader::new(bytes).ok()?;
        let mut calls = 0;
        while let Some(block) = reader.block().expect("memory") {
            for call in &block.calls {
                let name = format!("file{}", call.begin_ns % 1000);
                assert_eq!(call.at.map(|at| block.name(at)), Some(name.as_bytes()));
            }
            calls += block.calls.len();
        }
        Some((calls, reader.ending().expect("it ended")))
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = recording(20_000);
        assert_eq!(read(&bytes), Some((20_000, Ending::Whole)));
        assert!(bytes.len() < 20_000 * 8, "{}", bytes.len());
    }

    /// With names as long as hashed ones can be, and links as long as the kernel takes them.
    #[test]
    fn whatever_is_written_is_read() {
        let start = Start { command: vec![vec![b'c'; 64 << 10]], ..Start::default() };
        let mut writer = Writer::new(Vec::new(), start).expect("memory");
        for number in 0..3000u32 {
            let node = Node::Link { target: vec![b'0' + (number % 7) as u8; 4095] };
            writer.entry(Entry { path: format!("link{number}").into_bytes(), mode: 0o777, node }).expect("memory");
        }
        for number in 0..200u32 {
            let name: Vec<u8> = number.to_string().into_bytes().into_iter().cycle().take(MOST_NAME).collect();
            let at = Some(writer.place(0, &name));
            writer.call(Call { kind: Kind::Stat, thread: 1, at, ..Call::default() }).expect("memory");
        }
        writer.flush().expect("memory");
        writer.flush().expect("memory");
        let (bytes, _) = writer.finish(End { at_ns: 1, status: 0 }).expect("memory");
        let mut reader = Reader::new(&bytes[..]).expect("a start");
        let mut found = [0, 0];
        while let Some(block) = reader.block().expect("memory") {
            found = [found[0] + block.tree.len(), found[1] + block.calls.len()];
        }
        assert_eq!((reader.ending(), found), (Some(Ending::Whole), [3000, 200]));
    }

    #[test]
    fn parts_of_the_tree_have_no_longer_names_than_calls() {
        let mut writer = Writer::new(Vec::new(), Start::default()).expect("memory");
        let node = Node::Link { target: vec![b'x'; MOST_NAME + 1] };
        writer.entry(Entry { path: b"a".to_vec(), mode: 0o777, node }).expect("memory");
        let (bytes, _) = writer.finish(End { at_ns: 1, status: 0 }).expect("memory");
        assert!(matches!(Reader::new(&bytes[..]), Err(ReadError::NoStart)));
    }

    #[test]
    fn what_was_cut_is_good_to_its_last_whole_block() {
        let bytes = recording(20_000);
        let mut before = 0;
        for length in (21..bytes.len()).step_by(997) {
            if let Some((calls, ending)) = read(&bytes[..length]) {
                assert!(matches!(ending, Ending::Cut(at) if at <= length as u64) && calls >= before);
                before = calls;
            }
        }
        assert!(before >= 8192);
        let mut other = bytes.clone();
        other[16] = 9;
        assert!(matches!(Reader::new(&other[..]), Err(ReadError::Version { found: 9 })));
        assert!(matches!(Reader::new(&b"something else, and long enough"[..]), Err(ReadError::Foreign)));
    }

    proptest! {
        #[test]
        fn damage_is_an_end_and_never_a_panic(at in 0usize..40_000, value: u8) {
            let mut bytes = recording(9_000);
            let at = at % bytes.len();
            bytes[at] = value;
            if let Some((calls, _)) = read(&bytes) {
                prop_assert!(calls <= 9_000);
            }
        }

        /// With a checksum that is right, as somebody's own file has it.
        #[test]
        fn anything_in_a_block_is_read_or_refused(raw in proptest::collection::vec(any::<u8>(), 0..300)) {
            let packed = super::packed(&raw).expect("memory");
            let _ = unpacked(&packed, raw.len());
        }
    }
}
