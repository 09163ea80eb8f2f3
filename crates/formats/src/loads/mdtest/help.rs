//! What `-h` prints.

use super::options;
use crate::loads::letters;

pub fn help() -> String {
    let mut out = String::from(
        "Usage:\n  fstone mdtest -n 1000 [options]\n  mpirun -n 64 fstone mdtest -n 1000 -u -F -d /mnt/shared/test [options]\n\n\
         Every task (a process started by the MPI launcher, or a single one without a launcher) creates items, then stats, reads,\n\
         renames and removes them. All tasks begin each phase together. Options are those of mdtest: `-n 5`, `-n5` and `-n=5` are the\n\
         same, flags can be combined as in -FCu, and k, m, g, t after a number are powers of 1024.\n",
    );
    out.push_str(&letters::help(options::OPTIONS));
    out.push_str(
        "\nExamples:\n  fstone mdtest -n 10000 -F -w 3901 -e 3901 -d /mnt/test        files of 3901 bytes in one directory\n  \
         mpirun -n 8 fstone mdtest -n 1000 -u -z 2 -b 4 -d /mnt/test    a tree of 21 directories for each task\n  \
         mpirun -n 8 fstone mdtest -n 1000000 -u -F -C -W 300 -d /mnt/t create for 300 s, and keep the files\n\n\
         In a study: load = { mdtest = \"-n 1000 -F\" }. `fstone convert easy.mdtest` prints the command line in that file as a\n\
         workload file. docs/formats/mdtest.md says what differs from mdtest.\n",
    );
    out
}
