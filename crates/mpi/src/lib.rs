//! Messages between the ranks of a load, carried by MPI: the only place that links it, and only with the feature `mpi`.
//!
//! Nothing of MPI is used but starting, sending, receiving and ending. Its collective calls wait for ever for a rank that died;
//! `fstone-ranks` makes barriers of messages instead, and knows whom it waits for.

#[cfg(feature = "mpi")]
mod world;

#[cfg(feature = "mpi")]
pub use world::{World, library};
