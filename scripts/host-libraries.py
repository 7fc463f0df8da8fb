#!/usr/bin/env python3
"""Measures products, factorisations and Fourier transforms of 4096 rows in turns with NumPy and
SciPy (OpenBLAS, pocketfft).

    cargo bench --bench host_pool --no-run     # prints the path of the program
    scripts/host-libraries.py PROGRAM [--turns 5] [--cpu]

Prints the median and the least seconds of both on all cores, and how many times as fast pdawl
is by each. With --cpu, these are seconds of processor time on one core, which other programs
on the machine disturb less.
"""

import argparse
import glob
import os
import statistics
import subprocess
import time

ROWS = 4096


def libraries(clock, threads):
    """A function for each operation; it returns its seconds."""
    import numpy as np
    import scipy.fft
    import scipy.linalg

    def matrix(dtype, diagonal=0.0):
        random = np.random.default_rng(1).random((ROWS, ROWS)) - 0.5
        return np.asfortranarray((random + diagonal * np.eye(ROWS)).astype(dtype))

    def measured(act, prepare=lambda: ()):
        def run():
            given = prepare()
            begun = clock()
            act(*given)
            return clock() - begun

        return run

    def copies(a, order):
        return lambda: (a.copy(order=order),)

    def lapack(name, a, **options):
        (function,) = scipy.linalg.get_lapack_funcs((name,), (a,))
        return measured(lambda a: function(a, overwrite_a=1, **options), copies(a, "F"))

    def product(a, b):
        out = np.empty((ROWS, ROWS), a.dtype, order="F")
        return measured(lambda: np.matmul(a, b, out=out))

    timed = {}
    for name, dtype in [("f32", np.float32), ("f64", np.float64)]:
        a = matrix(dtype)
        timed[f"product {name}"] = product(a, matrix(dtype))
        timed[f"LU {name}"] = lapack("getrf", a)
        timed[f"Cholesky {name}"] = lapack("potrf", matrix(dtype, ROWS), lower=1, clean=0)
    x = (matrix(np.float32) + 1j * matrix(np.float32)).astype(np.complex64, order="C")
    timed["FFT c64"] = measured(
        lambda x: scipy.fft.fft2(x, workers=threads, overwrite_x=True), copies(x, "C")
    )
    return timed


def worker_seconds(process):
    """Processor time of the workers of a program's pools."""
    nanoseconds = 0
    for task in glob.glob(f"/proc/{process.pid}/task/*"):
        with open(f"{task}/comm") as name, open(f"{task}/schedstat") as times:
            if name.read().startswith("host:"):
                nanoseconds += int(times.read().split()[0])
    return nanoseconds / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--cpu", action="store_true", help="processor time on one core")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[: 1 if options.cpu else None]
    # Before OpenBLAS is loaded; the program's pool has the cores that it may use.
    os.environ["OPENBLAS_NUM_THREADS"] = str(len(cores))
    os.sched_setaffinity(0, cores)
    pool = subprocess.Popen(
        [options.program, "ask"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(name):
        before = worker_seconds(pool)
        pool.stdin.write(name + "\n")
        pool.stdin.flush()
        seconds = float(pool.stdout.readline())
        return worker_seconds(pool) - before if options.cpu else seconds

    clock = time.process_time if options.cpu else time.perf_counter
    for name, run in libraries(clock, len(cores)).items():
        # The first turn warms up.
        turns = [(ask(name), run()) for _ in range(options.turns + 1)][1:]
        ours, theirs = zip(*turns)
        for what, of in [("median", statistics.median), ("least", min)]:
            own, other = of(ours), of(theirs)
            print(
                f"{name:13} {what:7} pdawl {own:.4f} s, library {other:.4f} s, {other / own:.2f}",
                flush=True,
            )
    pool.stdin.close()
    pool.wait()


if __name__ == "__main__":
    main()
