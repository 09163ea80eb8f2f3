//! Running a workload: filesets, phases with their threads, the final sync, the report.
//!
//! Reading order: [`run()`] in `load`; `running` takes a load through its phases; `phase` is one phase with its threads;
//! `durable` is the sync; `verify` looks whether all files are still there, and reads them back; `ranks` and `in_common` are what one of many ranks does otherwise; `null` is the engine's own cost; `report`
//! puts together what all found.

mod durable;
mod in_common;
mod load;
mod names;
mod null;
mod phase;
mod pretend;
mod ranks;
mod report;
mod running;
#[cfg(test)]
mod tests;
mod verify;

pub use load::{Prepared, Removed, prepare, remove_directories, run, run_verified};
pub use verify::{Damage, Verification};
