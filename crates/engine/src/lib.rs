//! The load engine: runs a [`fstone_model::Workload`] on a directory and says what it did, how long each operation
//! took, and whether to believe it.
//!
//! Reading order: `run` is a load from its filesets to its report; `run/drive.rs` is the loop of a thread; `ops` is
//! what the load can do, an operation a function; `io` is how calls reach the kernel; `fileset` is the files;
//! `pattern` is which block comes next; `data` is what is written; `measure` is the clock and the counting;
//! `audit` is what the load finds out about itself.
//!
//! This crate knows nothing of devices, filesystems' makers, studies, tables or files that describe workloads. It
//! prints nothing, and it removes nothing but files whose names it could have given itself.

mod audit;
mod data;
mod errno;
mod error;
mod fileset;
mod io;
mod measure;
mod ops;
mod options;
mod pattern;
mod random;
mod run;
#[cfg(test)]
mod tests_support;
mod verify;

pub use error::LoadError;
pub use options::{Observer, Progress, RunOptions, Unobserved};
pub use run::{Prepared, cleanup, prepare, run};
pub use verify::{Damage, Verification, verify};
