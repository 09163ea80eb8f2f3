//! A phase of the workload, made ready to be performed: everything that can be decided before the first operation.
//!
//! [`check()`] refuses what cannot be done. A [`PhasePlan`] has a [`GroupPlan`] for every group of threads, and that a
//! [`PlannedAction`] for every action; `schedule` says when operations are to begin, `limits` say when they end, `searches` when threads that look for a queue depth have found it, `program` is what threads go through step by step, `series` when files are due to be fsynced.

mod action;
mod check;
mod check_program;
mod checkpoint;
mod device;
mod draws;
mod group;
mod limits;
mod phase;
mod program;
mod schedule;
mod searches;
mod series;
mod tour;
mod wear;

pub(crate) use action::{Guide, PlannedAction, cursor_of, is_permutation, is_read_back};
pub(crate) use check::check;
pub(crate) use checkpoint::GroupCheckpoint;
pub(crate) use device::check_device;
pub(crate) use group::{Found, GroupPlan, PeriodicFsyncs, Selector};
pub(crate) use phase::PhasePlan;
pub(crate) use program::{Instruction, Program};
pub(crate) use schedule::Schedule;
pub(crate) use searches::Searches;
pub(crate) use series::Series;
pub(crate) use tour::{ActionOfTour, TourPlan, Way};
pub(crate) use wear::WearOut;
