"""A product of matrices of singles by SUMMA over rows of ranks: summa.py SIZE."""
import sys, time
import numpy as np
from mpi4py import MPI

comm, n = MPI.COMM_WORLD, int(sys.argv[1])
rank, size = comm.rank, comm.size
rows = n // size
random = np.random.default_rng(rank)
a, b = (random.random((rows, n), dtype=np.float32) for _ in range(2))
c = np.zeros((rows, n), np.float32)
comm.Barrier()
begin = time.perf_counter()
for owner in range(size):
    panel = b if owner == rank else np.empty_like(b)
    comm.Bcast(panel, root=owner)
    c += a[:, owner * rows : (owner + 1) * rows] @ panel
comm.Barrier()
if rank == 0:
    print(time.perf_counter() - begin)
