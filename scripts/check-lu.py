#!/usr/bin/env python3
"""Compares the LU factors of `pdawl run lu` with the given matrix and with SciPy's factors.

    scripts/check-lu.py --program target/release/pdawl [--sizes 1,2,16,65,300,1000,2000] [--ranks 1,2,3,4]

For each kind of matrix, size, precision and number of ranks (`mpirun -n`), it prints LAPACK's
ratio |PA - LU| / (n |A| u) in the maximum row norm, of pdawl's factors and of
scipy.linalg.lu_factor's. The first must be below 10. The exit status is 1 if one is not, if
pivots do not exchange the rows, or if a run fails where SciPy finds no zero pivot. `growth` is
left out where its numbers of U do not fit the precision's significand: no partial pivoting
has a small residual then.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import scipy.linalg


def kinds(n, rng):
    i = np.arange(n)
    sign = np.where(np.subtract.outer(i, i) > 0, -1.0, 0.0)
    growth = sign + np.eye(n)
    growth[:, -1] = 1
    yield "random", rng.uniform(-1, 1, (n, n))
    # Rows from 1 down to 1e-12.
    yield "graded", rng.uniform(-1, 1, (n, n)) * np.logspace(0, -12, n)[:, None]
    yield "exchange", np.eye(n)[::-1]
    # Hilbert's matrix is singular to the precision; a diagonal keeps it regular.
    yield "hilbert", 1 / (1 + np.add.outer(i, i)) + np.diag(np.full(n, 1e-3))
    if n > 1:  # the one of a single row is zero
        yield "wilkinson", np.diag(np.abs(i - (n - 1) / 2)) + np.eye(n, k=1) + np.eye(n, k=-1)
    yield "growth", growth


def ratio(a, lu, pivots, unit):
    n = len(a)
    rows = np.arange(n)
    for row, other in enumerate(pivots):
        rows[[row, other]] = rows[[other, row]]
    lower = np.tril(lu.astype(np.longdouble), -1) + np.eye(n)
    wide = np.triu(lu.astype(np.longdouble))
    product = lower @ wide if n <= 300 else (lower.astype(float) @ wide.astype(float))
    residual = np.abs(a[rows].astype(np.longdouble) - product).sum(axis=1).max()
    return float(residual / (n * np.abs(a.astype(float)).sum(axis=1).max() * unit))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", required=True)
    p.add_argument("--sizes", default="1,2,16,65,300,1000,2000")
    p.add_argument("--ranks", default="1,2,3,4")
    a = p.parse_args()
    program = os.path.abspath(a.program)
    worst, bad = {}, 0
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        given, lu, pivots = (os.path.join(folder, name) for name in ["a.npy", "lu.npy", "p.npy"])
        for n in map(int, a.sizes.split(",")):
            for kind, matrix in kinds(n, rng):
                for precision, unit in [(np.float32, 2.0**-24), (np.float64, 2.0**-53)]:
                    if kind == "growth" and n > -np.log2(unit):
                        continue
                    narrow = np.ascontiguousarray(matrix.astype(precision))
                    np.save(given, narrow)
                    theirs = ratio(narrow, *scipy.linalg.lu_factor(narrow), unit)
                    for ranks in map(int, a.ranks.split(",")):
                        call = [program, "run", "lu", "--input", given, "--output", lu, "--pivots", pivots,
                                "--verify", "--format", "json"]
                        if ranks > 1:
                            call = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)] + call
                        ended = subprocess.run(call, capture_output=True, text=True)
                        case = f"{kind} {np.dtype(precision).name} n={n} ranks={ranks}"
                        if ended.returncode != 0:
                            bad += 1
                            print(f"{case}: status {ended.returncode}: {ended.stderr[-300:]}")
                            continue
                        ours = ratio(narrow, np.load(lu), np.load(pivots), unit)
                        worst[kind] = max(worst.get(kind, (0, 0)), (ours, theirs))
                        if not ours < 10:
                            bad += 1
                            print(f"{case}: ratio {ours:.3g}, SciPy's {theirs:.3g}")
            print(f"n = {n}: done", file=sys.stderr, flush=True)
    for kind, (ours, theirs) in worst.items():
        print(f"{kind}: greatest ratio {ours:.3g}, SciPy's of the same matrix {theirs:.3g}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
