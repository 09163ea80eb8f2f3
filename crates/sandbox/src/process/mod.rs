//! A process that dies with everything it started: in a user and pid namespace of its own where the host allows
//! that, else as a process group.

mod spawn;

pub use spawn::{Confinement, ProcessEnd, SpawnError};
pub(crate) use spawn::{Launch, Supervised};
