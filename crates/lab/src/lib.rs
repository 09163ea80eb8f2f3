//! The laboratory: carries out a plan, trial by trial, on real devices and real filesystems.
//!
//! What this crate must *not* do: it stores nothing (finished trials go to a recorder), draws
//! nothing on a terminal (events go to a sink), parses no study file, and formats nothing
//! that is not a scratch device.

pub mod carry_out;
pub mod command;
pub mod describe;
pub mod device;
pub mod events;
pub mod executor;
pub mod faults;
pub mod filesystem;
pub mod fragmentation;
pub mod inventory;
pub mod machine;
pub mod meters;
pub mod mount;
pub mod schedule;
pub mod source_tree;
pub mod stop;
#[cfg(test)]
mod testing;
pub mod undo;
pub mod work_directory;
