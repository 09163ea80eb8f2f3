//! What the load finds out about itself: whether it did what it was asked to.

mod expect;
mod rate;
mod touched;

pub(crate) use expect::{Summary, judge};
pub(crate) use touched::{Blocks, Touched};
