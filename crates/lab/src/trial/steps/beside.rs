//! Services, and steps in the background: how a session starts them, watches them and ends them.

use super::{Call, judge::last_words, take_figures};
use crate::{
    command::{CommandLine, CommandOutput, NOT_FOUND, RECORD_TAIL_BYTES, RunError, User},
    meters::Meters,
    place::device::ScratchDevice,
    trial::{
        beside::{GRACE, LoadPlace, Serving, Waiting, closed_to, service_command, user},
        measure::of_interval,
        record::{Halt, StepReport, failed, not_installed, skipped},
        session::Session,
    },
};
use fstone_model::{
    Outcome, Step,
    outcome::Reason,
    service::{Ready, Service},
    study::StepAction,
    text,
    units::format_duration,
};
use std::{
    fs::{self, DirBuilder, Permissions},
    net::TcpStream,
    os::unix::{
        fs::{DirBuilderExt, PermissionsExt, lchown},
        net::UnixStream,
    },
    path::Path,
    sync::{Arc, PoisonError},
    thread::sleep,
    time::{Duration, Instant},
};

const LOOK: Duration = Duration::from_millis(20);
/// How often a command that says whether a service is ready is run.
const ASK: Duration = Duration::from_millis(100);
const LOG_LINES: usize = 5;

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
                    return Err(missing_program(step, &output, words));
                }
            }
            self.made.push(service.name.clone());
        }
        let Some(start) = command(&service.start) else { return Err(failed(step, "it has no command".to_owned())) };
        let serving = Serving::start(service, &data, start).map_err(|error| failed(step, error.to_string()))?;
        self.services.push(serving);
        self.until_ready(step, service, &command)?;
        report.figures = of_interval(&meters.end());
        Ok(())
    }

    /// The directory of a service, which its user can enter and nobody else.
    fn make_data(&self, step: &Step, user: Option<&User>, data: &Path) -> Result<(), Halt> {
        let cannot = |error: std::io::Error| failed(step, format!("{}: {error}", data.display()));
        let Some(user) = user else { return DirBuilder::new().mode(0o700).create(data).map_err(cannot) };
        if !self.mounted && self.own.is_none() {
            // It was made for this trial, and what is in it has modes of its own.
            fs::set_permissions(&self.place, Permissions::from_mode(0o711)).map_err(cannot)?;
        }
        if let Some(closed) = closed_to(user, &self.place).map_err(cannot)? {
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
    ) -> Result<(), Halt> {
        let started = Instant::now();
        let mut asked = None::<Instant>;
        loop {
            let Some(serving) = self.services.last() else { return Ok(()) };
            if serving.has_ended() {
                return self.check_services(step);
            }
            let is_ready = match &service.ready {
                Ready::Line(line) => serving.printed().contains(line) || self.log_of(serving).contains(line),
                Ready::Socket(socket) => {
                    let filled = socket.replace("{data}", &serving.data.display().to_string());
                    let socket = filled.replace("{mount}", &self.place.display().to_string());
                    if socket.contains('/') {
                        UnixStream::connect(socket).is_ok()
                    } else {
                        TcpStream::connect(socket).is_ok()
                    }
                }
                Ready::Command(_) if asked.is_some_and(|asked| asked.elapsed() < ASK) => false,
                Ready::Command(words) => {
                    asked = Some(Instant::now());
                    let limit = service.limit.saturating_sub(started.elapsed()).max(LOOK);
                    let asking = command(words).map(|command| self.machine.runner.run(&command, limit));
                    match asking {
                        Some(Err(RunError::NotFound { program })) => {
                            return Err(skipped(&step.name, format!("{program} is not installed")));
                        }
                        asking => asking.is_some_and(|ran| ran.is_ok_and(|output| output.status == 0)),
                    }
                }
            };
            if is_ready {
                return Ok(());
            }
            if self.machine.stop.is_requested() {
                return Err(Halt::Stopped(step.name.clone()));
            }
            if started.elapsed() >= service.limit {
                let limit = format_duration(service.limit);
                let words = format!("{} was not ready within {limit}; {}", service.name, self.said_by(serving));
                return Err(failed(step, words));
            }
            sleep(LOOK);
        }
    }

    /// What a service's log file has, its end.
    fn log_of(&self, serving: &Serving) -> String {
        let Some(log) = &serving.service.log else { return String::new() };
        let path = format!("{}/{log}", serving.service.name);
        let bytes = super::judge::read_below(&self.place, &path).unwrap_or_default();
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(32 * RECORD_TAIL_BYTES)..]).into_owned()
    }

    /// The last lines of a service's log, for a reason.
    fn said_by(&self, serving: &Serving) -> String {
        let log = serving.printed() + &self.log_of(serving);
        let log = text::lines(&log);
        let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match &lines[lines.len().saturating_sub(LOG_LINES)..] {
            [] => "its log is empty".to_owned(),
            last => format!("its log ends with: {}", last.join("; ")),
        }
    }

    /// A service that has ended by itself fails the step in which that is seen.
    pub(super) fn check_services(&mut self, step: &Step) -> Result<(), Halt> {
        let Some(index) = self.services.iter().position(Serving::has_ended) else { return Ok(()) };
        let serving = self.services.remove(index);
        let (name, said) = (serving.service.name.clone(), self.said_by(&serving));
        Err(match serving.join() {
            Ok(output) => {
                let words = format!("{name} ended (exit status {}); {said}", output.status);
                missing_program(step, &output, words)
            }
            Err(RunError::NotFound { program }) => not_installed(step, &program),
            Err(error) => failed(step, format!("{name}: {error}")),
        })
    }

    /// Ends every service, the last one first.
    pub(in crate::trial) fn stop_services(&mut self, step: &str) -> Result<(), Halt> {
        let mut ended = Ok(());
        while let Some(serving) = self.services.pop() {
            ended = ended.and(self.stop_service(step, serving));
        }
        ended
    }

    fn stop_service(&self, step: &str, serving: Serving) -> Result<(), Halt> {
        let service = Arc::clone(&serving.service);
        let failed = |words: String| Halt::Outcome(Outcome::Failed(Reason::new(step, words)));
        let started = Instant::now();
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
        let (name, log, limit) = (&service.name, self.said_by(&serving), format_duration(service.limit));
        match serving.join() {
            Err(error @ RunError::Unkillable { .. }) => {
                Err(Halt::Outcome(Outcome::Hung(Reason::new(step, format!("{name}: {error}")))))
            }
            _ if killed || started.elapsed() >= service.limit => {
                let why = said.map(|said| format!(" ({said})")).unwrap_or_default();
                Err(failed(format!("{name} did not stop within {limit} and was killed{why}; {log}")))
            }
            _ => said.map_or(Ok(()), |said| Err(failed(format!("{name} did not stop as it should: {said}; {log}")))),
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
                    return Err(not_installed(step, &command.program));
                }
                Waiting::Command(step.clone(), CommandLine { grace: GRACE, ..command })
            }
            _ => return Err(failed(step, "only loads and commands can run in the background".to_owned())),
        };
        self.company.lock().unwrap_or_else(PoisonError::into_inner).waiting.push(waiting);
        Ok(())
    }

    /// Ends what ran beside a step. What went wrong there is a warning: the figures of the foreground stay.
    pub(super) fn end_company(&mut self, step: &Step, report: &mut StepReport) {
        let company = Arc::clone(&self.company);
        let (done, warnings) = company.lock().unwrap_or_else(PoisonError::into_inner).end(&step.name);
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
    }
}

fn missing_program(step: &Step, output: &CommandOutput, words: String) -> Halt {
    if output.status == NOT_FOUND { skipped(&step.name, words) } else { failed(step, words) }
}
