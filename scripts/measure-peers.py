#!/usr/bin/env python3
"""Measures pdawl beside other programs on emulated nodes, as root (scripts/emulated-nodes.sh).

    scripts/measure-peers.py [--pdawl PROGRAM] [--wire LIBRARY] [--out FOLDER] [--repeats N]
        [--matmul SIZE] [--fft SIZE] [--rate RATE] [--share S]

A product of matrices of singles beside ScaLAPACK's psgemm with OpenBLAS, and a 2-D Fourier
transform of complex singles beside FFTW-MPI, on four equal nodes and on nodes of which one is
at a third (peers.tsv). scripts/peers/ has the other programs; they divide the work evenly.

A worker of pdawl has the share of a node's core, and its driver is free. The others compute
either so (`worker`: the thread that computes has the share, the one that communicates is
free), or in one thread with the share, which also communicates (`all`). Programs run in turns.
A run of each before them checks results.

Needs libscalapack-openmpi-dev, libopenblas-dev and libfftw3-mpi-dev.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from emulated import Nodes, Program, table

NODES = 4
PEERS = Path(__file__).resolve().parent / "peers"
LIBRARIES = {"scalapack": ["-lscalapack-openmpi", "-lopenblas", "-ldl"], "fftw": ["-lfftw3f_mpi", "-lfftw3f"]}
# Relative to the square root of the sums' lengths, or to the mean size of results.
ALLOWED = 1e-5
# One thread of OpenBLAS. A process that waits for messages leaves its core to others, as
# pdawl's drivers do: four of them share two cores.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
# Runs of programs in whose only thread all is limited.
FEW = 1


def build(folder):
    for name, libraries in LIBRARIES.items():
        command = ["mpicc", "-O2", "-o", f"{folder}/{name}", str(PEERS / f"{name}.c"), *libraries, "-lpthread", "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} fails:\n{done.stderr[-2000:]}")


def peer(nodes, command):
    """Seconds of another program, whose samples must be right."""
    report = json.loads(nodes.run_other(["env", *(f"{k}={v}" for k, v in ENVIRONMENT.items()), *command]))
    if not report["error"] < ALLOWED:
        sys.exit(f"{' '.join(command)} computes a wrong result: {report['error']}")
    return report["seconds"]


def measure(nodes, case, arguments, folder):
    product = f"run matmul --size {arguments.matmul} --tile {arguments.matmul // 8} --format json".split()
    transform = f"run fft --size {arguments.fft} --tile {arguments.fft // 16} --format json".split()
    others = {"matmul": [f"{folder}/scalapack", str(arguments.matmul), "256"], "fft": [f"{folder}/fftw", str(arguments.fft)]}
    for line in [product, transform]:
        if not nodes.run([*line, "--verify"]).report["verification"]["right"]:
            sys.exit(f"{' '.join(line)} computes a wrong result")
    rows = []
    for run in range(arguments.repeats):
        for what, line in [("matmul", product), ("fft", transform)]:
            if what not in arguments.workloads.split(","):
                continue
            manners = ["worker"] + ["all"] * (run < FEW)
            # The others touch their memory before their time begins. Where a host takes back free
            # memory, a program that begins gets it only slowly, unless one has just ended.
            nodes.run(line)
            rows.append((case, what, "pdawl", "worker", run, nodes.run(line).report["seconds"]))
            for manner in manners:
                name = Path(others[what][0]).name
                rows.append((case, what, name, manner, run, peer(nodes, [*others[what], manner])))
            for row in rows[-1 - len(manners):]:
                print(*row, sep="\t", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    Program.add_arguments(parser)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--matmul", type=int, default=5120, help="rows and columns of the product")
    parser.add_argument("--fft", type=int, default=8192, help="rows and columns that are transformed")
    parser.add_argument("--cases", default="equal,third")
    parser.add_argument("--workloads", default="matmul,fft")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        build(folder)
        for case in arguments.cases.split(","):
            with Nodes(arguments, NODES, {NODES - 1: 1 / 3} if case == "third" else {}) as nodes:
                rows += measure(nodes, case, arguments, folder)
    table(arguments.out, "peers.tsv", ["nodes", "workload", "program", "limited", "run", "seconds"], rows)
    groups = {}
    for *key, _, seconds in rows:
        groups.setdefault(tuple(key), []).append(seconds)
    for key, seconds in groups.items():
        own = statistics.median(groups[(*key[:2], "pdawl", "worker")])
        median = statistics.median(seconds)
        print(*key, f"{median:.2f} s", f"pdawl is {median / own:.2f} times as fast", sep="\t")


main()
