//! Whether an MPI launcher started this process as one of many, by what it left in the environment.

/// What each launcher says: the variables of a rank's number and of how many there are, and who says so.
///
/// A batch script of Slurm has `SLURM_PROCID` and `SLURM_NTASKS` as well, and is one process: only srun gives a step's number of tasks.
const LAUNCHERS: [(&str, &str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"),
    ("PMI_RANK", "PMI_SIZE", "a launcher that speaks PMI, such as MPICH's mpirun"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun"),
];

/// Why this program cannot run a load of several ranks, and what helps; `None` if it can.
pub(crate) const NO_RANKS: Option<(&str, &str)> = if cfg!(feature = "mpi") {
    None
} else {
    Some((
        "this fstone was built without MPI and cannot run a load of several ranks",
        "build one with MPI: `make mpi`, or `cargo build --release --package fstone --features mpi`",
    ))
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Launched {
    /// Its number, from 0.
    pub(crate) rank: u32,
    /// How many there are; more than one.
    pub(crate) ranks: u32,
    pub(crate) by: &'static str,
}

/// What the environment says; `None` for a process by itself.
pub(crate) fn launched() -> Option<Launched> {
    launched_by(|name| std::env::var(name).ok())
}

fn launched_by(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    LAUNCHERS.iter().find_map(|&(rank, ranks, by)| {
        let (rank, ranks) = (number(rank)?, number(ranks)?);
        (ranks > 1).then_some(Launched { rank, ranks, by })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<(u32, u32)> {
        let value = |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
        launched_by(value).map(|launched| (launched.rank, launched.ranks))
    }

    #[test]
    fn one_of_many_is_known_by_any_launchers_variables() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")]), Some((3, 4)));
        assert_eq!(of(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]), Some((0, 2)));
        assert_eq!(of(&[("SLURM_PROCID", "7"), ("SLURM_STEP_NUM_TASKS", "8")]), Some((7, 8)));
        // A single rank is an ordinary load, and a batch script is not a step of many tasks.
        assert_eq!(of(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")]), None);
        assert_eq!(of(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), None);
        assert_eq!(of(&[("PMI_RANK", "x"), ("PMI_SIZE", "2")]), None);
    }
}
