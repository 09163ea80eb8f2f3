//! What a load was promised: which data and names the filesystem said were durable, and whether they are.
//!
//! A [`Witness`] stands between the load and the kernel (`io/witnessed.rs`) and writes down, outside the filesystem, what the
//! kernel acknowledged and in which order. After a power cut its oracle says what has to be there, and looks.
//!
//! What is counted as promised:
//! - by fsync and fdatasync: the data that had been written to the file before, and its length, also where it was cut; and the
//!   zeros of its holes;
//! - by a synchronous write (O_SYNC, O_DSYNC): the data that it wrote, and the file's length up to there;
//! - by fsync: also the names that the file had. POSIX does not say so, but applications rely on it, and Linux's journaling
//!   filesystems keep it;
//! - by fsync of a directory: its names;
//! - by syncfs: all of this for every file, and that names removed before do not come back.
//!
//! What came after may have reached the disk or not, so both is accepted: newer data in place of older, a later name in place of
//! the promised one, what was promised of a part of a file or anything in it where that part was cut off, emptied or copied to, and
//! for a file whose removal had begun, anything. What began when the power was off already excuses nothing.

mod ahead;
mod event;
mod journal;
mod kept;
mod known;
mod oracle;
mod reading;

pub use event::{Change, FileId, Made};
pub use journal::Witness;
pub use kept::{Broken, Kept, Property};
