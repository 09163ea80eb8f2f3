//! A recording as a program for the threads of a replay: compiled once, before anything is carried out.
//!
//! The order is that of ARTC (Weiss et al., SOSP 2013): calls of a thread in their order; calls on one open file one after the other; a
//! name or a file is made before it is used, and used before it ends. What a thread made is used by others only after that.

use super::names::{Found, Mark, Marks, Names, TOP, What};
use crate::call::{Block, Call, Entry, INHERITED, IS_ACL, Kind, Node, Place, Start, is_implied};
use crate::file::{Ending, Reader};
use crate::latencies::Latencies;
use crate::trace::Roots;
use fstone_model::Histogram;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

/// The most frequent reason in [`Report::left_out`](super::Report::left_out).
pub const OUTSIDE: &str = "calls about files outside of the recorded directories";
/// Why a recording is of no use.
pub const EMPTY: &str = "it has no calls to replay: make it with --under and the directory of the program's files";
const UNCOVERED: &str = "calls of msync, open_by_handle_at and names of sockets";
const SPECIAL: &str = "calls about devices, pipes and sockets";
const UNSEEN: &str = "calls on files that were opened unseen";
const INCOMPLETE: &str = "calls that are incomplete in the recording";
/// The most threads that a replay runs at once.
const MOST_LANES: usize = 4096;
/// Memory is asked for after so many calls, and so many bytes of names.
const ASKED_EVERY: u64 = 1024;
const ASKED_BYTES: usize = 16 << 20;
const RWF_NOAPPEND: i32 = 0x20;
/// Another lane waits for this action.
pub(super) const AWAITED: u8 = 1;
/// It sleeps for [`Action::length`] ns, or until what would have woken it has come.
pub(super) const TIMED: u8 = 2;
/// Kinds of data, by what compression leaves of them in percent. What was not measured does not compress.
pub(super) const DATA: [usize; 5] = [100, 75, 50, 25, 3];

/// The kind that is nearest to a recorded measure.
pub(super) fn data_of(percent: u16) -> usize {
    let percent = if percent == 0 { 100 } else { usize::from(percent) };
    (0..DATA.len()).min_by_key(|kind| DATA[*kind].abs_diff(percent)).unwrap_or(0)
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Action {
    pub(super) kind: Kind,
    pub(super) bits: u8,
    pub(super) mode: u16,
    /// Indices of `places` and of `files`; 0 for none.
    pub(super) at: u32,
    pub(super) to: u32,
    pub(super) file: u32,
    pub(super) other: u32,
    pub(super) flags: u32,
    /// Where its waits begin in the lane's; they end where the next action's begin.
    pub(super) waits: u32,
    pub(super) result: i32,
    pub(super) offset: i64,
    pub(super) other_offset: i64,
    pub(super) length: u64,
    pub(super) begin_ns: u64,
    pub(super) think_ns: u64,
}

impl Action {
    /// How many bytes it is to move. A write that was short, and a copy with one side only in the recorded directories, moves as many as it
    /// did.
    pub(super) fn moved(&self) -> u64 {
        match u64::try_from(self.result) {
            Ok(done) if self.kind.writes() => self.length.min(done),
            done if self.kind.is_copy() => done.unwrap_or(0),
            _ => self.length,
        }
    }
}

/// A directory, its path from the top, and a name in it. Without a directory the call has to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) directory: Option<u32>,
    pub(super) path: u32,
    pub(super) name: u32,
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) actions: Vec<Action>,
    pub(super) waits: Vec<Mark>,
    /// For waits that timed out: what would have woken them, so that the replay can end them early.
    pub(super) ends_of_sleeps: HashMap<u32, Mark>,
    /// The threads of the recording that it is, and where each begins.
    pub(super) threads: Vec<(usize, u32)>,
    /// How far each other lane is known to have come.
    known: HashMap<u32, u32>,
    /// When each action ended, as far as can be said without what recording cost, and when it was seen to end.
    ends_ns: Vec<[u64; 2]>,
}

impl Lane {
    /// From a sleep on all was over by then, or when the sleep began.
    fn end_by(&mut self, sleep: Option<&u32>, end_ns: u64) {
        let Some(first) = sleep.map(|sleep| *sleep as usize) else { return };
        let end_ns = end_ns.max(self.actions[first].begin_ns);
        for (action, [at_ns, _]) in self.actions[first..].iter_mut().zip(&mut self.ends_ns[first..]) {
            (action.begin_ns, *at_ns) = (action.begin_ns.min(end_ns), (*at_ns).min(end_ns));
        }
    }

    pub(super) fn waits_of(&self, index: usize) -> &[Mark] {
        let end = self.actions.get(index + 1).map_or(self.waits.len(), |next| next.waits as usize);
        &self.waits[self.actions[index].waits as usize..end]
    }
}

/// What cannot be replayed, as words that a number goes before, and how much of it there is.
pub(super) type LeftOut = BTreeMap<&'static str, u64>;

pub struct Program {
    pub(super) tree: Vec<Entry>,
    pub(super) lanes: Vec<Lane>,
    pub(super) targets: Vec<Target>,
    pub(super) texts: Vec<Box<[u8]>>,
    pub(super) files: u32,
    pub(super) left_out: LeftOut,
    pub(super) most_read: u64,
    pub(super) most_written: u64,
    /// Which kinds of data are written, by [`data_of`].
    pub(super) data: [bool; DATA.len()],
    /// Latencies of the calls that are replayed, by kind.
    pub(super) recorded: BTreeMap<Kind, Histogram>,
    pub(super) calls: u64,
    /// How long it took in the recording, and how long it would have without what recording cost.
    pub(super) elapsed_ns: u64,
    pub(super) expected_ns: u64,
    pub(super) tree_bytes: u64,
    pub(super) is_cut: bool,
    /// If not, an action's `think_ns` is from when the thread's last call began.
    pub(super) has_durations: bool,
    has_times: bool,
    is_of_log: bool,
    pub(super) not_comparable: Option<&'static str>,
}

#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error("cannot read it: {0}")]
    Read(io::Error),
    #[error("interrupted")]
    Interrupted,
    #[error("more than {MOST_LANES} of its threads ran at once")]
    Threads,
    #[error("a thread has more than four thousand million calls")]
    Calls,
    #[error(
        "its first {calls} calls take more memory than {mib} MiB, half of what was available here",
        mib = .most_bytes >> 20
    )]
    Memory { calls: u64, most_bytes: u64 },
    #[error("{EMPTY}")]
    Empty,
    #[error("it is a damaged or hand-made recording: no {call} of a program is as call {number} of it", call = .kind.name())]
    Damaged { kind: Kind, number: u64 },
}

struct OpenFile {
    node: u32,
    slot: u32,
    position: i64,
    appends: bool,
    /// It was opened with O_PATH.
    is_path: bool,
    last: Mark,
    /// Calls that used it as a directory.
    users: Marks,
}

impl OpenFile {
    fn new(node: u32, slot: u32, last: Mark) -> Self {
        Self { node, slot, position: 0, appends: false, is_path: false, last, users: Marks::default() }
    }
}

/// Whether a write with these flags of pwritev2(2) goes to the end of a file.
pub(super) const fn appends(is_so: bool, flags: i32) -> bool {
    is_so && flags & RWF_NOAPPEND == 0 || flags & libc::RWF_APPEND != 0
}

/// Whether a call failed that would remove or rename `.` or `..`: names here have neither, and are those of what they lead to.
fn fails_by_dots(block: &Block, call: &Call) -> bool {
    let is_dots = |place: Place| {
        let mut parts = block.name(place).rsplit(|byte| *byte == b'/').skip_while(|part| part.is_empty());
        matches!(parts.next(), Some(b"." | b".."))
    };
    let changes = matches!(call.kind, Kind::Rmdir | Kind::Unlink | Kind::Rename);
    changes && call.result < 0 && [call.at, call.to].into_iter().flatten().any(is_dots)
}

struct Thread {
    lane: u32,
    /// Its calls, as indices of the lane's actions.
    actions: Vec<u32>,
    /// Waits that timed out since another thread last woke it.
    timed: Vec<u32>,
    /// How long they took.
    slept_ns: u64,
    /// Without durations: what is known of how long its last call took, which is part of the time until the next begins.
    last_took_ns: u64,
    /// What its first call waits for.
    parent: Option<Mark>,
    begun: bool,
}

struct Compiler<'a> {
    cancel: &'a AtomicBool,
    names: Names,
    program: Program,
    threads: HashMap<u32, Thread>,
    ended: HashMap<u32, Mark>,
    free: Vec<u32>,
    open: HashMap<u32, OpenFile>,
    targets: HashMap<Target, u32>,
    counts: BTreeMap<Kind, Latencies>,
    waits: Vec<Mark>,
    /// Calls until now, of all threads.
    read: u64,
    /// Bytes of texts when memory was last asked for.
    asked_bytes: usize,
    /// Memory of this process when it began, and how much more it may take.
    began_bytes: u64,
    most_bytes: u64,
}

impl Program {
    /// Reads a recording to its end. Takes no more than half of the memory that is available.
    ///
    /// # Errors
    /// If it cannot be read, has nothing to replay, or is larger than what can be replayed.
    pub fn compile<R: Read>(reader: &mut Reader<R>, cancel: &AtomicBool) -> Result<Self, CompileError> {
        let program = Self::compile_within(reader, cancel, available_bytes() / 2)?;
        if program.calls == 0 { Err(CompileError::Empty) } else { Ok(program) }
    }

    pub(super) fn compile_within<R: Read>(
        reader: &mut Reader<R>,
        cancel: &AtomicBool,
        most_bytes: u64,
    ) -> Result<Self, CompileError> {
        let Start { roots, given, .. } = &reader.start;
        let pairs =
            roots.iter().enumerate().map(|(index, root)| (given.get(index).unwrap_or(root).clone(), root.clone()));
        let mut compiler = Compiler::new(Roots::new(&pairs.collect::<Vec<_>>()), cancel, most_bytes);
        compiler.program.has_durations = reader.start.has_durations();
        compiler.program.has_times = reader.start.has_times();
        compiler.program.is_of_log = reader.start.is_of_log();
        compiler.program.not_comparable = reader.start.not_comparable();
        while let Some(block) = reader.block().map_err(CompileError::Read)? {
            compiler.block(block)?;
        }
        let mut program = compiler.finished();
        program.is_cut = !matches!(reader.ending(), Some(Ending::Whole));
        Ok(program)
    }

    /// The application's time, and with what recording cost; `None` where it is not known.
    pub(super) fn times_ns(&self) -> [Option<u64>; 2] {
        // An estimate, and no more than what passed.
        let expected_ns = match self.elapsed_ns {
            0 => self.expected_ns,
            elapsed_ns => self.expected_ns.min(elapsed_ns),
        };
        [self.has_times.then_some(expected_ns), (!self.is_of_log).then_some(self.elapsed_ns)]
    }

    pub fn threads(&self) -> usize {
        self.lanes.len()
    }
}

/// Memory that this process has.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.as_deref().and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64)
}

/// Memory that this machine could still give; no limit where it does not say.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib.saturating_mul(1024))
}

impl<'a> Compiler<'a> {
    fn new(roots: Roots, cancel: &'a AtomicBool, most_bytes: u64) -> Self {
        let program = Program {
            tree: Vec::new(),
            lanes: Vec::new(),
            targets: vec![Target { directory: None, path: 0, name: 0 }],
            texts: Vec::new(),
            files: 1,
            left_out: LeftOut::new(),
            most_read: 0,
            most_written: 0,
            data: [false; DATA.len()],
            recorded: BTreeMap::new(),
            calls: 0,
            elapsed_ns: 0,
            expected_ns: 0,
            tree_bytes: 0,
            is_cut: false,
            has_durations: true,
            has_times: true,
            is_of_log: false,
            not_comparable: None,
        };
        Self {
            cancel,
            names: Names::new(roots),
            program,
            threads: HashMap::new(),
            ended: HashMap::new(),
            free: Vec::new(),
            open: HashMap::new(),
            targets: HashMap::new(),
            counts: BTreeMap::new(),
            waits: Vec::new(),
            read: 0,
            asked_bytes: 0,
            began_bytes: resident_bytes(),
            most_bytes,
        }
    }

    fn finished(mut self) -> Program {
        self.program.texts = self.names.text;
        let ends = self.program.lanes.iter().flat_map(|lane| lane.ends_ns.iter().map(|[end_ns, _]| *end_ns));
        self.program.expected_ns = ends.max().unwrap_or(0);
        self.program.lanes.iter_mut().for_each(|lane| (lane.ends_ns, lane.known) = Default::default());
        self.program.recorded = self.counts.iter().map(|(kind, counts)| (*kind, counts.histogram())).collect();
        self.program
    }

    fn leave_out(&mut self, why: &'static str) {
        *self.program.left_out.entry(why).or_default() += 1;
    }

    fn block(&mut self, mut block: Block) -> Result<(), CompileError> {
        for entry in std::mem::take(&mut block.tree) {
            self.entry(entry);
        }
        self.fits()?;
        if block.outside_calls > 0 {
            let outside = self.program.left_out.entry(OUTSIDE).or_default();
            *outside = outside.saturating_add(block.outside_calls);
        }
        for call in &block.calls {
            self.program.elapsed_ns = self.program.elapsed_ns.max(call.begin_ns.saturating_add(call.took_ns));
            self.call(&block, call)?;
        }
        if let Some(end) = block.end {
            self.program.elapsed_ns = end.at_ns;
        }
        Ok(())
    }

    fn fits(&self) -> Result<(), CompileError> {
        let taken_bytes = resident_bytes().saturating_sub(self.began_bytes);
        if taken_bytes <= self.most_bytes {
            return Ok(());
        }
        Err(CompileError::Memory { calls: self.read, most_bytes: self.most_bytes })
    }

    /// Part of the tree as it was. What has no directory, or a name twice, is not made.
    fn entry(&mut self, entry: Entry) {
        let is_plain = |path: &[u8]| path.split(|byte| *byte == b'/').all(|part| !matches!(part, b"" | b"." | b".."));
        let free = if is_plain(&entry.path) { self.names.resolve(TOP, &entry.path, false) } else { None };
        let Some(found) = free.filter(|found| found.index.is_some() && found.node.is_none()) else {
            return self.leave_out("parts of the tree whose names are wrong");
        };
        let node = match &entry.node {
            Node::Directory => {
                self.names.node(What::Directory { above: found.directory.unwrap_or(TOP), name: found.name })
            }
            Node::File { size_bytes, stored_bytes } => {
                self.program.tree_bytes = self.program.tree_bytes.saturating_add((*stored_bytes).min(*size_bytes));
                self.names.node(What::File { size_bytes: *size_bytes })
            }
            Node::Link { target } => self.names.node(What::Link { target: target.clone() }),
            Node::Name { of } => {
                let of = if is_plain(of) { self.names.resolve(TOP, of, false).and_then(|of| of.node) } else { None };
                match of.filter(|of| matches!(self.names.nodes[*of as usize].what, What::File { .. } | What::Special)) {
                    Some(node) => node,
                    None => return self.leave_out("parts of the tree whose names are wrong"),
                }
            }
            Node::Special => self.names.node(What::Special),
        };
        self.names.bind(&found, Some(node));
        if self.names.is_special(node) {
            return self.leave_out("parts of the tree that are devices, pipes or sockets");
        }
        self.program.tree.push(entry);
    }

    fn lane(&mut self, thread: u32, parent: Option<Mark>) -> Result<u32, CompileError> {
        if let Some(known) = self.threads.get(&thread) {
            return Ok(known.lane);
        }
        let lane = match self.free.pop() {
            Some(lane) => lane,
            None if self.program.lanes.len() >= MOST_LANES => return Err(CompileError::Threads),
            None => {
                self.program.lanes.push(Lane::default());
                (self.program.lanes.len() - 1) as u32
            }
        };
        self.threads.insert(
            thread,
            Thread { lane, actions: Vec::new(), timed: Vec::new(), slept_ns: 0, last_took_ns: 0, parent, begun: false },
        );
        Ok(lane)
    }

    fn call(&mut self, block: &Block, call: &Call) -> Result<(), CompileError> {
        self.read += 1;
        if self.read.is_multiple_of(ASKED_EVERY) || self.names.bytes - self.asked_bytes > ASKED_BYTES {
            self.asked_bytes = self.names.bytes;
            self.fits()?;
        }
        if self.cancel.load(Ordering::Relaxed) {
            return Err(CompileError::Interrupted);
        }
        if !call.has_possible_result() || !call.is_complete() && !call.may_lack() {
            return Err(CompileError::Damaged { kind: call.kind, number: self.read });
        }
        let lane = self.lane(call.thread, None)?;
        let thread = self.threads.get_mut(&call.thread).expect("its lane was made above");
        self.waits.clear();
        let last_took_ns = std::mem::take(&mut thread.last_took_ns);
        if !std::mem::replace(&mut thread.begun, true) {
            self.waits.extend(thread.parent.take());
            // Before it thinks, and so not with its first call's.
            if !self.waits.is_empty() {
                self.push(lane, Action { kind: Kind::Spawn, begin_ns: call.begin_ns, ..Action::default() }, 0);
            }
            let lane = &mut self.program.lanes[lane as usize];
            lane.threads.push((lane.actions.len(), call.thread));
        }
        let count = self.program.lanes[lane as usize].actions.len() as u64 + 1;
        let mark = Mark { lane, count: u32::try_from(count).map_err(|_| CompileError::Calls)? };
        self.waits.clear();
        let mut action = Action {
            kind: call.kind,
            mode: call.mode & 0o777,
            flags: call.flags,
            // Below it none is possible.
            result: call.result.min(i64::from(i32::MAX)) as i32,
            offset: call.offset,
            other_offset: call.other_offset,
            length: call.length,
            begin_ns: call.begin_ns,
            think_ns: call.think_ns.saturating_add(last_took_ns),
            ..Action::default()
        };
        let fits = match call.kind {
            Kind::Spawn => {
                self.lane(u32::try_from(call.result).unwrap_or(0), Some(mark))?;
                Ok(())
            }
            Kind::Exit => {
                self.ended.insert(call.thread, mark);
                self.ends_early(call.thread, lane);
                Ok(())
            }
            Kind::Wait => {
                self.waits.extend(u32::try_from(call.result).ok().and_then(|thread| self.ended.get(&thread)));
                Ok(())
            }
            Kind::Wakeup => {
                self.wakeup(call, &mut action, mark);
                Ok(())
            }
            Kind::Bind if call.result == 0 && call.at.is_some() => self.bound(block, call, mark),
            kind if kind.is_uncovered() => Err(match kind {
                Kind::Map => "mappings: what was read and written through them is not known",
                Kind::Uring | Kind::Aio | Kind::PolledRing => "requests through io_uring or libaio",
                Kind::Lost => "calls whose file is not known",
                Kind::Unreturned => "calls that did not return",
                Kind::Msync | Kind::OpenByHandle | Kind::Bind => UNCOVERED,
                _ => "calls of ioctl, file_getattr, file_setattr and name_to_handle_at",
            }),
            _ => self.on_files(block, call, &mut action, mark),
        };
        if let Err(why) = fits {
            self.leave_out(why);
            // Its time passes all the same, before the thread's next call.
            action.kind = Kind::Spawn;
            action.think_ns = action.think_ns.saturating_add(call.took_ns);
            self.waits.clear();
        }
        self.push(lane, action, call.took_ns);
        if let Some(thread) = self.threads.get_mut(&call.thread) {
            thread.actions.push(mark.count - 1);
            if !self.program.has_durations && !action.kind.is_of_threads() {
                thread.last_took_ns = call.took_ns;
            }
        }
        if call.kind == Kind::Exit {
            self.threads.remove(&call.thread);
            self.free.push(lane);
        }
        Ok(())
    }

    /// A thread has ended. What it waited for after its last call, unless it is the first, was the program's end.
    fn ends_early(&mut self, thread: u32, lane: u32) {
        let Some(state) = self.threads.get_mut(&thread).filter(|_| thread != 1) else { return };
        let own = &mut self.program.lanes[lane as usize];
        let last = own.actions.iter().rposition(|action| !action.kind.is_of_threads());
        let after = |sleep: &&u32| last.is_none_or(|last| **sleep as usize > last);
        let timed: Vec<u32> = state.timed.iter().filter(after).copied().collect();
        timed.iter().for_each(|sleep| own.actions[*sleep as usize].length = 0);
        own.end_by(timed.first(), 0);
    }

    /// A wait that timed out, or one for another thread: that one's coming would have ended those before it, too.
    fn wakeup(&mut self, call: &Call, action: &mut Action, mark: Mark) {
        let awaited = self.awaited(call);
        let thread = self.threads.get_mut(&call.thread).expect("its lane was made above");
        if call.is_sleep() {
            (action.bits, action.length) = (TIMED, call.took_ns);
            thread.timed.push(mark.count - 1);
            thread.slept_ns = thread.slept_ns.saturating_add(call.took_ns);
        } else if let Some(awaited) = awaited.filter(|awaited| awaited.lane != mark.lane) {
            let slept_ns = std::mem::take(&mut thread.slept_ns);
            let timed = std::mem::take(&mut thread.timed);
            let [came_ns, _] = self.program.lanes[awaited.lane as usize].ends_ns[awaited.count as usize - 1];
            let own = &mut self.program.lanes[mark.lane as usize];
            let before_ns = own.ends_ns.last().map_or(0, |[end_ns, _]| end_ns.saturating_sub(slept_ns));
            own.end_by(timed.first(), before_ns.max(came_ns));
            own.ends_of_sleeps.extend(timed.into_iter().map(|sleep| (sleep, awaited)));
            self.waits.push(awaited);
        } else if call.result > 0 {
            action.think_ns = action.think_ns.saturating_add(call.took_ns);
        }
    }

    /// How far the other thread of a wakeup had come. One that has ended had ended by then.
    fn awaited(&self, call: &Call) -> Option<Mark> {
        let of = u32::try_from(call.result).ok()?;
        let Some(thread) = self.threads.get(&of) else { return self.ended.get(&of).copied() };
        let last = thread.actions.get(usize::try_from(call.length).ok()?.checked_sub(1)?)?;
        Some(Mark { lane: thread.lane, count: last + 1 })
    }

    fn push(&mut self, lane: u32, mut action: Action, took_ns: u64) {
        if !action.kind.is_of_threads() {
            self.program.calls += 1;
            if !is_implied(action.kind, action.flags) {
                let counts = self.counts.entry(action.kind).or_default();
                if self.program.has_durations {
                    counts.record(took_ns);
                }
            }
        }
        action.waits = self.program.lanes[lane as usize].waits.len() as u32;
        let before_ns = self.program.lanes[lane as usize].ends_ns.last().map_or(0, |[end_ns, _]| *end_ns);
        let waited = self.waits.iter().filter(|wait| wait.lane != lane).map(|wait| {
            let (other, index) = (&self.program.lanes[wait.lane as usize], wait.count as usize - 1);
            let [end_ns, seen_ns] = other.ends_ns[index];
            // The application did not wait for a call that ended after its own began.
            let overlapped = seen_ns > action.begin_ns && !other.actions[index].kind.is_of_threads();
            if overlapped { 0 } else { end_ns }
        });
        let waited_ns = waited.max().unwrap_or(0);
        let seen_ns = action.begin_ns.saturating_add(took_ns);
        let begin_ns = before_ns.saturating_add(action.think_ns).max(waited_ns);
        // As the clock would have had it without what recording cost.
        action.begin_ns = begin_ns;
        let is_short = action.kind.is_of_threads() && action.bits & TIMED == 0;
        let took_ns = if is_short || !self.program.has_durations { 0 } else { took_ns };
        let end_ns = begin_ns.saturating_add(took_ns);
        self.program.lanes[lane as usize].ends_ns.push([end_ns, seen_ns]);
        for index in 0..self.waits.len() {
            let wait = self.waits[index];
            if wait.lane == lane {
                continue;
            }
            let own = &mut self.program.lanes[lane as usize];
            let known = own.known.entry(wait.lane).or_insert(0);
            if *known < wait.count {
                *known = wait.count;
                own.waits.push(wait);
                self.program.lanes[wait.lane as usize].actions[wait.count as usize - 1].bits |= AWAITED;
            }
        }
        self.program.lanes[lane as usize].actions.push(action);
    }

    fn target(&mut self, found: &Found) -> u32 {
        let target = Target { directory: found.directory, path: found.path, name: found.name };
        *self.targets.entry(target).or_insert_with(|| {
            self.program.targets.push(target);
            (self.program.targets.len() - 1) as u32
        })
    }

    /// A name of a call, with what using it waits for. One that is `last` is about the last name itself, for which a slash behind it says
    /// nothing.
    fn named(
        &mut self,
        block: &Block,
        place: Place,
        [follow, last]: [bool; 2],
        mark: Mark,
    ) -> Result<Found, &'static str> {
        let mut name = block.name(place);
        while let (true, [rest @ .., b'/']) = (last, name) {
            name = rest;
        }
        let from = match place.base {
            0 => TOP,
            base => {
                let file = self.open.get_mut(&base).ok_or(UNSEEN)?;
                if self.names.is_special(file.node) {
                    return Err(SPECIAL);
                }
                self.waits.push(file.last);
                file.users.add(mark);
                file.node
            }
        };
        let found =
            self.names.resolve(from, name, follow).ok_or("calls whose names lead out of the recorded directories")?;
        if place.base != 0 {
            self.names.pass_above(from);
        }
        for index in &self.names.passed {
            let name = &mut self.names.names[*index as usize];
            self.waits.extend(name.changed);
            name.users.add(mark);
        }
        if let Some(node) = found.node {
            self.waits.extend(self.names.nodes[node as usize].changed);
        }
        Ok(found)
    }

    /// A name stands for something else from here on: all that used it come before.
    fn bind(&mut self, found: &Found, node: Option<u32>, mark: Mark) {
        if let Some(index) = found.index {
            let name = &mut self.names.names[index as usize];
            self.waits.extend(name.users.take());
            name.changed = Some(mark);
            name.users.add(mark);
        }
        if let Some(directory) = found.directory {
            let directory = &mut self.names.nodes[directory as usize];
            directory.names_changed.add(mark);
            if node.is_none() {
                self.waits.extend(directory.readers.take());
            }
        }
        self.names.bind(found, node);
    }

    /// The slot of an open file; calls on one come one after the other.
    fn used(&mut self, number: u32, mark: Mark) -> Result<(u32, u32), &'static str> {
        let file = self.open.get_mut(&number).ok_or(UNSEEN)?;
        self.waits.push(std::mem::replace(&mut file.last, mark));
        Ok((file.slot, file.node))
    }

    fn on_files(&mut self, block: &Block, call: &Call, action: &mut Action, mark: Mark) -> Result<(), &'static str> {
        if !call.is_complete() {
            return Err(INCOMPLETE);
        }
        let call = &self.without_special(call)?;
        let nofollow = call.flags & libc::AT_SYMLINK_NOFOLLOW as u32 != 0;
        let succeeded = call.result >= 0;
        let follow = match call.kind {
            Kind::Open => {
                let exclusive = (libc::O_CREAT | libc::O_EXCL) as u32;
                call.flags & libc::O_NOFOLLOW as u32 == 0 && call.flags & exclusive != exclusive
            }
            Kind::Stat | Kind::Access | Kind::Chown | Kind::Utimens | Kind::Chmod => !nofollow,
            Kind::Getxattr | Kind::Setxattr | Kind::Listxattr | Kind::Removexattr => !nofollow,
            Kind::Link => call.flags & libc::AT_SYMLINK_FOLLOW as u32 != 0,
            Kind::Truncate | Kind::Statfs => true,
            _ => false,
        };
        let is_last =
            matches!(call.kind, Kind::Mkdir | Kind::Rmdir | Kind::Unlink | Kind::Rename | Kind::Symlink | Kind::Mknod);
        let at = match call.at {
            Some(place) => {
                let found = self.named(block, place, [follow, is_last], mark)?;
                action.at = self.target(&found);
                Some(found)
            }
            None => None,
        };
        let second_is_name = matches!(call.kind, Kind::Rename | Kind::Link);
        let to = match call.to {
            Some(place) if second_is_name => {
                let found = self.named(block, place, [false, true], mark)?;
                action.to = self.target(&found);
                Some(found)
            }
            // The target of a link, or the name of an attribute: its text.
            Some(place) => {
                action.to = self.names.text(block.name(place));
                None
            }
            None => None,
        };
        self.on_special(call, at.as_ref(), to.as_ref(), mark)?;
        if self.fails_by_slash(block, call, at.as_ref(), to.as_ref()) {
            return Err("calls that failed because of a slash behind a name that is of no directory");
        }
        if fails_by_dots(block, call) {
            return Err("calls that failed because `.` and `..` cannot be removed or renamed");
        }
        let mut node = at.and_then(|found| found.node);
        if call.kind != Kind::Open && call.file != 0 {
            let (slot, of) = self.used(call.file, mark)?;
            (action.file, node) = (slot, Some(of));
        }
        if call.kind != Kind::Open && call.other != 0 {
            let (slot, of) = self.used(call.other, mark)?;
            action.other = slot;
            self.waits.extend(self.names.nodes[of as usize].changed);
        }
        if let Some(node) = node {
            self.waits.extend(self.names.nodes[node as usize].changed);
        }
        match call.kind {
            Kind::Open => return self.opened(call, action, at.ok_or(INCOMPLETE)?, mark),
            Kind::Close => {
                let file = self.open.remove(&call.file).expect("it was used above");
                self.waits.extend(file.users.all());
            }
            Kind::Chmod | Kind::Fchmod if node == Some(TOP) => return Err("calls that change the mode of the top"),
            // What is there keeps it from being removed or replaced.
            Kind::Rmdir | Kind::Rename if !succeeded => {
                let target = if call.kind == Kind::Rename { to.and_then(|found| found.node) } else { node };
                if let Some(target) = target {
                    let target = &mut self.names.nodes[target as usize];
                    self.waits.extend(target.names_changed.all());
                    target.readers.add(mark);
                }
            }
            Kind::Fsync | Kind::Fdatasync | Kind::SyncRange => {
                // Also for those of others, which had ended.
                let has_ended = |one: &&Mark| {
                    let lane = &self.program.lanes[one.lane as usize];
                    lane.ends_ns.get(one.count as usize - 1).is_some_and(|[_, seen_ns]| *seen_ns <= call.begin_ns)
                };
                if let Some(node) = node {
                    let node = &self.names.nodes[node as usize];
                    self.waits.extend(node.writers.all().iter().chain(node.names_changed.all()).filter(has_ended));
                }
            }
            Kind::Syncfs | Kind::Sync => {
                for (index, lane) in self.program.lanes.iter().enumerate() {
                    let count = lane.ends_ns.partition_point(|[_, seen_ns]| *seen_ns <= call.begin_ns) as u32;
                    self.waits.extend((count > 0).then_some(Mark { lane: index as u32, count }));
                }
            }
            // Only by its name in /proc can such a file be changed.
            Kind::Fchmod | Kind::Fchown | Kind::Futimens
                if succeeded && self.open.get(&call.file).is_some_and(|file| file.is_path) =>
            {
                action.flags = libc::O_PATH as u32;
            }
            Kind::SetFlags if succeeded => {
                let file = self.open.get_mut(&call.file).expect("it was used above");
                file.appends = call.flags & libc::O_APPEND as u32 != 0;
            }
            Kind::Mknod
                if u32::from(call.mode) & libc::S_IFMT != libc::S_IFREG && u32::from(call.mode) & libc::S_IFMT != 0 =>
            {
                if succeeded {
                    self.makes_special(&at.expect("checked above"), mark);
                }
                return Err(SPECIAL);
            }
            Kind::Setxattr | Kind::Fsetxattr | Kind::Removexattr | Kind::Fremovexattr => {
                let removes = matches!(call.kind, Kind::Removexattr | Kind::Fremovexattr);
                match &*self.names.text[action.to as usize] {
                    name if name.starts_with(b"user.") => {}
                    b"system.posix_acl_access" if node != Some(TOP) && (removes || call.mode & IS_ACL != 0) => {
                        action.mode |= call.mode & IS_ACL;
                    }
                    b"system.posix_acl_default" if removes => {}
                    _ => return Err("calls that change attributes other than user.*"),
                }
            }
            Kind::Mkdir | Kind::Symlink | Kind::Mknod if succeeded => {
                let found = at.expect("checked above");
                let what = match call.kind {
                    Kind::Mkdir => What::Directory { above: found.directory.unwrap_or(TOP), name: found.name },
                    Kind::Symlink => What::Link { target: self.names.text[action.to as usize].to_vec() },
                    _ => What::File { size_bytes: 0 },
                };
                let new = self.names.node(what);
                self.bind(&found, Some(new), mark);
            }
            Kind::Rmdir | Kind::Unlink if succeeded => {
                let found = at.expect("checked above");
                if let Some(node) = found.node {
                    self.waits.extend(self.names.nodes[node as usize].names_changed.all());
                }
                self.bind(&found, None, mark);
            }
            Kind::Link if succeeded => {
                let to = to.ok_or(INCOMPLETE)?;
                self.bind(&to, node, mark);
            }
            Kind::Rename if succeeded => {
                let (from, to) = (at.expect("checked above"), to.expect("checked above"));
                let crosses = |node: Option<u32>, into: Option<u32>| {
                    node.zip(into).is_some_and(|(node, into)| self.names.is_above(node, into))
                };
                if crosses(from.node, to.directory) || crosses(to.node, from.directory) {
                    return Err("calls that move a directory into itself");
                }
                if let Some(node) = to.node {
                    self.waits.extend(self.names.nodes[node as usize].names_changed.all());
                }
                if from.node != to.node || from.index == to.index {
                    let exchanged = call.flags & libc::RENAME_EXCHANGE != 0;
                    self.bind(&from, if exchanged { to.node } else { None }, mark);
                    self.bind(&to, from.node, mark);
                }
            }
            Kind::Getdents => {
                if let Some(node) = node {
                    self.waits.extend(self.names.nodes[node as usize].names_changed.all());
                }
            }
            Kind::Flock | Kind::Lock => {
                if let Some(node) = node {
                    self.waits.extend(self.names.nodes[node as usize].locked.replace(mark));
                }
            }
            Kind::Seek if succeeded => self.open.get_mut(&call.file).expect("it was used above").position = call.result,
            _ => {}
        }
        let is_copy = call.kind.is_copy();
        if succeeded
            && (call.kind.reads() || is_copy && call.file != 0)
            && let Some(node) = node
        {
            let node = &mut self.names.nodes[node as usize];
            node.readers.add(mark);
            if (call.result as u64) < call.length {
                node.at_end.add(mark);
            }
        }
        if call.kind.reads() {
            self.program.most_read = self.program.most_read.max(call.length);
            if matches!(call.kind, Kind::Read | Kind::Readv) && succeeded {
                let file = self.open.get_mut(&call.file).expect("it was used above");
                file.position = file.position.saturating_add(call.result);
            }
        }
        if call.kind.is_copy()
            && call.offset < 0
            && let Some(file) = self.open.get_mut(&call.file)
        {
            file.position = file.position.saturating_add(call.result.max(0));
        }
        self.sized(call, node, mark);
        Ok(())
    }

    /// Whether a call failed that would make, remove or rename something here, where names have no slash behind them.
    fn fails_by_slash(&self, block: &Block, call: &Call, at: Option<&Found>, to: Option<&Found>) -> bool {
        let has_slash = |place: Option<Place>| place.is_some_and(|place| block.name(place).ends_with(b"/"));
        let node = |found: Option<&Found>| found.and_then(|found| found.node);
        let is_other = |found: Option<&Found>| {
            node(found).is_some_and(|node| !matches!(self.names.nodes[node as usize].what, What::Directory { .. }))
        };
        let by_first = match call.kind {
            Kind::Open => call.flags & libc::O_CREAT as u32 != 0 && node(at).is_none(),
            Kind::Symlink | Kind::Mknod => node(at).is_none(),
            Kind::Unlink | Kind::Rename => is_other(at),
            _ => false,
        };
        let by_second = match call.kind {
            Kind::Link => node(to).is_none(),
            Kind::Rename => node(to).is_none() || is_other(to),
            _ => false,
        };
        call.result < 0 && (by_first && has_slash(call.at) || by_second && has_slash(call.to))
    }

    /// The name of a socket.
    fn bound(&mut self, block: &Block, call: &Call, mark: Mark) -> Result<(), &'static str> {
        let found = self.named(block, call.at.expect("its caller has looked"), [false, true], mark)?;
        self.makes_special(&found, mark);
        Err(UNCOVERED)
    }

    /// It is not made, and calls that use it are left out.
    fn makes_special(&mut self, found: &Found, mark: Mark) {
        let new = self.names.node(What::Special);
        self.bind(found, Some(new), mark);
    }

    /// Leaves out what is about an open device, pipe or socket, which was not opened here. A copy from or to one is still a write or a read
    /// of the other file.
    fn without_special(&mut self, call: &Call) -> Result<Call, &'static str> {
        let mut rest = *call;
        if call.kind == Kind::Open || !self.names.had_special() {
            return Ok(rest);
        }
        let is_special = |number: u32| self.open.get(&number).is_some_and(|file| self.names.is_special(file.node));
        let [file, other] = [call.file, call.other].map(is_special);
        if call.kind == Kind::Close && file {
            self.open.remove(&call.file);
        }
        if file {
            rest.file = 0;
        }
        if other {
            rest.other = 0;
        }
        let is_left = call.kind.is_copy() && (rest.file, rest.other) != (0, 0);
        if (file || other) && !is_left { Err(SPECIAL) } else { Ok(rest) }
    }

    /// Leaves out what is about a device, a pipe or a socket that was not made, or failed because of one.
    fn on_special(
        &mut self,
        call: &Call,
        at: Option<&Found>,
        to: Option<&Found>,
        mark: Mark,
    ) -> Result<(), &'static str> {
        if !self.names.had_special() {
            return Ok(());
        }
        let node = |found: Option<&Found>| found.and_then(|found| found.node);
        let is_special = |found: Option<&Found>| node(found).is_some_and(|node| self.names.is_special(node));
        let [at_special, to_special] = [is_special(at), is_special(to)];
        if call.result < 0 {
            let full = match call.kind {
                Kind::Rmdir => node(at),
                Kind::Rename => node(to),
                _ => None,
            };
            let in_full = full.is_some_and(|directory| self.names.has_special(directory));
            return if at_special || to_special || in_full { Err(SPECIAL) } else { Ok(()) };
        }
        let exchanges = call.kind == Kind::Rename && call.flags & libc::RENAME_EXCHANGE != 0;
        if !(at_special || exchanges && to_special) {
            return Ok(());
        }
        match (call.kind, at, to) {
            (Kind::Open, Some(Found { node: Some(node), .. }), _) => {
                self.open.insert(call.other, OpenFile::new(*node, 0, mark));
            }
            (Kind::Unlink, Some(at), _) => self.bind(at, None, mark),
            (Kind::Link, Some(at), Some(to)) => self.bind(to, at.node, mark),
            (Kind::Rename, Some(at), Some(to)) if at.node != to.node => {
                self.bind(at, if exchanges { to.node } else { None }, mark);
                self.bind(to, at.node, mark);
            }
            _ => {}
        }
        Err(SPECIAL)
    }

    /// What a call does to the size of a file: others that use the file wait for it.
    fn sized(&mut self, call: &Call, node: Option<u32>, mark: Mark) {
        let wrote = call.kind.writes() && call.result > 0;
        if call.kind.writes() {
            self.program.most_written = self.program.most_written.max(call.length);
            self.program.data[data_of(call.mode)] = true;
        }
        // One of the two may be no file of the recording's.
        let copied = (call.kind.is_copy() || call.kind == Kind::Reflink) && call.other != 0;
        let node = if copied { self.open.get(&call.other).map(|file| file.node) } else { node };
        if call.kind.is_copy() {
            let most = if call.file == 0 { &mut self.program.most_written } else { &mut self.program.most_read };
            *most = (*most).max(call.result.max(0) as u64);
        }
        let Some(node) = node else { return };
        let cloned_bytes = match self.open.get(&call.file).map(|file| &self.names.nodes[file.node as usize].what) {
            Some(What::File { size_bytes }) if call.length == 0 => *size_bytes,
            _ => call.length,
        };
        let node = &mut self.names.nodes[node as usize];
        let What::File { size_bytes } = &mut node.what else { return };
        let before = *size_bytes;
        let file = self.open.get_mut(if copied { &call.other } else { &call.file });
        let appends = file.as_ref().is_some_and(|file| appends(file.appends, call.vector_flags()));
        let (is_placed, moved) = match call.kind {
            Kind::Write | Kind::Writev if wrote => (None, call.result),
            Kind::Pwrite | Kind::Pwritev if wrote => (Some(call.offset), call.result),
            Kind::Truncate | Kind::Ftruncate | Kind::Fallocate if call.result >= 0 => (None, 0),
            Kind::Reflink if copied && call.result >= 0 => (Some(call.other_offset), cloned_bytes as i64),
            _ if copied && call.result >= 0 => (Some(call.other_offset).filter(|offset| *offset >= 0), call.result),
            _ => return,
        };
        match (call.kind, file) {
            (Kind::Truncate | Kind::Ftruncate, _) => *size_bytes = call.length,
            (Kind::Fallocate, _) if call.flags != 0 => {}
            (Kind::Fallocate, _) => *size_bytes = before.max((call.offset.max(0) as u64).saturating_add(call.length)),
            (_, Some(file)) => {
                let at = if appends { before as i64 } else { is_placed.unwrap_or(file.position) };
                let end = at.saturating_add(moved);
                if is_placed.is_none() {
                    file.position = end;
                }
                *size_bytes = before.max(end.max(0) as u64);
            }
            _ => {}
        }
        let moves_data = call.kind == Kind::Fallocate && call.flags & !(libc::FALLOC_FL_KEEP_SIZE as u32) != 0;
        let is_cut = *size_bytes < before || moves_data;
        if *size_bytes != before || !call.kind.writes() {
            node.changed = Some(mark);
            self.waits.extend(node.at_end.take());
            if is_cut {
                self.waits.extend(node.readers.take().into_iter().chain(node.writers.take()));
            }
        }
        node.writers.add(mark);
    }

    fn opened(&mut self, call: &Call, action: &mut Action, found: Found, mark: Mark) -> Result<(), &'static str> {
        if call.result < 0 {
            return Ok(());
        }
        let has = |flag: i32| call.flags & flag as u32 == flag as u32;
        let unnamed = has(libc::O_TMPFILE);
        let node = match found.node {
            Some(_) if unnamed => self.names.node(What::File { size_bytes: 0 }),
            Some(node) => {
                let writes = call.flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32;
                let file = &mut self.names.nodes[node as usize];
                if let What::File { size_bytes } = &mut file.what
                    && has(libc::O_TRUNC)
                    && writes
                    && *size_bytes > 0
                {
                    *size_bytes = 0;
                    file.changed = Some(mark);
                    self.waits.extend(file.readers.take().into_iter().chain(file.writers.take()));
                }
                node
            }
            // Without O_CREAT something made it unseen; the call will differ.
            None => {
                let new = self.names.node(What::File { size_bytes: 0 });
                self.bind(&found, Some(new), mark);
                self.names.nodes[new as usize].changed = Some(mark);
                new
            }
        };
        let slot = self.program.files;
        self.program.files += 1;
        action.other = slot;
        let position = if call.flags & INHERITED != 0 { call.offset } else { 0 };
        let [appends, is_path] = [libc::O_APPEND, libc::O_PATH].map(has);
        self.open.insert(call.other, OpenFile { position, appends, is_path, ..OpenFile::new(node, slot, mark) });
        Ok(())
    }
}
