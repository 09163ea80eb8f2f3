//! Pure data: the words of fstone and nothing else.
//!
//! Reading order: [`study`] is what a study file means once it is read (a [`study::Plan`] of [`study::Cell`]s);
//! [`service`] is a program that steps need; [`kernels`] puts a plan under other kernels; [`mkfs`] says which options of mkfs are safe; [`step`] lists the kinds of steps; [`workload`] is what a load does; [`outcome`] and [`result`] are what a trial gives back; [`output`] finds the figures that programs print; [`metric`] names every
//! figure with its unit and direction, and the steps that have it; [`histogram`] and [`load`] are the load engine's own
//! results, [`ranks`] those of many ranks together, and [`io500`] a score of some; [`lately`] is what a load did a moment ago; [`inventory`] is the machine; [`dataset`] is what a report is made of; [`note`] is what its user says about it; [`mod@text`] makes the words of others
//! fit to be shown; [`fnv`] is a hash that stays the same.
//!
//! This crate does no I/O, reads no clock and draws no random number, and depends on none of the other crates.

pub mod age;
pub mod check;
pub mod dataset;
pub mod fnv;
pub mod histogram;
pub mod inventory;
pub mod io500;
pub mod kernels;
pub mod lately;
pub mod load;
pub mod load_metric;
pub mod load_series;
pub mod metric;
pub mod mkfs;
mod named;
pub mod note;
pub mod outcome;
pub mod output;
pub mod own;
mod ranked;
pub mod ranks;
pub mod result;
pub mod service;
pub mod step;
pub mod study;
pub mod text;
pub mod units;
pub mod when;
pub mod workload;

pub use dataset::Dataset;
pub use histogram::Histogram;
pub use inventory::Inventory;
pub use load::{CpuIdleness, LoadReport};
pub use metric::{Better, Figure, Unit};
pub use note::Note;
pub use outcome::Outcome;
pub use result::{StepResult, Trial};
pub use step::StepKind;
pub use study::{Cell, Plan, Step};
pub use workload::Workload;
