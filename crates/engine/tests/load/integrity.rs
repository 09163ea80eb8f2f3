//! What a load of stamped data finds out about its files: damage, older states, files that are missing or short.

use crate::support::*;
use fstone_model::Workload;
use fstone_model::workload::*;
use std::path::Path;

fn nothing() {}

fn stamped(files: u64, operation: Operation) -> Workload {
    let mut load = workload(fileset(files, 8192), group(1, mix(&[(1, action(operation))])), operations(10));
    load.data.stamped = true;
    load
}

#[test]
fn only_what_was_written_is_read_back() {
    let directory = on_disk();
    let block = |pattern| transfer(Extent::Bytes(4096), pattern);
    let random = Pattern::Random { distribution: Distribution::Permutation, align_bytes: 4096 };
    for (queue_depth, engine) in [(1, IoEngineKind::Psync), (4, IoEngineKind::Libaio)] {
        for (phases, expected) in [(1, 5), (2, 8)] {
            let one = |operation, choice, stop| {
                let action = Action { choice, ..action(operation) };
                let io = IoOverrides { engine: Some(engine), queue_depth: Some(queue_depth), ..IoOverrides::default() };
                let region = Region::At { offset_bytes: 8192, length_bytes: None, step_bytes: 0 };
                ThreadGroup { open: OpenPolicy::KeepOpen, region, io, stop, ..group(1, mix(&[(1, action)])) }
            };
            let writes = |count| {
                Phase::new(
                    "write",
                    vec![one(Operation::Write(block(random)), FileChoice::Uniform, operations(count))],
                    Stop::default(),
                )
            };
            let read = Operation::Read(block(Pattern::Written { phases }));
            let once = Stop { once_through: true, ..Stop::default() };
            let reader = Phase::new("read", vec![one(read, FileChoice::Concatenated, once)], Stop::default());
            let mut load = stamped(1, Operation::Read(whole()));
            load.filesets = vec![fileset(1, 40 * 4096)];
            // What is written is drawn; the second phase may write over the first's.
            load.phases = vec![writes(3), writes(5), reader];
            let report = flawless(&load, directory.path());
            let reads = report.operations[2].invocations;
            assert!(if phases == 1 { reads == expected } else { (5..=expected).contains(&reads) }, "{phases}: {reads}");
        }
    }
}

/// What has nothing left to read back is not drawn any more: a thread does not wait in vain for most of its draws.
#[test]
fn what_was_read_back_is_not_drawn_again() {
    let directory = in_memory();
    let one = |size, number: u32| Fileset {
        name: format!("files{number}"),
        directory: format!("data{number}"),
        ..fileset(1, size)
    };
    let of = |operation: &Operation| -> Vec<Action> {
        (0..41).map(|number| Action { fileset: Some(number), ..action(operation.clone()) }).collect()
    };
    let write = Operation::Write(transfer(Extent::Whole, Pattern::FromStart));
    let read = Operation::Read(transfer(Extent::Bytes(4096), Pattern::Written { phases: 1 }));
    let reads = of(&read).into_iter().map(|action| Action { choice: FileChoice::Concatenated, ..action });
    let reads: Vec<(u32, Action)> = reads.map(|action| (1, action)).collect();
    let kept = |name: &str, actions, stop| ThreadGroup {
        name: name.into(),
        open: OpenPolicy::KeepOpen,
        stop,
        ..group(1, actions)
    };
    let mut load = stamped(1, Operation::Read(whole()));
    load.filesets = (0..41).map(|number| one(if number == 0 { 400 * 4096 } else { 4096 }, number)).collect();
    load.phases = vec![
        phase(vec![kept("write", Actions::Sequence(of(&write)), operations(41))], Stop::default()),
        phase(vec![kept("read", mix(&reads), once())], Stop::default()),
    ];
    let report = flawless(&load, directory.path());
    let blocks: u64 = report.operations.iter().filter(|one| one.group == "read").map(|one| one.invocations).sum();
    assert_eq!(blocks, 440);
    let reader = report.per_thread.iter().find(|thread| thread.group == "read").expect("it ran");
    // Each nap is one; there were eight for each block of the last file.
    assert!(reader.usage.context_switches < blocks, "{:?}", reader.usage);
}

fn flip(file: &Path, at: usize) {
    let mut data = std::fs::read(file).expect("it was built");
    data[at] ^= 1;
    std::fs::write(file, data).expect("writable");
}

#[test]
fn damage_is_found() {
    let directory = on_disk();
    let load = stamped(3, Operation::Read(whole()));
    let damage = || flip(&directory.path().join("data/file1"), 5000);
    let around = Around { begin: &nothing, end: &damage };
    let (_, found) = verified_around(&load, directory.path(), &around);
    assert_eq!((found.damaged_units, found.files), (1, 3));
    let damages: Vec<_> = found.damages.iter().map(|one| (one.path.as_path(), one.offset, &*one.problem)).collect();
    assert_eq!(damages, [(Path::new("data/file1"), 4608, "corrupt data")]);
    // A load that reads it says so, and ends; what it did not make itself has to be in order all the same.
    let mut again = load;
    again.filesets[0].existing = Existing::Require;
    let report = crate::support::load(&again, directory.path());
    assert_eq!(report.errors[0].call, "verify");
    assert!(report.warnings.iter().any(|warning| warning.contains("ended early")), "{:?}", report.warnings);
}

/// The stamps of an older state are in order: that of an earlier load, which a filesystem shows when it hands out blocks
/// that nobody cleared, and one of the same load, which is what a lost write leaves.
#[test]
fn an_older_state_is_not_taken_for_the_last() {
    let directory = in_memory();
    let victim = directory.path().join("data/file0");
    let load = stamped(1, Operation::Read(whole()));
    flawless(&load, directory.path());
    let earlier = std::fs::read(&victim).expect("it was built");
    let restore = || std::fs::write(&victim, &earlier).expect("writable");
    // A load that reads it.
    let (report, found) = verified_around(&load, directory.path(), &Around { begin: &restore, end: &nothing });
    assert_eq!(report.errors.iter().map(|error| &*error.call).collect::<Vec<_>>(), ["verify"]);
    assert!(!found.is_clean());
    // The state before the last write of the load itself, in one block of the file.
    let built = std::sync::Mutex::new(Vec::new());
    let keep = || *built.lock().expect("alone") = std::fs::read(&victim).expect("it was built");
    let lose = || {
        let mut data = std::fs::read(&victim).expect("it was built");
        data[1024..2048].copy_from_slice(&built.lock().expect("alone")[1024..2048]);
        std::fs::write(&victim, data).expect("writable");
    };
    let writes = stamped(1, Operation::Write(whole()));
    let (report, found) = verified_around(&writes, directory.path(), &Around { begin: &keep, end: &lose });
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    let damages: Vec<_> = found.damages.iter().map(|one| (one.offset, &*one.problem)).collect();
    assert_eq!(damages, [(1024, "an older state of the data"), (1536, "an older state of the data")]);
    assert_eq!(found.verified_bytes, 8192 - 1024);
}

/// A file that is gone, and one that was cut short, have no stamps that would say so.
#[test]
fn files_that_are_missing_or_short_are_errors_of_a_stamped_load() {
    let directory = in_memory();
    let harm = || {
        std::fs::remove_file(directory.path().join("data/file1")).expect("it was built");
        let short = std::fs::OpenOptions::new().write(true).open(directory.path().join("data/file2"));
        short.and_then(|file| file.set_len(512)).expect("it was built");
    };
    let load = stamped(4, Operation::Read(whole()));
    let (report, found) = verified_around(&load, directory.path(), &Around { begin: &nothing, end: &harm });
    let errors: Vec<(&str, &str)> = report
        .errors
        .iter()
        .map(|error| (error.path.as_str(), error.text.split(':').next().unwrap_or_default()))
        .collect();
    assert_eq!(errors, [("data/file1", "ENOENT"), ("data/file2", "ENODATA")]);
    let damages: Vec<_> = found.damages.iter().map(|one| (one.path.as_path(), one.offset, &*one.problem)).collect();
    let missing = "ENOENT: No such file or directory";
    let short = "the file ends here, and had 8192 bytes";
    assert_eq!(damages, [(Path::new("data/file1"), 0, missing), (Path::new("data/file2"), 512, short)]);
}

/// A load may end before its files have grown to their size; what was written to them must be there.
#[test]
fn a_file_that_grows_has_what_was_written() {
    let directory = in_memory();
    let block = transfer(Extent::Bytes(4096), Pattern::Cursor { shared: true });
    let mut load = stamped(2, Operation::Write(block));
    (load.filesets[0].fill, load.filesets[0].grows) = (false, true);
    load.phases[0].stop = operations(1);
    let (report, found) = try_run_verified(&load, directory.path(), 1).expect("the engine works");
    assert!(report.errors.is_empty() && found.is_clean(), "{report:?} {found:?}");
    let cut = || {
        for file in ["data/file0", "data/file1"] {
            std::fs::write(directory.path().join(file), []).expect("it was built");
        }
    };
    let (report, found) = verified_around(&load, directory.path(), &Around { begin: &nothing, end: &cut });
    assert!(report.errors.len() == 1 && found.damages.len() == 1, "{report:?} {found:?}");
}

/// The kernel counts what it reads for this process.
#[test]
fn direct_reads_of_small_blocks_read_no_more_than_these() {
    let directory = on_disk();
    let mut load = stamped(1, Operation::Read(transfer(Extent::Bytes(512), Pattern::Cursor { shared: true })));
    (load.filesets, load.io.direct, load.data.stamped) = (vec![fileset(1, 1 << 20)], true, false);
    load.phases[0].stop = operations(2000);
    let count = || {
        let text = std::fs::read_to_string("/proc/self/io").expect("Linux has it");
        let count = text.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("it is there");
        count.parse::<u64>().expect("a number")
    };
    let before = count();
    flawless(&load, directory.path());
    let read = count() - before;
    assert!(read < 3 << 20, "{read}");
}

#[test]
fn holes_are_empty() {
    let directory = in_memory();
    let victim = directory.path().join("data/file0");
    let mut load = stamped(1, Operation::Read(whole()));
    load.filesets[0].fill = false;
    let (report, found) = try_run_verified(&load, directory.path(), 1).expect("the engine works");
    assert!(report.errors.is_empty() && found.is_clean(), "{report:?} {found:?}");
    let expose = || flip(&victim, 700);
    let (_, found) = verified_around(&load, directory.path(), &Around { begin: &nothing, end: &expose });
    let damages: Vec<_> = found.damages.iter().map(|one| (one.offset, &*one.problem)).collect();
    assert_eq!(damages, [(512, "data where nothing was written")]);
}
