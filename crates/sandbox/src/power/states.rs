//! Which states a power cut could leave, and the content of each.

use super::log::{Entry, Event, Log};
use super::map::{Content, Shown};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Survival {
    All,
    None,
    /// Each is there or not.
    Some,
    /// Each is there or not, and some only in part, in whole sectors.
    Torn,
    /// The latest are there, those before them are not: the disk wrote them in another order.
    Late,
}

const SURVIVALS: [(Survival, &str); 5] = [
    (Survival::All, "all"),
    (Survival::None, "none"),
    (Survival::Some, "some"),
    (Survival::Torn, "torn"),
    (Survival::Late, "late"),
];

/// A state that a power cut could leave. Its name makes it again from the same log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CrashState {
    /// Everything before this event happened, and nothing from it on.
    cut: Event,
    fate: Survival,
    seed: u32,
}

impl CrashState {
    pub const fn cut(&self) -> Event {
        self.cut
    }
}

impl fmt::Display for CrashState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = SURVIVALS.iter().find(|(fate, _)| *fate == self.fate).map_or("", |(_, word)| word);
        write!(f, "{}-{word}-{:x}", self.cut, self.seed)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a crash state; names look like 1523-torn-9f2c")]
pub struct ParseStateError(String);

impl FromStr for CrashState {
    type Err = ParseStateError;

    fn from_str(text: &str) -> Result<Self, ParseStateError> {
        let error = || ParseStateError(text.to_owned());
        let mut parts = text.split('-');
        let (Some(cut), Some(word), Some(seed), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(error());
        };
        let (fate, _) = SURVIVALS.iter().find(|(_, known)| *known == word).ok_or_else(error)?;
        Ok(Self {
            cut: cut.parse().map_err(|_| error())?,
            fate: *fate,
            seed: u32::from_str_radix(seed, 16).map_err(|_| error())?,
        })
    }
}

/// A way in which a disk breaks its own promise. A check of durability that finds nothing on such a disk is broken itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    ForgetsFlushes,
    /// A durable change is there in part.
    Tears,
    /// A durable change is missing while later ones are there.
    Reorders,
}

/// How many of the last durable changes a lying disk may break.
const REACH: usize = 32;

#[derive(Debug)]
pub struct States {
    log: Log,
    /// Between these events the power may be cut.
    window: Range<Event>,
    lie: Option<Lie>,
    /// Changes in the order in which they became durable; those of one flush in the order in which they were completed.
    durable: Vec<u32>,
    /// What is durable, up to the change with this index of `durable`.
    base: Content,
    in_base: usize,
}

impl States {
    /// Of a log, for power cuts in a window of it. A disk that lies is honest before the window.
    pub fn new(log: Log, window: Range<Event>, lie: Option<Lie>) -> Self {
        let mut durable: Vec<u32> = (0u32..)
            .zip(&log.entries)
            .filter(|(_, entry)| match entry.durable {
                Some(at) => lie != Some(Lie::ForgetsFlushes) || at < window.start,
                None => false,
            })
            .map(|(index, _)| index)
            .collect();
        durable.sort_by_key(|&index| (log.entries[index as usize].durable, log.entries[index as usize].completed));
        Self { log, window, lie, durable, base: Content::default(), in_base: 0 }
    }

    /// At most so many states, none of them twice, spread over the window: at the boundaries of flushes and between them, in
    /// the order of their cuts.
    pub fn choose(&self, count: usize, seed: u64) -> Vec<CrashState> {
        let mut random = Random(seed);
        let mut cuts: BTreeSet<Event> = BTreeSet::new();
        let inside = |event: &Event| self.window.contains(event);
        let boundaries: Vec<Event> = self
            .log
            .flushes
            .iter()
            .flat_map(|flush| flush.completed.map(|completed| [completed, completed + 1]))
            .flatten()
            .filter(inside)
            .collect();
        // Half of the cuts at flushes, evenly spread from a random start; the rest anywhere.
        let wanted = count.div_ceil(2).min(boundaries.len());
        for number in 0..wanted {
            let step = boundaries.len() as f64 / wanted as f64;
            let at = ((number as f64 + random.unit()) * step) as usize;
            cuts.insert(boundaries[at.min(boundaries.len() - 1)]);
        }
        let events = self.window.end.saturating_sub(self.window.start);
        // What the last sync of all promised is asked for after the window's last event only.
        if events > 0 {
            cuts.insert(self.window.end - 1);
        }
        for _ in 0..4 * count {
            if cuts.len() >= count || events == 0 {
                break;
            }
            cuts.insert(self.window.start + random.below(events));
        }
        let mut states = BTreeSet::new();
        let cuts: Vec<Event> = cuts.into_iter().collect();
        // Another round over the cuts gives them further fates, until there are enough or nothing new comes.
        for round in 0..SURVIVALS.len() {
            for (number, &cut) in cuts.iter().enumerate() {
                if states.len() >= count {
                    return states.into_iter().collect();
                }
                let decided = self.undecided(cut).next().is_none();
                let fate = if decided { Survival::All } else { SURVIVALS[(number + round) % SURVIVALS.len()].0 };
                // Whatever is not random has but one seed, so that it is not counted twice.
                let random_fate = !matches!(fate, Survival::All | Survival::None) || self.lie.is_some();
                let seed = if random_fate { random.next() as u32 } else { 0 };
                states.insert(CrashState { cut, fate, seed });
            }
        }
        states.into_iter().collect()
    }

    /// The states right after each of these events, whatever became of what was not durable, and others as
    /// [`choose`](Self::choose) has them, so many in all. Of states in which the disk holds the same, only the latest is there,
    /// of which most is asked. In the order of their cuts.
    pub fn choose_after(&mut self, events: &[Event], count: usize, seed: u64) -> Vec<CrashState> {
        let mut random = Random(!seed);
        let mut wanted = BTreeSet::new();
        for cut in events.iter().map(|event| event + 1).filter(|cut| self.window.contains(cut)) {
            let decided = self.undecided(cut).next().is_none();
            for (fate, _) in SURVIVALS {
                let random_fate = !matches!(fate, Survival::All | Survival::None) || self.lie.is_some();
                if fate == Survival::All || !decided || self.lie.is_some() {
                    let seed = if random_fate { random.next() as u32 } else { 0 };
                    wanted.insert(CrashState { cut, fate, seed });
                }
            }
        }
        let more = count.saturating_sub(wanted.len());
        wanted.extend(self.choose(more, seed));
        let mut seen = HashSet::new();
        let mut states: Vec<CrashState> =
            wanted.iter().rev().copied().filter(|state| seen.insert(self.content(*state))).collect();
        // What is decided by chance may be decided otherwise.
        let open: Vec<Event> =
            wanted.iter().map(CrashState::cut).filter(|cut| self.undecided(*cut).count() > 1).collect();
        for _ in 0..3 * count {
            if states.len() >= count || open.is_empty() {
                break;
            }
            let cut = open[random.below(open.len() as u64) as usize];
            let fate = [Survival::Some, Survival::Torn, Survival::Late][random.below(3) as usize];
            let state = CrashState { cut, fate, seed: random.next() as u32 };
            if seen.insert(self.content(state)) {
                states.push(state);
            }
        }
        states.sort();
        states
    }

    /// Changes that may be there or not if the power is cut before this event, in the order in which they arrived.
    fn undecided(&self, cut: Event) -> impl Iterator<Item = &Entry> {
        let forgets = self.lie == Some(Lie::ForgetsFlushes);
        let from = self.window.start;
        let arrived = self.log.entries.partition_point(|entry| entry.arrived < cut);
        self.log.entries[..arrived].iter().filter(move |entry| match entry.durable {
            Some(at) if forgets => at >= from,
            Some(at) => at >= cut,
            None => true,
        })
    }

    fn content(&mut self, state: CrashState) -> Content {
        let mut random = Random(u64::from(state.seed) << 32 | state.cut & 0xffff_ffff);
        let done = self.durable.partition_point(|&index| {
            self.log.entries[index as usize].durable.is_some_and(|durable| durable < state.cut)
        });
        let mut content = match self.lie {
            None | Some(Lie::ForgetsFlushes) => {
                if done < self.in_base {
                    self.base = Content::default();
                    self.in_base = 0;
                }
                for &index in &self.durable[self.in_base..done] {
                    whole(&mut self.base, &self.log.entries[index as usize]);
                }
                self.in_base = done;
                self.base.clone()
            }
            Some(lie) => self.broken(&self.durable[..done], lie, &mut random),
        };
        let undecided: Vec<&Entry> = self.undecided(state.cut).collect();
        let share = random.unit();
        let late_from = random.below(undecided.len().max(1) as u64) as usize;
        for (number, entry) in undecided.into_iter().enumerate() {
            match state.fate {
                Survival::All => whole(&mut content, entry),
                Survival::None => {}
                Survival::Some => {
                    if random.unit() < share {
                        whole(&mut content, entry);
                    }
                }
                Survival::Torn => {
                    if random.unit() < share {
                        self.part(&mut content, entry, &mut random);
                    }
                }
                Survival::Late => {
                    if number >= late_from {
                        whole(&mut content, entry);
                    }
                }
            }
        }
        content
    }

    /// What is durable on a disk that breaks one of the last changes of the window.
    fn broken(&self, durable: &[u32], lie: Lie, random: &mut Random) -> Content {
        let honest = durable.partition_point(|&index| {
            self.log.entries[index as usize].durable.is_some_and(|durable| durable < self.window.start)
        });
        let reach = (durable.len() - honest).min(REACH);
        let victim = (reach > 0).then(|| durable.len() - 1 - random.below(reach as u64) as usize);
        let mut content = Content::default();
        for (number, &index) in durable.iter().enumerate() {
            let entry = &self.log.entries[index as usize];
            match (Some(number) == victim, lie) {
                (true, Lie::Tears) => self.part(&mut content, entry, random),
                (true, _) => {}
                (false, _) => whole(&mut content, entry),
            }
        }
        content
    }

    /// Makes some of a change: its beginning, its end, or sectors here and there; now and then all of it.
    fn part(&self, content: &mut Content, entry: &Entry, random: &mut Random) {
        let sectors = &entry.sectors;
        // By the disk's own borders, wherever the request began.
        let first = sectors.start / self.log.atom;
        let atoms = sectors.end.div_ceil(self.log.atom) - first;
        let at = |atom: u64| ((first + atom) * self.log.atom).clamp(sectors.start, sectors.end);
        match random.below(4) {
            0 => whole(content, entry),
            1 => content.change(entry.change, sectors.start, sectors.start..at(random.below(atoms))),
            2 => content.change(entry.change, sectors.start, at(random.below(atoms))..sectors.end),
            _ => {
                for atom in 0..atoms {
                    if random.below(2) == 0 {
                        content.change(entry.change, sectors.start, at(atom)..at(atom + 1));
                    }
                }
            }
        }
    }

    /// The state as a disk can show it; what is written to it goes to a nameless file in this directory.
    pub(crate) fn shown(&mut self, state: CrashState, directory: &Path) -> io::Result<Shown> {
        let content = self.content(state);
        Shown::new(content, &self.log, directory)
    }

    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// Writes the state into an empty file, which becomes an image of the disk.
    ///
    /// # Errors
    /// When the file cannot be written, or the log not be read.
    pub fn write_image(&mut self, state: CrashState, image: &File) -> io::Result<()> {
        let content = self.content(state);
        Shown::new(content, &self.log, &std::env::temp_dir())?.write_image(image)
    }
}

fn whole(content: &mut Content, entry: &Entry) {
    content.change(entry.change, entry.sectors.start, entry.sectors.clone());
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). It only has to spread, and to be the same everywhere.
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From 0 to below `bound`.
    const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::{Change, LogSpec, LogWriter};
    use super::*;
    use proptest::prelude::*;

    /// A disk of 64 sectors, written one byte value per change.
    struct Disk {
        writer: LogWriter,
        changes: u8,
    }

    impl Disk {
        fn new() -> Self {
            let spec = LogSpec { directory: std::env::temp_dir(), bound_bytes: 1 << 24 };
            let image = tempfile::tempfile().unwrap();
            image.set_len(64 * 512).unwrap();
            Self { writer: LogWriter::new(&spec, &image, 512).unwrap(), changes: 0 }
        }

        /// Writes sectors and completes it at once. Gives the byte they hold.
        fn write(&mut self, sectors: Range<u64>) -> u8 {
            self.changes += 1;
            let data_at = self.writer.position();
            self.writer.add_data(&vec![self.changes; ((sectors.end - sectors.start) * 512) as usize]);
            let logged = self.writer.change(Change::Write { data_at }, sectors).unwrap();
            self.writer.completed(logged, false);
            self.changes
        }

        fn flush(&self) {
            let flush = self.writer.flush().unwrap();
            self.writer.completed(flush, false);
        }

        fn states(&self, lie: Option<Lie>) -> States {
            let log = self.writer.take().unwrap();
            let end = log.events + 1;
            States::new(log, 0..end, lie)
        }
    }

    /// A byte for each sector; sectors are never torn themselves.
    fn sectors(states: &mut States, state: CrashState) -> Vec<u8> {
        let shown = states.shown(state, &std::env::temp_dir()).unwrap();
        let mut bytes = vec![0; 64 * 512];
        shown.read_exact_at(&mut bytes, 0).unwrap();
        bytes
            .chunks(512)
            .map(|sector| {
                assert!(sector.iter().all(|byte| *byte == sector[0]));
                sector[0]
            })
            .collect()
    }

    #[test]
    fn what_was_flushed_is_in_every_state_after_the_flush() {
        let mut disk = Disk::new();
        let kept = disk.write(0..8);
        disk.flush();
        let flushed = disk.writer.take().unwrap().events;
        disk.write(8..16);
        disk.write(16..24);
        let mut states = disk.states(None);
        let mut seen = BTreeSet::new();
        for state in states.choose(200, 1) {
            let sectors = sectors(&mut states, state);
            if state.cut() >= flushed {
                assert_eq!(sectors[..8], [kept; 8], "{state}");
                seen.insert((sectors[8..16].to_vec(), sectors[16..24].to_vec()));
            }
        }
        // Without the second, without the first, torn in many ways.
        assert!(seen.contains(&(vec![2; 8], vec![0; 8])), "{seen:?}");
        assert!(seen.contains(&(vec![0; 8], vec![3; 8])), "{seen:?}");
        assert!(seen.iter().any(|(first, _)| first.contains(&0) && first.contains(&2)), "{seen:?}");
    }

    #[test]
    fn the_end_of_the_window_is_among_the_cuts() {
        let mut disk = Disk::new();
        for number in 0..200 {
            disk.write(number % 40..number % 40 + 8);
            if number % 6 == 5 {
                disk.flush();
            }
        }
        let states = disk.states(None);
        let end = states.window.end;
        for seed in 0..5 {
            assert!(states.choose(20, seed).iter().any(|state| state.cut() == end - 1), "{seed}");
        }
    }

    #[test]
    fn a_state_is_made_again_from_its_name() {
        let mut disk = Disk::new();
        for number in 0..20 {
            disk.write(number..number + 12);
            if number % 6 == 5 {
                disk.flush();
            }
        }
        let mut states = disk.states(None);
        let chosen = states.choose(100, 7);
        assert!(chosen.len() > 50, "{}", chosen.len());
        let first: Vec<Vec<u8>> = chosen.iter().map(|&state| sectors(&mut states, state)).collect();
        let mut again = disk.states(None);
        // In another order: what was shown before makes no difference.
        for (state, expected) in chosen.iter().zip(&first).rev() {
            let named: CrashState = state.to_string().parse().unwrap();
            assert_eq!(&sectors(&mut again, named), expected, "{state}");
        }
        assert!("12-lost-1".parse::<CrashState>().is_err());
        assert!("12-all".parse::<CrashState>().is_err());
        let image = tempfile::tempfile().unwrap();
        states.write_image(chosen[50], &image).unwrap();
        let mut bytes = vec![0; 64 * 512];
        std::os::unix::fs::FileExt::read_exact_at(&image, &mut bytes, 0).unwrap();
        assert!(bytes.chunks(512).zip(&first[50]).all(|(sector, byte)| sector == [*byte; 512]));
    }

    #[test]
    fn no_two_states_after_events_are_the_same_disk() {
        let mut disk = Disk::new();
        let mut ends = Vec::new();
        for number in 0..6 {
            disk.write(number * 8..number * 8 + 8);
            if number % 2 == 0 {
                disk.flush();
            }
            ends.push(disk.writer.take().unwrap().events - 1);
        }
        let mut states = disk.states(None);
        let chosen = states.choose_after(&ends, 80, 4);
        let contents: Vec<Vec<u8>> = chosen.iter().map(|&state| sectors(&mut states, state)).collect();
        let different: BTreeSet<&Vec<u8>> = contents.iter().collect();
        assert_eq!(different.len(), contents.len());
        assert!((20..=80).contains(&chosen.len()), "{}", chosen.len());
        let whole = [1, 2, 3, 4, 5, 6, 0, 0].iter().flat_map(|byte| [*byte; 8]).collect::<Vec<u8>>();
        assert!(contents.contains(&whole), "all of it, at the end");
    }

    #[test]
    fn changes_are_torn_where_the_disk_has_borders() {
        let mut disk = Disk::new();
        disk.write(6..20);
        let log = disk.writer.take().unwrap().torn_at(4096);
        let end = log.events() + 1;
        let mut states = States::new(log, 0..end, None);
        let mut torn = BTreeSet::new();
        for seed in 0..200 {
            let state = CrashState { cut: end - 1, fate: Survival::Torn, seed };
            let sectors = sectors(&mut states, state);
            let pieces = [6..8, 8..16, 16..20].map(|piece: Range<usize>| {
                assert!(sectors[piece.clone()].windows(2).all(|pair| pair[0] == pair[1]), "{state}: {sectors:?}");
                sectors[piece.start]
            });
            torn.insert(pieces);
        }
        assert!(torn.len() > 4, "{torn:?}");
    }

    #[test]
    fn a_disk_that_lies_loses_what_was_flushed() {
        for lie in [Lie::ForgetsFlushes, Lie::Tears, Lie::Reorders] {
            let mut disk = Disk::new();
            for number in 0..6 {
                disk.write(number * 8..number * 8 + 8);
                disk.flush();
            }
            let end = disk.writer.take().unwrap().events;
            let mut states = disk.states(Some(lie));
            let lost = states.choose(100, 3).into_iter().filter(|state| state.cut() >= end - 2).any(|state| {
                let sectors = sectors(&mut states, state);
                (0..5usize).any(|number| sectors[number * 8..number * 8 + 8] != [number as u8 + 1; 8])
            });
            assert!(lost, "{lie:?}");
        }
    }

    proptest! {
        /// Every sector holds its last durable byte or one written after it, and before the cut.
        #[test]
        fn no_state_is_impossible(
            script in proptest::collection::vec((0..60u64, 1..10u64, any::<bool>()), 1..25),
            seed in any::<u64>(),
        ) {
            let mut disk = Disk::new();
            // For each change: sectors, the event after its arrival, and the one that made it durable.
            let mut changes = Vec::new();
            for (start, length, flush) in script {
                let range = start..(start + length).min(64);
                let arrived = disk.writer.take().unwrap().events;
                disk.write(range.clone());
                changes.push((range, arrived));
                if flush {
                    disk.flush();
                }
            }
            let log = disk.writer.take().unwrap();
            let mut states = disk.states(None);
            for state in states.choose(20, seed) {
                let sectors = sectors(&mut states, state);
                for (sector, &byte) in (0u64..).zip(&sectors) {
                    let on_it: Vec<usize> =
                        (0..changes.len()).filter(|&number| changes[number].0.contains(&sector)).collect();
                    let durable = on_it.iter().rposition(|&number| {
                        log.entries[number].durable.is_some_and(|durable| durable < state.cut())
                    });
                    let allowed: Vec<u8> = on_it[durable.unwrap_or(0)..]
                        .iter()
                        .filter(|&&number| changes[number].1 < state.cut())
                        .map(|&number| number as u8 + 1)
                        .collect();
                    let fine = allowed.contains(&byte) || (durable.is_none() && byte == 0);
                    prop_assert!(fine, "{state}: sector {sector} holds {byte}, allowed {allowed:?}");
                }
            }
        }
    }
}
