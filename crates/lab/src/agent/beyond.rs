//! What an agent needs of whoever started it.

use super::protocol::{Advice, Question};
use crate::events::LoadProgress;
use fstone_sandbox::agent::LoadError;

/// What is beyond the agent: whom it tells how it goes, and the kernel it can have load modules.
pub(super) trait Beyond: Sync {
    /// How a load goes.
    fn progress(&self, progress: &LoadProgress);

    /// Has the kernel take up a filesystem that it lacks.
    fn load_module(&self, name: &str) -> Result<(), LoadError>;

    /// Asks the lab something in the middle of a job, where the whole trial is one.
    fn ask(&self, question: &Question) -> Result<Advice, String>;
}
