//! The laboratory: carries out a plan, trial by trial, on real devices and real filesystems.
//!
//! Reading order: [`run`] has the schedule and the loop over trials; [`trial`] carries out one, from the device to its
//! release; [`agent`] is the process that makes its steps, on this machine or in a guest, and how the lab talks to it; [`place`]
//! has what is made for a trial: devices, mounts, and the journal that undoes them. The borders to the world, each behind a trait with a fake for tests (feature `fakes`), are gathered in a
//! [`machine::Machine`]: [`command`] runs programs, [`place::mount`] mounts, [`place::device`] sets up what may be
//! formatted, the trial's loader runs loads. [`filesystem`] has the adapters, one small file each; [`meters`],
//! [`fragmentation`] and [`inventory`] look at the machine. [`source_tree`] makes a tree of sources, and [`source_archive`] packs it.
//!
//! What this crate must *not* do: it stores nothing (finished trials go to a [`run::carry_out::Recorder`]), draws nothing on a
//! terminal (events go to an [`events::ProgressSink`]), parses no study file, and formats nothing that is not a
//! [`place::device::ScratchDevice`].

pub mod agent;
pub mod command;
pub mod events;
#[cfg(any(test, feature = "fakes"))]
mod fake_machine;
#[cfg(any(test, feature = "fakes"))]
pub mod faults;
pub mod filesystem;
pub mod fragmentation;
pub mod inventory;
pub mod machine;
pub mod meters;
pub mod place;
pub mod run;
pub mod source_archive;
pub mod source_tree;
pub mod stop;
#[cfg(any(test, feature = "fakes"))]
pub mod testing;
pub mod trial;
