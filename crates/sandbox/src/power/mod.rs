//! What a power cut leaves on a disk.
//!
//! A disk keeps a [`Log`] of every change, with the order in which changes arrived and were completed. [`States`] derives
//! from it what the disk could hold if the power had gone at a given moment, and a disk can show such a state to a guest
//! that stays up.
//!
//! The rule: a change is durable when it had completed before a flush arrived, and that flush has completed. Any
//! other change since then may be there, missing, or there in part, in whole sectors. Nothing here decides whether a filesystem
//! kept its promises.

mod file;
mod log;
mod map;
mod mirror;
mod states;

pub use log::{Event, Log, LogError, LogSpec};
pub use mirror::Mirror;
pub use states::{CrashState, Lie, ParseStateError, States};

pub(crate) use log::{Change, LogWriter, Logged};
pub(crate) use map::Shown;
