//! What a study file means once it is read: a [`Plan`] of [`Cell`]s, each with its steps spelled out.
//!
//! `formats` makes a plan from a study file; `lab` carries it out; `store` keeps it beside the results; `report`
//! reads its columns. Every level's setting has been applied: a cell needs nothing but itself to be run.

use crate::{
    StepKind, Trial, Workload, age::Past, mkfs::MkfsOptions, output::OutputFigure, own::OwnFilesystem, result::TrialId,
    service::Service, units, workload::Replay,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A study, ready to be carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")] // `check.rs` has the traits.
pub struct Plan {
    pub study: String,
    pub title: String,
    /// What it asks and what to look for; paragraphs of plain text.
    pub about: String,
    pub source: String,
    /// Every other file it named, as (name, content), so that a run can be repeated from its record alone.
    pub attachments: Vec<(String, String)>,
    /// Whether `[quick]` was applied.
    pub quick: bool,
    /// Blocks that run first and are not recorded, so that caches, clocks and memory reach a steady state.
    #[serde(default)]
    pub warm_up: u32,
    pub repeats: Repeats,
    /// How many trials of each cell in virtual time have perturbed guests, in addition to the repeats.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub perturbed: u32,
    /// The time that is dealt out instead of repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    pub order: Order,
    /// The seed of the order and of every trial's random streams.
    pub seed: u64,
    pub factors: Vec<Factor>,
    /// Every combination of levels, in the order the study names them: the last factor varies fastest.
    pub cells: Vec<Cell>,
    pub columns: Vec<Column>,
    pub baseline: Option<u32>,
    /// The factor that rows are compared by, where it varies: filesystems unless given.
    #[serde(default)]
    pub compare: Option<String>,
    pub expected_duration: Option<Duration>,
    pub published: Option<Published>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    pub min: u32,
    pub max: u32,
    /// Stop when the half-width of the 95 % interval is below this share of the value, 0 to 1.
    pub until: Option<f64>,
}

/// Time to be dealt out to the rows that are still undecided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub time: Duration,
    /// Differences up to this share do not matter: rows that are shown to be this close are decided. 0 to 1.
    pub resolution: f64,
}

impl Budget {
    /// What part of the time trials have taken at the end of each block, as (block, part), in the order of the blocks.
    pub fn shares(&self, trials: &[Trial]) -> Vec<(u32, f64)> {
        // By number: a record from elsewhere may have any.
        let mut of_blocks: BTreeMap<u32, f64> = BTreeMap::new();
        for trial in trials {
            *of_blocks.entry(trial.id.repetition).or_default() += Duration::from_nanos(trial.duration_ns).as_secs_f64();
        }
        let sums = of_blocks.into_iter().scan(0.0, |sum, (block, of_block)| {
            *sum += of_block;
            Some((block, *sum / self.time.as_secs_f64()))
        });
        sums.collect()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Complete randomised blocks: each block holds every cell once, shuffled.
    #[default]
    Blocks,
    /// Block after block in the order written; for debugging a study.
    AsWritten,
}

/// What is varied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    pub name: String,
    pub levels: Vec<String>,
    /// Their numeric values when the factor is numeric (bytes for sizes), for the axis of a plot.
    pub numbers: Option<Vec<NumericLevel>>,
}

/// A level of a numeric factor, kept as an integer so that plans compare exactly.
pub type NumericLevel = u64;

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub index: u32,
    /// For each factor, the index of the level.
    pub levels: Vec<u32>,
    /// Level names joined with " · ".
    pub label: String,
    pub filesystem: FilesystemSpec,
    pub device: DeviceSpec,
    pub kernel: KernelSpec,
    /// Block-queue settings to set for the trial, as (name, value): ("scheduler", "none").
    pub queue: Vec<(String, String)>,
    /// What is done, in order. `mkfs` and `mount` are always there.
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesystemSpec {
    /// The level's name.
    pub name: String,
    /// ext2, ext3, ext4, xfs, btrfs, …
    pub kind: String,
    /// Options for mkfs, split as argv.
    pub mkfs: Vec<String>,
    /// Mount options, comma separated; empty for none.
    pub mount: String,
    /// Path on the host of the directory tree that mkfs puts into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// How it is made where the study itself says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Arc<OwnFilesystem>>,
}

/// A type of filesystem that a study may name. The adapters define them; the reader of studies is given the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilesystemType {
    pub name: &'static str,
    /// Whether its mkfs can put a tree into the filesystem it makes.
    pub holds_trees: bool,
    pub mkfs: &'static MkfsOptions,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceSpec {
    /// A sparse image file behind a loop device.
    Loop {
        size_bytes: u64,
        /// Whether the loop device bypasses the page cache of the filesystem below.
        direct_io: bool,
        /// Logical sector size; 512 unless given.
        sector_bytes: u32,
        /// Where the image is, when not in the work directory.
        directory: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_memory: bool,
        /// The drive model that it has in virtual time: a name, or a file among the plan's attachments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    Zram {
        size_bytes: u64,
    },
    /// A named block device; it will be formatted.
    Block {
        path: String,
    },
    /// No device: a directory of a filesystem that is already there. Nothing is made, mounted or checked.
    Directory {
        /// Which; the work directory when `None`.
        path: Option<String>,
    },
    /// No device: a directory that is made for each trial, for a filesystem of the study's own that needs no device.
    Scratch {
        /// In which directory; the work directory when `None`.
        directory: Option<String>,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelSpec {
    /// The running one.
    #[default]
    Host,
    /// User-mode Linux of this version or path.
    Uml(String),
    Qemu(String),
    /// User-mode Linux whose time is simulated, of this version, name or path.
    Exact(String),
}

impl KernelSpec {
    pub const fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    /// As a study writes it: "host", "uml:6.1", "qemu:/path/vmlinuz".
    pub fn written(&self) -> String {
        match self {
            Self::Host => "host".to_owned(),
            Self::Uml(which) => format!("uml:{which}"),
            Self::Qemu(which) => format!("qemu:{which}"),
            Self::Exact(which) => format!("exact:{which}"),
        }
    }

    /// The file that it is named by, where it is not named by a version.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Host => None,
            Self::Uml(which) | Self::Qemu(which) | Self::Exact(which) => {
                Some(which.as_str()).filter(|it| it.contains('/'))
            }
        }
    }

    /// What carries trials out under it. Figures of different executors are never compared: a system call, a clock read
    /// and a disk request cost something else in each.
    pub const fn executor(&self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Uml(_) => "uml",
            Self::Qemu(_) => "qemu",
            Self::Exact(_) => "exact",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its name, unique in the cell ("load", "fsck", "tar").
    pub name: String,
    pub action: StepAction,
    /// How long it may take before the trial counts as hung.
    pub limit: Duration,
    /// Whether a load or a command runs beside the next one in the foreground, and ends with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

impl Step {
    /// The recording that it replays.
    pub fn replay(&self) -> Option<&Replay> {
        if let StepAction::Load(load) = &self.action { load.replay.as_ref() } else { None }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepAction {
    Mkfs,
    Mount,
    /// Run a load in the mounted filesystem. Cells that do the same share it.
    Load(Arc<Workload>),
    /// Run a command with the mounted filesystem as its working directory.
    Command {
        /// Program and arguments. "{mount}" and "{device}" stand for the mount point and the device.
        argv: Vec<String>,
        /// Whether argv's only element goes to `sh -c`.
        shell: bool,
        success: Vec<i32>,
        /// What it prints.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        figures: Vec<OutputFigure>,
    },
    /// Start a service, and wait until it answers. It ends with the trial, or when the filesystem is unmounted.
    Service(Arc<Service>),
    /// Unmount, drop caches and mount again.
    Remount,
    Unmount,
    /// sync(2).
    Sync,
    /// Drop the page, dentry and inode caches.
    DropCaches,
    /// FITRIM.
    Trim,
    /// Check it, unmounting it first where it is mounted.
    Fsck {
        mode: FsckMode,
    },
    /// Count extents per file (FIEMAP).
    Fragmentation,
    /// Copy a file or tree of the host into the mounted filesystem.
    CopyIn {
        /// Path on the host.
        source: String,
        /// Relative path in the filesystem.
        target: String,
    },
    /// Mount, check and read the states that power cuts during the preceding loads could have left.
    PowerCut(PowerCut),
    /// Age the mounted filesystem, or look at a copy of an old one; then mount it anew with cold caches.
    Age(Arc<Past>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerCut {
    pub states: u32,
    /// Most bytes of data that the disk's log may hold.
    pub log_bytes: u64,
    pub disk: DiskTruth,
    /// How many bytes the disk writes atomically: 512 or 4096. Plans that do not say are from the time when it was 512.
    #[serde(default = "smallest_sector")]
    pub sector_bytes: u32,
}

impl PowerCut {
    /// What disks write whole, in bytes, unless told otherwise.
    pub const USUAL_SECTOR: u32 = 4096;

    /// A number of bytes, if there are disks that write so many whole.
    pub fn whole_sector(bytes: u64) -> Option<u32> {
        [512, Self::USUAL_SECTOR].into_iter().find(|sector| u64::from(*sector) == bytes)
    }
}

const fn smallest_sector() -> u32 {
    512
}

/// Whether a disk keeps its promise that flushed data is durable. All but the sound one exist to show that a check
/// finds what they break.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskTruth {
    #[default]
    Sound,
    /// Flushes make nothing durable.
    ForgetsFlushes,
    /// Something that was flushed is there in part.
    Tears,
    /// Something that was flushed is missing, and later writes are there.
    Reorders,
}

impl StepAction {
    pub const fn kind(&self) -> StepKind {
        match self {
            Self::Mkfs => StepKind::Mkfs,
            Self::Mount => StepKind::Mount,
            Self::Load(_) => StepKind::Load,
            Self::Command { .. } => StepKind::Command,
            Self::Service(_) => StepKind::Service,
            Self::Remount => StepKind::Remount,
            Self::Unmount => StepKind::Unmount,
            Self::Sync => StepKind::Sync,
            Self::DropCaches => StepKind::DropCaches,
            Self::Trim => StepKind::Trim,
            Self::Fsck { .. } => StepKind::Fsck,
            Self::Fragmentation => StepKind::Fragmentation,
            Self::CopyIn { .. } => StepKind::CopyIn,
            Self::PowerCut(_) => StepKind::PowerCut,
            Self::Age(_) => StepKind::Age,
        }
    }
}

/// The name under which a trial's time outside its steps is recorded. No step of a study may have this name.
pub const TRIAL_STEP: &str = "trial";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FsckMode {
    /// Nothing (`e2fsck -fn`, `xfs_repair -n`, `btrfs check`).
    #[default]
    ReadOnly,
    /// Repair (`e2fsck -fy`).
    Repair,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// What stands above it, without the unit.
    pub header: String,
    pub step: String,
    pub metric: String,
}

/// Figures published elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Where and when, and on what machine; plain text.
    pub source: String,
    /// How much memory that machine had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The model of its drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub figures: Vec<PublishedFigure>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// The cell's label.
    pub cell: String,
    /// The column's header.
    pub column: String,
    /// The value in the metric's base unit; `None` where the publication has no figure.
    pub value: Option<f64>,
    /// What stood in its place or beside it ("system hung").
    pub note: Option<String>,
}

impl Plan {
    pub fn varies(&self, factor: usize) -> bool {
        let mut levels = self.cells.iter().map(|cell| cell.levels.get(factor));
        let first = levels.next();
        levels.any(|level| Some(level) != first)
    }

    /// The past of all cells, if they have one.
    pub fn past(&self) -> Option<&Past> {
        let first = self.cells.first()?.past();
        first.filter(|_| self.cells.iter().all(|cell| cell.past() == first))
    }

    /// Every trial of a block: each cell once. The order within a block is the lab's schedule.
    pub fn block(&self, repetition: u32) -> impl Iterator<Item = TrialId> {
        self.cells.iter().map(move |cell| TrialId { cell: cell.index, repetition })
    }
}

impl Plan {
    /// The same study on an existing filesystem, for users who cannot make one: the factors filesystem and kernel
    /// are gone, cells that differed only in them are one, and steps that need a device of their own are left out.
    /// `name` is what stands in place of the filesystem's.
    pub fn on_directory(&self, name: &str, path: Option<&str>) -> Self {
        let mut plan = self.clone();
        let stays: Vec<bool> =
            self.factors.iter().map(|factor| ![FILESYSTEM_FACTOR, KERNEL_FACTOR].contains(&&*factor.name)).collect();
        let stays_at = |at: usize| stays.get(at).copied().unwrap_or(true);
        plan.factors =
            self.factors.iter().zip(0..).filter(|(_, at)| stays_at(*at)).map(|(one, _)| one.clone()).collect();
        let mut seen: Vec<Vec<u32>> = Vec::new();
        plan.cells = Vec::new();
        // Of rows that are one there, a fresh one stays.
        let (aged, fresh): (Vec<&Cell>, Vec<&Cell>) = self.cells.iter().partition(|cell| cell.past().is_some());
        for cell in fresh.into_iter().chain(aged) {
            let mut cell = cell.clone();
            cell.levels =
                cell.levels.into_iter().zip(0..).filter(|(_, at)| stays_at(*at)).map(|(level, _)| level).collect();
            if seen.contains(&cell.levels) {
                continue;
            }
            seen.push(cell.levels.clone());
            cell.index = u32::try_from(plan.cells.len()).expect("fewer cells than before");
            let levels =
                plan.factors.iter().zip(&cell.levels).map(|(factor, level)| factor.levels[*level as usize].as_str());
            cell.label = std::iter::once(name).chain(levels).collect::<Vec<_>>().join(" · ");
            cell.filesystem =
                FilesystemSpec { name: name.to_owned(), kind: name.to_owned(), ..FilesystemSpec::default() };
            cell.device = DeviceSpec::Directory { path: path.map(str::to_owned) };
            cell.kernel = KernelSpec::Host;
            cell.queue.clear();
            cell.steps.retain(|step| step.action.works_in_a_directory());
            plan.cells.push(cell);
        }
        let steps: Vec<&str> = plan.cells.iter().flat_map(|cell| &cell.steps).map(|step| step.name.as_str()).collect();
        plan.columns.retain(|column| steps.contains(&column.step.as_str()));
        plan.baseline = None;
        plan.published = None;
        plan
    }
}

impl Cell {
    /// What its filesystem went through before it is measured, unless it is fresh.
    pub fn past(&self) -> Option<&Past> {
        self.steps.iter().find_map(|step| match &step.action {
            StepAction::Age(past) => Some(&**past),
            _ => None,
        })
    }
}

pub const FILESYSTEM_FACTOR: &str = "filesystem";
pub const KERNEL_FACTOR: &str = "kernel";

impl StepAction {
    /// Whether it is a load that opens its files with O_DIRECT.
    pub fn is_direct(&self) -> bool {
        matches!(self, Self::Load(workload) if workload.io.direct)
    }

    /// Whether the step makes sense on a filesystem that fstone must not make, unmount or check.
    pub const fn works_in_a_directory(&self) -> bool {
        match self {
            Self::Load(_)
            | Self::Command { .. }
            | Self::Service(_)
            | Self::Sync
            | Self::DropCaches
            | Self::Fragmentation
            | Self::Age(_)
            | Self::CopyIn { .. } => true,
            Self::Mkfs
            | Self::Mount
            | Self::Remount
            | Self::Unmount
            | Self::Trim
            | Self::Fsck { .. }
            | Self::PowerCut(_) => false,
        }
    }
}

impl DeviceSpec {
    /// How a person would name it ("loop 4 GiB").
    pub fn describe(&self) -> String {
        match self {
            Self::Loop { size_bytes, direct_io, sector_bytes, in_memory, model, .. } => {
                let kind = model.as_deref().unwrap_or("loop");
                let mut text = format!("{kind} {}", units::format_bytes(*size_bytes));
                if *in_memory {
                    text.push_str(" in memory");
                }
                if *direct_io {
                    text.push_str(", direct I/O");
                }
                if *sector_bytes != 512 {
                    text.push_str(&format!(", {sector_bytes}-byte sectors"));
                }
                text
            }
            Self::Zram { size_bytes } => format!("zram {}", units::format_bytes(*size_bytes)),
            Self::Block { path } => path.clone(),
            Self::Directory { path } => format!("directory {}", path.as_deref().unwrap_or("(work directory)")),
            Self::Scratch { directory } => {
                format!("a scratch directory in {}", directory.as_deref().unwrap_or("the work directory"))
            }
        }
    }

    pub fn model(&self) -> Option<&str> {
        match self {
            Self::Loop { model, .. } => model.as_deref(),
            _ => None,
        }
    }

    pub const fn size_bytes(&self) -> Option<u64> {
        match self {
            Self::Loop { size_bytes, .. } | Self::Zram { size_bytes } => Some(*size_bytes),
            Self::Block { .. } | Self::Directory { .. } | Self::Scratch { .. } => None,
        }
    }
}
