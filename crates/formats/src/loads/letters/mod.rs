//! Command lines of IOR and mdtest, which are read alike: options of one letter (`-n 5`, `-n5`, `-n=5`, flags together as in `-FCu`) and of a
//! word (`--random-seed=7`, `--random-seed 7`). [`CommandLine`] is the words with their places, [`Opt`] an option's line in a table, and
//! [`Given::read`] finds each option of a command line in it.

mod given;
mod line;
mod option;

pub use given::Given;
pub use line::{CommandLine, Word};
pub use option::{Kind, Opt, Treatment, help};
