//! The workload file: the workload in a readable TOML form, and the numbers of a workload that may be changed.

mod parameter;

pub use parameter::{ApplyError, Parameter, Quantity, apply, has};
