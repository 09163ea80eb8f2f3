//! Programs: files held open from one action to the next, and threads that wait for each other.

use crate::support::*;
use fstone_model::LoadReport;
use fstone_model::workload::*;
use std::collections::BTreeMap;
use std::time::Duration;

fn by(handle: u32, operation: Operation) -> Action {
    Action { handle: Some(handle), choice: FileChoice::Rotation, ..action(operation) }
}

fn once(action: Action) -> Step {
    Step::Perform { action, times: 1 }
}

fn finish(count: u64, unit: FinishUnit) -> Step {
    Step::Finish { count, unit, of: None }
}

fn moved(extent: Extent, block_bytes: u64, pattern: Pattern) -> Transfer {
    Transfer { extent, block_bytes, pattern, fsync: false }
}

const ON: Pattern = Pattern::Cursor { shared: false };

fn run_in(workload: &fstone_model::Workload, place: &std::path::Path) -> LoadReport {
    load(workload, place)
}

fn half(files: u64, size: u64, preallocated: f64) -> Fileset {
    Fileset { preallocated, ..fileset(files, size) }
}

fn counts(report: &LoadReport) -> BTreeMap<&str, u64> {
    report.operations.iter().map(|one| (one.name.as_str(), one.invocations)).collect()
}

#[test]
fn a_file_stays_open_from_its_making_to_its_closing() {
    let place = in_memory();
    let append = Operation::Append(moved(Extent::Bytes(100), 100, Pattern::FromStart));
    let steps = vec![
        once(by(1, Operation::Create { block_bytes: 0, fsync: false })),
        once(by(1, Operation::Fill { block_bytes: 3000, like: None })),
        once(by(1, append)),
        once(by(1, Operation::Fsync)),
        once(by(1, Operation::Read(moved(Extent::Whole, 4096, Pattern::FromStart)))),
        once(by(1, Operation::Close)),
        finish(60, FinishUnit::Operations),
    ];
    let load = workload(half(20, 8000, 0.5), group(1, Actions::Program(steps)), milliseconds(20_000));
    let report = run_in(&load, place.path());
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    // Ten names were free: as many rounds of six operations.
    assert_eq!(counts(&report).values().copied().collect::<Vec<_>>(), [10; 6]);
    let of = |name: &str| report.operations.iter().find(|one| one.name == name).expect("it is there");
    assert_eq!((of("fill").written_bytes, of("fill").calls), (80_000, 30), "in blocks of 3000 bytes");
    assert_eq!((of("append").written_bytes, of("read").read_bytes), (1000, 81_000));
    let sizes: Vec<u64> = data_files(place.path()).into_values().collect();
    assert_eq!(sizes.iter().filter(|size| **size == 8100).count(), 10);
    // An open and a close of each file, and nothing else.
    let calls: BTreeMap<&str, u64> =
        report.calls.iter().map(|call| (call.call.as_str(), call.latency.count())).collect();
    let made = ["create", "open", "close"].map(|call| calls.get(call).copied().unwrap_or(0));
    assert_eq!(made, [10, 0, 10]);
}

fn data_files(place: &std::path::Path) -> BTreeMap<String, u64> {
    let entries = std::fs::read_dir(place.join("data")).expect("it is there").map(|entry| entry.expect("readable"));
    let named = entries.map(|entry| {
        let size = entry.metadata().expect("it is there").len();
        (entry.file_name().to_string_lossy().into_owned(), size)
    });
    named.filter(|(name, _)| name != ".fstone").collect()
}

#[test]
fn a_thread_without_a_free_name_is_done_and_ends_all_if_asked() {
    for first_done in [false, true] {
        let place = in_memory();
        let make = vec![once(by(0, Operation::Create { block_bytes: 0, fsync: false })), once(by(0, Operation::Close))];
        let stat = Action { choice: FileChoice::Rotation, ..action(Operation::Stat) };
        let look = vec![once(stat), Step::Pause(Duration::from_millis(1))];
        let limit = milliseconds(if first_done { 20_000 } else { 200 });
        let mut load = workload(half(50, 0, 0.4), group(2, Actions::Program(make)), limit);
        load.phases[0].groups.push(ThreadGroup { name: "beside".into(), ..group(1, Actions::Program(look)) });
        load.phases[0].stop.first_done = first_done;
        let report = run_in(&load, place.path());
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        assert_eq!(counts(&report)["create"], 30);
        assert_eq!(u128::from(report.running_ns) < limit.time.expect("it has one").as_nanos(), first_done);
        let told = report.warnings.iter().any(|warning| warning.contains("group: create found no free name left"));
        assert_eq!(told, first_done, "{:?}", report.warnings);
    }
}

#[test]
fn files_are_taken_in_rotation_and_what_is_open_is_not_removed() {
    let place = in_memory();
    let unlink = Action { choice: FileChoice::Rotation, ..action(Operation::Unlink) };
    let steps = vec![
        once(by(1, Operation::Open)),
        once(by(2, Operation::Open)),
        once(unlink),
        once(by(1, Operation::Close)),
        // Of a file that was closed the handle still knows which it was.
        once(by(1, Operation::Unlink)),
        once(by(2, Operation::Close)),
        finish(18, FinishUnit::Operations),
    ];
    let load = workload(half(9, 10, 1.0), group(1, Actions::Program(steps)), milliseconds(20_000));
    let report = run_in(&load, place.path());
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    // 0 and 1 are opened, 2 removed, and 0; then 3, 4, 5 and 3; 6, 7, 8 and 6.
    let left: Vec<String> = data_files(place.path()).into_keys().collect();
    assert_eq!(left, ["file1", "file4", "file7"]);
}

#[test]
fn leaf_directories_come_and_go_in_rotation() {
    let make = || once(action(Operation::Mkdir));
    let remove = || once(action(Operation::Rmdir));
    for (directories, files) in [
        (Directories::Tree { width: 2, depth: 2 }, 0),
        (Directories::Flat { count: 3, root_too: true }, 10),
        (Directories::Flat { count: 0, root_too: false }, 4),
    ] {
        for (steps, threads, calls, left) in [
            // 15 of 30 exist: as many are made, and then there is no name left.
            (vec![make()], 1, 15, 30),
            (vec![make()], 4, 15, 30),
            (vec![remove()], 1, 15, 0),
            (vec![remove()], 4, 15, 0),
            // Each round makes two and removes one: 16 make it 30 and 15 remain, and so on until a second name is not to be had.
            (vec![make(), make(), remove(), finish(1000, FinishUnit::Operations)], 1, 15 + 2 * 14, 30),
        ] {
            let place = in_memory();
            let set = Fileset { leaf_directories: 30, directories, ..half(files, 100, 0.5) };
            let load = workload(set, group(threads, Actions::Program(steps)), milliseconds(20_000));
            let report = run_in(&load, place.path());
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            assert_eq!(report.invocations(), calls, "{directories:?}");
            assert_eq!(empty_directories(&place.path().join("data"), directories), left, "{directories:?}");
            let told = report.warnings.iter().any(|warning| warning.contains("left. Have more of them"));
            assert!(told, "{:?}", report.warnings);
            // What an earlier load left is removed before the next begins.
            let again = run_in(&load, place.path());
            assert_eq!(again.invocations(), calls);
        }
    }
}

fn empty_directories(place: &std::path::Path, directories: Directories) -> usize {
    let holders = match directories {
        Directories::Flat { count, .. } => (0..count).map(|one| format!("dir{one}")).collect::<Vec<_>>(),
        Directories::Tree { .. } | Directories::Filled { .. } => vec![String::new()],
    };
    let mut found = 0;
    let mut ahead = vec![(place.to_owned(), 0)];
    while let Some((directory, depth)) = ahead.pop() {
        for entry in std::fs::read_dir(&directory).expect("it is there").map(|entry| entry.expect("readable")) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !entry.file_type().expect("known").is_dir() {
                continue;
            }
            let holds = match directories {
                Directories::Flat { .. } => depth == 0 && holders.contains(&name),
                Directories::Tree { depth: levels, .. } | Directories::Filled { depth: levels, .. } => depth < levels,
            };
            found += usize::from(!holds);
            ahead.push((entry.path(), depth + 1));
        }
    }
    found
}

#[test]
fn a_cursor_is_the_handles_own() {
    let place = in_memory();
    let read = by(0, Operation::Read(moved(Extent::Bytes(4000), 4000, ON)));
    let write = Action { name: "on".into(), ..by(1, Operation::Write(moved(Extent::Bytes(6000), 6000, ON))) };
    let steps = vec![
        Step::Perform { action: read, times: 5 },
        Step::Perform { action: write, times: 4 },
        finish(1, FinishUnit::Bytes),
    ];
    let load = workload(half(2, 10_000, 1.0), group(1, Actions::Program(steps)), milliseconds(20_000));
    let report = run_in(&load, place.path());
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    // 4000, 4000, 2000, and from the start again; writing goes on beyond the end.
    assert_eq!(report.read_bytes(), 18_000);
    assert_eq!(data_files(place.path()), BTreeMap::from([("file0".into(), 10_000), ("file1".into(), 24_000)]));
}

/// Each call's, also where an operation makes several.
#[test]
fn what_a_handle_writes_is_in_blocks_that_are_drawn() {
    let drawn = SizeDistribution::Weighted(vec![(4096, 1), (65536, 1)]);
    for (extent, operations) in [(Extent::Bytes(65536), 400), (Extent::Bytes(262_144), 100)] {
        for append in [false, true] {
            let transfer = moved(extent, 65536, if append { Pattern::FromStart } else { ON });
            let write = if append { Operation::Append(transfer) } else { Operation::Write(transfer) };
            let action = Action { blocks: Some(drawn.clone()), ..by(1, write) };
            let steps = vec![Step::Perform { action, times: 10 }, finish(operations, FinishUnit::Operations)];
            let load = workload(half(1, 4096, 1.0), group(1, Actions::Program(steps)), milliseconds(20_000));
            let report = run_in(&load, in_memory().path());
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            let one = &report.operations[0];
            let mean = one.written_bytes as f64 / one.calls as f64;
            // The last call of an operation of several is cut short by its end.
            let expected = if extent == Extent::Bytes(65536) { 34_816.0 } else { 32_739.0 };
            assert!((mean - expected).abs() < 0.15 * expected, "{extent:?} {append}: {mean}");
        }
    }
}

#[test]
fn a_copy_is_as_large_as_what_it_was_copied_from() {
    let place = in_memory();
    let steps = vec![
        once(by(1, Operation::Open)),
        once(by(2, Operation::Create { block_bytes: 0, fsync: false })),
        once(by(2, Operation::Fill { block_bytes: 4096, like: Some(1) })),
        once(by(1, Operation::Close)),
        once(by(2, Operation::Close)),
    ];
    let mut load = workload(half(8, 7000, 0.5), group(1, Actions::Program(steps)), milliseconds(20_000));
    load.filesets[0].size = SizeDistribution::Weighted(vec![(5000, 1), (9000, 1)]);
    load.phases[0].stop.first_done = true;
    let report = run_in(&load, place.path());
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    let sizes: Vec<u64> = data_files(place.path()).into_values().collect();
    assert_eq!(sizes.len(), 8);
    assert_eq!(sizes[..4], sizes[4..], "made in the order of their names");
}

#[test]
fn threads_that_append_to_one_file_get_a_place_each() {
    let place = in_memory();
    let append = by(3, Operation::Append(moved(Extent::Bytes(700), 700, Pattern::FromStart)));
    let steps = vec![Step::Perform { action: append, times: 100 }, finish(400, FinishUnit::Operations)];
    let load = workload(half(1, 0, 1.0), group(4, Actions::Program(steps)), milliseconds(20_000));
    let report = run_in(&load, place.path());
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    let written = report.written_bytes();
    assert!(written >= 280_000, "{written}");
    assert_eq!(data_files(place.path())["file0"], written);
}

#[test]
fn steps_within_steps_are_repeated() {
    let place = in_memory();
    let named = |name: &str| once(Action { name: name.into(), ..action(Operation::Stat) });
    let inner = Step::Repeat { times: 3, steps: vec![named("b"), named("c")] };
    let steps = vec![
        named("a"),
        Step::Repeat { times: 2, steps: vec![inner, named("d")] },
        Step::Spin(10),
        Step::Finish { count: 5, unit: FinishUnit::Operations, of: Some("a".into()) },
    ];
    let load = workload(fileset(3, 0), group(1, Actions::Program(steps)), milliseconds(20_000));
    let report = run_in(&load, place.path());
    assert_eq!(counts(&report), BTreeMap::from([("a", 5), ("b", 30), ("c", 30), ("d", 10)]));
}

#[test]
fn groups_of_a_process_count_together() {
    let place = in_memory();
    let of = |name: &str, process: Option<&str>, steps: Vec<Step>| ThreadGroup {
        process: process.map(str::to_owned),
        ..ThreadGroup { name: name.into(), ..group(1, Actions::Program(steps)) }
    };
    let named = |name: &str| once(Action { name: name.into(), ..action(Operation::Stat) });
    let first = || vec![named("a"), finish(1000, FinishUnit::Operations)];
    let second = || vec![named("b"), finish(1000, FinishUnit::Operations)];
    let mut load = workload(fileset(3, 0), of("one", Some("p"), first()), milliseconds(20_000));
    load.phases[0].groups.push(of("other", Some("p"), second()));
    let done = run_in(&load, place.path()).invocations();
    assert!((1000..=1001).contains(&done), "{done}");
    for group in &mut load.phases[0].groups {
        group.process = None;
    }
    assert_eq!(run_in(&load, place.path()).invocations(), 2000);
}

#[test]
fn events_hold_all_threads_back_together() {
    let place = in_memory();
    let stat = Step::Perform { action: action(Operation::Stat), times: 5 };
    let steps = vec![stat, Step::Pace { per_second: 200.0, unit: PaceUnit::Operations, of: None }];
    let load = workload(fileset(3, 0), group(4, Actions::Program(steps)), milliseconds(1000));
    let report = run_in(&load, place.path());
    let done = report.invocations();
    // A round of each thread may be under way; a machine that is busy may do less.
    assert!((100..=230).contains(&done), "{done}");
}

#[test]
fn one_thread_waits_for_another() {
    let place = in_memory();
    let named = |name: &str| once(Action { name: name.into(), ..action(Operation::Stat) });
    let wait = |name: &str, posts, ahead| Step::Wait { name: name.into(), posts, ahead, once: false };
    let post = |to: &str| Step::Post { to: to.into(), posts: 1, bounded: true };
    let work = vec![named("work"), post("taken"), Step::Finish { count: 100, unit: FinishUnit::Operations, of: None }];
    let take = vec![wait("taken", 10, Some(5)), named("take"), finish(10, FinishUnit::Operations)];
    let mut load = workload(fileset(3, 0), group(1, Actions::Program(work)), milliseconds(20_000));
    load.phases[0].groups.push(ThreadGroup { name: "beside".into(), ..group(1, Actions::Program(take)) });
    let report = run_in(&load, place.path());
    assert_eq!(counts(&report), BTreeMap::from([("take", 10), ("work", 100)]));
    // Nobody posts: the time ends it.
    let steps = vec![named("work"), wait("never", 1, None)];
    let load = workload(fileset(3, 0), group(2, Actions::Program(steps)), milliseconds(50));
    assert_eq!(run_in(&load, place.path()).invocations(), 2);
}

#[test]
fn numbers_say_which_file() {
    let place = in_memory();
    let numbers = SizeDistribution::Weighted(vec![(1, 3), (4, 1)]);
    let unlink = Action { numbers: Some(numbers), ..action(Operation::Unlink) };
    let steps = vec![once(unlink), finish(2, FinishUnit::Operations)];
    let load = workload(half(6, 0, 1.0), group(1, Actions::Program(steps)), milliseconds(20_000));
    run_in(&load, place.path());
    let left: Vec<String> = data_files(place.path()).into_keys().collect();
    assert_eq!(left.len(), 4);
    assert!(left.contains(&"file0".into()) && (!left.contains(&"file1".into()) || !left.contains(&"file4".into())));
}

#[test]
fn what_no_program_can_do_is_refused() {
    let place = in_memory();
    let open = once(by(1, Operation::Open));
    let refusal = |steps: Vec<Step>, change: fn(&mut fstone_model::Workload)| {
        let mut load = workload(fileset(2, 0), group(1, Actions::Program(steps)), milliseconds(10));
        change(&mut load);
        try_run(&load, place.path(), 1).expect_err("it is refused").to_string()
    };
    let nothing: fn(&mut fstone_model::Workload) = |_| {};
    for (steps, change, words) in [
        (vec![once(by(128, Operation::Open))], nothing, "handle 128"),
        (vec![once(action(Operation::Close))], nothing, "without a handle"),
        (vec![once(by(1, Operation::Chmod))], nothing, "cannot"),
        (vec![Step::Perform { action: action(Operation::Stat), times: 0 }], nothing, "never gone through"),
        (vec![open.clone(), Step::Repeat { times: 2, steps: vec![Step::Spin(1)] }], nothing, "no operation"),
        (vec![open.clone(), Step::Post { to: "x".into(), posts: 1, bounded: false }], nothing, "nobody waits"),
        (
            vec![open.clone(), Step::Finish { count: 1, unit: FinishUnit::Bytes, of: Some("x".into()) }],
            nothing,
            "is not there",
        ),
        (vec![open.clone()], |load: &mut fstone_model::Workload| load.data.stamped = true, "stamps"),
        (
            vec![open],
            |load: &mut fstone_model::Workload| {
                let Actions::Program(steps) = &load.phases[0].groups[0].actions else { return };
                let actions = Step::actions(steps).into_iter().cloned().collect();
                load.phases[0].groups[0].actions = Actions::Sequence(actions);
            },
            "for programs",
        ),
    ] {
        let text = refusal(steps, change);
        assert!(text.contains(words), "{words}: {text}");
    }
}
