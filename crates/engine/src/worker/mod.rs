//! A thread of the load, as far as operations see it: the files it holds, where its next operation goes, what came of
//! it.
//!
//! Reading order: [`Worker`] is the thread and its tools; `choose` picks a file, [`Blocks`] the places in it, `aim` is
//! both worked out in advance; `files` opens, closes and lets go; `handles` are what a program holds open; `tour` is where a thread is on its way through files, `checkpoint` where one that continues was; `descriptors` knows who owns the descriptor of a file that stays open.

mod aim;
mod attempt;
mod blocks;
mod checkpoint;
mod choose;
mod descriptors;
mod files;
mod handles;
mod held;
mod load;
mod on_tour;
mod own_table;
mod picked;
mod state;
mod thread;
mod tour;

pub(crate) use aim::Target;
pub(crate) use attempt::{Attempt, Fault, Incomplete};
pub(crate) use blocks::Blocks;
pub(crate) use checkpoint::ThreadCheckpoint;
pub(crate) use descriptors::Kept;
pub use descriptors::raise_descriptor_limit;
pub(crate) use load::{Load, SoFar};
pub(crate) use on_tour::NextOfTour;
pub(crate) use own_table::OwnTable;
pub(crate) use picked::Picked;
pub(crate) use thread::Worker;
