//! One load of many ranks: how they meet, begin together, compare their clocks, and merge their reports.
//!
//! Reading order: [`Transport`] carries messages (MPI, in `fstone-mpi`; channels, in [`simulated`]);
//! `message` is what ranks say; `member` is a rank, and its [`Peers`](fstone_engine::Peers) for the engine; `coordinator` is what rank 0
//! does besides; [`run`] has both; `clocks` compares clocks; `merge` makes one report of many, and `spans` says when the ranks were at each
//! action.
//!
//! Nobody waits forever: no call waits for a rank without a time limit. Rank 0 hears from every rank about once a second, and every rank
//! from rank 0. This crate starts no process and prints nothing.

mod clocks;
mod coordinator;
mod facts;
mod given;
mod member;
mod merge;
mod message;
mod priority;
mod run;
pub mod simulated;
mod spans;
mod transport;

pub use facts::Facts;
pub use given::{Loaded, Settings};
pub use member::Member;
pub use run::{Conclusion, Ended, give_up, run};
pub use transport::Transport;
