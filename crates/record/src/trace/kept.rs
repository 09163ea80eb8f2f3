//! What a program has recorded of its calls itself.

use libc::pid_t;

/// Addresses, and what is there.
pub(super) type Pointed = Vec<(u64, Vec<u8>)>;

/// The beginning or the end of a call that a program has recorded itself.
pub(super) struct Event {
    pub(super) ns: u64,
    pub(super) thread: pid_t,
    /// The number of its entry.
    pub(super) entry: u64,
    pub(super) what: Happened,
}

#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no program records itself there"))]
pub(super) enum Happened {
    Began { number: u64, arguments: [u64; 6], pointed: Pointed },
    Ended { result: i64 },
}
