//! What `-h` prints.

use super::options;
use crate::loads::letters;

pub fn help() -> String {
    let mut out = String::from(
        "Usage:\n  fstone ior -b 1g -t 1m -o /mnt/shared/file [options]\n  mpirun -n 64 fstone ior -b 1g -t 1m -F -e -C -o /mnt/shared/file [options]\n\n\
         Every task (a process started by the MPI launcher, or a single one without a launcher) writes its part of a shared file, or with\n\
         -F its own file, and then reads what it wrote, or with -C what another task wrote. All tasks begin each phase together. Options\n\
         are those of IOR: `-b 1m`, `-b1m` and `-b=1m` are the same, flags can be combined as in -wkF, and k, m, g, t are powers of 1024.\n",
    );
    out.push_str(&letters::help(options::OPTIONS));
    out.push_str(
        "\nExamples:\n  fstone ior -b 1g -t 1m -e -o /mnt/test/file                      1 GiB, written, made durable, read back\n  \
         mpirun -n 8 fstone ior -b 47008 -t 47008 -s 1000 -C -o /mnt/t/f  many small pieces of one file, interleaved\n  \
         mpirun -n 8 fstone ior -F -b 100g -t 2m -w -k -D 300 -O stoneWallingWearOut=1 -o /mnt/t/f\n\n\
         In a study: load = { ior = \"-b 1g -t 1m -e\" }. `fstone convert easy.ior` prints the command line in that file as a\n\
         workload file. docs/formats/ior.md says what differs from IOR.\n",
    );
    out
}
