//! Which blocks were touched: a bitmap up to [`BITMAP_BLOCKS`], an estimate beyond.

use crate::fileset::Files;
use crate::random::scatter;
use fstone_model::Workload;
use fstone_model::workload::Extent;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Blocks counted exactly, by 32 MiB of bits: 1 TiB in blocks of 4 KiB.
const BITMAP_BLOCKS: u64 = 1 << 28;
/// Registers of the estimate, as a power of two. Its standard error is 1.04 / √registers = 0.8 %.
const REGISTER_BITS: u32 = 14;

/// The blocks of all filesets.
#[derive(Debug)]
pub(crate) struct Touched {
    sets: Vec<Option<Blocks>>,
}

/// The blocks of a fileset whose files all have one size, and on which all actions move blocks of one size.
#[derive(Debug)]
pub(crate) struct Blocks {
    block_bytes: u64,
    /// log2 of the block where it is a power of two, as it nearly always is: shifting costs less than dividing.
    shift: Option<u32>,
    per_file: u64,
    files: u64,
    seen: Seen,
}

#[derive(Debug)]
enum Seen {
    Exact(Box<[AtomicU64]>),
    /// HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007).
    Estimated(Box<[AtomicU8]>),
}

impl Touched {
    /// Watches the filesets whose blocks can be told apart, in the measured phases.
    pub(crate) fn new(workload: &Workload, files: &[Files]) -> Self {
        Self { sets: files.iter().enumerate().map(|(index, files)| Blocks::new(workload, index, files)).collect() }
    }

    /// Watches nothing.
    pub(crate) fn nothing(filesets: usize) -> Self {
        Self { sets: (0..filesets).map(|_| None).collect() }
    }

    /// The blocks of a fileset, if they are watched.
    pub(crate) fn of(&self, fileset: usize) -> Option<&Blocks> {
        self.sets[fileset].as_ref()
    }

    #[inline(always)]
    pub(crate) fn block(&self, fileset: usize, file: u32, offset: u64) {
        if let Some(blocks) = &self.sets[fileset] {
            blocks.touch(file, offset);
        }
    }

    /// Blocks that there are and blocks touched, of a fileset that was watched.
    pub(crate) fn count(&self, fileset: usize) -> Option<BlockCount> {
        self.sets[fileset].as_ref().map(Blocks::count)
    }
}

/// Blocks of a fileset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockCount {
    pub(crate) total: u64,
    pub(crate) touched: f64,
    /// Whether `touched` is an estimate.
    pub(crate) estimated: bool,
}

impl Blocks {
    fn new(workload: &Workload, index: usize, files: &Files) -> Option<Self> {
        let size = files.sizes.fixed().filter(|size| *size > 0)?;
        let mut block_bytes = None;
        for phase in workload.measured_phases() {
            for action in phase.groups.iter().flat_map(|group| group.actions.all()) {
                if !action.works_on(index) {
                    continue;
                }
                let nature = action.operation.nature();
                if nature.changes_names() || nature.changes_sizes() || action.fileset.is_none() {
                    return None;
                }
                let Some(transfer) = nature.transfer else { continue };
                let block = match transfer.extent {
                    Extent::Whole => nature.largest_block,
                    Extent::Bytes(bytes) => bytes.min(nature.largest_block),
                }
                .clamp(1, size);
                if *block_bytes.get_or_insert(block) != block {
                    return None;
                }
            }
        }
        let block_bytes = block_bytes?;
        let per_file = size.div_ceil(block_bytes);
        let total = per_file.checked_mul(files.table.live())?;
        let seen = if total <= BITMAP_BLOCKS {
            Seen::Exact((0..total.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
        } else {
            Seen::Estimated((0..1 << REGISTER_BITS).map(|_| AtomicU8::new(0)).collect())
        };
        let shift = block_bytes.is_power_of_two().then(|| block_bytes.trailing_zeros());
        Some(Self { block_bytes, shift, per_file, files: files.table.live(), seen })
    }

    /// Notes the block that begins at this offset.
    #[inline(always)]
    pub(crate) fn touch(&self, file: u32, offset: u64) {
        let inside = match self.shift {
            Some(shift) => offset >> shift,
            None => offset / self.block_bytes,
        };
        let number = u64::from(file) * self.per_file + inside;
        match &self.seen {
            Seen::Exact(words) => {
                if let Some(word) = words.get((number / 64) as usize) {
                    let bit = 1 << (number % 64);
                    // Looking first keeps the line shared between the processors once all is touched.
                    if word.load(Ordering::Relaxed) & bit == 0 {
                        word.fetch_or(bit, Ordering::Relaxed);
                    }
                }
            }
            Seen::Estimated(registers) => {
                let hash = scatter(number);
                let register = &registers[(hash >> (64 - REGISTER_BITS)) as usize];
                let rank = ((hash << REGISTER_BITS) | 1 << (REGISTER_BITS - 1)).leading_zeros() as u8 + 1;
                if register.load(Ordering::Relaxed) < rank {
                    register.fetch_max(rank, Ordering::Relaxed);
                }
            }
        }
    }

    fn count(&self) -> BlockCount {
        let total = self.per_file * self.files;
        match &self.seen {
            Seen::Exact(words) => {
                let touched: u64 = words.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum();
                BlockCount { total, touched: touched as f64, estimated: false }
            }
            Seen::Estimated(registers) => BlockCount { total, touched: estimate(registers), estimated: true },
        }
    }
}

fn estimate(registers: &[AtomicU8]) -> f64 {
    let count = registers.len() as f64;
    let ranks = || registers.iter().map(|register| register.load(Ordering::Relaxed));
    let sum: f64 = ranks().map(|rank| 0.5f64.powi(i32::from(rank))).sum();
    let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
    let empty = ranks().filter(|rank| *rank == 0).count() as f64;
    // Small counts are better told by how many registers are still empty.
    if raw <= 2.5 * count && empty > 0.0 { count * (count / empty).ln() } else { raw }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(total: u64, seen: Seen) -> Blocks {
        Blocks { block_bytes: 4096, shift: Some(12), per_file: total, files: 1, seen }
    }

    #[test]
    fn a_bitmap_counts_exactly() {
        let exact = blocks(1000, Seen::Exact((0..16).map(|_| AtomicU64::new(0)).collect()));
        for number in (0..1000u64).step_by(3).chain((0..1000).step_by(3)) {
            exact.touch(0, number * 4096 + 17);
        }
        // Beyond the fileset: not ours.
        exact.touch(5, 0);
        assert_eq!(exact.count().touched, 334.0);
    }

    #[test]
    fn an_estimate_is_close() {
        for count in [100u64, 10_000, 50_000, 3_000_000] {
            let estimated =
                blocks(1 << 40, Seen::Estimated((0..1 << REGISTER_BITS).map(|_| AtomicU8::new(0)).collect()));
            for number in 0..count {
                estimated.touch(0, number * 4096);
                estimated.touch(0, number * 4096);
            }
            let found = estimated.count();
            assert!(found.estimated);
            assert!((found.touched / count as f64 - 1.0).abs() < 0.03, "{count}: {}", found.touched);
        }
    }
}
