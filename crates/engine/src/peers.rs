//! The other ranks of a load, as the engine needs them: to begin together, to work on each other's files, and to end
//! together. Who carries the messages is not known here.

use fstone_model::{ranks::PhasePassed, workload::RankShift};

/// The load of all ranks has ended early, because one failed, or somebody ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parted;

/// The other ranks of a load. All ranks run the same workload, so that all come to the same calls in the same order; each of
/// them but [`Self::whose`], [`Self::begun`], [`Self::ended`] and [`Self::parted`] waits for other ranks.
///
/// Called from the thread that runs the load, never from those that perform operations.
pub trait Peers: Sync {
    /// This rank, from 0.
    fn rank(&self) -> u32;
    fn size(&self) -> u32;
    /// Whose files each of the workload's phases works on, and who works on this rank's.
    fn whose(&self) -> &[RankShift];
    /// The seed of all ranks, for what they have in common.
    fn common_seed(&self) -> u64;
    /// This rank's threads stand ready for a phase. Returns when all ranks are to begin.
    fn begin(&self, phase: usize) -> Result<(), Parted>;
    fn begun(&self);
    fn ended(&self, passed: PhasePassed);
    /// Waits until all ranks are here.
    fn meet(&self) -> Result<(), Parted>;
    /// Gives to all ranks what rank 0 has, which alone passes something.
    fn share(&self, bytes: Option<Vec<u8>>) -> Result<Vec<u8>, Parted>;
    /// Gives something to one rank and takes something from another.
    fn exchange(&self, to: u32, from: u32, bytes: Vec<u8>) -> Result<Vec<u8>, Parted>;
    /// The largest of all ranks' counts, place by place.
    fn most(&self, counts: &[u64]) -> Result<Vec<u64>, Parted>;
    /// Whether the load of all ranks has ended early: this rank is to end its own soon, and to report what it did.
    fn parted(&self) -> bool;
}
