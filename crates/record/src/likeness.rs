//! A workload that resembles a recording: what is done to files, how often, in which sizes, by how many threads and with which pauses.
//!
//! Calls on an open file are one operation if together they are one of a workload's: making a file, reading it whole.

use crate::call::{Block, Call, Kind, Node, Place};
use crate::file::Reader;
use crate::trace::joined;
use fstone_model::workload::{
    Action, Actions, Amount, DataPattern, Directories, Distribution, ErrorPolicy, Extent, FileChoice, Fileset,
    FinalSync, IoSettings, OpenPolicy, Operation, Pattern, Phase, SizeDistribution, Stop, ThreadGroup, Transfer,
    Weighted, Workload,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read};
use std::time::Duration;

/// Of sizes, how many are remembered; others are like these.
const MOST_SIZES: usize = 1 << 16;
/// The largest block of the workload.
const MOST_BLOCK: u64 = 64 << 20;

pub struct Likeness {
    pub workload: Workload,
    pub calls: u64,
    /// Calls that are part of the workload's operations.
    pub covered: u64,
    pub left_out: BTreeMap<&'static str, u64>,
    /// What its speed is, where the recording does not say how long calls took.
    pub speed: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Did {
    Create { synced: bool },
    ReadWhole,
    ReadFromStart,
    ReadAnywhere,
    WriteAnywhere,
    Append,
    OpenClose,
    Called(Kind),
}

impl Did {
    const fn makes(self) -> bool {
        matches!(self, Self::Create { .. })
    }
}

/// What the workload's speed comes from.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// Pauses, of all threads.
    Think {
        ns: u64,
    },
    Rate {
        elapsed_ns: u64,
    },
    Free,
}

#[derive(Debug, Default)]
struct Sizes {
    count: u64,
    bytes: u64,
    /// The first ones.
    sample: Vec<u64>,
}

#[derive(Debug, Default)]
struct Seen {
    count: u64,
    on_new: u64,
    /// Of a call, and of all calls of one operation.
    blocks: Sizes,
    sums: Sizes,
}

/// An open file.
#[derive(Debug, Default)]
struct Session {
    path: Vec<u8>,
    is_new: bool,
    appends: bool,
    /// The kernel's, and where the last read or write ended.
    position: u64,
    ended: u64,
    reads: Sizes,
    /// Of a new file, those that made it longer.
    grew: Sizes,
    writes: Sizes,
    wrote_behind: bool,
    jumped: bool,
    syncs: Vec<Kind>,
    other: bool,
}

#[derive(Debug, Default)]
struct Looking {
    /// Files by the hash of their names: their size, and whether the program made them.
    files: HashMap<u64, (u64, bool)>,
    open: HashMap<u32, Session>,
    /// By the hash of their names.
    made_directories: HashSet<u64>,
    seen: BTreeMap<Did, Seen>,
    covered: u64,
    left_out: BTreeMap<&'static str, u64>,
}

impl Sizes {
    fn note(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.sample.len() < MOST_SIZES {
            self.sample.push(bytes);
        }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        let room = MOST_SIZES - self.sample.len();
        self.sample.extend(other.sample.iter().take(room));
    }

    /// As blocks of the workload.
    fn limited(&self) -> Vec<u64> {
        self.sample.iter().map(|bytes| (*bytes).clamp(1, MOST_BLOCK)).collect()
    }

    fn mean(&self, otherwise: u64) -> u64 {
        self.bytes.checked_div(self.count).unwrap_or(otherwise)
    }

    fn median(&self, otherwise: u64) -> u64 {
        let mut sizes = self.sample.clone();
        sizes.sort_unstable();
        sizes.get(sizes.len() / 2).copied().unwrap_or(otherwise)
    }
}

fn hash(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

/// Sizes by their magnitude.
fn distribution(sizes: &[u64]) -> SizeDistribution {
    let mut groups: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for size in sizes {
        let (sum, count) = groups.entry(64 - size.leading_zeros()).or_default();
        (*sum, *count) = (sum.saturating_add(*size), *count + 1);
    }
    let weighted: Vec<(u64, u32)> =
        groups.values().map(|(sum, count)| (sum / count, (*count).min(1 << 20) as u32)).collect();
    match weighted[..] {
        [] => SizeDistribution::Fixed(4096),
        [(size, _)] => SizeDistribution::Fixed(size),
        _ => SizeDistribution::Weighted(weighted),
    }
}

/// Reads a recording to its end, and makes a workload of what it has.
///
/// # Errors
/// Those of reading.
pub fn likeness<R: Read>(reader: &mut Reader<R>, name: &str) -> io::Result<Likeness> {
    let mut looking = Looking::default();
    let (mut calls, mut think_ns, mut busy_ns, mut elapsed_ns, mut directories) = (0, 0u64, 0u64, 0u64, 0);
    let mut old = Sizes::default();
    let mut of_threads_ns: HashMap<u32, u64> = HashMap::new();
    while let Some(block) = reader.block()? {
        for entry in &block.tree {
            match entry.node {
                Node::File { size_bytes, .. } => {
                    old.note(size_bytes);
                    looking.files.insert(hash(&entry.path), (size_bytes, false));
                }
                Node::Directory => directories += 1,
                _ => {}
            }
        }
        for call in &block.calls {
            think_ns = think_ns.saturating_add(call.think_ns);
            elapsed_ns = elapsed_ns.max(call.begin_ns.saturating_add(call.took_ns));
            // With its waits, the longest thread took as long as the program, without what recording cost.
            let of_thread_ns = of_threads_ns.entry(call.thread).or_insert(0u64);
            *of_thread_ns = of_thread_ns.saturating_add(call.think_ns).saturating_add(call.took_ns);
            if call.is_sleep() {
                (think_ns, busy_ns) = (think_ns.saturating_add(call.took_ns), busy_ns.saturating_add(call.took_ns));
            }
            if !matches!(call.kind, Kind::Wait | Kind::Wakeup) {
                busy_ns = busy_ns.saturating_add(call.think_ns).saturating_add(call.took_ns);
            }
            if !call.kind.is_of_threads() {
                let covered = looking.covered;
                looking.call(&block, call);
                if call.counts() {
                    calls += 1;
                } else {
                    looking.covered = covered;
                }
            }
        }
    }
    for (_, session) in std::mem::take(&mut looking.open) {
        looking.closed(session);
    }
    let files = old.count.max(looking.files.values().filter(|(_, is_new)| !is_new).count() as u64);
    let pace = match (reader.start.has_times(), reader.start.has_durations()) {
        (_, true) => Pace::Think { ns: think_ns },
        (true, false) if elapsed_ns > 0 => Pace::Rate { elapsed_ns },
        (_, false) => Pace::Free,
    };
    // As many as did not wait for others, on average.
    let program_ns = of_threads_ns.into_values().max().unwrap_or(0).clamp(1, elapsed_ns.max(1));
    let threads = (busy_ns as f64 / program_ns as f64).round().clamp(1.0, 256.0) as u32;
    Ok(looking.workload(name, calls, (pace, threads), (files, directories, &old.sample)))
}

impl Looking {
    fn path(&self, block: &Block, place: Place) -> Vec<u8> {
        let base = self.open.get(&place.base).map_or(&[][..], |session| &session.path);
        joined(base, block.name(place))
    }

    fn did(&mut self, what: Did, is_new: bool) -> &mut Seen {
        let seen = self.seen.entry(what).or_default();
        seen.count += 1;
        seen.on_new += u64::from(is_new);
        seen
    }

    fn call(&mut self, block: &Block, call: &Call) {
        if call.result < 0 && call.kind != Kind::Map {
            *self.left_out.entry("calls that failed").or_default() += 1;
            return;
        }
        let at = call.at.map(|at| self.path(block, at));
        if call.kind == Kind::Open {
            let path = at.unwrap_or_default();
            let has = |flag: i32| call.flags & flag as u32 == flag as u32;
            let is_new = has(libc::O_TMPFILE)
                || has(libc::O_CREAT) && (has(libc::O_TRUNC) || !self.files.contains_key(&hash(&path)));
            if is_new {
                self.files.insert(hash(&path), (0, true));
            }
            self.covered += 1;
            let session = Session { path, is_new, appends: has(libc::O_APPEND), ..Session::default() };
            if let Some(before) = self.open.insert(call.other, session) {
                self.closed(before);
            }
            return;
        }
        if call.kind == Kind::Close {
            if let Some(session) = self.open.remove(&call.file) {
                self.covered += 1;
                self.closed(session);
            }
            return;
        }
        let is_placed = matches!(call.kind, Kind::Pread | Kind::Preadv | Kind::Pwrite | Kind::Pwritev);
        // preadv2 and pwritev2 take -1 for the position, as copies do.
        let given = |offset: i64| u64::try_from(offset).ok();
        let from = given(call.offset).filter(|_| is_placed && call.vector_flags() & libc::RWF_APPEND == 0);
        if call.kind.reads() || call.kind.writes() {
            let is_known = self.moved(call.file, from, call.result as u64, call.kind.writes());
            self.covered += u64::from(is_known);
            return;
        }
        if call.kind.is_copy() {
            let reads = self.moved(call.file, given(call.offset), call.result as u64, false);
            let writes = self.moved(call.other, given(call.other_offset), call.result as u64, true);
            self.covered += u64::from(reads || writes);
            return;
        }
        if let Some(session) = self.open.get_mut(&call.file).filter(|_| at.is_none()) {
            match call.kind {
                Kind::Seek => {
                    self.covered += 1;
                    session.position = call.result as u64;
                    return;
                }
                Kind::SetFlags => {
                    self.covered += 1;
                    session.appends = call.flags & libc::O_APPEND as u32 != 0;
                    return;
                }
                Kind::Fsync | Kind::Fdatasync => {
                    self.covered += 1;
                    session.syncs.push(call.kind);
                    return;
                }
                Kind::Getdents => {
                    self.covered += 1;
                    if !std::mem::replace(&mut session.other, true) {
                        self.did(Did::Called(Kind::Getdents), false);
                    }
                    return;
                }
                _ => {}
            }
        }
        let known = at.as_ref().and_then(|at| self.files.get(&hash(at)).copied());
        let is_new = known.is_some_and(|(_, is_new)| is_new);
        match (call.kind, at) {
            (Kind::Unlink, Some(path)) => drop(self.files.remove(&hash(&path))),
            (Kind::Mkdir, Some(path)) => _ = self.made_directories.insert(hash(&path)),
            // The workload has none but those that it makes.
            (Kind::Rmdir, Some(path)) if !self.made_directories.remove(&hash(&path)) => {
                *self.left_out.entry("rmdir of directories that were there before").or_default() += 1;
                return;
            }
            (Kind::Rename, Some(from)) => {
                if let (true, Some(to)) = (self.made_directories.remove(&hash(&from)), call.to) {
                    self.made_directories.insert(hash(&self.path(block, to)));
                }
                if let (Some(known), Some(to)) = (self.files.remove(&hash(&from)), call.to) {
                    let to = self.path(block, to);
                    self.files.insert(hash(&to), known);
                }
            }
            _ => {}
        }
        match operation(call.kind, 1) {
            Some(_) => {
                self.covered += 1;
                self.did(Did::Called(alike(call.kind)), is_new).sums.note(call.length);
            }
            None => *self.left_out.entry(call.kind.name()).or_default() += 1,
        }
    }

    /// Whether the file is known.
    fn moved(&mut self, number: u32, from: Option<u64>, bytes: u64, writes: bool) -> bool {
        let Some(session) = self.open.get_mut(&number) else { return false };
        let (size, _) = self.files.entry(hash(&session.path)).or_insert((0, session.is_new));
        let begins = if writes && session.appends { *size } else { from.unwrap_or(session.position) };
        let behind = writes && (session.appends || begins >= *size && *size > 0);
        let ended = begins.saturating_add(bytes);
        let grows = writes && session.is_new && ended > *size;
        session.jumped |= begins != session.ended && !behind;
        session.wrote_behind |= behind;
        session.ended = ended;
        if from.is_none() {
            session.position = session.ended;
        }
        if writes {
            *size = (*size).max(ended);
            if grows { &mut session.grew } else { &mut session.writes }.note(bytes);
        } else if bytes > 0 {
            session.reads.note(bytes);
        }
        true
    }

    /// What the calls on an open file were together.
    fn closed(&mut self, session: Session) {
        let Session { path, is_new, reads, grew, writes, wrote_behind, jumped, mut syncs, other, .. } = session;
        let size = self.files.get(&hash(&path)).map(|(size, _)| *size);
        if is_new {
            // What made it longer is part of making it; the rest are operations on it.
            let synced = !jumped && syncs.len() == 1;
            if synced {
                syncs.clear();
            }
            let seen = self.did(Did::Create { synced }, true);
            seen.blocks.add(&grew);
            seen.sums.note(grew.bytes);
        }
        for kind in syncs {
            self.did(Did::Called(kind), is_new);
        }
        if writes.count == 0 && reads.count > 0 && !jumped {
            let whole = reads.bytes.saturating_mul(10) >= size.unwrap_or(0).saturating_mul(9);
            let seen = self.did(if whole { Did::ReadWhole } else { Did::ReadFromStart }, is_new);
            seen.blocks.add(&reads);
            return seen.sums.note(reads.bytes);
        }
        let write = if wrote_behind && !jumped { Did::Append } else { Did::WriteAnywhere };
        for (what, sizes) in [(Did::ReadAnywhere, &reads), (write, &writes)] {
            if sizes.count > 0 {
                let seen = self.seen.entry(what).or_default();
                seen.count += sizes.count;
                seen.on_new += if is_new { sizes.count } else { 0 };
                seen.blocks.add(sizes);
            }
        }
        if reads.count + writes.count == 0 && !other && !is_new && size.is_some() {
            self.did(Did::OpenClose, is_new);
        }
    }

    fn workload(
        mut self,
        name: &str,
        calls: u64,
        (pace, threads): (Pace, u32),
        (files, directories, sizes): (u64, u64, &[u64]),
    ) -> Likeness {
        let made: Vec<u64> = self
            .seen
            .iter()
            .filter(|(what, _)| what.makes())
            .flat_map(|(_, seen)| seen.sums.sample.iter().copied())
            .collect();
        let is_on_new = |what: Did, seen: &Seen| what.makes() || seen.on_new * 2 > seen.count || files == 0;
        // Operations come in any order, so that files that are removed as often as made become fewer by chance.
        let removed = |of_new: bool| {
            let what = Did::Called(Kind::Unlink);
            self.seen.get(&what).filter(|seen| is_on_new(what, seen) == of_new).map(|seen| seen.count)
        };
        let by_chance = |changes: u64| (4.0 * (changes as f64).sqrt()) as u64;
        let mut filesets = Vec::new();
        if files > 0 {
            let spare = removed(false).map_or(0, |removed| (removed + by_chance(removed)).saturating_sub(files));
            let mut old = Fileset::new("old", Amount::Files(files + spare), distribution(sizes));
            "old".clone_into(&mut old.directory);
            old.directories = Directories::Flat { count: directories.min(files), root_too: false };
            filesets.push(old);
        }
        if !made.is_empty() || files == 0 {
            // Some are there, for operations on new files that come before they are made.
            let created: u64 = self.seen.iter().filter(|(what, _)| what.makes()).map(|(_, seen)| seen.count).sum();
            let spare =
                removed(true).map_or(0, |removed| removed.saturating_sub(created) + by_chance(created + removed));
            let mut new = Fileset::new("new", Amount::Files(u64::from(threads) * 8 + spare), distribution(&made));
            "new".clone_into(&mut new.directory);
            filesets.push(new);
        }
        let last = filesets.len() as u32 - 1;
        let [made, removed] =
            [Kind::Mkdir, Kind::Rmdir].map(|kind| self.seen.get(&Did::Called(kind)).map_or(0, |seen| seen.count));
        let spare_directories = if removed > 0 { removed.saturating_sub(made) + by_chance(made + removed) } else { 0 };
        let most = self.seen.values().map(|seen| seen.count).max().unwrap_or(1);
        let (mut mix, mut directories_in) = (Vec::new(), 0);
        let operations: u64 = self.seen.values().map(|seen| seen.count).sum();
        let keeps_open = self.seen.keys().all(|what| {
            matches!(what, Did::ReadAnywhere | Did::WriteAnywhere | Did::Called(Kind::Fsync | Kind::Fdatasync))
        });
        for (what, seen) in std::mem::take(&mut self.seen) {
            let is_one_block = matches!(what, Did::ReadAnywhere | Did::WriteAnywhere | Did::Append);
            let blocks = Some(distribution(&seen.blocks.limited()))
                .filter(|blocks| is_one_block && matches!(blocks, SizeDistribution::Weighted(_)));
            let block_bytes = match &blocks {
                Some(blocks) => blocks.block_bounds().map_or(4096, |(_, largest)| largest),
                None => seen.blocks.mean(4096),
            };
            let block_bytes = block_bytes.clamp(1, MOST_BLOCK);
            let smallest_bytes =
                blocks.as_ref().and_then(SizeDistribution::block_bounds).map_or(block_bytes, |(smallest, _)| smallest);
            let moving = |extent, pattern| Transfer { extent, block_bytes, pattern, fsync: false };
            let anywhere = Pattern::Random { distribution: Distribution::Uniform, align_bytes: smallest_bytes };
            let operation = match what {
                Did::Create { synced } => Operation::Create { block_bytes, fsync: synced },
                Did::ReadWhole => Operation::Read(moving(Extent::Whole, Pattern::FromStart)),
                Did::ReadFromStart => {
                    Operation::Read(moving(Extent::Bytes(seen.sums.median(4096).max(1)), Pattern::FromStart))
                }
                Did::ReadAnywhere => Operation::Read(moving(Extent::Bytes(block_bytes), anywhere)),
                Did::WriteAnywhere => Operation::Write(moving(Extent::Bytes(block_bytes), anywhere)),
                Did::Append => Operation::Append(moving(Extent::Bytes(block_bytes), Pattern::FromStart)),
                Did::OpenClose => Operation::OpenClose,
                Did::Called(kind) => operation(kind, seen.sums.median(4096)).expect("others are left out"),
            };
            let fileset = if is_on_new(what, &seen) { last } else { 0 };
            if operation == Operation::Rmdir {
                directories_in = fileset;
            }
            let mut action = Action::new(word(what), operation, Some(fileset));
            action.choice = FileChoice::Uniform;
            action.blocks = blocks;
            // As shares of the most frequent one, where counts are too large.
            let weight = if most > 1 << 20 {
                (seen.count as u128 * (1 << 20) / u128::from(most)) as u32
            } else {
                seen.count as u32
            };
            mix.push(Weighted { weight: weight.max(1), action });
        }
        let mut group = ThreadGroup::new("application", threads, Actions::Mix(mix));
        group.open = if keeps_open { OpenPolicy::KeepOpen } else { OpenPolicy::PerOperation };
        let speed = match pace {
            Pace::Think { ns } => {
                group.think_time = Duration::from_micros(ns / operations.max(1) / 1000);
                None
            }
            Pace::Rate { elapsed_ns } => {
                let rate = operations as f64 * 1e9 / elapsed_ns.max(1) as f64;
                group.rate_per_second = Some((rate * 10.0).round().max(1.0) / 10.0);
                Some(
                    "How long its calls took is not known, so there are no pauses: operations come at the rate of the recording.",
                )
            }
            Pace::Free => Some("The times of its calls are not known: operations come as fast as they can."),
        };
        let up_to = |operations: u64| Stop { operations: Some(operations), ..Stop::default() };
        let mut phases = Vec::new();
        if spare_directories > 0 {
            let mkdir = Action::new("mkdir", Operation::Mkdir, Some(directories_in));
            let groups = vec![ThreadGroup::new("directories", 1, Actions::Sequence(vec![mkdir]))];
            phases.push(Phase::unmeasured("before", groups, up_to(spare_directories)));
        }
        phases.push(Phase::new("as recorded", vec![group], up_to(operations.max(1))));
        let workload = Workload {
            name: name.to_owned(),
            filesets,
            phases,
            io: IoSettings::default(),
            data: DataPattern::default(),
            on_error: ErrorPolicy::Continue,
            final_sync: FinalSync::Syncfs,
            callout: None,
            launch: None,
            replay: None,
            series_interval: Duration::from_secs(1),
        };
        Likeness { workload, calls, covered: self.covered, left_out: self.left_out, speed }
    }
}

fn word(what: Did) -> &'static str {
    match what {
        Did::Create { synced: true } => "create durably",
        Did::Create { synced: false } => "create",
        Did::ReadWhole => "read whole",
        Did::ReadFromStart => "read from start",
        Did::ReadAnywhere => "read",
        Did::WriteAnywhere => "write",
        Did::Append => "append",
        Did::OpenClose => "open and close",
        Did::Called(kind) => kind.name(),
    }
}

/// The kind that stands for others that ask the same.
const fn alike(kind: Kind) -> Kind {
    match kind {
        Kind::Fstat | Kind::Access => Kind::Stat,
        Kind::Fchmod => Kind::Chmod,
        Kind::Futimens => Kind::Utimens,
        Kind::Ftruncate => Kind::Truncate,
        Kind::Sync => Kind::Syncfs,
        kind => kind,
    }
}

/// The operation of a call that is one by itself.
fn operation(kind: Kind, bytes: u64) -> Option<Operation> {
    Some(match alike(kind) {
        Kind::Stat => Operation::Stat,
        Kind::Fsync => Operation::Fsync,
        Kind::Fdatasync => Operation::Fdatasync,
        Kind::Syncfs => Operation::Syncfs,
        Kind::Truncate => Operation::Truncate { size_bytes: bytes },
        Kind::Fallocate => Operation::Fallocate { size_bytes: bytes.max(1), punch: false },
        Kind::Getdents => Operation::Readdir,
        Kind::Mkdir => Operation::Mkdir,
        Kind::Rmdir => Operation::Rmdir,
        Kind::Unlink => Operation::Unlink,
        Kind::Rename => Operation::Rename,
        Kind::Link => Operation::Link,
        Kind::Symlink => Operation::Symlink,
        Kind::Chmod => Operation::Chmod,
        Kind::Utimens => Operation::Utimens,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{End, Start, Unknown};
    use crate::file::Writer;

    fn likeness_of(start: Start, calls: &[(Call, &str)]) -> Likeness {
        let mut writer = Writer::new(Vec::new(), start).expect("memory");
        for (call, name) in calls {
            let at = (!name.is_empty()).then(|| writer.place(0, name.as_bytes()));
            writer.call(Call { thread: 1, at, ..*call }).expect("memory");
        }
        let (bytes, _) = writer.finish(End { at_ns: 1, status: 0 }).expect("memory");
        likeness(&mut Reader::new(&bytes[..]).expect("sound"), "a").expect("memory")
    }

    /// The time between two calls is then that of the first one as well.
    #[test]
    fn a_log_without_durations_gives_a_rate_and_no_pauses() {
        let calls: Vec<_> = (1..=100)
            .map(|number| {
                let (begin_ns, think_ns) = (number * 10_000_000, 10_000_000);
                (Call { kind: Kind::Stat, begin_ns, think_ns, ..Call::default() }, "f")
            })
            .collect();
        let of = |unknown: &[Unknown]| {
            let unknown = unknown.to_vec();
            let Likeness { workload, speed, .. } = likeness_of(Start { unknown, ..Start::default() }, &calls);
            let group = &workload.phases[0].groups[0];
            (group.think_time.as_millis(), group.rate_per_second, speed.is_some())
        };
        assert_eq!(of(&[]), (10, None, false));
        assert_eq!(of(&[Unknown::Durations]), (0, Some(100.0), true));
        assert_eq!(of(&[Unknown::Times]), (0, None, true));
    }

    fn on(file: u32, kind: Kind, offset: i64, bytes: u64) -> (Call, &'static str) {
        (Call { kind, file, offset, length: bytes, result: bytes as i64, ..Call::default() }, "")
    }

    /// As SQLite's journal: made, written here and there, made durable twice, and removed.
    #[test]
    fn what_makes_a_file_that_is_written_anywhere_and_removed_is_a_create() {
        const FILES: u32 = 200;
        let flags = (libc::O_RDWR | libc::O_CREAT) as u32;
        let mut calls = Vec::new();
        for other in 1..=FILES {
            calls.push((Call { kind: Kind::Open, other, flags, ..Call::default() }, "journal"));
            calls.push(on(other, Kind::Pwrite, 0, 512));
            calls.push(on(other, Kind::Fdatasync, 0, 0));
            calls.extend([(512, 4), (516, 4096), (0, 12)].map(|(at, bytes)| on(other, Kind::Pwrite, at, bytes)));
            calls.push(on(other, Kind::Fdatasync, 0, 0));
            calls.push(on(other, Kind::Close, 0, 0));
            calls.push((Call { kind: Kind::Unlink, ..Call::default() }, "journal"));
        }
        let workload = likeness_of(Start::default(), &calls).workload;
        let Actions::Mix(mix) = &workload.phases[0].groups[0].actions else { panic!("it is a mix") };
        let counts: Vec<(&str, u32)> = mix.iter().map(|one| (&*one.action.name, one.weight)).collect();
        assert_eq!(counts, [("create", FILES), ("write", FILES), ("fdatasync", 2 * FILES), ("unlink", FILES)]);
        assert_eq!(mix[0].action.operation, Operation::Create { block_bytes: 1537, fsync: false });
        let [new] = &workload.filesets[..] else { panic!("no file was there before: {:?}", workload.filesets) };
        assert_eq!(new.size, SizeDistribution::Fixed(4612));
        assert!(matches!(new.amount, Amount::Files(80..=100)), "{:?}", new.amount);
    }

    #[test]
    fn directories_are_removed_that_were_made() {
        let mut calls = Vec::new();
        for number in 0..60 {
            calls.push((Call { kind: Kind::Mkdir, ..Call::default() }, "made"));
            calls.push((Call { kind: Kind::Stat, ..Call::default() }, "made"));
            calls.push((Call { kind: Kind::Rmdir, ..Call::default() }, "made"));
            if number % 3 == 0 {
                calls.push((Call { kind: Kind::Rmdir, ..Call::default() }, "old"));
            }
        }
        let Likeness { workload, left_out, covered, .. } = likeness_of(Start::default(), &calls);
        let Actions::Mix(mix) = &workload.phases[1].groups[0].actions else { panic!("it is a mix") };
        let counts: Vec<(&str, u32)> = mix.iter().map(|one| (&*one.action.name, one.weight)).collect();
        assert_eq!(counts, [("stat", 60), ("mkdir", 60), ("rmdir", 60)]);
        assert!(mix.iter().all(|one| one.action.fileset == mix[0].action.fileset), "of the same ones");
        assert_eq!(mix[2].action.operation, Operation::Rmdir);
        assert_eq!((covered, left_out["rmdir of directories that were there before"]), (180, 20));
        let [before, _] = &workload.phases[..] else { panic!("directories for those that come before they are made") };
        assert_eq!((before.measured, before.stop.operations), (false, Some(43)));
    }

    #[test]
    fn blocks_of_different_sizes_move_as_many_bytes() {
        let mut calls = vec![(Call { kind: Kind::Open, other: 1, ..Call::default() }, "f")];
        for number in 0..300 {
            calls.push(on(1, Kind::Pwrite, number % 7 * 10_000, if number % 3 == 0 { 65_536 } else { 100 }));
        }
        let workload = likeness_of(Start::default(), &calls).workload;
        let Actions::Mix(mix) = &workload.phases[0].groups[0].actions else { panic!("it is a mix") };
        assert_eq!(mix[0].action.blocks, Some(SizeDistribution::Weighted(vec![(100, 200), (65_536, 100)])));
        let Operation::Write(transfer) = &mix[0].action.operation else { panic!("{mix:?}") };
        let Pattern::Random { align_bytes, .. } = transfer.pattern else { panic!("{mix:?}") };
        assert_eq!((transfer.block_bytes, transfer.extent, align_bytes), (65_536, Extent::Bytes(65_536), 100));
    }

    #[test]
    fn a_wait_until_its_time_is_over_is_a_pause_and_empty_files_stay_empty() {
        let sleep = Call { kind: Kind::Wakeup, flags: crate::call::TIMED_OUT, took_ns: 20_000_000, ..Call::default() };
        let calls: Vec<_> =
            (1..=50).flat_map(|_| [(sleep, ""), (Call { kind: Kind::Stat, ..Call::default() }, "f")]).collect();
        let Likeness { workload, .. } = likeness_of(Start::default(), &calls);
        assert_eq!(workload.phases[0].groups[0].think_time.as_millis(), 20);
        assert!(matches!(distribution(&[0, 0]), SizeDistribution::Fixed(0)));
        assert!(matches!(distribution(&[0, 0, 9]), SizeDistribution::Weighted(of) if of[..] == [(0, 2), (9, 1)]));
    }

    #[test]
    fn sleeps_of_any_length_are_added() {
        let sleep = Call { kind: Kind::Wakeup, flags: crate::call::TIMED_OUT, took_ns: u64::MAX, ..Call::default() };
        let mut writer = Writer::new(Vec::new(), Start::default()).expect("memory");
        (0..2).for_each(|_| writer.call(Call { thread: 1, ..sleep }).expect("memory"));
        let (bytes, _) = writer.finish(End { at_ns: 1, status: 0 }).expect("memory");
        let reader = || Reader::new(&bytes[..]).expect("sound");
        assert_eq!(crate::summarize(&mut reader()).expect("memory").think_ns, u64::MAX);
        likeness(&mut reader(), "a").expect("memory");
    }
}
