//! The guest's end: process 1 carries steps out as an executor on the running kernel, which here is the guest's.

use super::protocol::{
    DoneStep, PREPARE, Prepare, Prepared, Progress, STEP, StepEnd, StepReply, TRIAL, TrialReply, WholeTrial, decode,
    encode,
};
use crate::{
    events::{Event, ProgressSink},
    filesystem::{self, Filesystem},
    machine::Machine,
    place::{
        device::{Purpose, ScratchDevice},
        work_directory::WorkDirectory,
    },
    trial::{
        HostExecutor, Job,
        bench::{Bench, StepReport},
        host::{DEVICE, Halt, nanoseconds},
    },
};
use fstone_model::{
    Cell, Outcome, Step,
    outcome::Reason,
    result::TrialId,
    study::{DeviceSpec, KernelSpec},
};
use fstone_sandbox::agent::{Context, Handler, LoadError, time_of_a_read};
use std::{
    fs,
    path::Path,
    sync::{Mutex, PoisonError, atomic::AtomicBool},
    time::{Duration, Instant},
};

/// How often the host hears of a load at most. The guest may have one processor only, and it is being measured.
const PROGRESS_PERIOD: Duration = Duration::from_secs(1);

/// Whether this process is the agent of a guest. `main` asks this before it looks at its arguments.
#[must_use]
pub fn is_agent() -> bool {
    fstone_sandbox::agent::is_agent()
}

/// Is the agent, until the guest powers off.
pub fn main() -> ! {
    fstone_sandbox::agent::main(&mut StepHandler { seat: None })
}

/// Carries out steps.
struct StepHandler {
    seat: Option<Seat>,
}

/// The trial of this guest. There is one, and it ends with the process, so what others borrow lives for ever.
struct Seat {
    host: HostExecutor<'static>,
    cell: Cell,
    seed: u64,
    filesystem: &'static dyn Filesystem,
    device: ScratchDevice,
    mounted: Option<u64>,
}

/// Passes on to the host how a load goes.
struct ToHost<'a> {
    context: &'a Context<'a>,
    last: Mutex<Option<Instant>>,
}

impl ProgressSink for ToHost<'_> {
    fn event(&self, event: &Event<'_>) {
        let Event::Load(progress) = event else { return };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= PROGRESS_PERIOD) {
            *last = Some(Instant::now());
            self.context.progress(String::from_utf8_lossy(&encode(&Progress::from(progress))));
        }
    }
}

impl Handler for StepHandler {
    fn run(&mut self, kind: &str, body: &[u8], context: &Context<'_>) -> Result<Vec<u8>, String> {
        match kind {
            PREPARE => {
                let prepare: Prepare = decode(body)?;
                let device = prepare.time_disk.then(|| prepare.device.clone());
                let prepared = match Seat::prepare(prepare, context)? {
                    Ok(seat) => {
                        self.seat = Some(seat);
                        // A disk that fails here will fail its trial, too, and say more there.
                        Prepared::Ready(device.and_then(|device| time_of_a_read(Path::new(&device)).ok()))
                    }
                    Err(outcome) => Prepared::Not(outcome),
                };
                Ok(encode(&prepared))
            }
            STEP => {
                let seat = self.seat.as_mut().ok_or("a step came before its trial")?;
                Ok(encode(&seat.step(&decode(body)?, context)))
            }
            TRIAL => {
                let trial: WholeTrial = decode(body)?;
                let mut seat = match Seat::prepare(trial.prepare, context)? {
                    Ok(seat) => seat,
                    Err(outcome) => return Ok(encode(&TrialReply::Not(outcome))),
                };
                let clock = Instant::now();
                let mut done = Vec::new();
                for step in &trial.steps {
                    let started = clock.elapsed();
                    let reply = seat.step(step, context);
                    let duration_ns = nanoseconds(clock.elapsed().saturating_sub(started));
                    let well = matches!(reply.end, StepEnd::Done);
                    done.push(DoneStep { started_ns: nanoseconds(started), duration_ns, reply });
                    if !well {
                        break;
                    }
                }
                Ok(encode(&TrialReply::Done(done)))
            }
            other => Err(format!("{other:?} is no job of a trial")),
        }
    }
}

impl Seat {
    /// Everything that a step needs; or the outcome of a trial that cannot be made here.
    fn prepare(prepare: Prepare, context: &Context<'_>) -> Result<Result<Self, Outcome>, String> {
        let kind = &prepare.filesystem.kind;
        let filesystem = filesystem::find(kind).ok_or_else(|| format!("fstone has no adapter for {kind}"))?;
        let machine: &'static Machine = Box::leak(Box::new(Machine::host()));
        if !machine.mounter.kernel_has(filesystem.kernel_name())
            && let Err(error) = context.load_module(filesystem.kernel_name())
        {
            let words = match error {
                LoadError::Unknown(_) | LoadError::NoList { .. } => {
                    format!("this kernel has no {}", filesystem.kernel_name())
                }
                error => error.to_string(),
            };
            return Ok(Err(Outcome::Skipped(Reason::new("mount", words))));
        }
        let work =
            WorkDirectory::lock(&Path::new(context.scratch()).join("work")).map_err(|error| error.to_string())?;
        let work: &'static WorkDirectory = Box::leak(Box::new(work));
        let cancel: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let host = HostExecutor::new(machine, work, Vec::new(), prepare.measure_null, cancel);
        let host = host.map_err(|error| error.to_string())?;

        let claimed = ScratchDevice::claim(
            Path::new(&prepare.device),
            Purpose::GuestDisk,
            filesystem.minimum_bytes(),
            &*machine.devices,
            &*machine.runner,
        );
        let device = claimed.map_err(|refusal| refusal.to_string())?;
        for (name, value) in &prepare.queue {
            if let Err(error) = machine.devices.set_queue_setting(device.number(), name, value) {
                let words = format!("queue setting {name} = {value:?}: {error}");
                return Ok(Err(Outcome::Refused(Reason::new(DEVICE, words))));
            }
        }
        let cell = Cell {
            index: 0,
            levels: Vec::new(),
            label: String::new(),
            filesystem: prepare.filesystem,
            device: DeviceSpec::Block { path: prepare.device },
            kernel: KernelSpec::Host,
            queue: Vec::new(),
            steps: Vec::new(),
        };
        Ok(Ok(Self { host, cell, seed: prepare.seed, filesystem, device, mounted: None }))
    }

    fn step(&mut self, step: &Step, context: &Context<'_>) -> StepReply {
        let sink = ToHost { context, last: Mutex::new(None) };
        let id = TrialId { cell: 0, repetition: 0 };
        let job = Job { cell: &self.cell, id, position: 0, seed: self.seed, sink: &sink };
        let mut bench = Bench::new(&mut self.host, &job, Instant::now());
        bench.filesystem = Some(self.filesystem);
        bench.device = Some(self.device.clone());
        bench.mounted = self.mounted;
        let mut report = StepReport::default();
        // The working directory of mkfs, and the mount point.
        let place = fs::create_dir_all(&bench.place);
        let ended = match place {
            Ok(()) => bench.step(step, &mut report),
            Err(cause) => Err(Halt::from(crate::trial::ExecutorError::Work { path: bench.place.clone(), cause })),
        };
        if ended.is_ok() {
            bench.after(step);
        }
        self.mounted = bench.mounted;
        let record = bench.into_record();
        StepReply {
            commands: report.commands,
            figures: report.figures,
            load: report.load,
            warnings: record.warnings,
            effective: record.effective,
            mounted: self.mounted.is_some(),
            end: match ended {
                Ok(()) => StepEnd::Done,
                Err(Halt::Outcome(outcome)) => StepEnd::Outcome(outcome),
                Err(Halt::Stopped(_)) => StepEnd::Lab("it was stopped, and nobody had wanted that".into()),
                Err(Halt::Lab(error)) => StepEnd::Lab(error.to_string()),
            },
        }
    }
}
