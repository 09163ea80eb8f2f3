//! Statistics for benchmark figures: pure, seeded, each method with its source.
//!
//! Nothing here reads a file, a clock or an unseeded random number, and nothing ever drops a
//! figure. The same figures and seed give the same result on every machine (to the last bits of
//! `exp` and `ln`).
//!
//! | question | where |
//! |---|---|
//! | What did the trials show? | [`Sample`], [`Summary`] |
//! | How well is the mean known? | [`interval95`] ([`interval`]) |
//! | Which rows differ, by how much? | [`compare_all`] ([`compare`]) |
//! | Another trial? | [`stopping`] |
//! | Did the machine drift during the run? | [`drift`] |
//! | Was a trial steady; when did a cell's history change? | [`series`] |
//! | Which figures look odd? | [`outliers`] |
//!
//! What the intervals and tests achieve on simulated samples is measured by the examples
//! `calibrate_intervals` and
//! `calibrate_tests` and recorded in CALIBRATION.md beside this crate, where they fall short included.

pub mod compare;
mod distribution;
pub mod drift;
pub mod interval;
pub mod outliers;
mod random;
mod rank;
mod sample;
pub mod series;
pub mod stopping;

pub use compare::{Blocking, Comparison, compare_all};
pub use interval::{Interval, interval95};
pub use sample::{Sample, SampleError, Summary};
