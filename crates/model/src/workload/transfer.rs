//! Movements of data: how much, and where in a file.

use serde::{Deserialize, Serialize};

/// A movement of data within a file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    pub extent: Extent,
    /// How much per system call; the last may be shorter.
    pub block_bytes: u64,
    pub pattern: Pattern,
    pub fsync: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    Whole,
    /// This many bytes (or less, where the file ends).
    Bytes(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    FromStart,
    /// Sequentially from an offset drawn uniformly.
    FromRandom {
        /// Offsets are multiples of this; 1 for any.
        align_bytes: u64,
    },
    /// From where the last operation ended, wrapping round; one cursor for all threads of the group, or one each.
    Cursor {
        shared: bool,
    },
    /// Every block at an offset of its own.
    Random {
        distribution: Distribution,
        /// Offsets are multiples of this; 1 for any.
        align_bytes: u64,
    },
    /// From the start, a block, then skip, and again.
    Skip {
        skip_bytes: u64,
    },
    /// Each operation begins so many bytes behind the end of the thread's last one, or so many before it if that is negative. What would
    /// begin or end outside the file begins at its start, or so many bytes before its end.
    Stride {
        gap_bytes: i64,
        /// Operations, each right behind the last, between two such gaps; at least 1.
        run: u32,
    },
    /// A position drawn uniformly, then this many operations of the thread, each after the one before.
    Bursts {
        operations: u32,
        /// Places are multiples of this; 1 for any.
        align_bytes: u64,
    },
    /// What was written in so many phases before this one, piece by piece as it was written and from the files' begin on; a thread is done
    /// when it has read all. Only of data that is stamped, whose writes the load remembers.
    Written {
        phases: u32,
    },
    /// By a handle: block after block through runs of equal length, beyond the file's end where it is written, and again from the first
    /// when all were moved (IOR's segments).
    Runs(Runs),
}

/// Runs of a file that are gone through as if they were one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    pub begin_bytes: u64,
    pub run_bytes: u64,
    pub gap_bytes: u64,
    /// Length of all together, without gaps.
    pub total_bytes: u64,
    /// In a load of many ranks: the first runs of all ranks follow each other, then all second ones, and so on. `begin_bytes` and `gap_bytes`
    /// come from that.
    pub interleaved: bool,
    /// Whether the blocks come in an order drawn at random, each once.
    pub shuffled: bool,
}

impl Runs {
    pub fn of_rank(self, rank: u32, ranks: u32) -> Self {
        if !self.interleaved {
            return self;
        }
        let others = u64::from(ranks.saturating_sub(1));
        Self {
            begin_bytes: self.begin_bytes.saturating_add(self.run_bytes.saturating_mul(u64::from(rank))),
            gap_bytes: self.gap_bytes.saturating_add(self.run_bytes.saturating_mul(others)),
            interleaved: false,
            ..self
        }
    }

    /// The file offset of the byte with this number, and how many bytes follow it in its run.
    pub fn place(&self, byte: u64) -> (u64, u64) {
        let run = self.run_bytes.max(1);
        let (number, within) = (byte / run, byte % run);
        let begin = number.saturating_mul(run.saturating_add(self.gap_bytes)).saturating_add(self.begin_bytes);
        (begin.saturating_add(within), run - within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_runs_are_disjoint_and_all_of_the_file() {
        for (ranks, segments, run) in [(1, 1, 5), (3, 4, 7), (8, 2, 1)] {
            let runs = Runs { run_bytes: run, total_bytes: run * segments, interleaved: true, ..Runs::default() };
            let mut bytes: Vec<u64> = (0..ranks)
                .flat_map(|rank| (0..runs.total_bytes).map(move |byte| runs.of_rank(rank, ranks).place(byte).0))
                .collect();
            bytes.sort_unstable();
            assert_eq!(bytes, (0..u64::from(ranks) * segments * run).collect::<Vec<_>>());
        }
        let second = Runs { run_bytes: 10, interleaved: true, ..Runs::default() }.of_rank(1, 3);
        assert_eq!((second.place(0), second.place(9), second.place(13)), ((10, 10), (19, 1), (43, 7)));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    Uniform,
    /// Zipf with exponent theta (> 0); ranks are scattered over the space by a fixed permutation.
    Zipf {
        theta: f64,
    },
    /// Normal around the middle with this standard deviation, as a share of the space, cut off at its ends.
    Gauss {
        deviation: f64,
        /// Whether places are scattered over the space by a fixed permutation, so that frequent ones are not neighbours.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        scattered: bool,
    },
    /// Each block exactly once in a seeded random order, then again in another order.
    Permutation,
    /// By the Pareto principle: a share h of the space is drawn a share 1 - h of the time, and so on within that share. Places are
    /// scattered over the space by a fixed permutation.
    Pareto {
        /// h, above 0 and below 1; at 0.5 all are alike.
        share: f64,
    },
    /// The space is divided into zones, drawn by weight and uniform within each.
    Zoned(Zones),
}

/// What one operation moves at most, bytes: what fio can count. A system call moves at most 2 GiB less a page, and the rest takes another.
pub const MAXIMUM_BLOCK_BYTES: u64 = u32::MAX as u64;

pub const MAXIMUM_ZONES: usize = 16;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// It gets weight / sum of weights of the operations.
    pub weight: u32,
    /// It is length / sum of lengths of the space.
    pub length: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Zone>", into = "Vec<Zone>")]
pub struct Zones {
    zones: [Zone; MAXIMUM_ZONES],
    count: usize,
}

impl Zones {
    /// `None` unless there are 1 to [`MAXIMUM_ZONES`] zones, each with a length, and at least one with a weight.
    pub fn new(of: &[Zone]) -> Option<Self> {
        let fits = (1..=MAXIMUM_ZONES).contains(&of.len())
            && of.iter().all(|zone| zone.length > 0)
            && of.iter().any(|zone| zone.weight > 0);
        let mut zones = [Zone::default(); MAXIMUM_ZONES];
        zones.get_mut(..of.len()).filter(|_| fits)?.copy_from_slice(of);
        Some(Self { zones, count: of.len() })
    }

    pub fn all(&self) -> &[Zone] {
        &self.zones[..self.count]
    }

    /// Sum of the weights; above 0.
    pub fn weights(&self) -> u64 {
        self.all().iter().map(|zone| u64::from(zone.weight)).sum()
    }

    /// Weight, begin and end of each zone of a space of so many places. A zone that is too short for one has the place that it
    /// begins in.
    pub fn of(&self, space: u64) -> impl Iterator<Item = (u32, u64, u64)> {
        let total = u128::from(self.all().iter().map(|zone| u64::from(zone.length)).sum::<u64>());
        let place = move |length: u64| (u128::from(space) * u128::from(length) / total.max(1)) as u64;
        let mut before = 0;
        self.all().iter().map(move |zone| {
            let begin = place(before).min(space.saturating_sub(1));
            before += u64::from(zone.length);
            (zone.weight, begin, place(before).max(begin + 1))
        })
    }
}

impl TryFrom<Vec<Zone>> for Zones {
    type Error = String;

    fn try_from(of: Vec<Zone>) -> Result<Self, String> {
        Self::new(&of).ok_or_else(|| format!("not 1 to {MAXIMUM_ZONES} zones of some length and weight"))
    }
}

impl From<Zones> for Vec<Zone> {
    fn from(zones: Zones) -> Self {
        zones.all().to_vec()
    }
}

impl std::fmt::Debug for Zones {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.all()).finish()
    }
}
