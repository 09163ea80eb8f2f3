//! Comparing samples: is there a difference, how large, and which rows cannot be told apart.
//!
//! [`compare_all`] answers for a whole table. It uses rank tests, because one hung or cached trial
//! must not decide a table, and Hodges–Lehmann shifts, because those are the same tests turned into
//! intervals. [`permutation_test`] and [`sign_flip_test`] are there for questions about the mean.
//!
//! Every difference is told as `other − baseline`, every δ is positive when `other` is larger.
//! Which direction is better only the metric knows.

mod blocks;
mod detectable;
mod exact;
mod holm;
mod letters;
mod permutation;
mod rank_tests;
mod shift;
mod table;

pub use detectable::{POWER, detectable_shift, figures_needed};
pub use holm::holm;
pub use letters::letters;
pub use permutation::{DRAWN, Difference, MAX_ENUMERATED, PermutationTest, permutation_test, sign_flip_test};
pub use rank_tests::{RankTest, mann_whitney, signed_rank};
pub use shift::{Shift, blocked_relative_shift, blocked_shift, cliffs_delta, hodges_lehmann, relative_shift};
pub use table::{
    Blocking, Comparison, PairComparison, PairTest, Pairwise, PowerNote, SHIFT_CONFIDENCE, blocked_comparison,
    compare_all, independent_comparison, repeats_needed,
};
