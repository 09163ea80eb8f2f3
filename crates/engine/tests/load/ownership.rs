//! Whose files a load may remove: its own.

use crate::support::*;
use fstone_engine::{LoadError, Ownership, RunOptions, Unobserved, run};
use fstone_model::Workload;
use fstone_model::workload::*;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn stats() -> Workload {
    let mut files = fileset(10, 4096);
    files.directory = String::new();
    workload(files, group(1, mix(&[(1, action(Operation::Stat))])), operations(10))
}

fn run_as(load: &Workload, directory: &Path, ownership: Ownership) -> Result<(), LoadError> {
    let cancel = AtomicBool::new(false);
    let options = RunOptions { seed: 1, cancel: &cancel, observer: &Unobserved, measure_null: false, ownership };
    run(load, directory, &options).map(|report| assert!(report.errors.is_empty(), "{:?}", report.errors))
}

#[test]
fn files_that_fstone_did_not_make_are_refused_and_stay() {
    let directory = on_disk();
    for name in ["file7", "file0042"] {
        std::fs::write(directory.path().join(name), b"mine").expect("writable");
    }
    let before = files_below(directory.path());
    for existing in [Existing::Rebuild, Existing::Reuse] {
        let mut load = stats();
        load.filesets[0].existing = existing;
        let refused = run_as(&load, directory.path(), Ownership::Marked).expect_err("they are not fstone's");
        let LoadError::InTheWay { names, .. } = &refused else { panic!("{refused}") };
        assert_eq!(names, &["file7", "file0042"]);
        assert!(refused.to_string().contains("--overwrite"), "{refused}");
        assert_eq!(files_below(directory.path()), before);
    }
    // Said so, what the fileset calls file7 is replaced. What it would never call so stays, now and later.
    run_as(&stats(), directory.path(), Ownership::Overwrite).expect("it was said");
    run_as(&stats(), directory.path(), Ownership::Marked).expect("it is marked");
    let names: Vec<(String, u64)> = files_below(directory.path());
    assert_eq!(names.len(), 11);
    assert!(names.iter().any(|(name, size)| name.ends_with("/file0042") && *size == 4), "{names:?}");
}

#[test]
fn files_that_are_required_belong_to_their_maker() {
    let directory = on_disk();
    for number in 0..10 {
        std::fs::write(directory.path().join(format!("file{number}")), vec![7; 4096]).expect("writable");
    }
    let mut load = stats();
    load.filesets[0].existing = Existing::Require;
    run_as(&load, directory.path(), Ownership::Marked).expect("nothing is changed");
    load.phases[0].groups[0].actions = mix(&[(1, action(Operation::Write(whole())))]);
    let refused = run_as(&load, directory.path(), Ownership::Marked).expect_err("they would be overwritten");
    assert!(matches!(refused, LoadError::InTheWay { .. }), "{refused}");
    assert_eq!(std::fs::read(directory.path().join("file3")).expect("it is there"), vec![7; 4096]);
    run_as(&load, directory.path(), Ownership::Own).expect("it is the load's own");
    assert!(!directory.path().join(".fstone").exists());
}

/// The directory beside, where FFSB's metadata operation works, is somebody's as well.
#[test]
fn directories_beside_are_asked_for_too() {
    let directory = on_disk();
    std::fs::create_dir_all(directory.path().join("meta/dir3")).expect("writable");
    let load = workload(fileset(2, 0), group(1, mix(&[(1, action(Operation::Metadata))])), operations(5));
    let refused = run_as(&load, directory.path(), Ownership::Marked).expect_err("it is not fstone's");
    assert!(refused.to_string().contains("dir3"), "{refused}");
    assert!(directory.path().join("meta/dir3").is_dir());
}

#[test]
fn no_link_leads_a_load_out_of_its_directory() {
    let place = on_disk();
    let victim = place.path().join("victim");
    let away = place.path().join("away");
    std::fs::create_dir(&away).expect("writable");
    let mut load = stats();
    load.phases[0].groups[0].actions = mix(&[(1, action(Operation::Write(whole())))]);
    for existing in [Existing::Reuse, Existing::Require] {
        for ownership in [Ownership::Own, Ownership::Marked] {
            load.filesets[0].existing = existing;
            let directory = on_disk();
            run_as(&stats(), directory.path(), Ownership::Marked).expect("it is empty");
            let file = directory.path().join("file3");
            let replaced = |link: &dyn Fn() -> std::io::Result<()>| {
                std::fs::write(&victim, vec![7; 4096]).expect("writable");
                std::fs::remove_file(&file).expect("it is there");
                link().expect("linked");
            };
            replaced(&|| std::os::unix::fs::symlink(&victim, &file));
            let refused = run_as(&load, directory.path(), ownership).expect_err("it is a link");
            assert!(refused.to_string().contains("is a symbolic link"), "{refused}");
            assert_eq!(std::fs::read(&victim).expect("it is there"), vec![7; 4096]);

            replaced(&|| std::fs::hard_link(&victim, &file));
            let outcome = run_as(&load, directory.path(), ownership);
            assert_eq!(outcome.is_ok(), existing == Existing::Reuse, "{outcome:?}");
            assert_eq!(std::fs::read(&victim).expect("it is there"), vec![7; 4096]);
        }
        for outside in [away.to_str().expect("plain"), "data/../../away", "..", "/"] {
            let mut outside =
                Workload { filesets: vec![Fileset { directory: outside.into(), ..fileset(3, 4096) }], ..stats() };
            outside.filesets[0].existing = existing;
            let refused = run_as(&outside, place.path(), Ownership::Own).expect_err("it is elsewhere");
            assert!(refused.to_string().contains("out of the load's directory"), "{refused}");
            assert_eq!(std::fs::read_dir(&away).expect("it is there").count(), 0);
        }
        // The fileset's own directory is a link.
        let directory = on_disk();
        std::os::unix::fs::symlink(&away, directory.path().join("data")).expect("linked");
        let mut below = load.clone();
        below.filesets[0].directory = "data".into();
        for ownership in [Ownership::Own, Ownership::Marked, Ownership::Overwrite] {
            assert!(run_as(&below, directory.path(), ownership).is_err());
            assert_eq!(std::fs::read_dir(&away).expect("it is there").count(), 0);
        }
    }
}

/// The directory is looked at before the load. Who can write to it may put links there later.
#[test]
fn a_link_that_appears_while_a_load_runs_is_not_followed() {
    let place = on_disk();
    let (victim, away) = (place.path().join("victim"), place.path().join("away"));
    std::fs::write(&victim, vec![7; 4096]).expect("writable");
    std::fs::create_dir(&away).expect("writable");
    let mut files = fileset(8, 4096);
    files.directory = String::new();
    files.directories = Directories::Flat { count: 2, root_too: true };
    let write = mix(&[(1, action(Operation::Write(whole())))]);
    let mut load = workload(files, group(2, write), milliseconds(1500));
    load.on_error = ErrorPolicy::Continue;
    let directory = on_disk();
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let cancel = AtomicBool::new(false);
            let ownership = Ownership::Marked;
            let options =
                RunOptions { seed: 1, cancel: &cancel, observer: &Unobserved, measure_null: false, ownership };
            run(&load, directory.path(), &options).expect("it runs to its end")
        });
        while files_below(directory.path()).iter().filter(|(_, size)| *size == 4096).count() < 8 {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(200));
        let names: Vec<_> = std::fs::read_dir(directory.path()).expect("readable").flatten().collect();
        for entry in names.iter().filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
            let path = entry.path();
            if path.is_dir() {
                // The same names, in a directory elsewhere.
                for file in std::fs::read_dir(&path).expect("readable").flatten() {
                    std::fs::write(away.join(file.file_name()), vec![7; 4096]).expect("writable");
                }
                std::fs::rename(&path, place.path().join(entry.file_name())).expect("moved");
                std::os::unix::fs::symlink(&away, &path).expect("linked");
            } else {
                std::fs::remove_file(&path).expect("removed");
                std::os::unix::fs::symlink(&victim, &path).expect("linked");
            }
        }
        running.join().expect("it ends")
    });
    assert!(!report.errors.is_empty(), "it met the links");
    let others = std::fs::read_dir(&away).expect("readable").flatten().map(|entry| entry.path());
    let victims: Vec<_> = others.chain([victim]).collect();
    assert!(victims.len() > 1);
    for path in victims {
        assert_eq!(std::fs::read(&path).expect("it is there"), vec![7; 4096], "{}", path.display());
    }
}

/// fio's rule: the files that a job names are its own, whoever made them, and no others are.
#[test]
fn a_load_that_owns_names_takes_no_other_file_of_that_form() {
    let directory = on_disk();
    let path = |name: &str| directory.path().join(name);
    for name in ["file0", "file7", "file0.r", "file0042"] {
        std::fs::write(path(name), b"somebody's").expect("writable");
    }
    let mut load = stats();
    load.filesets[0].amount = Amount::Files(2);
    load.filesets[0].existing = Existing::Reuse;
    run_as(&load, directory.path(), Ownership::ByName).expect("it runs");
    assert_eq!(std::fs::metadata(path("file1")).expect("made").len(), 4096, "it was missing");
    for name in ["file0", "file7", "file0.r", "file0042"] {
        assert_eq!(std::fs::read(path(name)).expect("it stays"), b"somebody's", "{name}");
    }
    // What is large enough is used as it is, also where there are more of them.
    std::fs::write(path("file0"), [7; 5000]).expect("writable");
    run_as(&load, directory.path(), Ownership::ByName).expect("it runs");
    assert_eq!(std::fs::read(path("file0")).expect("it stays"), [7; 5000]);
    // What is no regular file is not taken for one.
    std::fs::remove_file(path("file0")).expect("ours");
    rustix::fs::mknodat(rustix::fs::CWD, path("file0"), rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
    let refused = run_as(&load, directory.path(), Ownership::ByName).expect_err("a FIFO is in the way");
    assert!(refused.to_string().contains("no regular file"), "{refused}");
    assert!(path("file0").symlink_metadata().is_ok());
}

#[test]
fn a_load_that_owns_names_keeps_each_file_that_is_there() {
    let directory = on_disk();
    let path = |number: u64| directory.path().join(format!("file{number}"));
    let mine: Vec<u8> = (0..2 << 20).map(|byte| (byte % 251) as u8).collect();
    // One is missing, one is too small.
    for (number, bytes) in [(0, 4096), (1, 5000), (3, 100), (4, 2 << 20)] {
        std::fs::write(path(number), &mine[..bytes]).expect("writable");
    }
    let mut load = stats();
    load.filesets[0].amount = Amount::Files(5);
    load.filesets[0].existing = Existing::Reuse;
    load.phases[0].groups[0].actions = mix(&[(1, action(Operation::Read(whole())))]);
    load.phases[0].stop = operations(100);
    let cancel = AtomicBool::new(false);
    let ownership = Ownership::ByName;
    let options = RunOptions { seed: 1, cancel: &cancel, observer: &Unobserved, measure_null: false, ownership };
    let report = run(&load, directory.path(), &options).expect("the engine works");
    assert!(report.warnings.iter().any(|warning| warning.contains("file3 has 100 bytes")), "{:?}", report.warnings);
    assert!(matches!(&report.errors[..], [error] if error.path == "file3"), "{:?}", report.errors);
    for (number, bytes) in [(0, 4096), (1, 5000), (3, 100), (4, 2 << 20)] {
        assert!(std::fs::read(path(number)).expect("it stays") == mine[..bytes], "file{number}");
    }
    assert_eq!(std::fs::metadata(path(2)).expect("made").len(), 4096);
    std::fs::remove_file(path(3)).expect("ours");
    // A file that is larger than all that can be drawn is large enough.
    load.filesets[0].size = SizeDistribution::Uniform { minimum: 4096, maximum: 8193 };
    run_as(&load, directory.path(), Ownership::ByName).expect("it runs");
    assert!(std::fs::read(path(4)).expect("it stays") == mine);
    assert_eq!(files_below(directory.path()).len(), 5);
}

#[test]
fn a_load_that_owns_names_looks_at_all_before_it_removes_one() {
    let directory = on_disk();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("file0"), b"mine").expect("writable");
    std::os::unix::fs::symlink("nowhere", path("file1")).expect("linked");
    let mut load = stats();
    load.filesets[0].amount = Amount::Files(2);
    load.filesets[0].existing = Existing::Reuse;
    let refused = |load: &Workload| {
        let refused = run_as(load, directory.path(), Ownership::ByName).expect_err("a link is in the way");
        assert!(refused.to_string().contains("no regular file"), "{refused}");
        assert_eq!(std::fs::read(path("file0")).expect("it stays"), b"mine");
    };
    refused(&load);
    std::fs::rename(path("file1"), path("other0")).expect("renamed");
    load.filesets[0].amount = Amount::Files(1);
    let mut other = load.filesets[0].clone();
    other.name = "others".into();
    other.naming = Naming { file_prefix: "other".into(), directory_prefix: "others".into(), ..Naming::default() };
    load.filesets.push(other);
    refused(&load);
}

#[test]
fn a_load_that_makes_the_files_it_names_empties_none() {
    let directory = on_disk();
    let path = |name: &str| directory.path().join(name);
    let mut load = stats();
    load.filesets[0].amount = Amount::Files(2);
    load.filesets[0].existing = Existing::Rebuild;
    load.filesets[0].preallocated = 0.0;
    load.filesets[0].size = SizeDistribution::Fixed(0);
    load.phases[0].groups[0].actions = mix(&[(1, action(Operation::Create { block_bytes: 0, fsync: false }))]);
    load.phases[0].stop = operations(2);
    std::fs::write(path("file0"), b"").expect("writable");
    std::fs::write(path("file1"), b"somebody's").expect("writable");
    let refused = run_as(&load, directory.path(), Ownership::ByName).expect_err("it is not empty");
    assert!(refused.to_string().contains("file1 (not empty)"), "{refused}");
    assert_eq!(std::fs::read(path("file1")).expect("it stays"), b"somebody's");
    std::fs::remove_file(path("file1")).expect("ours");
    run_as(&load, directory.path(), Ownership::ByName).expect("it runs");
    run_as(&load, directory.path(), Ownership::ByName).expect("it runs again");
}

#[test]
fn an_interrupted_preparation_removes_nothing_that_was_there() {
    let directory = on_disk();
    let (data, link) = (directory.path().join("data"), directory.path().join("file0"));
    std::fs::write(&data, b"").expect("writable");
    std::os::unix::fs::symlink("data", &link).expect("linked");
    let mut load = stats();
    load.filesets[0].amount = Amount::Files(1);
    load.filesets[0].existing = Existing::Reuse;
    load.filesets[0].size = SizeDistribution::Fixed(1 << 40);
    let cancel = AtomicBool::new(false);
    let ownership = Ownership::AsWritten;
    let options = RunOptions { seed: 1, cancel: &cancel, observer: &Unobserved, measure_null: false, ownership };
    let interrupted = std::thread::scope(|scope| {
        let preparing = scope.spawn(|| fstone_engine::prepare(&load, directory.path(), &options).map(drop));
        while !preparing.is_finished() && std::fs::metadata(&data).expect("it is there").len() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        preparing.join().expect("no panic")
    });
    assert!(matches!(interrupted, Err(LoadError::Interrupted(_))), "{interrupted:?}");
    assert_eq!(std::fs::read_link(&link).expect("it stays"), Path::new("data"));
}

#[test]
fn a_load_that_owns_names_uses_directories_that_are_there() {
    let directory = on_disk();
    let path = |name: &str| directory.path().join(name);
    let mut load = stats();
    let fileset = &mut load.filesets[0];
    (fileset.amount, fileset.leaf_directories, fileset.existing) = (Amount::Files(0), 3, Existing::Reuse);
    fileset.naming = Naming { leaf_prefix: Some("leaf".into()), ..Naming::default() };
    load.phases[0].stop = operations(3);
    load.phases[0].groups[0].actions = Actions::Sequence(vec![action(Operation::StatDirectory)]);
    std::fs::create_dir(path("leaf1")).expect("made");
    std::fs::write(path("leaf1/mine"), b"mine").expect("writable");
    for _ in 0..2 {
        run_as(&load, directory.path(), Ownership::ByName).expect("it runs");
        assert_eq!(std::fs::read(path("leaf1/mine")).expect("it stays"), b"mine");
    }
    std::fs::remove_file(path("leaf1/mine")).expect("ours");
    load.phases[0].groups[0].actions = Actions::Sequence(vec![action(Operation::Rmdir)]);
    run_as(&load, directory.path(), Ownership::ByName).expect("it runs");
    assert!(["leaf0", "leaf1", "leaf2"].iter().all(|name| !path(name).exists()));
}

/// Everything of a file that a load could change: content, size, when it changed, and where its blocks are.
#[derive(Debug, PartialEq, Eq)]
struct State {
    name: std::ffi::OsString,
    bytes: Vec<u8>,
    changed: [i64; 4],
    identity: (u64, u64),
    extents: Vec<u8>,
}

fn states(directory: &Path) -> Vec<State> {
    use std::os::unix::fs::MetadataExt;
    let mut states: Vec<State> = std::fs::read_dir(directory)
        .expect("readable")
        .flatten()
        .filter(|entry| entry.file_name() != ".fstone")
        .map(|entry| {
            let file = entry.metadata().expect("it is there");
            let filefrag = std::process::Command::new("filefrag").args(["-e", "-s"]).arg(entry.path()).output();
            State {
                name: entry.file_name(),
                bytes: std::fs::read(entry.path()).expect("readable"),
                changed: [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()],
                identity: (file.ino(), file.blocks()),
                // Where the program is not installed, the number of blocks has to do.
                extents: filefrag.map_or_else(|_| Vec::new(), |output| output.stdout),
            }
        })
        .collect();
    states.sort_by(|one, other| one.name.cmp(&other.name));
    states
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_a_load_only_reads_stays(
        there in proptest::collection::vec(0u64..40_000, 1..4),
        files in 1u64..5,
        wanted in proptest::sample::select(vec![0u64, 1, 4096, 20_000, 65_536]),
        existing in proptest::sample::select(vec![Existing::Rebuild, Existing::Reuse, Existing::Require, Existing::Assume]),
        ownership in proptest::sample::select(vec![
            Ownership::Marked,
            Ownership::Anywhere { overwrite: false },
            Ownership::AsWritten,
            Ownership::ByName,
        ]),
        operation in proptest::sample::select(
            Operation::one_of_each(random_block()).filter(|one| !one.nature().changes()).collect::<Vec<_>>()
        ),
        engine in proptest::sample::select(vec![IoEngineKind::Psync, IoEngineKind::Mmap, IoEngineKind::IoUring]),
        fill: bool,
        allocate: bool,
        exact: bool,
        keep_open: bool,
    ) {
        let directory = on_disk();
        for (number, size) in there.iter().enumerate() {
            let bytes: Vec<u8> = (0..*size).map(|at| (at * 7 + number as u64) as u8).collect();
            let name = if exact { "file".to_owned() } else { format!("file{number}") };
            let file = std::fs::File::create(directory.path().join(name)).expect("writable");
            std::io::Write::write_all(&mut &file, &bytes).and_then(|()| file.sync_all()).expect("room");
        }
        let mut spec = fileset(if exact { 1 } else { files }, wanted);
        spec.directory = String::new();
        (spec.existing, spec.fill, spec.allocate, spec.naming.exact) = (existing, fill, allocate && !fill, exact);
        let mut readers = group(1, mix(&[(1, action(operation))]));
        if keep_open {
            readers.open = OpenPolicy::KeepOpen;
        }
        let mut load = workload(spec, readers, operations(5));
        load.io.engine = engine;
        let before = states(directory.path());
        let cancel = AtomicBool::new(false);
        let options = RunOptions { seed: 1, cancel: &cancel, observer: &Unobserved, measure_null: false, ownership };
        // It may be refused, or its reads may fail.
        let ran = run(&load, directory.path(), &options);
        let after = states(directory.path());
        for one in &before {
            proptest::prop_assert!(after.contains(one), "{:?} after {:?}", one.name, ran);
        }
    }
}
