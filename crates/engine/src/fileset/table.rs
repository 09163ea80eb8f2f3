//! Which files live, how large they are, and who works on them: 16 bytes a file.
//!
//! A file is a number, its name and directory follow from it. Per file there are
//! - a word: size (48 bits), flags, and a count of the threads that share the file;
//! - a place in `order`, a permutation of all numbers whose first `live` entries are the live files, so that a
//!   uniform draw of a live file is one draw of a place, and the name to be used next is the one after them: the
//!   file deleted last (FFSB: a deleted file's path is reused by the next create);
//! - `place`, its inverse.
//!
//! Drawing takes no lock: a stale place leads to a file whose word says that it is gone or busy, and the draw is
//! repeated. Adding and removing files takes a mutex for a few instructions; not while one thread is at work alone,
//! for locked instructions are a good part of what the engine itself costs. Both permutations are stored XOR the
//! identity, so that a fresh table is all zeros and costs memory only where files were created or removed.

use super::growing::Growing;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARERS: u64 = (1 << 12) - 1;
const ALONE: u64 = 1 << 12;
const LIVE: u64 = 1 << 13;
const TOUCHED: u64 = 1 << 14;
const RENAMED: u64 = 1 << 15;
const SIZE_SHIFT: u32 = 16;

/// Largest file size that is kept: 256 TiB less one byte.
pub(crate) const MAX_FILE_BYTES: u64 = u64::MAX >> SIZE_SHIFT;
const MAX_FILES: u64 = u32::MAX as u64;
/// Room for files of filesets that start with none.
const MINIMUM_ROOM: u64 = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Not at all: nothing in this phase needs a file of the set for itself alone.
    Free,
    Shared,
    Alone,
}

impl Hold {
    pub(crate) fn max_with(self, other: Self) -> Self {
        if self == Self::Alone || other == Self::Alone { Self::Alone } else { Self::Shared }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draw {
    File(u32),
    /// It is busy or just gone: draw again.
    Again,
    None,
}

#[derive(Debug)]
pub(crate) struct FileTable {
    words: Growing<AtomicU64>,
    order: Growing<AtomicU32>,
    place: Growing<AtomicU32>,
    live: AtomicU64,
    /// Names ever in use: 0..names.
    names: AtomicU64,
    structure: Mutex<()>,
    alone: AtomicBool,
}

impl FileTable {
    /// With `names` names and no live file.
    pub(crate) fn new(names: u64) -> Self {
        let room = names.max(MINIMUM_ROOM);
        Self {
            words: Growing::new(room),
            order: Growing::new(room),
            place: Growing::new(room),
            live: AtomicU64::new(0),
            names: AtomicU64::new(names),
            structure: Mutex::new(()),
            alone: AtomicBool::new(false),
        }
    }

    /// Has names given out in this order, a permutation of them, of which none is in use.
    pub(crate) fn arrange(&self, order: impl Fn(u64) -> u64) {
        (0..self.names()).for_each(|place| self.put(place, order(place) as u32));
    }

    pub(crate) fn set_alone(&self, alone: bool) {
        self.alone.store(alone, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn live(&self) -> u64 {
        self.live.load(Ordering::Acquire)
    }

    /// Names in use or used before.
    pub(crate) fn names(&self) -> u64 {
        self.names.load(Ordering::Acquire)
    }

    #[inline]
    fn word(&self, file: u32) -> &AtomicU64 {
        self.words.at(u64::from(file))
    }

    #[inline]
    fn file_at(&self, place: u64) -> u32 {
        self.order.at(place).load(Ordering::Relaxed) ^ place as u32
    }

    fn put(&self, place: u64, file: u32) {
        self.order.at(place).store(file ^ place as u32, Ordering::Relaxed);
        self.place.at(u64::from(file)).store(place as u32 ^ file, Ordering::Relaxed);
    }

    fn place_of(&self, file: u32) -> u64 {
        u64::from(self.place.at(u64::from(file)).load(Ordering::Relaxed) ^ file)
    }

    /// A live file by a number drawn from `0..live`, held as `hold`. `drawn` turns a bound into such a number.
    #[inline(always)]
    pub(crate) fn draw(&self, hold: Hold, drawn: impl FnOnce(u64) -> u64) -> Draw {
        let live = self.live();
        if live == 0 {
            return Draw::None;
        }
        let place = if live == 1 { 0 } else { drawn(live) };
        self.take(self.file_at(place), hold)
    }

    /// A live file drawn like that, not held, and noted as touched if it is `measured`; `None` when there is none, and
    /// when the one drawn has another size or just went.
    #[inline(always)]
    pub(crate) fn draw_free(&self, size_bytes: u64, measured: bool, drawn: impl FnOnce(u64) -> u64) -> Option<u32> {
        let live = self.live();
        if live == 0 {
            return None;
        }
        let file = self.file_at(if live == 1 { 0 } else { drawn(live) });
        let word = self.word(file).load(Ordering::Relaxed);
        if word & LIVE == 0 || word >> SIZE_SHIFT != size_bytes {
            return None;
        }
        if measured && word & TOUCHED == 0 {
            self.touch(file);
        }
        Some(file)
    }

    #[inline(always)]
    pub(crate) fn take(&self, file: u32, hold: Hold) -> Draw {
        let word = self.word(file);
        if hold == Hold::Free {
            return if word.load(Ordering::Relaxed) & LIVE != 0 { Draw::File(file) } else { Draw::Again };
        }
        let mut current = word.load(Ordering::Relaxed);
        loop {
            let sharers = current & SHARERS;
            let busy = current & (ALONE | LIVE) != LIVE || sharers == SHARERS || (hold == Hold::Alone && sharers != 0);
            if busy {
                return Draw::Again;
            }
            let next = if hold == Hold::Alone { current | ALONE } else { current + 1 };
            match word.compare_exchange_weak(current, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Draw::File(file),
                Err(seen) => current = seen,
            }
        }
    }

    /// The next live file from this number on, and around, that can be held so; and how many numbers were passed over.
    pub(crate) fn take_from(&self, from: u64, hold: Hold) -> Option<(u32, u64)> {
        let names = self.names();
        if self.live() == 0 {
            return None;
        }
        (0..names).find_map(|passed| {
            let file = ((from % names + passed) % names) as u32;
            (self.take(file, hold) == Draw::File(file)).then_some((file, passed))
        })
    }

    /// The next name from this number on, and around, that is free: held alone and not yet live; and how many numbers were
    /// passed over. `None` when all are in use.
    pub(crate) fn begin_create_from(&self, from: u64) -> Option<(u32, u64)> {
        let _guard = self.lock();
        let (live, names) = (self.live.load(Ordering::Relaxed), self.names.load(Ordering::Relaxed));
        if live >= names {
            return None;
        }
        let (file, passed) = (0..names).find_map(|passed| {
            let file = ((from % names + passed) % names) as u32;
            (self.place_of(file) >= live).then_some((file, passed))
        })?;
        let (place, other) = (self.place_of(file), self.file_at(live));
        self.put(place, other);
        self.put(live, file);
        let word = self.word(file);
        word.store((word.load(Ordering::Relaxed) & TOUCHED) | ALONE, Ordering::Relaxed);
        self.live.store(live + 1, Ordering::Release);
        Some((file, passed))
    }

    pub(crate) fn is_live(&self, file: u32) -> bool {
        u64::from(file) < self.names() && self.word(file).load(Ordering::Relaxed) & LIVE != 0
    }

    #[inline]
    pub(crate) fn release(&self, file: u32, hold: Hold) {
        match hold {
            Hold::Free => {}
            Hold::Shared => {
                self.word(file).fetch_sub(1, Ordering::Release);
            }
            Hold::Alone => {
                self.word(file).fetch_and(!ALONE, Ordering::Release);
            }
        }
    }

    /// A name for a new file, held alone and not yet live; `None` when there are 2^32 files.
    pub(crate) fn begin_create(&self) -> Option<u32> {
        self.begin_create_below(MAX_FILES)
    }

    /// The same, `None` when there are `limit` files.
    pub(crate) fn begin_create_below(&self, limit: u64) -> Option<u32> {
        let _guard = self.lock();
        let live = self.live.load(Ordering::Relaxed);
        if live >= limit.min(MAX_FILES) {
            return None;
        }
        if live == self.names.load(Ordering::Relaxed) {
            self.names.store(live + 1, Ordering::Release);
        }
        let file = self.file_at(live);
        let word = self.word(file);
        word.store((word.load(Ordering::Relaxed) & TOUCHED) | ALONE, Ordering::Relaxed);
        self.live.store(live + 1, Ordering::Release);
        Some(file)
    }

    /// The file that was begun exists now. It is free for all.
    pub(crate) fn finish_create(&self, file: u32, size_bytes: u64) {
        let word = self.word(file);
        let touched = word.load(Ordering::Relaxed) & TOUCHED;
        word.store(touched | LIVE | (size_bytes << SIZE_SHIFT), Ordering::Release);
    }

    /// The file that was begun exists now, is empty, and is held by who made it.
    pub(crate) fn finish_create_held(&self, file: u32, hold: Hold) {
        let word = self.word(file);
        let touched = word.load(Ordering::Relaxed) & TOUCHED;
        let held = match hold {
            Hold::Free => 0,
            Hold::Shared => 1,
            Hold::Alone => ALONE,
        };
        word.store(touched | LIVE | held, Ordering::Release);
    }

    /// The file that is held alone exists no more, or never came to be.
    pub(crate) fn remove(&self, file: u32) {
        let _guard = self.lock();
        let word = self.word(file);
        word.store(word.load(Ordering::Relaxed) & TOUCHED, Ordering::Relaxed);
        let last = self.live.load(Ordering::Relaxed) - 1;
        let (place, other) = (self.place_of(file), self.file_at(last));
        self.put(place, other);
        self.put(last, file);
        self.live.store(last, Ordering::Release);
    }

    /// Keeps other threads from adding and removing, if there are any.
    #[inline]
    fn lock(&self) -> Option<MutexGuard<'_, ()>> {
        (!self.alone.load(Ordering::Relaxed)).then(|| self.structure.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    pub(crate) fn size(&self, file: u32) -> u64 {
        self.word(file).load(Ordering::Relaxed) >> SIZE_SHIFT
    }

    /// Adds to the size; gives what it was before.
    pub(crate) fn grow(&self, file: u32, by_bytes: u64) -> u64 {
        self.word(file).fetch_add(by_bytes << SIZE_SHIFT, Ordering::Relaxed) >> SIZE_SHIFT
    }

    pub(crate) fn raise_size(&self, file: u32, size_bytes: u64) {
        let word = self.word(file);
        let mut current = word.load(Ordering::Relaxed);
        while current >> SIZE_SHIFT < size_bytes {
            let next = (current & !(MAX_FILE_BYTES << SIZE_SHIFT)) | (size_bytes << SIZE_SHIFT);
            match word.compare_exchange_weak(current, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => current = seen,
            }
        }
    }

    /// Sets the size of a file held alone.
    pub(crate) fn set_size(&self, file: u32, size_bytes: u64) {
        let word = self.word(file);
        let flags = word.load(Ordering::Relaxed) & !(MAX_FILE_BYTES << SIZE_SHIFT);
        word.store(flags | (size_bytes << SIZE_SHIFT), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn renamed(&self, file: u32) -> bool {
        self.word(file).load(Ordering::Relaxed) & RENAMED != 0
    }

    /// The file, held alone, goes by its other name now.
    pub(crate) fn rename(&self, file: u32) {
        self.word(file).fetch_xor(RENAMED, Ordering::Relaxed);
    }

    /// Notes that a measured operation worked on the file.
    #[inline(always)]
    pub(crate) fn touch(&self, file: u32) {
        let word = self.word(file);
        let current = word.load(Ordering::Relaxed);
        if current & TOUCHED != 0 {
            return;
        }
        if self.alone.load(Ordering::Relaxed) {
            word.store(current | TOUCHED, Ordering::Relaxed);
        } else {
            word.fetch_or(TOUCHED, Ordering::Relaxed);
        }
    }

    pub(crate) fn was_touched(&self, file: u32) -> bool {
        self.word(file).load(Ordering::Relaxed) & TOUCHED != 0
    }

    pub(crate) fn touched(&self) -> u64 {
        (0..self.names()).filter(|file| self.words.at(*file).load(Ordering::Relaxed) & TOUCHED != 0).count() as u64
    }

    /// The live files in the order of their numbers.
    pub(crate) fn live_files(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.names() as u32).filter(|file| self.word(*file).load(Ordering::Relaxed) & LIVE != 0)
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.live_files().map(|file| self.size(file)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn create(table: &FileTable, size: u64) -> u32 {
        let file = table.begin_create().expect("room");
        table.finish_create(file, size);
        file
    }

    #[test]
    fn a_deleted_name_is_used_next() {
        let table = FileTable::new(3);
        assert_eq!(table.draw(Hold::Shared, |_| 0), Draw::None);
        let files: Vec<u32> = (0..5).map(|size| create(&table, size)).collect();
        assert_eq!(files, [0, 1, 2, 3, 4]);
        assert_eq!(table.take(1, Hold::Alone), Draw::File(1));
        table.remove(1);
        assert_eq!(table.live(), 4);
        assert_eq!(table.names(), 5);
        assert_eq!(table.take(1, Hold::Shared), Draw::Again);
        assert_eq!(create(&table, 9), 1);
        assert_eq!(table.size(1), 9);
        assert_eq!(table.total_bytes(), 2 + 3 + 4 + 9);
    }

    #[test]
    fn holding_excludes() {
        let table = FileTable::new(1);
        let file = create(&table, MAX_FILE_BYTES);
        assert_eq!(table.take(file, Hold::Shared), Draw::File(file));
        assert_eq!(table.take(file, Hold::Shared), Draw::File(file));
        assert_eq!(table.take(file, Hold::Alone), Draw::Again);
        table.release(file, Hold::Shared);
        table.release(file, Hold::Shared);
        assert_eq!(table.take(file, Hold::Alone), Draw::File(file));
        assert_eq!(table.take(file, Hold::Shared), Draw::Again);
        table.rename(file);
        table.set_size(file, 77);
        table.release(file, Hold::Alone);
        assert!(table.renamed(file));
        table.grow(file, 3);
        assert_eq!(table.size(file), 80);
        table.raise_size(file, 70);
        assert_eq!(table.size(file), 80);
        table.raise_size(file, 90);
        assert_eq!(table.size(file), 90);
        assert!(table.renamed(file));
    }

    #[test]
    fn files_and_free_names_are_found_in_turn() {
        let table = FileTable::new(6);
        for _ in 0..4 {
            create(&table, 0);
        }
        assert_eq!(table.take_from(3, Hold::Shared), Some((3, 0)));
        assert_eq!(table.take_from(4, Hold::Shared), Some((0, 2)), "4 and 5 do not exist");
        assert_eq!(table.take_from(0, Hold::Alone), Some((1, 1)), "0 is held");
        table.remove(1);
        assert_eq!(table.take_from(7, Hold::Free), Some((2, 1)), "1 is gone");
        for (from, found) in [(5, (5, 0)), (5, (1, 2)), (9, (4, 1))] {
            assert_eq!(table.begin_create_from(from), Some(found));
            table.finish_create(found.0, 7);
        }
        assert_eq!((table.begin_create_from(0), table.live(), table.size(4)), (None, 6, 7));
        let places: HashSet<u32> = (0..6).map(|place| table.file_at(place)).collect();
        assert_eq!(places.len(), 6);
        assert_eq!(FileTable::new(3).take_from(1, Hold::Free), None);
    }

    #[test]
    fn draws_are_uniform_over_what_lives() {
        let table = FileTable::new(100);
        for _ in 0..100 {
            create(&table, 0);
        }
        for file in (0..100).step_by(2) {
            assert_eq!(table.take(file, Hold::Alone), Draw::File(file));
            table.remove(file);
        }
        let mut random = Random::new(3);
        let mut counts = [0u32; 100];
        for _ in 0..50_000 {
            match table.draw(Hold::Free, |bound| random.below(bound)) {
                Draw::File(file) => counts[file as usize] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(counts.iter().step_by(2).all(|count| *count == 0));
        assert!(counts.iter().skip(1).step_by(2).all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn threads_never_share_what_they_hold_alone() {
        let table = FileTable::new(64);
        for _ in 0..64 {
            create(&table, 0);
        }
        let holders: Vec<AtomicU32> = (0..4096).map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (table, holders) = (&table, &holders);
                scope.spawn(move || {
                    let mut random = Random::new(thread);
                    for _ in 0..20_000 {
                        if random.below(2) == 0 {
                            if let Draw::File(file) = table.draw(Hold::Alone, |bound| random.below(bound)) {
                                assert_eq!(holders[file as usize].swap(1, Ordering::SeqCst), 0);
                                holders[file as usize].store(0, Ordering::SeqCst);
                                table.remove(file);
                            }
                        } else if table.live() < 100 {
                            let file = table.begin_create().expect("room");
                            assert_eq!(holders[file as usize].swap(1, Ordering::SeqCst), 0);
                            holders[file as usize].store(0, Ordering::SeqCst);
                            table.finish_create(file, 1);
                        }
                    }
                });
            }
        });
        assert_eq!(table.live(), table.live_files().count() as u64);
        let places: HashSet<u32> = (0..table.names()).map(|place| table.file_at(place)).collect();
        assert_eq!(places.len() as u64, table.names());
    }

    proptest! {
        #[test]
        fn a_table_is_a_set(steps in prop::collection::vec((any::<bool>(), any::<u64>()), 1..400), names in 0u64..10) {
            let table = FileTable::new(names);
            let mut model: HashSet<u32> = HashSet::new();
            for (add, number) in steps {
                if add {
                    prop_assert!(model.insert(create(&table, number % 1000)));
                } else if let Draw::File(file) = table.draw(Hold::Alone, |bound| number % bound) {
                    prop_assert!(model.remove(&file));
                    table.remove(file);
                } else {
                    prop_assert!(model.is_empty());
                }
                prop_assert_eq!(table.live(), model.len() as u64);
            }
            let live: HashSet<u32> = table.live_files().collect();
            prop_assert_eq!(live, model);
        }
    }
}
