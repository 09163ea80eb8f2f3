//! mdtest's command lines, read into the workload; and its way of printing results.
//!
//! [`parse`] takes the words and gives an [`Mdtest`]; [`Mdtest::plan`] is the load that they describe, with the [`Stage`]s of which mdtest's
//! table has a row each; [`print()`] is that table, [`json`] the same for programs. `docs/formats/mdtest.md` says, option by option, what differs
//! and why.
//!
//! The options were learnt from mdtest's documentation and from running it; no code is taken from it.

mod command;
mod format;
mod options;
mod parse;
mod print;
mod results;
#[cfg(test)]
mod tests;
mod workload;

pub use command::{Mdtest, Phases};
pub use format::FORMAT;
pub use options::help;
pub use parse::parse;
pub use print::{json, print};
pub use results::{Place, Results, Trees};
pub use workload::{Plan, Stage, Test};
