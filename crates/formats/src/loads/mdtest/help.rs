//! What `-h` prints.

use super::options;
use crate::loads::letters;

/// Usage and options.
#[must_use]
pub fn help() -> String {
    let mut out = String::from(
        "Usage:\n  fstone mdtest -n 1000 [options]\n  mpirun -n 64 fstone mdtest -n 1000 -u -F -d /mnt/shared/test [options]\n\n\
         Every task (a process that the launcher of MPI started; one without a launcher) creates items, then stats, reads, renames\n\
         and removes them. All tasks begin each phase together. Options are mdtest's: `-n 5`, `-n5` and `-n=5` are the same, flags may\n\
         stand together as in -FCu, and k, m, g, t behind a number are powers of 1024.\n",
    );
    out.push_str(&letters::help(options::OPTIONS));
    out.push_str(
        "\nExamples:\n  fstone mdtest -n 10000 -F -w 3901 -e 3901 -d /mnt/test        files of 3901 bytes in one directory\n  \
         mpirun -n 8 fstone mdtest -n 1000 -u -z 2 -b 4 -d /mnt/test    a tree of 21 directories for each task\n  \
         mpirun -n 8 fstone mdtest -n 1000000 -u -F -C -W 300 -d /mnt/t create for 300 s, and keep what was created\n\n\
         In a study: load = { mdtest = \"-n 1000 -F\" }. As a workload file: `fstone convert easy.mdtest`, where that file has the command\n\
         line. docs/formats/mdtest.md says what differs from mdtest.\n",
    );
    out
}
