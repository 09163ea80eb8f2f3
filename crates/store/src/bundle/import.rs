//! Taking a bundle into a store.

use super::error::ImportError;
use super::read::{LIMITS, Part, verify, visit};
use crate::Store;
use fstone_model::Trial;
use std::path::Path;

/// Trials per transaction: few enough that a run that records meanwhile waits for tens of milliseconds only.
const BATCH: usize = 32;

/// Takes a bundle's run into the store and gives the number it has there. A bundle that is imported twice is there
/// twice.
///
/// The bundle is read twice: first to see that it is whole, so that a bad one never touches the store; then, trial by
/// trial, into the store. An import that is killed leaves a run without an end.
///
/// # Errors
/// [`ImportError`]; the store is as it was then.
pub fn import(store: &mut Store, path: &Path) -> Result<u64, ImportError> {
    verify(path)?;
    let mut begun = None;
    let result = record(store, path, &mut begun);
    if let (Err(_), Some(run)) = (&result, begun) {
        store.delete_run(run)?;
    }
    result
}

/// Records what comes; `begun` is the run's number as soon as it has one.
fn record(store: &mut Store, path: &Path, begun: &mut Option<u64>) -> Result<u64, ImportError> {
    let mut finished = None;
    let mut batch: Vec<Trial> = Vec::new();
    visit(path, LIMITS, |part| {
        match (part, *begun) {
            (Part::Run(mut run), _) => {
                finished = run.finished_unix_ns.take();
                *begun = Some(store.begin_run(&run)?);
            }
            (Part::Trial(trial), Some(run)) => {
                batch.push(*trial);
                if batch.len() == BATCH {
                    store.record_trials(run, &batch)?;
                    batch.clear();
                }
            }
            (Part::Trial(_), None) => unreachable!("the run comes before its trials"),
        }
        Ok::<_, ImportError>(())
    })?;
    let Some(run) = *begun else { unreachable!("a bundle without a run is an error") };
    store.record_trials(run, &batch)?;
    if let Some(finished) = finished {
        store.finish_run(run, finished)?;
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::export::Writer;
    use crate::bundle::files::{FORMAT, FORMAT_NAME, Format, RUN_NAME, VERSION, study_files, trial_name};
    use crate::bundle::read;
    use fstone_model::dataset::Run;
    use fstone_model::{LoadReport, load::OperationReport};
    use std::path::PathBuf;

    const TRIAL: &str = r#"{"trial": {"id": {"cell": 0, "repetition": 0}, "position": 0, "started_unix_ns": 1, "duration_ns": 1,
        "seed": 1, "outcome": {"outcome": "completed"}, "steps": [], "effective": {"mount": null, "superblock": []},
        "warnings": []}}"#;

    /// A bundle of these trials, whose manifest has the right hashes.
    fn bundle(directory: &Path, trials: &[&str]) -> PathBuf {
        let run: Run = serde_json::from_str(include_str!("../../tests/it/run_without_cells.json")).expect("a run");
        let path = directory.join("run.fstone");
        let file = std::fs::File::create(&path).expect("made");
        let mut writer = Writer::new(&file, 0).expect("a writer");
        writer.json(FORMAT_NAME, &Format { format: FORMAT.into(), version: VERSION }).expect("written");
        writer.json(RUN_NAME, &run).expect("written");
        for (name, content) in study_files(&run.plan) {
            writer.entry(&name, content.as_bytes()).expect("written");
        }
        for (index, trial) in trials.iter().enumerate() {
            writer.entry(&trial_name(index), trial.as_bytes()).expect("written");
        }
        writer.finish().expect("written");
        path
    }

    /// Hashes prove nothing about sense.
    #[test]
    fn what_contradicts_itself_leaves_nothing_in_the_store() {
        let load = LoadReport { operations: vec![OperationReport::default()], ..LoadReport::default() };
        let load = serde_json::to_string(&load).expect("JSON").replacen("\"min_ns\":0", "\"min_ns\":9", 1);
        let step =
            format!(r#"[{{"step":"load","started_ns":0,"duration_ns":1,"commands":[],"figures":[],"load":{load}}}]"#);
        let step_twice = r#"[{"step":"a","started_ns":0,"duration_ns":1,"commands":[],"figures":[],"load":null},
            {"step":"a","started_ns":0,"duration_ns":1,"commands":[],"figures":[],"load":null}]"#;
        for (trials, told) in [
            (vec![TRIAL], "the plan has 0 cells"),
            (vec![&TRIAL.replacen("\"steps\": []", &format!("\"steps\": {step}"), 1)], "a histogram from 9 ns to 0 ns"),
            (
                vec![&TRIAL.replacen("\"steps\": []", &format!("\"steps\": {step_twice}"), 1)],
                "step \"a\" is there twice",
            ),
        ] {
            let directory = tempfile::tempdir().expect("a directory");
            let path = bundle(directory.path(), &trials);
            let mut store = Store::open(&directory.path().join("fstone.db")).expect("a store");
            let error = import(&mut store, &path).expect_err(told);
            assert!(error.to_string().contains(told), "{error}");
            assert!(read(&path).is_err() && verify(&path).is_err(), "nor is it read");
            assert_eq!(store.runs().expect("read"), []);
        }
    }
}
