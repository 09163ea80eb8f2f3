//! The journal of undo: everything made is recorded before it is made.
