//! Filesets of one file with a name of its own.

use crate::support::{action, files_below, flawless, group, in_memory, operations, transfer, try_run, workload};
use fstone_engine::LoadError;
use fstone_model::workload::{Actions, Amount, Existing, Extent, Fileset, Operation, Pattern, SizeDistribution};
use std::fs;

/// A file of 64 KiB called `database`.
fn named(existing: Existing) -> Fileset {
    let mut fileset = Fileset::new("named", Amount::Files(1), SizeDistribution::Fixed(64 << 10));
    fileset.naming.file_prefix = "database".into();
    fileset.naming.exact = true;
    fileset.existing = existing;
    fileset
}

fn walk() -> Actions {
    let transfer = transfer(Extent::Bytes(4096), Pattern::Cursor { shared: false });
    Actions::Sequence(vec![action(Operation::Read(transfer))])
}

#[test]
fn an_exact_name_is_made_and_used_again() {
    let place = in_memory();
    let load = workload(named(Existing::Reuse), group(1, walk()), operations(20));
    assert_eq!(flawless(&load, place.path()).read_bytes(), 20 * 4096);
    let made: Vec<u64> = files_below(place.path())
        .into_iter()
        .filter(|(name, _)| name.ends_with("/database"))
        .map(|(_, size)| size)
        .collect();
    assert_eq!(made, [64 << 10]);
    // A larger one is used as it is, and not made anew.
    let path = place.path().join("database");
    let mut bytes = fs::read(&path).expect("it was made");
    bytes.extend_from_slice(&[7; 5000]);
    fs::write(&path, &bytes).expect("ours");
    flawless(&load, place.path());
    assert_eq!(fs::read(&path).expect("it is there"), bytes);
    // A smaller one is.
    fs::write(&path, b"short").expect("ours");
    flawless(&load, place.path());
    assert_eq!(fs::metadata(&path).expect("it is there").len(), 64 << 10);
}

#[test]
fn a_name_for_one_file_is_refused_where_there_can_be_more() {
    let place = in_memory();
    let mut two = workload(named(Existing::Rebuild), group(1, walk()), operations(1));
    two.filesets[0].amount = Amount::Files(2);
    let create = Actions::Sequence(vec![action(Operation::Create { block_bytes: 4096, fsync: false })]);
    let creates = workload(named(Existing::Rebuild), group(1, create), operations(1));
    for load in [two, creates] {
        let refused = try_run(&load, place.path(), 1).expect_err("it is refused");
        assert!(
            matches!(&refused, LoadError::Unsupported { what } if what.contains("the name of one file")),
            "{refused}"
        );
    }
}
