//! Whether a launcher such as `mpirun` has started this process, as its environment says, and
//! joining the run that it has started. MPI itself would know, but it is not loaded yet, and may
//! not be installed.

use std::env;
use std::path::Path;

use super::heartbeat::Pulse;
use super::{PluginWire, Wire, WireError, plugin};

/// This process is one of several that a launcher has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The number of this process, from 0.
    pub rank: usize,
    /// The number of processes.
    pub size: usize,
}

/// The variables with the rank and with the number of ranks.
const VARIABLES: [(&str, &str); 4] = [
    // Open MPI's mpirun.
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    // MPICH's and Intel MPI's mpiexec, and Slurm's srun with --mpi=pmi2.
    ("PMI_RANK", "PMI_SIZE"),
    // MVAPICH2's mpirun_rsh.
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    // Slurm's srun with --mpi=pmix. A batch script has SLURM_NTASKS, too, but no rank.
    ("PMIX_RANK", "SLURM_NTASKS"),
];

impl Launched {
    /// What the environment says; nothing if the process was started alone.
    pub fn detect() -> Option<Self> {
        Self::from(|name| env::var(name).ok())
    }

    fn from(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name| variable(name)?.trim().parse::<usize>().ok();
        VARIABLES.iter().find_map(|&(rank, size)| {
            let (rank, size) = (number(rank)?, number(size)?);
            (rank < size).then_some(Self { rank, size })
        })
    }
}

/// The wire to the other processes that `mpirun` or another launcher has started together
/// with this one; nothing if this process is alone. `named` is a library that the user
/// names; it is used in any case. All ranks call this at the same time.
///
/// An error that all ranks have is worth printing once: by the one whose
/// [`Launched::rank`] is 0.
pub fn join(named: Option<&Path>, pulse: Pulse) -> Result<Option<PluginWire>, WireError> {
    let launched = Launched::detect();
    let ranks = launched.map_or(1, |launched| launched.size);
    if ranks == 1 && named.is_none() {
        return Ok(None);
    }
    let file = plugin::find(named)?;
    let wire = PluginWire::join(&file, pulse)?;
    let joined = wire.size();
    // An MPI that another MPI's launcher has started makes a run of each process.
    match launched {
        Some(_) if joined != ranks => Err(WireError::OtherLauncher {
            file,
            ranks,
            joined,
        }),
        _ => Ok(Some(wire)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(variables: &[(&str, &str)]) -> Option<Launched> {
        Launched::from(|name| {
            let mut found = variables.iter().filter(|(given, _)| *given == name);
            found.next().map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let second = Some(Launched { rank: 1, size: 3 });
        for (rank, size) in VARIABLES {
            assert_eq!(detect(&[(rank, "1"), (size, "3")]), second, "{rank}");
            assert_eq!(detect(&[(size, "3")]), None, "{size} alone");
            assert_eq!(detect(&[(rank, "1")]), None, "{rank} alone");
        }
    }

    #[test]
    fn a_batch_script_is_no_rank() {
        let variables = [("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")];
        assert_eq!(detect(&variables), None);
    }

    #[test]
    fn nonsense_is_no_rank() {
        for (rank, size) in [("3", "3"), ("-1", "3"), ("one", "3"), ("0", "")] {
            let variables = [("PMI_RANK", rank), ("PMI_SIZE", size)];
            assert_eq!(detect(&variables), None, "{rank} of {size}");
        }
    }
}
