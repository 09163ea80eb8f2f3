//! The protocol's versions.

/// Every version of the protocol there has been, and what it brought: this enum is the changelog.
///
/// Host and agent are usually the same binary; they differ when a guest image made by another fstone is booted.
/// A frame of an unknown version is refused, never guessed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Version {
    /// Hello, chunk and job, heartbeat, progress, result, log, ack, dump, bye.
    First = 1,
}

impl Version {
    pub const CURRENT: Self = Self::First;

    pub const fn byte(self) -> u8 {
        self as u8
    }

    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::First),
            _ => None,
        }
    }
}
