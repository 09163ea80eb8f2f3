//! Where a thread stood when its phase ended, for a thread that continues.

use super::tour::Tour;

#[derive(Debug, Default)]
pub(crate) struct ThreadCheckpoint {
    pub(super) actions: Vec<ActionCheckpoint>,
    pub(super) tour: Option<Box<Tour>>,
    pub(super) moved: u64,
    pub(super) sequence: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ActionCheckpoint {
    pub(super) cursor: u64,
    pub(super) burst: u32,
}
