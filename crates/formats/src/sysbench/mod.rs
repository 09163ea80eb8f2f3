//! `sysbench fileio` options, read into the workload.
