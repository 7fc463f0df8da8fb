"""Ranks that decide alike without a coordinator: `mpirun -n 2 python mpi.py`. Each rank has a
divider of its own, and all are told the same seconds. Rank 1 works twice as long on each row."""

import time

import numpy as np
import pdawl
from mpi4py import MPI

ROWS, STEPS = 4000, 20

world = MPI.COMM_WORLD
rank = world.rank
matrix = np.random.default_rng(0).random((ROWS, 500))
vector = np.ones(500)
divider = pdawl.Divider(units=ROWS, parts=world.size)
for _ in range(STEPS):
    rows = divider.next()[rank]
    began = time.perf_counter()
    for _ in range(20 * (1 + rank)):
        mine = matrix[rows.start : rows.stop] @ vector
    seconds = time.perf_counter() - began
    product = np.concatenate(world.allgather(mine))
    divider.took(world.allgather(seconds))
assert np.allclose(product, matrix @ vector)
assert len(set(world.allgather(divider.to_json()))) == 1, "the ranks have decided alike"
if rank == 0:
    print(divider.why())
