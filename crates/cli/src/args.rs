//! What the user typed. Every command, option and help text is defined here once; the man page and the shell
//! completions are generated from it.

mod durability;
mod kernel;
mod loads;
#[cfg(any(feature = "mpi", test))]
mod patience;
mod record;
mod results;
mod run;
mod tasks;
mod values;
mod words;

pub(crate) use durability::DurabilityArguments;
pub(crate) use kernel::{KernelAction, KernelArguments, NamedKernel, USUAL_SOURCE};
pub(crate) use loads::*;
pub(crate) use record::{PaceWord, RecordAction, RecordArguments, ReplayArguments};
pub(crate) use results::*;
pub(crate) use run::{ExecutorChoice, Missing, RunArguments};
pub(crate) use tasks::{Io500Arguments, IorArguments, MdtestArguments};
pub(crate) use values::Blocks;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, builder::PathBufValueParser};
use std::ffi::OsString;
use std::path::PathBuf;
use values::parse_bytes;

const START: &str = "Start here:\n  fstone check                        what this machine can do, and what to install\n  fstone list studies                 the built-in studies\n  \
        fstone run small-file --dry-run     what would be done, command by command; touches nothing\n  fstone run small-file --quick       \
        do it in about four minutes\n  fstone report --format html         the last run as a page\n  man fstone-run                      the manual; not installed yet: fstone manual | man -l -";

/// What there is to do, in the order of the help.
const GROUPS: [(&str, &str); 5] = [
    ("Studies", "run list check rerun blocks"),
    ("Results", "report compare profile history note serve publish export import verify delete"),
    (
        "Loads, of this tool and of others",
        "load fio ffsb filebench sysbench ior mdtest io500 convert record replay figures",
    ),
    ("Guests, drives, aged filesystems and power cuts", "kernel device age crash-state durability"),
    ("This machine, this program", "clean study workload schema completions manual help"),
];

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

const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("FSTONE_COMMIT"),
    ")\nfeatures: ",
    mpi!(),
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

impl Arguments {
    pub(crate) fn from_command_line() -> Result<Self, clap::Error> {
        let matches = in_groups(Self::command()).try_get_matches().map_err(|error| {
            let words: Vec<OsString> = std::env::args_os().collect();
            with_missing_dashes(error, &words)
        })?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::command()))
    }
}

/// Names the `--` that is missing before the program that is to be recorded.
fn with_missing_dashes(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let is_record = words.iter().skip(1).any(|word| word == "record") && !words.iter().any(|word| word == "--");
    let unexpected = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if is_record && error.kind() == ErrorKind::UnknownArgument => word.clone(),
        _ => return error,
    };
    if !unexpected.starts_with('-') {
        let tip = "the program and its arguments come after --: fstone record -o FILE -- PROGRAM ARGUMENTS";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// clap has one list of commands, which is long: here each is a line, under a heading.
fn in_groups(command: clap::Command) -> clap::Command {
    let mut list = String::new();
    for (title, names) in GROUPS {
        list += &format!("\n{title}:\n");
        for name in names.split(' ') {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string);
            let about = about.unwrap_or_else(|| "Print the help of a command".to_owned());
            list +=
                &format!("  {name:<12} {}\n", about.split([':', ',', ';', '(']).next().unwrap_or_default().trim_end());
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}{{after-help}}"
    ))
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
    /// What the kernels of a run in virtual time did, function by function
    Profile(ProfileArguments),
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
    /// Make web pages of many runs from many machines, without what may identify a machine or its user
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
    /// Run the phases of IO500 with the sizes of its configuration, and print their results: `fstone io500 config.ini`
    Io500(Io500Arguments),
    /// Print a load of another format (FFSB, fio, filebench, mdtest, IOR) as the equivalent workload file
    Convert(ConvertArguments),
    /// Record what a program does with files, below a directory; or show a recording
    Record(RecordArguments),
    /// Replay a recording in another directory, and compare: results, latency, time
    Replay(ReplayArguments),
    /// Try an expression for a figure on saved output of a program: `fstone figures out.txt --match 'tps = ([0-9.]+)'`
    Figures(FiguresArguments),
    /// Kernels for guests: fetch, build or list them; nothing is installed
    Kernel(KernelArguments),
    /// List the models of drives, or show one: its parameters, their sources, and its service times
    Device(DeviceArguments),
    /// The aged filesystems that are kept: list, show or remove them; or learn a profile from a directory
    Age {
        #[command(subcommand)]
        action: AgeAction,
    },
    /// Write a state that a power cut could have left into an image, from the log of a run
    CrashState(CrashStateArguments),
    /// Simulate power cuts in short sequences of calls (rename, fsync, …), and check that persisted data is still there
    Durability(DurabilityArguments),
    /// Undo what a killed run left behind (mounts, loop devices, images), after listing it
    Clean(CleanArguments),
    /// Print every key of the study file, and what it means
    ///
    /// Keys are listed by table: `step.load` is the key `load` of a `[[step]]`. docs/study-file.md is the guide, with examples.
    #[command(defer(|command| command.after_long_help(crate::keys::of_study())))]
    Study,
    /// Print every key of the workload file, and what it means
    ///
    /// Keys are listed by table: `phase.group` is a `[[phase.group]]`. The actions in `sequence`, `ratio` and `do` have the keys of those in
    /// `mix`. docs/workload-file.md is the guide, with examples.
    #[command(defer(|command| command.after_long_help(crate::keys::of_workload())))]
    Workload,
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
    /// Whether it may look at this user's files: all but those that print what the program itself knows.
    pub(crate) const fn keeps_files(&self) -> bool {
        !matches!(self, Self::Study | Self::Workload | Self::Schema | Self::Completions { .. } | Self::Manual { .. })
    }

    /// Whether it may make mounts, devices and the like, which are to be undone.
    pub(crate) const fn makes_things(&self) -> bool {
        match self {
            Self::Run(arguments) => !arguments.dry_run,
            Self::Rerun(arguments) => !arguments.dry_run,
            Self::Blocks(_) | Self::Durability(_) => true,
            Self::Report(_)
            | Self::Compare(_)
            | Self::Profile(_)
            | Self::History(_)
            | Self::Export(_)
            | Self::Import(_)
            | Self::Note(_)
            | Self::Publish(_)
            | Self::Delete(_)
            | Self::Verify(_)
            | Self::Serve(_)
            | Self::List(_)
            | Self::Check
            | Self::Load(_)
            | Self::Ffsb(_)
            | Self::Fio(_)
            | Self::Filebench(_)
            | Self::Sysbench(_)
            | Self::Ior(_)
            | Self::Mdtest(_)
            | Self::Io500(_)
            | Self::Convert(_)
            | Self::Record(_)
            | Self::Replay(_)
            | Self::Figures(_)
            | Self::Kernel(_)
            | Self::Device(_)
            | Self::Age { .. }
            | Self::CrashState(_)
            | Self::Clean(_)
            | Self::Study
            | Self::Workload
            | Self::Schema
            | Self::Completions { .. }
            | Self::Manual { .. } => false,
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone device\n  fstone device hdd-7200-2008 --size '5 TB'\n  fstone device sata-ssd --toml >mine.toml\n  fstone device ./mine.toml"
)]
pub(crate) struct DeviceArguments {
    /// A built-in model, or a .toml file. Default: list the built-in models
    #[arg(value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The size of the drive
    #[arg(long, value_name = "SIZE", default_value = "1 TB", value_parser = parse_bytes, allow_hyphen_values = true)]
    pub(crate) size: u64,
    /// Print the built-in model as a file, to make your own from
    #[arg(long, requires = "model")]
    pub(crate) toml: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgeAction {
    /// List them: made once, and copied for each trial
    List,
    /// Show one: its targets, what was reached, its free space, and who owns each region of the disk
    Show {
        /// Its name in the list; with a slash, a directory that was aged in place, as it is now
        #[arg(value_name = "NAME")]
        name: String,
        /// Print the regions as a picture (SVG)
        #[arg(long)]
        svg: bool,
    },
    /// Remove some, but for those that a trial uses
    Rm {
        /// Their names in the list; with a slash, what ageing left beneath a directory that a study named
        #[arg(value_name = "NAME", required_unless_present = "all")]
        names: Vec<String>,
        /// Remove all
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
    /// Print the profile of the files below a directory: their sizes, ages (mtime) and depths; as root, also their extents
    Learn {
        #[arg(value_name = "DIR", required_unless_present = "image")]
        directory: Option<PathBuf>,
        /// Learn from the image of a filesystem, which is mounted read-only for that (as root)
        #[arg(long, value_name = "FILE", conflicts_with = "directory")]
        image: Option<PathBuf>,
        /// Write it into this file, for `age = { profile = "FILE.toml", … }` in a study beside it
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
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
    /// Permit the loss of all that is on this block device, if the killed run made its filesystem
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_destroy_data: Vec<PathBuf>,
    /// Also remove what was kept: aged filesystems; to be examined, logs of disks with a loss, logs and images of guests that crashed or hung
    #[arg(long)]
    pub(crate) kept: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_help_has_every_command_once_on_a_line_of_its_own() {
        let command = Arguments::command();
        let names = GROUPS.iter().flat_map(|(_, names)| names.split(' ')).filter(|name| *name != "help");
        let mut listed: Vec<&str> = names.collect();
        let mut all: Vec<&str> =
            command.get_subcommands().filter(|of| !of.is_hide_set()).map(clap::Command::get_name).collect();
        listed.sort_unstable();
        all.sort_unstable();
        assert_eq!(listed, all);
        let help = in_groups(command.clone()).render_help().to_string();
        let lines = help.lines().skip_while(|line| *line != "Studies:").take_while(|line| *line != "Options:");
        assert!(lines.clone().count() > all.len() && lines.clone().all(|line| line.len() <= 80), "{help}");
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
}
