//! Pieces of workloads for tests.

use fstone_model::workload::{Amount, Fileset, SizeDistribution};

/// So many files of 4 KiB in one directory.
pub(crate) fn fileset(files: u64) -> Fileset {
    Fileset {
        directory: "data".into(),
        build_block_bytes: 4096,
        ..Fileset::new("files", Amount::Files(files), SizeDistribution::Fixed(4096))
    }
}
