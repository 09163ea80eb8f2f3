//! Services, and steps in the background: how a session starts them, watches them and ends them.

use super::{
    Call,
    judge::{last_words, open_below},
    take_figures,
};
use crate::{
    command::{CommandLine, CommandOutput, NOT_FOUND, RunError, User},
    meters::{KernelWork, Meters},
    place::device::ScratchDevice,
    trial::{
        beside::{Awaited, GRACE, LOOK, LoadPlace, Serving, Waiting, closed_to, fill, service_command, user},
        measure::of_interval,
        record::{Halt, StepReport, failed, not_installed, skipped},
        session::Session,
    },
};
use fstone_model::{
    Outcome, Step,
    metric::catalog,
    outcome::Reason,
    service::{Ready, Service},
    study::StepAction,
    text,
    units::format_duration,
};
use rustix::{
    fs::{XattrFlags, lgetxattr, lsetxattr},
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with},
};
use std::{
    fs::{self, DirBuilder, Permissions},
    io::{self, Read as _, Seek as _, SeekFrom},
    net::{TcpStream, ToSocketAddrs as _},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown},
    path::Path,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

/// How often a command that says whether a service is ready is run.
const ASK: Duration = Duration::from_millis(100);
/// How long an address may take to accept a connection.
const ANSWER: Duration = Duration::from_secs(1);
const LOG_LINES: usize = 5;
/// Longest line of a log that is quoted, in characters.
const LOG_LINE: usize = 300;
/// Exit status of what SIGTERM ends.
const TERMINATED: i32 = 128 + 15;
/// What is read of a log file at once.
const LOG_BYTES: u64 = 64 << 10;

impl Session {
    /// Starts a service, and waits until it answers.
    pub(super) fn serve(&mut self, step: &Step, service: &Arc<Service>, report: &mut StepReport) -> Result<(), Halt> {
        if self.services.iter().any(|serving| serving.service.name == service.name) {
            return Err(failed(step, format!("{} runs already", service.name)));
        }
        let user = match service.user.as_deref().filter(|_| self.machine.privileged) {
            None => None,
            Some(name) => {
                let found = user(name);
                Some(found.ok_or_else(|| skipped(&step.name, format!("this machine has no user {name}")))?)
            }
        };
        let meters = Meters::begin(self.device.as_ref().map(ScratchDevice::path));
        let (place, data) = (self.place.clone(), self.place.join(&service.name));
        let command = |words: &[String]| service_command(words, &place, &data, user.clone());
        if !self.made.contains(&service.name) {
            self.make_data(step, user.as_ref(), &data)?;
            if let Some(make) = command(&service.make) {
                let output = self.run(step, &make, report)?;
                if output.status != 0 {
                    let words = format!("{}: exit status {}: {}", make.typed(), output.status, last_words(&output));
                    return Err(missing_program(&step.name, &output, words));
                }
            }
            self.made.push(service.name.clone());
        }
        let Some(start) = command(&service.start) else { return Err(failed(step, "it has no command".to_owned())) };
        if let Ready::Socket(socket) = &service.ready {
            let socket = fill(socket, &self.place, &data);
            if answers(&socket, ANSWER).is_ok() {
                return Err(failed(step, format!("something else accepts connections at {socket}")));
            }
        }
        // What it said when it ran before says nothing of now.
        let said_bytes = self.log_file(service).and_then(|file| Some(file.metadata().ok()?.len())).unwrap_or(0);
        let serving = Serving::start(service, &data, start, &self.machine.stop)
            .map_err(|error| failed(step, error.to_string()))?;
        self.services.push(serving);
        self.until_ready(step, service, &command, said_bytes)?;
        let readings = meters.end();
        report.figures = of_interval(&readings);
        report.commands.extend(readings.work.as_ref().map(KernelWork::record));
        Ok(())
    }

    /// The directory of a service, which its user can enter and nobody else.
    fn make_data(&self, step: &Step, user: Option<&User>, data: &Path) -> Result<(), Halt> {
        let cannot = |error: io::Error| failed(step, format!("{}: {error}", data.display()));
        let Some(user) = user else { return DirBuilder::new().mode(0o700).create(data).map_err(cannot) };
        let mut way = self.place.as_path();
        if !self.mounted && self.own.is_none() {
            let_in(user, way).map_err(cannot)?;
            way = way.parent().unwrap_or(way);
        }
        if let Some(closed) = closed_to(user, way).map_err(cannot)? {
            let words = format!("{} cannot enter {}", user.name, closed.display());
            let cure =
                "empty /mnt, /media or /srv, or name a directory that this user can enter with --device directory:PATH";
            return Err(Halt::Outcome(Outcome::Skipped(Reason::new(&step.name, words).with_cure(cure))));
        }
        DirBuilder::new().mode(0o700).create(data).map_err(cannot)?;
        lchown(data, Some(user.user), Some(user.group)).map_err(cannot)
    }

    fn until_ready(
        &mut self,
        step: &Step,
        service: &Service,
        command: &dyn Fn(&[String]) -> Option<CommandLine>,
        mut read_bytes: u64,
    ) -> Result<(), Halt> {
        let started = Instant::now();
        let mut asked = None::<Instant>;
        let mut in_file = Awaited::new(if let Ready::Line(line) = &service.ready { line } else { "" });
        // Why it is not ready, as far as that is known.
        let mut lacks = String::new();
        loop {
            let Some(serving) = self.services.last() else { return Ok(()) };
            if serving.has_ended() {
                return self.check_services(&step.name);
            }
            let rest = service.limit.saturating_sub(started.elapsed()).max(LOOK);
            let is_ready = match &service.ready {
                Ready::Line(_) => {
                    // All that is there now; what comes later is read later.
                    let from = |length, read_bytes| if length < read_bytes { 0 } else { read_bytes };
                    while let Some((start, piece)) = self.log_of(service, |length| from(length, read_bytes))
                        && !piece.is_empty()
                    {
                        read_bytes = start + piece.len() as u64;
                        in_file.look(&piece);
                        if in_file.found || piece.len() < LOG_BYTES as usize || self.machine.stop.is_requested() {
                            break;
                        }
                    }
                    serving.has_said() || in_file.found
                }
                Ready::Socket(socket) => {
                    let socket = fill(socket, &self.place, &serving.data);
                    let answered = answers(&socket, rest);
                    lacks = answered.as_ref().err().map(|error| format!(" ({socket}: {error})")).unwrap_or_default();
                    answered.is_ok()
                }
                Ready::Command(_) if asked.is_some_and(|asked| asked.elapsed() < ASK) => false,
                Ready::Command(words) => {
                    asked = Some(Instant::now());
                    let Some(asking) = command(words) else { return Ok(()) };
                    match self.machine.runner.run(&asking, rest) {
                        Err(RunError::NotFound { program }) => return Err(not_installed(&step.name, &program)),
                        Ok(output) if output.status == 0 => true,
                        Ok(output) => {
                            lacks = format!(" ({}: exit status {}: {})", asking.typed(), output.status, output.words());
                            false
                        }
                        Err(error) => {
                            // The last one may be cut short by the limit, and what one before said tells more.
                            if lacks.is_empty() {
                                lacks = format!(" ({error})");
                            }
                            false
                        }
                    }
                }
            };
            if is_ready {
                return Ok(());
            }
            if self.machine.stop.is_requested() && !serving.has_ended() {
                return Err(Halt::Stopped(step.name.clone()));
            }
            if started.elapsed() >= service.limit {
                let limit = format_duration(service.limit);
                let words = format!(
                    "{} was not ready within {limit}{lacks}; {}",
                    service.name,
                    self.said_by(service, &serving.printed())
                );
                return Err(failed(step, words));
            }
            sleep(LOOK);
        }
    }

    /// A piece of a service's log file, from a place that its length may decide.
    fn log_of(&self, service: &Service, from: impl FnOnce(u64) -> u64) -> Option<(u64, Vec<u8>)> {
        let mut file = self.log_file(service)?;
        let start = from(file.metadata().ok()?.len());
        file.seek(SeekFrom::Start(start)).ok()?;
        let mut piece = Vec::new();
        file.take(LOG_BYTES).read_to_end(&mut piece).ok()?;
        Some((start, piece))
    }

    fn log_file(&self, service: &Service) -> Option<fs::File> {
        open_below(&self.place, &format!("{}/{}", service.name, service.log.as_ref()?)).ok()
    }

    /// The last lines of a service's log, for a reason.
    fn said_by(&self, service: &Service, printed: &str) -> String {
        let in_file = self.log_of(service, |length| length.saturating_sub(LOG_BYTES));
        let in_file = in_file.map(|(_, piece)| piece).unwrap_or_default();
        let log = printed.to_owned() + &String::from_utf8_lossy(&in_file);
        let log = text::lines(&log);
        let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let quoted = |line: &&str| match line.char_indices().nth(LOG_LINE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => (*line).to_owned(),
        };
        match &lines[lines.len().saturating_sub(LOG_LINES)..] {
            [] => "its log is empty".to_owned(),
            last => format!("its log ends with: {}", last.iter().map(quoted).collect::<Vec<_>>().join("; ")),
        }
    }

    /// A service that has ended by itself fails the step in which that is seen.
    pub(super) fn check_services(&mut self, step: &str) -> Result<(), Halt> {
        let Some(index) = self.services.iter().position(Serving::has_ended) else { return Ok(()) };
        let serving = self.services.remove(index);
        Err(self.ended_by_itself(step, serving))
    }

    fn ended_by_itself(&self, step: &str, serving: Serving) -> Halt {
        let service = Arc::clone(&serving.service);
        let (ran, printed) = serving.join();
        let (name, said) = (&service.name, self.said_by(&service, &printed));
        match ran {
            Ok(output) => {
                let cure = if output.status == 0 { ": its `start` has to stay in the foreground" } else { "" };
                let words = format!("{name} ended (exit status {}){cure}; {said}", output.status);
                missing_program(step, &output, words)
            }
            Err(RunError::NotFound { program }) => not_installed(step, &program),
            Err(error) => Halt::Outcome(Outcome::Failed(Reason::new(step, format!("{name}: {error}")))),
        }
    }

    /// Ends every service, the last one first.
    pub(in crate::trial) fn stop_services(&mut self, step: &str) -> Result<(), Halt> {
        let mut ended = Ok(());
        while let Some(serving) = self.services.pop() {
            let stopped = match serving.has_ended() {
                true => Err(self.ended_by_itself(step, serving)),
                false => self.stop_service(step, serving),
            };
            ended = ended.and(stopped);
        }
        ended
    }

    fn stop_service(&mut self, step: &str, serving: Serving) -> Result<(), Halt> {
        let service = Arc::clone(&serving.service);
        let failed = |words: String| Halt::Outcome(Outcome::Failed(Reason::new(step, words)));
        let started = Instant::now();
        serving.expect_end();
        let user = service.user.as_deref().filter(|_| self.machine.privileged).and_then(user);
        let mut said = None;
        match service_command(&service.stop, &self.place, &serving.data, user) {
            None => serving.request_stop(),
            Some(stop) => {
                said = match self.machine.runner.run(&stop, service.limit) {
                    Ok(output) if output.status == 0 => None,
                    Ok(output) => {
                        Some(format!("{}: exit status {}: {}", stop.typed(), output.status, last_words(&output)))
                    }
                    Err(error) => Some(error.to_string()),
                };
                while said.is_none() && !serving.has_ended() && started.elapsed() < service.limit {
                    sleep(LOOK);
                }
            }
        }
        let asked = !service.stop.is_empty();
        let killed = asked && !serving.has_ended();
        serving.request_stop();
        let (ran, printed) = serving.join();
        // Only now: what it says of its end tells most.
        let (name, log, limit) = (&service.name, self.said_by(&service, &printed), format_duration(service.limit));
        match ran {
            Err(error @ RunError::Unkillable { .. }) => {
                Err(Halt::Outcome(Outcome::Hung(Reason::new(step, format!("{name}: {error}")))))
            }
            _ if killed || started.elapsed() >= service.limit => {
                let why = said.map(|said| format!(" ({said})")).unwrap_or_default();
                Err(failed(format!("{name} did not stop within {limit} and was killed{why}; {log}")))
            }
            ran => {
                let status = match ran {
                    Ok(output) => output.status,
                    Err(RunError::Stopped { output: Some(output), .. }) => output.status,
                    Err(_) => 0,
                };
                if let Some(said) = said {
                    return Err(failed(format!("{name} did not stop as it should: {said}; {log}")));
                }
                if ![0, TERMINATED].contains(&status) {
                    self.warn(format!("{step}: {name} was asked to stop and ended with exit status {status}; {log}"));
                }
                Ok(())
            }
        }
    }

    /// Keeps a step of the background for the next one of the foreground.
    pub(super) fn wait_beside(&mut self, step: &Step) -> Result<(), Halt> {
        let calls = super::calls(&self.scene(), step).map_err(Halt::Outcome)?;
        let waiting = match (&step.action, calls.timed.into_iter().next()) {
            (StepAction::Load(workload), _) => {
                let (loader, directory) = (Arc::clone(&self.machine.loader), self.place.clone());
                Waiting::Load(step.clone(), Arc::clone(workload), LoadPlace { loader, directory, seed: self.seed })
            }
            (_, Some(Call::Run(command))) => {
                if !command.program.contains('/') && self.machine.runner.find(&command.program).is_none() {
                    return Err(not_installed(&step.name, &command.program));
                }
                Waiting::Command(step.clone(), CommandLine { grace: GRACE, ..command })
            }
            _ => return Err(failed(step, "only loads and commands can run in the background".to_owned())),
        };
        self.company().waiting.push(waiting);
        Ok(())
    }

    /// Ends what ran beside a step. What went wrong there is a warning: the figures of the foreground stay.
    pub(super) fn end_company(&mut self, step: &Step, report: &mut StepReport) {
        let (done, warnings) = self.company().end(&step.name);
        self.warnings.extend(warnings);
        for mut one in done {
            if let (StepAction::Command { figures, .. }, Some(output)) = (&one.step.action, &one.output) {
                let (found, warnings, wrong) = take_figures(&self.place, figures, output);
                one.result.figures.extend(found);
                self.warnings
                    .extend(warnings.into_iter().chain(wrong).map(|words| format!("{}: {words}", one.step.name)));
            }
            report.beside.push(one.result);
        }
        // What the device wrote was not for one of them alone. All loads are threads of this process, which reads what others print, too.
        let mixed = [catalog::WRITE_AMPLIFICATION.name, catalog::PROCESS_CPU.name];
        let beside = report.beside.len() + self.services.len();
        let all = report.beside.iter_mut().map(|one| (one.load.is_some(), &mut one.figures));
        for (is_load, figures) in all.chain([(report.load.is_some(), &mut report.figures)]).filter(|_| beside > 0) {
            figures.retain(|one| !(is_load && mixed.contains(&one.metric.as_str())));
            figures.push(catalog::BESIDE.figure(beside as f64));
        }
    }
}

/// Lets a service's user through the directory that was made for its trial, and nobody else: what is in there has usual modes.
fn let_in(user: &User, place: &Path) -> io::Result<()> {
    match list_for_access(user, place) {
        Err(Errno::OPNOTSUPP) => let_group_in(user, place),
        listed => Ok(listed?),
    }
}

/// Adds a user to the directory's access control list, acl(5), whose form is in the kernel's posix_acl_xattr.h.
fn list_for_access(user: &User, place: &Path) -> Result<(), Errno> {
    const NAME: &str = "system.posix_acl_access";
    let entry = |tag: u16, rights: u16, id: u32| {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&tag.to_le_bytes());
        bytes[2..4].copy_from_slice(&rights.to_le_bytes());
        bytes[4..].copy_from_slice(&id.to_le_bytes());
        bytes
    };
    const USER: u16 = 2;
    let mut list = [0; 4096];
    let listed = match lgetxattr(place, NAME, &mut list) {
        Ok(length) => list.get(4..length).unwrap_or_default(),
        Err(Errno::NODATA) => &[],
        Err(errno) => return Err(errno),
    };
    let others = listed.chunks_exact(8).filter(|one| one[..2] == USER.to_le_bytes());
    let id = |one: &[u8; 8]| u32::from_le_bytes([one[4], one[5], one[6], one[7]]);
    let mut users: Vec<[u8; 8]> = others.filter_map(|one| one.try_into().ok()).collect();
    users.push(entry(USER, 1, user.user));
    users.sort_by_key(id);
    users.dedup();
    let none = u32::MAX;
    // Its owner may do everything, its group and others nothing.
    let (owner, rest) = (entry(1, 7, none), [entry(4, 0, none), entry(0x10, 1, none), entry(0x20, 0, none)]);
    let entries = [owner].into_iter().chain(users).chain(rest).flatten();
    let new: Vec<u8> = 2u32.to_le_bytes().into_iter().chain(entries).collect();
    lsetxattr(place, NAME, &new, XattrFlags::empty())
}

/// Where there are no such lists: its group, or everybody if services of several groups have to.
fn let_group_in(user: &User, place: &Path) -> io::Result<()> {
    let facts = fs::symlink_metadata(place)?;
    let is_of_another = facts.mode() & 0o010 != 0 && facts.gid() != user.group;
    if !is_of_another {
        lchown(place, None, Some(user.group))?;
    }
    let for_all = if is_of_another { 0o001 } else { facts.mode() & 0o001 };
    fs::set_permissions(place, Permissions::from_mode(0o710 | for_all))
}

/// Whether something accepts a connection at a Unix socket, or at an address and port.
fn answers(socket: &str, limit: Duration) -> io::Result<()> {
    if socket.contains('/') {
        // One that listens and accepts nothing would keep a caller waiting.
        let asking = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None)?;
        return Ok(connect(&asking, &SocketAddrUnix::new(socket)?)?);
    }
    let mut answered = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in socket.to_socket_addrs()? {
        answered = TcpStream::connect_timeout(&address, limit.min(ANSWER)).map(drop);
        if answered.is_ok() {
            break;
        }
    }
    answered
}

fn missing_program(step: &str, output: &CommandOutput, words: String) -> Halt {
    let reason = Reason::new(step, words);
    Halt::Outcome(if output.status == NOT_FOUND { Outcome::Skipped(reason) } else { Outcome::Failed(reason) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_services_user_enters_a_trials_directory_and_nobody_else() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can become other users");
            return;
        }
        let place = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        fs::write(place.path().join("file"), "x").expect("ours");
        let file = place.path().join("file").display().to_string();
        let reads = |user: u32| {
            let (user, group) = (format!("--reuid={user}"), "--regid=70");
            let cat = Command::new("setpriv").args([&user, group, "--clear-groups", "cat", &file]).output();
            cat.expect("it runs").status.success()
        };
        let enters = |user: u32| let_in(&User { name: "service".into(), user, group: 70 }, place.path());
        enters(71).expect("root may");
        assert_eq!([70, 71, 72].map(reads), [false, true, false]);
        enters(70).expect("root may");
        enters(70).expect("root may");
        assert_eq!([70, 71, 72].map(reads), [true, true, false]);
    }

    #[test]
    fn without_lists_a_services_group_enters_and_all_do_only_for_several() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give a directory to a group");
            return;
        }
        let place = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let found = || {
            let facts = fs::metadata(place.path()).expect("there");
            (facts.mode() & 0o7777, facts.uid(), facts.gid())
        };
        fs::set_permissions(place.path(), Permissions::from_mode(0o700)).expect("ours");
        for (group, mode, owner) in [(70, 0o710, 70), (70, 0o710, 70), (71, 0o711, 70), (70, 0o711, 70)] {
            let user = User { name: "service".into(), user: group, group };
            let_group_in(&user, place.path()).expect("root may");
            assert_eq!(found(), (mode, 0, owner));
            assert_eq!(closed_to(&user, place.path()).expect("looked at"), None);
        }
    }

    #[test]
    fn a_socket_that_accepts_nothing_keeps_nobody_waiting() {
        let place = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let path = place.path().join("socket").display().to_string();
        assert_eq!(answers(&path, ANSWER).expect_err("nobody is there").kind(), io::ErrorKind::NotFound);
        let _listens = std::os::unix::net::UnixListener::bind(&path).expect("free");
        let full = (0..100_000).find_map(|_| answers(&path, ANSWER).err());
        assert_eq!(full.expect("a queue has an end").kind(), io::ErrorKind::WouldBlock);
    }
}
