//! What the kernel refuses is data: operation, call, path, errno and count, under both policies.

use crate::support::*;
use fstone_engine::{Observer, Ownership, RunOptions, run};
use fstone_model::workload::*;
use fstone_model::{LoadReport, Workload};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Mounted {
    pub(crate) point: PathBuf,
    /// What the mount point is in, where it goes with the mount.
    _directory: Option<TempDir>,
}

fn command(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

impl Mounted {
    fn at(directory: TempDir, arguments: &[&str]) -> Option<Self> {
        let point = directory.path().join("mount");
        std::fs::create_dir(&point).expect("a fresh directory");
        match command("mount", &[arguments, &[&point.to_string_lossy()]].concat()) {
            Ok(_) => Some(Self { point, _directory: Some(directory) }),
            Err(why) => {
                eprintln!("skipped: mount {}: {why}", arguments.join(" "));
                None
            }
        }
    }

    fn in_memory(options: &str) -> Option<Self> {
        Self::at(on_disk(), &["-t", "tmpfs", "-o", options, "fstone-test"])
    }

    /// An overlay, whose files may have something to write back when they are closed.
    pub(crate) fn overlay() -> Option<Self> {
        let directory = in_memory();
        let part = |name: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir(&path).expect("a fresh directory");
            format!("{name}dir={}", path.display())
        };
        let options = ["lower", "upper", "work"].map(part).join(",");
        Self::at(directory, &["-t", "overlay", "-o", &options, "fstone-test"])
    }

    fn remount(&self, options: &str) {
        self.when_free("mount", &["-o", &format!("remount,{options}")]);
    }

    /// Runs a command on the mount point. A child that another test is starting, and a thread of another test's load, has
    /// our descriptors for a moment.
    fn when_free(&self, program: &str, arguments: &[&str]) {
        let point = self.point.to_string_lossy();
        let arguments = [arguments, &[&*point]].concat();
        for _ in 0..100 {
            if command(program, &arguments).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        command(program, &arguments).expect("nobody is in there");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.when_free("umount", &[]);
    }
}

fn both(workload: &Workload, directory: &Path, errno: &str, call: &str) -> [LoadReport; 2] {
    [ErrorPolicy::Stop, ErrorPolicy::Continue].map(|on_error| {
        let mut workload = workload.clone();
        workload.on_error = on_error;
        let report = load(&workload, directory);
        expect(&report, on_error, &workload, errno, call);
        report
    })
}

fn expect(report: &LoadReport, on_error: ErrorPolicy, workload: &Workload, errno: &str, call: &str) {
    let [error] = report.errors.as_slice() else { panic!("{:?}", report.errors) };
    let action = workload.phases[0].groups[0].actions.all()[0].name.clone();
    assert_eq!((error.operation.as_str(), error.call.as_str()), (action.as_str(), call), "{error:?}");
    assert!(error.text.starts_with(errno), "{error:?}");
    assert!(error.path.starts_with("data/"), "{error:?}");
    assert_eq!(error.count, report.operations[0].errors);
    let wanted = workload.phases[0].stop.operations.expect("limited by operations");
    let done = report.invocations() + error.count;
    let early = report.warnings.iter().any(|warning| warning.contains("ended early"));
    match on_error {
        ErrorPolicy::Stop | ErrorPolicy::StopGroup => {
            assert!(early && error.count == 1 && done <= wanted, "{error:?} {:?}", report.warnings);
        }
        ErrorPolicy::Continue => assert!(!early && done == wanted, "{done} of {wanted}: {:?}", report.warnings),
    }
}

fn creates(block_bytes: u64, count: u64) -> Workload {
    let mut files = fileset(0, block_bytes.max(1));
    files.amount = Amount::Files(0);
    let mut load = workload(
        files,
        group(1, mix(&[(1, action(Operation::Create { block_bytes, fsync: false }))])),
        operations(count),
    );
    load.final_sync = FinalSync::None;
    load
}

#[test]
fn a_full_inode_table() {
    let Some(place) = Mounted::in_memory("size=16m,nr_inodes=40") else { return };
    let [_, report] = both(&creates(0, 100), &place.point, "ENOSPC", "create");
    assert!(report.invocations() < 40);
}

#[test]
fn a_full_device() {
    let Some(place) = Mounted::in_memory("size=1m") else { return };
    let [_, report] = both(&creates(64 << 10, 40), &place.point, "ENOSPC", "write");
    assert!(report.written_bytes() <= 1 << 20);
}

#[test]
fn a_read_only_filesystem() {
    let Some(place) = Mounted::in_memory("size=16m") else { return };
    let mut load = workload(fileset(3, 4096), group(1, mix(&[(1, action(Operation::Unlink))])), operations(10));
    flawless(&workload(fileset(3, 4096), group(1, mix(&[(1, action(Operation::Stat))])), operations(1)), &place.point);
    load.filesets[0].existing = Existing::Require;
    load.final_sync = FinalSync::None;
    place.remount("ro");
    both(&load, &place.point, "EROFS", "unlink");
}

struct AtBegin<'a>(&'a (dyn Fn() + Sync));

impl Observer for AtBegin<'_> {
    fn measured_begin(&self) {
        (self.0)();
    }
}

#[test]
fn a_file_that_vanishes() {
    let directory = in_memory();
    for on_error in [ErrorPolicy::Stop, ErrorPolicy::Continue] {
        let mut load =
            workload(fileset(1, 4096), group(1, mix(&[(1, action(Operation::Read(whole())))])), operations(10));
        load.on_error = on_error;
        let remove = || std::fs::remove_file(directory.path().join("data/file0")).expect("it was built");
        let (observer, cancel) = (AtBegin(&remove), AtomicBool::new(false));
        let options = RunOptions {
            seed: 1,
            cancel: &cancel,
            observer: &observer,
            measure_null: false,
            ownership: Ownership::Marked,
        };
        let report = run(&load, directory.path(), &options).expect("the engine works");
        expect(&report, on_error, &load, "ENOENT", "open");
        assert_eq!(report.errors[0].path, "data/file0");
        // Of a file that was open already the error would not show; a file cut short does.
        load.phases[0].groups[0].open = OpenPolicy::KeepOpen;
        let cut = || std::fs::write(directory.path().join("data/file0"), b"").expect("it was built");
        let (observer, cancel) = (AtBegin(&cut), AtomicBool::new(false));
        let options = RunOptions {
            seed: 1,
            cancel: &cancel,
            observer: &observer,
            measure_null: false,
            ownership: Ownership::Marked,
        };
        let report = run(&load, directory.path(), &options).expect("the engine works");
        expect(&report, on_error, &load, "ENODATA", "read");
        assert_eq!(report.errors[0].path, "data/file0");
    }
}

/// Runs one of the tests below in a process of its own, by way of `wrapper`.
pub(crate) fn in_a_process_of_its_own(test: &str, wrapper: &[&str]) {
    let own = std::env::current_exe().expect("the test binary");
    let mut all = wrapper.to_vec();
    let own = own.to_string_lossy();
    all.extend([&*own, "--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    let output = Command::new(all[0]).args(&all[1..]).output();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            eprint!("{}", text.lines().filter(|line| line.starts_with("skipped")).collect::<String>());
            assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stdout));
        }
        Err(error) => eprintln!("skipped: {}: {error}", all[0]),
    }
}

#[test]
fn out_of_descriptors() {
    in_a_process_of_its_own("faults::inside_out_of_descriptors", &["prlimit", "--nofile=64:64"]);
}

#[test]
#[ignore = "run by out_of_descriptors, with a limit of its own"]
fn inside_out_of_descriptors() {
    let directory = in_memory();
    let copy = |on_error| {
        let mut load =
            workload(fileset(3, 4096), group(1, mix(&[(1, action(Operation::CopyFileRange))])), operations(5));
        load.final_sync = FinalSync::None;
        load.on_error = on_error;
        load
    };
    for on_error in [ErrorPolicy::Stop, ErrorPolicy::Continue] {
        let mut held: Vec<std::fs::File> = Vec::new();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            held.push(file);
        }
        // A copy needs one descriptor more than building does, so there is a number of free ones with which the files
        // can be built and not copied.
        let report = loop {
            held.pop().expect("a load needs no more than 60 descriptors");
            match try_run(&copy(on_error), directory.path(), 1) {
                Ok(report) => break report,
                Err(error) => assert!(
                    error.to_string().contains("ulimit -n") || error.to_string().contains("Too many"),
                    "{error}"
                ),
            }
        };
        drop(held);
        expect(&report, on_error, &copy(on_error), "EMFILE", "create");
    }
}

#[test]
fn a_quota_that_is_used_up() {
    // Of btrfs, whose quotas hold root as well, and which kernels have more often than ext4's.
    let directory = on_disk();
    let image = directory.path().join("image").to_string_lossy().into_owned();
    std::fs::File::create(&image).and_then(|file| file.set_len(128 << 20)).expect("a fresh directory");
    if let Err(why) = command("mkfs.btrfs", &["-q", "-f", &image]) {
        eprintln!("skipped: mkfs.btrfs: {why}");
        return;
    }
    let Some(place) = Mounted::at(directory, &["-o", "loop", &image]) else { return };
    let point = place.point.to_string_lossy();
    let append =
        Operation::Append(Transfer { block_bytes: 64 << 10, ..transfer(Extent::Bytes(64 << 10), Pattern::FromStart) });
    let mut load = workload(fileset(1, 4096), group(1, mix(&[(1, action(append))])), operations(100));
    load.final_sync = FinalSync::None;
    // More for the second load, as what the first gave back may not be counted yet.
    for (on_error, limit) in [(ErrorPolicy::Stop, "1M"), (ErrorPolicy::Continue, "3M")] {
        let limited = command("btrfs", &["quota", "enable", &point])
            .and_then(|_| command("btrfs", &["qgroup", "limit", limit, "0/5", &point]));
        if let Err(why) = limited {
            eprintln!("skipped: btrfs quota: {why}");
            return;
        }
        load.on_error = on_error;
        let report = crate::support::load(&load, &place.point);
        expect(&report, on_error, &load, "EDQUOT", "write");
    }
}

#[test]
fn a_device_that_fails() {
    let directory = on_disk();
    let image = directory.path().join("image").to_string_lossy().into_owned();
    std::fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a fresh directory");
    if let Err(why) = command("mkfs.ext4", &["-q", "-F", "-O", "^has_journal", &image]) {
        eprintln!("skipped: mkfs.ext4: {why}");
        return;
    }
    let Some(place) = Mounted::at(directory, &["-o", "loop", &image]) else { return };
    let mut threads = group(1, mix(&[(1, action(Operation::Read(random_block())))]));
    threads.open = OpenPolicy::KeepOpen;
    let mut load = workload(fileset(1, 32 << 20), threads, operations(200));
    load.io.direct = true;
    load.final_sync = FinalSync::None;
    flawless(&load, &place.point);
    load.filesets[0].existing = Existing::Require;
    // What lies behind the loop device goes; its first blocks, which name the files, stay.
    std::fs::OpenOptions::new().write(true).open(&image).and_then(|file| file.set_len(16 << 20)).expect("it is ours");
    both(&load, &place.point, "EIO", "read");
    std::fs::OpenOptions::new().write(true).open(&image).and_then(|file| file.set_len(64 << 20)).expect("it is ours");
}

#[test]
fn filling_and_ageing_to_a_utilization() {
    let Some(place) = Mounted::in_memory("size=32m") else { return };
    let used = || {
        let space = rustix::fs::statvfs(&place.point).expect("it is mounted");
        1.0 - space.f_bfree as f64 / space.f_blocks as f64
    };
    let mut files = fileset(0, 64 << 10);
    files.amount = Amount::Utilization(0.4);
    let stat = mix(&[(1, action(Operation::Stat))]);
    let mut load = workload(files, group(1, stat), operations(10));
    flawless(&load, &place.point);
    assert!((0.4..0.42).contains(&used()), "{}", used());
    // Ageing creates more than it deletes until the filesystem is used that far. It is looked at 50 times a second, so
    // the load is slowed down to what one look may miss.
    let mut ageing = group(
        2,
        mix(&[(3, action(Operation::Create { block_bytes: 4096, fsync: false })), (1, action(Operation::Unlink))]),
    );
    ageing.think_time = Duration::from_millis(5);
    let stop = Stop { utilization: Some(0.6), ..Stop::default() };
    load.phases.insert(0, Phase::unmeasured("ageing", vec![ageing], stop));
    let report = flawless(&load, &place.point);
    assert!(used() >= 0.6, "{}", used());
    // Only the measured phase is in the figures.
    assert_eq!(report.invocations(), 10);
}

#[test]
fn a_group_stops_at_the_utilization_of_its_own_filesystem() {
    let Some(full) = Mounted::in_memory("size=8m") else { return };
    let Some(empty) = Mounted::in_memory("size=32m") else { return };
    std::fs::write(full.point.join("ballast"), vec![1; 6 << 20]).expect("room");
    let directory = in_memory();
    let bound = [("full", &full), ("empty", &empty)].map(|(name, mounted)| {
        let point = directory.path().join(name);
        std::fs::create_dir(&point).expect("a fresh directory");
        command("mount", &["--bind", &mounted.point.to_string_lossy(), &point.to_string_lossy()]).expect("it is ours");
        Mounted { point, _directory: None }
    });
    let on = |name: &str| Fileset { name: name.into(), directory: name.into(), ..fileset(1, 4096) };
    let create = Operation::Create { block_bytes: 4096, fsync: false };
    let mut fills = group(1, mix(&[(1, Action { fileset: Some(1), ..action(create) })]));
    fills.think_time = Duration::from_micros(500);
    fills.stop = Stop { utilization: Some(0.5), ..Stop::default() };
    let mut load = workload(on("full"), fills, Stop::default());
    load.filesets.push(on("empty"));
    load.final_sync = FinalSync::None;
    let cancel = AtomicBool::new(false);
    // The file beside the fileset's own is there on purpose.
    let ownership = Ownership::Overwrite;
    let options =
        RunOptions { seed: 1, cancel: &cancel, observer: &fstone_engine::Unobserved, measure_null: false, ownership };
    let report = run(&load, directory.path(), &options);
    let space = rustix::fs::statvfs(&empty.point).expect("it is mounted");
    drop(bound);
    let report = report.expect("the engine works");
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    let used = 1.0 - space.f_bfree as f64 / space.f_blocks as f64;
    assert!(used >= 0.5, "{used}, after {} files", report.invocations());
}

/// Sectors of 4 KiB take no smaller requests: the end of a file that has no whole number of them is asked for in full.
#[test]
fn odd_ends_are_read_directly_from_large_sectors() {
    let directory = on_disk();
    let image = directory.path().join("image").to_string_lossy().into_owned();
    std::fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a fresh directory");
    let device = match command("losetup", &["--find", "--show", "--sector-size", "4096", &image]) {
        Ok(device) => device,
        Err(why) => {
            eprintln!("skipped: losetup --sector-size: {why}");
            return;
        }
    };
    let made = command("mkfs.ext4", &["-q", "-F", &device]);
    let place = made.is_ok().then(|| Mounted::at(directory, &[&device])).flatten();
    // From here on the mount holds the device; detached, it goes with the mount.
    command("losetup", &["--detach", &device]).expect("it is ours");
    let Some(place) = place else {
        eprintln!("skipped: {made:?}");
        return;
    };
    for (engine, queue_depth) in [(IoEngineKind::Psync, 1), (IoEngineKind::IoUring, 1), (IoEngineKind::IoUring, 8)] {
        for open in [OpenPolicy::PerOperation, OpenPolicy::KeepOpen] {
            let block = Transfer { block_bytes: 4096, ..random_block() };
            let mut threads =
                group(1, mix(&[(1, action(Operation::Read(block))), (1, action(Operation::Read(whole())))]));
            threads.open = open;
            // 12,345 bytes: three sectors and an odd end of 57.
            let mut load = workload(fileset(4, 12_345), threads, operations(200));
            load.io = IoSettings { engine, queue_depth, direct: true, ..IoSettings::default() };
            load.final_sync = FinalSync::None;
            match try_run(&load, &place.point, 1) {
                Ok(report) => {
                    assert!(report.errors.is_empty(), "{engine:?} {queue_depth} {open:?}: {:?}", report.errors);
                }
                Err(error @ fstone_engine::LoadError::Engine { .. }) => eprintln!("skipped: {engine:?}: {error}"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

struct Flushes {
    counters: PathBuf,
    at_begin: std::sync::atomic::AtomicU64,
    within: std::sync::atomic::AtomicU64,
}

impl Flushes {
    fn of(mounted: &Mounted) -> Self {
        let device = rustix::fs::stat(&mounted.point).expect("it is mounted").st_dev;
        let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let counters = PathBuf::from(format!("/sys/dev/block/{number}/stat"));
        Self { counters, at_begin: 0.into(), within: 0.into() }
    }

    fn now(&self) -> u64 {
        let text = std::fs::read_to_string(&self.counters).expect("every block device has counters");
        text.split_whitespace().nth(15).and_then(|field| field.parse().ok()).expect("Linux 5.5 counts flushes")
    }
}

impl Observer for Flushes {
    fn measured_begin(&self) {
        self.at_begin.store(self.now(), std::sync::atomic::Ordering::Relaxed);
    }

    fn measured_end(&self) {
        let since = self.now() - self.at_begin.load(std::sync::atomic::Ordering::Relaxed);
        self.within.store(since, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn the_final_sync_flushes_the_device_of_every_filesystem() {
    let kinds: [(&str, &[&str], &str); 6] = [
        ("ext2", &["-q", "-F"], ""),
        ("jfs", &["-q"], ""),
        ("vfat", &[], ""),
        ("ext4", &["-q", "-F"], "barrier=0,"),
        ("ext4", &["-q", "-F"], ""),
        ("xfs", &["-q"], ""),
    ];
    for (kind, options, mount) in kinds {
        let directory = on_disk();
        let image = directory.path().join("image").to_string_lossy().into_owned();
        std::fs::File::create(&image).and_then(|file| file.set_len(320 << 20)).expect("a fresh directory");
        if let Err(why) = command(&format!("mkfs.{kind}"), &[options, &[image.as_str()]].concat()) {
            eprintln!("skipped: mkfs.{kind}: {why}");
            continue;
        }
        let options = format!("{mount}loop");
        let Some(place) = Mounted::at(directory, &["-t", kind, "-o", &options, &image]) else { continue };
        let mut load = creates(64 << 10, 20);
        load.final_sync = FinalSync::Syncfs;
        let (flushes, cancel) = (Flushes::of(&place), AtomicBool::new(false));
        let options =
            RunOptions { seed: 1, cancel: &cancel, observer: &flushes, measure_null: false, ownership: Ownership::Own };
        let report = run(&load, &place.point, &options).expect("the engine works");
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        assert!(flushes.within.into_inner() >= 1, "{kind} {mount}: no flush inside the interval");
    }
}
