//! Movements of data: how much, and where in a file.

use serde::{Deserialize, Serialize};

/// A movement of data within a file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// How much per operation.
    pub extent: Extent,
    /// How much per system call; the last may be shorter.
    pub block_bytes: u64,
    /// Where.
    pub pattern: Pattern,
    /// Whether to fsync the file after the transfer, within the operation.
    pub fsync: bool,
}

/// How much one operation moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// The whole file.
    Whole,
    /// This many bytes (or less, where the file ends).
    Bytes(u64),
}

/// Where in a file an operation moves data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// From the start on.
    FromStart,
    /// Sequentially from an offset drawn uniformly.
    FromRandom {
        /// Offsets are multiples of this; 1 for any.
        align_bytes: u64,
    },
    /// From where the last operation ended, wrapping round; one cursor for all threads of the group, or one each.
    Cursor {
        /// Whether the threads share it.
        shared: bool,
    },
    /// Every block at an offset of its own.
    Random {
        /// How offsets are drawn.
        distribution: Distribution,
        /// Offsets are multiples of this; 1 for any.
        align_bytes: u64,
    },
    /// From the start, a block, then skip, and again.
    Skip {
        /// Bytes passed over between blocks.
        skip_bytes: u64,
    },
}

/// How random offsets are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Zipf with exponent theta (> 0); ranks are scattered over the space by a fixed permutation.
    Zipf {
        /// The exponent.
        theta: f64,
    },
    /// Normal around the middle with this standard deviation, as a share of the space, cut off at its ends.
    Gauss {
        /// Standard deviation / space.
        deviation: f64,
    },
    /// Each block exactly once, in a seeded random order, then again in another.
    Permutation,
}
