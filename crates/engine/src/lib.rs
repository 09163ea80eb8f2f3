//! The load engine: runs a [`fstone_model::Workload`] on a directory and says what it did, how long each operation
//! took, and whether to believe it.
//!
//! Reading order, in which each room sees those named after it but none before: `run` is a load from its filesets to its
//! report; `drive` is how a thread goes through its operations; `ops` is what the load can do, an operation a function;
//! `worker` is the thread as operations see it (it chooses files and places, holds and opens them); `plan` is a phase made
//! ready; `audit` is what the load finds out about itself; `measure` is the clock and the counting; `pattern` is which block
//! comes next; `fileset` is the files; `io` is how calls reach the kernel; `promises` is what the kernel acknowledged; `data` is what is written.
//! Apart from loads, `sequences` carries out short lists of calls before power cuts, and `age` ages a filesystem.
//!
//! This crate knows nothing of devices, filesystems' makers, studies, tables or files that describe workloads. It
//! prints nothing, and it removes nothing but its own files: those that have the names of a fileset, in a directory that was
//! empty or carries fstone's mark (`fileset/claim.rs`).

pub mod age;
mod audit;
mod data;
mod drive;
mod errno;
mod error;
mod fileset;
mod io;
mod measure;
mod ops;
mod options;
mod pattern;
mod peers;
mod plan;
mod promises;
mod random;
mod run;
pub mod sequences;
#[cfg(test)]
mod tests_support;
mod worker;

pub use errno::errno_words;
pub use error::LoadError;
pub use io::CallLog;
pub use measure::clock::thread_usage;
pub use measure::idleness::IdleMeter;
pub use options::{Observer, Ownership, Progress, RunOptions, Unobserved};
pub use peers::{Parted, Peers};
pub use promises::{Broken, Change, FileId, Kept, Made, Property, Witness};
pub use run::{Damage, Prepared, Removed, Verification, prepare, remove_directories, run, run_verified};
pub use worker::raise_descriptor_limit;
