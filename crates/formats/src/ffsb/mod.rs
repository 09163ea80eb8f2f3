//! FFSB profiles, read into the workload.
