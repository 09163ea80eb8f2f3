//! Where a trial takes place: the work directory, devices, mounts, and the journal that undoes them.

pub mod custody;
pub mod device;
pub mod holder;
pub mod mount;
pub mod presence;
pub mod undo;
pub mod work_directory;

/// What ageing fills beneath a directory that a study names, and leaves to later runs.
pub const AGED_BENEATH: &str = "fstone-aged";
