//! What people write, read into the model: study files, load descriptions and the formats of other tools.
//!
//! - [`diagnostic`]: what every reader here gives back when a file is wrong: all errors at once, each with line,
//!   column, the offending text and what was expected.
//! - [`study`]: the study file (TOML) → [`fstone_model::Plan`].
//! - [`native`]: the workload file (TOML) ↔ [`fstone_model::Workload`].
//! - [`ffsb`]: FFSB profiles → [`fstone_model::Workload`].
//! - [`sysbench`]: `sysbench fileio` options → [`fstone_model::Workload`].
//!
//! This crate must not do I/O, run anything or ask the machine what it can do: files that a file names are handed in
//! by the caller's loader, and whether a filesystem can be made here is the lab's to say.

mod decode;
pub mod diagnostic;
pub mod ffsb;
pub mod native;
pub mod study;
pub mod sysbench;

pub use decode::KeyReference;
pub use diagnostic::{Diagnostic, Diagnostics, Severity, Source, Span};
