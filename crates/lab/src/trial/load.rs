//! Loads: the engine behind a border, and its report as figures.

use crate::{events::LoadProgress, meters::Readings};
use fstone_files::open_new_directory;
use fstone_model::{
    LoadReport, Workload,
    load::{ClockReport, ErrorReport, OperationReport, ReplayReport},
    load_metric,
    metric::{Figure, catalog},
    outcome::CORRUPTION,
    ranks::{PhaseMeeting, RanksReport},
    workload::{Replay, ReplayPace},
};
use fstone_record::{CompileError, Moment, Pace, Program, Reader, ReplayError, Settings};
use std::{io::ErrorKind, os::fd::AsFd, path::Path, sync::atomic::AtomicBool, time::Instant};

pub struct LoadRequest<'a> {
    pub workload: &'a Workload,
    pub directory: &'a Path,
    pub seed: u64,
    /// Whether the engine's own cost is to be measured afterwards.
    pub measure_null: bool,
    /// Set from outside, it ends the load.
    pub stop: &'a AtomicBool,
    /// Called when files that were there before have been looked at, before the first phase.
    pub found: &'a (dyn Fn() + Sync),
    /// Called when a measured interval begins; between two of them is what is not measured.
    pub begin: &'a (dyn Fn() + Sync),
    pub end: &'a (dyn Fn() + Sync),
    /// Called between two measured phases of an interval: when the first has ended, and when the second begins.
    pub phase_ended: &'a (dyn Fn() + Sync),
    pub phase_begins: &'a (dyn Fn() + Sync),
    pub progress: &'a (dyn Fn(LoadProgress) + Sync),
    /// Who remembers what it was promised.
    pub witness: Option<&'a fstone_engine::Witness>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LoadFailure {
    /// With what was measured until then.
    Interrupted(Option<Box<LoadReport>>),
    Failed(String),
}

pub trait Loader: Send + Sync {
    /// Runs a load to its end.
    ///
    /// # Errors
    /// When it gave no report. An operation's error is in the report.
    fn load(&self, request: &LoadRequest<'_>) -> Result<LoadReport, LoadFailure>;
}

/// A replay whose threads wait for more than this part of their time is not as parallel as the application was.
const MUCH: u64 = 10;
/// Of the calls that differ, those that are named where it fails because of them.
const TOLD: usize = 3;

#[derive(Debug, Clone, Copy, Default)]
pub struct EngineLoader {
    /// As [`fstone_engine::Observer::perturbation`].
    pub perturbation: Option<u64>,
}

struct Watcher<'a>(&'a LoadRequest<'a>, Option<u64>);

impl fstone_engine::Observer for Watcher<'_> {
    fn found(&self) {
        (self.0.found)();
    }

    fn measured_begin(&self) {
        (self.0.begin)();
    }

    fn measured_end(&self) {
        (self.0.end)();
    }

    fn phase_ended(&self) {
        (self.0.phase_ended)();
    }

    fn phase_begins(&self) {
        (self.0.phase_begins)();
    }

    fn witness(&self) -> Option<&fstone_engine::Witness> {
        self.0.witness
    }

    fn perturbation(&self) -> Option<u64> {
        self.1
    }

    fn progress(&self, progress: &fstone_engine::Progress) {
        (self.0.progress)(LoadProgress {
            phase: progress.phase.clone(),
            elapsed: progress.elapsed,
            expected: progress.expected,
            operations: progress.operations,
            bytes: progress.bytes,
            lately: (!progress.interval.is_zero()).then(|| progress.lately()),
        });
    }
}

impl Loader for EngineLoader {
    fn load(&self, request: &LoadRequest<'_>) -> Result<LoadReport, LoadFailure> {
        if let Some(replay) = &request.workload.replay {
            return replayed(request, replay);
        }
        let options = fstone_engine::RunOptions {
            seed: request.seed,
            cancel: request.stop,
            observer: &Watcher(request, self.perturbation),
            measure_null: request.measure_null,
            // A filesystem or a directory that the trial itself made.
            ownership: fstone_engine::Ownership::Own,
        };
        fstone_engine::run(request.workload, request.directory, &options).map_err(|error| match error {
            fstone_engine::LoadError::Interrupted(report) => LoadFailure::Interrupted(report),
            other => LoadFailure::Failed(other.to_string()),
        })
    }
}

/// A recording: its tree is made before the interval, its calls are carried out in it, and a sync ends it.
fn replayed(request: &LoadRequest<'_>, replay: &Replay) -> Result<LoadReport, LoadFailure> {
    let failed = |why: &dyn std::fmt::Display| LoadFailure::Failed(format!("cannot replay {}: {why}", replay.file));
    let mut reader = Reader::open(Path::new(&replay.file)).map_err(|error| failed(&error))?;
    let program = Program::compile(&mut reader, request.stop).map_err(|error| match error {
        CompileError::Interrupted => LoadFailure::Interrupted(None),
        error => failed(&error),
    })?;
    if reader.digest() != replay.digest {
        return Err(failed(&"it is another recording than when the run began"));
    }
    // Several steps of a trial may replay.
    let mut names = (1..).map(|number| request.directory.join(format!("replay-{number}")));
    let root = loop {
        match open_new_directory(&names.next().expect("numbers do not end")) {
            Ok(root) => break root,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&error)),
        }
    };
    let settings = Settings {
        pace: match replay.pace {
            ReplayPace::Think => Pace::Think(replay.speed),
            ReplayPace::Full => Pace::Full,
            ReplayPace::Clock => Pace::Clock(replay.speed),
        },
        // The step drops them.
        cold: false,
        cancel: request.stop,
        witness: request.witness,
        watch: &|moment| match moment {
            Moment::Made => (request.found)(),
            Moment::Begins => (request.begin)(),
            Moment::Synced => (request.end)(),
        },
    };
    // Each open file of the recording is one of the replay.
    fstone_engine::raise_descriptor_limit();
    match fstone_record::replay(&program, root.as_fd(), &settings) {
        Ok(report) => match report.differing(ReplayReport::FAILED) {
            Some(words) => {
                let first: Vec<String> = report.first.iter().take(TOLD).map(ToString::to_string).collect();
                Err(failed(&format!("{words}, so it is another load; the first: {}", first.join("; "))))
            }
            None => Ok(report_of_replay(request, &report)),
        },
        Err(ReplayError::Interrupted(report)) => {
            Err(LoadFailure::Interrupted(report.map(|report| Box::new(report_of_replay(request, &report)))))
        }
        Err(error) => Err(failed(&error)),
    }
}

fn report_of_replay(request: &LoadRequest<'_>, report: &fstone_record::Report) -> LoadReport {
    let operation = |(kind, one): (&fstone_record::Kind, &fstone_record::Replayed)| OperationReport {
        group: load_metric::REPLAY_GROUP.into(),
        name: kind.name().into(),
        invocations: one.calls,
        transactions: one.calls,
        calls: one.calls,
        read_bytes: one.read_bytes,
        written_bytes: one.written_bytes,
        latency: one.latency.clone(),
        ..OperationReport::default()
    };
    let [process_user_ns, process_system_ns] = report.cpu_ns;
    let mut warnings: Vec<String> = report.first.iter().map(ToString::to_string).collect();
    if report.differences > warnings.len() as u64 {
        warnings.push(format!("{} calls in all returned something else than recorded", report.differences));
    }
    if report.is_cut {
        warnings.push("the recording was cut: what it has was replayed".into());
    }
    let of_threads_ns = report.waited_ns + report.calls_ns + report.think_ns;
    if report.queued_ns > of_threads_ns / MUCH {
        let share = 100.0 * report.queued_ns as f64 / of_threads_ns as f64;
        warnings.push(format!(
            "threads waited for calls of others on the same files for {share:.0} % of their time; calls that the application made at \
             once on one open file are made one after the other"
        ));
    }
    if request.witness.is_some() && !report.promised {
        warnings.push(
            "the application made nothing durable itself: what a power cut loses of it is looked for only behind fstone's own sync at \
             its end"
                .into(),
        );
    }
    let left_out = report.left_out.iter().filter(|(why, _)| **why != fstone_record::OUTSIDE);
    warnings.extend(left_out.map(|(why, count)| format!("left out: {count} {why}")));
    LoadReport {
        seed: request.seed,
        setup_ns: report.setup_ns,
        elapsed_ns: report.elapsed_ns + report.sync_ns,
        running_ns: report.elapsed_ns,
        sync_ns: report.sync_ns,
        first_done_ns: report.elapsed_ns,
        last_done_ns: report.elapsed_ns,
        process_user_ns,
        process_system_ns,
        threads: report.threads as u32,
        operations: report.kinds.iter().map(operation).collect(),
        clock: clock(),
        warnings,
        replay: Some(Box::new(ReplayReport {
            think_ns: report.think_ns,
            waited_ns: report.waited_ns,
            recorded_ns: report.expected_ns.filter(|_| report.not_comparable.is_none()).unwrap_or(0),
            differences: report.differences,
            unexplained: report.unexplained,
            late: report.late,
        })),
        ..LoadReport::default()
    }
}

/// That of replays.
fn clock() -> ClockReport {
    const READINGS: u32 = 1000;
    let began = Instant::now();
    let mut last = began;
    let step = |_| {
        let now = Instant::now();
        now - std::mem::replace(&mut last, now)
    };
    let resolution = (0..READINGS).map(step).filter(|step| !step.is_zero()).min().unwrap_or_default();
    ClockReport {
        source: "clock_gettime".into(),
        cost_ns: began.elapsed().as_nanos() as f64 / f64::from(READINGS),
        resolution_ns: resolution.as_nanos() as f64,
    }
}

pub(super) fn error_words(error: &ErrorReport) -> String {
    let path = if error.path.is_empty() { String::new() } else { format!(" {}", error.path) };
    let times = if error.count > 1 { format!(" ({} times)", error.count) } else { String::new() };
    // A stamp's own check fails with an errno that means nothing to a person.
    let text = if error.call == "verify" { CORRUPTION } else { &error.text };
    format!("{}: {}{path}: {text}{times}", error.operation, error.call)
}

/// What a load's report says, as figures. `readings` are of its measured intervals.
pub fn load_figures(report: &LoadReport, readings: Option<&Readings>) -> Vec<Figure> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let per_second = |count| report.per_second(count);
    let (read, written) = (report.read_bytes(), report.written_bytes());
    let mut figures = vec![
        catalog::TRANSACTIONS_PER_SECOND.figure(per_second(report.transactions())),
        catalog::OPERATIONS_PER_SECOND.figure(per_second(report.invocations())),
        catalog::OPERATIONS.figure(report.invocations() as f64),
        catalog::THROUGHPUT.figure(per_second(read + written)),
        catalog::READ_THROUGHPUT.figure(per_second(read)),
        catalog::WRITE_THROUGHPUT.figure(per_second(written)),
        catalog::EXECUTION_TIME.figure(seconds(report.elapsed_ns)),
        catalog::SYNC_TIME.figure(seconds(report.sync_ns)),
        catalog::SETUP_TIME.figure(seconds(report.setup_ns)),
    ];
    if let Some(readings) = readings {
        // The process' own time comes from the engine, which knows it without our watching threads.
        figures.extend(readings.figures().into_iter().filter(|figure| figure.metric != catalog::PROCESS_CPU.name));
        figures.extend(readings.write_amplification(written));
        let operations = report.invocations();
        if let Some(work) = readings.work.as_ref().filter(|_| operations > 0) {
            figures.push(catalog::KERNEL_WORK_PER_OPERATION.figure(work.instructions as f64 / operations as f64));
        }
        figures.extend(readings.work.iter().flat_map(|work| load_metric::phase_work(report, &work.phases)));
    }
    if report.elapsed_ns > 0 {
        let busy = report.process_user_ns + report.process_system_ns;
        figures.push(catalog::PROCESS_CPU.figure(busy as f64 * 100.0 / report.elapsed_ns as f64));
    }
    figures.extend(load_metric::figures(report));
    for (name, p50, p95, p99) in [
        ("read", &catalog::READ_LATENCY_P50, &catalog::READ_LATENCY_P95, &catalog::READ_LATENCY_P99),
        ("write", &catalog::WRITE_LATENCY_P50, &catalog::WRITE_LATENCY_P95, &catalog::WRITE_LATENCY_P99),
        ("fsync", &catalog::FSYNC_LATENCY_P50, &catalog::FSYNC_LATENCY_P95, &catalog::FSYNC_LATENCY_P99),
    ] {
        let latencies = load_metric::latencies_of(report, name);
        figures.extend(latencies.percentile_ns(50.0).map(|value| p50.figure(value)));
        figures.extend(latencies.percentile_ns(95.0).map(|value| p95.figure(value)));
        figures.extend(latencies.percentile_ns(99.0).map(|value| p99.figure(value)));
    }
    figures.extend(report.audit.null_ns_per_operation.map(|cost| catalog::ENGINE_COST.figure(cost)));

    // An action called "read" has a "read latency p50" of its own, which then goes with its mean and its maximum; without
    // one the name stands for all operations that read.
    let mut seen: Vec<String> = Vec::new();
    figures.retain(|figure| {
        let new = !seen.contains(&figure.metric);
        seen.push(figure.metric.clone());
        new
    });
    figures
}

pub(super) fn ranks_figures(ranks: &RanksReport) -> Vec<Figure> {
    let largest = |skew: fn(&PhaseMeeting) -> u64| {
        ranks.ranked.phases.iter().filter(|phase| phase.measured && phase.ranks == ranks.ranked.ranks).map(skew).max()
    };
    let rate = |number: Option<u32>| {
        ranks.ranked.per_rank.iter().find(|rank| Some(rank.rank) == number).map(|rank| rank.per_second)
    };
    [
        (&catalog::START_SKEW, largest(|phase| phase.start_skew_ns).map(|ns| ns as f64)),
        (&catalog::STOP_SKEW, largest(|phase| phase.stop_skew_ns).map(|ns| ns as f64)),
        (&catalog::SLOWEST_RANK, rate(ranks.ranked.slowest)),
        (&catalog::MEDIAN_RANK, rate(ranks.ranked.median)),
        (&catalog::FASTEST_RANK, rate(ranks.ranked.fastest)),
    ]
    .into_iter()
    .filter_map(|(metric, value)| value.map(|value| metric.figure(value)))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::Histogram;

    fn operation(name: &str, read_bytes: u64, written_bytes: u64, latency_ns: u64) -> OperationReport {
        OperationReport {
            name: name.into(),
            invocations: 10,
            transactions: 20,
            read_bytes,
            written_bytes,
            latency: Histogram::from_values(&[latency_ns; 10]),
            ..OperationReport::default()
        }
    }

    #[test]
    fn a_report_becomes_figures() {
        let report = LoadReport {
            elapsed_ns: 2_000_000_000,
            sync_ns: 500_000_000,
            process_user_ns: 1_000_000_000,
            process_system_ns: 2_000_000_000,
            operations: vec![
                operation("create", 0, 4096, 100),
                operation("read", 8192, 0, 50),
                operation("create", 0, 0, 100),
            ],
            ..LoadReport::default()
        };
        let figures = load_figures(&report, None);
        let value = |metric: &str| {
            let found: Vec<f64> =
                figures.iter().filter(|figure| figure.metric == metric).map(|figure| figure.value).collect();
            assert!(found.len() <= 1, "{metric} is there {} times", found.len());
            found.first().copied()
        };
        assert_eq!(value("transactions per second"), Some(30.0));
        assert_eq!(value("operations per second"), Some(15.0));
        assert_eq!(value("throughput"), Some(6144.0));
        assert_eq!(value("write throughput"), Some(2048.0));
        assert_eq!(value("execution time"), Some(2.0));
        assert_eq!(value("sync time"), Some(0.5));
        assert_eq!(value("process CPU"), Some(150.0));
        assert_eq!(value("read latency p50"), Some(50.0));
        assert_eq!(value("create latency p99"), Some(100.0));
        assert_eq!(value("write latency p50"), Some(100.0));
        assert_eq!(value("engine cost per operation"), None);
    }

    #[test]
    fn an_empty_report_divides_by_nothing() {
        assert!(
            load_figures(&LoadReport::default(), Some(&Readings::default())).iter().all(|figure| figure.value == 0.0)
        );
    }
}
