//! A load that a launcher of MPI carries out as many processes.

use serde::{Deserialize, Serialize};

/// The most ranks that a load may have: what the merge of their reports was tried with, ten times.
pub const MAXIMUM_RANKS: u32 = 100_000;

/// What stands for the number of ranks in a launcher's command line.
pub const RANKS: &str = "{ranks}";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The launcher and its options. `{ranks}` is the number of ranks; where no word has it, `-n` and the number come last, which all
    /// launchers of MPI know.
    pub command: Vec<String>,
    /// How many ranks; at least one.
    pub ranks: u32,
}

impl Launch {
    /// The launcher where a study says only how many ranks there are.
    pub const USUAL: &'static str = "mpirun";

    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    /// Whether it is Slurm's, which starts processes outside the trial's own mount namespace.
    pub fn is_of_slurm(&self) -> bool {
        self.program().rsplit('/').next() == Some("srun")
    }

    /// The launcher's command line, to be followed by that of the program it starts.
    pub fn words(&self) -> Vec<String> {
        let ranks = self.ranks.to_string();
        let mut words: Vec<String> = self.command.iter().map(|word| word.replace(RANKS, &ranks)).collect();
        if words == self.command {
            words.extend(["-n".to_owned(), ranks]);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_ranks_stands_where_it_is_said_or_last() {
        let words = |line: &str| {
            let command = line.split(' ').map(str::to_owned).collect();
            Launch { command, ranks: 16 }.words().join(" ")
        };
        assert_eq!(words("mpirun"), "mpirun -n 16");
        assert_eq!(words("srun --mpi=pmix --ntasks={ranks} --exclusive"), "srun --mpi=pmix --ntasks=16 --exclusive");
        let slurm = |program: &str| Launch { command: vec![program.into()], ranks: 1 }.is_of_slurm();
        assert!(slurm("srun") && slurm("/usr/bin/srun") && !slurm("mpirun"));
    }
}
