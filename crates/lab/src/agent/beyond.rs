//! What an agent needs of whoever started it.

use super::protocol::{Advice, Question};
use crate::events::LoadProgress;
use fstone_sandbox::agent::LoadError;

/// What is beyond the agent: whom it tells how it goes, and the kernel it can have load modules.
pub(super) trait Beyond: Sync {
    fn progress(&self, progress: &LoadProgress);

    fn load_module(&self, name: &str) -> Result<(), LoadError>;

    fn ask(&self, question: &Question) -> Result<Advice, String>;
}
