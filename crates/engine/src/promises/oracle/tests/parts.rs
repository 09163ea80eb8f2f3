//! Parts of files that are cut off, emptied or copied to.

use super::*;

/// A file of four units, all of them promised, and what has been done to it since.
struct Subject {
    place: tempfile::TempDir,
    told: Told,
    file: FileId,
}

const FOUR: [Option<u64>; 4] = [Some(1), Some(2), Some(3), Some(4)];

impl Subject {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a temporary directory");
        let told = Told(Witness::new());
        let name = place.path().join("a");
        let file = told.0.opened(told.0.tick(), &name.to_string_lossy(), 5, true).0;
        (0..4).for_each(|unit| told.write(file, unit * UNIT, unit + 1));
        let subject = Self { place, told, file };
        subject.sync();
        subject
    }

    fn make(&self, part: Range<u64>, what: Made) {
        self.told.change(Change::Made { file: self.file, part, what });
    }

    fn sync(&self) {
        self.told.change(Change::Synced { file: self.file, names: false });
    }

    /// What is found broken where the file has these generations, or zeros.
    fn broken(&self, units: &[Option<u64>], moment: u64) -> Vec<Property> {
        let mut content = vec![0; units.len() * stamp::UNIT];
        for ((at, unit), data) in (0..).step_by(stamp::UNIT).zip(units).zip(content.chunks_mut(stamp::UNIT)) {
            if let Some(generation) = unit {
                stamp::write(data, 1, at, *generation);
            }
        }
        std::fs::write(self.place.path().join("a"), content).expect("ours");
        self.told.look(moment).first.into_iter().map(|broken| broken.property).collect()
    }

    fn now(&self, units: &[Option<u64>]) -> Vec<Property> {
        self.broken(units, self.told.0.moment())
    }
}

/// It was given its generation, and then waited for its page.
#[test]
fn a_mapping_may_be_written_to_after_newer_data() {
    let it = Subject::new();
    it.make(3 * UNIT..4 * UNIT, Made::Mapped);
    it.sync();
    let with = |last: Option<u64>| [Some(1), Some(2), Some(3), last];
    assert!(it.now(&with(Some(2))).is_empty() && it.now(&with(Some(9))).is_empty());
    assert_eq!(it.now(&with(None)), [Property::Data]);
}

#[test]
fn what_a_truncation_leaves_stays_promised() {
    let it = Subject::new();
    let before = it.told.0.moment();
    it.make(2 * UNIT..u64::MAX, Made::End);
    let acknowledged = it.told.0.moment();
    let (lost, damaged) = ([Some(1)], [Some(1), None, Some(3), Some(4)]);
    for moment in [before, acknowledged] {
        // With its effect, without, and with a part of it.
        for units in [&FOUR[..2], &FOUR[..3], &FOUR, &[Some(1), Some(2), None, Some(4)]] {
            assert_eq!(it.broken(units, moment), [], "{units:?}");
        }
        assert_eq!(it.broken(&lost, moment), [Property::Length]);
        assert_eq!(it.broken(&damaged, moment), [Property::Data]);
    }
    it.sync();
    assert_eq!(it.now(&FOUR[..2]), []);
    assert_eq!(it.now(&FOUR), [Property::Length], "it is as it was before");
    assert_eq!(it.now(&lost), [Property::Length]);
    assert_eq!(it.now(&[Some(1), None]), [Property::Data]);
    // A later write may be there or not.
    it.told.write(it.file, 3 * UNIT, 5);
    for units in [&FOUR[..2], &[Some(1), Some(2), None], &[Some(1), Some(2), None, Some(5)]] {
        assert_eq!(it.now(units), [], "{units:?}");
    }
    assert_eq!(it.now(&[Some(1), Some(2), None, Some(5), None]), [Property::Length]);
    it.sync();
    assert_eq!(it.now(&[Some(1), Some(2), None, Some(5)]), []);
    assert_eq!(it.now(&FOUR[..2]), [Property::Length]);
    assert_eq!(it.now(&FOUR), [Property::Data], "an older generation");
}

#[test]
fn a_truncation_within_a_unit_leaves_its_beginning() {
    let it = Subject::new();
    it.make(UNIT + 100..u64::MAX, Made::End);
    it.sync();
    let name = it.place.path().join("a");
    let mut content = vec![0; stamp::UNIT * 2];
    stamp::write(&mut content[..stamp::UNIT], 1, 0, 1);
    stamp::write(&mut content[stamp::UNIT..], 1, UNIT, 2);
    content.truncate(stamp::UNIT + 100);
    std::fs::write(&name, &content).expect("ours");
    assert_eq!(it.told.look(it.told.0.moment()).broken, 0);
    content[stamp::UNIT + 99] ^= 1;
    std::fs::write(&name, &content).expect("ours");
    assert_eq!(it.told.look(it.told.0.moment()).broken, 1);
}

#[test]
fn a_longer_file_is_as_long_after_the_next_sync() {
    for (part, what) in [(8 * UNIT..u64::MAX, Made::End), (8 * UNIT..8 * UNIT, Made::Copied)] {
        let it = Subject::new();
        it.make(part, what);
        let longer = [&FOUR[..], &[None; 4]].concat();
        assert!(it.now(&FOUR).is_empty() && it.now(&longer).is_empty(), "{what:?}");
        it.sync();
        assert!(it.now(&longer).is_empty(), "{what:?}");
        assert_eq!(it.now(&FOUR), [Property::Length], "{what:?}");
        let much_longer = [&longer[..], &[None]].concat();
        assert_eq!(it.now(&much_longer).is_empty(), what == Made::Copied, "nothing cut it: {what:?}");
    }
}

#[test]
fn a_hole_is_zeros_after_the_next_sync_and_the_rest_is_as_it_was() {
    let it = Subject::new();
    it.make(UNIT..3 * UNIT, Made::Zeros);
    let emptied = [Some(1), None, None, Some(4)];
    for units in [&FOUR, &emptied, &[Some(1), None, Some(3), Some(4)]] {
        assert_eq!(it.now(units), [], "{units:?}");
    }
    assert_eq!(it.now(&[None, None, None, Some(4)]), [Property::Data]);
    assert_eq!(it.now(&[Some(1), None, None, None]), [Property::Data]);
    it.sync();
    assert_eq!(it.now(&emptied), []);
    for units in [FOUR, [Some(1), None, Some(3), Some(4)], [Some(1), Some(2), None, Some(4)]] {
        assert_eq!(it.now(&units), [Property::Data], "{units:?}");
    }
    assert_eq!(it.now(&[Some(1), None, None, None]), [Property::Data]);
    assert_eq!(it.now(&emptied[..3]), [Property::Length]);
    // What is written there later may be there, and nothing else.
    it.told.write(it.file, 2 * UNIT, 5);
    for units in [&emptied, &[Some(1), None, Some(5), Some(4)]] {
        assert_eq!(it.now(units), [], "{units:?}");
    }
    assert_eq!(it.now(&[Some(1), Some(5), None, Some(4)]), [Property::Data]);
    it.sync();
    assert_eq!(it.now(&emptied), [Property::Data]);
}

#[test]
fn a_copy_into_a_part_leaves_the_rest_promised() {
    let it = Subject::new();
    it.make(3 * UNIT..6 * UNIT, Made::Copied);
    let copied = [Some(1), Some(2), Some(3), Some(9), Some(9), Some(9)];
    for _ in 0..2 {
        assert_eq!(it.now(&copied), []);
        assert_eq!(it.now(&[Some(1), Some(2), None, None, None, None]), [Property::Data]);
        it.sync();
    }
    assert_eq!(it.now(&FOUR), [Property::Length]);
}

/// Whatever became of it, what lies outside of its part is as it was.
#[test]
fn a_call_that_failed_promises_nothing() {
    let states =
        [&FOUR[..], &[Some(1), Some(2)], &[Some(1), Some(2), None, None], &[Some(1), Some(2), Some(9), None, None]];
    let it = Subject::new();
    it.make(2 * UNIT..u64::MAX, Made::Unknown);
    for _ in 0..2 {
        states.iter().for_each(|units| assert_eq!(it.now(units), [], "{units:?}"));
        assert_eq!(it.now(&[Some(1), None]), [Property::Data]);
        assert_eq!(it.now(&[Some(1)]), [Property::Length]);
        it.sync();
    }
    // A hole, or a write.
    let it = Subject::new();
    it.make(UNIT..2 * UNIT, Made::Unknown);
    for _ in 0..2 {
        assert!(it.now(&FOUR).is_empty() && it.now(&[Some(1), None, Some(3), Some(4)]).is_empty());
        assert_eq!(it.now(&[Some(1), None, None, Some(4)]), [Property::Data]);
        assert_eq!(it.now(&FOUR[..3]), [Property::Length]);
        it.sync();
    }
}

#[test]
fn zeros_far_behind_what_is_read_at_once_are_looked_at() {
    let it = Subject::new();
    let far = Ahead::BYTES + (1 << 20);
    it.make(far..far + 8192, Made::Zeros);
    it.sync();
    let name = it.place.path().join("a");
    let mut content = written(&[(0, 512), (512, 512), (1024, 512), (1536, 512)]);
    content.resize(far as usize + 8192, 7);
    content[far as usize..].fill(0);
    for (changed, broken) in [(None, 0), (Some(far + 8191), 1), (Some(far - 1), 0)] {
        let mut content = content.clone();
        if let Some(at) = changed {
            content[at as usize] = 1;
        }
        std::fs::write(&name, content).expect("ours");
        assert_eq!(it.told.look(it.told.0.moment()).broken, broken, "{changed:?}");
    }
}

/// The zeros at the end of a file may be a hole of it.
#[test]
fn zeros_are_looked_for_behind_holes() {
    let it = Subject::new();
    it.make(4 * UNIT..u64::MAX, Made::Zeros);
    it.sync();
    assert_eq!(it.now(&FOUR), []);
    let file = std::fs::File::options().write(true).open(it.place.path().join("a")).expect("ours");
    file.set_len(1 << 30).expect("sparse");
    assert_eq!(it.told.look(it.told.0.moment()).broken, 0);
    std::os::unix::fs::FileExt::write_all_at(&file, &[1], (1 << 30) - 5).expect("sparse");
    assert_eq!(it.told.look(it.told.0.moment()).broken, 1);
}

/// The second write has a byte of what the first wrote as well, which is all that a hole left of it.
#[test]
fn what_a_hole_leaves_of_a_unit_was_written_at_its_time() {
    let it = Subject::new();
    let written = |begun, offset, bytes, generation| {
        let change = Change::Wrote { file: it.file, offset, bytes, says: Some((1, generation)), durable: false };
        it.told.0.changed(begun, change);
    };
    let begun = it.told.0.tick();
    written(it.told.0.tick(), UNIT - 100, 613, 8);
    it.make(UNIT - 300..2 * UNIT - 50, Made::Zeros);
    written(begun, 2 * UNIT, UNIT, 9);
    it.sync();
    assert_eq!(it.told.promised(it.file), [(3, 4)]);
}

#[derive(Debug, Clone)]
struct Call {
    /// When it begins, has its effect, is asked for the file's length and ends, in this order.
    times: [u64; 4],
    offset: u64,
    bytes: u64,
    kind: Option<Made>,
    /// Of one that fails.
    has_effect: bool,
}

/// Calls of several threads, whose beginnings and ends are in any order.
fn calls() -> impl Strategy<Value = Vec<Call>> {
    let kind = prop_oneof![3 => Just(None), 4 => made().prop_map(Some)];
    let place = prop_oneof![
        (0..6u64, 1..4u64).prop_map(|(unit, units)| (unit * UNIT, units * UNIT)),
        (0..2500u64, 1..1500u64),
    ];
    let call = (prop::array::uniform4(0..400u64), 0..3usize, place, kind, any::<bool>());
    prop::collection::vec(call, 1..9).prop_map(|calls| {
        let times = |number: usize, mut times: [u64; 4], spread: usize| {
            // Many of them run alone.
            let length = [4, 60, 400][spread];
            let first = times[0];
            times[1..].iter_mut().for_each(|time| *time = first + *time % length);
            times.sort_unstable();
            // No two at once, and all after the first.
            [0, 1, 2, 3].map(|place| 11 + (times[place] * 10 + number as u64) * 8 + 2 * place as u64)
        };
        let calls = calls.into_iter().enumerate();
        let made = calls.map(|(number, (drawn, spread, (offset, bytes), kind, has_effect))| Call {
            times: times(number, drawn, spread),
            offset,
            bytes,
            kind,
            has_effect,
        });
        made.collect()
    })
}

impl Call {
    fn apply(&self, content: &mut Vec<u8>, generation: u64) {
        let (offset, end) = (self.offset as usize, (self.offset + self.bytes) as usize);
        let longer = content.len().max(end);
        match self.kind {
            None => {
                content.resize(longer, 0);
                stamp::write(&mut content[offset..end], 1, self.offset, generation);
            }
            Some(Made::Zeros) => {
                let end = end.min(content.len());
                content[offset.min(end)..end].fill(0);
            }
            Some(Made::Copied) => {
                content.resize(longer, 0);
                content[offset..end].fill(7);
            }
            Some(Made::End) => content.resize(offset, 0),
            // Only what is there is mapped. The generation is one that others do not have.
            Some(Made::Mapped) => {
                let (from, end) =
                    (offset / stamp::UNIT * stamp::UNIT, end.next_multiple_of(stamp::UNIT).min(content.len()));
                stamp::write(&mut content[from.min(end)..end], 1, from as u64, 100 + generation);
            }
            Some(Made::Unknown) if self.has_effect => content.resize(offset, 0),
            Some(Made::Unknown) => {}
        }
    }

    fn event(&self, file: FileId, generation: u64, length: u64) -> Event {
        let end = self.offset + self.bytes;
        let part = match self.kind {
            Some(Made::End | Made::Unknown) => self.offset..u64::MAX,
            Some(Made::Mapped) => 0..u64::MAX,
            Some(Made::Zeros) => self.offset..end.min(length).max(self.offset),
            _ => self.offset..end,
        };
        let says = (self.bytes >= stamp::NAME as u64).then_some((1, generation));
        let change = match self.kind {
            None => Change::Wrote { file, offset: self.offset, bytes: self.bytes, says, durable: false },
            Some(what) => Change::Made { file, part, what },
        };
        Event { begun: self.times[0], ended: self.times[3], change }
    }
}

/// The files that were there one after the other, and when: calls have their effects in an order that only they know.
fn contents(calls: &[Call]) -> Vec<(u64, Vec<u8>)> {
    let mut order: Vec<(u64, &Call)> = (1..).zip(calls).collect();
    order.sort_unstable_by_key(|(_, call)| call.times[1]);
    let mut found = vec![(0, Vec::new())];
    for (generation, call) in order {
        let mut content = found.last().expect("the first").1.clone();
        call.apply(&mut content, generation);
        found.push((call.times[1], content));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Each sector, and the length, is what it was when the sync began, or at any time after that.
    #[test]
    fn no_order_of_calls_at_the_same_time_is_taken_for_a_loss(
        calls in calls(),
        synced in prop::array::uniform2(0..8000u64),
        length in any::<prop::sample::Index>(),
        ages in prop::collection::vec(any::<prop::sample::Index>(), 16),
    ) {
        let place = tempfile::tempdir().expect("a temporary directory");
        let name: Arc<str> = place.path().join("a").to_string_lossy().into();
        let file = FileId { inode: 5, incarnation: 1 };
        let contents = contents(&calls);
        let content_at = |time| &contents[contents.partition_point(|(at, _)| *at <= time) - 1].1;
        // Two syncs, each of which covers what had ended when it began.
        let mut synced = synced.map(|time| 10 + time * 8);
        synced.sort_unstable();
        let mut events = vec![Event { begun: 1, ended: 2, change: Change::Named { file, path: Arc::clone(&name), durable: false } }];
        events.extend((1..).zip(&calls).map(|(generation, call)| {
            call.event(file, generation, content_at(call.times[2]).len() as u64)
        }));
        for begun in synced {
            events.push(Event { begun, ended: begun + 1, change: Change::Synced { file, names: true } });
        }
        events.sort_by_key(|event| event.ended);
        let first = contents.partition_point(|(at, _)| *at <= synced[1]) - 1;
        let after = &contents[first..];
        let mut content = vec![0; after[length.index(after.len())].1.len()];
        for (number, (sector, age)) in content.chunks_mut(stamp::UNIT).zip(&ages).enumerate() {
            let of = &after[age.index(after.len())].1;
            let there = of.get(number * stamp::UNIT..).unwrap_or_default();
            let there = &there[..there.len().min(sector.len())];
            sector[..there.len()].copy_from_slice(there);
        }
        std::fs::write(&*name, content).expect("ours");
        for moment in [synced[1] + 2, u64::MAX - 1] {
            let promises = from_the_start(&events, &(moment..u64::MAX));
            let found = promises.look(&mut Reader::default(), false);
            prop_assert_eq!(found.broken, 0, "{:?} {:?}", found.first, promises.files);
        }
    }
}
