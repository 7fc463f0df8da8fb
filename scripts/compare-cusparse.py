#!/usr/bin/env python3
"""Compares products of sparse matrices with cuSPARSE, on a machine with both.

    scripts/compare-cusparse.py [--pdawl PATH] [--out FILE.json] [--steps 100]
        [MATRIX ...]

A MATRIX is what `pdawl matrix generate` takes; without any, look-alikes of the
PDAWL paper's matrices at full size, and three generators. Each is written in
binary form and read by both sides: `pdawl run spmv` on the GPU, on the CPU and
with --adaptive, and cuSPARSE through CuPy. All keep the matrix and the vector on the device; the time of a product is
the median step, and for cuSPARSE the time of many in a row, divided.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import cusparse

MATRICES = [
    "like:FullChip",
    "like:eu-2005",
    "like:in-2004",
    "like:circuit5M",
    "uniform:1000000,16",
    "banded:1000000,16",
    "rmat:20,16",
]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("matrices", nargs="*", default=MATRICES, metavar="MATRIX")
    parser.add_argument("--pdawl", default="./target/release/pdawl")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="write the figures and pdawl's reports to this file")
    options = parser.parse_intermixed_args()
    results = []
    for matrix in options.matrices:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "matrix.pdawl")
            call(options.pdawl, "matrix", "generate", matrix, path)
            results.append(compare(options, matrix, path))
        tell(results[-1])
        if options.out:
            with open(options.out, "w", encoding="utf-8") as out:
                json.dump(results, out)


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def compare(options, matrix, path):
    runs = {}
    for strategy in ("gpu", "cpu", "dawl"):
        steps = options.steps if strategy != "cpu" else max(options.steps // 10, 3)
        words = [
            "run", "spmv", "--matrix", path, "--strategy", strategy,
            "--steps", str(steps), "--format", "json",
        ]
        runs[strategy] = json.loads(call(options.pdawl, *words))
    theirs = cusparse.seconds(cusparse.load(path), options.steps)
    return {"matrix": matrix, "cusparse_seconds": theirs, "runs": runs}


def tell(result):
    def step(run):
        return statistics.median(s["seconds"] for s in run["steps"]) * 1e6

    runs, theirs = result["runs"], result["cusparse_seconds"] * 1e6
    gpu, cpu = step(runs["gpu"]), step(runs["cpu"])
    share = runs["gpu"]["seconds"] / runs["dawl"]["seconds"]
    print(
        f"{result['matrix']:<22} gpu {gpu:8.1f} us, cuSPARSE {theirs:8.1f} us: {theirs / gpu:.2f}; "
        f"cpu {cpu:9.1f} us; adaptive is {share:.2f} of gpu over {len(runs['dawl']['steps'])} steps",
        flush=True,
    )


if __name__ == "__main__":
    main()
