//! What threads do: operations on which files.

use super::fileset::SizeDistribution;
use super::operation::Operation;
use super::transfer::{Extent, Pattern};
use serde::{Deserialize, Serialize};

/// One kind of operation as a group performs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What results call it, in the words of the format it came from ("readall").
    pub name: String,
    pub operation: Operation,
    /// On which filesets: one, or drawn uniformly from all when `None`.
    pub fileset: Option<u32>,
    pub choice: FileChoice,
    pub transactions: TransactionRule,
    /// Sizes of its blocks, each drawn independently, if they vary: [`SizeDistribution::Uniform`], which gives
    /// multiples of the smallest, or [`SizeDistribution::Weighted`]. The operation's block is the largest of them then, and
    /// an operation of the extent of one block moves one that is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<SizeDistribution>,
    /// In a program: the handle that the action uses; `choice` then only says which file it opens if none is open.
    /// [`Operation::Open`] and [`Operation::Create`] leave a file open in it, empty where it was made, [`Operation::Close`]
    /// closes it, and [`Operation::Unlink`] removes the file that was open in it last. All others work on the file that is open
    /// in it, and open one that exists if there is none. A cursor is the handle's: reading begins anew at the end, writing goes
    /// on beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<u32>,
    /// The number of the file is drawn from this instead of `choice`: the file with that number, or the next that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<SizeDistribution>,
    /// Whether its random places come in the order of the action before it, which has the same pattern on the same files: each place again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChoice {
    /// Any live file, uniformly.
    Uniform,
    /// One after the other, by a cursor that the group's threads share.
    RoundRobin,
    /// The same, in an order drawn at random.
    Shuffled,
    /// The fileset is one concatenated space; the transfer's pattern says where in it (sysbench).
    Concatenated,
    /// The files are dealt out: thread t of n has files t, t+n, t+2n, …
    Partitioned,
    /// The file the same thread's previous action worked on (sequences: create, write, fsync).
    Same,
    /// The next one by its number, after the one that any action last chose in this way in this fileset. A file made in this way gets the next of the
    /// fileset's names that is free. A thread for which there is none is done.
    Rotation,
}

impl Action {
    /// This operation on a file of the fileset, drawn uniformly.
    pub fn new(name: impl Into<String>, operation: Operation, fileset: Option<u32>) -> Self {
        Self {
            name: name.into(),
            operation,
            fileset,
            choice: FileChoice::Uniform,
            transactions: TransactionRule::One,
            blocks: None,
            handle: None,
            numbers: None,
            follows: false,
        }
    }

    pub fn fits_tour(&self) -> bool {
        let (Operation::Read(transfer) | Operation::Write(transfer)) = &self.operation else { return false };
        let placed = matches!(transfer.pattern, Pattern::Random { .. } | Pattern::Cursor { shared: false });
        placed
            && transfer.extent == Extent::Bytes(transfer.block_bytes)
            && self.fileset.is_some()
            && self.choice == FileChoice::Uniform
            && self.handle.is_none()
            && self.numbers.is_none()
    }

    pub fn works_on(&self, fileset: usize) -> bool {
        let is_it = |index: u32| index as usize == fileset;
        self.fileset.is_none_or(is_it) || self.operation.nature().to.is_some_and(is_it)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionRule {
    One,
    /// Whole blocks moved: ⌊bytes / block⌋, but 1 if less than a block was moved.
    BlocksFloor,
    /// Blocks begun: ⌈bytes / block⌉.
    BlocksCeil,
}
