//! Arguments of `fstone record` and `fstone replay`.

use clap::{Args, Subcommand, ValueEnum, builder::PathBufValueParser};
use fstone_model::workload::Replay;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  fstone record -o unpack.rec --under /tmp/x -- tar xf linux.tar -C /tmp/x\n  fstone record --under . -- make -j2\n  fstone record show unpack.rec"
)]
pub(crate) struct RecordArguments {
    #[command(subcommand)]
    pub(crate) action: Option<RecordAction>,
    /// The recording to write, a new file. Default: the name of the program, with .rec
    #[arg(short, long, value_name = "FILE", value_parser = PathBufValueParser::new())]
    pub(crate) output: Option<PathBuf>,
    /// Record what is done below this directory, and its tree as it is before. Default: the working directory
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new())]
    pub(crate) under: Vec<PathBuf>,
    /// Keep hashes in place of names; the key is forgotten
    #[arg(long)]
    pub(crate) hash_names: bool,
    /// Measure how well the data that is written compresses, so that a replay writes such data
    #[arg(long)]
    pub(crate) data_entropy: bool,
    /// Record a process that runs, with all its threads and what they start, until it ends or you press Ctrl-C; it then goes on. Default
    /// of --under: its working directory
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "command")]
    pub(crate) pid: Option<i32>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "pid", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// The notation of `record show --calls`.
const CALLS: &str = "\
A line of --calls, such as
    1.500000    2 pread          #7 length 4096 offset 8192 = 4096  <0.000012> after 0.000300
has
  1.500000         when the call began, in seconds, with what recording cost until then
  2                the thread, numbered in the order in which they began
  \"a/b\", #7/\"b\"   a name from the top of the recorded tree, or in the open directory 7
  #7, → #8         the open file, and the one that it opens or copies to; each number is given once
  length, offset   in bytes
  flags            the kernel's, in octal
  (inherited)      the program did not open it: it was open before
  (implicit)       the program did not close it: its end or execve did
  = 4096           the result; -2 is error 2 (ENOENT). Of clone, wait4 and wakeup it is a thread
  <0.000012>       how long it took, in seconds, without what recording cost
  after 0.000300   the same of the time since the thread's call before";

#[derive(Debug, Subcommand)]
pub(crate) enum RecordAction {
    /// Print what a recording holds: calls, sizes, files, threads over time, and what it does not cover
    #[command(after_help = CALLS)]
    Show {
        /// The recording
        #[arg(value_name = "FILE", value_parser = PathBufValueParser::new())]
        file: PathBuf,
        /// Print every call, one on each line
        #[arg(long)]
        calls: bool,
        /// Print a web page
        #[arg(long, conflicts_with = "calls")]
        html: bool,
    },
    /// Make a recording of another tool's log: of strace, fio (write_iolog), or Darshan (darshan-dxt-parser)
    Import {
        /// The log, as text
        #[arg(value_name = "FILE", value_parser = PathBufValueParser::new())]
        file: PathBuf,
        /// The recording to write, a new file. Default: the name of the log, with .rec
        #[arg(short, long, value_name = "FILE", value_parser = PathBufValueParser::new())]
        output: Option<PathBuf>,
        /// Import what was done below this directory. Default: the first working directory of strace, else the directory of all files
        #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new())]
        under: Vec<PathBuf>,
        /// Leave lines of unknown form out, and count them
        #[arg(long)]
        lenient: bool,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fstone replay unpack.rec --directory /mnt/xfs\n  fstone replay unpack.rec --directory /mnt/xfs --pace full"
)]
pub(crate) struct ReplayArguments {
    /// The recording
    #[arg(value_name = "FILE", value_parser = PathBufValueParser::new())]
    pub(crate) file: PathBuf,
    /// Where to replay it: in a new directory in this one, which is removed afterwards
    #[arg(long, short, value_name = "DIR", value_parser = PathBufValueParser::new())]
    pub(crate) directory: PathBuf,
    /// When a thread makes its next call
    #[arg(long, value_name = "PACE", default_value = "think")]
    pub(crate) pace: PaceWord,
    /// Think, or let the clock run, so many times as fast. Default: 1
    #[arg(long, value_name = "N", value_parser = parse_speed)]
    pub(crate) speed: Option<f64>,
    /// Drop the tree's files from the page cache before the first call; as root, all of the machine's caches
    #[arg(long)]
    pub(crate) cold: bool,
    /// Leave the directory
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print figures as JSON, for a study's `figures`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaceWord {
    /// After the time that the application spent between two calls
    Think,
    /// At once
    Full,
    /// When it was made in the recording; late calls are counted
    Clock,
}

fn parse_speed(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|speed| Replay::SPEEDS.contains(speed))
        .ok_or_else(|| "a number from 0.001 to 1000".to_owned())
}
