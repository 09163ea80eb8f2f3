//! Every option of mdtest, in one table: reading, suggestions and `--help` use it.

use super::command::DIRECTORY;
use crate::loads::{
    CommandOnly,
    letters::{self, Kind, Opt, ignored, output, own, refused},
};
use fstone_model::workload::MAXIMUM_FILES;

const MANY: Kind = Kind::Number(MAXIMUM_FILES);
const FILE_BYTES: Kind = Kind::Size(i64::MAX as u64);

const EACH_NUMBER: &str = "a load has as many tasks as the launcher starts: run it for each number";
const RANKS: &str = "--results DIR has every rank's figures, as JSON and CSV";

pub(super) const OPTIONS: &[Opt] = &[
    Opt::letter('n', "items", MANY, "files and directories that every task makes, stats, reads and removes"),
    Opt::letter('I', "items-per-directory", MANY, "files and directories per directory of the tree, instead of -n"),
    Opt::letter('z', "depth", Kind::Number(1000), "levels of directories below the tree's top").default("0"),
    Opt::letter('b', "branching", MANY, "subdirectories of each directory of the tree").default("1"),
    Opt::letter('L', "leaves-only", Kind::Flag, "files and directories only on the last level of the tree"),
    Opt::letter('u', "unique", Kind::Flag, "every task has its own tree; otherwise all share one"),
    Opt::letter('d', "directory", Kind::Text, "the directory; made if missing, and then removed again")
        .default(DIRECTORY)
        .command_only(CommandOnly::Place),
    Opt::letter('F', "files", Kind::Flag, "files only, no directories"),
    Opt::letter('D', "directories", Kind::Flag, "directories only, no files"),
    Opt::letter('C', "create", Kind::Flag, "only create, and keep what was created"),
    Opt::letter('T', "stat", Kind::Flag, "only stat items from an earlier run"),
    Opt::letter('E', "read", Kind::Flag, "only read them"),
    Opt::letter('U', "rename", Kind::Flag, "only rename their directories"),
    Opt::letter('r', "remove", Kind::Flag, "only remove them; without -C, -T, -E, -U and -r, all phases in turn"),
    Opt::letter('w', "write-bytes", FILE_BYTES, "bytes written to every file as it is made").default("0"),
    Opt::letter(
        'e',
        "read-bytes",
        FILE_BYTES,
        "bytes read from every file; without it, files are only opened and closed",
    )
    .default("0"),
    Opt::letter('y', "sync-file", Kind::Flag, "fsync every file after its bytes are written"),
    Opt::letter('Y', "sync", Kind::Flag, "make everything durable after each phase (syncfs), within its time"),
    Opt::letter(
        'N',
        "shift",
        Kind::Number(u32::MAX as u64),
        "stat the files of the task N nodes further on, read those 2 N, remove those 3 N further on; on one node: N tasks",
    )
    .default("0"),
    Opt::letter('R', "random", Kind::Flag, "stat and read in random order, each once"),
    Opt::word("random-seed", Kind::Number(u64::MAX >> 16), "the same, in the order of this seed")
        .command_only(CommandOnly::Seed),
    Opt::letter('i', "iterations", Kind::Number(1000), "number of repetitions of everything").default("1"),
    Opt::letter(
        'W',
        "stonewall",
        Kind::Number(366 * 24 * 3600),
        "create for N seconds; then every task continues until it has created as much as the fastest; with any -b",
    ),
    output(Opt::letter(
        'x',
        "status-file",
        Kind::Text,
        "a file: -C writes the number of items that each task has created; otherwise it is read, instead of -n",
    )),
    Opt::letter('a', "api", Kind::Text, "the interface: POSIX").default("POSIX"),
    Opt::word("posix.odirect", Kind::Flag, "O_DIRECT"),
    output(Opt::letter('P', "rate-and-time", Kind::Flag, "print rates, and the seconds of each phase")),
    output(Opt::letter('Z', "time", Kind::Flag, "print the seconds of each phase instead of rates")),
    output(Opt::letter('h', "help", Kind::Flag, "this").or_word()),
    output(own(
        "results",
        Kind::Text,
        "a directory for mdtest.json, ranks.json and ranks.csv; the latter two are rewritten after each phase",
    )),
    letters::JSON,
    letters::SEED,
    letters::SILENCE,
    letters::STILLNESS,
    ignored(Opt::letter('v', "verbose", Kind::Flag, ""), letters::VERBOSE),
    ignored(Opt::letter('V', "verbosity", Kind::Any, ""), letters::VERBOSE),
    ignored(Opt::letter('t', "time-unique", Kind::Flag, ""), "no time is spent on entering the task's own directory"),
    ignored(Opt::letter('G', "data-offset", Kind::Any, ""), letters::RANDOM_DATA),
    ignored(Opt::word("dataPacketType", Kind::Any, ""), letters::RANDOM_DATA),
    ignored(Opt::word("warningAsErrors", Kind::Flag, ""), letters::ERRORS_TOLD),
    refused(
        Opt::letter('B', "no-barriers", Kind::Flag, ""),
        "rates mean nothing unless all tasks begin a phase together",
    ),
    refused(
        Opt::letter('c', "collective", Kind::Flag, ""),
        "every task creates its own files; run a single task to let one create all",
    ),
    refused(
        Opt::letter('S', "shared-file", Kind::Flag, ""),
        "a file that all tasks open has no owner to remove it; use `fstone ior` for shared files",
    ),
    refused(Opt::letter('k', "mknod", Kind::Flag, ""), "files are made with open(O_CREAT)"),
    refused(Opt::letter('f', "first", Kind::Any, ""), EACH_NUMBER),
    refused(Opt::letter('l', "last", Kind::Any, ""), EACH_NUMBER),
    refused(Opt::letter('s', "stride", Kind::Any, ""), EACH_NUMBER),
    refused(Opt::letter('p', "delay", Kind::Any, ""), "use sleep(1) before the command"),
    refused(
        Opt::letter('g', "global-layout", Kind::Flag, ""),
        "set Lustre layouts with lfs setdirstripe on the directory of -d",
    ),
    refused(Opt::letter('X', "verify-read", Kind::Flag, "").or_word(), letters::NOT_COMPARED),
    refused(Opt::word("verify-write", Kind::Flag, ""), letters::NOT_COMPARED),
    refused(Opt::word("print-all-procs", Kind::Flag, ""), RANKS),
    refused(Opt::word("showRankStatistics", Kind::Flag, ""), RANKS),
    refused(Opt::word("saveRankPerformanceDetails", Kind::Any, ""), RANKS),
    refused(Opt::word("savePerOpDataCSV", Kind::Any, ""), "latencies are kept as histograms, which --results writes"),
    refused(
        Opt::word("run-cmd-before-phase", Kind::Any, ""),
        "run the phases one by one, with -C, -T, -E and -r, and the command in between",
    ),
    refused(
        Opt::word("run-cmd-after-phase", Kind::Any, ""),
        "run the phases one by one, with -C, -T, -E and -r, and the command in between",
    ),
    refused(Opt::word("allocateBufferOnGPU", Kind::Any, ""), letters::NO_GPU),
    refused(Opt::word("GPUid", Kind::Any, ""), letters::NO_GPU),
    refused(Opt::word("gpuDirect", Kind::Flag, ""), letters::NO_GPU),
];

pub fn help() -> String {
    let mut out = String::from(
        "Usage:\n  fstone mdtest -n 1000 [options]\n  mpirun -n 64 fstone mdtest -n 1000 -u -F -d /mnt/shared/test [options]\n\n\
         Every task (a process started by the MPI launcher, or a single one without a launcher) creates items, then stats, reads,\n\
         renames and removes them. All tasks begin each phase together. Options are those of mdtest: `-n 5`, `-n5` and `-n=5` are the\n\
         same, flags can be combined as in -FCu, and k, m, g, t after a number are powers of 1024.\n",
    );
    out.push_str(&letters::help(OPTIONS));
    out.push_str(
        "\nExamples:\n  fstone mdtest -n 10000 -F -w 3901 -e 3901 -d /mnt/test        files of 3901 bytes in one directory\n  \
         mpirun -n 8 fstone mdtest -n 1000 -u -z 2 -b 4 -d /mnt/test    a tree of 21 directories for each task\n  \
         mpirun -n 8 fstone mdtest -n 1000000 -u -F -C -W 300 -d /mnt/t create for 300 s, and keep the files\n\n\
         In a study: load = { mdtest = \"-n 1000 -F\" }. `fstone convert easy.mdtest` prints the command line in that file as a\n\
         workload file. docs/formats/mdtest.md says what differs from mdtest.\n",
    );
    out
}
