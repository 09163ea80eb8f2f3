//! Loads on real directories.

mod choice;
mod ffsb;
mod support;
