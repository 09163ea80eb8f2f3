//! Filesets for the null engine, as many files as there are.

use crate::fileset::Files;
use fstone_model::Workload;
use fstone_model::workload::{Amount, Existing, Fileset};

/// Files of the pretended filesets: beyond, more of them cost memory and change nothing.
const MOST_FILES: u64 = 1 << 20;

/// The workload's filesets as they are now: with as many names, and files for the same share of these.
pub(super) fn pretended(workload: &Workload, files: &[Files]) -> Vec<Fileset> {
    let specs = workload.filesets.iter().zip(files);
    let pretend = |(spec, files): (&Fileset, &Files)| {
        let (live, names) = (files.table.live(), files.table.names().max(1));
        Fileset {
            amount: Amount::Files(names.min(MOST_FILES)),
            preallocated: if live == 0 && spec.leaf_directories > 0 {
                spec.preallocated
            } else {
                live as f64 / names as f64
            },
            existing: Existing::Rebuild,
            ..spec.clone()
        }
    };
    specs.map(pretend).collect()
}
