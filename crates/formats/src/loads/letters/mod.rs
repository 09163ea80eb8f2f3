//! Command lines of IOR and mdtest, which are read alike: options of one letter (`-n 5`, `-n5`, `-n=5`, flags together as in `-FCu`) and of a
//! word (`--random-seed=7`, `--random-seed 7`). [`CommandLine`] is the words with their places, [`Opt`] an option's line in a table,
//! [`Given::read`] finds each option of a command line in it, and [`Said`] is asked for them by name. What both programs print alike is here,
//! too.

mod common;
mod given;
mod line;
mod load;
mod option;
mod print;
mod said;

pub(super) use common::{
    ERRORS_TOLD, JSON, LAUNCHER, NO_GPU, NOT_COMPARED, RANDOM_DATA, SEED, SILENCE, STILLNESS, VERBOSE, ignored, output,
    own, refused,
};
pub use given::Given;
pub use line::{CommandLine, Word};
pub(super) use load::{load, workload};
pub use option::{Kind, Opt, Treatment, asks_for_help, help};
pub(super) use print::{
    Deviation, Spread, complete, explain_skews, lacking, latencies, latencies_json, mark, outcomes, stonewall,
};
pub use said::Said;
