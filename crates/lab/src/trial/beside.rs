//! What runs beside the steps of a trial: services, and steps in the background.
//!
//! Each runs on a thread of its own, with a stop of its own, and ends with the agent at the latest.

use super::{
    load::{LoadFailure, LoadRequest, Loader, load_figures},
    measure::{is_accepted, of_command},
};
use crate::{
    command::{CommandLine, CommandOutput, CommandRunner, RunError, SystemRunner, User},
    stop::{Stop, StopReason},
};
use fstone_model::{
    Cell, LoadReport, Step, StepResult, Workload,
    metric::catalog,
    output::SEARCHED_BYTES,
    service::{Ready, Service},
    study::{DeviceSpec, KernelSpec, StepAction},
};
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, Sender, channel, sync_channel},
    },
    thread::{Builder, JoinHandle, sleep},
    time::{Duration, Instant},
};

/// Longer than any trial.
const NO_LIMIT: Duration = Duration::from_secs(1 << 32);
/// How long a command in the background may take to end after SIGTERM.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// How often something that was started is looked at.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// What ended so much before the foreground, as a share of its time, ended early.
const EARLY: f64 = 0.05;
/// What is kept of what a service printed, to say why it failed.
const SEEN_BYTES: usize = 64 << 10;

type Ran = Result<CommandOutput, RunError>;

/// A service that was started.
pub(super) struct Serving {
    pub(super) service: Arc<Service>,
    pub(super) data: PathBuf,
    stop: Arc<Stop>,
    seen: Arc<Mutex<Seen>>,
    life: Arc<Life>,
    thread: JoinHandle<Ran>,
}

#[derive(Default)]
struct Life {
    ended: AtomicBool,
    /// Whether it is being stopped, so that its end is no surprise.
    may_end: AtomicBool,
}

/// What a service printed.
#[derive(Default)]
struct Seen {
    lately: Vec<u8>,
    awaited: Option<Awaited>,
}

/// A text that is looked for in what comes piece by piece, so that it is found however much follows it.
pub(super) struct Awaited {
    text: Vec<u8>,
    end_of_last: Vec<u8>,
    pub(super) found: bool,
}

impl Awaited {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.as_bytes().to_owned(), end_of_last: Vec::new(), found: text.is_empty() }
    }

    pub(super) fn look(&mut self, piece: &[u8]) {
        if !self.found {
            self.end_of_last.extend_from_slice(piece);
            self.found = self.end_of_last.windows(self.text.len()).any(|window| window == self.text);
            self.end_of_last.drain(..self.end_of_last.len().saturating_sub(self.text.len() - 1));
        }
    }
}

impl Serving {
    /// Starts it. Its end, unless it was asked for, stops what `trial` stops.
    pub(super) fn start(
        service: &Arc<Service>,
        data: &Path,
        mut command: CommandLine,
        trial: &Arc<Stop>,
    ) -> io::Result<Self> {
        if service.stop.is_empty() {
            command.grace = service.limit;
        }
        let awaited = if let Ready::Line(line) = &service.ready { Some(Awaited::new(line)) } else { None };
        let (stop, seen) = (Arc::<Stop>::default(), Arc::new(Mutex::new(Seen { lately: Vec::new(), awaited })));
        let runner = SystemRunner::new(Arc::clone(&stop)).seen_by(seer(&seen));
        let life = Arc::<Life>::default();
        let (trial, own) = (Arc::clone(trial), Arc::clone(&life));
        let thread = Builder::new().name("service".to_owned()).spawn(move || {
            let ran = runner.run(&command, NO_LIMIT);
            own.ended.store(true, Ordering::Release);
            if !own.may_end.load(Ordering::Acquire) {
                trial.request(StopReason::Service);
            }
            ran
        })?;
        Ok(Self { service: Arc::clone(service), data: data.to_owned(), stop, seen, life, thread })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.life.ended.load(Ordering::Acquire)
    }

    /// From here on its end is as it should be.
    pub(super) fn expect_end(&self) {
        self.life.may_end.store(true, Ordering::Release);
    }

    pub(super) fn request_stop(&self) {
        self.stop.request(StopReason::Cancelled);
    }

    /// Waits for its end, after a request at the latest. With what it printed lately, to its last word.
    pub(super) fn join(self) -> (Ran, String) {
        let ran = joined(self.thread);
        (ran, printed(&self.seen))
    }

    /// What it printed lately.
    pub(super) fn printed(&self) -> String {
        printed(&self.seen)
    }

    /// Whether it printed the line that says it is ready.
    pub(super) fn has_said(&self) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).awaited.as_ref().is_some_and(|awaited| awaited.found)
    }
}

fn printed(seen: &Mutex<Seen>) -> String {
    String::from_utf8_lossy(&seen.lock().unwrap_or_else(PoisonError::into_inner).lately).into_owned()
}

fn seer(seen: &Arc<Mutex<Seen>>) -> impl Fn(&[u8]) + Send + Sync + use<> {
    let seen = Arc::clone(seen);
    move |bytes| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.awaited.iter_mut().for_each(|awaited| awaited.look(bytes));
        seen.lately.extend_from_slice(bytes);
        // Not with each piece: what prints without end must not cost more than reading it.
        if seen.lately.len() > 2 * SEEN_BYTES {
            let excess = seen.lately.len() - SEEN_BYTES;
            seen.lately.drain(..excess);
        }
    }
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A step that is to run in the background.
pub(super) enum Waiting {
    Command(Step, CommandLine),
    /// Its files are made before the foreground begins.
    Load(Step, Arc<Workload>, LoadPlace),
}

pub(super) struct LoadPlace {
    pub(super) loader: Arc<dyn Loader>,
    pub(super) directory: PathBuf,
    pub(super) seed: u64,
}

enum Ended {
    Command(CommandLine, Ran),
    Load(Result<LoadReport, LoadFailure>),
}

struct Going {
    step: Step,
    /// None while a load waits for the foreground.
    started: Option<Instant>,
    /// A load begins when this is dropped.
    gate: Option<Sender<()>>,
    stop: Arc<Stop>,
    thread: JoinHandle<(Instant, Ended)>,
}

/// The steps that go with one step of the foreground.
#[derive(Default)]
pub(super) struct Company {
    pub(super) waiting: Vec<Waiting>,
    going: Vec<Going>,
    /// Intervals of the foreground that are still to end, and when the last of them did.
    intervals: usize,
    over: Option<Instant>,
    warnings: Vec<String>,
}

/// What a step of the background came to.
pub(super) struct Accompanied {
    pub(super) step: Step,
    pub(super) result: StepResult,
    /// What a command printed that did not fail.
    pub(super) output: Option<CommandOutput>,
}

impl Company {
    /// Makes the files of the loads that wait, and has them wait for [`Company::begin`]. Until `stop` says otherwise. The foreground has
    /// so many intervals.
    pub(super) fn prepare(&mut self, intervals: usize, stop: &Stop) {
        self.intervals = intervals;
        let loads = self.waiting.extract_if(.., |waiting| matches!(waiting, Waiting::Load(..))).collect::<Vec<_>>();
        for waiting in loads {
            let Waiting::Load(step, workload, place) = waiting else { continue };
            let (is_ready, ready) = sync_channel(1);
            let (gate, opened) = channel::<()>();
            let run = move |stop: &Arc<Stop>| {
                let opened = Mutex::new(opened);
                let begin = || {
                    // Nobody waits any more when a later interval begins.
                    let _ = is_ready.try_send(());
                    let _ = opened.lock().unwrap_or_else(PoisonError::into_inner).recv();
                };
                Ended::Load(load(&workload, &place, stop, &begin))
            };
            self.go(step, None, Some(gate), run);
            while ready.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && !stop.is_requested() {}
        }
    }

    fn go(
        &mut self,
        step: Step,
        started: Option<Instant>,
        gate: Option<Sender<()>>,
        run: impl FnOnce(&Arc<Stop>) -> Ended + Send + 'static,
    ) {
        let stop = Arc::<Stop>::default();
        let own = Arc::clone(&stop);
        let thread = Builder::new().name("background".to_owned()).spawn(move || {
            let ended = run(&own);
            (Instant::now(), ended)
        });
        match thread {
            Ok(thread) => self.going.push(Going { step, started, gate, stop, thread }),
            Err(error) => self.warnings.push(format!("{}: it was not started: {error}", step.name)),
        }
    }

    /// Starts all that wait. The interval of the foreground begins with it; doing it again does nothing.
    pub(super) fn begin(&mut self) {
        for going in self.going.iter_mut().filter(|going| going.gate.is_some()) {
            going.started = Some(Instant::now());
            going.gate = None;
        }
        for waiting in std::mem::take(&mut self.waiting) {
            if let Waiting::Command(step, command) = waiting {
                self.go(step, Some(Instant::now()), None, move |stop| {
                    let ran = SystemRunner::new(Arc::clone(stop)).run(&command, NO_LIMIT);
                    Ended::Command(command, ran)
                });
            }
        }
    }

    /// An interval of the foreground ended. With its last one all that go are asked to end, too.
    pub(super) fn interval_ended(&mut self) {
        self.intervals = self.intervals.saturating_sub(1);
        if self.intervals == 0 {
            self.stop();
        }
    }

    fn stop(&mut self) -> Instant {
        for going in &mut self.going {
            going.stop.request(StopReason::Cancelled);
            going.gate = None;
        }
        *self.over.get_or_insert_with(Instant::now)
    }

    /// If all were asked to end, waits until they have: what the foreground measures of itself afterwards is not to have their load.
    pub(super) fn wait(&self) {
        while self.over.is_some() && self.going.iter().any(|going| !going.thread.is_finished()) {
            sleep(Duration::from_millis(1));
        }
    }

    /// Ends all that go, the foreground being done; with what is to be said of them.
    pub(super) fn end(&mut self, foreground: &str) -> (Vec<Accompanied>, Vec<String>) {
        let now = self.stop();
        self.over = None;
        let mut warnings = std::mem::take(&mut self.warnings);
        let waiting = self.waiting.drain(..).map(|waiting| match waiting {
            Waiting::Command(step, _) | Waiting::Load(step, ..) => step.name,
        });
        let unbegun = self.going.iter().filter(|going| going.started.is_none()).map(|going| going.step.name.clone());
        let unbegun = waiting.chain(unbegun).map(|name| format!("{name}: {foreground} ended before it could begin"));
        warnings.extend(unbegun);
        let done = self.going.drain(..).filter_map(|Going { step, started, thread, .. }| {
            let (ended_at, ended) = joined(thread);
            let started = started?;
            let whole = now.saturating_duration_since(started);
            let its_own = ended_at.saturating_duration_since(started);
            let mut warn = |words: String| warnings.push(format!("{}, beside {foreground}: {words}", step.name));
            if its_own.as_secs_f64() < whole.as_secs_f64() * (1.0 - EARLY) {
                let [own, all] = [its_own, whole].map(|time| time.as_secs_f64());
                warn(format!("it ended after {own:.1} s, and the figures are of {all:.1} s"));
            }
            let mut result = StepResult::begun(&step.name);
            let output = match ended {
                Ended::Command(command, ran) => {
                    let was_stopped = matches!(ran, Err(RunError::Stopped { .. }));
                    let (output, words) = of_ran(&step, ran);
                    let is_fine = words.is_none();
                    words.into_iter().for_each(&mut warn);
                    result.commands.extend(output.iter().map(|output| output.record(&command)));
                    result.figures = output.as_ref().map(|output| of_command(Vec::new(), output)).unwrap_or_default();
                    // Of one that was stopped nobody has waited for the processes that it started.
                    let of_one = [catalog::PROCESS_CPU.name, catalog::MAXIMUM_RESIDENT_BYTES.name];
                    result.figures.retain(|figure| !(was_stopped && of_one.contains(&figure.metric.as_str())));
                    output.filter(|_| is_fine)
                }
                Ended::Load(loaded) => {
                    of_load(loaded, its_own, &mut result, &mut warn);
                    None
                }
            };
            Some(Accompanied { step, result, output })
        });
        let done: Vec<Accompanied> = done.collect();
        (done, warnings)
    }
}

/// The output of a command in the background, and what went wrong with it. One that was stopped did nothing wrong.
fn of_ran(step: &Step, ran: Ran) -> (Option<CommandOutput>, Option<String>) {
    match ran {
        Ok(output) if is_accepted(&step.action, output.status) => (Some(output), None),
        Ok(output) => {
            let words = format!("exit status {}: {}", output.status, output.words());
            (Some(output), Some(words))
        }
        Err(RunError::Stopped { output: Some(mut output), .. }) => {
            // It was stopped in the middle of a line, which may be half a number.
            for whole in output.whole.iter_mut().filter(|whole| whole.len() <= SEARCHED_BYTES) {
                whole.truncate(whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
            }
            (Some(*output), None)
        }
        Err(error) => (None, Some(error.to_string())),
    }
}

fn of_load(
    loaded: Result<LoadReport, LoadFailure>,
    time: Duration,
    result: &mut StepResult,
    warn: &mut impl FnMut(String),
) {
    let mut report = match loaded {
        Ok(report) => report,
        Err(LoadFailure::Interrupted(Some(report))) => *report,
        Err(LoadFailure::Interrupted(None)) => return warn("it was stopped before it measured anything".to_owned()),
        Err(LoadFailure::Failed(words)) => return warn(words),
    };
    if report.invocations() == 0 {
        warn("it was stopped before it measured anything".to_owned());
    }
    // It was to end with the foreground: the engine's warning of that is none.
    report.warnings.retain(|words| !words.starts_with("the load was interrupted"));
    report.warnings.iter().for_each(|words| warn(words.clone()));
    report.errors.iter().for_each(|error| warn(super::load::error_words(error)));
    result.figures = load_figures(&report, None);
    result.figures.push(catalog::TIME.figure(time.as_secs_f64()));
    result.load = Some(Box::new(report));
}

fn load(
    workload: &Workload,
    place: &LoadPlace,
    stop: &Stop,
    begin: &(dyn Fn() + Sync),
) -> Result<LoadReport, LoadFailure> {
    place.loader.load(&LoadRequest {
        workload,
        directory: &place.directory,
        seed: place.seed,
        measure_null: false,
        stop: stop.flag(),
        found: &|| (),
        begin,
        end: &|| (),
        phase_ended: &|| (),
        phase_begins: &|| (),
        progress: &|_| (),
        witness: None,
    })
}

/// A user of this machine.
pub(crate) fn user(name: &str) -> Option<User> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found = fields.next() == Some(name);
        let (user, group) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        found.then(|| User { name: name.to_owned(), user, group })
    })
}

/// The first directory on the way to a place that a user cannot enter.
pub(super) fn closed_to(user: &User, place: &Path) -> io::Result<Option<PathBuf>> {
    let mut parts: Vec<&Path> = place.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
    parts.reverse();
    for part in parts {
        let facts = fs::metadata(part)?;
        let bit = match facts.uid() == user.user {
            true => 0o100,
            false if facts.gid() == user.group => 0o010,
            false => 0o001,
        };
        if facts.mode() & bit == 0 {
            return Ok(Some(part.to_owned()));
        }
    }
    Ok(None)
}

/// Whether programs of other users work in a cell's filesystem, on a mount that only its agent sees.
pub(crate) fn has_other_users(cell: &Cell) -> bool {
    let is_mounted = !matches!(cell.device, DeviceSpec::Directory { .. }) && cell.kernel == KernelSpec::Host;
    let has_user = |step: &Step| matches!(&step.action, StepAction::Service(service) if service.user.is_some());
    is_mounted && cell.steps.iter().any(has_user)
}

/// Where a filesystem is mounted that the programs of other users work in: the work directory is closed to them. Only the trial's agent
/// sees that mount, so any directory will do that is empty and that nobody but root can change.
pub(crate) fn open_place() -> Option<PathBuf> {
    ["/mnt", "/media", "/srv"].map(PathBuf::from).into_iter().find(|path| {
        let facts = fs::symlink_metadata(path);
        let is_open = facts.is_ok_and(|facts| facts.is_dir() && facts.uid() == 0 && facts.mode() & 0o077 == 0o055);
        is_open && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
    })
}

/// A text of a service, with the names of directories in it.
pub(crate) fn fill(text: &str, place: &Path, data: &Path) -> String {
    text.replace("{data}", &data.display().to_string()).replace("{mount}", &place.display().to_string())
}

/// A command of a service as it is run.
pub(crate) fn service_command(words: &[String], place: &Path, data: &Path, user: Option<User>) -> Option<CommandLine> {
    let words: Vec<String> = words.iter().map(|word| fill(word, place, data)).collect();
    let (program, args) = words.split_first()?;
    Some(CommandLine { user, ..CommandLine::new(program, args.iter().cloned()).in_directory(data) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_a_stopped_command_printed_last_is_half_a_line() {
        let action =
            |success| StepAction::Command { argv: vec!["app".into()], shell: false, success, figures: Vec::new() };
        let [plain, lenient] = [Vec::new(), vec![3]].map(|success| testing::step("app", action(success)));
        let whole = [b"1,1234567\n2,123".to_vec(), b"12".to_vec()];
        let stopped = Box::new(CommandOutput { status: 143, whole, ..CommandOutput::default() });
        let (output, words) = of_ran(&plain, Err(RunError::Stopped { command: "app".into(), output: Some(stopped) }));
        assert_eq!((output.expect("it ran").whole, words), ([b"1,1234567\n".to_vec(), Vec::new()], None));
        let ended = || Ok(CommandOutput { status: 3, ..CommandOutput::default() });
        assert!(of_ran(&lenient, ended()).1.is_none() && of_ran(&plain, ended()).1.is_some());
    }

    #[test]
    fn what_runs_beside_ends_with_the_last_interval_of_the_foreground() {
        let argv = vec!["sleep".into(), "100".into()];
        let action = StepAction::Command { argv, shell: false, success: Vec::new(), figures: Vec::new() };
        let command = CommandLine { grace: GRACE, ..CommandLine::new("sleep", ["100".to_owned()]) };
        let mut company = Company::default();
        company.waiting.push(Waiting::Command(testing::step("noise", action), command));
        company.prepare(2, &Stop::default());
        company.begin();
        company.interval_ended();
        company.wait();
        sleep(Duration::from_millis(300));
        assert!(company.going.iter().all(|going| !going.thread.is_finished()), "another interval follows");
        company.interval_ended();
        company.wait();
        let measured_afterwards = Duration::from_millis(700);
        sleep(measured_afterwards);
        let (done, warnings) = company.end("app");
        let time = done[0].result.figure(catalog::TIME.name).expect("it ran").value;
        assert!(
            (0.3..0.3 + measured_afterwards.as_secs_f64()).contains(&time) && warnings.is_empty(),
            "{time} {warnings:?}"
        );
    }
}
