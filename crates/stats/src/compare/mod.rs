//! Comparing samples: is there a difference, how large, and which rows cannot be told apart.
//!
//! [`compare_all`] answers for a whole table: by means where the figures allow it, else by ranks. [`permutation_test`] is there
//! for questions about one mean.
//!
//! Every difference is `other − baseline`; every δ is positive if `other` is larger.
//! Which direction is better only the metric knows.

mod additive;
mod blocks;
mod by_means;
mod by_ranks;
mod detectable;
mod exact;
mod guests;
mod holm;
mod letters;
mod normality;
mod pair;
mod permutation;
mod rank_tests;
mod result;
mod shift;
mod table;

pub use additive::block_groups;
pub use by_ranks::compare_by_ranks;
pub use detectable::{POWER, detectable_shift, figures_needed};
pub use guests::Moved;
pub use holm::holm;
pub use letters::letters;
pub use pair::{PairComparison, blocked_comparison, independent_comparison};
pub use permutation::{PermutationTest, permutation_test};
pub use rank_tests::{RankTest, mann_whitney, signed_rank};
pub use result::{Basis, Blocking, Comparison, Level, PairTest, Pairwise, PowerNote, RowMean, Scale, repeats_needed};
pub use shift::{Shift, blocked_relative_shift, blocked_shift, cliffs_delta, hodges_lehmann, relative_shift};
pub use table::{compare_all, row_means};
