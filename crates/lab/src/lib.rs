//! The laboratory: carries out a plan, trial by trial, on real devices and real filesystems.
//!
//! Reading order: [`carry_out`] is the loop over trials, [`schedule`] their order; [`executor`] carries out one, from
//! the device to its release. Below it, each behind a trait with a fake for tests and gathered in a
//! [`machine::Machine`]: [`command`] runs programs, [`mount`] mounts, [`device`] sets up what may be formatted, the
//! executor's loader runs loads. [`filesystem`] has the adapters, one small file each; [`undo`] remembers what was made,
//! so that it can be undone; [`meters`], [`fragmentation`] and [`inventory`] look at the machine; [`describe`] tells what
//! would be done.
//!
//! What this crate must *not* do: it stores nothing (finished trials go to a [`carry_out::Recorder`]), draws nothing on a
//! terminal (events go to an [`events::ProgressSink`]), parses no study file, and formats nothing that is not a
//! [`device::ScratchDevice`].

pub mod carry_out;
pub mod command;
mod custody;
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
mod steady;
pub mod stop;
#[cfg(test)]
mod testing;
pub mod undo;
pub mod work_directory;
