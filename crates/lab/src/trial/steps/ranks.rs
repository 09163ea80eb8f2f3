//! A load of several ranks as a step: an MPI launcher starts them, each is this program, and rank 0 reports the result.
//!
//! They begin and end their phases together without this process. It hands them the load, hears when the measured interval begins and
//! ends, so that its meters run meanwhile, and reads the merged report.

use super::apart::Apart;
use crate::{
    command::{CommandLine, CommandOutput},
    events::LoadProgress,
    meters::{KernelWork, Meters, Readings},
    trial::{
        load::{load_figures, ranks_figures},
        record::{Halt, StepReport, failed},
        session::{OnProgress, Session},
    },
};
use fstone_files::OwnDirectory;
use fstone_model::{
    Outcome, Step, Workload,
    metric::{Figure, catalog},
    outcome::Reason,
    ranks::{REPORT_FILE, RankNews, RankOutcome, RankTask, RanksReport},
    workload::Launch,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How the name of the directory begins in which ranks find their load and leave its report.
const PREFIX: &str = "fstone-ranks-";
const TASK: &str = "task.json";
const NEWS: &str = "news";
const OVER: &str = "over";
/// How long a launcher may take to end its ranks and to remove what they shared: Open MPI's kills them a second after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// Bytes of the report of all ranks: ten times what 100,000 of them take.
const LONGEST: u64 = 1 << 30;

/// Settings for launchers, unless the user has set them: allow root, because a study is run as root on purpose; allow more ranks than
/// processors; and bind no rank, because its threads are not to share one processor.
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
        let above = self.meeting_place();
        if self.mounted {
            // It is the work directory, which nobody else uses meanwhile.
            OwnDirectory::remove_left(&above, PREFIX);
        }
        let place = Meeting::make(&above).map_err(work)?;
        let directories = match &self.own {
            Some(own) => own.mounts.clone(),
            None => vec![self.place.clone()],
        };
        let task = RankTask {
            workload: workload.clone(),
            directories,
            seed: self.seed,
            measure_null: self.measure_null,
            results: place.0.path().to_owned(),
            news: place.news(),
        };
        let json = serde_json::to_vec(&task).map_err(io::Error::from);
        json.and_then(|json| fs::write(place.task(), json)).map_err(work)?;
        let mut command = command(launch, &place.task()).map_err(work)?;
        let apart = Apart::new(&used(&command, &[place.0.path(), &self.place]));
        // What is mounted here is on no other node, and so are its ranks.
        let other_nodes = !self.mounted && self.own.is_none();
        command.env.extend(apart.variables(other_nodes));

        let started = Instant::now();
        let device = self.device.as_ref().map(|device| device.path().to_owned());
        let company = Arc::clone(&self.company);
        let company = || company.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = || {
            company().begin();
            Meters::begin(device.as_deref())
        };
        let end = || company().interval_ended();
        let (output, readings) =
            place.told((&begin, &end), progress, || self.run(step, &command, report)).map_err(work)?;
        report.figures.push(catalog::TIME.figure(started.elapsed().as_secs_f64()));
        let output = output?;
        let Some(ranks) = place.report().map_err(work)? else {
            return Err(failed(step, format!("{}: {}", launch.program(), end_of(&output))));
        };
        self.take(step, workload, ranks, &output, readings.as_ref(), report)
    }

    /// The directory above the one where the ranks find each other's files: where those are that may run on other nodes,
    /// and otherwise not on what is measured.
    fn meeting_place(&self) -> PathBuf {
        let above = match &self.own {
            Some(own) => own.directory.parent(),
            // A service's filesystem may be mounted elsewhere, where its user can enter.
            None if self.mounted => self.work.as_deref().or_else(|| self.place.parent()),
            None => Some(self.place.as_path()),
        };
        above.unwrap_or(&self.place).to_owned()
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
        report.commands.extend(readings.and_then(|readings| readings.work.as_ref()).map(KernelWork::record));
        report.figures.extend(figures(&ranks, readings));
        let skew = skew(step, &ranks);
        let settled = self.settle_load(step, workload, ranks.into_load(), report);
        if let Some(skew) = skew {
            self.warn(skew);
        }
        told.map_or(settled, |outcome| Err(Halt::Outcome(outcome)))
    }
}

fn command(launch: &Launch, task: &Path) -> io::Result<CommandLine> {
    let own = std::env::current_exe()?;
    let mut words = launch.words();
    let program = if words.is_empty() { String::new() } else { words.remove(0) };
    words.extend([own.display().to_string(), "load".into(), task.display().to_string()]);
    // Its own directory is in the task.
    words.extend(["--of-step", "--directory", "."].map(str::to_owned));
    let mut command = CommandLine { grace: GRACE, ..CommandLine::new(&program, words) };
    let unset = |name: &str| std::env::var_os(name).is_none();
    command
        .env
        .extend(SETTINGS.iter().filter(|(name, _)| unset(name)).map(|(name, value)| ((*name).into(), (*value).into())));
    Ok(command)
}

/// What the launcher and the ranks need: these places, the launcher itself, this program, and what else the command line names.
fn used(command: &CommandLine, places: &[&Path]) -> Vec<PathBuf> {
    let words =
        command.args.iter().flat_map(|word| [word.as_str(), word.split_once('=').map_or("", |(_, value)| value)]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let launcher = std::env::split_paths(&path).map(|directory| directory.join(&command.program));
    let named = words.filter(|word| !word.is_empty()).map(PathBuf::from);
    places.iter().map(PathBuf::from).chain(named).chain(launcher).collect()
}

fn figures(ranks: &RanksReport, readings: Option<&Readings>) -> Vec<Figure> {
    let mut figures = if ranks.ranked.merged > 0 { load_figures(&ranks.load, readings) } else { Vec::new() };
    // The ranks of all nodes used and wrote this, but processors and device are those of this node.
    let mixed = [catalog::PROCESS_CPU.name, catalog::WRITE_AMPLIFICATION.name];
    figures.retain(|figure| ranks.ranked.nodes == 1 || !mixed.contains(&figure.metric.as_str()));
    figures.extend(ranks_figures(ranks));
    figures
}

/// The first rank that did not end normally, if any: its outcome is that of the step.
fn outcome(step: &Step, ranks: &RanksReport, output: &CommandOutput) -> Option<Outcome> {
    let lost = ranks.ranked.per_rank.iter().filter(|rank| rank.outcome.words().is_some());
    // A rank that hangs explains more than those that ended because of it.
    let first =
        lost.clone().find(|rank| matches!(rank.outcome, RankOutcome::Hung { .. })).or_else(|| lost.clone().next());
    if let Some(rank) = first {
        let others = match lost.count() {
            1 => String::new(),
            lost => format!("; {lost} of {} ranks did not end normally", ranks.ranked.ranks),
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
    // A job that was killed at once leaves phases, but no report of the load.
    let whole = ranks.ranked.merged > 0 && ranks.ranked.ended_early.is_none();
    (!whole).then(|| {
        let why = ranks.ranked.ended_early.clone().unwrap_or_else(|| end_of(output));
        Outcome::Failed(Reason::new(&step.name, format!("the ranks ended early: {why}")))
    })
}

fn end_of(output: &CommandOutput) -> String {
    format!("exit status {}: {}", output.status, output.words())
}

fn skew(step: &Step, ranks: &RanksReport) -> Option<String> {
    let skewed: Vec<&str> = ranks
        .ranked
        .phases
        .iter()
        .filter(|phase| phase.measured && phase.skewed)
        .map(|phase| phase.name.as_str())
        .collect();
    (!skewed.is_empty()).then(|| {
        format!(
            "{}: in {} the ranks started or ended more than 1 % of the time apart, and not all were at work meanwhile",
            step.name,
            skewed.join(", ")
        )
    })
}

/// A directory in which this process and the ranks exchange files; it is removed with this value.
struct Meeting(OwnDirectory);

impl Meeting {
    fn make(above: &Path) -> io::Result<Self> {
        let meeting = Self(OwnDirectory::make(above, PREFIX)?);
        mknodat(CWD, meeting.news(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        Ok(meeting)
    }

    fn task(&self) -> PathBuf {
        self.0.path().join(TASK)
    }

    fn news(&self) -> PathBuf {
        self.0.path().join(NEWS)
    }

    /// The report of rank 0; `None` if it wrote none.
    fn report(&self) -> io::Result<Option<RanksReport>> {
        let file = match File::open(self.0.path().join(REPORT_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        serde_json::from_str(&io::read_to_string(file.take(LONGEST))?).map(Some).map_err(io::Error::from)
    }

    /// Runs something while listening to rank 0; meters run while it measures.
    fn told<T>(
        &self,
        (begin, end): (&(dyn Fn() -> Meters + Sync), &(dyn Fn() + Sync)),
        progress: OnProgress<'_>,
        run: impl FnOnce() -> T,
    ) -> io::Result<(T, Option<Readings>)> {
        // Open for reading and writing: then nobody waits for the other side, and a rank that ends does not close the pipe.
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
                        end();
                        if let Some(meters) = running.take() {
                            let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
                            readings.get_or_insert_default().add(&meters.end());
                        }
                    }
                    Ok(RankNews::Progress { phase, elapsed, expected, operations, bytes }) => {
                        progress(LoadProgress { phase, elapsed, expected, operations, bytes, lately: None });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{agent::protocol::Opening, machine::Machine, testing};
    use fstone_model::{LoadReport, ranks::Ranked};

    #[test]
    fn ranks_meet_in_the_work_directory_wherever_the_filesystem_is_mounted() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let opening = Opening { work: Some("/work".into()), ..testing::opening(place.path()) };
        let Ok((mut session, _)) = Session::open(Machine::fake(), opening) else { panic!("it can be opened") };
        assert_eq!(session.meeting_place(), session.place, "other nodes see it");
        // Where the user of a service can enter.
        (session.mounted, session.place) = (true, "/fstone-mount".into());
        assert_eq!(session.meeting_place(), Path::new("/work"));
    }

    #[test]
    fn processor_time_of_several_nodes_is_no_figure_of_one() {
        let has_it = |nodes| {
            let load = LoadReport { elapsed_ns: 1_000_000_000, process_user_ns: 1, ..LoadReport::default() };
            let ranked = Ranked { merged: 2, ranks: 2, nodes, ..Ranked::default() };
            let ranks = RanksReport { ranked, load, ..RanksReport::default() };
            figures(&ranks, None).iter().any(|figure| figure.metric == catalog::PROCESS_CPU.name)
        };
        assert!(has_it(1) && !has_it(2));
    }
}
