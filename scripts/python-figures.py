#!/usr/bin/env python3
"""Measures what the Python package costs beside the program, in turns, on this machine.

    scripts/python-figures.py PROGRAM [--turns N] [--devices LIST] [--calls] [--dense]

The package is imported as installed (`make python`), or from $PYTHONPATH. Prints a line a figure:

* a product on a small matrix and one on 10^7 nonzeros, a call in Python beside a step of
  `pdawl bench run spmv --strategy dawl` on the same file;
* dense operations on arrays in NumPy's memory: seconds of the run, and of the call with its
  tiles and the result: the first, and the least of the turns after it;
* 1,600 tasks (`matmul2d`, simulated): seconds in a policy of Python's beside those that the
  program's `eager` and `darts+luf` take to decide.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse

import pdawl

SMALL, LARGE = "uniform:100,5", "uniform:1000000,10"
STEPS = {SMALL: 2000, LARGE: 30}
MACHINE, TILES = "v100x4", 40


class Fifo(pdawl.Policy):
    """The task that waits longest."""

    def next(self, device, now):
        return self.waiting.pop(0) if self.waiting else None


def run(program, *arguments):
    out = subprocess.run(
        [program, *arguments, "--format", "json"], check=True, stdout=subprocess.PIPE
    )
    return json.loads(out.stdout)


def calls(session, file, steps):
    """Seconds of a call, the median of so many after the shares were learned."""
    matrix = pdawl.Matrix(scipy.sparse.csr_array(scipy.io.mmread(file)))
    rows, columns = matrix.shape
    x, y = np.ones(columns), np.empty(rows)
    for _ in range(20):
        session.spmv(matrix, x, out=y)
    seconds = []
    for _ in range(steps):
        began = time.perf_counter()
        session.spmv(matrix, x, out=y)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def steps_of(program, file, devices, steps):
    """Seconds of a step of the program, the median of its runs."""
    report = run(
        program, "bench", "run", "spmv", "--matrix", str(file), "--strategy", "dawl",
        "--steps", str(steps), *devices,
    )
    return statistics.median(report["runs"][0]["seconds"]) / steps


def dense(devices, turns):
    """Seconds of operations and of their calls."""
    session = pdawl.Session(devices)
    random = np.random.default_rng(1)
    single = random.random((8192, 8192), "f4")
    definite = single @ single.T / 8192 + np.eye(8192, dtype="f4")
    large, double = random.random((16384, 16384), "f4"), random.random((8192, 8192))
    complex_ = (single + 1j * single).astype("c8")
    many, grid = random.random(10**8, "f4"), random.random((16384, 16384))
    for name, operation in [
        ("product 16384 f32", lambda: session.matmul(large, large)),
        ("product 8192 f64", lambda: session.matmul(double, double)),
        ("Cholesky 8192 f32", lambda: session.cholesky(definite)),
        ("LU 8192 f32", lambda: session.lu(single)),
        ("transform 8192 c64", lambda: session.fft2(complex_)),
        ("sort of 10^8", lambda: session.sort(many)),
        ("stencil 16384 f64, 20 steps", lambda: session.stencil(grid, steps=20)),
    ]:
        runs, calls_ = [], []
        for _ in range(turns + 1):
            began = time.perf_counter()
            runs.append(operation().seconds)
            calls_.append(time.perf_counter() - began)
        print(f"{name}: run {min(runs[1:]):.4f} s, call {min(calls_[1:]):.3f} s, "
              f"the first {calls_[0]:.3f} s", flush=True)


def single_calls(devices):
    """The median of calls of a small product, and the least of launches on long vectors, which
    need an OpenCL device."""
    session = pdawl.Session(devices)
    small, x, y = (np.ones(shape, "f4") for shape in ((64, 64), 1 << 24, 1 << 24))
    saxpy = session.kernel(
        "__kernel void saxpy(float a, __global const float *x, __global float *y)"
        " { size_t i = get_global_id(0); y[i] = a * x[i] + y[i]; }"
    )
    for name, call, times in [
        ("product 64 f32", lambda: session.matmul(small, small), 200),
        ("saxpy of 2^24 f32", lambda: saxpy(np.float32(2), x, y, items=1 << 24), 12),
        ("saxpy of 2^24 f32 in NumPy", lambda: 2 * x + y, 12),
    ]:
        seconds = []
        for _ in range(times):
            began = time.perf_counter()
            try:
                call()
            except (RuntimeError, ValueError) as why:
                print(f"{name}: {why}")
                break
            seconds.append(time.perf_counter() - began)
        else:
            print(f"{name}: median {1e3 * statistics.median(seconds):.2f} ms, "
                  f"least {1e3 * min(seconds):.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--devices")
    parser.add_argument("--dense", action="store_true", help="dense operations, too (16 GiB)")
    parser.add_argument("--calls", action="store_true", help="calls of small products and kernels")
    given = parser.parse_args()
    devices = ["--devices", given.devices] if given.devices else []
    with tempfile.TemporaryDirectory() as folder:
        for spec in (SMALL, LARGE):
            file = Path(folder) / "matrix.mtx"
            subprocess.run([given.program, "matrix", "generate", spec, file], check=True,
                           stdout=subprocess.DEVNULL)
            # Each has the devices for itself.
            for turn in range(given.turns):
                session = pdawl.Session(given.devices)
                ours = calls(session, file, STEPS[spec])
                del session
                step = steps_of(given.program, file, devices, STEPS[spec])
                print(f"{spec}, turn {turn}: call {ours * 1e6:.1f} us, step {step * 1e6:.1f} us, "
                      f"{(ours - step) * 1e6:+.1f} us, {ours / step:.3f} times", flush=True)
    if given.calls:
        single_calls(given.devices)
    if given.dense:
        dense(given.devices, given.turns)
    for turn in range(given.turns):
        own = pdawl.simulate(MACHINE).task_set("matmul2d", TILES, Fifo()).policy_seconds
        report = run(
            given.program, "bench", "--repeats", "1", "--vary", "policy=eager,darts+luf",
            "run", "tasks", "--set", "matmul2d", "--n", str(TILES), "--machine", MACHINE,
        )
        reports = [one["report"] for one in report["runs"]]
        rust = {of["policy"]: of["details"]["deciding_seconds"] for of in reports}
        beside = ", ".join(f"{name} {own / s:.1f} times" for name, s in rust.items())
        print(f"{TILES**2} tasks, turn {turn}: {own:.4f} s in Python; {beside}", flush=True)


if __name__ == "__main__":
    main()
