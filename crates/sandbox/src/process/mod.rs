//! A process that dies with everything it started: in a user and pid namespace of its own where the host allows
//! that, else as a process group; and that can write nowhere but in the places it was given.

mod rights;
mod spawn;

pub(crate) use rights::Writable;
pub(crate) use spawn::{Addresses, Launch, Supervised};
pub use spawn::{Confinement, ProcessEnd, SpawnError};
