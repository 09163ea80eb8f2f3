//! What a run's user decides about its trials.

use crate::{agent::GuestOptions, place::presence::Presence};
use std::{path::PathBuf, sync::Arc, time::Duration};

#[derive(Debug, Clone)]
pub struct LabOptions {
    /// Where images and mount points are made; it is made where it is missing, and used by one run at a time.
    pub work_directory: PathBuf,
    /// Block devices that the user allowed to be destroyed, as the study names them or without symbolic links.
    pub allow_destroy: Vec<PathBuf>,
    /// Whether loads measure the engine's own cost after each run (at most a quarter of a second).
    pub measure_null: bool,
    /// The binary that is started as agent of a trial: the running one.
    pub agent: PathBuf,
    /// How long an agent is waited for beyond a step's limit, which it keeps itself, before it counts as hung.
    pub patience: Duration,
    /// How long writing out what a finished trial left in memory may take. It is on nobody's clock.
    pub closing_limit: Duration,
    /// How guests are made; `None` where there are to be none.
    pub guests: Option<GuestOptions>,
    /// How many trials run at once where they do not disturb each other, in virtual time; as many as there are cores and
    /// memory for when `None`.
    pub jobs: Option<usize>,
    /// Where other runs of this machine are noticed; `None` not to look for them.
    pub presence: Option<Arc<Presence>>,
    /// Where images of aged filesystems are kept. `None`: each trial ages its own.
    pub aged: Option<PathBuf>,
    /// Whether to go on when the first trials of all rows fail alike.
    pub keep_going: bool,
}

impl LabOptions {
    /// The usual patience: an agent gives a command that it killed ten seconds to die, and may be short of time itself.
    pub const PATIENCE: Duration = Duration::from_secs(30);
    /// The usual time for what is still in memory: at 10 MB/s, 18 GB.
    pub const CLOSING_LIMIT: Duration = Duration::from_secs(1800);
}
