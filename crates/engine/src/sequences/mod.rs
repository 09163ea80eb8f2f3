//! Short sequences of calls on a small tree of files, carried out before power cuts: what was persisted has to be there.
//!
//! In the manner of B3 (Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI 2018): the
//! bugs that were found in filesystems take few operations on few files of a small new filesystem, each followed by a call
//! that persists something. So all short sequences can be tried.
//!
//! - [`Sequence`] is text and back: `rename a b; fsync b`. [`one_operation`] and [`two_operations`] list them.
//! - [`plant`] makes the tree that all sequences begin with. All of it is durable.
//! - [`perform`](Performed::perform) carries a sequence out and remembers the tree after each call, as the kernel shows it.
//! - [`Performed::look`] compares the tree after a power cut with these, and says which facts were lost, and which
//!   properties it has that nothing promises.

mod call;
mod enumerate;
mod looked;
mod oracle;
mod perform;
mod properties;
mod tree;

pub use call::{Call, ParseSequenceError, Sequence};
pub use enumerate::{one_operation, two_operations};
pub use looked::Looked;
pub use oracle::{Aspect, Finding};
pub use perform::{Performed, numbers, plant};
pub use properties::Property;
