//! What a recording shows: calls by kind, sizes, files, threads over time, and what it does not cover.

use crate::call::{Block, Kind, Node};
use crate::file::{Ending, Reader};
use crate::latencies::Latencies;
use fstone_model::Histogram;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read};

/// Parts of the time that threads and calls are counted in.
const PARTS: usize = 40;
/// Files that are remembered by name, and bytes of the names of those that are open: with what comes to light once, some 200 MiB.
const MOST_TOUCHED: usize = 1 << 17;
const MOST_NAME_BYTES: usize = 32 << 20;
/// Longer paths are not remembered.
const MOST_NAME: usize = 4096;

#[derive(Debug, Clone, Default)]
pub struct Group {
    pub kind: Kind,
    pub calls: u64,
    pub failed: u64,
    /// Moved by reads, writes and copies; mapped.
    pub bytes: u64,
    pub took: Histogram,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    pub calls: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

#[derive(Debug, Default)]
pub struct Summary {
    /// In the order of their kinds.
    pub groups: Vec<Group>,
    pub calls: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Of what was written, that whose compressibility is known, and what compression would leave of it.
    pub measured_bytes: u64,
    pub packed_bytes: u64,
    pub threads: u32,
    /// The most at one time.
    pub most_threads: u32,
    /// Sums over all threads.
    pub took_ns: u64,
    pub think_ns: u64,
    pub elapsed_ns: u64,
    /// Of the tree.
    pub directories: u64,
    pub files: u64,
    pub links: u64,
    /// Devices, pipes and sockets.
    pub specials: u64,
    pub tree_bytes: u64,
    /// By name, those with the most bytes first.
    pub touched: Vec<(Vec<u8>, Touched)>,
    /// Those that are not in it, because there are too many: at least so many, all with few bytes or calls.
    pub further: u64,
    pub outside_calls: u64,
    pub outside_bytes: u64,
    pub outside_names: Vec<Vec<u8>>,
    pub mapped_bytes: u64,
    /// Requests that io_uring and libaio were given.
    pub queued_requests: u64,
    /// Calls that began in each part of the time.
    pub over_time: Vec<u64>,
    /// As wait(2) has it; `None` if the recording was cut.
    pub status: Option<i32>,
    pub ending: Option<Ending>,
}

/// Files by what was done to them. Of very many those with little are forgotten.
#[derive(Default)]
struct Files {
    touched: HashMap<Vec<u8>, Touched>,
    name_bytes: usize,
    /// The open ones by their number, and the bytes of their names.
    open: HashMap<u32, Vec<u8>>,
    open_bytes: usize,
    further: u64,
}

impl Files {
    fn touch(&mut self, name: &[u8]) -> &mut Touched {
        if !self.touched.contains_key(name) {
            if self.touched.len() >= MOST_TOUCHED || self.name_bytes >= MOST_NAME_BYTES {
                self.forget_half();
            }
            self.name_bytes += name.len();
        }
        self.touched.entry(name.to_vec()).or_default()
    }

    fn forget_half(&mut self) {
        let mut weights: Vec<(u64, u64)> = self.touched.values().map(Touched::weight).collect();
        let middle = weights.len() / 2;
        let least = *weights.select_nth_unstable(middle).1;
        let before = self.touched.len();
        self.touched.retain(|_, one| one.weight() > least);
        self.further += (before - self.touched.len()) as u64;
        self.name_bytes = self.touched.keys().map(Vec::len).sum();
    }

    fn opened(&mut self, number: u32, name: Vec<u8>) {
        if self.open_bytes < MOST_NAME_BYTES {
            self.open_bytes += name.len() + 64;
            let before = self.open.insert(number, name);
            self.open_bytes -= before.map_or(0, |name| name.len() + 64);
        }
    }

    fn closed(&mut self, number: u32) {
        self.open_bytes -= self.open.remove(&number).map_or(0, |name| name.len() + 64);
    }
}

impl Touched {
    const fn weight(&self) -> (u64, u64) {
        (self.read_bytes.saturating_add(self.written_bytes), self.calls)
    }
}

/// Reads a recording to its end. Remembers files and threads, and no calls; how many files has a limit.
///
/// # Errors
/// Those of reading.
pub fn summarize<R: Read>(reader: &mut Reader<R>) -> io::Result<Summary> {
    let mut summary = Summary::default();
    let mut kinds: HashMap<Kind, (Group, Latencies)> = HashMap::new();
    let mut files = Files::default();
    // When calls began, in parts of a time that doubles as needed.
    let (mut part_ns, mut over_time) = (1_000_000u64, [0u64; PARTS]);
    // Logs do not say how all threads began.
    let mut living = HashSet::new();
    while let Some(block) = reader.block()? {
        tree(&mut summary, &block);
        for call in &block.calls {
            summary.elapsed_ns = summary.elapsed_ns.max(call.begin_ns.saturating_add(call.took_ns));
            summary.think_ns = summary.think_ns.saturating_add(call.think_ns);
            for thread in [Some(call.thread), u32::try_from(call.result).ok().filter(|_| call.kind == Kind::Spawn)] {
                summary.threads += u32::from(thread.is_some_and(|thread| living.insert(thread)));
            }
            summary.most_threads = summary.most_threads.max(living.len() as u32);
            if call.kind == Kind::Exit {
                living.remove(&call.thread);
            }
            if call.kind.is_of_threads() {
                // Of a wait that ended because its time was over, that is how long the thread slept.
                let slept_ns = if call.is_sleep() { call.took_ns } else { 0 };
                summary.think_ns = summary.think_ns.saturating_add(slept_ns);
                continue;
            }
            let counts = u64::from(call.counts());
            summary.calls += counts;
            while call.begin_ns / part_ns >= PARTS as u64 {
                part_ns = part_ns.saturating_mul(2);
                for part in 0..PARTS {
                    over_time[part] = if part < PARTS / 2 { over_time[2 * part] + over_time[2 * part + 1] } else { 0 };
                }
            }
            over_time[(call.begin_ns / part_ns) as usize] += counts;
            let moved = call.result.max(0) as u64;
            let is_copy = call.kind.is_copy();
            let (reads, writes) = (call.kind.reads() || is_copy, call.kind.writes() || is_copy);
            if reads && (!is_copy || call.file != 0) {
                summary.read_bytes = summary.read_bytes.saturating_add(moved);
            }
            if writes && (!is_copy || call.other != 0) {
                summary.written_bytes = summary.written_bytes.saturating_add(moved);
            }
            if call.kind.writes() && call.mode > 0 {
                summary.measured_bytes = summary.measured_bytes.saturating_add(moved);
                let packed =
                    moved / 100 * u64::from(call.mode.min(100)) + moved % 100 * u64::from(call.mode.min(100)) / 100;
                summary.packed_bytes = summary.packed_bytes.saturating_add(packed);
            }
            match call.kind {
                Kind::Map if call.result >= 0 || call.result < -4096 => {
                    summary.mapped_bytes = summary.mapped_bytes.saturating_add(call.length);
                }
                Kind::Uring | Kind::Aio => summary.queued_requests = summary.queued_requests.saturating_add(moved),
                _ => {}
            }
            let failed = (-4095..0).contains(&call.result);
            summary.took_ns = summary.took_ns.saturating_add(call.took_ns);
            if call.counts() {
                let (group, latencies) = kinds.entry(call.kind).or_default();
                group.kind = call.kind;
                group.calls += 1;
                group.failed += u64::from(failed);
                if reads || writes {
                    group.bytes = group.bytes.saturating_add(moved);
                } else if call.kind == Kind::Map && !failed {
                    group.bytes = group.bytes.saturating_add(call.length);
                }
                latencies.record(call.took_ns);
            }
            let base =
                |number: u32| if number == 0 { Some(&[][..]) } else { files.open.get(&number).map(Vec::as_slice) };
            let name = match call.at {
                Some(at) => base(at.base).map(|base| crate::trace::joined(base, block.name(at))),
                None => base(call.file).filter(|_| call.file != 0).map(<[u8]>::to_vec),
            };
            // A file is one by whatever names it is called.
            let name = name.map(|name| crate::trace::normal(&[b"/", name.as_slice()].concat())[1..].to_vec());
            if let Some(name) = name.filter(|name| name.len() <= MOST_NAME) {
                let one = files.touch(&name);
                one.calls += counts;
                one.read_bytes = one.read_bytes.saturating_add(if reads { moved } else { 0 });
                one.written_bytes = one.written_bytes.saturating_add(if call.kind.writes() { moved } else { 0 });
                if call.kind == Kind::Open && call.other != 0 {
                    files.opened(call.other, name);
                }
            }
            // A copy is recorded with the file that it reads.
            if is_copy && let Some(target) = files.open.get(&call.other).filter(|name| name.len() <= MOST_NAME).cloned()
            {
                let one = files.touch(&target);
                one.calls += 1;
                one.written_bytes = one.written_bytes.saturating_add(moved);
            }
            if call.kind == Kind::Close {
                files.closed(call.file);
            }
        }
        if let Some(end) = block.end {
            (summary.elapsed_ns, summary.status) = (end.at_ns, Some(end.status));
        }
    }
    let parts = summary.elapsed_ns.div_ceil(part_ns).clamp(1, PARTS as u64);
    summary.over_time = over_time[..parts as usize].to_vec();
    summary.ending = reader.ending();
    let mut groups: Vec<Group> =
        kinds.into_values().map(|(group, latencies)| Group { took: latencies.histogram(), ..group }).collect();
    groups.sort_by_key(|group| group.kind);
    summary.groups = groups;
    (summary.touched, summary.further) = (files.touched.into_iter().collect(), files.further);
    summary.touched.sort_by(|one, other| other.1.weight().cmp(&one.1.weight()).then(one.0.cmp(&other.0)));
    Ok(summary)
}

fn tree(summary: &mut Summary, block: &Block) {
    for entry in &block.tree {
        match &entry.node {
            Node::Directory => summary.directories += 1,
            Node::File { size_bytes, .. } => {
                summary.files += 1;
                summary.tree_bytes = summary.tree_bytes.saturating_add(*size_bytes);
            }
            Node::Link { .. } | Node::Name { .. } => summary.links += 1,
            Node::Special => summary.specials += 1,
        }
    }
    summary.outside_calls = summary.outside_calls.saturating_add(block.outside_calls);
    summary.outside_bytes = summary.outside_bytes.saturating_add(block.outside_bytes);
    for name in &block.outside_names {
        if summary.outside_names.len() < crate::file::OUTSIDE_NAMES && !summary.outside_names.contains(name) {
            summary.outside_names.push(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, End, Start};
    use crate::file::Writer;

    #[test]
    fn a_copy_reads_one_file_and_writes_another() {
        let mut writer = Writer::new(Vec::new(), Start::default()).expect("memory");
        for (other, name) in [(1, "from"), (2, "to")] {
            let at = Some(writer.place(0, name.as_bytes()));
            writer.call(Call { kind: Kind::Open, thread: 1, at, other, ..Call::default() }).expect("memory");
        }
        let copy = Call { kind: Kind::CopyRange, thread: 1, file: 1, other: 2, result: 5000, ..Call::default() };
        writer.call(copy).expect("memory");
        writer.call(Call { kind: Kind::Exit, thread: 1, ..Call::default() }).expect("memory");
        assert_eq!(writer.calls, 3, "the end of a thread is none");
        let (bytes, _) = writer.finish(End { at_ns: 1, status: 0 }).expect("memory");
        let touched = summarize(&mut Reader::new(&bytes[..]).expect("sound")).expect("memory").touched;
        let one = |read_bytes, written_bytes| Touched { calls: 2, read_bytes, written_bytes };
        assert_eq!(touched, [(b"from".to_vec(), one(5000, 0)), (b"to".to_vec(), one(0, 5000))]);
    }

    /// A file that was open before, and is left open: the program made neither call.
    #[test]
    fn what_no_call_opened_or_closed_is_not_counted() {
        let recording = |[opened, closed]: [u32; 2]| {
            let mut writer = Writer::new(Vec::new(), Start::default()).expect("memory");
            let at = Some(writer.place(0, b"f"));
            let call = Call { thread: 1, took_ns: 10, ..Call::default() };
            for call in [
                Call { kind: Kind::Open, at, other: 1, flags: opened, ..call },
                Call { kind: Kind::Fsync, file: 1, ..call },
                Call { kind: Kind::Close, file: 1, flags: closed, ..call },
            ] {
                writer.call(call).expect("memory");
            }
            let calls = writer.calls;
            (calls, writer.finish(End { at_ns: 1, status: 0 }).expect("memory").0)
        };
        for (flags, expected) in [
            ([0, 0], &[Kind::Open, Kind::Close, Kind::Fsync][..]),
            ([crate::INHERITED, 0], &[Kind::Close, Kind::Fsync]),
            ([0, crate::IMPLICIT], &[Kind::Open, Kind::Fsync]),
        ] {
            let (calls, bytes) = recording(flags);
            let reader = || Reader::new(&bytes[..]).expect("sound");
            let summary = summarize(&mut reader()).expect("memory");
            let kinds: Vec<Kind> = summary.groups.iter().map(|group| group.kind).collect();
            assert_eq!(kinds, expected);
            let likeness = crate::likeness(&mut reader(), "a").expect("memory");
            let counted = [calls, summary.calls, summary.touched[0].1.calls, likeness.calls, likeness.covered];
            assert_eq!(counted, [expected.len() as u64; 5]);
            assert_eq!(summary.over_time.iter().sum::<u64>(), calls);
        }
    }

    #[test]
    fn of_very_many_files_those_with_most_are_shown() {
        let mut writer = Writer::new(Vec::new(), Start::default()).expect("memory");
        let mut stat = |name: String| {
            let at = Some(writer.place(0, name.as_bytes()));
            writer.call(Call { kind: Kind::Stat, thread: 1, at, ..Call::default() }).expect("memory");
        };
        const FILES: usize = MOST_TOUCHED * 2;
        for number in 0..FILES {
            stat(format!("file{number}"));
            (number % 3 == 0).then(|| stat("often".to_owned()));
        }
        let (bytes, _) = writer.finish(End { at_ns: 1, status: 0 }).expect("memory");
        let summary = summarize(&mut Reader::new(&bytes[..]).expect("sound")).expect("memory");
        assert_eq!((&*summary.touched[0].0, summary.touched[0].1.calls), (&b"often"[..], FILES.div_ceil(3) as u64));
        assert!(summary.touched.len() <= MOST_TOUCHED);
        assert_eq!(summary.touched.len() as u64 + summary.further, FILES as u64 + 1);
    }
}
