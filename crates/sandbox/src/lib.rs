//! Real kernels as guests of an ordinary user: the sandbox of fstone.
pub mod frames;
