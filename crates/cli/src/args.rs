//! What the user typed. Every command, option and help text is defined here once; the man page and the shell
//! completions are generated from it.

mod durability;
mod kernel;
#[cfg(any(feature = "mpi", test))]
mod patience;
mod results;
mod tasks;
mod words;

pub(crate) use durability::DurabilityArguments;
pub(crate) use kernel::NamedKernel;
pub(crate) use results::*;
pub(crate) use tasks::{IorArguments, MdtestArguments};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{NonEmptyStringValueParser, PathBufValueParser},
};
use fstone_model::{Note, note::NoteError, units};
use fstone_sandbox::{
    uml::{MAX_MEMORY_BYTES, MIN_MEMORY_BYTES},
    vhost::Speed,
};
use std::{collections::BTreeSet, path::PathBuf, time::Duration};

const START: &str = "Start here:\n  fstone check                        what this machine can do, and what to install\n  fstone list studies                 the built-in studies\n  \
        fstone run small-file --dry-run     what would be done, command by command; touches nothing\n  fstone run small-file --quick       \
        do it in about four minutes\n  fstone report --format html         the last run as a page\n  man fstone-run                      the manual; not installed yet: fstone manual | man -l -";

/// What a kernel whose time can be simulated is built from, unless another source is named.
pub(crate) const USUAL_SOURCE: &str = "linux-source-6.1";

/// Version and commit.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("FSTONE_COMMIT"), ")");

/// "+" and the name of a feature that the binary has, "-" and the name of one that it lacks.
macro_rules! feature {
    ($macro:ident, $name:literal) => {
        #[cfg(feature = $name)]
        macro_rules! $macro {
            () => {
                concat!("+", $name)
            };
        }
        #[cfg(not(feature = $name))]
        macro_rules! $macro {
            () => {
                concat!("-", $name)
            };
        }
    };
}

feature!(mpi, "mpi");
feature!(parquet, "parquet");

/// [`VERSION`] with how the binary was built.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("FSTONE_COMMIT"),
    ")\nfeatures: ",
    mpi!(),
    " ",
    parquet!(),
    "\ntarget: ",
    env!("FSTONE_TARGET")
);

/// fstone: a filesystem benchmark laboratory.
#[derive(Debug, Parser)]
#[command(
    name = "fstone",
    version = VERSION,
    long_version = LONG_VERSION,
    about = "A filesystem benchmark laboratory",
    long_about = "A filesystem benchmark laboratory.\n\nA study file says which filesystems (type × mkfs options × mount options × kernel × device) \
        to compare under which workloads. fstone makes each filesystem fresh, runs every workload several times in an order that \
        keeps drift out of the comparison, checks each filesystem with its own fsck, and reports figures with their uncertainty.",
    after_help = START,
    after_long_help = format!("{START}\n\n{}", crate::exit::help()),
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The results file (SQLite). Default: $FSTONE_STORE, $XDG_DATA_HOME/fstone/fstone.db, or ~/.local/share/fstone/fstone.db
    #[arg(long, global = true, help_heading = "Global options", value_name = "FILE", value_parser = PathBufValueParser::new())]
    pub(crate) store: Option<PathBuf>,
    /// Where images and mount points are made. Default: $FSTONE_WORK_DIRECTORY, $XDG_CACHE_HOME/fstone/work, or ~/.cache/fstone/work
    #[arg(long, global = true, help_heading = "Global options", value_name = "DIR", value_parser = PathBufValueParser::new())]
    pub(crate) work_directory: Option<PathBuf>,
    /// Where kernels for guests are kept. Default: $FSTONE_KERNELS, $XDG_DATA_HOME/fstone/kernels, or ~/.local/share/fstone/kernels
    #[arg(long, global = true, help_heading = "Global options", value_name = "DIR", value_parser = PathBufValueParser::new())]
    pub(crate) kernels: Option<PathBuf>,
    /// When to use colour
    #[arg(long, global = true, help_heading = "Global options", value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorWhen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a study: make the filesystems, run the workloads, check, store, report
    Run(Box<RunArguments>),
    /// Print or write the report of a run
    Report(ReportArguments),
    /// Compare two runs, figure by figure; exit status 1 if something got worse
    Compare(CompareArguments),
    /// One row's figure over many runs, with the runs at which it changed
    History(HistoryArguments),
    /// Write a run to a file (a bundle): study, machine, every trial with its raw histograms, and hashes
    Export(ExportArguments),
    /// Add a run from a bundle to the store, or blocks of a run that other machines made
    Import(ImportArguments),
    /// Run some blocks of another machine's run, and write them to a file for `fstone import --into`
    Blocks(BlocksArguments),
    /// Set the note of a run: one line, shown in lists, reports and comparisons
    Note(NoteArguments),
    /// Make web pages of many runs from many machines, without names of hosts and users, paths and serial numbers
    Publish(PublishArguments),
    /// Delete runs from the store, after listing them and asking
    Delete(DeleteArguments),
    /// Check a run or a bundle: its hashes, and every figure, recomputed from the raw data
    Verify(VerifyArguments),
    /// Show the store in a browser on this machine: runs, live figures, reports, comparisons
    Serve(ServeArguments),
    /// Repeat a bundle's run on this machine, and compare the two
    Rerun(RerunArguments),
    /// List the built-in studies, and the runs in the store
    List(ListArguments),
    /// Show what this machine can do, and the command that installs what is missing
    Check,
    /// Run a workload in a directory or on a device, with the load engine alone: no mkfs, no store
    Load(LoadArguments),
    /// Run an FFSB profile unchanged, in the directories it names, and print FFSB's figures
    Ffsb(FfsbArguments),
    /// Run a fio command line unchanged, and print fio's figures: `fstone fio [OPTIONS] JOB.fio`
    Fio(FioArguments),
    /// Run a filebench personality unchanged, in the directories it names, and print filebench's figures
    Filebench(FilebenchArguments),
    /// Run a sysbench command line unchanged: `fstone sysbench fileio OPTIONS prepare|run|cleanup`
    Sysbench(SysbenchArguments),
    /// Run an IOR command line unchanged, also under mpirun or srun: `fstone ior -b 1g -t 1m -o FILE`
    Ior(IorArguments),
    /// Run an mdtest command line unchanged, also under mpirun or srun: `fstone mdtest -n 1000 -F -d DIR`
    Mdtest(MdtestArguments),
    /// Print a load of another format (FFSB, fio, filebench, mdtest, IOR) as the equivalent workload file
    Convert(ConvertArguments),
    /// Kernels for guests: fetch, build or list them; nothing is installed
    Kernel(KernelArguments),
    /// List the models of drives, or show one: its parameters, their sources, and its service times
    Device(DeviceArguments),
    /// Write a state that a power cut could have left into an image, from the log of a run
    CrashState(CrashStateArguments),
    /// Simulate power cuts in short sequences of calls (rename, fsync, …), and check that persisted data is still there
    Durability(DurabilityArguments),
    /// Undo what a killed run left behind (mounts, loop devices, images), after listing it
    Clean(CleanArguments),
    /// Print the JSON schema of study files
    Schema,
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual (troff), or write a page for each command
    Manual {
        /// Write fstone.1, fstone-run.1 and the others into this directory
        #[arg(long, value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

impl Command {
    /// Whether it may make mounts, devices and the like, which are to be undone.
    pub(crate) const fn makes_things(&self) -> bool {
        match self {
            Self::Run(arguments) => !arguments.dry_run,
            Self::Rerun(arguments) => !arguments.dry_run,
            Self::Blocks(_) => true,
            Self::Durability(_) => true,
            _ => false,
        }
    }
}

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
    /// The drive of trials in virtual time: a model (`fstone device`), or a .toml file. Default: hdd-7200-2008
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The time that each system call is charged in virtual time; 0 s charges nothing. Default: 2 us
    #[arg(long, value_name = "TIME", value_parser = parse_charge)]
    pub(crate) charge: Option<Duration>,
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

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone kernel add uml:5.10\n  fstone kernel add linux-image-cloud-amd64/trixie\n  fstone kernel add ./vmlinuz\n  fstone kernel build\n  fstone kernel build ~/src/linux --name patched\n  fstone kernel list\n  \
    fstone run random-io --quick --kernel uml:5.10 --kernel uml:6.1"
)]
pub(crate) struct KernelArguments {
    #[command(subcommand)]
    pub(crate) action: KernelAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelAction {
    /// Fetch a Debian package with the system's apt (uml:5.10, uml:6.1, uml:6.12, qemu:6.1, qemu:6.12, PACKAGE or PACKAGE/SUITE) and unpack it, or take a .deb, a directory or a kernel by its path
    Add {
        /// What to add
        #[arg(value_name = "PACKAGE|PATH", required = true, value_parser = NonEmptyStringValueParser::new())]
        what: Vec<String>,
    },
    /// Build a kernel whose time can be simulated, for exact figures. Takes about 8 minutes of CPU time, once; nothing is installed, and your tree is not changed
    Build {
        /// A package (linux-source-6.1, linux-source-6.12, or NAME/SUITE), an archive of a kernel's sources (.tar, .tar.xz, .tar.gz), or the directory of a kernel tree
        #[arg(value_name = "SOURCE", default_value = USUAL_SOURCE)]
        source: String,
        /// Its name in studies, after `exact:`. Default: its release, or the directory's name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// List the kernels that a study can name
    List,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone device\n  fstone device hdd-7200-2008 --size '5 TB'\n  fstone device ./mine.toml"
)]
pub(crate) struct DeviceArguments {
    /// A built-in model, or a .toml file. Default: list the built-in models
    #[arg(value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The size of the drive
    #[arg(long, value_name = "SIZE", default_value = "1 TB", value_parser = parse_bytes, allow_hyphen_values = true)]
    pub(crate) size: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fstone load random-read.toml --directory /mnt/scratch --json")]
pub(crate) struct LoadArguments {
    /// A workload file (docs/workload-file.md), or a load of another format by its extension (*.ffsb, *.fio, *.f, *.mdtest, *.ior)
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,
    /// The directory to work in
    #[arg(long, short, value_name = "DIR", required_unless_present = "device")]
    pub(crate) directory: Option<PathBuf>,
    /// A block device to work on instead, as the only file of the load's only fileset; its data is overwritten
    #[arg(long, value_name = "PATH", conflicts_with_all = ["directory", "verify", "overwrite"])]
    pub(crate) device: Option<PathBuf>,
    /// The path of --device again, to confirm that everything on it may be lost
    #[arg(long, value_name = "PATH", requires = "device")]
    pub(crate) allow_destroy: Vec<PathBuf>,
    /// The seed of all random streams. Default: drawn, and printed
    #[arg(long, value_name = "N", value_parser = parse_number, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    /// Read every file back afterwards and check the stamps of its data (for loads with `data = { stamped = true }`)
    #[arg(long, conflicts_with = "json")]
    pub(crate) verify: bool,
    /// Replace files that have the load's names in a directory that fstone did not make
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// With many ranks: write ranks.json and ranks.csv here, anew after each phase, so that they survive if the job is killed
    #[cfg(feature = "mpi")]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// With many ranks: a rank that gives no sign of life for this long is considered dead
    #[cfg(feature = "mpi")]
    #[arg(long, value_name = "TIME", value_parser = patience::parse, default_value = "60 s")]
    pub(crate) rank_silence: Duration,
    /// With many ranks: a rank that completes nothing for this long is considered hung
    #[cfg(feature = "mpi")]
    #[arg(long, value_name = "TIME", value_parser = patience::parse, default_value = "10 min")]
    pub(crate) rank_stillness: Duration,
    /// SPEC is what a step of a study hands to its ranks
    #[cfg(feature = "mpi")]
    #[arg(long, hide = true)]
    pub(crate) of_step: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fstone ffsb profile.ffsb\n  fstone ffsb old-4.x-profile 300")]
pub(crate) struct FfsbArguments {
    /// The profile, in FFSB's 4.x, 5.x or 6.0 format
    #[arg(value_name = "PROFILE")]
    pub(crate) profile: PathBuf,
    /// Seconds to run (4.x profiles expect it here)
    #[arg(value_name = "SECONDS", value_parser = parse_number)]
    pub(crate) seconds: Option<u64>,
    /// The seed of all random streams
    #[arg(long, value_name = "N", value_parser = parse_number, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Files are made in the directories that the personality names (`set $dir=/tmp`), each fileset in one of its own. Unlike filebench, \
fstone makes them only in a directory that is empty or that it made itself.

Examples:
  fstone filebench varmail.f            as long as the file says (`run 60`)
  fstone filebench varmail.f 10         for 10 seconds
  fstone filebench -f varmail.f         as filebench is called
  fstone convert varmail.f              the same load as a workload file

In a study: load = { filebench = \"varmail.f\" }. docs/formats/filebench.md says what differs from filebench.")]
pub(crate) struct FilebenchArguments {
    /// The personality
    #[arg(value_name = "PERSONALITY", required_unless_present = "script")]
    pub(crate) personality: Option<PathBuf>,
    /// Seconds to run, whatever the personality says
    #[arg(value_name = "SECONDS", value_parser = parse_number)]
    pub(crate) seconds: Option<u64>,
    /// The personality, for filebench's own syntax
    #[arg(short = 'f', value_name = "PERSONALITY", conflicts_with = "personality")]
    pub(crate) script: Option<PathBuf>,
    /// Replace files that have the load's names in a directory that fstone did not make
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// The seed of all random streams
    #[arg(long, value_name = "N", value_parser = parse_number, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct FioArguments {
    /// fio's own arguments: JOB.fio --output-format=json, or --name=NAME --rw=randread --size=1g …
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct SysbenchArguments {
    /// sysbench's own arguments: fileio --file-test-mode=rndrw … run
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// A load in any format, recognised by its extension; without one, an FFSB profile
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Seconds to run, for formats that do not contain it (FFSB 4.x profiles)
    #[arg(value_name = "SECONDS", value_parser = parse_number)]
    pub(crate) seconds: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct CrashStateArguments {
    /// The disk log that a run with a `power-cut` step kept; its warnings name it
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// The state, as in the run's warnings: 1523-torn-9f2c
    #[arg(value_name = "STATE")]
    pub(crate) state: String,
    /// The image to write, a new file
    #[arg(long, value_name = "FILE")]
    pub(crate) image: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CleanArguments {
    /// Only list
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let time = units::parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("it must be longer than 0".into()) } else { Ok(time) }
}

/// Nothing, or a time. A second for a system call is a slip of the hand.
fn parse_charge(text: &str) -> Result<Duration, String> {
    let time = units::parse_duration(text).map_err(|error| error.to_string())?;
    let most = Duration::from_millis(1);
    if time > most { Err(format!("a system call takes at most {}", units::format_duration(most))) } else { Ok(time) }
}

/// More guests than this are a slip of the hand.
const MOST_JOBS: usize = 1024;

fn parse_jobs(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_JOBS).contains(number));
    number.ok_or_else(|| format!("it must be a whole number, from 1 to {MOST_JOBS}"))
}

fn parse_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("it must be a whole number, from 0 to {}", u64::MAX))
}

/// The number of a run.
fn parse_run(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "it must be the number of a run, as `fstone list runs` lists them".into())
}

fn parse_note(text: &str) -> Result<Note, NoteError> {
    text.to_owned().try_into()
}

/// "iops=500,latency=1ms".
fn parse_speed(text: &str) -> Result<Speed, String> {
    let mut speed = Speed::default();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?}: write NAME=VALUE, like iops=500"))?;
        match name.trim() {
            "iops" => {
                speed.iops = Some(value.trim().parse().map_err(|_| "iops must be a whole number, like iops=500")?);
            }
            "bandwidth" => speed.bytes_per_second = Some(parse_bytes(value.trim().trim_end_matches("/s"))?),
            "latency" => speed.latency = Some(parse_duration(value.trim())?),
            other => return Err(format!("{other:?} is unknown; use iops, bandwidth or latency")),
        }
    }
    if speed.iops == Some(0) || speed.bytes_per_second == Some(0) {
        return Err("a disk needs more than 0 per second".into());
    }
    Ok(speed)
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    units::parse_bytes(text).map_err(|error| error.to_string())
}

fn parse_guest_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if !(MIN_MEMORY_BYTES..=MAX_MEMORY_BYTES).contains(&bytes) {
        let [least, most] = [MIN_MEMORY_BYTES, MAX_MEMORY_BYTES].map(units::format_bytes);
        return Err(format!("a guest has from {least} to {most} of memory"));
    }
    Ok(bytes)
}

/// No study needs more trials of a cell, and a plan lists every one.
const MOST_REPEATS: u32 = 100_000;

fn parse_repeats(text: &str) -> Result<(u32, u32), String> {
    let number = |part: &str| part.trim().parse::<u32>().ok().filter(|number| (1..=MOST_REPEATS).contains(number));
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    match (number(min), number(max)) {
        (Some(min), Some(max)) if min <= max => Ok((min, max)),
        _ => Err(format!("write N or MIN..MAX, like 3 or 3..10, from 1 to {MOST_REPEATS}")),
    }
}

/// "3", "2-4", "1,3-4": counted from 1.
fn parse_blocks(text: &str) -> Result<Blocks, String> {
    let number = |part: &str| part.trim().parse::<u32>().ok().filter(|number| (1..=MOST_REPEATS).contains(number));
    let mut blocks = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => blocks.extend(first - 1..last),
            _ => return Err("write the numbers of blocks, from 1, like 3, 2-4 or 1,3-4".into()),
        }
    }
    Ok(Blocks(blocks.into_iter().collect()))
}

fn parse_set(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').filter(|(name, _)| !name.trim().is_empty()).ok_or("write NAME=VALUE, like build=none")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

fn parse_only(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(factor, level)| !factor.trim().is_empty() && !level.trim().is_empty());
    let (factor, level) = pair.ok_or("write FACTOR=LEVEL, like filesystem='ext4*'")?;
    Ok((factor.trim().to_owned(), level.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    /// Prose below the options is wrapped to the terminal, so a line break within it leaves ragged lines.
    #[test]
    fn prose_of_the_help_is_not_broken_into_lines() {
        let is_prose = |line: &&str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        let mut broken = Vec::new();
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = help.lines().collect();
            if lines.windows(2).any(|pair| pair.iter().all(is_prose)) {
                broken.push(command.get_name().to_owned());
            }
        }
        assert_eq!(broken, Vec::<String>::new());
    }

    #[test]
    fn the_version_names_every_feature() {
        let manifest = include_str!("../Cargo.toml");
        let (_, features) = manifest.split_once("[features]\n").expect("there are some");
        let names = features.lines().take_while(|line| !line.starts_with('['));
        let names =
            names.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).filter(|name| *name != "default");
        for name in names {
            assert!([format!("+{name}"), format!("-{name}")].iter().any(|told| LONG_VERSION.contains(told)), "{name}");
        }
    }

    #[test]
    fn a_disks_speed_has_names() {
        let speed = parse_speed("iops=500, bandwidth=20MB/s,latency=1ms").expect("a speed");
        assert_eq!((speed.iops, speed.bytes_per_second), (Some(500), Some(20 << 20)));
        assert_eq!(speed.latency, Some(Duration::from_millis(1)));
        for wrong in ["", "500", "iops=x", "iops=0", "colour=red"] {
            assert!(parse_speed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn blocks_are_counted_from_1_and_kept_from_0() {
        assert_eq!(parse_blocks("3"), Ok(Blocks(vec![2])));
        assert_eq!(parse_blocks("4, 1-2,2"), Ok(Blocks(vec![0, 1, 3])));
        for wrong in ["", "0", "0-2", "3-2", "1,", "x", "1-2-3", "4294967295"] {
            assert!(parse_blocks(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn repeats_are_a_number_or_a_range() {
        assert_eq!(parse_repeats("5"), Ok((5, 5)));
        assert_eq!(parse_repeats("3..10"), Ok((3, 10)));
        assert!(parse_repeats("0").is_err() && parse_repeats("5..3").is_err() && parse_repeats("x").is_err());
    }
}
