//! Tests of the sandbox, from its wire protocol to faults of real guest kernels.
//!
//! Those that need user-mode Linux or QEMU say "skipped: why" where it is missing. None needs root.

mod attacks;
mod disk;
mod exact;
mod faults;
mod frames;
mod guests;
mod kernels;
mod support;
