//! A run: the schedule of a plan's trials, carrying them out one after the other, and what that would do.

mod alike;
pub mod budget;
pub mod carry_out;
pub mod describe;
pub mod schedule;
mod steady;
