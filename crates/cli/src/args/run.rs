//! `fstone run`, as it is typed.

use super::{
    kernel::NamedKernel,
    values::{
        Blocks, parse_blocks, parse_bytes, parse_charge, parse_duration, parse_guest_memory, parse_jobs, parse_note,
        parse_number, parse_only, parse_repeats, parse_set, parse_share, parse_speed,
    },
};
use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};
use fstone_model::{Note, result::Perturbation};
use fstone_sandbox::vhost::Speed;
use std::{path::PathBuf, time::Duration};

#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Examples:\n  fstone run small-file --quick\n  fstone run small-file --dry-run\n  sudo fstone run small-file --duration 60s --repeats 5 --device-size 16GiB\n  \
    fstone run ./my-study.toml --only filesystem='ext4*'\n  fstone run kernel-tree --set build=none --source linux-6.1.tar.xz\n  fstone run --all --quick\n  fstone run small-file --device directory --work-directory /mnt/scratch\n  fstone run small-file --device /dev/sdX1 --allow-destroy /dev/sdX1\n  fstone run small-file --repeats 8 --slurm -- --partition=fast --constraint=nvme"
)]
pub(crate) struct RunArguments {
    /// A built-in study's name (`fstone list studies`), or the path of a study file
    #[arg(value_name = "STUDY", required_unless_present_any = ["all", "sbatch"], value_parser = NonEmptyStringValueParser::new())]
    pub(crate) study: Option<String>,
    /// Run every built-in study, one after the other
    #[arg(long, conflicts_with = "study")]
    pub(crate) all: bool,
    /// The study's own short form: fewer rows and repeats, smaller device, shorter loads
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the plan (cells, order, exact commands, estimated time) and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How long each load runs
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(crate) duration: Option<Duration>,
    /// How often each cell is tried: N, or MIN..MAX
    #[arg(long, value_name = "N", value_parser = parse_repeats, allow_hyphen_values = true)]
    pub(crate) repeats: Option<(u32, u32)>,
    /// Spend this much time instead of a number of repeats: after each block, on the rows that cannot be told apart yet
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "repeats", allow_hyphen_values = true)]
    pub(crate) budget: Option<Duration>,
    /// With --budget: pairs of rows that are shown to be closer than this count as decided [default: 5%]
    #[arg(long, value_name = "SHARE", value_parser = parse_share, requires = "budget", allow_hyphen_values = true)]
    pub(crate) resolution: Option<f64>,
    /// Size of the loop image
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_hyphen_values = true)]
    pub(crate) device_size: Option<u64>,
    /// `loop`, `memory` (a loop image in memory), `zram`, `directory`, `directory:PATH`, or the path of a block device to format
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Permit fstone to format this block device; required in addition to --device PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_destroy: Vec<PathBuf>,
    /// Permit the loss of data on this block device that no filesystem accounts for, and of a killed run's filesystem; without a terminal it
    /// is refused otherwise
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_destroy_data: Vec<PathBuf>,
    /// Where trials run: on the running kernel, or in guests, which need no root
    #[arg(long, value_name = "EXECUTOR", default_value = "auto")]
    pub(crate) executor: ExecutorChoice,
    /// What to do with rows whose filesystem the running kernel lacks: skip them, or run them and the baseline again in guests
    #[arg(long, value_name = "WHAT", default_value = "skip", conflicts_with_all = ["kernel", "exact", "resume"])]
    pub(crate) missing: Missing,
    /// Run every row under this kernel: host, uml:6.1, qemu:6.12, … (`fstone kernel list`), or build:TREE, which `fstone kernel build
    /// TREE` makes first. May be given several times
    #[arg(long, value_name = "KERNEL", value_parser = NamedKernel::parse, conflicts_with = "executor")]
    pub(crate) kernel: Vec<NamedKernel>,
    /// Run in virtual time: figures without noise, the same on every machine; each repeat has another seed. Uses a kernel made by
    /// `fstone kernel build`: the first, or what --kernel names
    #[arg(long, conflicts_with_all = ["executor", "guest_disk", "resume"])]
    pub(crate) exact: bool,
    /// The drive of trials in virtual time: a model (`fstone device`), or a .toml file. Default: hdd-7200-2008,
    /// or with --published the study's
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The time that each system call is charged in virtual time; 0 s charges nothing. Default: 2 us
    #[arg(long, value_name = "TIME", value_parser = parse_charge)]
    pub(crate) charge: Option<Duration>,
    /// The processor that the kernel's work is charged as in virtual time: a model (see `fstone device`), a .toml file, or free (the default)
    #[arg(long, value_name = "MODEL")]
    pub(crate) cpu: Option<String>,
    /// Trials of each row in virtual time whose guests differ in what should not matter (memory, start): how far that moves a figure is
    /// what a difference must exceed. Default: 2, or 0 with --quick or from 5 repeats on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(Perturbation::MOST)), conflicts_with_all = ["budget", "slurm", "blocks"])]
    pub(crate) perturbed: Option<u32>,
    /// How many trials in virtual time run at once; the figures are the same. Default: one per core
    #[arg(long, value_name = "N", value_parser = parse_jobs, allow_hyphen_values = true)]
    pub(crate) jobs: Option<usize>,
    /// Memory of a guest. Default: 512 MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_guest_memory, allow_hyphen_values = true)]
    pub(crate) guest_memory: Option<u64>,
    /// Slow down the disks of guests to a known speed: iops=N, bandwidth=SIZE (per second), latency=TIME, separated by commas
    #[arg(long, value_name = "SPEED", value_parser = parse_speed)]
    pub(crate) guest_disk: Option<Speed>,
    /// Only these levels of a factor; `*` matches anything. May be given several times
    #[arg(long, value_name = "FACTOR=LEVEL", value_parser = parse_only)]
    pub(crate) only: Vec<(String, String)>,
    /// The seed of the order and of all random streams; recorded either way
    #[arg(long, value_name = "N", value_parser = parse_number, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    /// The source tree for studies that unpack one: an archive that tar reads, or a directory. Default: Debian's
    /// linux-source-* if it is installed, else a generated one; the quick forms generate small ones
    #[arg(long, value_name = "PATH")]
    pub(crate) source: Option<PathBuf>,
    /// Run only these blocks here, from 1 (3, 2-4, or 1,3-4); `fstone blocks` runs the others on other machines
    #[arg(long, value_name = "BLOCKS", value_parser = parse_blocks, conflicts_with_all = ["all", "dry_run", "budget", "missing", "resume"])]
    pub(crate) blocks: Option<Blocks>,
    /// Give the blocks to the nodes of a Slurm cluster, as the tasks of one job array; what follows `--` goes to sbatch
    #[arg(long, conflicts_with_all = ["all", "dry_run", "budget", "missing", "exact", "blocks", "jobs", "wait", "changed_machine"])]
    pub(crate) slurm: bool,
    /// A directory that all nodes see, for the plan and the finished blocks. Default: a directory `slurm` beside the store
    #[arg(long, value_name = "DIR", requires = "slurm")]
    pub(crate) slurm_directory: Option<PathBuf>,
    /// With --slurm: options for sbatch, like --partition=fast --constraint=nvme
    #[arg(last = true, value_name = "SBATCH OPTIONS", allow_hyphen_values = true)]
    pub(crate) sbatch: Vec<String>,
    /// Another value for one of the study's variables, like build=none, or for a number of its loads: threads=4; of one
    /// group, phase or fileset of a load: readers.threads=4. May be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_set, conflicts_with = "all")]
    pub(crate) set: Vec<(String, String)>,
    /// Continue this machine's last unfinished run of this study: its plan and its finished trials are kept
    #[arg(long, conflicts_with_all = ["all", "dry_run", "duration", "repeats", "device", "device_size", "only", "seed", "source", "set", "executor", "kernel", "note"])]
    pub(crate) resume: bool,
    /// With --resume: continue although the kernel, a tool or fstone has changed; each trial from then on says so
    #[arg(long, requires = "resume")]
    pub(crate) changed_machine: bool,
    /// Wait until no other run is in progress on this machine. Without this option both run, and the trials of both carry a warning
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) wait: bool,
    /// Continue even if the first trials of all rows fail in the same way
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Show throughput and latency while the load runs, and after each block which rows are told apart so far
    #[arg(long, conflicts_with_all = ["dry_run", "slurm"])]
    pub(crate) live: bool,
    /// Print the published figures beside today's
    #[arg(long)]
    pub(crate) published: bool,
    /// A line about the run, for lists, reports and comparisons: "before the patch"
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    pub(crate) note: Option<Note>,
    /// The directory for the HTML report and an index of all reports. Default: `reports` beside the store
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// What runs trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExecutorChoice {
    /// The running kernel for root, if it has any of the filesystems; else user-mode Linux; else a directory
    #[default]
    Auto,
    /// The running kernel
    Host,
    /// User-mode Linux: a kernel as a process
    Uml,
    /// QEMU, with the newest kernel that was added for it
    Qemu,
    /// A directory of an existing filesystem
    Directory,
}

/// What to do with rows whose filesystem the running kernel lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Missing {
    /// Skip them; the table says so
    #[default]
    Skip,
    /// A second run in user-mode Linux. Figures of the two runs are not compared
    Uml,
}
