//! A run: the schedule of a plan's trials, carrying them out, in virtual time several at once, and what that
//! would do.

mod alike;
pub mod budget;
pub mod carry_out;
pub mod describe;
pub mod explore;
mod lanes;
pub mod schedule;
mod steady;
