#!/usr/bin/env python3
"""Measures products, factorisations and Fourier transforms of 4096 rows on all cores in turns
with NumPy and SciPy (OpenBLAS, pocketfft), and sorts with numpy.sort.

    cargo bench --bench host_pool --no-run     # prints the path of the program
    OPENBLAS_NUM_THREADS=$(nproc) scripts/host-libraries.py PROGRAM [TURNS]

Prints the median and the least seconds of both, and how many times as fast pdawl is by each.
"""

import os
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.fft
import scipy.linalg

ROWS = 4096


def matrix(dtype, diagonal=0.0):
    random = np.random.default_rng(1).random((ROWS, ROWS)) - 0.5
    return np.asfortranarray((random + diagonal * np.eye(ROWS)).astype(dtype))


def libraries():
    """A function for each operation; it returns its seconds."""
    timed = {}

    def measured(act, prepare=lambda: ()):
        def run():
            given = prepare()
            begun = time.perf_counter()
            act(*given)
            return time.perf_counter() - begun

        return run

    for name, dtype in [("f32", np.float32), ("f64", np.float64)]:
        a, b = matrix(dtype), matrix(dtype)
        out = np.empty((ROWS, ROWS), dtype, order="F")
        timed[f"product {name}"] = measured(lambda a=a, b=b, out=out: np.matmul(a, b, out=out))
        (getrf,) = scipy.linalg.get_lapack_funcs(("getrf",), (a,))
        copied = lambda a=a: (a.copy(order="F"),)
        timed[f"LU {name}"] = measured(lambda a, f=getrf: f(a, overwrite_a=1), copied)
        positive = matrix(dtype, ROWS)
        (potrf,) = scipy.linalg.get_lapack_funcs(("potrf",), (positive,))
        copied = lambda a=positive: (a.copy(order="F"),)
        timed[f"Cholesky {name}"] = measured(
            lambda a, f=potrf: f(a, lower=1, overwrite_a=1, clean=0), copied
        )
    x = (matrix(np.float32) + 1j * matrix(np.float32)).astype(np.complex64, order="C")
    workers = os.cpu_count()
    timed["FFT c64"] = measured(lambda x: scipy.fft.fft2(x, workers=workers, overwrite_x=True),
                                lambda: (x.copy(),))
    return timed


def main():
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    pool = subprocess.Popen(
        [sys.argv[1], "ask"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for name, run in libraries().items():
        run()
        ours, theirs = [], []
        for _ in range(turns):
            pool.stdin.write(name + "\n")
            pool.stdin.flush()
            ours.append(float(pool.stdout.readline()))
            theirs.append(run())
        for what, of in [("median", statistics.median), ("least", min)]:
            own, other = of(ours), of(theirs)
            print(f"{name:13} {what:7} pdawl {own:.4f} s, library {other:.4f} s, {other / own:.2f}",
                  flush=True)
    pool.stdin.close()
    pool.wait()


if __name__ == "__main__":
    main()
