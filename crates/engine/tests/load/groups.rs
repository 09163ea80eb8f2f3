//! What each group of threads has of its own, side by side with others.

use crate::support::*;
use fstone_engine::{LoadError, Observer, Ownership, Progress, RunOptions, run};
use fstone_model::workload::*;
use fstone_model::{LoadReport, Workload};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn reads() -> Actions {
    mix(&[(1, action(Operation::Read(random_block())))])
}

fn writes() -> Actions {
    mix(&[(1, action(Operation::Write(random_block())))])
}

/// A group of this name whose files stay open.
fn keeping(name: &str, actions: Actions, io: IoOverrides) -> ThreadGroup {
    ThreadGroup { name: name.into(), open: OpenPolicy::KeepOpen, io, ..group(2, actions) }
}

/// Notes with which flags files below a directory are open, at each point of the series.
struct Flags<'a> {
    directory: &'a Path,
    seen: Mutex<HashSet<i32>>,
}

impl Observer for Flags<'_> {
    fn progress(&self, _: &Progress) {
        for entry in std::fs::read_dir("/proc/self/fd").expect("procfs").flatten() {
            let is_ours = std::fs::read_link(entry.path()).is_ok_and(|path| path.starts_with(self.directory));
            let number = entry.file_name();
            let Ok(text) = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(number)) else { continue };
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
            if let Some(flags) = flags.filter(|flags| is_ours && flags & libc::O_ACCMODE != libc::O_RDONLY) {
                self.seen.lock().expect("no panic").insert(flags & (libc::O_DIRECT | libc::O_SYNC));
            }
        }
    }
}

fn watched(load: &Workload, directory: &Path, observer: &dyn Observer) -> LoadReport {
    let cancel = AtomicBool::new(false);
    let ownership = Ownership::Marked;
    let options = RunOptions { seed: 1, cancel: &cancel, observer, measure_null: false, ownership };
    run(load, directory, &options).expect("the engine works")
}

/// Groups that open files in different ways share no descriptors, even where descriptors are the phase's.
#[test]
fn groups_open_files_each_in_its_way() {
    let directory = on_disk();
    let direct = IoOverrides { direct: Some(true), ..IoOverrides::default() };
    let synced = IoOverrides { sync: Some(OpenSync::Dsync), ..IoOverrides::default() };
    let mut load =
        workload(fileset(40, 16384), keeping("buffered", reads(), IoOverrides::default()), milliseconds(300));
    load.phases[0].groups.push(keeping("direct", reads(), direct));
    load.phases[0].groups.push(keeping("synced", writes(), synced));
    // Files that come and go make the phase own all descriptors.
    let churn = [(1, action(Operation::Create { block_bytes: 4096, fsync: false })), (1, action(Operation::Unlink))];
    load.phases[0].groups.push(keeping("churn", mix(&churn), IoOverrides::default()));
    load.series_interval = Duration::from_millis(20);
    let flags = Flags { directory: directory.path(), seen: Mutex::default() };
    let report = watched(&load, directory.path(), &flags);
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    let seen = flags.seen.into_inner().expect("no panic");
    assert_eq!(seen, HashSet::from([0, libc::O_DIRECT, libc::O_DSYNC]));
    assert!(report.operations.iter().all(|operation| operation.invocations > 0), "{:?}", report.operations);
}

/// Each group has its I/O engine, and what one writes another reads.
#[test]
fn groups_have_engines_of_their_own() {
    let directory = in_memory();
    let on = |engine, queue_depth| IoOverrides {
        engine: Some(engine),
        queue_depth: Some(queue_depth),
        ..IoOverrides::default()
    };
    let both = || mix(&[(1, action(Operation::Read(random_block()))), (1, action(Operation::Write(random_block())))]);
    let mut load = workload(fileset(20, 65536), keeping("psync", both(), IoOverrides::default()), Stop::default());
    load.phases[0].groups.push(keeping("mmap", both(), on(IoEngineKind::Mmap, 1)));
    load.phases[0].groups.push(keeping("ring", both(), on(IoEngineKind::IoUring, 8)));
    for group in &mut load.phases[0].groups {
        group.stop = operations(500);
    }
    load.data.stamped = true;
    match try_run(&load, directory.path(), 1) {
        Err(error @ LoadError::Engine { .. }) => eprintln!("skipped: {error}"),
        Err(error) => panic!("{error}"),
        Ok(report) => {
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            assert_eq!(report.invocations(), 1500);
            assert!(report.audit.verified_bytes > 0);
        }
    }
    load.phases[0].groups[1].io.engine = Some(IoEngineKind::Null);
    let refused = try_run(&load, directory.path(), 1).expect_err("null beside others");
    assert!(refused.to_string().contains("null"), "{refused}");
}
