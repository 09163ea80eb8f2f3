//! Taking time and keeping count.
//!
//! A thread counts into a [`tally::ThreadTally`] of its own, without locks or allocation, and hands it over to the
//! load's [`collect::Collector`] whenever a point of the series ends.

pub(crate) mod clock;
pub(crate) mod collect;
pub(crate) mod idleness;
mod rates;
pub(crate) mod tally;

pub(crate) use clock::Clock;
pub(crate) use collect::Collector;
pub(crate) use rates::{Moved, Rates};
pub(crate) use tally::{ActionTally, Call, Done, ThreadSum, ThreadTally};
