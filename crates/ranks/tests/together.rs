//! Ranks without MPI: threads with channels between them, each with the real engine on real files.

use fstone_engine::{Observer, Ownership, Peers, Progress, RunOptions};
use fstone_model::Workload;
use fstone_model::ranks::{RankOutcome, RanksReport};
use fstone_model::workload::{
    Action, Actions, Amount, Directories, Existing, Extent, FileChoice, Fileset, FinalSync, FinishUnit, Naming,
    Operation, Pattern, Phase, Runs, Sharing, SizeDistribution, Step, Stop, ThreadGroup, Transfer, Weighted,
};
use fstone_ranks::{Conclusion, Ended, Facts, Loaded, Member, Settings, Transport, simulated};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Told {
    kept: Vec<RanksReport>,
    report: Option<RanksReport>,
    noted: Arc<Mutex<Vec<(u32, &'static str)>>>,
}

impl Conclusion for Told {
    fn keep(&mut self, report: &RanksReport) {
        self.kept.push(report.clone());
    }

    fn conclude(&mut self, report: RanksReport, _signalled: bool) -> u8 {
        self.report = Some(report);
        7
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Nothing,
    Fails(u32),
    /// Nothing is heard of this rank any more, once it is in the phase "long".
    FallsSilent(u32),
    /// This rank is told by a signal to end, once it is there.
    IsSignalled(u32),
    /// The load of this rank does nothing any more, once it is there.
    Hangs(u32),
    IsSignalledInSetup(u32),
    /// This rank takes its time over its directories and its final sync.
    IsSlow(u32),
    /// The filesystem of this rank goes away, once it is there: this process has it mounted.
    LosesItsMount(u32, i32),
    RemovesFiles(u32),
    CannotTidyUp(u32),
}

struct Watched<'a> {
    member: &'a Arc<Member>,
    trouble: Trouble,
    silent: Arc<AtomicBool>,
    cancel: Arc<AtomicBool>,
    directory: PathBuf,
    noted: Arc<Mutex<Vec<(u32, &'static str)>>>,
}

impl Watched<'_> {
    fn note(&self, what: &'static str) {
        self.noted.lock().expect("no panic").push((self.member.rank(), what));
    }

    fn takes_its_time(&self, what: &'static str) {
        if self.trouble == Trouble::IsSlow(self.member.rank()) {
            std::thread::sleep(Duration::from_millis(300));
            self.note(what);
        }
    }
}

impl Observer for Watched<'_> {
    fn measured_begin(&self) {
        self.note("begin");
    }

    fn measured_end(&self) {
        self.note("end");
    }

    fn directories_made(&self, _: usize, _: u64, _: Duration) {
        self.takes_its_time("made");
        if self.trouble == Trouble::IsSignalledInSetup(self.member.rank()) {
            self.cancel.store(true, Ordering::Relaxed);
        }
    }

    fn peers(&self) -> Option<&dyn Peers> {
        Some(&**self.member)
    }

    fn progress(&self, progress: &Progress) {
        self.member.progress(progress);
        if progress.phase == "final sync" {
            self.takes_its_time("synced");
        }
        if progress.phase == "long" {
            match self.trouble {
                Trouble::FallsSilent(rank) if rank == self.member.rank() => self.silent.store(true, Ordering::Relaxed),
                Trouble::IsSignalled(rank) if rank == self.member.rank() => self.cancel.store(true, Ordering::Relaxed),
                Trouble::LosesItsMount(rank, daemon) if rank == self.member.rank() => {
                    // The second time it is gone already.
                    let daemon = rustix::process::Pid::from_raw(daemon).expect("no 0");
                    let _ = rustix::process::kill_process(daemon, rustix::process::Signal::KILL);
                }
                Trouble::RemovesFiles(rank) if rank == self.member.rank() => {
                    // The second time they are gone already.
                    let _ = std::fs::remove_dir_all(self.directory.join("rank1"));
                }
                Trouble::Hangs(rank) if rank == self.member.rank() => std::thread::sleep(Duration::from_secs(60)),
                _ => {}
            }
        }
    }
}

/// A transport that falls silent once it is told to, as a process that was stopped does.
struct Mortal {
    inner: simulated::Simulated,
    silent: Arc<AtomicBool>,
}

impl Transport for Mortal {
    fn rank(&self) -> u32 {
        self.inner.rank()
    }

    fn size(&self) -> u32 {
        self.inner.size()
    }

    fn send(&mut self, to: u32, message: Vec<u8>) {
        if !self.silent.load(Ordering::Relaxed) {
            self.inner.send(to, message);
        }
    }

    fn receive(&mut self) -> Option<(u32, Vec<u8>)> {
        if self.silent.load(Ordering::Relaxed) { None } else { self.inner.receive() }
    }

    fn idle(&mut self) -> bool {
        true
    }

    fn finish(self) {}

    fn abort(self, _status: u8) {}
}

fn settings(workload: &Workload, silence: Duration) -> Settings {
    Settings {
        subject: format!("{workload:?}"),
        seed: 42,
        silence,
        stillness: silence,
        // Of no process that could be looked for.
        facts: Facts { host: "node".into(), ..Facts::default() },
        workload: workload.clone(),
        cancel: Arc::default(),
    }
}

fn run_on(
    ranks: u32,
    workload: &Workload,
    directory: &Path,
    silence: Duration,
    trouble: Trouble,
) -> (Told, Vec<Ended>) {
    let all_noted = Arc::<Mutex<Vec<(u32, &'static str)>>>::default();
    let threads: Vec<_> = simulated::world(ranks)
        .into_iter()
        .map(|inner| {
            let (workload, directory) = (workload.clone(), directory.to_owned());
            let facts =
                Facts { process: u32::MAX, host: format!("node{}", inner.rank() / 2), boot: inner.rank().to_string() };
            let settings = Settings { facts, ..settings(&workload, silence) };
            let noted = Arc::clone(&all_noted);
            std::thread::spawn(move || {
                let silent = Arc::new(AtomicBool::new(false));
                let transport = Mortal { inner, silent: Arc::clone(&silent) };
                let mut told = Told { noted: Arc::clone(&noted), ..Told::default() };
                let signal = Arc::clone(&settings.cancel);
                let load = move |member: &Arc<Member>| -> Result<Loaded, String> {
                    if trouble == Trouble::Fails(member.rank()) {
                        return Err("no such thing".into());
                    }
                    let observer =
                        Watched { member, trouble, silent, cancel: signal, directory: directory.clone(), noted };
                    let cancel = AtomicBool::new(false);
                    let options = RunOptions {
                        seed: member.seed(),
                        cancel: &cancel,
                        observer: &observer,
                        measure_null: false,
                        ownership: Ownership::Marked,
                    };
                    let report =
                        fstone_engine::run(&workload, &directory, &options).map_err(|error| error.to_string())?;
                    let cannot = trouble == Trouble::CannotTidyUp(member.rank());
                    Ok(Loaded { report, unfinished: cannot.then(|| "cannot remove anything".into()) })
                };
                (fstone_ranks::run(transport, settings, load, &mut told), told)
            })
        })
        .collect();
    let mut ended: Vec<(Ended, Told)> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    let all = ended.iter().map(|(ended, _)| *ended).collect();
    (ended.remove(0).1, all)
}

const PATIENT: Duration = Duration::from_secs(60);

fn group(name: &str, operation: Operation, choice: FileChoice) -> ThreadGroup {
    let action = Action { choice, ..Action::new(name, operation, Some(0)) };
    ThreadGroup::new(name, 2, Actions::Mix(vec![Weighted { weight: 1, action }]))
}

/// For what lasts until something happens: nobody else has to wait for the processors.
fn at_ease(group: ThreadGroup) -> ThreadGroup {
    ThreadGroup { rate_per_second: Some(500.0), ..group }
}

fn workload(fileset: Fileset, phases: Vec<Phase>) -> Workload {
    Workload {
        final_sync: FinalSync::None,
        series_interval: Duration::from_millis(50),
        ..Workload::new("together", vec![fileset], phases)
    }
}

fn files(count: u64, preallocated: f64) -> Fileset {
    Fileset {
        preallocated,
        directories: fstone_model::workload::Directories::Tree { width: 3, depth: 2 },
        ..Fileset::new("files", Amount::Files(count), SizeDistribution::Fixed(100))
    }
}

fn operations(count: u64) -> Stop {
    Stop { operations: Some(count), ..Stop::default() }
}

fn create() -> Operation {
    Operation::Create { block_bytes: 4096, fsync: false }
}

fn left(directory: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    entries
        .map(|entry| entry.expect("readable").path())
        .map(|path| {
            if path.is_dir() {
                left(&path)
            } else {
                usize::from(path.extension().is_none() && !path.ends_with(".fstone"))
            }
        })
        .sum()
}

/// Creates until the time is over and wears out; another rank stats what there is, once; a third removes it.
#[test]
fn what_was_created_is_what_others_stat_and_remove() {
    for sharing in [Sharing::Private, Sharing::Names] {
        let place = tempfile::tempdir().expect("a temporary directory");
        let wall = Stop { time: Some(Duration::from_millis(150)), wear_out: true, ..Stop::default() };
        let once = Stop { once_through: true, ..Stop::default() };
        let phases = vec![
            Phase::new("create", vec![group("create", create(), FileChoice::Rotation)], wall),
            Phase {
                rank_shift: 1,
                ..Phase::new("stat", vec![group("stat", Operation::Stat, FileChoice::RoundRobin)], once)
            },
            Phase {
                rank_shift: 2,
                ..Phase::new(
                    "remove",
                    vec![group("remove", Operation::Unlink, FileChoice::Rotation)],
                    operations(1 << 30),
                )
            },
        ];
        let load = workload(Fileset { ranks: sharing, ..files(1_000_000, 0.0) }, phases);
        let (told, ended) = run_on(3, &load, place.path(), PATIENT, Trouble::Nothing);
        let report = told.report.expect("rank 0 was told");
        assert!(report.load.errors.is_empty(), "{:?}", report.load.errors);
        assert!(ended.iter().all(|ended| ended.clean), "{sharing:?}: {report:?}");
        assert_eq!((ended[0].status, report.ranked.completed, report.ranked.nodes), (7, 3, 2));
        let of = |phase: usize| {
            report.ranked.per_rank.iter().map(|rank| rank.phases[phase].operations).collect::<Vec<u64>>()
        };
        let [created, stated, removed] = [of(0), of(1), of(2)];
        assert!(
            created[0] > 0 && created.iter().all(|count| *count == created[0]),
            "all as many as the furthest: {created:?}"
        );
        assert_eq!((&created, &created), (&stated, &removed), "{sharing:?}");
        let wall = report.ranked.phases[0].stonewall.expect("there was one");
        assert!(wall.most == created[0] && wall.fewest <= wall.most && wall.operations <= created[0] * 3, "{wall:?}");
        assert_eq!(left(place.path()), 0, "{sharing:?}: all were removed");
        // What was known after each phase was kept in between.
        assert_eq!(told.kept.iter().map(|kept| kept.ranked.phases.len()).max(), Some(3));
    }
}

#[test]
fn the_interval_of_one_rank_is_that_of_all() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let phases = vec![Phase::new("write", vec![group("create", create(), FileChoice::Rotation)], operations(20))];
    let load = Workload {
        final_sync: FinalSync::Syncfs,
        ..workload(Fileset { ranks: Sharing::Private, ..files(100, 0.0) }, phases)
    };
    let (told, _) = run_on(3, &load, place.path(), PATIENT, Trouble::IsSlow(1));
    assert_eq!(told.report.expect("rank 0 was told").ranked.completed, 3);
    let noted = told.noted.lock().expect("no panic");
    let of_one: Vec<&str> = noted
        .iter()
        .filter(|(rank, what)| *rank == 0 || *what == "made" || *what == "synced")
        .map(|(_, what)| *what)
        .collect();
    assert_eq!(of_one, ["made", "begin", "synced", "end"]);
}

#[test]
fn a_signal_in_set_up_ends_all_of_them_early() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let phases = vec![Phase::new("stat", vec![group("stat", Operation::Stat, FileChoice::Uniform)], operations(100))];
    let load = workload(Fileset { ranks: Sharing::Private, ..files(400_000, 1.0) }, phases);
    let (told, ended) = run_on(2, &load, place.path(), PATIENT, Trouble::IsSignalledInSetup(1));
    let report = told.report.expect("rank 0 was told");
    assert!(ended.iter().all(|ended| ended.clean), "{report:?}");
    assert!(report.ranked.per_rank.iter().all(|rank| rank.outcome == RankOutcome::EndedEarly), "{report:?}");
    assert!(left(place.path()) < 800_000, "they went on");
}

/// Threads that find the quota used up ask in vain, which is no operation.
#[test]
fn a_quota_is_kept_by_a_phase_that_wears_out() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let wall = Stop { time: Some(Duration::from_secs(20)), operations: Some(10), wear_out: true, ..Stop::default() };
    let load = workload(
        files(10, 1.0),
        vec![Phase::new("stat", vec![group("stat", Operation::Stat, FileChoice::Uniform)], wall)],
    );
    let (told, _) = run_on(2, &load, place.path(), PATIENT, Trouble::Nothing);
    let report = told.report.expect("rank 0 was told");
    assert_eq!(report.ranked.phases[0].stonewall, None, "all were done long before 20 s");
    assert!(report.ranked.per_rank.iter().all(|rank| rank.phases[0].stonewall_operations.is_none()), "{report:?}");
    assert_eq!(report.ranked.per_rank.iter().map(|rank| rank.operations).collect::<Vec<_>>(), [10, 10]);
}

#[test]
fn ranks_have_their_names_in_common_directories() {
    for tree in ["t.", "t.{rank}."] {
        let place = tempfile::tempdir().expect("a temporary directory");
        let naming = Naming {
            file_prefix: "f.{rank}.".into(),
            directory_prefix: tree.into(),
            leaf_prefix: Some("d.{rank}.".into()),
            exact: false,
        };
        let fileset = Fileset {
            naming,
            ranks: Sharing::Names,
            leaf_directories: 14,
            directories: Directories::Filled { width: 2, depth: 2, each: 2, leaves_only: false },
            ..Fileset::new("files", Amount::Files(14), SizeDistribution::Fixed(0))
        };
        let once = Stop { once_through: true, ..Stop::default() };
        let phase = |name: &str, operation, choice| Phase {
            rank_shift: 1,
            ..Phase::new(name, vec![group(name, operation, choice)], once)
        };
        let kept = vec![
            phase("stat directories", Operation::StatDirectory, FileChoice::Shuffled),
            phase("rename", Operation::RenameDirectory, FileChoice::Uniform),
            phase("stat", Operation::Stat, FileChoice::Shuffled),
        ];
        let (told, _) = run_on(3, &workload(fileset.clone(), kept), place.path(), PATIENT, Trouble::Nothing);
        let report = told.report.expect("rank 0 was told");
        assert!(report.load.errors.is_empty(), "{:?}", report.load.errors);
        for rank in &report.ranked.per_rank {
            assert_eq!(
                rank.phases.iter().map(|phase| phase.operations).collect::<Vec<_>>(),
                [14; 3],
                "{tree} {:?}",
                report.ranked.per_rank.iter().map(|rank| &rank.outcome).collect::<Vec<_>>()
            );
        }
        let own = if tree == "t." { "t.0/t.2/t.6" } else { "t.2.0/t.2.2/t.2.6" };
        for name in ["f.2.13", "d.2.13.r"] {
            assert!(place.path().join(own).join(name).exists(), "{own}/{name}");
        }
        // What is taken to be there is there: nothing looked at it before.
        let assumed = Fileset { existing: Existing::Assume, ..fileset };
        let removed = vec![phase("remove", Operation::Unlink, FileChoice::RoundRobin)];
        let (told, _) = run_on(3, &workload(assumed, removed), place.path(), PATIENT, Trouble::Nothing);
        let report = told.report.expect("rank 0 was told");
        assert!(report.load.errors.is_empty(), "{:?}", report.load.errors);
        assert!(!place.path().join(own).join("f.2.13").exists());
    }
}

#[test]
fn a_walk_looks_at_each_file_once() {
    for sharing in [Sharing::Private, Sharing::Names] {
        let place = tempfile::tempdir().expect("a temporary directory");
        let flat = Directories::Flat { count: 0, root_too: true };
        let fileset = Fileset { ranks: sharing, directories: flat, ..files(40, 1.0) };
        let walk = ThreadGroup { threads: 1, ..group("find", Operation::Walk, FileChoice::Uniform) };
        let load = workload(fileset, vec![Phase::new("find", vec![walk], operations(1))]);
        let (told, _) = run_on(3, &load, place.path(), PATIENT, Trouble::Nothing);
        let report = told.report.expect("rank 0 was told");
        assert!(report.load.errors.is_empty(), "{:?}", report.load.errors);
        let stats = report.load.calls.iter().filter(|call| call.group == "find" && call.call == "stat");
        assert_eq!(stats.map(|call| call.latency.count()).sum::<u64>(), 3 * 40, "{sharing:?}");
    }
}

/// Each rank writes every third piece of one file, and reads those of the next rank.
#[test]
fn a_shared_file_is_written_in_pieces_that_take_turns() {
    let place = tempfile::tempdir().expect("a temporary directory");
    for (deadline, shuffled) in [(None, false), (None, true), (Some(Duration::from_millis(100)), false)] {
        let runs = Runs { run_bytes: 1000, total_bytes: 1000 << 20, interleaved: true, shuffled, ..Runs::default() };
        let runs = if deadline.is_none() { Runs { total_bytes: 5000, ..runs } } else { runs };
        let transfer = |pattern| Transfer { extent: Extent::Bytes(500), block_bytes: 500, pattern, fsync: false };
        let program = |operation: Operation| {
            let by = |name: &str, operation| Action { handle: Some(0), ..Action::new(name, operation, Some(0)) };
            let times = runs.total_bytes / 500;
            let finish = Step::Finish { count: 1, unit: FinishUnit::Operations, of: Some("close".into()) };
            Actions::Program(vec![
                Step::Perform { action: by("open", Operation::Open), times: 1 },
                Step::Perform { action: by("move", operation), times },
                Step::Perform { action: by("close", Operation::Close), times: 1 },
                finish,
            ])
        };
        let phase = |name: &str, operation| {
            let stop = Stop { time: deadline, wear_out: deadline.is_some(), ..Stop::default() };
            Phase::new(name, vec![ThreadGroup::new(name, 1, program(operation))], stop)
        };
        let write = phase("write", Operation::Write(transfer(Pattern::Runs(runs))));
        let read = phase("read", Operation::Read(transfer(Pattern::Runs(runs))));
        let read = Phase { rank_shift: 1, stop: Stop::default(), ..read };
        let fileset = Fileset {
            naming: Naming { file_prefix: "shared".into(), exact: true, ..Naming::default() },
            ranks: Sharing::Shared,
            ..Fileset::new("files", Amount::Files(1), SizeDistribution::Fixed(0))
        };
        let load = workload(fileset, vec![write, read]);
        let (told, _) = run_on(3, &load, place.path(), PATIENT, Trouble::Nothing);
        let report = told.report.expect("rank 0 was told");
        assert!(report.load.errors.is_empty(), "{:?}", report.load.errors);
        assert_eq!(report.ranked.completed, 3, "{:?}", report.ranked.per_rank);
        for meeting in &report.ranked.phases {
            let span = |action: &str| report.action_span(meeting, action).map(|all| all.span);
            let (open, moved) = (span("open").expect("all did"), span("move").expect("all did"));
            assert!(open.begin_ns < moved.begin_ns && open.end_ns <= moved.end_ns, "{open:?} {moved:?}");
            // Nothing follows the last operation any more, and clocks are compared no better than this.
            let last_ns = meeting.length_ns + meeting.uncertainty_ns;
            assert!(moved.length_ns() > 0 && moved.end_ns <= last_ns, "{moved:?} {meeting:?}");
            let closed = span("close");
            assert!(closed.is_none_or(|closed| moved.end_ns <= closed.end_ns), "{moved:?} {closed:?}");
            assert!(closed.is_some() || deadline.is_some(), "{meeting:?}");
        }
        let written = report.ranked.per_rank[0].phases[0].written_bytes;
        assert!(written > 0 && (deadline.is_some() || written == 5000));
        for rank in &report.ranked.per_rank {
            let [wrote, read] = &*rank.phases else { panic!("{rank:?}") };
            assert_eq!((wrote.written_bytes, read.read_bytes), (written, written), "{deadline:?} {shuffled}");
        }
        let bytes = std::fs::read(place.path().join("shared")).expect("written");
        if deadline.is_none() {
            assert_eq!(bytes.len(), 15_000);
            // Data is random: a piece that nobody wrote would be nothing but zeros.
            assert!(bytes.chunks(500).all(|piece| piece.iter().any(|byte| *byte != 0)));
        }
    }
}

#[test]
fn a_shared_file_is_written_in_regions_by_all() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let transfer = fstone_model::workload::Transfer {
        extent: fstone_model::workload::Extent::Bytes(4096),
        block_bytes: 4096,
        pattern: fstone_model::workload::Pattern::Cursor { shared: false },
        fsync: false,
    };
    let size = SizeDistribution::Fixed(8 * 64 * 4096);
    let fileset = Fileset { ranks: Sharing::Regions, fill: false, ..Fileset::new("one", Amount::Files(1), size) };
    let mut writers = group("write", Operation::Write(transfer), FileChoice::Uniform);
    writers.region = fstone_model::workload::Region::Split;
    // Four ranks of two threads have 64 blocks each.
    let load = workload(fileset, vec![Phase::new("write", vec![writers], operations(128))]);
    assert_eq!(load.unfit_for_ranks(), None);
    let (told, _) = run_on(4, &load, place.path(), PATIENT, Trouble::Nothing);
    let report = told.report.expect("rank 0 was told");
    assert_eq!((report.ranked.completed, report.load.written_bytes()), (4, 8 * 64 * 4096), "{:?}", report.load.errors);
    let data = std::fs::read(place.path().join("file0")).expect("one file for all");
    let empty = data.chunks(4096).filter(|block| block.iter().all(|byte| *byte == 0)).count();
    // Threads of a rank share its operations, perhaps so unevenly that one does them all. It writes its part twice then, and half is empty.
    assert!(empty <= 256, "{empty} blocks of 512 that nobody wrote");
    let written = |rank: usize| data[rank * 128 * 4096..][..128 * 4096].iter().any(|byte| *byte != 0);
    assert!((0..4).all(written), "each rank has its part");
}

#[test]
fn a_seed_repeats_and_ranks_have_different_ones() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let size = SizeDistribution::Uniform { minimum: 1, maximum: 10_000 };
    let phase = || Phase::new("stat", vec![group("stat", Operation::Stat, FileChoice::Uniform)], operations(10));
    let load = workload(Fileset::new("files", Amount::Files(50), size), vec![phase()]);
    let sizes = |rank: u32| -> Vec<u64> {
        let of =
            |file: u32| std::fs::metadata(place.path().join(format!("rank{rank}/file{file}"))).expect("made").len();
        (0..50).map(of).collect()
    };
    let (first, _) = run_on(3, &load, place.path(), PATIENT, Trouble::Nothing);
    let seeds: Vec<u64> = first.report.expect("told").ranked.per_rank.iter().map(|rank| rank.seed).collect();
    assert!(seeds[0] == 42 && seeds[1] != seeds[2] && seeds[1] != 42, "{seeds:?}");
    let before = [0, 1, 2].map(sizes);
    assert!(before[0] != before[1] && before[1] != before[2]);
    run_on(3, &load, place.path(), PATIENT, Trouble::Nothing);
    assert_eq!(before, [0, 1, 2].map(sizes));
}

#[test]
fn a_rank_that_falls_silent_or_fails_is_an_outcome() {
    let time = Stop { time: Some(Duration::from_secs(300)), ..Stop::default() };
    let phases = vec![
        Phase::new("short", vec![group("stat", Operation::Stat, FileChoice::Uniform)], operations(100)),
        Phase::new("long", vec![at_ease(group("stat", Operation::Stat, FileChoice::Uniform))], time),
    ];
    let load = workload(files(20, 1.0), phases);
    // Set-up of three files counts too, and a busy machine may keep it waiting for seconds.
    let short = Duration::from_secs(8);
    let run = &|trouble| {
        // In memory: writing back what others write to a disk may take longer than that.
        let place = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
        let started = Instant::now();
        let (told, ended) = run_on(3, &load, place.path(), short, trouble);
        assert!(started.elapsed() < Duration::from_secs(250), "nobody waits for the phase's end");
        (told.report.expect("rank 0 was told"), ended)
    };
    // At the same time: they wait more than they work.
    let troubles =
        [Trouble::FallsSilent(2), Trouble::Hangs(0), Trouble::Hangs(1), Trouble::Fails(1), Trouble::IsSignalled(1)];
    let [silent, first, second, failed, signalled] = std::thread::scope(|scope| {
        let runs = troubles.map(|trouble| scope.spawn(move || run(trouble)));
        runs.map(|run| run.join().expect("no panic"))
    });
    let (report, ended) = silent;
    assert!(!ended[0].clean && report.ranked.merged == 2, "{report:?}");
    let RankOutcome::Died { words } = &report.ranked.per_rank[2].outcome else {
        panic!("{:?}", report.ranked.per_rank[2].outcome)
    };
    assert!(words.contains("no sign of life for 8.") && words.contains("\"long\""), "{words}");
    assert!(
        report.ranked.ended_early.as_ref().is_some_and(|why| why.contains("rank 2 on node1 died")),
        "{:?}",
        report.ranked.ended_early
    );
    assert_eq!(report.ranked.per_rank[0].outcome, RankOutcome::EndedEarly);
    assert_eq!(report.ranked.phases[0].ranks, 3, "what all ended is known of all");
    assert!(report.load.invocations() > 200, "both phases of two ranks: {}", report.load.invocations());

    for (hung, (report, ended)) in [first, second].into_iter().enumerate() {
        assert!(!ended[0].clean && report.ranked.merged == 2, "{report:?}");
        let RankOutcome::Hung { words } = &report.ranked.per_rank[hung].outcome else { panic!("{report:?}") };
        assert!(words.contains("nothing was completed for") && words.contains("\"long\""), "{words}");
    }

    let (report, ended) = failed;
    assert!(ended.iter().all(|ended| ended.clean), "all can be waited for");
    assert_eq!(report.ranked.per_rank[1].outcome, RankOutcome::Failed { words: "no such thing".into() });
    assert_eq!(report.ranked.per_rank[2].outcome, RankOutcome::EndedEarly);

    assert_eq!(ended.iter().map(|ended| ended.status).collect::<Vec<_>>(), [7, 0, 0], "rank 0 tells of it");

    let (report, ended) = signalled;
    assert_eq!(ended.iter().map(|ended| ended.status).collect::<Vec<_>>(), [7, 7, 7], "whoever ends last");
    assert!(ended.iter().all(|ended| ended.clean) && report.ranked.merged == 3, "{report:?}");
    assert!(
        report.ranked.ended_early.as_ref().is_some_and(|why| why.contains("signal")),
        "{:?}",
        report.ranked.ended_early
    );
}

/// The others are in their phase for minutes. The rank with the error waits neither for its own files, which another one works on, nor to hear
/// how far they are when their time is over.
#[test]
fn an_error_ends_all_at_once_whatever_the_ranks_would_tell_each_other() {
    for (rank_shift, wear_out) in [(1, false), (0, true)] {
        let place = tempfile::tempdir().expect("a temporary directory");
        let time = Stop { time: Some(Duration::from_secs(300)), wear_out, ..Stop::default() };
        let stat = || vec![group("stat", Operation::Stat, FileChoice::Uniform)];
        let slow = stat().into_iter().map(at_ease).collect();
        let long = Phase { rank_shift, ..Phase::new("long", slow, time) };
        let load = workload(
            Fileset { ranks: Sharing::Private, ..files(20, 1.0) },
            vec![Phase::new("short", stat(), operations(100)), long],
        );
        // It works on the files of rank 1.
        let who = 1 - rank_shift;
        let started = Instant::now();
        let (told, ended) = run_on(3, &load, place.path(), PATIENT, Trouble::RemovesFiles(who));
        let report = told.report.expect("rank 0 was told");
        assert!(started.elapsed() < Duration::from_secs(250), "nobody waits for the phase's end");
        assert!(ended.iter().all(|ended| ended.clean) && report.ranked.merged == 3, "{report:?}");
        for rank in &report.ranked.per_rank {
            let failed = matches!(rank.outcome, RankOutcome::Failed { .. });
            assert!(failed == (rank.rank == who) && (failed || rank.outcome == RankOutcome::EndedEarly), "{rank:?}");
        }
        let why = report.ranked.ended_early.unwrap_or_default();
        assert!(why.starts_with(&format!("rank {who} on node0: stat of")), "{why}");
    }
}

#[test]
fn a_rank_that_cannot_tidy_up_ends_no_other() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let phase = Phase::new("stat", vec![group("stat", Operation::Stat, FileChoice::Uniform)], operations(10));
    let load = workload(files(10, 1.0), vec![phase]);
    for unable in [0, 1] {
        let (told, ended) = run_on(3, &load, place.path(), PATIENT, Trouble::CannotTidyUp(unable));
        let report = told.report.expect("rank 0 was told");
        assert!(ended.iter().all(|ended| ended.clean) && report.ranked.merged == 3, "{report:?}");
        for rank in &report.ranked.per_rank {
            let wanted = match rank.rank == unable {
                true => RankOutcome::Failed { words: "cannot remove anything".into() },
                false => RankOutcome::Completed,
            };
            assert_eq!(rank.outcome, wanted, "rank {}", rank.rank);
        }
        assert_eq!((report.ranked.ended_early, report.ranked.completed), (None, 2));
    }
}

/// Two mounts are two clients: what becomes of one of them is its rank's outcome, with the errno, and the figures of all until then are kept.
#[test]
fn a_rank_whose_mount_goes_away_is_told_of_and_nobody_waits() {
    let is_there = |name: &str| ["/usr/bin", "/bin"].iter().any(|path| Path::new(path).join(name).exists());
    if !rustix::process::geteuid().is_root() || !is_there("bindfs") || !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: a mount that goes away needs root, bindfs and /dev/fuse");
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    for directory in ["source", "load", "load/rank1"] {
        std::fs::create_dir(place.path().join(directory)).expect("ours");
    }
    let mount = Bindfs::mount(&place.path().join("source"), &place.path().join("load/rank1"));
    let time = Stop { time: Some(Duration::from_secs(40)), ..Stop::default() };
    let phases = vec![
        Phase::new("short", vec![group("stat", Operation::Stat, FileChoice::Uniform)], operations(100)),
        Phase::new("long", vec![group("stat", Operation::Stat, FileChoice::Uniform)], time),
    ];
    let load = workload(Fileset { ranks: Sharing::Private, ..files(20, 1.0) }, phases);
    let started = Instant::now();
    let trouble = Trouble::LosesItsMount(1, mount.0.id().cast_signed());
    let (told, ended) = run_on(3, &load, &place.path().join("load"), PATIENT, trouble);
    let report = told.report.expect("rank 0 was told");
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "nobody waits for the phase's end: {:?} {:?}",
        report.load.errors,
        report.ranked.per_rank[1]
    );
    assert!(ended.iter().all(|ended| ended.clean), "all processes are there: {report:?}");
    let error = report.load.errors.first().expect("it is an error of the load");
    assert_eq!(error.errno, rustix::io::Errno::NOTCONN.raw_os_error(), "{error:?}");
    assert!(error.path.contains("(rank 1)") && report.ranked.per_rank[1].errors > 0, "{error:?}");
    assert!(
        report.ranked.ended_early.as_ref().is_some_and(|why| why.contains("rank 1 on node0")),
        "{:?}",
        report.ranked.ended_early
    );
    let outcome = &report.ranked.per_rank[1].outcome;
    assert!(matches!(outcome, RankOutcome::Failed { words } if words.contains("not connected")), "{outcome:?}");
    assert_eq!(report.ranked.phases[0].ranks, 3, "what all ended is known of all");
    assert!([0, 2].iter().all(|rank| report.ranked.per_rank[*rank].operations > 100), "{:?}", report.ranked.per_rank);
    drop(mount);
}

struct Bindfs(std::process::Child, std::path::PathBuf);

impl Bindfs {
    fn mount(source: &Path, target: &Path) -> Self {
        let device = |path: &Path| std::fs::metadata(path).map(|found| std::os::unix::fs::MetadataExt::dev(&found));
        let before = device(target).expect("ours");
        let daemon = std::process::Command::new("bindfs").arg("-f").arg(source).arg(target).spawn();
        let mounted = Self(daemon.expect("bindfs starts"), target.to_owned());
        let since = Instant::now();
        while device(target).ok() == Some(before) {
            assert!(since.elapsed() < PATIENT, "bindfs mounts nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
        mounted
    }
}

impl Drop for Bindfs {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.1).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ranks 0 and 1 are on one node, 2 and 3 on another: what one node wrote the other looks at.
#[test]
fn a_shift_by_nodes_has_each_rank_work_on_files_of_another_node() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let time = Stop { time: Some(Duration::from_millis(100)), ..Stop::default() };
    let once = Stop { once_through: true, ..Stop::default() };
    let phases = vec![
        Phase::new("create", vec![group("create", create(), FileChoice::Rotation)], time),
        Phase {
            node_shift: 1,
            ..Phase::new("stat", vec![group("stat", Operation::Stat, FileChoice::RoundRobin)], once)
        },
    ];
    let load = workload(Fileset { ranks: Sharing::Private, ..files(1_000_000, 0.0) }, phases);
    let (told, _) = run_on(4, &load, place.path(), PATIENT, Trouble::Nothing);
    let report = told.report.expect("rank 0 was told");
    assert!(report.load.errors.is_empty() && report.ranked.nodes == 2, "{report:?}");
    let of =
        |phase: usize| report.ranked.per_rank.iter().map(|rank| rank.phases[phase].operations).collect::<Vec<u64>>();
    let [created, stated] = [of(0), of(1)];
    assert_eq!(stated, [created[2], created[3], created[0], created[1]], "{created:?}");
}

#[test]
fn files_that_another_rank_touches_are_not_missed() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let once = Stop { once_through: true, ..Stop::default() };
    let stat = Phase::new("stat", vec![group("stat", Operation::Stat, FileChoice::RoundRobin)], once);
    let load = workload(files(200, 1.0), vec![Phase { rank_shift: 1, ..stat }]);
    let (told, _) = run_on(2, &load, place.path(), PATIENT, Trouble::Nothing);
    let report = told.report.expect("rank 0 was told");
    assert_eq!(report.load.invocations(), 400);
    let warnings = &report.load.warnings;
    assert!(!warnings.iter().any(|warning| warning.contains("distinct")), "{warnings:?}");
}
