//! What `record.rs`, preloaded into a program that is recorded, and `trace/preload.rs` share.

use core::sync::atomic::{AtomicU8, AtomicU64};

/// Where the instruction is that makes calls without a stop: below what kernels choose, where sanitizers allow programs to be.
pub const STUB: u64 = 0x5546_7374_0000;
pub const STUB_BYTES: u64 = 4096;
/// `close_range(HELLO, descriptor, address)`, which fails: the descriptor is of memory for a [`Shared`], or -1; the address is of a word that
/// is 0 in a child that a fork made.
pub const HELLO: u64 = 0xfff1_5731;
/// What that word says: the recorder wants the process to get such memory; that is over.
pub const INVITED: u64 = 1;
pub const OVER: u64 = 2;
pub const RINGS: usize = 64;
pub const ROOM: usize = 128;
pub const DESCRIPTORS: usize = 1024;
/// How long names are together at most, with their ends, or what else is kept of what a call points to: two with their directories.
pub const NAMES: usize = 408;
/// Of a list of rights that says what a mode does, and of a `struct flock`.
pub const VALUE: u64 = 28;
pub const LOCK: u64 = 24;

pub const BEGUN: u64 = 1;
pub const ENDED: u64 = 2;

#[repr(C)]
pub struct Shared {
    /// Not zero once the recorder knows of it.
    pub accepted: AtomicU64,
    /// The thread pointers of threads, or 0 behind the last one, and their rings.
    pub keys: [AtomicU64; RINGS],
    pub of_keys: [AtomicU64; RINGS],
    /// Descriptors of files, which wait for no other process ([`FILE`]), of pipes without a name ([`PIPE`]), and of eventfd(2) ([`EVENTS`]).
    pub known: [AtomicU8; DESCRIPTORS],
    pub rings: [Ring; RINGS],
}

#[repr(C, align(64))]
pub struct Ring {
    /// A call is being made. One of a signal's handler meanwhile stops.
    pub busy: AtomicU64,
    /// How many entries were taken, and how many may be.
    pub taken: AtomicU64,
    pub limit: AtomicU64,
    pub entries: [Entry; ROOM],
}

#[repr(C, align(64))]
pub struct Entry {
    pub state: AtomicU64,
    pub number: AtomicU64,
    /// What of that to which it points follows each other in `names`.
    pub way: AtomicU64,
    pub arguments: [AtomicU64; 6],
    pub result: AtomicU64,
    /// CLOCK_MONOTONIC when the program asked for the call, when the call began and ended, and when the program went on.
    pub times_ns: [AtomicU64; 4],
    pub names: [AtomicU8; NAMES],
}

/// In [`Shared::known`].
pub const FILE: u8 = 1;
pub const PIPE: u8 = 2;
pub const EVENTS: u8 = 3;

/// In [`Entry::way`]: the argument that is a name, the first, second, third or fourth.
pub const NAME: [u64; 4] = [1, 2, 4, 512];
/// The third points to an attribute's value, or a `struct flock`.
pub const POINTS: u64 = 8;
