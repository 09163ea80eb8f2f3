//! Every option of `sysbench fileio`, defined once: reading, suggestions and documentation use this table.

use crate::loads::CommandOnly;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Number,
    /// Bytes, with K, M, G or T (1024-based).
    Size,
    Decimal,
    /// on or off; on when there is no value.
    Switch,
    Choice(&'static [&'static str]),
    /// Some of these, with commas between.
    List(&'static [&'static str]),
    Any,
}

impl Kind {
    pub fn expected(self) -> String {
        match self {
            Self::Number => "a whole number".into(),
            Self::Size => "a size, such as 16384, 16K or 2G".into(),
            Self::Decimal => "a number, such as 1.5".into(),
            Self::Switch => "on or off".into(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::List(words) => format!("some of {}, with commas between", words.join(", ")),
            Self::Any => "a value".into(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It means what it means to sysbench, or better.
    Supported,
    Ignored(&'static str),
    Refused(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opt {
    /// Without the dashes in front.
    pub name: &'static str,
    /// The option it is another name of, or itself.
    pub canonical: &'static str,
    pub kind: Kind,
    pub treatment: Treatment,
    /// Its value when it is not given; empty for none.
    pub default: &'static str,
    pub about: &'static str,
    /// Why it is no part of the load.
    pub command_only: Option<CommandOnly>,
}

const fn supported(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Opt {
    Opt { name, canonical: name, kind, treatment: Treatment::Supported, default, about, command_only: None }
}

const fn alias(name: &'static str, canonical: &'static str) -> Opt {
    Opt { canonical, ..supported(name, Kind::Number, "", "an older name") }
}

const fn other(name: &'static str, treatment: Treatment) -> Opt {
    Opt { treatment, ..supported(name, Kind::Any, "", "") }
}

const fn command_only(why: CommandOnly, option: Opt) -> Opt {
    Opt { command_only: Some(why), ..option }
}

const fn ignored(name: &'static str, why: &'static str) -> Opt {
    other(name, Treatment::Ignored(why))
}

const fn refused(name: &'static str, why: &'static str) -> Opt {
    other(name, Treatment::Refused(why))
}

const UNIFORM: &str = "fileio draws offsets uniformly whatever this says, in sysbench too";

pub static OPTIONS: &[Opt] = &[
    supported("file-num", Kind::Number, "128", "how many files"),
    supported("file-block-size", Kind::Size, "16384", "size of a read or write"),
    supported("file-total-size", Kind::Size, "2G", "size of all files together"),
    supported(
        "file-test-mode",
        Kind::Choice(&["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"]),
        "",
        "what the test does; `run` needs it",
    ),
    supported(
        "file-io-mode",
        Kind::Choice(&["sync", "async", "mmap"]),
        "sync",
        "how data gets to the files: pread and pwrite, io_uring, or memory mappings",
    ),
    supported("file-async-backlog", Kind::Number, "128", "requests that each thread keeps in flight in io mode async"),
    supported("file-extra-flags", Kind::List(&["sync", "dsync", "direct"]), "", "flags to open the files with"),
    supported("file-fsync-freq", Kind::Number, "100", "sync all files after this many requests; 0 is never"),
    supported("file-fsync-all", Kind::Switch, "off", "sync after every write"),
    supported("file-fsync-end", Kind::Switch, "on", "sync all files at the end"),
    supported("file-fsync-mode", Kind::Choice(&["fsync", "fdatasync"]), "fsync", "how to sync"),
    supported("file-merged-requests", Kind::Number, "0", "in sequential modes, blocks that make one request; 0 is one"),
    supported("file-rw-ratio", Kind::Decimal, "1.5", "reads per write in mode rndrw"),
    supported("threads", Kind::Number, "1", "how many threads"),
    supported("events", Kind::Number, "0", "end after this many events; 0 is no limit"),
    supported("time", Kind::Number, "10", "end after this many seconds; 0 is no limit"),
    supported("rate", Kind::Number, "0", "events per second to start; 0 is as many as possible"),
    supported("report-interval", Kind::Number, "0", "print a line every this many seconds; 0 is never"),
    command_only(
        CommandOnly::Output,
        supported("percentile", Kind::Number, "95", "which percentile of the latency to print, 1 to 100; 0 is none"),
    ),
    command_only(CommandOnly::Output, supported("histogram", Kind::Switch, "off", "print the latency's histogram")),
    command_only(
        CommandOnly::Seed,
        supported("rand-seed", Kind::Number, "0", "seed of the random numbers; 0 draws one, which is printed"),
    ),
    supported("validate", Kind::Switch, "off", "write blocks that can be recognised, and check what is read"),
    supported("test", Kind::Choice(&["fileio"]), "fileio", "the test, in the syntax of sysbench before 1.0"),
    alias("num-threads", "threads"),
    // Not the same as `events`: it is read as the sysbench of its time read it.
    supported(
        "max-requests",
        Kind::Number,
        "0",
        "end after this many reads and writes, syncs not counted, without a time limit",
    ),
    alias("max-time", "time"),
    alias("tx-rate", "rate"),
    ignored("forced-shutdown", "threads finish the operation they are in, and the run ends with the last of them"),
    ignored("thread-stack-size", "it does not bear on the load"),
    ignored("debug", "there are no debugging messages to print"),
    ignored("verbosity", "everything is printed"),
    ignored("init-rng", "random numbers are always seeded; --rand-seed says with what"),
    ignored("rand-type", UNIFORM),
    ignored("rand-spec-iter", UNIFORM),
    ignored("rand-spec-pct", UNIFORM),
    ignored("rand-spec-res", UNIFORM),
    ignored("rand-pareto-h", UNIFORM),
    refused("report-checkpoints", "there are no intermediate results; --report-interval prints the progress"),
    refused("config-file", "a command line must be complete to be repeatable; write its options here"),
    refused("help", "`fstone sysbench --help` lists the options"),
    refused("version", "`fstone --version` prints the version"),
];

/// The option of that name; sysbench takes `_` for `-`.
pub fn find(name: &str) -> Option<&'static Opt> {
    let name = name.replace('_', "-");
    OPTIONS.iter().find(|option| option.name == name)
}
