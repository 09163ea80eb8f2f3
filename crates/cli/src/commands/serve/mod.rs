//! `fstone serve`: shows the store in a browser on this machine, read-only.

mod http;

use super::{Context, RunState, history, stored::open};
use crate::{
    args::ServeArguments,
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
    watched,
};
use anyhow::Context as _;
use fstone_analysis::{
    Analysis,
    runs::{self, CompareOptions, RunComparison},
};
use fstone_report::{
    Options, compare,
    html::{BoardRun, Live, board, live_json, message},
};
use fstone_store::{ReadError, RunSummary, Store};
use http::{Answer, Gate, Request};
use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

/// Pages of runs that are kept; a page is a megabyte at most.
const KEPT_PAGES: usize = 16;

pub(crate) fn serve(context: &Context, arguments: &ServeArguments) -> CommandResult {
    // Before listening, so that an unreadable store is reported here and not in a browser.
    drop(open(context)?);
    let (listener, address) = http::listen(arguments.port)
        .with_context(|| format!("cannot listen on port {} of this machine; name another with --port", arguments.port))
        .or_exit(Exit::CannotHere)?;
    let token = if arguments.no_token { None } else { Some(token().or_exit(Exit::LabFailed)?) };
    let query = token.as_ref().map_or_else(String::new, |token| format!("/?token={token}"));
    terminal::print_now(&format!(
        "{} is at http://{address}{query}\nAnyone {} can read it there. Ctrl-C stops it.\n",
        context.store.display(),
        if token.is_some() { "who has this address" } else { "on this machine" }
    ))?;
    let server = Server { store: context.store.clone(), kept: Mutex::default() };
    http::serve(&listener, &Gate { address, token }, move |request| server.answer(request));
    Ok(Exit::Success)
}

/// 128 random bits, in hexadecimal digits.
fn token() -> anyhow::Result<String> {
    let mut bytes = [0u8; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .context("cannot generate a token; --no-token does without")?;
    anyhow::ensure!(filled == bytes.len(), "cannot generate a token; --no-token does without");
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

struct Server {
    store: PathBuf,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    pages: Vec<(u64, String)>,
    of: Option<Version>,
}

/// Shows whether a store has changed: the identity, length and modification time of its file and its log. An open connection
/// would show it as well, but while one is open, what others write stays in the log.
#[derive(Clone, PartialEq)]
struct Version {
    files: [Option<(u64, u64, u64)>; 2],
    written: Option<SystemTime>,
}

/// Two changes in this time may leave one time at a file.
const TICK: Duration = Duration::from_secs(1);

impl Version {
    fn of(store: &Path) -> Self {
        let mut log = store.as_os_str().to_owned();
        log.push("-wal");
        let facts = [store, Path::new(&log)].map(|path| std::fs::metadata(path).ok());
        let written = facts.iter().flatten().filter_map(|facts| facts.modified().ok()).max();
        Self { files: facts.map(|facts| facts.map(|facts| (facts.dev(), facts.ino(), facts.len()))), written }
    }

    /// Whether whatever comes after it differs from it.
    fn has_settled(&self) -> bool {
        self.written.is_some_and(|written| written.elapsed().is_ok_and(|since| since > TICK))
    }
}

/// Why there is no page: status and words.
type Refusal = (u16, String);

impl Server {
    fn answer(&self, request: &Request) -> Answer {
        let answered = match request.path.as_str() {
            "/" => self.runs().map(|runs| Answer::html(200, board(&runs))),
            "/live.json" => self.runs().map(|runs| Answer::json(live_json(&runs))),
            "/compare" => self.compare(request),
            "/history" => self.history(request),
            path => match path.strip_prefix("/run/").map(str::parse::<u64>) {
                Some(Ok(run)) => self.run(run),
                _ => Err((404, format!("there is no page {path}"))),
            },
        };
        answered.unwrap_or_else(|(status, words)| Answer::html(status, message(&words, None)))
    }

    fn open(&self) -> Result<Store, Refusal> {
        Store::open_read_only(&self.store).map_err(|error| (500, format!("failed to {error}")))
    }

    fn runs(&self) -> Result<Vec<BoardRun>, Refusal> {
        let store = self.open()?;
        let mut runs = Vec::new();
        for run in store.runs().map_err(|error| failed(&error))? {
            let (state, live) = (RunState::of(&run).word(), live(&store, &run)?);
            runs.push(BoardRun {
                id: run.id,
                study: run.study,
                title: run.title,
                quick: run.quick,
                started_unix_ns: run.started_unix_ns,
                finished_unix_ns: run.finished_unix_ns,
                host: run.host,
                kernel: run.kernel,
                note: run.note.map(Into::into),
                outcomes: run.outcomes,
                state,
                live,
            });
        }
        Ok(runs)
    }

    fn run(&self, id: u64) -> Result<Answer, Refusal> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the store is read, so that a write meanwhile changes the version.
        let version = Version::of(&self.store);
        {
            let mut kept = kept();
            if kept.of.as_ref() != Some(&version) {
                *kept = Kept { pages: Vec::new(), of: Some(version.clone()) };
            }
            if let Some((_, page)) = kept.pages.iter().find(|(of, _)| *of == id) {
                return Ok(Answer::html(200, page.clone()));
            }
        }
        let dataset = self.open()?.shown(id).map_err(|error| failed(&error))?;
        let options = Options { published: dataset.run.plan.published.is_some(), ..Options::default() };
        let page = fstone_report::html(&dataset, &options);
        let mut kept = kept();
        if version.has_settled() && kept.of.as_ref() == Some(&version) {
            if kept.pages.len() == KEPT_PAGES {
                kept.pages.remove(0);
            }
            kept.pages.push((id, page.clone()));
        }
        Ok(Answer::html(200, page))
    }

    fn compare(&self, request: &Request) -> Result<Answer, Refusal> {
        let number = |name: &str| {
            let value = request.value(name).and_then(|value| value.parse::<u64>().ok());
            value.ok_or_else(|| (400, "choose two runs: one before, one after".to_owned()))
        };
        let (before, after) = (number("before")?, number("after")?);
        if before == after {
            return Err((400, "these are one and the same run; choose two".to_owned()));
        }
        let store = self.open()?;
        let (first, second) = (
            store.figures(before).map_err(|error| failed(&error))?,
            store.figures(after).map_err(|error| failed(&error))?,
        );
        let mismatches = runs::mismatches(&first, &second);
        let never = mismatches.iter().any(|mismatch| mismatch.setting == runs::Setting::Clock);
        if never || (!mismatches.is_empty() && request.value("across").is_none()) {
            let told: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
            let words = format!("Run {after} is not compared with run {before}: {}.", told.join("; "));
            let anyway = format!("/compare?before={before}&after={after}&across=1");
            let anyway = (!never).then_some((anyway.as_str(), "Compare them all the same"));
            return Ok(Answer::html(409, message(&words, anyway)));
        }
        let (first, second) = (Analysis::of(&first), Analysis::of(&second));
        let names = (format!("run {before}"), format!("run {after}"));
        let comparison = RunComparison::of((&first, &names.0), (&second, &names.1), &CompareOptions::default());
        Ok(Answer::html(200, compare::html(&comparison, Some("/"))))
    }

    fn history(&self, request: &Request) -> Result<Answer, Refusal> {
        let store = self.open()?;
        let found = history::find(&store, request.value("study"), request.value("row"), request.value("column"));
        let history = found.map_err(|Failure { error, .. }| (404, error.to_string()))?;
        Ok(Answer::html(200, fstone_report::history::html(&history, Some("/"))))
    }
}

fn failed(error: &ReadError) -> Refusal {
    let status = if matches!(error, ReadError::NoSuchRun { .. }) { 404 } else { 500 };
    (status, format!("failed to {error}"))
}

/// The progress of a run; `None` if it is not in progress.
fn live(store: &Store, run: &RunSummary) -> Result<Option<Live>, Refusal> {
    let RunState::InProgress(holder) = RunState::of(run) else { return Ok(None) };
    let current = store.unfinished(run.id).map_err(|error| failed(&error))?.pop();
    let label = match &current {
        Some(attempt) => store.cell_label(run.id, attempt.id.cell).map_err(|error| failed(&error))?,
        None => None,
    };
    let now = super::now_unix_ns();
    Ok(Some(Live {
        run: run.id,
        trials: run.trials,
        planned: run.planned_minimum,
        current: label,
        now: watched::ask(holder.process, &run.identity),
        since_seconds: current
            .map(|attempt| Duration::from_nanos(now.saturating_sub(attempt.started_unix_ns)).as_secs()),
    }))
}
