//! Which blocks were touched, of filesets up to [`MOST_BLOCKS`].

use crate::fileset::Files;
use fstone_model::Workload;
use fstone_model::workload::{Action, ByFileset, Extent, ThreadGroup};
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks that are counted at most, by 32 MiB of bits: 1 TiB in blocks of 4 KiB. Larger filesets are not watched: a load
/// touches so little of them that the count would say nothing.
const MOST_BLOCKS: u64 = 1 << 28;

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
    seen: Box<[AtomicU64]>,
}

impl Touched {
    pub(crate) fn new(workload: &Workload, files: &[Files]) -> Self {
        let actions = ByFileset::of_phases(workload.measured_phases());
        Self { sets: files.iter().enumerate().map(|(index, files)| Blocks::new(&actions, index, files)).collect() }
    }

    pub(crate) fn nothing(filesets: usize) -> Self {
        Self { sets: (0..filesets).map(|_| None).collect() }
    }

    pub(crate) fn of(&self, fileset: usize) -> Option<&Blocks> {
        self.sets[fileset].as_ref()
    }

    #[inline(always)]
    pub(crate) fn block(&self, fileset: usize, file: u32, offset: u64) {
        if let Some(blocks) = &self.sets[fileset] {
            blocks.touch(file, offset);
        }
    }

    pub(crate) fn count(&self, fileset: usize) -> Option<BlockCount> {
        self.sets[fileset].as_ref().map(Blocks::count)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockCount {
    pub(crate) total: u64,
    pub(crate) touched: u64,
}

impl Blocks {
    fn new(actions: &ByFileset<(&ThreadGroup, &Action)>, index: usize, files: &Files) -> Option<Self> {
        let size = files.sizes.fixed().filter(|size| *size > 0)?;
        let mut block_bytes = None;
        for (_, action) in actions.on(index) {
            let nature = action.operation.nature();
            let varies = action.blocks.is_some() || action.handle.is_some() || nature.changes_sizes();
            if nature.changes_names() || varies || action.fileset.is_none() {
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
        let block_bytes = block_bytes?;
        let per_file = size.div_ceil(block_bytes);
        let total = per_file.checked_mul(files.table.live())?;
        if total > MOST_BLOCKS {
            return None;
        }
        let seen = (0..total.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let shift = block_bytes.is_power_of_two().then(|| block_bytes.trailing_zeros());
        Some(Self { block_bytes, shift, per_file, files: files.table.live(), seen })
    }

    #[inline(always)]
    pub(crate) fn touch(&self, file: u32, offset: u64) {
        let inside = match self.shift {
            Some(shift) => offset >> shift,
            None => offset / self.block_bytes,
        };
        let number = u64::from(file) * self.per_file + inside;
        if let Some(word) = self.seen.get((number / 64) as usize) {
            let bit = 1 << (number % 64);
            // Looking first keeps the line shared between the processors once all is touched.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    fn count(&self) -> BlockCount {
        let touched = self.seen.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum();
        BlockCount { total: self.per_file * self.files, touched }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bitmap_counts_exactly() {
        let seen = (0..16).map(|_| AtomicU64::new(0)).collect();
        let blocks = Blocks { block_bytes: 4096, shift: Some(12), per_file: 1000, files: 1, seen };
        for number in (0..1000u64).step_by(3).chain((0..1000).step_by(3)) {
            blocks.touch(0, number * 4096 + 17);
        }
        // Beyond the fileset: not ours.
        blocks.touch(5, 0);
        assert_eq!(blocks.count().touched, 334);
    }
}
