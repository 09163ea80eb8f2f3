//! Real kernels as guests of an ordinary user: the sandbox of fstone.
//!
//! Reading order: [`frames`] is how host and agent talk; [`uml`] and [`qemu`] boot a guest, and [`guest`] is one that runs, with its
//! watchdog, console and clock; [`agent`] is process 1 inside it. [`child`] starts an agent as a process of the host instead. [`vhost`]
//! is a guest's disk, and [`power`] what a power cut leaves on it; [`exact`] is a guest whose time is simulated; [`kernel`] is where
//! kernels come from.
//!
//! This crate must not know what a trial is: jobs and results are opaque bytes, and what a job does is the handler's
//! business. It formats and mounts nothing on the host, and needs no root.

pub mod agent;
pub mod child;
pub mod exact;
pub mod frames;
pub mod guest;
pub mod kernel;
pub mod power;
mod process;
pub mod qemu;
pub mod uml;
pub mod vhost;

pub use process::{Confinement, ProcessEnd, SpawnError};
