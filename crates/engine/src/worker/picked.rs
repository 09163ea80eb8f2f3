//! A file that was chosen.

use crate::fileset::Hold;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Picked {
    pub(crate) fileset: usize,
    pub(crate) file: u32,
    pub(crate) hold: Hold,
    /// Which position of the file, by the numbering of [`crate::pattern::positions`], where the choice says so.
    pub(crate) position: Option<u64>,
}
