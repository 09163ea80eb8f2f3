//! Loads on real directories.

mod choice;
mod conformance;
mod ffsb;
mod support;
mod timing;
