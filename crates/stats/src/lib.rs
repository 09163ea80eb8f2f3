//! wip
#![allow(unused)]
mod random;
mod sample;
pub use sample::*;
