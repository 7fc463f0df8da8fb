#!/bin/sh
# A job of Slurm that computes over the nodes that it gets:
#
#   sbatch examples/slurm.sh
#   sbatch --nodes=8 examples/slurm.sh run fft --size 32768
#
# One process on each node uses all of its cores and GPUs (docs/cluster.md). The program and
# the wire over MPI must be in the same place on all nodes: `make install PREFIX=DIR` with a
# folder that all see.
#
#SBATCH --job-name=pdawl
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=00:30:00
set -eu

# The program, where it is not in PATH.
pdawl=${PDAWL:-pdawl}
[ $# -gt 0 ] || set -- run matmul --size 32768 --verify

# Without the last option Open MPI would give each process one core.
if command -v mpirun >/dev/null; then
    exec mpirun --map-by ppr:1:node --bind-to none "$pdawl" "$@"
fi
# A Slurm with PMIx starts programs of MPI by itself. A step gets one core for each process
# unless it asks for more.
exec srun --mpi=pmix --ntasks-per-node=1 --cpus-per-task="$SLURM_CPUS_ON_NODE" \
    --cpu-bind=none "$pdawl" "$@"
