//! A bundle holds what the store holds, and is whole or refused.

use crate::samples::{self, refused, run, trial};
use fstone_model::dataset::Run;
use fstone_model::metric::catalog;
use fstone_model::result::TrialId;
use fstone_store::Store;
use fstone_store::bundle::{self, ExportError, Imported};
use proptest::prelude::*;
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::process::Command;

fn id(cell: u32, repetition: u32) -> TrialId {
    TrialId { cell, repetition }
}

fn import(store: &mut Store, path: &Path) -> Imported {
    bundle::stage(path).and_then(|staged| staged.import(store, 9)).expect("imported")
}

/// A store with a finished run of 70 trials: more than an import takes at once, and not a multiple of it.
fn recorded() -> (tempfile::TempDir, Store, u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = Store::open(&directory.path().join("fstone.db")).expect("a store");
    let number = store.begin_run(&run()).expect("recorded");
    for position in 0..70 {
        let make = if position == 3 { refused } else { trial };
        store.record_trial(number, &make(id(position % 4, position / 4), position)).expect("recorded");
    }
    store.finish_run(number, 1_790_000_000_000_000_000).expect("recorded");
    (directory, store, number)
}

#[test]
fn names_of_baselines_go_with_the_run() {
    let (directory, store, number) = recorded();
    let dataset = || store.dataset(number).expect("read");
    let [named, plain, hostile] = ["named", "plain", "hostile"].map(|name| directory.path().join(name));
    bundle::write_named(dataset(), &["main".into(), "v1.2".into()], &named).expect("written");
    bundle::write(dataset(), &plain).expect("written");
    bundle::write_named(dataset(), &["\u{1b}[2J".into()], &hostile).expect("written");
    assert_eq!(bundle::verify(&named).expect("whole").baselines, ["main", "v1.2"]);
    assert_eq!(bundle::verify(&plain).expect("whole").baselines, [""; 0]);
    assert_eq!(bundle::read(&named).expect("read"), dataset());
    let refused = bundle::verify(&hostile).expect_err("no name").to_string();
    assert!(refused.contains("is no name of a baseline") && !refused.contains('\u{1b}'), "{refused}");
}

#[test]
fn a_run_goes_through_a_bundle_unchanged() {
    let (directory, mut store, number) = recorded();
    let path = directory.path().join("run.fstone");
    samples::export(&store, number, &path).expect("exported");
    let original = store.dataset(number).expect("read");
    assert_eq!(bundle::read(&path).expect("read"), original);

    let contents = bundle::verify(&path).expect("whole");
    assert_eq!((contents.study.as_str(), contents.host.as_str(), contents.trials), ("small-file", "machine", 70));

    let known = import(&mut store, &path);
    assert_eq!(known, Imported::Known { run: number, trials: 70 }, "one's own run is recognised");
    assert_eq!(store.runs().expect("read").len(), 1);

    let mut other = Store::open(&directory.path().join("other.db")).expect("a store");
    other.begin_run(&Run { identity: "another".into(), ..run() }).expect("recorded");
    let Imported::New(imported) = import(&mut other, &path) else { panic!("it is new there") };
    assert_eq!(imported, 2);
    assert_eq!(import(&mut other, &path), Imported::Known { run: 2, trials: 70 });
    let runs = other.runs().expect("read");
    let marks: Vec<_> = runs.iter().map(|run| (run.imported_unix_ns, run.trials)).collect();
    assert_eq!(marks, [(None, 0), (Some(9), 70)]);
    let copy = other.dataset(imported).expect("read");
    assert_eq!(copy.trials, original.trials);
    assert_eq!(copy.run, Run { id: imported, ..original.run });
    let excerpts = "SELECT count(*) FROM excerpts";
    let excerpts: i64 =
        Connection::open(other.path()).and_then(|it| it.query_row(excerpts, [], |row| row.get(0))).expect("read");
    assert_eq!(excerpts, 70);

    let again = directory.path().join("again.fstone");
    samples::export(&store, number, &again).expect("exported");
    assert_eq!(fs::read(&path).expect("read"), fs::read(&again).expect("read"), "the same run, the same bytes");
    assert!(matches!(samples::export(&store, number, &path), Err(ExportError::Exists { .. })));
    let left: Vec<_> =
        fs::read_dir(directory.path()).expect("there").flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("part")), "{left:?}");
}

fn begun(path: &Path, trials: u32, finished: bool) -> (Store, u64) {
    let mut store = Store::open(path).expect("a store");
    let number = store.begin_run(&run()).expect("recorded");
    for position in 0..trials {
        store.record_trial(number, &trial(id(position % 4, position / 4), position)).expect("recorded");
    }
    if finished {
        store.finish_run(number, 1_790_000_000_000_000_000).expect("recorded");
    }
    (store, number)
}

#[test]
fn an_earlier_state_of_a_run_takes_the_trials_it_lacks() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let (early, number) = begun(&at("a.db"), 1, false);
    samples::export(&early, number, &at("early.fstone")).expect("exported");
    let (late, number) = begun(&at("b.db"), 4, true);
    samples::export(&late, number, &at("late.fstone")).expect("exported");

    let mut store = Store::open(&at("c.db")).expect("a store");
    assert_eq!(import(&mut store, &at("early.fstone")), Imported::New(1));
    assert_eq!(import(&mut store, &at("late.fstone")), Imported::More { run: 1, added: 3 });
    assert_eq!(store.dataset(1).expect("read"), late.dataset(number).expect("read"));
    assert_eq!(import(&mut store, &at("late.fstone")), Imported::Known { run: 1, trials: 4 });
    assert_eq!(import(&mut store, &at("early.fstone")), Imported::Known { run: 1, trials: 4 });

    // What was recorded here is nobody else's to go on with.
    let mut early = early;
    let error = bundle::stage(&at("late.fstone")).and_then(|staged| staged.import(&mut early, 9)).expect_err("more");
    assert!(error.to_string().contains("recorded here"), "{error}");
    assert_eq!(early.runs().expect("read")[0].trials, 1);
}

#[test]
fn an_identity_is_no_content() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let (genuine, number) = begun(&at("a.db"), 2, true);
    samples::export(&genuine, number, &at("genuine.fstone")).expect("exported");
    let mut forger = Store::open(&at("b.db")).expect("a store");
    let forged = forger.begin_run(&run()).expect("recorded");
    let mut other = trial(id(0, 0), 0);
    other.duration_ns += 1;
    forger.record_trial(forged, &other).expect("recorded");
    samples::export(&forger, forged, &at("forged.fstone")).expect("exported");

    let mut store = Store::open(&at("c.db")).expect("a store");
    assert_eq!(import(&mut store, &at("forged.fstone")), Imported::New(1));
    let error = bundle::stage(&at("genuine.fstone")).and_then(|staged| staged.import(&mut store, 9));
    let error = error.expect_err("other content");
    assert!(matches!(error, bundle::ImportError::Differs { run: 1, .. }), "{error}");
    assert!(error.to_string().contains("repetition 0 of cell 0 differs"), "{error}");
    assert_eq!(store.runs().expect("read").len(), 1);
}

/// SQLite has meanings of its own for such names.
#[test]
fn a_store_may_have_any_name() {
    let (directory, store, number) = recorded();
    let bundle = directory.path().join("run.fstone");
    samples::export(&store, number, &bundle).expect("exported");
    let here = std::env::current_dir().expect("it is there");
    for name in [":memory:", "file:zz.db?mode=memory"] {
        let path = Path::new(name);
        let mut other = Store::open(path).expect("a store");
        let imported = bundle::stage(&bundle).and_then(|staged| staged.import(&mut other, 9));
        drop(other);
        let runs = Store::open_read_only(path).map(|store| store.runs().expect("read").len());
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(here.join(format!("{name}{suffix}")));
        }
        assert_eq!(imported.expect("imported"), Imported::New(1), "{name}");
        assert_eq!(runs.expect("opened"), 1, "{name}");
    }
}

#[test]
fn figures_that_are_no_numbers_go_through_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = Store::open(&directory.path().join("fstone.db")).expect("a store");
    let number = store.begin_run(&run()).expect("recorded");
    let mut one = trial(id(0, 0), 0);
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
    let metrics = [catalog::TIME, catalog::CPU, catalog::CPU_USER, catalog::CPU_SYSTEM];
    one.steps[1].figures = metrics.iter().zip(values).map(|(metric, value)| metric.figure(value)).collect();
    store.record_trial(number, &one).expect("recorded");
    let path = directory.path().join("run.fstone");
    samples::export(&store, number, &path).expect("exported");
    let read = bundle::read(&path).expect("read").trials.remove(0);
    for (figure, value) in read.steps[1].figures.iter().zip(values) {
        assert!(figure.value.to_bits() == value.to_bits() || figure.value.is_nan() && value.is_nan(), "{figure:?}");
    }
}

#[test]
fn a_bundle_is_an_archive_that_tar_reads() {
    let (directory, store, number) = recorded();
    let path = directory.path().join("run.fstone");
    samples::export(&store, number, &path).expect("exported");
    let listed = Command::new("tar").args(["--zstd", "-xf"]).arg(&path).arg("-C").arg(directory.path()).status();
    if !listed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: tar or zstd is not installed");
        return;
    }
    let study = fs::read_to_string(directory.path().join("study/study.toml")).expect("there");
    assert_eq!(study, run().plan.source);
    let attachment = fs::read_to_string(directory.path().join("study/small-file.ffsb")).expect("there");
    assert_eq!(attachment, run().plan.attachments[0].1);
    let manifest = fs::read_to_string(directory.path().join("manifest.json")).expect("there");
    assert!(manifest.contains("trials/000069.json"));
}

#[test]
fn damage_is_found_wherever_it_is() {
    let (directory, store, number) = recorded();
    let path = directory.path().join("run.fstone");
    samples::export(&store, number, &path).expect("exported");
    let whole = fs::read(&path).expect("read");
    let original = bundle::read(&path).expect("read");
    let damaged = directory.path().join("damaged.fstone");
    let steps = 97;
    for step in 0..steps {
        let at = whole.len() * step / steps;
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&damaged, &bytes).expect("written");
        // A bit may carry nothing; then nothing is damaged.
        if let Ok(read) = bundle::read(&damaged) {
            assert_eq!(read, original, "byte {at}");
        }
        fs::write(&damaged, &whole[..at]).expect("written");
        assert!(bundle::read(&damaged).is_err(), "cut short at {at}");
    }
    fs::write(&damaged, &whole[..whole.len() / 2]).expect("written");
    let before = store.runs().expect("read");
    bundle::stage(&damaged).expect_err("damaged");
    assert_eq!(store.runs().expect("read"), before, "the store is untouched");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_run_goes_through_a_bundle(recorded in samples::runs(), trials in samples::trials()) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut store = Store::open(&directory.path().join("fstone.db")).expect("a store");
        let number = store.begin_run(&recorded).expect("recorded");
        for one in &trials {
            store.record_trial(number, one).expect("recorded");
        }
        let path = directory.path().join("run.fstone");
        samples::export(&store, number, &path).expect("exported");
        let mut other = Store::open(&directory.path().join("other.db")).expect("a store");
        prop_assert_eq!(import(&mut other, &path), Imported::New(1));
        let imported = 1;
        let copy = other.dataset(imported).expect("read");
        prop_assert_eq!(copy.run, Run { id: imported, ..recorded });
        prop_assert_eq!(copy.trials, trials);
    }

    #[test]
    fn rubbish_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), &bytes).expect("written");
        prop_assert!(bundle::verify(file.path()).is_err());
        // The same inside a sound frame, where the archive is what is rubbish.
        let framed = zstd::encode_all(bytes.as_slice(), 1).expect("compressed");
        fs::write(file.path(), framed).expect("written");
        prop_assert!(bundle::verify(file.path()).is_err());
    }
}
