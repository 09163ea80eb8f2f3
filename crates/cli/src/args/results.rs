//! Arguments of the commands that work with stored runs.

use super::values::{
    Blocks, parse_blocks, parse_bytes, parse_jobs, parse_note, parse_port, parse_repeats, parse_run, parse_share,
};
use clap::{
    Args, ValueEnum,
    builder::{NonEmptyStringValueParser, PathBufValueParser},
};
use fstone_model::Note;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone report\n  fstone report 3 --format markdown\n  fstone report 3 --format html --output small-file.html\n  fstone report 3 --format svg --output figures/"
)]
pub(crate) struct ReportArguments {
    /// The run's number (`fstone list runs`). Default: the last
    #[arg(value_name = "RUN", value_parser = parse_run)]
    pub(crate) run: Option<u64>,
    /// The format of the report
    #[arg(long, short, default_value = "terminal")]
    pub(crate) format: Format,
    /// Write to this file, or for svg into this directory. Default: standard output
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// How much of the answer to print: what matters most, in at most 90 words, or all of it
    #[arg(long, value_name = "LENGTH", default_value = "short")]
    pub(crate) answer: Answer,
    /// Print the published figures beside today's
    #[arg(long)]
    pub(crate) published: bool,
    /// Compare rows by this factor (for example `kernel`), whatever the study says
    #[arg(long, value_name = "FACTOR")]
    pub(crate) by: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Answer {
    Short,
    Long,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for the terminal
    Terminal,
    /// Markdown
    Markdown,
    /// One self-contained page
    Html,
    /// The figures as SVG files
    Svg,
    /// One row per figure of each trial
    Csv,
    /// Everything
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// What to list. Default: all
    pub(crate) what: Option<ListWhat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListWhat {
    Studies,
    Runs,
    Baselines,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone compare 3 7\n  fstone compare --save-baseline main 3\n  fstone compare --baseline main\n  \
    fstone compare --baseline main --threshold 2% --format markdown --output comment.md\n  fstone compare before.fstone after.fstone --format junit\n\n\
    A regression is a difference that is statistically significant (rank tests, Holm-corrected to 5 % over all figures), for the worse, and estimated \
    to be larger than the threshold; or a row that no longer completes, ends worse, or loses or damages more. The exit status is then 1. It is 8 if no regression was found but the \
    comparison is inconclusive: the runs have no figure in common, no row has enough trials for any difference to show, some figure is so noisy that a \
    difference as large as the threshold is more likely missed than found (unless --allow-blind), or --require-power asks for more than the trials can show. \
    Otherwise it is 0."
)]
pub(crate) struct CompareArguments {
    /// The baseline and the run to compare with it: numbers (`fstone list runs`) or bundles (`fstone export`). With
    /// --baseline, only the run to compare; by default the last run of the baseline's study
    #[arg(value_name = "RUN", num_args = 0..=2)]
    pub(crate) runs: Vec<String>,
    /// Compare with the run that was saved under this name
    #[arg(long, value_name = "NAME", conflicts_with = "save_baseline")]
    pub(crate) baseline: Option<String>,
    /// Save the run under this name, for --baseline; nothing is compared
    #[arg(long, value_name = "NAME")]
    pub(crate) save_baseline: Option<String>,
    /// Differences up to this are shown, but do not count as regressions
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share, allow_hyphen_values = true)]
    pub(crate) threshold: f64,
    /// Fail unless a difference of this share would have been found four times out of five, in every figure that has a better
    /// direction
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(crate) require_power: Option<f64>,
    /// Exit with 0 even if some figure is too noisy to show a difference as large as the threshold
    #[arg(long)]
    pub(crate) allow_blind: bool,
    /// Only this column of the table. May be given several times. Fewer figures need less correction
    #[arg(long, value_name = "HEADER")]
    pub(crate) column: Vec<String>,
    /// Compare although these differ between the runs
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) across: Vec<Across>,
    /// The format of the comparison
    #[arg(long, short, default_value = "terminal")]
    pub(crate) format: CompareFormat,
    /// Write to this file. Default: standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone profile 3\n  fstone profile 3 --row ext4 --step create\n  fstone profile 3 --row ext4 --row xfs\n  fstone profile 3 4 --lines 5\n  fstone profile 3 --row ext4 --calls\n  fstone profile 3 --folded > work.folded"
)]
pub(crate) struct ProfileArguments {
    /// The run: its number (`fstone list runs`) or a bundle
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Another run: what its kernels did more or less
    #[arg(value_name = "OTHER")]
    pub(crate) other: Option<String>,
    /// Only this row. Given twice, the second is compared with the first
    #[arg(long, value_name = "ROW")]
    pub(crate) row: Vec<String>,
    /// Only this step
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    /// Compare although these differ between the runs
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) across: Vec<Across>,
    /// Functions or calls to print
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) lines: usize,
    /// Who called what, as a tree
    #[arg(long, conflicts_with = "folded")]
    pub(crate) calls: bool,
    /// Every path of calls in a line, as viewers of flame graphs read them
    #[arg(long)]
    pub(crate) folded: bool,
}

/// What may differ when the user says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Across {
    /// Different studies
    Study,
    /// Rows with the same name that do different work
    Load,
    /// Host and guests
    Executor,
    /// Guests with different amounts of memory
    Memory,
    /// Different devices, or models of drives
    Device,
    /// Different machines
    Machine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// A table for the terminal
    Terminal,
    /// Markdown, for a comment on a pull request
    Markdown,
    /// JUnit XML, for CI systems
    Junit,
    /// Everything
    Json,
    /// One self-contained page
    Html,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone history\n  fstone history ext4 --study small-file --column 'transactions per second'\n  fstone history ext4 --format html --output ext4.html"
)]
pub(crate) struct HistoryArguments {
    /// The row's label, as in the report's table. Default: the first row
    #[arg(value_name = "ROW")]
    pub(crate) row: Option<String>,
    /// The study. Default: that of the last run
    #[arg(long, value_name = "NAME")]
    pub(crate) study: Option<String>,
    /// The column. Default: the first with a better direction
    #[arg(long, value_name = "HEADER")]
    pub(crate) column: Option<String>,
    /// The format of the history
    #[arg(long, short, default_value = "terminal")]
    pub(crate) format: HistoryFormat,
    /// Write to this file. Default: standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// A line per run
    Terminal,
    /// Everything
    Json,
    /// One self-contained page
    Html,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fstone export 3 small-file.fstone")]
pub(crate) struct ExportArguments {
    /// The run's number (`fstone list runs`)
    #[arg(value_name = "RUN", value_parser = parse_run)]
    pub(crate) run: u64,
    /// The file to write; it must not exist yet
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Leave out what may identify the machine or its user, as `fstone publish` does; the run can then not be repeated
    #[arg(long)]
    pub(crate) anonymous: bool,
    /// Keep this all the same
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires = "anonymous")]
    pub(crate) show: Vec<Shows>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fstone note 3 'before the patch'")]
pub(crate) struct NoteArguments {
    /// The run's number (`fstone list runs`)
    #[arg(value_name = "RUN", value_parser = parse_run)]
    pub(crate) run: u64,
    /// The note, one line
    #[arg(value_name = "TEXT", value_parser = parse_note)]
    pub(crate) text: Note,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fstone publish site 3 7\n  fstone publish site *.fstone --show hosts\n\n\
    The directory then has the pages of exactly these runs, and an index.html. They work without scripts and load nothing from elsewhere, so any web server will do.\n\n\
    docs/publish.md lists what they show. Names of rows, factors, steps and operations are shown as the study has them.")]
pub(crate) struct PublishArguments {
    /// The directory for the pages: a new one, an empty one, or one that `fstone publish` made
    #[arg(value_name = "DIR", value_parser = PathBufValueParser::new())]
    pub(crate) directory: PathBuf,
    /// The runs: numbers (`fstone list runs`) or bundles (`fstone export`)
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// Show this as well
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) show: Vec<Shows>,
    /// Remove pages of runs that were published here before and are no longer named
    #[arg(long)]
    pub(crate) remove: bool,
}

/// What is shown to others only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shows {
    /// Names of machines
    Hosts,
    /// Paths, and devices and kernels that are named by one
    Paths,
    /// The study's title, its text and its files; those that came with fstone are always shown
    Study,
    /// Command lines
    Commands,
    /// Warnings, reasons and what commands printed
    Messages,
    /// The note
    Note,
    /// Mounts, and all that devices, settings, tools and superblocks say
    Machine,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fstone export 3 small-file.fstone && fstone delete 3")]
pub(crate) struct DeleteArguments {
    /// The runs' numbers (`fstone list runs`)
    #[arg(value_name = "RUN", required = true, value_parser = parse_run)]
    pub(crate) runs: Vec<u64>,
    /// Delete them without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone import small-file.fstone\n  fstone import --into 3 blocks-of-n1.fstone blocks-of-n2.fstone"
)]
pub(crate) struct ImportArguments {
    /// Bundles written by `fstone export`; with --into, by `fstone blocks`
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Merge the blocks in the bundles into this run: all of them or none. They must come from the same plan
    #[arg(long, value_name = "RUN", value_parser = parse_run)]
    pub(crate) into: Option<u64>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone run small-file --blocks 1-2 && fstone export 3 begun.fstone      on the first machine\n  \
    fstone blocks begun.fstone 3-5 --output second.fstone                  on the second one\n  \
    fstone import --into 3 second.fstone                                   on the first one again\n\n\
    The plan in the bundle is run as it is, by the same version of fstone. The new bundle has only these blocks, and only complete ones. \
    docs/clusters.md has the details. `fstone run STUDY --slurm` does this with the nodes of a cluster."
)]
pub(crate) struct BlocksArguments {
    /// A bundle of the run, written by `fstone export` on the machine that started it
    #[arg(value_name = "BUNDLE")]
    pub(crate) bundle: PathBuf,
    /// Which blocks, from 1: 3, 2-4, or 1,3-4
    #[arg(value_name = "BLOCKS", value_parser = parse_blocks)]
    pub(crate) blocks: Blocks,
    /// The bundle to write; it must not exist yet
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The name of this machine in reports. Default: the node's name in Slurm, or the host name
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) machine: Option<String>,
    /// Permit the plan to run programs and use files, directories and devices of this machine; otherwise they are listed and refused
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// Permit fstone to format this block device, which the plan names
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_destroy: Vec<PathBuf>,
    /// Permit the loss of data on this block device that no filesystem accounts for, and of a killed run's filesystem; without a terminal it
    /// is refused otherwise
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_destroy_data: Vec<PathBuf>,
    /// Refuse a work directory on a filesystem that machines share; jobs say it
    #[arg(long, hide = true)]
    pub(crate) local: bool,
    /// Refuse to work when this program is another one than the one with this SHA-256; jobs give it
    #[arg(long, value_name = "SHA256", hide = true)]
    pub(crate) program: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone verify small-file.fstone\n  fstone verify 3\n  fstone verify --again small-file.fstone"
)]
pub(crate) struct VerifyArguments {
    /// A bundle, or the number of a run
    #[arg(value_name = "FILE|RUN")]
    pub(crate) what: String,
    /// Repeat the trials (they must be in virtual time), and compare every figure and the hash of all requests
    #[arg(long)]
    pub(crate) again: bool,
    /// Permit the study to run programs and read files of this machine; otherwise they are listed and refused
    #[arg(long, requires = "again")]
    pub(crate) allow_commands: bool,
    /// How many trials run at once. Default: one per core
    #[arg(long, value_name = "N", value_parser = parse_jobs, allow_hyphen_values = true, requires = "again")]
    pub(crate) jobs: Option<usize>,
}

#[derive(Debug, Default, Args)]
#[command(
    after_help = "Examples:\n  fstone rerun small-file.fstone --dry-run\n  fstone rerun small-file.fstone\n  fstone rerun kernel-tree.fstone --allow-commands\n\n\
    The study in the bundle is read like any study file and run with its seed and options. Block devices and directories of \
    the other machine are never used: name yours with --device. Differences between the machines are listed before the first trial."
)]
pub(crate) struct RerunArguments {
    /// A bundle written by `fstone export`
    #[arg(value_name = "FILE")]
    pub(crate) bundle: PathBuf,
    /// Permit the study to run programs and read files of this machine; otherwise they are listed and refused
    #[arg(long, visible_alias = "allow-shell")]
    pub(crate) allow_commands: bool,
    /// Print the plan and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How often each cell is tried: N, or MIN..MAX. Default: as in the bundle
    #[arg(long, value_name = "N", value_parser = parse_repeats, allow_hyphen_values = true)]
    pub(crate) repeats: Option<(u32, u32)>,
    /// Size of the loop image. Default: as in the bundle
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_hyphen_values = true)]
    pub(crate) device_size: Option<u64>,
    /// `loop`, `zram`, `directory`, `directory:PATH`, or the path of a block device to format
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Permit fstone to format this block device; required in addition to --device PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_destroy: Vec<PathBuf>,
    /// Permit the loss of data on this block device that no filesystem accounts for, and of a killed run's filesystem; without a terminal it
    /// is refused otherwise
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_destroy_data: Vec<PathBuf>,
    /// The source tree for studies that unpack one: an archive that tar reads, or a directory
    #[arg(long, value_name = "PATH")]
    pub(crate) source: Option<PathBuf>,
    /// The directory for the HTML report. Default: `reports` beside the store
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// A line about the run, for lists, reports and comparisons: "new firmware"
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    pub(crate) note: Option<Note>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fstone serve")]
pub(crate) struct ServeArguments {
    /// The port on 127.0.0.1; 0 takes any that is free
    #[arg(long, value_name = "N", default_value_t = 4080, value_parser = parse_port, allow_hyphen_values = true)]
    pub(crate) port: u16,
    /// Do not ask for a token: every user of this machine can then read the store
    #[arg(long)]
    pub(crate) no_token: bool,
}
