#!/usr/bin/env python3
"""Measures pdawl on two ranks of one core each beside what a user could write instead.

    scripts/measure-two-ranks.py [--pdawl PROGRAM] [--repeats N] [--scale S]

A product of 4096 x 4096 singles beside SUMMA with mpi4py and NumPy; a 2-D Fourier transform of
4096 x 4096 beside FFTW-MPI with transposed output; a sort of 8 million numbers beside a sample
sort with mpi4py and NumPy; page ranks of rmat:20,16 beside SciPy on one core. scripts/peers/ has
the other programs. All run in turns, each rank bound to a core. The medians are printed, with
how many times as fast pdawl is.

Needs mpi4py, numpy, scipy and libfftw3-mpi-dev, two free cores, and the wire library beside
PROGRAM.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PEERS = Path(__file__).resolve().parent / "peers"
ENVIRONMENT = {
    **os.environ,
    "OPENBLAS_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
MPIRUN = ["mpirun", "-n", "2", "--bind-to", "core", "--map-by", "core"]


def seconds(command):
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} fails:\n{done.stderr[-2000:]}")
    report = json.loads(done.stdout)
    return report if isinstance(report, float) else report["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pdawl", default="target/release/pdawl")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--workloads", default="matmul,fft,sort,pagerank")
    arguments = parser.parse_args()
    pdawl = str(Path(arguments.pdawl).resolve())
    with tempfile.TemporaryDirectory() as folder:
        fftw, graph = f"{folder}/fftw", f"{folder}/graph.mtx"
        libraries = ["-lfftw3f_mpi", "-lfftw3f", "-lpthread", "-lm"]
        subprocess.run(["mpicc", "-O2", "-o", fftw, str(PEERS / "fftw.c"), *libraries], check=True)
        if "pagerank" in arguments.workloads:
            subprocess.run([pdawl, "matrix", "generate", "rmat:20,16", graph], check=True, capture_output=True)
        python = [*MPIRUN, sys.executable]
        others = {
            "matmul": ("matmul --size 4096", [*python, str(PEERS / "summa.py"), "4096"]),
            "fft": ("fft --size 4096", [*MPIRUN, fftw, "4096", "all"]),
            "sort": ("sort --size 8000000", [*python, str(PEERS / "samplesort.py"), "8000000"]),
            "pagerank": (
                f"pagerank --matrix {graph} --steps 20",
                ["taskset", "-c", "0", sys.executable, str(PEERS / "pageranks.py"), graph, "20"],
            ),
        }
        for name in arguments.workloads.split(","):
            line, other = others[name]
            own = [*MPIRUN, pdawl, "run", *line.split(), "--devices", "host:1", "--format", "json"]
            runs = [(seconds(own), seconds(other)) for _ in range(arguments.repeats)]
            medians = [statistics.median(run[which] for run in runs) for which in (0, 1)]
            print(name, *(f"{median:.3f} s" for median in medians), f"{medians[1] / medians[0]:.2f}", sep="\t", flush=True)


main()
