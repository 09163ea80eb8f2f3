//! `fstone durability`: what filesystems keep when the power goes, by short sequences of calls.

mod campaign;
mod properties;
mod words;

use super::{Context, cancel_on_signals, carry_out::laboratory};
use crate::{
    args::DurabilityArguments,
    exit::Exit,
    paths,
    progress::{Expected, RunProgress},
    studies,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use campaign::{Campaign, Setting};
use fstone_engine::sequences::{Sequence, one_operation, two_operations};
use fstone_formats::study::Overrides;
use fstone_lab::{
    agent::{Flavour, GuestOptions, default_kernel, missing_kernel},
    filesystem,
    run::explore::{Explored, SequenceFound, explore},
};
use fstone_model::{
    Cell, Step,
    study::{DeviceSpec, DiskTruth, FilesystemSpec, KernelSpec, PowerCut, StepAction},
    units::format_bytes,
};
use std::{collections::BTreeMap, sync::atomic::AtomicBool, thread, time::Duration};

/// A small filesystem is made, copied and checked quickly, and the first files are small.
const DEVICE_BYTES: u64 = 64 << 20;
/// A sequence writes a few hundred blocks; what the kernel writes beside them is of that order.
const LOG_BYTES: u64 = 256 << 20;
/// Default limit on the states of a sequence: minutes for all sequences of one operation.
const STATES: u32 = 60;
/// The same if a few sequences are to show a property or a counterexample.
const STATES_OF_PROPERTIES: u32 = 200;
const MKFS_LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn durability(context: &Context, arguments: &DurabilityArguments) -> CommandResult {
    let filesystems = filesystems(arguments)?;
    let kernel = kernel(context, arguments)?;
    let sequences = sequences(arguments)?;
    let cancel = cancel_on_signals()?;
    let (mut exit, mut columns) = (Exit::Success, Vec::new());
    for filesystem in &filesystems {
        let (ended, found) = one(context, arguments, (filesystem, &kernel), &sequences, &cancel)?;
        columns.push((filesystem.name.clone(), found));
        match ended {
            Exit::Success => {}
            Exit::Interrupted => return Ok(Exit::Interrupted),
            other => exit = other,
        }
    }
    if !is_exhaustive(arguments) {
        terminal::print(&properties::table(&columns));
    }
    Ok(exit)
}

const fn is_exhaustive(arguments: &DurabilityArguments) -> bool {
    arguments.exhaustive || !arguments.sequence.is_empty()
}

/// Types by their names, and those of a study with its options.
fn filesystems(arguments: &DurabilityArguments) -> Result<Vec<FilesystemSpec>, Failure> {
    let mut found: Vec<FilesystemSpec> = Vec::new();
    for name in &arguments.filesystem {
        if filesystem::find(name).is_some() {
            found.push(FilesystemSpec {
                name: [name.as_str(), &arguments.mkfs, &arguments.mount].join(" ").trim().to_owned(),
                kind: name.clone(),
                mkfs: arguments.mkfs.split_whitespace().map(str::to_owned).collect(),
                mount: arguments.mount.clone(),
                ..FilesystemSpec::default()
            });
            continue;
        }
        let known = || filesystem::all().iter().map(|known| known.kind()).collect::<Vec<_>>().join(", ");
        let study = studies::find(name).map_err(|error| {
            let words = format!("{name} is neither a type of filesystem ({}) nor a study: {error}", known());
            Failure::new(Exit::BadInput, words)
        })?;
        if !arguments.mkfs.is_empty() || !arguments.mount.is_empty() {
            let words =
                format!("--mkfs and --mount are for filesystem types; {name} is a study, which has its own options");
            return Err(Failure::new(Exit::BadInput, words));
        }
        let (plan, _) = study.compile(&Overrides::default()).or_exit(Exit::BadInput)?;
        for cell in plan.cells {
            if !found.contains(&cell.filesystem) {
                found.push(cell.filesystem);
            }
        }
    }
    Ok(found)
}

/// The guest's kernel: the one that was requested, else user-mode Linux, else one for QEMU.
fn kernel(context: &Context, arguments: &DurabilityArguments) -> Result<KernelSpec, Failure> {
    if let Some(kernel) = &arguments.kernel {
        if !matches!(kernel, KernelSpec::Uml(_) | KernelSpec::Qemu(_)) {
            let words = format!(
                "--kernel {}: power cuts need a guest: uml:VERSION or qemu:VERSION; in virtual time, on a model of a drive, \
                 `fstone run durability --exact` has them",
                kernel.written()
            );
            return Err(Failure::new(Exit::BadInput, words));
        }
        return match missing_kernel(kernel, &context.kernels) {
            Some(words) => Err(Failure::new(Exit::CannotHere, words)),
            None => Ok(kernel.clone()),
        };
    }
    let found = [Flavour::Uml, Flavour::Qemu].into_iter().find_map(|flavour| default_kernel(&context.kernels, flavour));
    found.ok_or_else(|| {
        let words =
            "there is no kernel for a guest on this machine; get one with `fstone kernel add uml:6.1` (no root)";
        Failure::new(Exit::CannotHere, words)
    })
}

fn sequences(arguments: &DurabilityArguments) -> Result<Vec<Sequence>, Failure> {
    if !arguments.sequence.is_empty() {
        return arguments.sequence.iter().map(|text| text.parse().or_exit(Exit::BadInput)).collect();
    }
    if !arguments.exhaustive {
        return Ok(properties::sequences());
    }
    let mut sequences = one_operation();
    sequences.extend(two_operations(arguments.pairs as usize, arguments.seed));
    Ok(sequences)
}

fn one(
    context: &Context,
    arguments: &DurabilityArguments,
    (filesystem, kernel): (&FilesystemSpec, &KernelSpec),
    sequences: &[Sequence],
    cancel: &AtomicBool,
) -> Result<(Exit, BTreeMap<String, SequenceFound>), Failure> {
    let setting = Setting {
        filesystem,
        kernel,
        states: arguments.states.unwrap_or(if is_exhaustive(arguments) { STATES } else { STATES_OF_PROPERTIES }),
        seed: arguments.seed,
        disk: arguments.disk,
        device_bytes: device_bytes(filesystem),
        sector_bytes: arguments.sector,
        properties: !is_exhaustive(arguments),
    };
    let directory = context.store.parent().map(|parent| parent.join("durability")).unwrap_or_default();
    paths::create_directory(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))
        .or_exit(Exit::LabFailed)?;
    let guest = GuestOptions::new(context.kernels.clone(), &paths::own_cache());
    // Before anything that is known is forgotten.
    let options = laboratory(context, guest)?;
    let campaign = Campaign::open(&directory, &setting, sequences, arguments.fresh)?;
    let guests = arguments.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    let ended = if campaign.is_complete() {
        Explored::All
    } else {
        let progress = RunProgress::new(Expected::default());
        let explored = explore(&cell(&setting), &options, (guests, arguments.seed), &campaign, &progress, cancel)
            .or_exit(Exit::LabFailed);
        drop(progress.finish());
        campaign.finish();
        explored?
    };
    if is_exhaustive(arguments) {
        terminal::print(&words::report(&setting, &campaign));
    }
    let exit = match ended {
        Explored::Cancelled => {
            terminal::tell(&format!(
                "Interrupted: the findings are in {}; the same command continues.",
                campaign.path().display()
            ));
            Exit::Interrupted
        }
        Explored::Not(outcome) => {
            let reason =
                outcome.reason().map(|reason| format!("{}: {}", reason.step, reason.words)).unwrap_or_default();
            terminal::tell(&format!("{}: {}: {reason}", filesystem.name, outcome.word()));
            Exit::NothingCompleted
        }
        Explored::All if !campaign.is_complete() => {
            let words = format!("some sequences could not be recorded in {}", campaign.path().display());
            return Err(Failure::new(Exit::LabFailed, words));
        }
        Explored::All if campaign.has_losses() => Exit::Regression,
        Explored::All => Exit::Success,
    };
    Ok((exit, campaign.outcomes()))
}

fn device_bytes(filesystem: &FilesystemSpec) -> u64 {
    let least = filesystem::find(&filesystem.kind).map_or(0, |known| known.facts().minimum_bytes);
    least.max(DEVICE_BYTES).next_multiple_of(1 << 20)
}

fn cell(setting: &Setting<'_>) -> Cell {
    let cut = PowerCut {
        states: setting.states,
        log_bytes: LOG_BYTES,
        disk: setting.disk,
        sector_bytes: setting.sector_bytes,
    };
    let step = |name: &str, action, limit| Step { name: name.into(), action, limit, background: false };
    Cell {
        index: 0,
        levels: vec![0],
        label: setting.filesystem.name.clone(),
        filesystem: setting.filesystem.clone(),
        device: DeviceSpec::Loop {
            size_bytes: setting.device_bytes,
            direct_io: false,
            sector_bytes: 512,
            directory: None,
            in_memory: false,
            model: None,
        },
        kernel: setting.kernel.clone(),
        queue: Vec::new(),
        steps: vec![
            step("mkfs", StepAction::Mkfs, MKFS_LIMIT),
            step("power-cut", StepAction::PowerCut(cut), MKFS_LIMIT),
        ],
    }
}

impl Setting<'_> {
    fn described(&self) -> String {
        let disk = match self.disk {
            DiskTruth::Sound => "",
            DiskTruth::ForgetsFlushes => ", on a disk that forgets flushes",
            DiskTruth::Tears => ", on a disk that tears what it wrote",
            DiskTruth::Reorders => ", on a disk that loses one of its last writes",
        };
        format!("{} of {} in {}{disk}", self.filesystem.name, format_bytes(self.device_bytes), self.kernel.written())
    }
}
