//! Groups that continue where those of their name ended in the phase before.

use crate::support::*;
use fstone_model::workload::*;
use std::os::unix::fs::MetadataExt;

const BLOCKS: u64 = 256;

fn writing(pattern: Pattern, choice: FileChoice, fileset: u32) -> Action {
    let operation = Operation::Write(transfer(Extent::Bytes(4096), pattern));
    Action { choice, fileset: Some(fileset), ..action(operation) }
}

/// The share of blocks that has data when these actions are done, over two phases, as often as there are blocks. No phase has as many.
fn met(actions: Actions, tour: Option<Tour>, files: u64, continues: bool) -> f64 {
    let directory = in_memory();
    let mut first = group(1, actions);
    (first.open, first.tour) = (OpenPolicy::KeepOpen, tour);
    let second = ThreadGroup { continues, ..first.clone() };
    let holes = |place: u64| Fileset {
        fill: false,
        directory: format!("data{place}"),
        name: format!("files{place}"),
        ..fileset(1, BLOCKS * 4096)
    };
    // What a group that continues did before counts, unless it begins anew.
    let all = BLOCKS * files;
    // Not at the end of a round through the files.
    let before = all * 3 / 5 + 1;
    let mut load = workload(holes(0), first, operations(before));
    load.filesets = (0..files).map(holes).collect();
    load.phases[0].measured = false;
    let left = if continues { all } else { all - before };
    load.phases.push(phase(vec![ThreadGroup { stop: operations(left), ..second }], Stop::default()));
    let report = flawless(&load, directory.path());
    assert_eq!(report.invocations(), all - before);
    let files = files_below(directory.path());
    let blocks = |(path, _): &(String, u64)| std::fs::metadata(path).expect("it is there").blocks();
    let data: u64 = files.iter().map(|file| blocks(file) * 512).sum();
    data as f64 / (all * 4096) as f64
}

#[test]
fn all_blocks_are_met_in_two_phases() {
    let permuted = Pattern::Random { distribution: Distribution::Permutation, align_bytes: 4096 };
    let cursor = |shared| Pattern::Cursor { shared };
    let one = |pattern, choice| mix(&[(1, writing(pattern, choice, 0))]);
    let both =
        || mix(&[(1, writing(permuted, FileChoice::Uniform, 0)), (1, writing(permuted, FileChoice::Uniform, 0))]);
    let three = |pattern| (0..3).map(|fileset| writing(pattern, FileChoice::Uniform, fileset)).collect::<Vec<_>>();
    let drawn = || {
        let mut action = writing(permuted, FileChoice::Uniform, 0);
        action.blocks = Some(SizeDistribution::Weighted(vec![(4096, 1)]));
        mix(&[(1, action)])
    };
    for (what, actions, tour, files) in [
        ("permutation of a file", one(permuted, FileChoice::Uniform), None, 1),
        ("of a space", one(permuted, FileChoice::Concatenated), None, 1),
        ("of drawn sizes", drawn(), None, 1),
        ("cursor", one(cursor(false), FileChoice::Uniform), None, 1),
        ("shared cursor", one(cursor(true), FileChoice::Uniform), None, 1),
        ("tour", both(), Some(Tour::InTurn), 1),
        ("sequence of files", Actions::Sequence(three(cursor(false))), None, 3),
    ] {
        assert_eq!(met(actions.clone(), tour, files, true), 1.0, "{what}");
        assert!(met(actions, tour, files, false) < 0.9, "{what}, begun anew");
    }
}

#[test]
fn a_group_continues_one_that_did_the_same() {
    let directory = in_memory();
    let read = |choice| mix(&[(1, Action { choice, ..action(Operation::Read(random_block())) })]);
    let first = group(1, read(FileChoice::Uniform));
    for (second, fits) in [
        (first.clone(), true),
        (ThreadGroup { name: "other".into(), ..first.clone() }, false),
        (ThreadGroup { threads: 2, ..first.clone() }, false),
        (ThreadGroup { actions: read(FileChoice::RoundRobin), ..first.clone() }, false),
    ] {
        let mut load = workload(fileset(1, 1 << 20), first.clone(), operations(10));
        let second = ThreadGroup { continues: true, ..second };
        load.phases.push(phase(vec![second.clone()], operations(10)));
        assert_eq!(try_run(&load, directory.path(), 1).is_ok(), fits, "{second:?}");
    }
}

/// What follows has the places of what it follows, in their order, a backlog behind; what is left comes at the end.
#[test]
fn a_backlog_is_followed_place_by_place() {
    let permuted = Pattern::Random { distribution: Distribution::Permutation, align_bytes: 4096 };
    for (pattern, written) in [(permuted, 10), (Pattern::Cursor { shared: false }, 10), (permuted, BLOCKS)] {
        let directory = in_memory();
        let read = Action {
            follows: true,
            ..Action::new("read", Operation::Read(transfer(Extent::Bytes(4096), pattern)), Some(0))
        };
        let write = Action { fileset: Some(0), ..writing(pattern, FileChoice::Uniform, 0) };
        let mut both = group(1, Actions::Sequence(vec![write, read]));
        (both.open, both.backlog, both.stop) = (OpenPolicy::KeepOpen, Some(4), operations(2 * written));
        let mut load = workload(Fileset { fill: false, ..fileset(1, BLOCKS * 4096) }, both, Stop::default());
        load.data.stamped = true;
        let report = flawless(&load, directory.path());
        let counts: Vec<u64> = report.operations.iter().map(|operation| operation.invocations).collect();
        assert_eq!(counts, [written, written]);
        assert_eq!(report.audit.verified_bytes, written * 4096, "{pattern:?}");
    }
    let refused = |change: fn(&mut ThreadGroup)| {
        let cursor = Pattern::Cursor { shared: false };
        let follows = Action { follows: true, ..writing(cursor, FileChoice::Uniform, 0) };
        let actions = Actions::Sequence(vec![writing(cursor, FileChoice::Uniform, 0), follows]);
        let mut both = ThreadGroup { backlog: Some(2), stop: operations(8), ..group(1, actions) };
        change(&mut both);
        let load = workload(fileset(1, 8192), both, Stop::default());
        let what = try_run(&load, in_memory().path(), 1).err().map(|error| error.to_string());
        assert!(
            what.as_ref().is_some_and(|what| what.contains("follows another") || what.contains("backlog")),
            "{what:?}"
        );
    };
    refused(|group| group.threads = 2);
    refused(|group| group.stop = Stop::default());
    refused(|group| group.backlog = Some(0));
    refused(|group| group.actions.all_mut()[0].follows = true);
    refused(|group| group.actions.all_mut()[0].choice = FileChoice::RoundRobin);
}
