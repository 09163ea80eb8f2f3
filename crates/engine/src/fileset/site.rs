//! What building a fileset needs to know about its load.

use crate::data::Depot;
use crate::options::RunOptions;
use std::path::Path;

/// A fileset's load, as building sees it.
#[derive(Clone, Copy)]
pub(crate) struct BuildContext<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) depot: &'a Depot,
    pub(crate) options: &'a RunOptions<'a>,
    pub(crate) index: u32,
    pub(crate) real: bool,
    pub(crate) metadata: bool,
    pub(crate) changes: bool,
    /// Whether its files are renamed.
    pub(crate) renames: bool,
    /// Whether it is made for its own sake, and not for a load.
    pub(crate) prepares: bool,
    /// Whether its directories are common to all ranks, and another rank has made them.
    pub(crate) directories_made: bool,
    /// Whether ranks may build it at once when the first has made its own directory: each has directories of its own in it, and
    /// their owner is not checked.
    pub(crate) at_once: bool,
}
