//! One trial, from the device to its release.
//!
//! A trial has two sides. `executor` is the lab's: it provides the device, starts agents, has them make one step after
//! the other and writes down what they say. `session` is the agent's: it makes the steps, in `steps`, be it as a child
//! process of the lab or as process 1 of a guest. Between them is the protocol of [`crate::agent`].
//!
//! The order is always device → mkfs → mount → steps → unmount → release, and whatever way a trial goes, everything it made
//! is undone at its end. How it went is data ([`fstone_model::Outcome`]); `Err` means that the lab itself failed.
//! An aged filesystem is made by a trial of its own (`aged`), and the others begin with copies of it.
//! `FakeExecutor` gives scripted outcomes to test what is above.

mod aged;
mod agents;
mod attending;
pub(crate) mod beside;
mod carried;
pub(crate) mod error;
mod executor;
mod explore;
mod explorer;
#[cfg(any(test, feature = "fakes"))]
mod fake;
mod host_checks;
mod job;
mod load;
mod measure;
mod options;
pub(crate) mod own;
mod power_cut;
pub(crate) mod preflight;
mod promises;
pub(crate) mod record;
pub(crate) mod session;
pub(crate) mod steps;
mod warm;
pub(crate) mod watch;
pub(crate) mod who;

pub use aged::{
    DIGEST, KeptImage, Life, TO_CLEAN, aged_directories, forget_directory, kept_images, old_image, refusal,
    remove_image,
};
pub(crate) use aged::{kept_past, maker_device};
pub use error::ExecutorError;
pub use executor::AgentExecutor;
pub use explorer::{Explorer, SequenceFound};
#[cfg(any(test, feature = "fakes"))]
pub use fake::{FakeExecutor, FakeLoader};
pub use job::{Executor, Job, TrialEnd};
pub use load::{EngineLoader, LoadFailure, LoadRequest, Loader, load_figures};
pub use options::LabOptions;
pub use preflight::{Obstacle, preflight};
pub use steps::{removal_of, remove_aged_directory, state_of_aged_directory};
