//! What the load finds out about itself: whether it did what it was asked to.

mod expect;
mod rate;
mod summary;
mod touched;

pub(crate) use expect::judge;
pub(crate) use summary::{Ran, Summary};
pub(crate) use touched::{Blocks, Touched};
