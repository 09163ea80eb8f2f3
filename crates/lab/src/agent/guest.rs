//! A trial's guest: makes the image, boots it, and tells how it ended.

use super::{
    GuestOptions, Link,
    kept::keep,
    kernels::{Attachment, find},
    protocol::{Ground, Opening},
};
use crate::{
    filesystem::{self, Filesystem},
    meters::{MARK_BEGIN, MARK_END},
    place::{
        device::{Provided, Purpose, make_image},
        undo::{Entry, GUEST_NAME},
    },
    trial::{
        ExecutorError,
        executor::{Making, Whom},
        record::{DEVICE, Halt, skipped},
    },
};
use fstone_model::{
    Cell, LoadReport, Outcome, Step,
    metric::{Figure, catalog},
    outcome::Reason,
    result::DROPS_FLUSHES,
    study::{DeviceSpec, KernelSpec, StepAction},
    units::format_duration,
};
use fstone_sandbox::{
    guest::{BootError, Ending, Guest, GuestReport, IncidentKind},
    kernel::{Flavour, Kernel},
    qemu::{QemuError, QemuSpec},
    uml::{UmlDisk, UmlSpec},
    vhost::{Disk, DiskCounters, DiskError, DiskSpec, Speed},
};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// The step that starting a guest counts as.
pub(crate) const BOOT: &str = "boot";
/// How long a boot may take in all; the guest's own watch ends earlier.
pub(crate) const BOOT_LIMIT: Duration = Duration::from_secs(600);
/// Where a guest mounts its disk: in memory.
pub(crate) const GUEST_PLACE: &str = "/run/fstone/work/mnt";

/// A guest and its disk, for one trial.
pub(crate) struct GuestSeat {
    pub(super) kernel: Kernel,
    attachment: Attachment,
    /// Its own: sockets, console, control files.
    pub(super) directory: PathBuf,
    pub(super) image: PathBuf,
    disk: Option<Disk>,
    link: Option<Link>,
    boot_time: Option<Duration>,
    /// The console's log when it did not come up.
    pub(super) stillborn: Option<PathBuf>,
}

impl GuestSeat {
    /// Where in the guest its disk is.
    const fn device(&self) -> &'static str {
        match self.attachment {
            Attachment::Vhost => "/dev/vda",
            Attachment::Ubd => "/dev/ubda",
        }
    }

    /// Whether it was started.
    pub(crate) const fn is_up(&self) -> bool {
        self.link.is_some()
    }

    pub(crate) const fn link(&mut self) -> Option<&mut Link> {
        self.link.as_mut()
    }

    pub(crate) const fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// Whether it has what a step needs.
    pub(crate) fn can_do(&self, step: &Step) -> Result<(), Halt> {
        match (&step.action, self.kernel.flavour) {
            (StepAction::CopyIn { .. }, Flavour::Qemu) => {
                Err(skipped(&step.name, "a guest in QEMU does not see the host's files".into()))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a step of a cell with another kernel is made in its guest: all but what the host's tools do on the image.
pub(crate) fn is_for_guest(cell: &Cell, step: &Step) -> bool {
    match step.action {
        StepAction::Mkfs | StepAction::Fsck { .. } => {
            filesystem::find(&cell.filesystem.kind).is_some_and(Filesystem::tools_need_a_guest)
        }
        _ => true,
    }
}

impl Making<'_, '_> {
    /// The image, and a kernel to boot. The guest itself is started when the first step needs it.
    pub(crate) fn set_up_guest(&mut self) -> Result<(), Halt> {
        let job = self.job;
        let options = self.options()?;
        let found = find(&job.cell.kernel, &options.kernels);
        let (kernel, attachment) = found.map_err(|error| {
            let cure = match &job.cell.kernel {
                KernelSpec::Exact(_) => "fstone kernel build".to_owned(),
                other => format!("fstone kernel add {}", other.written()),
            };
            Halt::Outcome(Outcome::Skipped(Reason::new(BOOT, error.to_string()).with_cure(cure)))
        })?;
        let DeviceSpec::Loop { size_bytes, direct_io, directory, .. } = &job.cell.device else {
            return Err(skipped(DEVICE, "a guest's disk is an image: device = { loop = … }".into()));
        };
        if *direct_io {
            self.record.warn("direct-io: a guest's image is always written through the host's page cache".into());
        }
        let work = self.host.work.path();
        let place = directory.as_ref().map_or_else(|| work.to_owned(), PathBuf::from);
        let guest_directory = work.join(GUEST_NAME);
        let (image, id) = make_image(&place, *size_bytes, &mut self.host.undo)?;
        let program = match kernel.flavour {
            Flavour::Uml | Flavour::Exact => kernel.binary.clone(),
            Flavour::Qemu => fstone_sandbox::qemu::emulator().unwrap_or_else(|| kernel.binary.clone()),
        };
        let program = fs::canonicalize(&program).unwrap_or(program);
        self.make_guest_directory(&guest_directory, program)?;
        self.provided = Some(Provided::file(image.clone(), id));
        self.guest = Some(GuestSeat {
            kernel,
            attachment,
            directory: guest_directory,
            image,
            disk: None,
            link: None,
            boot_time: None,
            stillborn: None,
        });
        Ok(())
    }

    pub(super) fn options(&self) -> Result<&GuestOptions, Halt> {
        let kernel = || ExecutorError::Kernel { kernel: self.job.cell.kernel.written() };
        Ok(self.host.options.guests.as_ref().ok_or_else(kernel)?)
    }

    fn make_guest_directory(&mut self, path: &Path, program: PathBuf) -> Result<(), Halt> {
        let entry = self.host.undo.record(Entry::Guest { path: path.to_owned(), program })?;
        fs::create_dir(path).map_err(|cause| {
            // What stands there is not ours.
            self.host.undo.forget(entry);
            ExecutorError::Work { path: path.to_owned(), cause }.into()
        })
    }

    /// Starts the guest and has it find its disk.
    pub(crate) fn boot(&mut self) -> Result<(), Halt> {
        let options = self.options()?.clone();
        let mut guest = self.start(&options)?;
        let mut seat = self.guest.take().expect("asked for with a guest only");
        if seat.attachment == Attachment::Vhost && !guest.hello().disks.iter().any(|(name, _)| name == "vda") {
            // A kernel without that driver, as its own complaint says.
            let complaints = guest.hello().complaints.join("; ");
            drop(guest.finish());
            seat.attachment = Attachment::Ubd;
            self.guest = Some(seat);
            self.record.warn(format!("this kernel cannot have fstone's own disk ({complaints})"));
            guest = self.start(&options)?;
            seat = self.guest.take().expect("put back");
        }
        if seat.attachment == Attachment::Ubd {
            self.record.warn(DROPS_FLUSHES.to_owned());
        }
        if !options.speed.is_unlimited() && seat.attachment == Attachment::Vhost {
            self.record.warn(format!("the disk was slowed down to {}", options.speed));
        }
        let opening = Opening {
            ground: Ground::Device {
                path: seat.device().into(),
                purpose: Purpose::GuestDisk,
                place: GUEST_PLACE.into(),
            },
            filesystem: self.job.cell.filesystem.clone(),
            mounts: true,
            queue: self.job.cell.queue.clone(),
            seed: self.job.seed,
            time_disk: seat.disk.is_some() && options.speed.deciding_latency().is_some(),
            measure_null: self.host.options.measure_null,
        };
        seat.boot_time = Some(guest.boot_time());
        seat.link = Some(Link::Channel(Box::new(guest)));
        self.guest = Some(seat);
        let opened = self.open(Whom::Guest, BOOT, &opening).map_err(|halt| match halt {
            // What a guest cannot do is a result, whoever is to blame.
            Halt::Lab(error) => Halt::Outcome(Outcome::Failed(Reason::new(BOOT, error.to_string()))),
            halt => halt,
        })?;
        self.settle(&options.speed, opened.time_of_a_read);
        Ok(())
    }

    /// Makes a disk of known latency exact, by what the guest saw of it so far.
    fn settle(&mut self, speed: &Speed, time_of_a_read: Option<Duration>) {
        let disk = self.guest.as_ref().and_then(GuestSeat::disk);
        let (Some(disk), Some(latency), Some(seen)) = (disk, speed.deciding_latency(), time_of_a_read) else { return };
        let transport = seen.saturating_sub(latency);
        disk.take_off(transport);
        if transport > latency {
            let (wanted, least) = (format_duration(latency), format_duration(transport));
            self.record
                .warn(format!("the disk cannot be as quick as {wanted}: the way there and back alone takes {least}"));
        }
    }

    fn start(&mut self, options: &GuestOptions) -> Result<Guest, Halt> {
        let DeviceSpec::Loop { sector_bytes, .. } = self.job.cell.device else {
            return Err(skipped(DEVICE, "a guest's disk is an image".into()));
        };
        let programs = self.programs();
        let adapter = filesystem::find(&self.job.cell.filesystem.kind);
        let seat = self.guest.as_mut().expect("asked for with a guest only");
        let disks = match seat.attachment {
            Attachment::Ubd => vec![UmlDisk::Ubd(seat.image.clone())],
            Attachment::Vhost => {
                let spec = DiskSpec {
                    sector_bytes,
                    speed: options.speed,
                    faults: options.faults.clone(),
                    ..DiskSpec::new(&seat.image)
                };
                let disk = Disk::serve(&spec, &seat.directory.join("disk.sock")).map_err(|error| {
                    let reason = Reason::new(DEVICE, error.to_string());
                    Halt::Outcome(match error {
                        DiskError::SectorSize(_) => Outcome::Refused(reason),
                        _ => Outcome::Failed(reason),
                    })
                })?;
                let socket = disk.socket().to_owned();
                seat.disk = Some(disk);
                vec![UmlDisk::VhostUser(socket)]
            }
        };
        let booted = match seat.kernel.as_uml() {
            Some(kernel) => {
                let mut spec = UmlSpec::new(kernel, &options.agent, &seat.directory);
                spec.memory_bytes = options.memory_bytes;
                spec.disks = disks;
                spec.watch = options.watch.unwrap_or(spec.watch);
                spec.boot().map_err(QemuError::Boot)
            }
            None => {
                let mut spec = QemuSpec::new(seat.kernel.clone(), &options.agent, &seat.directory, &options.cache);
                spec.memory_bytes = options.memory_bytes;
                spec.disks = seat.disk.iter().map(|disk| disk.socket().to_owned()).collect();
                spec.watch = options.watch.unwrap_or(spec.watch);
                if let Some(filesystem) = adapter {
                    spec.modules = vec![filesystem.kernel_name().to_owned()];
                    spec.asked_by_name = filesystem.modules_asked_by_name().iter().map(|&name| name.into()).collect();
                }
                spec.programs = programs;
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
                    seat.stillborn = Some(console_log);
                    ending.outcome(BOOT)
                }
                _ => Outcome::Failed(Reason::new(BOOT, words)),
            })
        })
    }

    /// What a guest without the host's files has to bring along: the programs that its commands name.
    fn programs(&self) -> Vec<PathBuf> {
        let runner = &*self.host.machine.runner;
        let mut names = words(&self.job.cell.steps);
        let adapter = filesystem::find(&self.job.cell.filesystem.kind);
        if let Some(filesystem) = adapter.filter(|filesystem| filesystem.tools_need_a_guest()) {
            names.extend(filesystem.tools());
        }
        let mut programs: Vec<PathBuf> = names.into_iter().filter_map(|name| runner.find(name)).collect();
        programs.sort();
        programs.dedup();
        programs
    }

    /// Has the guest power off, and adds what is only known then. A guest that does not go in peace is a result too.
    pub(crate) fn end_guest(&mut self, ended: Result<(), Halt>) -> Result<(), Halt> {
        let Some(mut seat) = self.guest.take() else { return ended };
        self.record.boot_time = seat.boot_time;
        let stopped = self.host.machine.stop.is_requested();
        let report = seat.link.take().and_then(|mut link| {
            if stopped {
                link.kill();
            } else {
                link.dismiss();
            }
            link.report()
        });
        drop(seat.disk.take().map(Disk::finish));
        let mut ended = ended;
        if let Some(report) = &report {
            // The trial was over before the guest was given up.
            if ended.is_ok() && !self.given_up && report.ending != Ending::Bye {
                ended = Err(Halt::Outcome(report.ending.outcome("power-off")));
            }
            for warning in warnings(report, ended.is_ok()) {
                self.record.warn(warning);
            }
        }
        let log = report.map(|report| report.console_log).or(seat.stillborn);
        let sick = matches!(&ended, Err(Halt::Outcome(Outcome::Hung(_) | Outcome::Crashed(_))))
            || matches!(&ended, Err(Halt::Outcome(Outcome::Failed(reason))) if reason.step == BOOT)
            || self.given_up
            || self.is_stopped_by_limit();
        if let (true, Some(log), Some(options)) = (sick, log, self.host.options.guests.as_ref()) {
            let cell = self.job.cell;
            let name = format!("{}-{}", cell.filesystem.name, cell.kernel.written());
            self.record.warn(keep(&options.kept, &name, &log, &seat.image));
        }
        ended
    }
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
            words.extend(
                text.split(|c: char| c.is_whitespace() || ";|&()`'\"".contains(c)).filter(|word| !word.is_empty()),
            );
        }
    }
    words
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

/// The figures with what our disk counted in place of what the guest's kernel did: every request, and flushes for certain.
/// `at_mark` gives its counts as they were at a mark.
pub(crate) fn with_exact_counts(
    mut figures: Vec<Figure>,
    load: Option<&LoadReport>,
    at_mark: &dyn Fn(u64) -> Option<DiskCounters>,
) -> Vec<Figure> {
    let mark = |name: &str| at_mark(figures.iter().find(|figure| figure.metric == name)?.value as u64);
    let counted = mark(MARK_END).zip(mark(MARK_BEGIN)).map(|(end, begin)| end.since(&begin));
    figures.retain(|figure| figure.metric != MARK_BEGIN && figure.metric != MARK_END);
    let Some(counted) = counted else { return figures };
    for figure in counted_figures(&counted, load.map(LoadReport::written_bytes)) {
        match figures.iter_mut().find(|known| known.metric == figure.metric) {
            Some(known) => *known = figure,
            None => figures.push(figure),
        }
    }
    figures
}

fn counted_figures(counted: &DiskCounters, asked_bytes: Option<u64>) -> Vec<Figure> {
    let mut figures = vec![
        catalog::DEVICE_READ_BYTES.figure(counted.read_bytes as f64),
        catalog::DEVICE_WRITTEN_BYTES.figure(counted.write_bytes as f64),
        catalog::DEVICE_READS.figure(counted.reads as f64),
        catalog::DEVICE_WRITES.figure(counted.writes as f64),
        catalog::DEVICE_FLUSHES.figure(counted.flushes as f64),
        catalog::DEVICE_DISCARDED_BYTES.figure(counted.discard_bytes as f64),
    ];
    if let Some(asked) = asked_bytes.filter(|bytes| *bytes > 0) {
        figures.push(catalog::WRITE_AMPLIFICATION.figure(counted.write_bytes as f64 / asked as f64));
    }
    figures
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
            },
            limit: std::time::Duration::from_secs(1),
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
