//! Which files of a fileset there are, in a form that another rank can go on from.
//!
//! Another rank that looked for itself would read directories and attributes, and find them in its cache afterwards. So it is
//! told: the live files in runs of neighbours of one size, and the numbers that come next.

use super::{FileTable, Files, Numbered};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    first: u64,
    count: u64,
    size: u64,
    renamed: bool,
}

fn runs(table: &FileTable) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for file in table.live_files() {
        let (number, size, renamed) = (u64::from(file), table.size(file), table.renamed(file));
        match runs.last_mut() {
            Some(run) if run.first + run.count == number && run.size == size && run.renamed == renamed => {
                run.count += 1;
            }
            _ => runs.push(Run { first: number, count: 1, size, renamed }),
        }
    }
    runs
}

struct Numbers<'a>(std::slice::ChunksExact<'a, u8>);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        self.0.next().map(|bytes| u64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes")))
    }

    fn count(&mut self, each: usize) -> Option<usize> {
        let count = usize::try_from(self.next()?).ok()?;
        (count.checked_mul(each)? <= self.0.len()).then_some(count)
    }

    fn table(&mut self) -> Option<FileTable> {
        let names = self.next().filter(|names| *names <= u64::from(u32::MAX))?;
        let table = FileTable::new(names);
        for _ in 0..self.count(4)? {
            let (first, count, size, renamed) = (self.next()?, self.next()?, self.next()?, self.next()? != 0);
            for number in first..first.checked_add(count).filter(|end| *end <= names)? {
                let (file, passed) = table.begin_create_from(number)?;
                if passed > 0 {
                    return None;
                }
                table.finish_create(file, size);
                if renamed {
                    table.rename(file);
                }
            }
        }
        Some(table)
    }
}

fn counters(files: &Files) -> [&AtomicU64; 6] {
    [&files.links, &files.next_file, &files.next_name, &files.next_leaf, &files.next_leaf_name, &files.gone_through]
}

impl Files {
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        let mut numbers = Vec::new();
        for table in [&self.table, &self.leaves] {
            let runs = runs(table);
            numbers.extend([table.names(), runs.len() as u64]);
            numbers.extend(runs.iter().flat_map(|run| [run.first, run.count, run.size, u64::from(run.renamed)]));
        }
        numbers.extend(counters(self).map(|counter| counter.load(Ordering::Relaxed)));
        let made = self.made_directories.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.extend([made.next, made.existing.len() as u64]);
        numbers.extend(&made.existing);
        numbers.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Goes on from there; `None`, and nothing of it, when it is no snapshot.
    pub(crate) fn restore(&mut self, snapshot: &[u8]) -> Option<()> {
        let mut numbers = Numbers(snapshot.chunks_exact(8));
        let (table, leaves) = (numbers.table()?, numbers.table()?);
        let mut counts = [0; 6];
        for count in &mut counts {
            *count = numbers.next()?;
        }
        let next = numbers.next()?;
        let existing: Option<Vec<u64>> = (0..numbers.count(1)?).map(|_| numbers.next()).collect();
        let made = Numbered { next, existing: existing? };
        for file in (0..self.table.names().min(table.names())).filter(|file| self.table.was_touched(*file as u32)) {
            table.touch(file as u32);
        }
        (self.table, self.leaves) = (table, leaves);
        for (counter, count) in counters(self).into_iter().zip(counts) {
            counter.store(count, Ordering::Relaxed);
        }
        *self.made_directories.lock().unwrap_or_else(PoisonError::into_inner) = made;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fileset::Sizes;
    use crate::tests_support::fileset;
    use fstone_model::workload::SizeDistribution;
    use proptest::prelude::*;

    fn files(names: u64) -> Files {
        Files::new(&fileset(names), Sizes::new(&SizeDistribution::Fixed(1), 1).expect("sizes"), names)
    }

    proptest! {
        #[test]
        fn what_is_restored_is_what_there_was(steps in prop::collection::vec((0u8..4, 0u64..40, 0u64..3), 0..200)) {
            let one = files(40);
            for (step, number, size) in steps {
                match step {
                    0 | 1 => if let Some((file, _)) = one.table.begin_create_from(number) {
                        one.table.finish_create(file, size);
                    },
                    2 => if one.table.is_live(number as u32) {
                        one.table.remove(number as u32);
                    },
                    _ => if one.table.is_live(number as u32) {
                        one.table.rename(number as u32);
                    },
                }
                one.next_name.fetch_add(1, Ordering::Relaxed);
                one.made_directories.lock().expect("nobody panicked").existing.push(number);
            }
            let mut other = files(40);
            prop_assert!(other.restore(&one.snapshot()).is_some());
            prop_assert_eq!(runs(&other.table), runs(&one.table));
            prop_assert_eq!(other.table.live(), one.table.live());
            prop_assert_eq!(other.snapshot(), one.snapshot());
            // What is cut short is no snapshot, and changes nothing.
            let (whole, mut fresh) = (one.snapshot(), files(40));
            let before = fresh.snapshot();
            prop_assert!(fresh.restore(&whole[..whole.len() - 8]).is_none());
            prop_assert_eq!(fresh.snapshot(), before);
        }
    }
}
