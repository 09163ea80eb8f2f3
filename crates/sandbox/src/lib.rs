//! Real kernels as guests of an ordinary user: the sandbox of fstone.
//!
//! Reading order: [`frames`] is how host and guest talk; [`uml`] and [`qemu`] boot a guest, [`child`] starts an agent without one; [`guest`] is a running guest with its
//! watchdog, console and clock; [`agent`] is process 1 inside it; [`vhost`] is its disk; [`exact`] is a guest whose time is simulated; [`kernel`]
//! is where kernels come from. [`nameless`] files hold what must not outlive its process.
//!
//! This crate must not know what a trial is: jobs and results are opaque bytes, and what a job does is the handler's
//! business. It formats and mounts nothing on the host, and needs no root.

pub mod agent;
pub mod child;
pub mod exact;
pub mod frames;
pub mod guest;
pub mod kernel;
pub mod nameless;
pub mod power;
mod process;
pub mod qemu;
pub mod uml;
pub mod vhost;

pub use process::{Confinement, ProcessEnd, SpawnError};
