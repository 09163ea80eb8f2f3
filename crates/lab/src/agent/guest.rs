//! A trial's guest: its image and its kernel, how it is booted, and how it ended.

use super::{
    BOOT, GuestOptions, Link,
    kept::keep,
    kernels::find,
    loads::Loads,
    protocol::{Ground, Opening, StepReply},
};
use crate::{
    command::CommandRunner,
    filesystem::{self, Filesystem},
    place::{
        device::{Content, Provided, Purpose, make_image},
        undo::{Entry, GUEST_NAME, Undo},
    },
    trial::{
        error::ExecutorError,
        record::{DEVICE, Halt, Record, skipped},
        who::{GUEST_DEVICE, GUEST_PLACE},
    },
};
use fstone_files::make_empty_directory;
use fstone_model::{
    Cell, Outcome, Step,
    outcome::Reason,
    study::{DeviceSpec, PowerCut, StepAction},
    units::format_duration,
};
use fstone_sandbox::{
    guest::{BootError, Ending, Guest, GuestReport, IncidentKind},
    kernel::{Flavour, Kernel},
    power::LogSpec,
    qemu::{QemuError, QemuSpec},
    uml::{UmlDisk, UmlSpec},
    vhost::{Disk, DiskError, DiskSpec, Speed},
};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// The directory of a guest, in one that only fstone's user may enter.
const WITHIN: &str = "in";

/// A guest and its disk, for one trial.
pub(crate) struct GuestSeat {
    pub(super) kernel: Kernel,
    pub(super) directory: PathBuf,
    pub(super) image: PathBuf,
    /// The image that a simulated disk begins with; its own has only what is written.
    pub(super) base: Option<PathBuf>,
    disk: Option<Disk>,
    link: Option<Link>,
    boot_time: Option<Duration>,
    loads: Loads,
    /// The console's log when it did not come up.
    pub(super) stillborn: Option<PathBuf>,
}

/// The image, and a kernel to boot. The guest itself is started when the first step needs it.
pub(crate) fn set_up(
    cell: &Cell,
    options: &GuestOptions,
    work: &Path,
    content: Option<&Content<'_>>,
    undo: &mut Undo<'_>,
) -> Result<(GuestSeat, Provided), Halt> {
    let kernel = find(&cell.kernel, &options.kernels).map_err(|error| {
        let (problem, command) = error.problem_and_command();
        let reason = Reason::new(BOOT, problem);
        Halt::Outcome(Outcome::Skipped(match command {
            Some(command) => reason.with_cure(command),
            None => reason,
        }))
    })?;
    let DeviceSpec::Loop { size_bytes, directory, .. } = &cell.device else {
        return Err(skipped(DEVICE, "a guest's disk is an image: device = { loop = … }".into()));
    };
    let place = directory.as_ref().map_or_else(|| work.to_owned(), PathBuf::from);
    // Nobody but the simulated disk looks at the image, so that nothing needs copying.
    let (base, content) = match content {
        Some(content) if cell.kernel.is_exact() && !content.settles => (Some(content.by_reference()), None),
        content => (None, content),
    };
    let (image, id) = make_image(&place, *size_bytes, content, undo)?;
    let program = match kernel.flavour {
        Flavour::Uml | Flavour::Exact => kernel.binary.clone(),
        Flavour::Qemu => fstone_sandbox::qemu::emulator().unwrap_or_else(|| kernel.binary.clone()),
    };
    let program = fs::canonicalize(&program).unwrap_or(program);
    let own = work.join(GUEST_NAME);
    let failed = |cause| ExecutorError::Work { path: own.clone(), cause };
    let entry = undo.record(Entry::Guest { path: own.clone(), id: None, program: program.clone() })?;
    let made = make_empty_directory(&own).map_err(|cause| {
        // What stands there is not ours.
        undo.forget(entry);
        failed(cause)
    })?;
    undo.replace(entry, Entry::Guest { path: own.clone(), id: Some(made), program })?;
    // What root lends to the user that guests run as, it lends through that user's group. No other member of it passes the directory around.
    let within = own.join(WITHIN);
    make_empty_directory(&within).map_err(failed)?;
    let provided = Provided::file(image.clone(), id);
    let seat = GuestSeat {
        kernel,
        directory: within,
        image,
        base,
        disk: None,
        link: None,
        boot_time: None,
        loads: Loads::default(),
        stillborn: None,
    };
    Ok((seat, provided))
}

impl GuestSeat {
    pub(crate) const fn is_up(&self) -> bool {
        self.link.is_some()
    }

    pub(crate) const fn link(&mut self) -> Option<&mut Link> {
        self.link.as_mut()
    }

    pub(crate) const fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The marks of the disk between which loads ran.
    pub(crate) const fn loads(&self) -> Option<(u64, u64)> {
        self.loads.marks()
    }

    pub(crate) fn note(&mut self, step: &Step, reply: &StepReply) {
        self.loads.note(step, &reply.figures);
    }

    pub(crate) fn can_do(&self, step: &Step) -> Result<(), Halt> {
        match (&step.action, self.kernel.flavour) {
            (StepAction::CopyIn { .. }, Flavour::Qemu) => {
                Err(skipped(&step.name, "a guest in QEMU does not see the host's files".into()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn opening(&self, cell: &Cell, seed: u64, options: &GuestOptions, measure_null: bool) -> Opening {
        Opening {
            ground: Ground::Device {
                path: GUEST_DEVICE.into(),
                purpose: Purpose::GuestDisk,
                place: GUEST_PLACE.into(),
            },
            filesystem: cell.filesystem.clone(),
            mounts: true,
            queue: cell.queue.clone(),
            seed,
            time_disk: self.disk.is_some() && options.speed.deciding_latency().is_some(),
            measure_null,
            promises: power_cut(cell).is_some(),
            work: None,
        }
    }

    pub(crate) fn boot(&mut self, cell: &Cell, options: &GuestOptions, runner: &dyn CommandRunner) -> Result<(), Halt> {
        let guest = self.start(cell, options, runner)?;
        if !guest.hello().disks.iter().any(|(name, _)| GUEST_DEVICE.strip_prefix("/dev/") == Some(name)) {
            let complaints = guest.hello().complaints.join("; ");
            drop(guest.finish());
            let reason = Reason::new(BOOT, format!("this kernel has no driver for the guest's disk: {complaints}"));
            let cure = "use a kernel with virtio_blk, such as fstone kernel add uml:6.1";
            return Err(Halt::Outcome(Outcome::Skipped(reason.with_cure(cure))));
        }
        self.boot_time = Some(guest.boot_time());
        self.link = Some(Link::Channel(Box::new(guest)));
        Ok(())
    }

    /// What a hostile guest is not kept from here, once it is up.
    pub(crate) fn not_enforced(&self) -> Option<String> {
        self.link.as_ref().and_then(Link::not_enforced)
    }

    /// Makes a disk of known latency exact, by what the guest saw of it so far; in words when that cannot be.
    pub(crate) fn settle(&self, speed: &Speed, time_of_a_read: Option<Duration>) -> Option<String> {
        let (disk, latency, seen) = (self.disk.as_ref()?, speed.deciding_latency()?, time_of_a_read?);
        let transport = seen.saturating_sub(latency);
        disk.take_off(transport);
        let (wanted, least) = (format_duration(latency), format_duration(transport));
        (transport > latency)
            .then(|| format!("the disk cannot be as quick as {wanted}: the way there and back alone takes {least}"))
    }

    pub(super) fn log(&self, cell: &Cell) -> Option<LogSpec> {
        power_cut(cell).map(|cut| LogSpec { directory: self.directory.clone(), bound_bytes: cut.log_bytes })
    }

    fn start(&mut self, cell: &Cell, options: &GuestOptions, runner: &dyn CommandRunner) -> Result<Guest, Halt> {
        let DeviceSpec::Loop { sector_bytes, .. } = cell.device else {
            return Err(skipped(DEVICE, "a guest's disk is an image".into()));
        };
        let spec = DiskSpec {
            sector_bytes,
            speed: options.speed,
            faults: options.faults.clone(),
            log: self.log(cell),
            ..DiskSpec::new(&self.image)
        };
        let disk = Disk::serve(&spec, &self.directory.join("disk.sock")).map_err(|error| {
            let reason = Reason::new(DEVICE, error.to_string());
            Halt::Outcome(match error {
                DiskError::SectorSize(_) => Outcome::Refused(reason),
                _ => Outcome::Failed(reason),
            })
        })?;
        let socket = disk.socket().to_owned();
        self.disk = Some(disk);
        let booted = match self.kernel.as_uml() {
            Some(kernel) => {
                let mut spec = UmlSpec::new(kernel, &options.agent, &self.directory);
                spec.memory_bytes = options.memory_bytes;
                spec.disks = vec![UmlDisk::VhostUser(socket)];
                spec.readable = named_paths(cell);
                spec.needed = recordings(cell).collect();
                spec.watch = options.watch.unwrap_or(spec.watch);
                spec.boot().map_err(QemuError::Boot)
            }
            None => {
                let mut spec = QemuSpec::new(self.kernel.clone(), &options.agent, &self.directory, &options.cache);
                spec.memory_bytes = options.memory_bytes;
                spec.disks = vec![socket];
                spec.watch = options.watch.unwrap_or(spec.watch);
                if let Some(filesystem) = filesystem::find(&cell.filesystem.kind) {
                    spec.modules = vec![filesystem.kernel_name().to_owned()];
                    spec.asked_by_name =
                        filesystem.facts().modules_asked_by_name.iter().map(|&name| name.into()).collect();
                }
                spec.programs = programs(cell, runner);
                spec.boot()
            }
        };
        booted.map_err(|error| {
            let words = format!("failed to boot a guest: {error}");
            Halt::Outcome(match error {
                QemuError::NoEmulator => Outcome::Skipped(
                    Reason::new(BOOT, "qemu-system-x86_64 is not installed")
                        .with_cure("apt-get install --no-install-recommends qemu-system-x86"),
                ),
                QemuError::NoModule { .. } => Outcome::Skipped(Reason::new("mount", error.to_string())),
                QemuError::Boot(BootError::NotUp { ending, console_log }) => {
                    self.stillborn = Some(console_log);
                    ending.outcome(BOOT)
                }
                _ => Outcome::Failed(Reason::new(BOOT, words)),
            })
        })
    }

    /// Has it power off, or kills it, and adds what is only known then. A guest that does not go in peace is a result too.
    /// What is left of one that fell ill, or was given up, is kept in this directory.
    pub(crate) fn end(
        mut self,
        ended: Result<(), Halt>,
        stopped: bool,
        given_up: bool,
        limit_was_up: bool,
        kept: (&Path, &Cell),
        record: &mut Record,
    ) -> Result<(), Halt> {
        record.boot_time = self.boot_time;
        let report = self.link.take().and_then(|mut link| {
            if stopped {
                link.kill();
            } else {
                link.dismiss();
            }
            link.report()
        });
        drop(self.disk.take().map(Disk::finish));
        let mut ended = ended;
        if let Some(report) = &report {
            // The trial was over before the guest was given up.
            if ended.is_ok() && !given_up && report.ending != Ending::Bye {
                ended = Err(Halt::Outcome(report.ending.outcome("power-off")));
            }
            record.warnings.extend(warnings(report, ended.is_ok()));
        }
        let log = report.map(|report| report.console_log).or(self.stillborn);
        let sick = matches!(&ended, Err(Halt::Outcome(Outcome::Hung(_) | Outcome::Crashed(_))))
            || matches!(&ended, Err(Halt::Outcome(Outcome::Failed(reason))) if reason.step == BOOT)
            || given_up
            || limit_was_up;
        if let (true, Some(log)) = (sick, log) {
            let (directory, cell) = kept;
            let name = format!("{}-{}", cell.filesystem.name, cell.kernel.written());
            let image = if self.base.is_some() { Path::new("/nonexistent") } else { self.image.as_path() };
            record.warn(keep(directory, &name, &log, image));
        }
        ended
    }
}

fn power_cut(cell: &Cell) -> Option<PowerCut> {
    cell.steps.iter().find_map(|step| match step.action {
        StepAction::PowerCut(cut) => Some(cut),
        _ => None,
    })
}

/// What a guest without the host's files has to bring along: the programs that its commands name, and what it replays.
fn programs(cell: &Cell, runner: &dyn CommandRunner) -> Vec<PathBuf> {
    let mut names = words(&cell.steps);
    let adapter = filesystem::find(&cell.filesystem.kind);
    let checked_there = |filesystem: &&dyn Filesystem| filesystem.tools_need_a_guest() || power_cut(cell).is_some();
    if let Some(filesystem) = adapter.filter(checked_there) {
        names.extend(filesystem.facts().tools);
    }
    let mut programs: Vec<PathBuf> = names.into_iter().filter_map(|name| runner.find(name)).collect();
    programs.extend(recordings(cell));
    programs.sort();
    programs.dedup();
    programs
}

/// The files and directories of the host that a cell names: a guest that sees the host's files sees those too, beside the host's programs
/// and settings. What is mounted in every guest, and directories that hold all of a machine's users or files, are left out.
pub(super) fn named_paths(cell: &Cell) -> Vec<PathBuf> {
    let mut words = words(&cell.steps);
    words.extend(cell.filesystem.tree.as_deref());
    words.extend(cell.filesystem.own.iter().flat_map(|own| own.words()));
    for step in &cell.steps {
        match &step.action {
            StepAction::CopyIn { source, .. } => words.push(source),
            StepAction::Load(load) => words.extend(load.callout.iter().flat_map(|script| split(script))),
            _ => {}
        }
    }
    let is_one = |path: &PathBuf| {
        path.is_absolute()
            && path.components().count() > 2
            && !is_hidden_in_guests(path)
            && fs::metadata(path).is_ok_and(|facts| facts.is_file() || facts.is_dir())
    };
    let mut paths: Vec<PathBuf> = words.into_iter().map(PathBuf::from).filter(is_one).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// What a cell replays, which often only its owner may read.
pub(super) fn recordings(cell: &Cell) -> impl Iterator<Item = PathBuf> {
    cell.steps.iter().filter_map(Step::replay).map(|replay| PathBuf::from(&replay.file))
}

/// Whether something of the guest's own is mounted there.
pub(crate) fn is_hidden_in_guests(path: &Path) -> bool {
    ["/dev", "/proc", "/run", "/sys"].iter().any(|other| path.starts_with(other))
}

/// Everything in these steps' commands that may be the name of a program, for others run programs too: scripts,
/// `timeout`, `env`.
fn words(steps: &[Step]) -> Vec<&str> {
    let mut words = Vec::new();
    for step in steps {
        let StepAction::Command { argv, shell, .. } = &step.action else { continue };
        words.extend(shell.then_some("sh"));
        for text in argv {
            words.push(text.as_str());
            words.extend(split(text));
        }
    }
    words
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || ";|&()<>=`'\"".contains(c)).filter(|word| !word.is_empty())
}

/// What a reader has to know of a guest's life. What led to a bad end is in the outcome already.
fn warnings(report: &GuestReport, well: bool) -> Vec<String> {
    let mut warnings = report.clock.warnings();
    if well {
        let kinds = [IncidentKind::Oops, IncidentKind::Stuck, IncidentKind::Filesystem];
        let incident = kinds.iter().find_map(|kind| report.console.first(*kind));
        let line = incident.and_then(|incident| incident.lines.first());
        warnings.extend(line.map(|line| format!("the guest's kernel said: {line}")));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_wherever_a_command_names_them() {
        let step = |argv: &[&str], shell| Step {
            name: "command".into(),
            action: StepAction::Command {
                argv: argv.iter().map(|word| (*word).to_owned()).collect(),
                shell,
                success: vec![0],
                figures: Vec::new(),
            },
            limit: std::time::Duration::from_secs(1),
            background: false,
        };
        let steps = [step(&["timeout", "5", "sync"], false), step(&["sh", "-c", "cd a; tar c . | 'gzip' >b"], false)];
        let of_argv = words(&steps);
        for name in ["timeout", "sync", "sh", "tar", "gzip"] {
            assert!(of_argv.contains(&name), "{name}: {of_argv:?}");
        }
        let scripts = [step(&["x=$(cat y)&&rm y"], true)];
        let of_script = words(&scripts);
        for name in ["sh", "rm"] {
            assert!(of_script.contains(&name), "{name}: {of_script:?}");
        }
        assert!(of_script.contains(&"cat"), "{of_script:?}");
    }
}
