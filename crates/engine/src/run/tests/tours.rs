//! Which blocks come when threads go through files on a tour.

use super::*;
use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    /// What was moved: whether it was written, where, and how much.
    pub(super) static MOVED: RefCell<Vec<(bool, u64, u64)>> = const { RefCell::new(Vec::new()) };
}

pub(super) struct Noting;

impl Io for Noting {
    const REAL: bool = false;

    plain! {
        open close truncate fsync fdatasync advise syncfs fallocate stat unlink rename link symlink mkdir rmdir
        chmod utimens setxattr getxattr copy_file_range reflink list
    }

    fn new(_: Setup) -> std::result::Result<Self, SetupError> {
        Ok(Self)
    }

    fn read(&mut self, _: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        MOVED.with_borrow_mut(|moved| moved.push((false, offset, buffer.len() as u64)));
        Ok(buffer.len())
    }

    fn write(&mut self, _: Fd, data: &[u8], offset: u64) -> Result<usize> {
        MOVED.with_borrow_mut(|moved| moved.push((true, offset, data.len() as u64)));
        Ok(data.len())
    }
}

const BLOCK: u64 = 4096;

fn permuted() -> Pattern {
    Pattern::Random { distribution: Distribution::Permutation, align_bytes: BLOCK }
}

fn transfer(pattern: Pattern) -> Transfer {
    Transfer { pattern, ..block() }
}

fn reading(pattern: Pattern, fileset: u32) -> Action {
    Action::new("read", Operation::Read(transfer(pattern)), Some(fileset))
}

fn writing(pattern: Pattern, fileset: u32) -> Action {
    Action::new("write", Operation::Write(transfer(pattern)), Some(fileset))
}

/// What a thread moves on a tour through a file of each of these sizes, with these actions and weights, and how often each was done.
fn moved(sizes: &[u64], tour: Tour, actions: Vec<(u32, Action)>, stop: Stop) -> (Vec<(bool, u64, u64)>, Vec<u64>) {
    let mix = actions.into_iter().map(|(weight, action)| Weighted { weight, action }).collect();
    let mut group = ThreadGroup { open: OpenPolicy::KeepOpen, ..ThreadGroup::new("group", 1, Actions::Mix(mix)) };
    (group.tour, group.stop) = (Some(tour), stop);
    on_files(sizes, group)
}

fn on_files(sizes: &[u64], group: ThreadGroup) -> (Vec<(bool, u64, u64)>, Vec<u64>) {
    let mut load = workload(1, vec![group], Stop::default(), null(1));
    let fileset = |(place, size): (usize, &u64)| {
        let mut fileset = Fileset::new(format!("{place}"), Amount::Files(1), SizeDistribution::Fixed(*size));
        fileset.directory = format!("{place}");
        fileset
    };
    load.filesets = sizes.iter().enumerate().map(fileset).collect();
    MOVED.take();
    let (operations, errors) = carried_out(&load, Path::new("."), |load| drive::<Noting>(load, 0));
    assert!(errors.is_empty(), "{errors:?}");
    (MOVED.take(), operations.iter().map(|operation| operation.invocations).collect())
}

fn operations(count: u64) -> Stop {
    Stop { operations: Some(count), ..Stop::default() }
}

fn once() -> Stop {
    Stop { once_through: true, ..Stop::default() }
}

/// fio has one random map for both, and meets each of 1,024 blocks of `rw=randrw bs=4k size=4m`.
#[test]
fn reads_and_writes_share_one_order() {
    for actions in [1, 3] {
        let mix = vec![(actions, reading(permuted(), 0)), (1, writing(permuted(), 0))];
        let (moved, counts) = moved(&[1024 * BLOCK], Tour::InTurn, mix, operations(2048));
        assert!(counts.iter().all(|count| *count > 300), "{counts:?}");
        for round in moved.chunks(1024) {
            assert_eq!(round.iter().map(|(_, offset, _)| *offset).collect::<BTreeSet<u64>>().len(), 1024);
        }
        assert_ne!(moved[..1024], moved[1024..], "each round has an order of its own");
    }
}

#[test]
fn blocks_of_several_sizes_share_one_map() {
    let sizes = SizeDistribution::Weighted(vec![(BLOCK, 1), (4 * BLOCK, 1)]);
    let drawn = |action: Action| {
        let mut action = Action { blocks: Some(sizes.clone()), ..action };
        let large = Transfer { extent: Extent::Bytes(4 * BLOCK), block_bytes: 4 * BLOCK, ..transfer(permuted()) };
        *action.operation.transfer_mut().expect("it moves data") = large;
        action
    };
    let mix = vec![(1, drawn(reading(permuted(), 0))), (1, drawn(writing(permuted(), 0)))];
    let (moved, _) = moved(&[512 * BLOCK], Tour::InTurn, mix, once());
    let mut places: Vec<u64> =
        moved.iter().flat_map(|(_, offset, length)| (0..length / BLOCK).map(move |on| offset / BLOCK + on)).collect();
    places.sort_unstable();
    assert_eq!(places, (0..512).collect::<Vec<u64>>());
    assert!(moved.len() < 450, "some blocks are large: {}", moved.len());
}

/// As in fio: the sequential part of each direction goes on behind its last block, be it random, and at the end a random one comes in its
/// place.
#[test]
fn a_cursor_goes_on_behind_the_last_random_block() {
    let cursor = Pattern::Cursor { shared: false };
    let uniform = Pattern::Random { distribution: Distribution::Uniform, align_bytes: BLOCK };
    let mix =
        vec![(1, reading(uniform, 0)), (3, reading(cursor, 0)), (1, writing(uniform, 0)), (3, writing(cursor, 0))];
    let (moved, counts) = moved(&[1024 * BLOCK], Tour::InTurn, mix, operations(8000));
    assert_eq!(counts.iter().sum::<u64>(), 8000);
    let (mut ends, mut follow) = ([0; 2], 0);
    for (write, offset, length) in &moved {
        let end = &mut ends[usize::from(*write)];
        follow += u64::from(*end == *offset);
        *end = offset + length;
    }
    // Of 8,000 about 6,000 are by a cursor, and few come to the file's end.
    let by_cursor = counts[1] + counts[3];
    assert!(follow <= by_cursor + 40 && follow + 200 > by_cursor, "{follow} of {by_cursor}");
}

/// As fio's `roundrobin:N` and `random:N`.
#[test]
fn several_blocks_of_a_file_come_before_the_next_file() {
    let sizes = [10 * BLOCK; 3];
    let mix: Vec<Weighted> = (0..3)
        .map(|fileset| Weighted { weight: 1, action: reading(Pattern::Cursor { shared: false }, fileset) })
        .collect();
    for tour in [Tour::InTurn, Tour::Drawn] {
        let mut group =
            ThreadGroup { open: OpenPolicy::KeepOpen, ..ThreadGroup::new("group", 1, Actions::Mix(mix.clone())) };
        (group.tour, group.tour_operations, group.stop) = (Some(tour), 4, once());
        let moved = on_files(&sizes, group).0;
        // A file's offsets rise: a row of them ends where they fall, or are the next file's.
        let (first, last) = (&moved[..4], &moved[28..]);
        assert!(first.iter().zip(0..).all(|((_, offset, _), block)| *offset == block * BLOCK), "{tour:?} {moved:?}");
        assert_eq!((moved.len(), last[1].1 - last[0].1), (30, BLOCK), "{tour:?} {moved:?}");
        if tour == Tour::InTurn {
            let starts: Vec<u64> = moved.chunks(4).take(6).map(|row| row[0].1 / BLOCK).collect();
            assert_eq!(starts, [0, 0, 0, 4, 4, 4]);
        }
    }
}

#[test]
fn each_file_is_finished_before_any_is_begun_anew() {
    let sizes = [16 * BLOCK, 64 * BLOCK + 100, 4 * BLOCK];
    for pattern in [permuted(), Pattern::Cursor { shared: false }] {
        let all = || (0..3).map(|fileset| (1, reading(pattern, fileset))).collect::<Vec<_>>();
        for tour in [Tour::InTurn, Tour::OneByOne, Tour::Drawn] {
            assert_eq!(moved(&sizes, tour, all(), once()).1, [16, 64, 4], "{tour:?} {pattern:?}");
            assert_eq!(moved(&sizes, tour, all(), operations(2 * 84)).1, [32, 128, 8], "{tour:?} {pattern:?}");
        }
        assert_eq!(moved(&sizes, Tour::InTurn, all(), operations(12)).1, [4, 4, 4], "{pattern:?}");
        assert_eq!(moved(&sizes, Tour::InTurn, all(), operations(14)).1, [5, 5, 4], "{pattern:?}");
        assert_eq!(moved(&sizes, Tour::OneByOne, all(), operations(18)).1, [16, 2, 0], "{pattern:?}");
    }
}

#[test]
fn a_tour_without_a_block_is_an_error() {
    let mix = vec![Weighted { weight: 1, action: reading(permuted(), 0) }];
    let mut group = ThreadGroup { open: OpenPolicy::KeepOpen, ..ThreadGroup::new("group", 1, Actions::Mix(mix)) };
    (group.tour, group.stop) = (Some(Tour::InTurn), operations(10));
    let mut load = workload(1, vec![group], Stop::default(), null(1));
    load.filesets[0].size = SizeDistribution::Fixed(BLOCK - 1);
    let (_, errors) = carried_out(&load, Path::new("."), |load| drive::<Noting>(load, 0));
    assert_eq!(errors.len(), 1, "{errors:?}");
}

#[test]
fn what_cannot_be_part_of_a_tour_is_refused() {
    let shared = Pattern::Cursor { shared: true };
    let chosen = Action { choice: FileChoice::RoundRobin, ..reading(permuted(), 0) };
    for (action, fits) in [(reading(permuted(), 0), true), (reading(shared, 0), false), (chosen, false)] {
        for tour in [None, Some(Tour::InTurn)] {
            let mix = vec![Weighted { weight: 1, action: action.clone() }];
            let mut group = ThreadGroup::new("group", 1, Actions::Mix(mix));
            (group.tour, group.stop) = (tour, operations(10));
            let load = workload(1, vec![group], Stop::default(), null(1));
            assert_eq!(crate::plan::check(&load).is_ok(), fits || tour.is_none(), "{action:?}");
        }
    }
}
