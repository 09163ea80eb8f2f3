//! Every option of IOR, in one table: reading, suggestions and `--help` use it.

use super::command::FILE;
use crate::loads::{
    CommandOnly,
    letters::{self, Kind, Opt, ignored, output, own, refused},
};

const BYTES: Kind = Kind::Size(i64::MAX as u64);

const ORDER: &str = "use -C, and -Q with a number, to shift tasks";

pub(super) const OPTIONS: &[Opt] = &[
    Opt::letter('a', "api", Kind::Text, "the interface: POSIX").default("POSIX"),
    Opt::letter('b', "block", BYTES, "bytes that a task moves in one piece of the file").default("1m"),
    Opt::letter('t', "transfer", Kind::Size(1 << 30), "bytes of each read or write").default("256k"),
    Opt::letter(
        's',
        "segments",
        Kind::Number(1 << 40),
        "pieces of each task; in a shared file the tasks' pieces alternate",
    )
    .default("1"),
    Opt::letter('F', "file-per-process", Kind::Flag, "each task has its own file; otherwise all share one"),
    Opt::letter('o', "file", Kind::Text, "the file; with -F each task's file is FILE.00000001 and so on")
        .default(FILE)
        .command_only_with(CommandOnly::Place, "/"),
    Opt::letter('w', "write", Kind::Flag, "write"),
    Opt::letter('r', "read", Kind::Flag, "read; without -w and -r, both"),
    Opt::letter(
        'C',
        "shift",
        Kind::Flag,
        "read what the task in the same position on the next node wrote; on one node: the next task",
    ),
    Opt::letter(
        'Q',
        "shift-by",
        Kind::Number(u32::MAX as u64),
        "with -C: N nodes further on; on one node: N tasks",
    )
    .default("1"),
    Opt::letter('z', "random", Kind::Flag, "transfers in random order, each once"),
    Opt::letter('e', "fsync", Kind::Flag, "fsync after writing, within the measured time"),
    Opt::letter('Y', "fsync-per-write", Kind::Flag, "fsync after every write"),
    Opt::letter('k', "keep", Kind::Flag, "keep the files"),
    Opt::letter('i', "repetitions", Kind::Number(1000), "number of repetitions of everything").default("1"),
    Opt::letter('m', "multi-file", Kind::Flag, "the number of the repetition ends the file's name; always with -i"),
    Opt::letter('D', "deadline", Kind::Number(366 * 24 * 3600), "seconds after which writing (and reading) stops"),
    Opt::letter(
        'O',
        "directives",
        Kind::Text,
        "stoneWallingWearOut=1: after -D all tasks continue until they have moved as much as the fastest; summaryFormat=JSON",
    )
    .command_only_with(CommandOnly::Output, "summaryFormat"),
    Opt::word("posix.odirect", Kind::Flag, "O_DIRECT"),
    Opt::letter('B', "direct", Kind::Flag, "O_DIRECT, as older versions say it"),
    output(Opt::letter('h', "help", Kind::Flag, "this").or_word()),
    output(own(
        "results",
        Kind::Text,
        "a directory for ior.json, ranks.json and ranks.csv; the latter two are rewritten after each phase",
    )),
    letters::JSON,
    letters::SEED,
    letters::SILENCE,
    letters::STILLNESS,
    ignored(
        Opt::letter('g', "barriers", Kind::Flag, ""),
        "open, transfers and close are always distinguished: their latencies are printed",
    ),
    ignored(Opt::letter('v', "verbose", Kind::Flag, ""), letters::VERBOSE),
    ignored(Opt::letter('x', "single-attempt", Kind::Flag, ""), "a short read or write is continued"),
    ignored(Opt::letter('A', "reference", Kind::Any, ""), "results contain the command line"),
    ignored(Opt::letter('G', "signature", Kind::Any, ""), letters::RANDOM_DATA),
    ignored(Opt::letter('l', "dataPacketType", Kind::Any, "").or_word(), letters::RANDOM_DATA),
    ignored(Opt::letter('K', "keep-with-error", Kind::Flag, ""), "with -k, files are also kept after an error"),
    ignored(Opt::word("warningAsErrors", Kind::Flag, ""), letters::ERRORS_TOLD),
    refused(Opt::letter('c', "collective", Kind::Flag, "").or_word(), "there is no collective I/O in POSIX"),
    refused(Opt::letter('d', "delay", Kind::Any, ""), "use sleep(1) between two runs"),
    refused(
        Opt::letter('E', "existing", Kind::Flag, ""),
        "files are always made again; an existing file is not touched",
    ),
    refused(Opt::letter('f', "script", Kind::Any, ""), "write each test of the script as a command line"),
    refused(Opt::letter('j', "outlier", Kind::Any, ""), "--results DIR has every task's times"),
    refused(
        Opt::letter('M', "memory", Kind::Any, ""),
        "use another program, or the limit of a cgroup, to take up memory",
    ),
    refused(Opt::letter('N', "tasks", Kind::Any, ""), letters::LAUNCHER),
    refused(Opt::letter('R', "check-read", Kind::Flag, ""), letters::NOT_COMPARED),
    refused(Opt::letter('W', "check-write", Kind::Flag, ""), letters::NOT_COMPARED),
    refused(Opt::letter('T', "max-time", Kind::Any, ""), "limit the launcher with timeout(1)"),
    refused(Opt::letter('u', "unique-directory", Kind::Flag, ""), "all files are in the directory of -o"),
    refused(Opt::letter('X', "reorder-seed", Kind::Any, ""), ORDER),
    refused(Opt::letter('Z', "reorder-random", Kind::Flag, ""), ORDER),
    refused(Opt::letter('y', "dual-mount", Kind::Flag, ""), "each file is reached through one path only"),
    refused(
        Opt::word("randomPrefill", Kind::Any, ""),
        "write the file with another run and -k, and read it with -r -z",
    ),
    refused(Opt::word("random-offset-seed", Kind::Any, ""), "--seed is the seed of all random numbers"),
    refused(Opt::word("dryRun", Kind::Flag, ""), "`fstone convert` shows what would be done"),
    refused(Opt::word("gpuDirect", Kind::Flag, ""), letters::NO_GPU),
];

pub fn help() -> String {
    let mut out = String::from(
        "Usage:\n  fstone ior -b 1g -t 1m -o /mnt/shared/file [options]\n  mpirun -n 64 fstone ior -b 1g -t 1m -F -e -C -o /mnt/shared/file [options]\n\n\
         Every task (a process started by the MPI launcher, or a single one without a launcher) writes its part of a shared file, or with\n\
         -F its own file, and then reads what it wrote, or with -C what another task wrote. All tasks begin each phase together. Options\n\
         are those of IOR: `-b 1m`, `-b1m` and `-b=1m` are the same, flags can be combined as in -wkF, and k, m, g, t are powers of 1024.\n",
    );
    out.push_str(&letters::help(OPTIONS));
    out.push_str(
        "\nExamples:\n  fstone ior -b 1g -t 1m -e -o /mnt/test/file                      1 GiB, written, made durable, read back\n  \
         mpirun -n 8 fstone ior -b 47008 -t 47008 -s 1000 -C -o /mnt/t/f  many small pieces of one file, interleaved\n  \
         mpirun -n 8 fstone ior -F -b 100g -t 2m -w -k -D 300 -O stoneWallingWearOut=1 -o /mnt/t/f\n\n\
         In a study: load = { ior = \"-b 1g -t 1m -e\" }. `fstone convert easy.ior` prints the command line in that file as a\n\
         workload file. docs/formats/ior.md says what differs from IOR.\n",
    );
    out
}
