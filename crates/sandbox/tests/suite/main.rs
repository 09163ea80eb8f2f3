//! Tests of the sandbox, from its wire protocol to faults of real guest kernels.

mod frames;
