//! Filesystem adapters: one small file per filesystem behind one trait.
