//! Calls that a program records itself, without a stop: a library that is loaded before its others (`shim/record.rs`) has functions in place
//! of libc's, which keep each call with its times in memory that the tracer shares.
//!
//! Each thread has a ring of entries there. What was kept is looked at before any stop is, in the order of time. Calls that the library does
//! not make stop, and so do those of a process that cannot have it: no other program is changed. No program sees the library in its
//! environment: the tracer adds it to the new program's stack, and takes it away when the library has been loaded.

#![expect(unsafe_code, reason = "memory that another process writes to")]

#[expect(unreachable_pub, reason = "the library has it at its top")]
#[path = "../../shim/shared.rs"]
mod shared;

use super::ptrace;
use libc::{c_void, pid_t};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::mm::{MapFlags, ProtFlags};
use shared::{BEGUN, ENDED, Entry, INVITED, LOCK, NAME, OVER, POINTS, RINGS, ROOM, Ring, Shared, VALUE};
pub(super) use shared::{EVENTS, FILE, HELLO, PIPE, STUB, STUB_BYTES};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Empty where it could not be compiled.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/record.so"));

/// A program that may open fewer could not open the library.
const LEAST_DESCRIPTORS: u64 = 8;
/// A child that makes so many calls about files may record them itself from then on. Most start a program before.
const CALLS_OF_CHILD: u32 = 16;

/// Addresses, and what is there.
pub(super) type Pointed = Vec<(u64, Vec<u8>)>;

/// The beginning or the end of a call that a program has recorded itself.
pub(super) struct Event {
    pub(super) ns: u64,
    /// What keeping it cost, before and after that.
    pub(super) cost_ns: [u64; 2],
    pub(super) thread: pid_t,
    /// The number of its entry.
    pub(super) entry: u64,
    pub(super) what: Happened,
}

pub(super) enum Happened {
    Began { number: u64, arguments: [u64; 6], pointed: Pointed },
    Ended { result: i64 },
}

/// Until when what threads have kept is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Until {
    pub(super) ns: u64,
    /// The thread has this descriptor now. What others did until they closed it is wanted as well, if that was until `seen_ns`.
    pub(super) closed: Option<(pid_t, u64)>,
    pub(super) seen_ns: u64,
}

/// What a process shares with the tracer.
struct Memory {
    shared: *const Shared,
    free: RefCell<Vec<usize>>,
    /// Nothing is kept any more.
    is_off: Cell<bool>,
}

impl Memory {
    fn of(thread: pid_t, fd: u64) -> Option<Self> {
        let file = File::options().read(true).write(true).open(format!("/proc/{thread}/fd/{fd}")).ok()?;
        let length = size_of::<Shared>();
        if file.metadata().ok()?.len() != length as u64 {
            return None;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a mapping where nothing is.
        let memory =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, &file, 0).ok()? };
        let free = RefCell::new((0..RINGS).rev().collect());
        Some(Self { shared: memory.cast_const().cast(), free, is_off: Cell::new(false) })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the mapping lives as long as this, and is of atomic integers alone. Others write to it as they like.
        unsafe { &*self.shared }
    }

    fn off(&self) {
        self.is_off.set(true);
        self.shared().rings.iter().for_each(|ring| ring.limit.store(0, Relaxed));
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        let _ = unsafe { rustix::mm::munmap(self.shared.cast_mut().cast::<c_void>(), size_of::<Shared>()) };
    }
}

/// A thread of a process that has the library.
struct Member {
    memory: Rc<Memory>,
    /// `None` before it runs, and if there is none left.
    ring: Option<usize>,
    /// The first entry that has not ended, and what was said of it and those after it.
    first: u64,
    said: [u64; ROOM],
    is_paused: bool,
}

impl Member {
    fn new(memory: Rc<Memory>) -> Self {
        Self { memory, ring: None, first: 0, said: [0; ROOM], is_paused: false }
    }

    fn ring(&self) -> Option<&Ring> {
        self.ring.map(|ring| &self.memory.shared().rings[ring])
    }

    fn set_limit(&self) {
        let limit = if self.is_paused || self.memory.is_off.get() { 0 } else { self.first + ROOM as u64 };
        self.ring().into_iter().for_each(|ring| ring.limit.store(limit, Release));
    }
}

pub(super) struct Preload {
    library: File,
    /// Who the tracer is, as `/proc/PID/status` has it: only its equals can open the library.
    equal: Vec<String>,
    /// Where programs that were just started have it in their environment.
    places: HashMap<pid_t, ptrace::Variable>,
    /// Where threads have the word that says whether their process is invited, and how many of their calls stopped.
    words: HashMap<pid_t, (u64, u32)>,
    members: HashMap<pid_t, Member>,
}

impl Preload {
    /// `None` where it cannot be had.
    pub(super) fn new() -> Option<Self> {
        if LIBRARY.is_empty() {
            return None;
        }
        let library = memfd_create("fstone", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).ok()?;
        let mut library = File::from(library);
        library.write_all(LIBRARY).ok()?;
        fcntl_add_seals(&library, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE).ok()?;
        let equal = Self::standing(std::process::id() as pid_t, 1)?;
        Some(Self { library, equal, places: HashMap::new(), words: HashMap::new(), members: HashMap::new() })
    }

    /// The name of the library, for the programs.
    pub(super) fn name(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.library.as_raw_fd())
    }

    /// A process's rights, how many filters it has but for some, and where its names begin.
    fn standing(process: pid_t, filters: u32) -> Option<Vec<String>> {
        let text = ptrace::proc_text(&format!("/proc/{process}/status"))?;
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(|rest| rest.trim().to_owned());
        let mut all: Vec<String> = ["Uid:", "Gid:", "CapEff:"].into_iter().map(value).collect::<Option<_>>()?;
        all.push((value("Seccomp_filters:")?.parse::<u32>().ok()? + filters).to_string());
        for link in ["root", "ns/mnt", "ns/pid"] {
            all.push(std::fs::read_link(format!("/proc/{process}/{link}")).ok()?.to_string_lossy().into_owned());
        }
        Some(all)
    }

    /// A new program has not run yet: has it load the library, if it can.
    pub(super) fn insert(&mut self, thread: pid_t) {
        self.leave(thread);
        if Self::standing(thread, 0).as_ref() == Some(&self.equal)
            && ptrace::limit(thread, libc::RLIMIT_NOFILE) >= LEAST_DESCRIPTORS
            && ptrace::limit(thread, libc::RLIMIT_FSIZE) >= size_of::<Shared>() as u64
            && let Some(place) = ptrace::add_variable(thread, "LD_PRELOAD", &self.name())
        {
            self.places.insert(thread, place);
        }
    }

    /// The library has been loaded, and has memory for what it keeps.
    pub(super) fn welcome(&mut self, thread: pid_t, fd: u64, word: u64, is_alone: bool) -> bool {
        match self.places.remove(&thread) {
            Some(place) => {
                ptrace::remove_variable(thread, place);
                self.words.insert(thread, (word, 0));
            }
            // A child may have filters that end it, and other rights than its parent.
            None if Self::standing(thread, 0).as_ref() != Some(&self.equal) => return false,
            None => {}
        }
        let Some(memory) = Memory::of(thread, fd).filter(|_| is_alone) else { return false };
        memory.shared().accepted.store(1, Release);
        self.members.insert(thread, Member::new(Rc::new(memory)));
        self.runs(thread);
        true
    }

    /// A call about files has stopped, of a process that shares neither memory nor descriptors.
    pub(super) fn invite(&mut self, thread: pid_t) {
        let Some((word, calls)) = self.words.get_mut(&thread).filter(|_| !self.members.contains_key(&thread)) else {
            return;
        };
        *calls += 1;
        let mut there = [1; 8];
        // Its filters may forbid the calls for it, and only one that has none but the tracer's is sure.
        if *calls == CALLS_OF_CHILD
            && ptrace::read(thread, *word, &mut there) == there.len()
            && there == [0; 8]
            && Self::standing(thread, 0).as_ref() == Some(&self.equal)
        {
            ptrace::write(thread, *word, &INVITED.to_ne_bytes());
        }
    }

    /// The thread, and the children that it forks, may not be able to make the library's calls any more.
    pub(super) fn forbid(&mut self, thread: pid_t) {
        if let Some((word, _)) = self.words.remove(&thread) {
            ptrace::write(thread, word, &OVER.to_ne_bytes());
        }
    }

    pub(super) fn has(&self, thread: pid_t) -> bool {
        self.members.contains_key(&thread)
    }

    pub(super) fn are_used(&self) -> bool {
        !self.members.is_empty()
    }

    /// A thread made another thread or a process.
    pub(super) fn spawned(&mut self, parent: pid_t, child: pid_t, flags: u32) {
        match self.words.get(&parent).copied() {
            Some((word, _)) => self.words.insert(child, (word, 0)),
            None => self.words.remove(&child),
        };
        let Some(of) = self.members.get(&parent) else { return };
        let has = |flags_of: i32| flags & flags_of as u32 == flags_of as u32;
        if has(libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_THREAD | libc::CLONE_SETTLS) {
            let member = Member::new(of.memory.clone());
            self.members.insert(child, member);
        } else if !has(libc::CLONE_VFORK) && (has(libc::CLONE_VM) || has(libc::CLONE_FILES)) {
            of.memory.off();
        }
    }

    /// A thread that has stopped is about to run for the first time: from now on it is known by its thread pointer.
    pub(super) fn runs(&mut self, thread: pid_t) {
        let Some(member) = self.members.get_mut(&thread).filter(|member| member.ring.is_none()) else { return };
        let Some(key) = ptrace::thread_pointer(thread).filter(|key| *key != 0) else { return };
        let Some(ring) = member.memory.free.borrow_mut().pop() else { return };
        member.ring = Some(ring);
        let memory = member.memory.clone();
        let shared = memory.shared();
        shared.rings[ring].busy.store(0, Relaxed);
        // There is no memory yet behind the entries of a ring that was not used.
        if shared.rings[ring].taken.swap(0, Relaxed) != 0 {
            shared.rings[ring].entries.iter().for_each(|entry| entry.state.store(0, Relaxed));
        }
        member.set_limit();
        // The same key is of a thread that is about to end.
        let keys = shared.keys.iter().map(|key| key.load(Relaxed)).collect::<Vec<_>>();
        let place = [key, GONE, 0].into_iter().find_map(|wanted| keys.iter().position(|key| *key == wanted));
        if let Some(place) = place {
            shared.of_keys[place].store(ring as u64, Relaxed);
            shared.keys[place].store(key, Release);
        }
    }

    /// A child that has the thread's memory runs in its place, or no longer does.
    pub(super) fn pause(&mut self, thread: pid_t, is_paused: bool) {
        if let Some(member) = self.members.get_mut(&thread) {
            member.is_paused = is_paused;
            member.set_limit();
        }
    }

    /// A process is to keep no call any more.
    pub(super) fn off(&self, thread: pid_t) {
        self.members.get(&thread).into_iter().for_each(|member| member.memory.off());
    }

    /// The thread has ended, or its process has another program.
    pub(super) fn leave(&mut self, thread: pid_t) {
        self.places.remove(&thread);
        self.words.remove(&thread);
        let Some(Member { memory, ring: Some(ring), .. }) = self.members.remove(&thread) else { return };
        let shared = memory.shared();
        for (key, of_key) in shared.keys.iter().zip(&shared.of_keys) {
            if key.load(Relaxed) != 0 && of_key.load(Relaxed) == ring as u64 {
                key.store(GONE, Relaxed);
            }
        }
        memory.free.borrow_mut().push(ring);
    }

    pub(super) fn know(&self, thread: pid_t, fd: i32, known: impl FnOnce() -> u8) {
        if let Some(member) = self.members.get(&thread)
            && let Some(place) = usize::try_from(fd).ok().and_then(|fd| member.memory.shared().known.get(fd))
        {
            place.store(known(), Release);
        }
    }

    /// When a thread has last ended or begun a call that was not said yet.
    fn last_ns(&self, thread: pid_t) -> Option<u64> {
        let member = self.members.get(&thread)?;
        let ring = member.ring()?;
        let taken = ring.taken.load(Acquire).min(member.first + ROOM as u64);
        let last = taken.checked_sub(1).filter(|last| *last >= member.first)?;
        let entry = &ring.entries[(last % ROOM as u64) as usize];
        let which = match entry.state.load(Acquire) {
            BEGUN => 1,
            ENDED => 2,
            _ => return None,
        };
        Some(entry.times_ns[which].load(Relaxed))
    }

    /// When a thread of the same process was last about to close a descriptor, of what was not said yet.
    fn closed(&self, thread: pid_t, fd: u64) -> Option<u64> {
        let of = &self.members.get(&thread)?.memory;
        let others = self.members.values().filter(|member| Rc::ptr_eq(&member.memory, of));
        let calls = others.filter_map(|member| member.ring().map(|ring| (member, ring))).flat_map(|(member, ring)| {
            let taken = ring.taken.load(Acquire).min(member.first + ROOM as u64);
            (member.first..taken).map(|number| (number % ROOM as u64) as usize).filter_map(|place| {
                let entry = &ring.entries[place];
                let is_new = member.said[place] == 0 && [BEGUN, ENDED].contains(&entry.state.load(Acquire));
                let closes = entry.number.load(Relaxed) == libc::SYS_close as u64;
                (is_new && closes && entry.arguments[0].load(Relaxed) as u32 == fd as u32)
                    .then(|| entry.times_ns[1].load(Relaxed))
            })
        });
        calls.max()
    }

    /// What was kept and not said yet, in the order of time: of the thread all, of others what was until some time.
    pub(super) fn events(&mut self, of: Option<pid_t>, until: Until, now_ns: impl Fn() -> u64) -> Vec<Event> {
        let mut events = Vec::new();
        let (now_ns, clock_ns) = (now_ns(), ptrace::clock(libc::CLOCK_MONOTONIC));
        // In this order of the two it is not later than it was.
        let moment = |then: u64| now_ns.saturating_sub(clock_ns.saturating_sub(then));
        let closed_ns = until.closed.and_then(|(thread, fd)| self.closed(thread, fd));
        let closed_ns = closed_ns.map(moment).filter(|ns| *ns <= until.seen_ns);
        // Nor is the thread's own last call later than when it stopped, which is not known exactly.
        let own_ns = of.and_then(|thread| self.last_ns(thread)).map(moment);
        let until_ns = until.ns.max(closed_ns.unwrap_or(0)).max(own_ns.unwrap_or(0));
        for (&thread, member) in &mut self.members {
            let Some(ring) = member.ring else { continue };
            let (memory, before) = (member.memory.clone(), member.first);
            let ring = &memory.shared().rings[ring];
            let most_ns = if of == Some(thread) { u64::MAX } else { until_ns };
            let taken = ring.taken.load(Acquire).min(member.first + ROOM as u64);
            for number in member.first..taken {
                let place = (number % ROOM as u64) as usize;
                let (entry, said) = (&ring.entries[place], &mut member.said[place]);
                let state = entry.state.load(Acquire);
                let [entered_ns, began_ns, ended_ns, left_ns] =
                    entry.times_ns.each_ref().map(|ns| moment(ns.load(Relaxed)));
                if *said == 0 && (state == BEGUN || state == ENDED) && began_ns <= most_ns {
                    *said = BEGUN;
                    let cost_ns = [began_ns.saturating_sub(entered_ns), 0];
                    events.push(Event { ns: began_ns, cost_ns, thread, entry: number, what: began(entry) });
                }
                if *said == BEGUN && state == ENDED && ended_ns <= most_ns {
                    *said = ENDED;
                    let what = Happened::Ended { result: entry.result.load(Relaxed) as i64 };
                    let cost_ns = [0, left_ns.saturating_sub(ended_ns)];
                    events.push(Event { ns: ended_ns, cost_ns, thread, entry: number, what });
                }
            }
            while member.first < taken && member.said[(member.first % ROOM as u64) as usize] == ENDED {
                let place = (member.first % ROOM as u64) as usize;
                member.said[place] = 0;
                ring.entries[place].state.store(0, Relaxed);
                member.first += 1;
            }
            if member.first != before {
                member.set_limit();
            }
        }
        events.sort_by_key(|event| event.ns);
        events
    }
}

/// A key of no thread any more.
const GONE: u64 = 1;

fn began(entry: &Entry) -> Happened {
    let arguments = entry.arguments.each_ref().map(|argument| argument.load(Relaxed));
    let [number, way] = [&entry.number, &entry.way].map(|word| word.load(Relaxed));
    let mut pointed = Pointed::new();
    let mut left = entry.names.iter().map(|byte| byte.load(Relaxed));
    for (bit, &address) in NAME.iter().zip(&arguments) {
        if way & bit != 0 && address != 0 {
            let mut name: Vec<u8> = left.by_ref().take_while(|byte| *byte != 0).collect();
            name.push(0);
            pointed.push((address, name));
        }
    }
    if way & POINTS != 0 && (way & NAME[1] == 0 || arguments[3] == VALUE) {
        let most = if way & NAME[1] != 0 { VALUE } else { LOCK } as usize;
        pointed.push((arguments[2], left.take(most).collect()));
    }
    Happened::Began { number, arguments, pointed }
}
