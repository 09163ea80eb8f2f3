//! Blocks that several machines made come together in one run, whole and once.

use crate::samples::{export, run, trial};
use fstone_model::dataset::{BlockOrigin, Dataset, Run};
use fstone_model::result::TrialId;
use fstone_model::{Inventory, Trial};
use fstone_store::Store;
use fstone_store::bundle::{self, Imported, MergeError, Merged};
use std::path::Path;

fn trials(block: u32) -> Vec<Trial> {
    (0..4).map(|cell| trial(TrialId { cell, repetition: block }, 4 * block + cell)).collect()
}

fn origin(block: u32, machine: &str) -> BlockOrigin {
    BlockOrigin {
        block,
        machine: machine.into(),
        inventory: Inventory { host: machine.into(), cpus: 4, ..Inventory::default() },
    }
}

fn block(directory: &Path, block: u32, machine: &str) -> Dataset {
    let run = Run { blocks: vec![origin(block, machine)], ..run() };
    let dataset = Dataset { run, trials: trials(block) };
    bundle::write(dataset.clone(), &directory.join(format!("{block}-{machine}"))).expect("written");
    dataset
}

fn merge(store: &mut Store, directory: &Path, names: &[&str]) -> Result<Merged, MergeError> {
    let staged = |name: &&str| ((*name).to_owned(), bundle::stage(&directory.join(name)).expect("a bundle"));
    bundle::merge(store, 1, &names.iter().map(staged).collect::<Vec<_>>())
}

/// A store with the run and its first block, made on its own machine.
fn begun() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = Store::open(&directory.path().join("fstone.db")).expect("a store");
    assert_eq!(store.begin_run(&run()).expect("recorded"), 1);
    for trial in trials(0) {
        store.record_trial(1, &trial).expect("recorded");
    }
    (directory, store)
}

#[test]
fn blocks_of_other_machines_are_added_once_with_their_machines() {
    let (directory, mut store) = begun();
    let made = [block(directory.path(), 2, "n2"), block(directory.path(), 1, "n1")];
    let all = ["2-n2", "1-n1"];
    assert_eq!(merge(&mut store, directory.path(), &all).expect("merged"), Merged { added: 8, known: 0 });
    assert_eq!(merge(&mut store, directory.path(), &all).expect("merged"), Merged { added: 0, known: 8 });
    let dataset = store.dataset(1).expect("read");
    let expected: Vec<Trial> = [0, 1, 2].into_iter().flat_map(trials).collect();
    assert_eq!(dataset.trials, expected);
    assert_eq!(dataset.run.blocks, [made[1].run.blocks[0].clone(), made[0].run.blocks[0].clone()]);
    assert_eq!(dataset.run.origin(0), None, "the run's own");

    // It goes through a bundle as it is, and an earlier state of it takes what it lacks.
    let at = |name: &str| directory.path().join(name);
    export(&store, 1, &at("all.fstone")).expect("exported");
    assert_eq!(bundle::read(&at("all.fstone")).expect("read"), dataset);
    let mut other = Store::open(&at("other.db")).expect("a store");
    for (name, expected) in [("1-n1", Imported::New(1)), ("all.fstone", Imported::More { run: 1, added: 8 })] {
        let imported = bundle::stage(&at(name)).and_then(|staged| staged.import(&mut other, 9)).expect("imported");
        assert_eq!(imported, expected);
    }
    assert_eq!(other.dataset(1).expect("read"), dataset);
    let again = bundle::stage(&at("2-n2")).and_then(|staged| staged.import(&mut other, 9)).expect("known");
    assert_eq!(again, Imported::Known { run: 1, trials: 12 });
    assert!(other.delete_runs(&[(1, None)]).expect("deleted").is_none());
}

#[test]
fn what_contradicts_the_run_is_refused_whole() {
    let (directory, mut store) = begun();
    let path = directory.path();
    let write = |name: &str, dataset: Dataset| bundle::write(dataset, &path.join(name)).expect("written");
    let good = block(path, 1, "n1");
    let plan = fstone_model::Plan { seed: 3, ..run().plan };
    write("plan", Dataset { run: Run { plan, ..good.run.clone() }, ..good.clone() });
    write("identity", Dataset { run: Run { identity: "another".into(), ..good.run.clone() }, ..good.clone() });
    let mut newer = good.clone();
    newer.run.blocks[0].inventory.fstone_commit = "0123".into();
    write("newer", newer);
    let mut values = good.clone();
    values.trials[2].duration_ns += 1;
    write("values", values);
    write("own", Dataset { run: Run { inventory: Inventory::default(), ..run() }, trials: trials(3) });
    block(path, 1, "n2");
    block(path, 0, "n1");
    let half = |machine: &str, trials: &[Trial]| Dataset {
        run: Run { blocks: vec![origin(2, machine)], ..run() },
        trials: trials.to_vec(),
    };
    write("half", half("n1", &trials(2)[..2]));
    write("rest", half("n2", &trials(2)[2..]));
    for (names, words) in [
        (&["1-n1", "plan"][..], "it is of another plan: small-file ("),
        (&["1-n1", "identity"], "it is of another run of the same plan: another"),
        (&["newer"], "\"n1\" made block 2 with fstone  (0123), and the run was begun with  ()"),
        (&["1-n1", "values"], "the run has trial 2 of "),
        (&["1-n1", "1-n2"], "block 2 was made twice"),
        (&["0-n1"], "block 1 was made twice"),
        (&["half", "rest"], "block 3 of the run was begun on \"n1\", and this part of it is from \"n2\""),
        (&["own"], "its run was begun on another machine"),
    ] {
        let error = merge(&mut store, path, names).expect_err(words).to_string();
        assert!(error.contains(words), "{names:?}: {error}");
        let dataset = store.dataset(1).expect("read");
        assert_eq!((dataset.trials, dataset.run.blocks), (trials(0), Vec::new()), "{names:?}: nothing of it");
    }
    assert!(matches!(bundle::merge(&mut store, 7, &[]), Err(MergeError::Read(_))));
}

/// A block of two machines cannot be had from a bundle that somebody wrote.
#[test]
fn a_block_of_two_machines_is_no_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = Run { blocks: vec![origin(1, "n1"), origin(1, "n2")], ..run() };
    let path = directory.path().join("two");
    bundle::write(Dataset { run, trials: trials(1) }, &path).expect("written");
    let error = bundle::stage(&path).expect_err("refused").to_string();
    assert!(error.contains("a block of it is of two machines"), "{error}");
}
