//! A witness of a real load: what was acknowledged is found, and what is taken away is missed.

use crate::support::{action, fileset, group, mix, on_disk, operations, random_block, whole, workload};
use fstone_engine::{Observer, Ownership, Property, RunOptions, Witness, run};
use fstone_model::Workload;
use fstone_model::workload::{Action, Extent, FinalSync, IoEngineKind, OpenSync, Operation, Transfer};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

struct Remembers(Witness);

impl Observer for Remembers {
    fn witness(&self) -> Option<&Witness> {
        Some(&self.0)
    }
}

fn witnessed(workload: &Workload, directory: &Path) -> Witness {
    let observer = Remembers(Witness::new());
    let cancel = AtomicBool::new(false);
    let options =
        RunOptions { seed: 1, cancel: &cancel, observer: &observer, measure_null: false, ownership: Ownership::Own };
    let report = run(workload, directory, &options).expect("it runs");
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    observer.0
}

fn durable_load(engine: IoEngineKind) -> Workload {
    let synced = |transfer: Transfer| Transfer { fsync: true, ..transfer };
    let actions = mix(&[
        (3, action(Operation::Create { block_bytes: 4096, fsync: true })),
        (3, action(Operation::Write(synced(random_block())))),
        (1, action(Operation::Write(synced(whole())))),
        (1, action(Operation::Unlink)),
    ]);
    let mut workload = workload(fileset(20, 16 << 10), group(2, actions), operations(200));
    workload.data.stamped = true;
    workload.io.engine = engine;
    workload
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory.join("data"))
        .expect("the fileset's directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.is_file() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("file"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn what_was_acknowledged_is_there_and_what_is_taken_away_is_missed() {
    for engine in [IoEngineKind::Psync, IoEngineKind::IoUring] {
        let place = on_disk();
        let witness = witnessed(&durable_load(engine), place.path());
        let kept = witness.look(witness.now(), true);
        assert!(kept.checked > 20, "{engine:?}: {kept:?}");
        assert_eq!(kept.broken, 0, "{engine:?}: {:?}", kept.first);

        let files = files(place.path());
        assert!(files.len() > 13, "{engine:?}: {files:?}");
        let (lost, short, zeroed, foreign, sound) =
            (&files[0..2], &files[2..6], &files[6..9], &files[9..12], &files[12..]);
        let fill = |path: &Path, data: &[u8]| {
            let length = fs::metadata(path).expect("it is there").len() as usize;
            let data: Vec<u8> = data.iter().copied().cycle().take(length).collect();
            fs::write(path, data).expect("it can be written");
        };
        let another = fs::read(&sound[0]).expect("it is there");
        lost.iter().for_each(|path| fs::remove_file(path).expect("it is ours"));
        for path in short {
            OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(512)).expect("it can be cut");
        }
        zeroed.iter().for_each(|path| fill(path, &[0]));
        foreign.iter().for_each(|path| fill(path, &another));

        let kept = witness.look(witness.now(), true);
        let found = |property, path: &PathBuf, words: &str| {
            kept.first
                .iter()
                .any(|broken| broken.property == property && broken.path == *path && broken.words.contains(words))
        };
        let all = &kept.first;
        assert!(lost.iter().any(|path| found(Property::Name, path, "by any name")), "{engine:?}: {all:?}");
        assert!(short.iter().any(|path| found(Property::Length, path, "were synced")), "{engine:?}: {all:?}");
        assert!(zeroed.iter().any(|path| found(Property::Data, path, "zeros")), "{engine:?}: {all:?}");
        assert!(foreign.iter().any(|path| found(Property::Data, path, "another file")), "{engine:?}: {all:?}");
        assert!(!all.iter().any(|broken| sound.contains(&broken.path)), "{engine:?}: {all:?}");
    }
}

#[test]
fn an_older_generation_is_missed() {
    let after = |count| {
        let place = on_disk();
        let mut workload = durable_load(IoEngineKind::Psync);
        workload.filesets[0] = fileset(1, 4096);
        workload.phases[0].groups[0].actions =
            mix(&[(1, action(Operation::Write(Transfer { fsync: true, ..whole() })))]);
        workload.phases[0].groups[0].threads = 1;
        workload.phases[0].stop = operations(count);
        let witness = witnessed(&workload, place.path());
        let file = files(place.path()).remove(0);
        (place, witness, file)
    };
    let (_first, _, file) = after(1);
    let older = fs::read(file).expect("it is there");
    let (_second, witness, file) = after(2);
    assert_eq!(witness.look(witness.now(), true).broken, 0);
    assert_ne!(fs::read(&file).expect("it is there"), older);
    fs::write(&file, older).expect("it can be written");
    let kept = witness.look(witness.now(), true);
    assert!(kept.first.iter().any(|broken| broken.words.contains("was synced")), "{kept:?}");
}

/// Nothing else makes a name durable here, and no data.
#[test]
fn a_name_that_is_gone_after_its_directory_was_synced_is_missed() {
    let made = |io: OpenSync, syncs: u32| {
        let place = on_disk();
        let create = (4, action(Operation::Create { block_bytes: 4096, fsync: false }));
        let actions = [create, (syncs, action(Operation::FsyncDirectory))];
        let mut workload =
            workload(fileset(1, 4096), group(1, mix(&actions[..1 + syncs.min(1) as usize])), operations(60));
        workload.data.stamped = true;
        workload.io.sync = io;
        workload.final_sync = FinalSync::None;
        let witness = witnessed(&workload, place.path());
        let kept = witness.look(witness.now(), true);
        assert_eq!(kept.broken, 0, "{kept:?}");
        files(place.path()).iter().for_each(|file| fs::remove_file(file).expect("it is ours"));
        let lost = witness.look(witness.now(), true);
        assert!(lost.first.iter().all(|broken| broken.property == Property::Name), "{lost:?}");
        lost.broken
    };
    assert_eq!(made(OpenSync::None, 0), 0);
    assert!(made(OpenSync::None, 1) > 20);
    assert!(made(OpenSync::Dsync, 0) > 50);
}

/// As editors save files: the moment before the last sync is asked for, when nothing but the fsyncs made anything durable.
#[test]
fn of_replaced_files_the_old_or_the_new_one_is_there() {
    let place = on_disk();
    let mut workload = workload(
        fileset(0, 4096),
        group(1, mix(&[(1, action(Operation::Create { block_bytes: 4096, fsync: true }))])),
        operations(8),
    );
    workload.data.stamped = true;
    let mut saves = workload.phases[0].clone();
    saves.name = "saves".into();
    saves.groups[0].threads = 2;
    saves.groups[0].actions = mix(&[(1, action(Operation::Replace { block_bytes: 4096, fsync: true }))]);
    saves.stop = operations(200);
    workload.phases[0].measured = false;
    workload.phases.push(saves);
    let witness = witnessed(&workload, place.path());
    let files = files(place.path());
    assert_eq!(files.len(), 8, "nothing is left beside them: {files:?}");
    // Behind it there is the sync alone.
    let moment = witness.moment() - 2;
    let kept = witness.look(moment..u64::MAX, true);
    assert!(kept.broken == 0 && kept.checked >= 8 * 3, "{kept:?}");
    fs::remove_file(&files[0]).expect("it is ours");
    fs::write(&files[1], []).expect("it is ours");
    let kept = witness.look(moment..u64::MAX, true);
    for file in &files[..2] {
        let found = kept.first.iter().any(|broken| broken.property == Property::Replacement && broken.path == *file);
        assert!(found, "{}: {kept:?}", file.display());
    }
}

/// The kernel finds the end of the file for each: what is written down has to be where it did.
#[test]
fn what_several_threads_append_to_one_file_is_where_it_was_written() {
    let place = on_disk();
    let append = Transfer { extent: Extent::Bytes(1024), block_bytes: 1024, fsync: true, ..whole() };
    let mut workload =
        workload(fileset(1, 1024), group(8, mix(&[(1, action(Operation::Append(append)))])), operations(800));
    workload.data.stamped = false;
    let witness = witnessed(&workload, place.path());
    let kept = witness.look(witness.now(), true);
    assert!(kept.checked > 0 && kept.broken == 0, "{kept:?}");
}

/// A copy into a mapping is acknowledged only where writes are to be durable: it is followed by an msync then.
#[test]
fn mappings_promise_what_was_synced() {
    let promised = |engine, sync| {
        let place = on_disk();
        let write = mix(&[(1, action(Operation::Write(random_block())))]);
        let mut workload = workload(fileset(2, 64 << 10), group(1, write), operations(50));
        workload.io.engine = engine;
        workload.io.sync = sync;
        workload.final_sync = FinalSync::None;
        let witness = witnessed(&workload, place.path());
        let kept = witness.look(witness.now(), true);
        assert_eq!(kept.broken, 0, "{kept:?}");
        kept.checked
    };
    let copied = promised(IoEngineKind::Mmap, OpenSync::None);
    for sync in [OpenSync::Sync, OpenSync::Dsync] {
        let (written, synced) = (promised(IoEngineKind::Psync, sync), promised(IoEngineKind::Mmap, sync));
        assert!(
            written == synced && synced > copied,
            "{sync:?}: {written} of writes, {synced} of copies, {copied} without a sync"
        );
    }
}

#[test]
fn data_of_any_length_is_looked_at() {
    let place = on_disk();
    let append = Transfer { extent: Extent::Bytes(1000), block_bytes: 1000, fsync: true, ..whole() };
    let mut workload =
        workload(fileset(2, 1024), group(1, mix(&[(1, action(Operation::Append(append)))])), operations(40));
    workload.data.stamped = false;
    let mut over = workload.phases[0].clone();
    over.name = "over".into();
    let write = Transfer { extent: Extent::Bytes(700), block_bytes: 700, ..append };
    over.groups[0].actions = mix(&[(1, action(Operation::Write(write)))]);
    over.stop = operations(4);
    workload.phases.push(over);
    let witness = witnessed(&workload, place.path());
    let kept = witness.look(witness.now(), true);
    assert_eq!((kept.checked, kept.broken), (6, 0), "data, length and name of each: {kept:?}");
    for file in files(place.path()) {
        let sound = fs::read(&file).expect("it is there");
        // Of the last record, which nothing was written over.
        for at in [sound.len() - 1, sound.len() - 999] {
            let mut data = sound.clone();
            data[at] ^= 1;
            fs::write(&file, &data).expect("it can be written");
            let kept = witness.look(witness.now(), true);
            assert!(
                kept.first.iter().any(|broken| broken.property == Property::Data && broken.path == file),
                "{at}: {kept:?}"
            );
        }
        fs::write(&file, &sound[..sound.len() - 1]).expect("it can be written");
        let kept = witness.look(witness.now(), true);
        assert!(kept.first.iter().any(|broken| broken.property == Property::Length && broken.path == file), "{kept:?}");
        fs::write(&file, &sound).expect("it can be written");
    }
}

#[test]
fn files_that_were_built_may_be_moved_to_names_that_were_removed() {
    let place = on_disk();
    let unlink = mix(&[(1, action(Operation::Unlink))]);
    let mut workload = workload(fileset(20, 4096), group(1, unlink), operations(20));
    let mut found = fileset(20, 4096);
    (found.name, found.directory) = ("found".into(), "found".into());
    workload.filesets.push(found);
    let mut moves = workload.phases[0].clone();
    moves.name = "moves".into();
    moves.groups[0].actions = mix(&[(1, Action { fileset: Some(1), ..action(Operation::Move { to: 0 }) })]);
    moves.stop = operations(12);
    workload.phases.push(moves);
    let witness = witnessed(&workload, place.path());
    let moved = files(place.path());
    assert_eq!(moved.len(), 12);
    let kept = witness.look(witness.now(), true);
    // The names of the files that were moved, and 20 - 12 names that were removed and 12 that were moved away.
    assert_eq!((kept.checked, kept.broken), (32, 0), "{kept:?}");
    fs::remove_file(&moved[0]).expect("it is ours");
    let kept = witness.look(witness.now(), true);
    assert_eq!((kept.broken, kept.first[0].property), (1, Property::Name), "{kept:?}");
}

/// Nobody observes what a callout does: what was promised before it is asked for no more.
#[test]
fn what_a_callout_removes_is_not_missed() {
    let write = action(Operation::Write(Transfer { fsync: true, ..random_block() }));
    let mut workload = workload(fileset(10, 16 << 10), group(1, mix(&[(1, write.clone())])), operations(50));
    let mut later = fileset(10, 16 << 10);
    (later.name, later.directory) = ("later".into(), "later".into());
    workload.filesets.push(later);
    let mut measured = workload.phases[0].clone();
    measured.name = "measured".into();
    measured.groups[0].actions = mix(&[(1, Action { fileset: Some(1), ..write })]);
    workload.phases[0].measured = false;
    workload.phases.push(measured);
    let promised = |workload: &Workload| {
        let place = on_disk();
        let witness = witnessed(workload, place.path());
        witness.look(witness.now(), true)
    };
    let without = promised(&workload);
    workload.callout = Some("rm data/file*".into());
    let with = promised(&workload);
    assert_eq!((without.broken, with.broken), (0, 0), "{with:?}");
    assert!(0 < with.checked && with.checked < without.checked, "{with:?}, {without:?}");
}

#[test]
fn the_name_of_a_file_that_was_built_is_promised_before_any_fsync_of_it() {
    let place = on_disk();
    let write = mix(&[(1, action(Operation::Write(random_block())))]);
    let mut workload = workload(fileset(1, 64 << 10), group(1, write), operations(50));
    workload.phases[0].groups[0].fsync.every_operations = 1;
    workload.phases[0].groups[0].fsync.data_only = true;
    let witness = witnessed(&workload, place.path());
    // Before the last sync.
    let moment = witness.moment() - 2;
    let kept = witness.look(moment..u64::MAX, true);
    assert_eq!((kept.checked, kept.broken), (3, 0), "{kept:?}");
    fs::remove_file(files(place.path()).remove(0)).expect("it is ours");
    let kept = witness.look(moment..u64::MAX, true);
    assert_eq!((kept.broken, kept.first[0].property), (1, Property::Name), "{kept:?}");
}
