//! What is written: incompressible bytes without repetition unless asked otherwise, cheap enough to make to leave
//! the filesystem as the thing that is measured.
//!
//! Random bytes are made once, in pieces that threads hand round: a thread writes from its piece, in place, without
//! copying, and swaps it for another when it is used up. What a filesystem's compressor or deduplicator could find:
//! - *Within its window*, nothing: what is written comes back [`WINDOW_BYTES`] later at the earliest, which is no less than the
//!   longest compressed extent of today's filesystems (btrfs 128 KiB, bcachefs 256 KiB, f2fs 1 MiB).
//! - *By block*, nothing: every [`UNIT`] bytes written start with 16 bytes that are never written again.

mod ledger;
pub(crate) mod memory;
pub(crate) mod stamp;

use crate::random::{Random, derive, scatter};
use fstone_model::workload::DataPattern;
use ledger::Ledger;
use memory::Aligned;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Granularity of distinctness and compressibility: the block of nearly all filesystems.
const UNIT: usize = 4096;
const MARK: usize = 16;
/// Length of a piece unless blocks are larger.
const PIECE_BYTES: usize = 64 << 10;
const WINDOW_BYTES: usize = 1 << 20;
/// Contents that duplicate blocks have: few, so that nearly every one of them is redundant.
const DUPLICATES: usize = 8;
/// Positions in a piece are multiples of this, which every device accepts for direct I/O.
const POSITION_STEP: usize = 512;

#[derive(Debug)]
pub(crate) struct Depot {
    pattern: DataPattern,
    piece_bytes: usize,
    spare: Mutex<VecDeque<Aligned>>,
    duplicates: Vec<u8>,
    seed: u64,
    sources: AtomicU64,
    generation: AtomicU64,
    ledger: Option<Ledger>,
}

/// The first generation of a load: none that an earlier one wrote, so that a state which that left is not taken for today's.
fn first_generation() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

impl Depot {
    pub(crate) fn new(pattern: DataPattern, largest_block: usize, seed: u64) -> Self {
        let seed = derive(seed, &[DATA_STREAM]);
        let mut random = Random::new(seed);
        let mut duplicates = vec![0; DUPLICATES * UNIT];
        fill(&mut duplicates, &pattern, &mut random);
        let generation = AtomicU64::new(if pattern.stamped { first_generation() } else { 0 });
        let ledger = pattern.stamped.then(Ledger::default);
        Self {
            pattern,
            piece_bytes: PIECE_BYTES.max(largest_block.next_multiple_of(UNIT)),
            spare: Mutex::default(),
            duplicates,
            seed,
            sources: AtomicU64::new(0),
            generation,
            ledger,
        }
    }

    /// The same where somebody else remembers what was written.
    pub(crate) fn without_ledger(self) -> Self {
        Self { ledger: None, ..self }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// What was written last; `None` where data is not stamped.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, VecDeque<Aligned>> {
        self.spare.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn new_piece(&self, number: u64) -> Aligned {
        let mut piece = Aligned::new(self.piece_bytes);
        fill(piece.bytes_mut(), &self.pattern, &mut Random::new(derive(self.seed, &[number])));
        piece
    }

    /// A thread's source of data. Its first use allocates.
    pub(crate) fn source(&self) -> Source<'_> {
        let number = self.sources.fetch_add(1, Ordering::Relaxed);
        Source {
            depot: self,
            piece: None,
            position: 0,
            assembled: Aligned::default(),
            ready: Ready::Assembled(0),
            random: Random::new(derive(self.seed, &[MARK_STREAM, number])),
            // 2^40 marks per source, and 2^24 sources, before any repeats.
            mark: number << 40,
            generation: 0,
        }
    }

    /// How many pieces no thread holds. None where one alone is long enough: a second one would take as much of the processor's cache.
    fn reserve(&self) -> usize {
        WINDOW_BYTES.div_ceil(self.piece_bytes) - 1
    }

    fn exchange(&self, used: Option<Aligned>) -> Aligned {
        let reserve = self.reserve();
        let first = used.is_none();
        let mut spare = self.spare();
        spare.extend(used);
        if first || spare.len() <= reserve {
            let number = self.sources.fetch_add(1, Ordering::Relaxed);
            drop(spare);
            return self.new_piece(number);
        }
        spare.pop_front().expect("more than the reserve")
    }
}

const DATA_STREAM: u64 = 0x6461_7461;
const MARK_STREAM: u64 = 0x6d61_726b;

/// Random bytes, the last `compressible` of every unit zero, or the bytes that are repeated.
fn fill(bytes: &mut [u8], pattern: &DataPattern, random: &mut Random) {
    random.fill(bytes);
    let zeros = (UNIT as f64 * pattern.compressible.clamp(0.0, 1.0)).round() as usize;
    for unit in bytes.chunks_mut(UNIT) {
        let keep = unit.len() - zeros.min(unit.len());
        repeat(&mut unit[keep..], &pattern.repeat);
    }
}

/// The same few bytes again and again; zeros where there are none.
fn repeat(bytes: &mut [u8], few: &[u8]) {
    if few.is_empty() {
        bytes.fill(0);
        return;
    }
    for part in bytes.chunks_mut(few.len()) {
        part.copy_from_slice(&few[..part.len()]);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Destination {
    /// Which file: fileset and number.
    pub(crate) file: u64,
    pub(crate) offset: u64,
}

#[derive(Debug)]
pub(crate) struct Source<'a> {
    depot: &'a Depot,
    piece: Option<Aligned>,
    position: usize,
    /// Where blocks are put together when they are not taken from a piece as they are.
    assembled: Aligned,
    ready: Ready,
    random: Random,
    mark: u64,
    generation: u64,
}

impl Source<'_> {
    /// Makes the pieces that the first writes would make, so that they are not made while these are timed.
    pub(crate) fn stock(&mut self) {
        let DataPattern { stamped, compressible, repeat, .. } = &self.depot.pattern;
        if *stamped || (*compressible == 0.0 && !repeat.is_empty()) || self.piece.is_some() {
            return;
        }
        self.piece = Some(self.depot.exchange(None));
        let mut spare = self.depot.spare();
        while spare.len() < self.depot.reserve() {
            let number = self.depot.sources.fetch_add(1, Ordering::Relaxed);
            spare.push_back(self.depot.new_piece(number));
        }
    }

    /// Makes the next `length` bytes to write ready, in memory aligned for direct I/O when `length` is.
    #[inline]
    pub(crate) fn prepare(&mut self, length: usize, destination: Destination) {
        if self.depot.pattern.stamped {
            self.stamp(length, destination);
        } else if self.depot.pattern.compressible == 0.0 && !self.depot.pattern.repeat.is_empty() {
            self.repeat(length);
        } else if self.depot.pattern.duplicate > 0.0 && self.random.unit() < self.depot.pattern.duplicate {
            self.duplicate(length);
        } else {
            let start = self.advance(length);
            self.ready = Ready::Piece(start, length);
            let piece = self.piece.as_mut().expect("advance fetched one");
            for unit in piece.bytes_mut()[start..start + length].chunks_mut(UNIT) {
                self.mark += 1;
                mark(unit, self.mark);
            }
        }
    }

    #[inline]
    pub(crate) fn block(&self) -> &[u8] {
        match (self.ready, &self.piece) {
            (Ready::Piece(start, length), Some(piece)) => &piece.bytes()[start..start + length],
            (Ready::Assembled(length), _) => &self.assembled.bytes()[..length],
            (Ready::Piece(..), None) => &[],
        }
    }

    pub(crate) fn next(&mut self, length: usize, destination: Destination) -> &[u8] {
        self.prepare(length, destination);
        self.block()
    }

    #[inline]
    fn advance(&mut self, length: usize) -> usize {
        let wanted = length.next_multiple_of(POSITION_STEP);
        if self.piece.is_none() || self.position + wanted > self.depot.piece_bytes {
            let used = self.piece.take();
            self.piece = Some(self.depot.exchange(used));
            self.position = 0;
        }
        let start = self.position;
        self.position += wanted;
        start
    }

    fn assemble(&mut self, length: usize) -> &mut [u8] {
        if self.assembled.bytes().len() < length {
            self.assembled = Aligned::new(length.next_multiple_of(UNIT));
        }
        self.ready = Ready::Assembled(length);
        &mut self.assembled.bytes_mut()[..length]
    }

    /// Every block begins alike, so one is all there is to make.
    fn repeat(&mut self, length: usize) {
        let depot = self.depot;
        let is_made = self.assembled.bytes().len() >= length;
        self.assemble(length);
        if !is_made {
            // All there is room for, which is more than was asked for.
            repeat(self.assembled.bytes_mut(), &depot.pattern.repeat);
        }
    }

    /// One of few blocks of this length, as a whole: who looks for duplicates in larger units than [`UNIT`] finds it, too.
    fn duplicate(&mut self, length: usize) {
        let (depot, first) = (self.depot, self.random.below(DUPLICATES as u64) as usize);
        for (unit, number) in self.assemble(length).chunks_mut(UNIT).zip(first..) {
            let from = number % DUPLICATES * UNIT;
            unit.copy_from_slice(&depot.duplicates[from..from + unit.len()]);
        }
    }

    fn stamp(&mut self, length: usize, destination: Destination) {
        self.generation = self.depot.generation.fetch_add(1, Ordering::Relaxed);
        let generation = self.generation;
        stamp::write(self.assemble(length), destination.file, destination.offset, generation);
    }

    /// Notes whether the bytes made ready last were written.
    #[cold]
    pub(crate) fn settle(&self, length: usize, destination: Destination, written: bool) {
        let Some(ledger) = &self.depot.ledger else { return };
        let Destination { file, offset } = destination;
        if written {
            ledger.wrote(file, offset, length as u64, self.generation);
        } else {
            ledger.unsure(file, offset, length as u64);
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Ready {
    /// Start and length in the piece.
    Piece(usize, usize),
    Assembled(usize),
}

impl Drop for Source<'_> {
    fn drop(&mut self) {
        self.depot.spare().extend(self.piece.take());
    }
}

#[inline]
fn mark(unit: &mut [u8], number: u64) {
    let mut bytes = [0u8; MARK];
    bytes[..8].copy_from_slice(&scatter(number).to_le_bytes());
    bytes[8..].copy_from_slice(&scatter(!number).to_le_bytes());
    // Half a mark is enough for what is shorter than a unit, and keeps it as compressible as it is to be.
    let length = if unit.len() < UNIT { MARK / 2 } else { MARK }.min(unit.len());
    unit[..length].copy_from_slice(&bytes[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const NOWHERE: Destination = Destination { file: 0, offset: 0 };

    fn written(pattern: DataPattern, block: usize, total: usize) -> Vec<u8> {
        let depot = Depot::new(pattern, block, 11);
        let mut data = Vec::with_capacity(total);
        let mut sources: Vec<Source<'_>> = (0..3).map(|_| depot.source()).collect();
        while data.len() < total {
            for source in &mut sources {
                for _ in 0..(256 << 10) / block {
                    data.extend_from_slice(source.next(block, NOWHERE));
                }
            }
        }
        data
    }

    /// Share that zstd removes from extents of 128 KiB.
    fn removed(data: &[u8]) -> f64 {
        let compressed: usize =
            data.chunks(128 << 10).map(|extent| zstd::bulk::compress(extent, 3).expect("memory").len()).sum();
        1.0 - compressed as f64 / data.len() as f64
    }

    fn repeated(data: &[u8]) -> f64 {
        repeated_in(data, UNIT)
    }

    fn repeated_in(data: &[u8], unit: usize) -> f64 {
        let mut counts: HashMap<&[u8], u64> = HashMap::new();
        for block in data.chunks(unit) {
            *counts.entry(block).or_default() += 1;
        }
        let repeated: u64 = counts.values().filter(|count| **count > 1).sum();
        repeated as f64 / (data.len() / unit) as f64
    }

    #[test]
    fn nothing_compresses_or_repeats_by_default() {
        for block in [512, 4096, 16 << 10, 128 << 10] {
            let data = written(DataPattern::default(), block, 8 << 20);
            assert!(removed(&data) < 0.005, "{block}: {}", removed(&data));
            assert_eq!(repeated(&data), 0.0, "{block}");
        }
        // A long window over everything: only what lies further apart than the reserve may repeat.
        let mut data = written(DataPattern::default(), 4096, 1 << 20);
        data.truncate(WINDOW_BYTES);
        let compressed = zstd::bulk::compress(&data, 19).expect("memory").len();
        assert!(compressed as f64 > data.len() as f64 * 0.99, "{compressed}");
    }

    #[test]
    fn what_is_in_stock_is_not_made_while_it_is_written() {
        for (block, made) in [(4096, 17), (512 << 10, 3), (1 << 20, 2), (4 << 20, 2)] {
            let depot = Depot::new(DataPattern::default(), block, 1);
            let mut source = depot.source();
            source.stock();
            source.stock();
            assert_eq!(depot.sources.load(Ordering::Relaxed), made, "the source, and its pieces: {block}");
            for _ in 0..1000 {
                source.next(block, NOWHERE);
            }
            assert_eq!(depot.sources.load(Ordering::Relaxed), made, "{block}");
        }
        let stamped = Depot::new(DataPattern { stamped: true, ..DataPattern::default() }, 4096, 1);
        stamped.source().stock();
        assert_eq!(stamped.sources.load(Ordering::Relaxed), 1, "stamps take no pieces");
    }

    #[test]
    fn compressible_data_hits_its_target() {
        for target in [0.25, 0.5, 0.9] {
            for block in [512, 4096, 64 << 10] {
                let data = written(DataPattern { compressible: target, ..DataPattern::default() }, block, 8 << 20);
                assert!((removed(&data) - target).abs() < 0.02, "{block}: {} for {target}", removed(&data));
                assert_eq!(repeated(&data), 0.0);
            }
        }
    }

    #[test]
    fn duplicates_hit_their_target() {
        for target in [0.2, 0.7] {
            for block in [4096, 64 << 10] {
                let data = written(DataPattern { duplicate: target, ..DataPattern::default() }, block, 32 << 20);
                // Within five standard deviations of so many draws.
                let within = 5.0 * (target * (1.0 - target) / (data.len() / block) as f64).sqrt();
                let found = [UNIT, block].map(|unit| repeated_in(&data, unit));
                assert!(found.iter().all(|share| (share - target).abs() < within), "{block}: {found:?} for {target}");
            }
        }
    }

    #[test]
    fn bytes_are_repeated_from_each_block_on() {
        let repeat = b"abcd\0".to_vec();
        let depot = Depot::new(DataPattern { repeat: repeat.clone(), ..DataPattern::default() }, 4096, 1);
        let mut source = depot.source();
        for length in [7, 4096, 512, 4096] {
            let block = source.next(length, NOWHERE);
            assert!(
                block.len() == length && block.iter().zip(repeat.iter().cycle()).all(|(found, wanted)| found == wanted)
            );
        }
        let half = DataPattern { repeat: b"x".to_vec(), compressible: 0.5, ..DataPattern::default() };
        let data = written(half, 4096, 1 << 20);
        assert!(data.chunks(UNIT).all(|unit| unit[UNIT / 2..].iter().all(|byte| *byte == b'x')));
        assert!((removed(&data) - 0.5).abs() < 0.02, "{}", removed(&data));
    }

    #[test]
    fn direct_io_gets_aligned_memory() {
        for pattern in [
            DataPattern::default(),
            DataPattern { duplicate: 0.5, ..DataPattern::default() },
            DataPattern { stamped: true, ..DataPattern::default() },
            DataPattern { repeat: vec![1, 2, 3], ..DataPattern::default() },
        ] {
            let depot = Depot::new(pattern, 8192, 1);
            let mut source = depot.source();
            for length in [4096, 512, 8192, 1000, 4096] {
                assert_eq!(source.next(length, NOWHERE).as_ptr().align_offset(POSITION_STEP), 0);
            }
        }
    }
}
