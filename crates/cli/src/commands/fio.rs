//! `fstone fio`: fio's command lines and job files, unchanged, in the working directory.

mod live;

use super::{
    Context, cancel_on_signals,
    claimed_device::ClaimedDevice,
    load::{self, EndedLoad, beside, beside_noting},
    now_unix_ns,
};
use crate::{
    args::FioArguments,
    documents,
    exit::Exit,
    paths,
    progress::LiveLoad,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_engine::{IdleMeter, LoadError, Ownership};
use fstone_files::{Temporary, destination, directory_of, read_text, regular};
use fstone_formats::{
    Source,
    fio::{
        self, Asked, CommandLine, Hint, Idle, IdleProfile, Job, Options, Output, OutputFormat, Placement, Plan, When,
    },
};
use fstone_model::{
    LoadReport, Workload,
    load::{ErrorReport, GroupFsyncs, OperationReport, ThreadReport},
    workload::{Existing, Tolerated},
};
use fstone_record::{Iolog, IologReport, IologSettings, IologWriter, Transfers};
use live::FioLoad;
use rustix::fs::Advice;
use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Seek as _, SeekFrom},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock, atomic::Ordering},
    thread,
    time::Instant,
};

pub(crate) fn fio(_context: &Context, arguments: &FioArguments) -> CommandResult {
    let line = fio::parse_command_line(&arguments.words).or_exit(Exit::BadInput)?;
    match line.asked {
        Some(Asked::Help) => {
            terminal::print(&fio::help());
            return Ok(Exit::Success);
        }
        Some(Asked::Engines) => {
            terminal::print(&fio::engines());
            return Ok(Exit::Success);
        }
        Some(Asked::Version) => {
            terminal::print(&fio::version());
            return Ok(Exit::Success);
        }
        None => {}
    }
    let idle = line.output.idle.map(|profile| Ok((IdleMeter::start()?, profile == IdleProfile::PerCpu)));
    let idle: Option<(IdleMeter, bool)> =
        idle.transpose().map_err(|error: io::Error| Failure::new(Exit::LabFailed, format!("--idle-prof: {error}")))?;
    let idle_found = || idle.as_ref().map(|(meter, per_cpu)| Idle { found: meter.found(), per_cpu: *per_cpu });
    if let (Some(IdleProfile::Calibrate), Some(found)) = (line.output.idle, idle_found()) {
        terminal::print(&found.text(false));
        return Ok(Exit::Success);
    }
    let files = files(&line)?;
    if line.show_command {
        let first = line.files.first().map_or_else(PathBuf::new, PathBuf::from);
        terminal::print(&line.shown(&files, &mut beside(&first)));
        return Ok(Exit::Success);
    }
    let (mut plan, included) = plan(&line, &files)?;
    if let Some(warnings) = &plan.warnings {
        terminal::tell(&format!("{warnings}\n"));
    }
    if let Some(group) = plan.writes().filter(|_| line.read_only) {
        let why = format!("job {group} writes, and --readonly says that none may");
        return Err(Failure::new(Exit::BadInput, why));
    }
    if line.read_only {
        plan.workload.filesets.iter_mut().for_each(|fileset| fileset.existing = Existing::Require);
    }
    if line.parse_only {
        return Ok(Exit::Success);
    }
    // A directory that is mistyped, or whose filesystem is not mounted, must not be created by mistake.
    let mut directories =
        plan.jobs.iter().flat_map(|job| job.directories.iter().map(move |directory| (job, directory)));
    if let Some((job, directory)) = directories.find(|(_, directory)| !Path::new(directory).is_dir()) {
        let why =
            format!("the directory {directory} of {} does not exist; make it, or mount its filesystem first", job.name);
        return Err(Failure::new(Exit::BadInput, why));
    }
    // A missing directory must not cost the results.
    if let Some(file) = &line.output.file {
        paths::require_directory_of(Path::new(file), " with --output")?;
    }
    for prefix in plan.jobs.iter().flat_map(|job| &job.logs).flatten() {
        paths::require_directory_of(Path::new(prefix), " for the log")?;
    }
    let device = device(&plan, &line)?;
    let begun = Instant::now();
    let seed = line.seed.or(plan.seed());
    let taken = taken(&plan, &line, &included)?;
    let call_logs = call_logs(&plan)?;
    let output = Printed::default();
    let show = |report: &LoadReport| {
        let plan = begun_of(&plan, report);
        let text = printed(&line.output, &plan, report, &when(begun, report));
        if let Err(failure) = output.write(line.output.file.as_deref(), &text) {
            terminal::tell(&format!("warning: {:#}\n", failure.error));
        }
    };
    let live = || {
        let of_parts = plan.parts.iter().filter_map(|part| Some((part, &call_logs.get(&part.job)?.lines)));
        let of_groups = of_parts.flat_map(|(part, log)| part.groups().map(|group| (group.clone(), log.clone() as _)));
        let live = LiveLoad::new(line.shows_progress).with_logs(of_groups.collect());
        let meter = idle.as_ref().map(|(meter, _)| meter);
        FioLoad::new(live, meter, line.output.status_every, show)
            .context("cannot handle signals")
            .or_exit(Exit::LabFailed)
    };
    let run = |workload: &Workload, directory: &Path, ownership: Ownership| {
        let live = live()?;
        let ended = load::run_observed(workload, directory, seed, &live, ownership);
        live.finish();
        ended
    };
    let ended = match &device {
        _ if plan.has_iologs() => {
            // There is nothing to print before the end, which is no reason to end.
            let registered = signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::default());
            registered.context("cannot handle signals").or_exit(Exit::LabFailed)?;
            idle.iter().for_each(|(meter, _)| meter.begin());
            let ended = carry_out(&plan, line.read_only, &taken);
            idle.iter().for_each(|(meter, _)| meter.end());
            ended?
        }
        Some(device) => run(&device.workload, &device.directory, Ownership::Device)?,
        // As with fio: the files that a job names belong to it, whoever made them, and directories may be anywhere.
        None => run(&plan.workload, Path::new("."), Ownership::ByName)?,
    };
    let report = &ended.report;
    let when = When { idle: idle_found(), ..when(begun, report) };
    ended.tell_warnings();
    let text = printed(&line.output, &plan, report, &when);
    if let Err(failure) = output.write(line.output.file.as_deref(), &text) {
        // What was measured is not lost.
        terminal::print_document(&text);
        return Err(failure);
    }
    // All others, too, if one cannot be written.
    let own = call_logs.into_values().map(CallsOfJob::publish);
    let over_time =
        fio::logs(&plan, report).into_iter().map(|log| documents::write_as_others(Path::new(&log.file), &log.text));
    let written: Vec<Result<(), Failure>> = own.chain(over_time).collect();
    ended.tell_errors();
    let tolerated = |error: &ErrorReport| {
        let part = plan.parts.iter().find(|part| part.groups().any(|group| *group == error.group));
        let goes_on_after = part.map(|part| plan.jobs[part.job].goes_on_after()).unwrap_or_default();
        goes_on_after.iter().any(|of| of.covers(&error.call, error.errno))
    };
    written.into_iter().collect::<Result<(), Failure>>()?;
    Ok(ended.exit_but(Exit::InterruptedAsFio, tolerated))
}

/// A file that is there, whatever it is called, or where one would be made.
#[derive(PartialEq, Eq, Hash)]
enum Spot {
    File(u64, u64),
    Missing(PathBuf),
}

impl Spot {
    /// `None` of what is no regular file.
    fn of(path: impl AsRef<Path>) -> Option<Self> {
        let path = path.as_ref();
        match std::fs::metadata(path) {
            Ok(found) => found.is_file().then(|| Self::File(found.dev(), found.ino())),
            Err(_) => Some(Self::Missing(destination(path).unwrap_or_else(|_| path.to_owned()))),
        }
    }
}

const READ: &str = "a file that this command reads";
const USED: &str = "a file of its jobs";
const WRITTEN: &str = "another of its outputs";

/// All files that the command reads or writes, but those of logs that are carried out. Refuses an output in the place of one of them.
fn taken(plan: &Plan, line: &CommandLine, included: &[PathBuf]) -> Result<HashMap<Spot, &'static str>, Failure> {
    let read = line.files.iter().chain(plan.jobs.iter().flat_map(|job| &job.iologs));
    let read = read.map(Path::new).chain(included.iter().map(PathBuf::as_path));
    let mut taken: HashMap<Spot, &str> = read.filter_map(|name| Some((Spot::of(name)?, READ))).collect();
    let logs = fio::logs(plan, &LoadReport::default());
    let outputs: Vec<&String> = (line.output.file.iter())
        .chain(plan.jobs.iter().filter_map(|job| job.call_log.as_ref()))
        .chain(logs.iter().map(|log| &log.file))
        .collect();
    if outputs.is_empty() {
        return Ok(taken);
    }
    let (exact, numbered): (Vec<_>, Vec<_>) = plan.workload.filesets.iter().partition(|fileset| fileset.naming.exact);
    let files = exact.into_iter().map(|of| Path::new(&of.directory).join(&of.naming.file_prefix));
    taken.extend(files.filter_map(|file| Some((Spot::of(file)?, USED))));
    for output in outputs {
        let Some(spot) = Spot::of(output) else { continue };
        let real = destination(Path::new(output)).unwrap_or_default();
        let name = real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_numbered = numbered.iter().any(|of| {
            let number = name.strip_prefix(&of.naming.file_prefix).and_then(|rest| rest.parse::<u64>().ok());
            let directory = Path::new(".").join(&of.directory);
            number.is_some() && directory.canonicalize().is_ok_and(|directory| directory == directory_of(&real))
        });
        if let Some(what) = taken.insert(spot, WRITTEN).or(is_numbered.then_some(USED)) {
            let why = format!("{output} would overwrite {what}; give it another name");
            return Err(Failure::new(Exit::BadInput, why));
        }
    }
    Ok(taken)
}

/// What a job does, written to a file that gets its name when the load has ended.
struct CallsOfJob {
    name: String,
    to: PathBuf,
    file: Temporary,
    lines: Arc<IologWriter>,
}

impl CallsOfJob {
    fn publish(self) -> Result<(), Failure> {
        let Self { name, to, file, lines } = self;
        let published = lines.finish().and_then(|()| match std::fs::metadata(&to) {
            Ok(there) if there.len() == 0 => file.resemble(&to).and_then(|_| file.replace(&to)),
            _ => file.publish(&to),
        });
        published.with_context(|| format!("cannot write {name}")).or_exit(Exit::LabFailed)
    }
}

/// Logs that jobs write, by job. A file in which there is something is not overwritten.
fn call_logs(plan: &Plan) -> Result<HashMap<usize, CallsOfJob>, Failure> {
    let mut logs = HashMap::new();
    for (job, name) in plan.jobs.iter().enumerate().filter_map(|(job, of)| Some((job, of.call_log.as_deref()?))) {
        let path = Path::new(name);
        paths::require_directory_of(path, " for the log")?;
        if std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0) {
            let why = format!("{name} is there already, and no program reads a log behind another; remove it first");
            return Err(Failure::new(Exit::BadInput, why));
        }
        let made = regular(path).and_then(|_| {
            let to = destination(path)?;
            let file = Temporary::beside(&to)?;
            file.file().set_permissions(std::fs::Permissions::from_mode(documents::usual_mode()))?;
            let lines = Arc::new(IologWriter::new(file.file().try_clone()?)?);
            Ok(CallsOfJob { name: name.to_owned(), to, file, lines })
        });
        logs.insert(job, made.with_context(|| format!("cannot write {name}")).or_exit(Exit::LabFailed)?);
    }
    Ok(logs)
}

/// Where a log would write, if that is outside of the working directory, also through links, and not a file that its job names, as it has to
/// be for a load.
fn written_elsewhere<'l>(log: &'l Iolog, job: &Job) -> Option<&'l str> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    let is_below = |name: &str| {
        let path = Path::new(name);
        let leads_there = match path.canonicalize() {
            Ok(real) => real.starts_with(&here),
            Err(_) if path.is_symlink() => false,
            Err(_) => {
                // What is in no directory cannot be made.
                fstone_files::directory_of(path).canonicalize().map_or(true, |above| above.starts_with(&here))
            }
        };
        let mut parts = path.strip_prefix(&here).unwrap_or(path).components();
        leads_there && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    let mut written = log.files(None).filter(|(_, written)| *written && job.redirect.is_none()).map(|(name, _)| name);
    written.find(|name| !is_below(name) && !job.filenames.iter().any(|named| named == name))
}

/// Has a thread of each clone carry out its log; they begin together.
fn carry_out(plan: &Plan, read_only: bool, taken: &HashMap<Spot, &str>) -> Result<EndedLoad, Failure> {
    let cancel = cancel_on_signals()?;
    let mut all = Vec::new();
    for part in &plan.parts {
        let job = &plan.jobs[part.job];
        let name = &job.iologs[part.clone as usize % job.iologs.len()];
        let log = Iolog::read(Path::new(name)).with_context(|| format!("cannot carry out the log {name}"));
        let log = log.or_exit(Exit::BadInput)?;
        if read_only && log.writes() {
            let why = format!("{name} of {} writes, and --readonly says that none may", job.name);
            return Err(Failure::new(Exit::BadInput, why));
        }
        if let Some(device) = log.missing_device(job.redirect.as_deref()) {
            let why = format!("{}: there is no such device", device.display());
            return Err(Failure::new(Exit::CannotHere, why));
        }
        for (file, written) in log.files(job.redirect.as_deref()) {
            let what = Spot::of(file).and_then(|spot| taken.get(&spot)).filter(|what| written || **what != READ);
            if let Some(what) = what {
                let why = format!("{name} of {} uses {file}, which is {what}", job.name);
                return Err(Failure::new(Exit::BadInput, why));
            }
        }
        if let Some(file) = written_elsewhere(&log, job) {
            let why = format!("{name} of {} writes {file}, which is elsewhere; name it with filename={file}", job.name);
            return Err(Failure::new(Exit::BadInput, why));
        }
        all.push((part, job, log, job.goes_on_after()));
    }
    fstone_engine::raise_descriptor_limit();
    let all_started = RwLock::new(false);
    let reports: Result<Vec<IologReport>, LoadError> = thread::scope(|scope| {
        // Threads wait for it. Dropped when one cannot be started: those before it then do nothing.
        let mut starting = all_started.write().unwrap_or_else(PoisonError::into_inner);
        let run = |(_, job, log, tolerated): &(_, &Job, Iolog, Vec<Tolerated>)| {
            let settings = IologSettings {
                no_stall: job.no_stall,
                percent: job.replay_percent,
                redirect: job.redirect.as_deref(),
                direct: job.direct,
                invalidate: job.invalidate,
                advice: match (job.hint, job.direction.random) {
                    (Hint::None, _) => None,
                    (Hint::Random, _) | (Hint::ByType, true) => Some(Advice::Random),
                    (Hint::Sequential, _) | (Hint::ByType, false) => Some(Advice::Sequential),
                },
                goes_on_after: tolerated,
                cancel: &cancel,
            };
            if !*all_started.read().unwrap_or_else(PoisonError::into_inner) {
                return IologReport::default();
            }
            log.run(&settings)
        };
        let mut threads = Vec::new();
        for one in &all {
            match thread::Builder::new().spawn_scoped(scope, move || run(one)) {
                Ok(thread) => threads.push(thread),
                Err(cause) => {
                    let (started, wanted) = (threads.len() as u32, all.len() as u32);
                    return Err(LoadError::Threads { started, wanted, cause });
                }
            }
        }
        *starting = true;
        drop(starting);
        Ok(threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect())
    });
    let reports = reports.map_err(load::failure)?;
    let longest_ns = reports.iter().map(|report| report.elapsed_ns).max().unwrap_or(0);
    let mut report = LoadReport {
        elapsed_ns: longest_ns,
        running_ns: longest_ns,
        threads: reports.len() as u32,
        ..LoadReport::default()
    };
    for ((part, ..), one) in all.iter().zip(reports) {
        let group = part.group.clone();
        let operation = |name: &str, of: &Transfers, read_bytes: u64, written_bytes: u64| OperationReport {
            group: group.clone(),
            name: name.to_owned(),
            invocations: of.count,
            latency: of.latency.clone(),
            read_bytes,
            written_bytes,
            ..OperationReport::default()
        };
        let operations = one.reads.count + one.writes.count;
        // All its errors, also of syncs.
        let errors = one.errors.iter().map(|error| error.count).sum();
        report.operations.push(OperationReport { errors, ..operation("read", &one.reads, one.reads.bytes, 0) });
        report.operations.push(operation("write", &one.writes, 0, one.writes.bytes));
        report.group_fsyncs.push(GroupFsyncs {
            group: group.clone(),
            periodic: one.syncs.count,
            latency: one.syncs.latency,
            ..GroupFsyncs::default()
        });
        report.errors.extend(one.errors.into_iter().map(|error| ErrorReport {
            group: group.clone(),
            operation: error.call.to_owned(),
            call: error.call.to_owned(),
            path: error.path,
            errno: error.errno.raw_os_error(),
            text: error.errno.to_string(),
            count: error.count,
        }));
        let (elapsed_ns, usage) = (one.elapsed_ns, one.usage);
        report.per_thread.push(ThreadReport { group, operations, elapsed_ns, usage, ..ThreadReport::default() });
    }
    Ok(EndedLoad { report, interrupted: cancel.load(Ordering::Relaxed) })
}

/// The block device that the jobs work on, if they do. To be written it has to be named a second time.
fn device(plan: &Plan, line: &CommandLine) -> Result<Option<ClaimedDevice>, Failure> {
    let Some((path, writes)) = plan.device() else { return Ok(None) };
    let (path, workload) = (Path::new(&path), plan.workload.clone());
    let [allowed, allowed_data] = [&line.allow_destroy, &line.allow_destroy_data]
        .map(|paths| paths.iter().map(PathBuf::from).collect::<Vec<PathBuf>>());
    let device = if writes {
        ClaimedDevice::claim(path, &allowed, &allowed_data, workload)
    } else {
        ClaimedDevice::read(path, workload)
    };
    device.map(Some)
}

/// The size of a regular file or a block device.
fn size_of(path: &str) -> Option<u64> {
    let of = std::fs::metadata(path).ok()?;
    if of.file_type().is_block_device() {
        return File::open(path).and_then(|mut device| device.seek(SeekFrom::End(0))).ok();
    }
    of.is_file().then_some(of.len())
}

fn files(line: &CommandLine) -> Result<Vec<Source>, Failure> {
    let read = |name: &String| {
        let path = if name == "-" { "/dev/stdin" } else { name };
        let text = read_text(Path::new(path)).with_context(|| format!("cannot read {name}"));
        Ok(Source::new(name, text.or_exit(Exit::BadInput)?))
    };
    line.files.iter().map(read).collect()
}

/// What the command line and its job files say, and which other files those include.
fn plan(line: &CommandLine, files: &[Source]) -> Result<(Plan, Vec<PathBuf>), Failure> {
    let first = line.files.first().map_or_else(PathBuf::new, PathBuf::from);
    let mut included = Vec::new();
    let plan = line.plan(
        files,
        &mut Options {
            placement: Placement::AsWritten,
            sections: &line.sections,
            variable: &variable,
            size_of: &size_of,
            real: &|directory| Some(Path::new(directory).canonicalize().ok()?.to_str()?.to_owned()),
            loader: &mut beside_noting(&first, |path| included.push(path.to_owned())),
            seconds: None,
        },
    );
    Ok((plan.or_exit(Exit::BadInput)?, included))
}

/// A variable of the environment, or what `$ncpus` and its like are here.
fn variable(name: &str) -> Option<String> {
    match name {
        "$ncpus" => std::thread::available_parallelism().ok().map(|cpus| cpus.to_string()),
        "$pagesize" => Some(rustix::param::page_size().to_string()),
        "$mb_memory" => {
            let text = std::fs::read_to_string("/proc/meminfo").ok()?;
            let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
            let kib: u64 = total.trim().strip_suffix(" kB")?.parse().ok()?;
            Some((kib >> 10).to_string())
        }
        _ => std::env::var(name).ok(),
    }
}

fn printed(output: &Output, plan: &Plan, report: &LoadReport, when: &When) -> String {
    let one = |format: &OutputFormat| match format {
        OutputFormat::Normal => fio::normal(plan, report, when),
        OutputFormat::Terse => fio::terse(plan, report, output.terse),
        OutputFormat::Json => fio::json(plan, report, when, false),
        OutputFormat::JsonPlus => fio::json(plan, report, when, true),
    };
    output.formats.iter().map(one).collect()
}

/// The plan with the jobs alone that have begun, and of these the phases that have, which fio prints while others still run.
fn begun_of(plan: &Plan, report: &LoadReport) -> Plan {
    let begun: HashSet<&str> = report.per_thread.iter().map(|thread| thread.group.as_str()).collect();
    let mut plan = plan.clone();
    plan.parts.retain(|part| part.groups().any(|group| begun.contains(group.as_str())));
    for part in &mut plan.parts {
        // The time of one that has not begun is not part of the job's.
        part.again.retain(|group| begun.contains(group.as_str()));
        part.verify.retain(|group| begun.contains(group.as_str()));
    }
    plan
}

/// Where results go: each text behind those before it.
#[derive(Default)]
struct Printed {
    state: Mutex<PrintedState>,
}

#[derive(Default)]
struct PrintedState {
    /// The file that holds what was written. `None` before the first text, and of what is no file, which is written into each time.
    file: Option<PathBuf>,
    /// Texts that could not be written yet.
    left: Vec<u8>,
}

impl Printed {
    fn write(&self, file: Option<&str>, text: &str) -> Result<(), Failure> {
        let Some(file) = file else {
            terminal::print_document(text);
            return Ok(());
        };
        let path = Path::new(file);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let PrintedState { file: ours, left } = &mut *state;
        left.extend_from_slice(text.as_bytes());
        if let Some(ours) = ours.as_ref().filter(|ours| ours.symlink_metadata().is_ok_and(|found| found.is_file())) {
            return documents::append(ours, left);
        }
        documents::write_as_others(path, &*left)?;
        left.clear();
        *ours = documents::file_of(path);
        Ok(())
    }
}

fn when(begun: Instant, report: &LoadReport) -> When {
    let now_ns = now_unix_ns();
    let elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    When {
        unix_ms: now_ns / 1_000_000,
        text: fstone_analysis::when::ctime(now_ns),
        elapsed_ns: elapsed_ns.saturating_sub(report.setup_ns),
        idle: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_could_not_be_written_comes_before_the_next() {
        let directory = tempfile::tempdir().expect("a directory");
        let (above, file) = (directory.path().join("above"), directory.path().join("above/out"));
        std::fs::write(&above, "no directory").expect("ours");
        let name = file.to_str();
        let printed = Printed::default();
        assert!(printed.write(name, "first\n").is_err());
        std::fs::remove_file(&above).and_then(|()| std::fs::create_dir(&above)).expect("ours");
        std::fs::write(&file, "of an earlier run\n").expect("ours");
        for text in ["second\n", "third\n"] {
            assert!(printed.write(name, text).is_ok());
        }
        assert_eq!(std::fs::read_to_string(&file).expect("it was written"), "first\nsecond\nthird\n");
    }

    #[test]
    fn texts_behind_a_link_are_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let [link, file] = ["link", "file"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink("file", &link).expect("ours");
        std::fs::write(&file, "of an earlier run\n").expect("ours");
        let printed = Printed::default();
        for text in ["first\n", "second\n"] {
            assert!(printed.write(link.to_str(), text).is_ok());
        }
        assert_eq!(std::fs::read_to_string(&file).expect("it was written"), "first\nsecond\n");
        assert!(link.is_symlink());
    }
}
