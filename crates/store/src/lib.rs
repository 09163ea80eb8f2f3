//! The store: every run and every finished trial in one SQLite file.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = fstone_store::Store::open_read_only("fstone.db".as_ref())?;
//! for run in store.runs()? {
//!     println!("{} {} {}", run.id, run.study, run.trials);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A trial is one transaction, on the disk when [`Store::record_trial`] returns; [`Store::dataset`] gives back exactly
//! what was recorded. Any number of processes may read and write one store at once. The tables are described, with
//! queries to try, in docs/store.md.
//!
//! [`Store::shown`] reads only what a run's report shows, in a fraction of the time, and [`Store::figures`] the same without
//! the load engine's reports. [`Baseline`]s are names for runs.
//!
//! [`bundle`] makes one file of a run, for others to import, verify and repeat.
//!
//! This crate must not compute figures or statistics, must not choose where the store is (the command line's
//! business), and knows nothing about how trials are made: it depends on the model and on the crate of files.

mod baselines;
pub mod bundle;
mod cause;
mod encode;
mod error;
mod excerpt;
mod open;
mod read;
mod rows;
mod schema;
mod steps;
mod trial;
mod write;

pub use baselines::{BASELINE_NAME_BYTES, Baseline};
pub use cause::{is_error, system_error};
pub use error::{OpenError, ReadError, RecordError};
pub use open::{Store, is_shared_between_hosts};
pub use read::{Attempt, RunSummary};
