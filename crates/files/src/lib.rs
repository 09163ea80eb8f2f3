//! The files that fstone itself makes, writes, replaces and removes on its user's machine.
//!
//! What it opens for writing is a regular file: a disk, a pipe or a directory of the same name is refused, and so is a link
//! that another user could have put there. Until a file is complete, it has no name or one that cannot be guessed. A test
//! (`crates/cli/tests/tidy/`) lists every other place that opens something for writing, with the reason.
//!
//! This crate must not know what the files are for. The files of a load are the engine's.

mod directories;
mod owner;
mod path;
mod regular;
mod temporary;
mod text;
mod tree;
mod trust;

pub use directories::create_directories;
pub use owner::Owner;
pub use path::{descriptor, destination, directory_of, resolve};
pub use regular::{create_file, make_private, open_anew, open_or_create, regular, regular_or_new};
pub use temporary::{Temporary, nameless, nameless_where_possible, unguessable};
pub use text::{TEXT_BYTES, read_text, read_text_within, regular_below};
pub use tree::{
    FileIdentity, OwnDirectory, first_other, make_empty_directory, open_new_directory, remove_own_tree, remove_tree,
    remove_tree_in,
};
pub use trust::{Exchangeable, Trust};
