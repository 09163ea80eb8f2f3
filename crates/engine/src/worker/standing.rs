//! Where a thread stood when its phase ended, for a thread that continues.

use super::tour::Tour;

#[derive(Debug, Default)]
pub(crate) struct ThreadStanding {
    pub(super) actions: Vec<ActionStanding>,
    pub(super) tour: Option<Box<Tour>>,
    pub(super) moved: u64,
    pub(super) sequence: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ActionStanding {
    pub(super) cursor: u64,
    pub(super) burst: u32,
}
