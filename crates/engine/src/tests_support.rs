//! Pieces of workloads for tests.

use fstone_model::workload::{Amount, Directories, Existing, Fileset, Naming, Sharing, SizeDistribution};

/// So many files of 4 KiB in one directory.
pub(crate) fn fileset(files: u64) -> Fileset {
    Fileset {
        name: "files".into(),
        directory: "data".into(),
        amount: Amount::Files(files),
        directories: Directories::Flat { count: 0, root_too: false },
        leaf_directories: 0,
        size: SizeDistribution::Fixed(4096),
        naming: Naming::default(),
        preallocated: 1.0,
        build_block_bytes: 4096,
        existing: Existing::Rebuild,
        fill: true,
        allocate: false,
        grows: false,
        made_when_opened: false,
        ranks: Sharing::Private,
    }
}
