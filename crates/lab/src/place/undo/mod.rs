//! The journal of undo: everything made is recorded before it is made.
//!
//! [`Undo`] keeps the journal of a run in its work directory. Giving a thing back in the ordinary course, undoing it
//! after an error or a cancellation, and cleaning up after a kill -9 are one and the same code, `Entry::undo`, which
//! first makes sure that what it finds is really what the entry says.
//!
//! The journal is a file of JSON lines: `{"boot": {"id": …}}` first, then `{"made": {"id": N, "entry": …}}`, durable
//! before the thing is made, and `{"undone": {"id": N}}`. A line that ends in the middle (power failure) was never acted
//! upon. An entry without its `undone` may or may not have been carried out; undoing what is not there is no error.

mod clean;
mod entry;
mod journal;
mod own;
mod processes;

pub use clean::{CleanError, Leftover, clean};
pub use entry::{Entry, UndoError, is_named};
pub(crate) use entry::{GUEST_NAME, IMAGE_NAME, TREE_PREFIX};
pub use journal::{JournalError, Undo};
