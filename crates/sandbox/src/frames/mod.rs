//! Frames: how the host and the agent in a guest talk, over any pair of byte streams.
//!
//! A guest may crash in the middle of a byte, and a hostile or broken one may send anything. So every frame has a
//! magic, a protocol version, a sequence number, a bounded length and a checksum; memory grows only with bytes
//! that really arrived; and whatever is wrong becomes a [`ReadError`] that says what was expected.
//!
//! ```text
//! 0   2      3    4          8        12      16
//! magic version kind sequence length   crc     payload (length bytes)
//! "fs"  u8      u8   u32      u32      u32     head length u16 | head, JSON | body, opaque bytes
//! ```
//!
//! Integers are little-endian. The CRC-32 (IEEE 802.3) covers bytes 0–11 and the payload. Sequence numbers count
//! from 0 in each direction, so a frame lost by a serial line is noticed.
//!
//! [`Version`] is the protocol's changelog; tests pin the encoded bytes of each version.

mod check;
mod message;
mod read;
mod version;
mod write;

pub use message::{Heartbeat, Hello, JobStatus, Kind, Message, TscFacts};
pub use read::{FrameReader, ReadError, check_stream};
pub use version::Version;
pub use write::{FrameWriter, WriteError, encode};

pub(crate) const MAGIC: [u8; 2] = *b"fs";

pub(crate) const HEADER_BYTES: usize = 16;

/// Longest JSON head. Hello is the largest, with some dozens of filesystem names.
pub(crate) const MAX_HEAD_BYTES: usize = 32 << 10;

/// Longest body of a job or a result. A load report with all its histograms is some hundreds of KiB.
pub const MAX_BODY_BYTES: usize = 64 << 20;

pub(crate) const MAX_SMALL_BODY_BYTES: usize = 64 << 10;

fn checksum(parts: &[&[u8]]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.finalize()
}
