//! A trial to carry out, who does that, and how it ends.

use super::{error::ExecutorError, explorer::Explorer};
use crate::{events::ProgressSink, place::undo::UndoError};
use fstone_model::{Cell, Trial, result::TrialId};

pub struct Job<'a> {
    pub cell: &'a Cell,
    pub id: TrialId,
    /// Its place in the order in which trials really run.
    pub position: u32,
    pub seed: u64,
    /// Whether some row of the plan has a load with O_DIRECT: its loop devices then bypass the host's page cache, if they
    /// can. All rows get the same kind of device, since they are compared with each other.
    pub direct: bool,
    pub sink: &'a dyn ProgressSink,
    /// Whose sequences of calls the power is cut in, rather than in the cell's loads.
    pub explorer: Option<&'a dyn Explorer>,
}

#[derive(Debug)]
pub enum TrialEnd {
    Finished(Box<Trial>),
    /// It was given up because the run is to end; it has none.
    Cancelled,
    /// It has a result, but something it made could not be undone, so no other trial can follow.
    Stuck(Box<Trial>, Vec<UndoError>),
}

pub trait Executor {
    /// Carries out one trial, from the device to its release.
    ///
    /// # Errors
    /// When the lab failed; then the run cannot go on.
    fn run(&mut self, job: &Job<'_>) -> Result<TrialEnd, ExecutorError>;

    /// Tells which trials will probably follow the next one, in order, each with its seed. An executor that can carry out
    /// several at once may begin them.
    fn look_ahead(&mut self, _upcoming: &mut dyn Iterator<Item = (TrialId, u64)>) {}
}
