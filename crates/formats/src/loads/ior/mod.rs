//! IOR's command lines, read into the workload; and its way of printing results.
//!
//! [`parse`] takes the words and gives an [`Ior`]; [`Ior::plan`] is the load that they describe, with the [`Stage`]s of which IOR's table has
//! a line each; [`print()`] is that table, [`json`] the same for programs. `docs/formats/ior.md` says, option by option, what differs and why.
//!
//! The options were learnt from IOR's documentation and from running it; no code is taken from it.

mod command;
mod format;
mod options;
mod parse;
mod print;
mod results;
#[cfg(test)]
mod tests;
mod workload;

pub use command::{FILE, Ior};
pub use format::FORMAT;
pub use options::help;
pub use parse::parse;
pub use print::{json, print};
pub use results::{Place, Results};
pub use workload::{Access, Plan, Stage};
