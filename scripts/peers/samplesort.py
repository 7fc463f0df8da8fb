"""A sample sort of singles with NumPy and mpi4py: samplesort.py NUMBERS."""
import sys, time
import numpy as np
from mpi4py import MPI

comm, n = MPI.COMM_WORLD, int(sys.argv[1])
size, own = comm.size, int(sys.argv[1]) // comm.size
numbers = np.random.default_rng(comm.rank).random(own, dtype=np.float32)
comm.Barrier()
begin = time.perf_counter()
numbers.sort()
samples = comm.allgather(numbers[:: max(1, own // 64)])
splitters = np.sort(np.concatenate(samples))[:: 64 + 1][1:size]
cuts = [0, *np.searchsorted(numbers, splitters), own]
sent = np.diff(cuts)
received = np.empty_like(sent)
comm.Alltoall(sent, received)
result = np.empty(received.sum(), np.float32)
offsets = lambda counts: np.concatenate([[0], np.cumsum(counts)[:-1]])
comm.Alltoallv([numbers, sent, offsets(sent), MPI.FLOAT], [result, received, offsets(received), MPI.FLOAT])
result.sort(kind="stable")
comm.Barrier()
if comm.rank == 0:
    print(time.perf_counter() - begin)
