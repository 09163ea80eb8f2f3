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
//! | What does each row come to; which differ, by how much? | [`compare_all`] ([`compare`]) |
//! | Another trial? | [`stopping`] |
//! | Does the table answer already? | [`sequential`] |
//! | Did the machine drift during the run? | [`drift`] |
//! | Was a trial steady; when did a cell's history change? | [`series`] |
//! | Which figures look odd? | [`outliers`] |
//!
//! What the analysis of a table achieves is measured by the example `calibrate_tables` and recorded in docs/method/calibration.md.
//! What the intervals of single samples and the other tests achieve is measured by the examples
//! `calibrate_intervals` and
//! `calibrate_tests` and recorded in CALIBRATION.md beside this crate, where they fall short included.

/// The share of tables in which anything at all may be called different by mistake. Whatever is published has this or, for
/// intervals, [`CONFIDENCE`].
pub const ALPHA: f64 = 0.05;

pub const CONFIDENCE: f64 = 1.0 - ALPHA;

pub const CONFIDENCE_TEXT: &str = "95 %";

pub const ALPHA_TEXT: &str = "5 %";

/// Figures that agree to this share of the largest differ by rounding only.
const ROUNDING: f64 = 1e-12;

pub mod compare;
mod distribution;
pub mod drift;
pub mod interval;
pub mod outliers;
mod random;
pub mod range;
mod rank;
mod sample;
pub mod sequential;
pub mod series;
pub mod stopping;

pub use compare::{Blocking, Comparison, Level, Scale, compare_all};
pub use interval::{Interval, interval95};
pub use sample::{Sample, SampleError, Summary};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_what_their_texts_say() {
        assert_eq!(format!("{:.0} %", 100.0 * CONFIDENCE), CONFIDENCE_TEXT);
        assert_eq!(format!("{:.0} %", 100.0 * ALPHA), ALPHA_TEXT);
    }
}
