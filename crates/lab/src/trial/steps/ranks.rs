//! A load of several ranks as a step: a launcher of MPI starts them, each is this program, and the first of them tells what came of it.
//!
//! They begin and end their phases together without this process. It hands them the load, is told when the measured interval begins
//! and ends, for its meters, and reads the report of all.

use crate::{
    command::{CommandLine, CommandOutput},
    events::LoadProgress,
    meters::{Meters, Readings},
    trial::{
        load::{load_figures, ranks_figures},
        record::{Halt, StepReport, failed},
        session::{OnProgress, Session},
    },
};
use fstone_model::{
    Outcome, Step, Workload,
    metric::catalog,
    outcome::Reason,
    ranks::{RankNews, RankOutcome, RankTask, RanksReport},
    workload::Launch,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// Where ranks find their load, and leave its report.
const DIRECTORY: &str = "fstone-ranks";
/// The last line of the news.
const OVER: &str = "over";
/// Bytes of the report of all ranks: ten times what 100,000 of them take.
const LONGEST: u64 = 1 << 30;

/// What launchers are told where the user does not say otherwise. Who runs a study as root means it; a machine may have fewer
/// processors than the study has ranks; and the threads of a rank are not to share one processor.
const SETTINGS: [(&str, &str); 6] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("PRTE_MCA_hwloc_default_binding_policy", "none"),
];

impl Session {
    pub(super) fn ranked_load(
        &mut self,
        step: &Step,
        workload: &Workload,
        launch: &Launch,
        progress: OnProgress<'_>,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        let work = |cause: io::Error| failed(step, format!("the ranks' own directory: {cause}"));
        let place = Meeting::make(&self.meeting_place()).map_err(work)?;
        let directories = match &self.own {
            Some(own) => own.mounts.clone(),
            None => vec![self.place.clone()],
        };
        let task = RankTask {
            workload: workload.clone(),
            directories,
            seed: self.seed,
            measure_null: self.measure_null,
            results: place.0.clone(),
            news: place.news(),
        };
        let json = serde_json::to_vec(&task).map_err(io::Error::from);
        json.and_then(|json| fs::write(place.task(), json)).map_err(work)?;
        let command = command(launch, &place.task()).map_err(work)?;

        let started = Instant::now();
        let device = self.device.as_ref().map(|device| device.path().to_owned());
        let (output, readings) = place
            .told(|| Meters::begin(device.as_deref()), progress, || self.run(step, &command, report))
            .map_err(work)?;
        report.figures.push(catalog::TIME.figure(started.elapsed().as_secs_f64()));
        let output = output?;
        let Some(ranks) = place.report().map_err(work)? else {
            return Err(failed(step, format!("{}: {}", launch.program(), end_of(&output))));
        };
        self.take(step, workload, ranks, &output, readings.as_ref(), report)
    }

    /// Where the ranks find each other's files: where those are that may run on other nodes, and otherwise not on what is measured.
    fn meeting_place(&self) -> PathBuf {
        let above = match &self.own {
            Some(own) => own.directory.parent(),
            None if self.mounted => self.place.parent(),
            None => Some(self.place.as_path()),
        };
        above.unwrap_or(&self.place).join(DIRECTORY)
    }

    fn take(
        &mut self,
        step: &Step,
        workload: &Workload,
        ranks: RanksReport,
        output: &CommandOutput,
        readings: Option<&Readings>,
        report: &mut StepReport,
    ) -> Result<(), Halt> {
        let told = outcome(step, &ranks, output);
        if ranks.merged > 0 {
            report.figures.extend(load_figures(&ranks.load, readings));
        }
        report.figures.extend(ranks_figures(&ranks));
        let skew = skew(step, &ranks);
        let settled = self.settle_load(step, workload, ranks.into_load(), report);
        if let Some(skew) = skew {
            self.warn(skew);
        }
        told.map_or(settled, |outcome| Err(Halt::Outcome(outcome)))
    }
}

/// The command line that starts the ranks.
fn command(launch: &Launch, task: &Path) -> io::Result<CommandLine> {
    let own = std::env::current_exe()?;
    let mut words = launch.words();
    let program = if words.is_empty() { String::new() } else { words.remove(0) };
    words.extend([own.display().to_string(), "load".into(), task.display().to_string()]);
    // Its own directory is in the task.
    words.extend(["--of-step", "--directory", "."].map(str::to_owned));
    let mut command = CommandLine::new(&program, words);
    let unset = |name: &str| std::env::var_os(name).is_none();
    command
        .env
        .extend(SETTINGS.iter().filter(|(name, _)| unset(name)).map(|(name, value)| ((*name).into(), (*value).into())));
    Ok(command)
}

/// The first rank that did not end as it should, if any: that is what became of the step.
fn outcome(step: &Step, ranks: &RanksReport, output: &CommandOutput) -> Option<Outcome> {
    let lost = ranks.per_rank.iter().filter(|rank| rank.outcome.words().is_some());
    // One that failed by itself says more than those that ended for want of it.
    let first =
        lost.clone().find(|rank| matches!(rank.outcome, RankOutcome::Hung { .. })).or_else(|| lost.clone().next());
    if let Some(rank) = first {
        let others = match lost.count() {
            1 => String::new(),
            lost => format!("; {lost} of {} ranks did not end as they should", ranks.ranks),
        };
        let words = format!(
            "rank {} on {} (process {}) {}: {}{others}",
            rank.rank,
            rank.host,
            rank.process,
            rank.outcome.word(),
            rank.outcome.words().unwrap_or_default()
        );
        let reason = Reason::new(&step.name, words);
        return Some(match rank.outcome {
            RankOutcome::Hung { .. } => Outcome::Hung(reason),
            _ => Outcome::Failed(reason),
        });
    }
    // What is left of a job that was killed at once has phases, and no report of the load.
    let whole = ranks.merged > 0 && ranks.ended_early.is_none();
    (!whole).then(|| {
        let why = ranks.ended_early.clone().unwrap_or_else(|| end_of(output));
        Outcome::Failed(Reason::new(&step.name, format!("the ranks ended early: {why}")))
    })
}

fn end_of(output: &CommandOutput) -> String {
    format!("exit status {}: {}", output.status, output.words())
}

/// What has to be said of how the ranks met.
fn skew(step: &Step, ranks: &RanksReport) -> Option<String> {
    let skewed: Vec<&str> =
        ranks.phases.iter().filter(|phase| phase.measured && phase.skewed).map(|phase| phase.name.as_str()).collect();
    (!skewed.is_empty()).then(|| {
        format!(
            "{}: the ranks began or ended more than 1 % of the time apart in {}: for so long not all were at work",
            step.name,
            skewed.join(", ")
        )
    })
}

/// A directory in which this process and the ranks meet; it is gone with this value.
struct Meeting(PathBuf);

impl Meeting {
    fn make(path: &Path) -> io::Result<Self> {
        // A trial that was killed may have left one, in a place that is fstone's own.
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir(path)?,
        }
        let meeting = Self(path.to_owned());
        mknodat(CWD, meeting.news(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        Ok(meeting)
    }

    fn task(&self) -> PathBuf {
        self.0.join("task.json")
    }

    fn news(&self) -> PathBuf {
        self.0.join("news")
    }

    /// What rank 0 wrote; `None` where it never came so far.
    fn report(&self) -> io::Result<Option<RanksReport>> {
        let file = match File::open(self.0.join("ranks.json")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        serde_json::from_reader(BufReader::new(file.take(LONGEST))).map(Some).map_err(io::Error::from)
    }

    /// Does something, and listens to rank 0 meanwhile: when it measures, meters run.
    fn told<T>(
        &self,
        begin: impl Fn() -> Meters + Sync,
        progress: OnProgress<'_>,
        run: impl FnOnce() -> T,
    ) -> io::Result<(T, Option<Readings>)> {
        // Open for both, so that nobody waits for the other side and the end of one rank is not the end of all.
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let mut own = File::from(rustix::fs::open(self.news(), flags, Mode::empty())?);
        let lines = BufReader::new(own.try_clone()?).lines();
        let readings = Mutex::new(None::<Readings>);
        let listen = || {
            let mut running = None;
            for line in lines.map_while(Result::ok).take_while(|line| line != OVER) {
                match serde_json::from_str(&line) {
                    Ok(RankNews::Begin) => running = Some(begin()),
                    Ok(RankNews::End) => {
                        if let Some(meters) = running.take() {
                            let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
                            readings.get_or_insert_default().add(&meters.end());
                        }
                    }
                    Ok(RankNews::Progress { phase, elapsed, expected, operations, bytes }) => {
                        progress(LoadProgress { phase, elapsed, expected, operations, bytes });
                    }
                    // Half a line of a rank that was killed.
                    Err(_) => {}
                }
            }
        };
        let done = std::thread::scope(|scope| {
            scope.spawn(listen);
            let done = run();
            own.write_all(format!("\n{OVER}\n").as_bytes()).map(|()| done)
        })?;
        Ok((done, readings.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        // What a kill leaves is removed by the next one, or with the trial's directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}
