//! How a thread goes through its operations: one after the other or many in flight, at what pace, with which fsyncs in
//! between, and what is counted.
//!
//! Reading order: `thread` is a thread from its start to its end; `alone` and `queue` are the two loops; `choice` is what
//! comes next, `program` the same step by step, with its `progress`, `account` what became of it, `pace` the pauses, `depth` the search for a
//! queue depth, `rates` what a thread's own rate ends it for, `patience` waits for files, `fsyncs` makes those of the group's policy; the [`Gate`] lets all threads begin together.

mod account;
mod alone;
mod choice;
mod depth;
mod fsyncs;
mod gate;
mod pace;
mod patience;
mod program;
mod progress;
mod queue;
mod rates;
mod thread;

pub(crate) use gate::Gate;
pub(crate) use thread::Ended;
