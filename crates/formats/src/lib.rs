//! What people write, read into the model: study files, load descriptions and the formats of other tools.
//!
//! - [`diagnostic`]: what every reader here gives back when a file is wrong: all errors at once, each with line,
//!   column, the offending text and what was expected.
//! - [`study`]: the study file (TOML) → [`fstone_model::Plan`].
//! - [`loads`]: every format that loads are written in → [`fstone_model::Workload`]: [`ffsb`] profiles, [`sysbench`]
//!   fileio, [`mdtest`] and [`ior`] options, [`fio`] job files, [`filebench`] personalities, and the workload file, [`native`], which is also printed.
//!
//! This crate must not do I/O, run anything or ask the machine what it can do: files that a file names are handed in
//! by the caller's loader, and whether a filesystem can be made here is the lab's to say.

mod decode;
pub mod diagnostic;
pub mod loads;
pub mod study;

pub use decode::KeyReference;
pub use diagnostic::{Diagnostic, Diagnostics, Severity, Source, Span};
pub use loads::{ffsb, filebench, fio, io500, ior, letters, mdtest, native, sysbench};
