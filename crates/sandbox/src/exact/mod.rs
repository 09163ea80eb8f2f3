//! Exact guests: a kernel whose time is simulated, on a disk whose service times come from a model.
//!
//! What such a guest measures is the same to the last bit today and tomorrow, here and on another machine, whatever else
//! runs there. So nothing may reach it whose moment or content is the host's: its job is a file that it reads at its
//! start and its result one that it writes at its end, through hostfs; its time comes from `simulate`; its address
//! space is not randomised; and what randomness its kernel asks the host for comes from a seed (`shim/seed.rs`).
//!
//! What runs where is no matter of the guest's, but of how long it takes: `processor`.
//!
//! Reading order: `messages` is what guest and calendar say, `shim/calendar.rs` is the guest's end and `simulate` ours, this file makes
//! a guest and tells how it ended. What a guest asks in the middle of its job `attend` has answered.

mod attend;
mod messages;
mod processor;
mod simulate;

use crate::agent::settings::EXACT;
use crate::guest::{BootError, Console, ConsoleSummary, Ending, Evidence, Waiting};
use crate::power::LogSpec;
use crate::process::{Addresses, Confined, Launch, ProcessEnd};
use crate::uml::{CONTROL, HOST_AS_ROOT};
use crate::vhost::{DiskCounters, DiskError, DiskSpec, Engine, Marks, Shared, bind, open_image};
use attend::{Desk, Outputs, Place};
use fstone_drive::{Model, Processor};
use processor::OneProcessor;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use simulate::{Limits, Simulation, Stop};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Seek};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub(crate) use attend::{ANSWER, QUESTION, RESULT};
pub use attend::{Attendant, StoppedDisk};

/// The job, in the guest's directory: its kind in the first line, then its body.
pub(crate) const JOB: &str = "job";

/// Most of what the guest says on its console, bytes.
const CONSOLE_BYTES: u64 = 64 << 20;

/// How long a guest's process gets to be gone once its sockets are closed.
const DYING_TIME: Duration = Duration::from_secs(20);

/// A link to the agent in the guest's directory, and the name that the guest's kernel has for it. Its kernel stirs its command
/// line into its randomness, and process 1 has the path on its stack: with the agent's own path, guests of one seed would differ.
const AGENT_LINK: &str = "agent";
const AGENT: &str = "/proc/self/cwd/agent";

/// The same for its kernel, whose name the host puts on its stack.
const KERNEL_LINK: &str = "./kernel";

/// What a system call takes unless told otherwise.
pub const CHARGE: Duration = Duration::from_micros(2);

/// A guest to be simulated.
#[derive(Debug, Clone)]
pub struct ExactSpec {
    /// A kernel with time travel.
    pub kernel: PathBuf,
    /// The binary that is to be process 1; it calls [`crate::agent::main`].
    pub agent: PathBuf,
    pub memory_bytes: u64,
    /// The disk's image, an existing file; its size is the disk's.
    pub image: PathBuf,
    /// What the disk holds at first instead: another image, which is not written.
    pub base: Option<PathBuf>,
    /// Logical block of the disk: 512 or 4096.
    pub sector_bytes: u32,
    pub model: Model,
    /// What is random in the guest follows from it.
    pub seed: u64,
    /// What each system call takes; zero for nothing. Only kernels that fstone has patched know of it.
    pub charge: Duration,
    /// What the kernel's own work takes; nothing if it is absent. Only kernels that count it know of it.
    pub processor: Option<Processor>,
    /// Files and directories of the host to have in the guest, read-only, besides the host's programs and settings.
    pub readable: Vec<PathBuf>,
    /// Files of the host to have in the guest even if the user that it runs as may not read them.
    pub needed: Vec<PathBuf>,
    /// An existing directory of this guest's own.
    pub directory: PathBuf,
    /// How long the guest may compute, in real time, without a word to its disk or its clock.
    pub silence_limit: Duration,
    pub virtual_limit: Duration,
    pub log: Option<LogSpec>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExactEnd {
    Done(Vec<u8>),
    Failed(String),
    GuestEnded(Ending),
    Stopped,
}

#[derive(Debug, Clone)]
pub struct ExactReport {
    pub end: ExactEnd,
    pub counters: DiskCounters,
    marks: Marks,
    /// A hash over every request: operation, offset, length and virtual time.
    pub trace: String,
    pub virtual_time: Duration,
    pub real_time: Duration,
    /// What it was not kept from if it was hostile, in one line.
    pub not_enforced: Option<String>,
    pub console: ConsoleSummary,
    pub console_log: PathBuf,
}

impl ExactReport {
    /// What the disk had been asked for when the guest set this mark.
    pub fn mark(&self, number: u64) -> Option<DiskCounters> {
        self.marks.get(number)
    }
}

impl ExactSpec {
    /// A guest with 512 MiB and patience.
    pub fn new(
        kernel: impl Into<PathBuf>,
        agent: impl Into<PathBuf>,
        image: impl Into<PathBuf>,
        directory: impl Into<PathBuf>,
        model: Model,
    ) -> Self {
        Self {
            kernel: kernel.into(),
            agent: agent.into(),
            memory_bytes: 512 << 20,
            image: image.into(),
            base: None,
            sector_bytes: 512,
            model,
            seed: 0,
            charge: CHARGE,
            processor: None,
            readable: Vec::new(),
            needed: Vec::new(),
            directory: directory.into(),
            silence_limit: Duration::from_secs(300),
            virtual_limit: Duration::from_secs(30 * 24 * 3600),
            log: None,
        }
    }

    pub fn run(&self, kind: &str, body: &[u8], stop: &AtomicBool) -> Result<ExactReport, BootError> {
        self.run_attended(kind, body, stop, None)
    }

    pub fn run_attended(
        &self,
        kind: &str,
        body: &[u8],
        stop: &AtomicBool,
        attendant: Option<&mut dyn Attendant>,
    ) -> Result<ExactReport, BootError> {
        let since = Instant::now();
        let directory = fs::canonicalize(&self.directory)
            .map_err(BootError::host(format!("enter {}", self.directory.display())))?;
        let console_log = directory.join("console.log");
        for (name, path) in [(AGENT_LINK, &self.agent), (KERNEL_LINK, &self.kernel)] {
            let link = directory.join(name);
            let _ = fs::remove_file(&link);
            fs::canonicalize(path)
                .and_then(|path| std::os::unix::fs::symlink(path, &link))
                .map_err(BootError::host(format!("link to {}", path.display())))?;
        }
        let job = directory.join(JOB);
        fs::write(&job, [kind.as_bytes(), b"\n", body].concat())
            .map_err(BootError::host(format!("write {}", job.display())))?;
        let listener = |name: &str| -> Result<UnixListener, BootError> {
            let path = directory.join(name);
            let _ = fs::remove_file(&path);
            bind(&path).map_err(BootError::host(format!("make the socket {}", path.display())))
        };
        let (calendar, disk) = (listener("calendar")?, listener("disk")?);
        // What the host does takes no virtual time: its cache makes the simulation faster and no figure better.
        let spec = DiskSpec {
            sector_bytes: self.sector_bytes,
            host_cache: true,
            zeros_as_holes: true,
            base: self.base.clone(),
            log: self.log.clone(),
            ..DiskSpec::new(&self.image)
        };
        let (shared, image, mut engine) = open_image(&spec)
            .and_then(|image| {
                let image_error = |cause| DiskError::Image { path: self.image.clone(), cause };
                let shared = Shared::new(&spec, &image)
                    .map_err(|cause| DiskError::Host { what: "begin a log of the disk", cause })?;
                let own = image.try_clone().map_err(image_error)?;
                let engine = Engine::simulated(&spec, image, &self.model, &shared).map_err(image_error)?;
                Ok((shared, own, engine))
            })
            .map_err(|error| BootError::host("serve the disk")(io::Error::other(error.to_string())))?;

        // A file, for a pipe would tell the guest's kernel when it can be written again, which is a matter of the host's time.
        let mut said = console_file().map_err(BootError::host("make the guest's console"))?;
        let console_input = said.try_clone().map_err(BootError::host("duplicate a descriptor"))?.into();
        let _processor = OneProcessor::take();
        let mut process = self.launch(directory.clone(), console_input)?.spawn()?;
        let limits = Limits {
            silence: self.silence_limit,
            virtual_ns: u64::try_from(self.virtual_limit.as_nanos()).unwrap_or(u64::MAX),
        };
        let outputs = process.open_directory(CONTROL).map(Outputs);
        let place = Place { shared: shared.clone(), image, directory: directory.clone(), outputs };
        let mut desk = Desk::new(place, attendant);
        let mut simulation = Simulation::new(&calendar, &disk, &mut engine, limits, stop, process.ended(), &mut desk);
        simulation.at_once = self.processor.is_some();
        let why = simulation.run();
        let virtual_time = Duration::from_nanos(simulation.now_ns());
        // Before its sockets are closed, which would have it panic.
        if why != Stop::Gone {
            process.kill();
        }
        let end = process.wait(DYING_TIME).unwrap_or_else(|| {
            process.kill();
            process.wait(DYING_TIME).unwrap_or(ProcessEnd::Exited(-1))
        });
        // Its descriptor was this one: it is where the guest stopped.
        let mut console = said
            .stream_position()
            .and_then(|end| said.set_len(end.min(CONSOLE_BYTES)))
            .and_then(|()| said.rewind())
            .and_then(|()| Console::drain(said, &console_log))
            .map_err(BootError::host("read the console"))?;
        let summary = console.finish();
        let end = ended(&why, end, desk.result(), &summary);
        let trace = engine.trace();
        Ok(ExactReport {
            end,
            counters: shared.counters(),
            marks: shared.marks(),
            trace,
            virtual_time,
            real_time: since.elapsed(),
            not_enforced: process.not_enforced(),
            console: summary,
            console_log,
        })
    }

    fn launch(&self, directory: PathBuf, console: rustix::fd::OwnedFd) -> Result<Launch, BootError> {
        let null = fs::File::open("/dev/null").map_err(BootError::host("open /dev/null"))?;
        let errors = console.try_clone().map_err(BootError::host("duplicate a descriptor"))?;
        let preloads =
            crate::uml::seeded_preloads(3).map_err(BootError::host("make the libraries that are preloaded"))?;
        // Program, arguments and environment are as long wherever the guest's directory is: they lie on the stack of the guest's
        // kernel and push its heap, and where that ends is where the guest's memory begins.
        let mut environment = crate::uml::environment(Path::new("."), preloads.names(), None);
        environment.push(("FSTONE_SEED".to_owned(), self.seed.to_string().into()));
        let mut descriptors = vec![(null.into(), 0), (console, 1), (errors, 2)];
        descriptors.extend(preloads.libraries);
        let linked = [AGENT_LINK, KERNEL_LINK].into_iter().filter_map(|link| fs::read_link(directory.join(link)).ok());
        Ok(Launch {
            program: KERNEL_LINK.into(),
            argv: self.argv(),
            environment,
            confined: Some(Confined {
                // Its directory is in the path of its process 1.
                needed: linked.chain([directory.clone()]).chain(self.needed.iter().cloned()).collect(),
                readable: self.readable.clone(),
                ..crate::uml::confined(self.memory_bytes)
            }),
            directory,
            descriptors,
            addresses: Addresses::Fixed,
            mounts_apart: false,
            ipc_apart: false,
        })
    }

    /// The kernel's command line. Whatever lies in the guest's own directory is named relative to it.
    fn argv(&self) -> Vec<OsString> {
        let mut words = vec![
            "linux".to_owned(),
            format!("mem={}K", self.memory_bytes >> 10),
            "time-travel=ext:calendar".to_owned(),
            "virtio_uml.device=disk:2".to_owned(),
        ];
        words.extend(HOST_AS_ROOT.map(str::to_owned));
        words.extend([
            "con=null".to_owned(),
            "con0=null,fd:1".to_owned(),
            "ssl=null".to_owned(),
            "pty.legacy_count=0".to_owned(),
            format!("uml_dir={CONTROL}"),
            "umid=guest".to_owned(),
            "hung_task_panic=1".to_owned(),
            format!("init={AGENT}"),
            format!("{EXACT}=1"),
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
            "TMPDIR=/run/tmp".to_owned(),
        ]);
        if !self.charge.is_zero() {
            words.push(format!("syscall_charge={}", self.charge.as_nanos()));
        }
        if let Some([instruction, byte]) = self.processor.as_ref().map(Processor::rates_as) {
            words.push(format!("work_price={instruction},{byte}"));
        }
        words.into_iter().map(OsString::from).collect()
    }
}

/// A file in memory that does not grow beyond its bound, for what the guest says.
fn console_file() -> io::Result<fs::File> {
    let file = memfd_create("console", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, CONSOLE_BYTES)?;
    fcntl_add_seals(&file, SealFlags::GROW)?;
    Ok(file.into())
}

/// What happened. A result that was written whole counts, however the guest went afterwards.
fn ended(why: &Stop, process: ProcessEnd, result: Option<Vec<u8>>, console: &ConsoleSummary) -> ExactEnd {
    if *why == Stop::Wanted {
        return ExactEnd::Stopped;
    }
    if let Some(result) = result {
        if let Some(body) = result.strip_prefix(b"done\n") {
            return ExactEnd::Done(body.to_vec());
        }
        if let Some(words) = result.strip_prefix(b"failed\n") {
            return ExactEnd::Failed(String::from_utf8_lossy(words).into_owned());
        }
    }
    if let Stop::Unfit(words) = why {
        return ExactEnd::Failed(format!("this kernel cannot be simulated: {words}"));
    }
    let gave_up = match why {
        Stop::Silent(waited) => Some((Waiting::Heartbeat, *waited)),
        Stop::Late(waited) => Some((Waiting::Job, *waited)),
        Stop::Deadlock => Some((Waiting::Event, Duration::ZERO)),
        Stop::Gone | Stop::Wanted | Stop::Garbled(_) | Stop::Unfit(_) => None,
    };
    let garbled = if let Stop::Garbled(problem) = why { Some(problem.clone()) } else { None };
    let panic_reported = process == ProcessEnd::Signalled(6);
    let evidence = Evidence { bye: false, gave_up, process, garbled, panic_reported, console };
    ExactEnd::GuestEnded(evidence.ending())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They lie in the guest's address space, so even their length decides where its memory begins.
    #[test]
    fn nothing_of_a_guests_own_place_is_in_what_it_is_started_with() {
        let place = tempfile::tempdir().unwrap();
        let started = |directory: &str, kernel: &str| {
            let directory = place.path().join(directory);
            fs::create_dir_all(&directory).unwrap();
            let model = Model::find("constant").unwrap();
            let spec =
                ExactSpec::new(place.path().join(kernel), "/bin/true", directory.join("image"), &directory, model);
            let launch = spec.launch(directory, fs::File::open("/dev/null").unwrap().into()).unwrap();
            (launch.program, launch.argv, launch.environment)
        };
        assert_eq!(started("a", "linux"), started(&"a-long-name/".repeat(20), "another-kernel"));
    }
}
