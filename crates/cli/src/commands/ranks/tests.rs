//! A run of several ranks, which are threads of this process.

use super::*;
use fstone_formats::{Source, native};
use fstone_model::ranks::{RankReport, Ranked};
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

const MEETINGS: usize = 2;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Meets {
    met: Mutex<Vec<(u32, bool)>>,
    report: Mutex<Option<RanksReport>>,
}

impl RankCommand for Meets {
    fn prepare(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn ended(&self, load: &Ran<'_>) -> Result<(), String> {
        for _ in 0..MEETINGS {
            let met = load.member.meet().is_ok();
            locked(&self.met).push((load.member.rank(), met));
        }
        Ok(())
    }

    fn shown(&self, report: &RanksReport) -> Result<(String, bool), serde_json::Error> {
        *locked(&self.report) = Some(report.clone());
        Ok((String::new(), false))
    }

    fn left(&self, _report: &RanksReport) -> Vec<PathBuf> {
        Vec::new()
    }

    fn live(&self) -> bool {
        false
    }
}

fn workload(on_error: &str) -> Workload {
    let text = format!(
        r#"
name = "course"
on-error = "{on_error}"
fileset = [{{ name = "files", files = 20, size = "4 KiB" }}]
[[phase]]
name = "first"
stop = {{ operations = 10 }}
group = [{{ name = "stat", sequence = [{{ stat = {{}}, fileset = "files" }}] }}]
[[phase]]
name = "second"
stop = {{ time = "2 s" }}
group = [{{ name = "stat", sequence = [{{ stat = {{}}, fileset = "files" }}] }}]
"#
    );
    native::parse(&Source::new("load.toml".to_owned(), text)).expect("a workload")
}

fn remove_files(directory: &Path) {
    for entry in fs::read_dir(directory).expect("it is there") {
        let path = entry.expect("readable").path();
        if path.is_dir() { remove_files(&path) } else { fs::remove_file(&path).expect("removed") }
    }
}

/// Runs three ranks. If `fails`, the files of rank 1 disappear in the second phase.
fn three(on_error: &str, fails: bool) -> (Vec<(u32, bool)>, RanksReport) {
    let place = tempfile::tempdir().expect("a directory");
    let (files, results) = (place.path().join("files"), place.path().join("results"));
    fs::create_dir(&files).expect("made");
    fs::create_dir(&results).expect("made");
    // Files of the user's own, of names that a temporary file might have.
    let mine = [REPORT_FILE, TABLE_FILE].map(|name| results.join(format!("{name}.new")));
    mine.iter().for_each(|path| fs::write(path, "mine").expect("written"));
    let command = Arc::new(Meets::default());
    let patient = Duration::from_secs(60);
    let load = || Load {
        workload: workload(on_error),
        directories: vec![files.clone()],
        seed: 1,
        ownership: Ownership::Marked,
        output: Output::Command(Arc::clone(&command) as Arc<dyn RankCommand>),
        results: Some(results.clone()),
        silence: patient,
        stillness: patient,
        measure_null: false,
        expected: None,
    };
    std::thread::scope(|scope| {
        for rank in simulated::world(3) {
            let load = load();
            scope.spawn(move || run_on(load, rank).unwrap_or_else(|failure| panic!("{:#}", failure.error)));
        }
        if fails {
            // It is written when all have ended the first phase.
            while !results.join(REPORT_FILE).exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            remove_files(&files.join("rank1"));
        }
    });
    assert!(mine.iter().all(|path| fs::read(path).is_ok_and(|content| content == b"mine")), "they stay");
    assert_eq!(fs::read_dir(&results).expect("readable").count(), 4, "nothing is left beside the results");
    let report = locked(&command.report).take().expect("rank 0 showed it");
    let mut met = std::mem::take(&mut *locked(&command.met));
    met.sort_unstable();
    (met, report)
}

#[test]
fn all_ranks_meet_after_a_load() {
    for (on_error, fails) in [("stop", false), ("continue", true)] {
        let (met, report) = three(on_error, fails);
        let all = [0, 1, 2].into_iter().flat_map(|rank| [(rank, true); MEETINGS]);
        assert_eq!(met, all.collect::<Vec<_>>(), "{on_error}: {:?}", report.ranked.per_rank);
        assert_eq!(report.load.errors.is_empty(), !fails, "{:?}", report.load.errors);
        assert_eq!(report.ranked.ended_early, None);
    }
}

/// The rank with the error comes to no meeting, so none may wait for it or count it as one that met.
#[test]
fn an_error_of_one_rank_ends_all() {
    let (met, report) = three("stop", true);
    let others = [0, 2].into_iter().flat_map(|rank| [(rank, false); MEETINGS]);
    assert_eq!(met, others.collect::<Vec<_>>(), "{:?}", report.ranked.per_rank);
    let outcomes: Vec<_> = report.ranked.per_rank.iter().map(|rank| &rank.outcome).collect();
    assert!(
        matches!(outcomes[..], [RankOutcome::EndedEarly, RankOutcome::Failed { .. }, RankOutcome::EndedEarly]),
        "{outcomes:?}"
    );
    let why = report.ranked.ended_early.as_deref().unwrap_or_default();
    assert!(why.starts_with("rank 1 on ") && why.contains("No such file"), "{why}");
}

#[test]
fn only_what_a_signal_ended_is_an_interruption() {
    let conclude = |outcome: RankOutcome, signalled| {
        let of_rank = |rank, outcome| RankReport { rank, outcome, ..RankReport::default() };
        let per_rank = vec![of_rank(0, RankOutcome::EndedEarly), of_rank(1, outcome)];
        let ranked = Ranked { ranks: 2, per_rank, ended_early: Some("why".into()), ..Ranked::default() };
        let shown = Output::Command(Arc::new(Meets::default()));
        let mut results = Results { directory: None, shown, exit: Exit::Success, told: false, others: false };
        results.conclude(RanksReport { ranked, ..RanksReport::default() }, signalled)
    };
    let words = || String::new();
    assert_eq!(conclude(RankOutcome::EndedEarly, true), Exit::Interrupted as u8);
    assert_eq!(conclude(RankOutcome::Interrupted { words: words() }, true), Exit::Interrupted as u8);
    assert_eq!(conclude(RankOutcome::EndedEarly, false), Exit::NothingCompleted as u8);
    assert_eq!(conclude(RankOutcome::Died { words: words() }, true), Exit::NothingCompleted as u8);
    assert_eq!(conclude(RankOutcome::Failed { words: words() }, true), Exit::NothingCompleted as u8);
}
