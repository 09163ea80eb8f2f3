//! More than one run: two compared figure by figure, one figure over many, and the ratios of many machines.

mod across;
mod comparison;
mod history;
mod outcomes;
mod pair;
mod seeds;
mod settings;
mod words;

pub use across::{Across, AcrossColumn, AcrossRow, Ratio};
pub use comparison::{CompareOptions, ComparedColumn, ComparedFigure, RunComparison, Unmatched, Verdict};
pub use history::{FEWEST_RUNS, History, HistoryError, Point};
pub use outcomes::{OutcomeChange, Turn};
pub use pair::{Exact, Pair};
pub use settings::{Change, Mismatch, Setting, changes, mismatches};
pub use words::{caveat, change, difference, interval_name, percent, probability};
