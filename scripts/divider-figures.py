#!/usr/bin/env python3
"""What a divider takes, and what it gains: two processes, each on a core of its own, of which one
has a competitor. Prints the tables of docs/divider.md.

    python scripts/divider-figures.py [--steps 100] [--repeats 3] [--library DIR]

--library DIR has libpdawl_c.so: then the cost of decisions from C is measured, too.
"""

import argparse
import multiprocessing
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

import numpy as np

import pdawl

ROWS, COLUMNS, AGAIN = 4000, 500, 400

C = r"""
#include <stdio.h>
#include <time.h>
#include "pdawl.h"
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(void) {
    enum { STEPS = 100000 };
    for (int parts = 2; parts <= 16; parts += 14) {
        pdawl_options options;
        pdawl_options_init(&options, 1000000, parts);
        pdawl_divider *divider = pdawl_divider_new(&options);
        pdawl_range ranges[16];
        double seconds[16], total = 0;
        unsigned random = 1;
        for (int step = 0; step < STEPS; step++) {
            double began = now();
            pdawl_divider_next(divider, ranges);
            total += now() - began;
            for (int part = 0; part < parts; part++) {
                random = random * 1664525u + 1013904223u;
                seconds[part] = (1 + part) * (0.95 + 0.1 * (random >> 8) / (1 << 24)) *
                                (ranges[part].end - ranges[part].begin);
            }
            began = now();
            pdawl_divider_took(divider, seconds, -1);
            total += now() - began;
        }
        printf("%d %.2f\n", parts, 1e6 * total / STEPS);
        pdawl_divider_free(divider);
    }
}
"""


def decisions_from_c(library: pathlib.Path) -> list[tuple[int, float]]:
    header = pathlib.Path(__file__).parent.parent / "src" / "c"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "cost"
        command = ["cc", "-O2", "-x", "c", "-", "-I", header, "-L", library]
        command += [f"-Wl,-rpath,{library.resolve()}", "-lpdawl_c", "-o", program]
        subprocess.run(command, input=C, text=True, check=True)
        lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return [(int(parts), float(took)) for parts, took in map(str.split, lines.splitlines())]


def decisions_from_python(parts: int, steps: int = 20_000) -> float:
    divider = pdawl.Divider(1_000_000, parts)
    noise = [[0.95 + 0.1 * random.random() for _ in range(parts)] for _ in range(100)]
    total = 0.0
    for step in range(steps):
        began = time.perf_counter()
        ranges = divider.next()
        total += time.perf_counter() - began
        each = enumerate(zip(ranges, noise[step % 100]))
        seconds = [(1 + part) * one * len(units) for part, (units, one) in each]
        began = time.perf_counter()
        divider.took(seconds)
        total += time.perf_counter() - began
    return 1e6 * total / steps


def worker(core: int, pipe) -> None:
    """Computes the rows that it is told, and tells the seconds."""
    os.sched_setaffinity(0, [core])
    matrix, vector = np.random.default_rng(0).random((ROWS, COLUMNS)), np.ones(COLUMNS)
    while (rows := pipe.recv()) is not None:
        began = time.perf_counter()
        for _ in range(AGAIN):
            matrix[rows.start : rows.stop] @ vector
        pipe.send(time.perf_counter() - began)


def compete(core: int) -> None:
    os.sched_setaffinity(0, [core])
    while True:
        pass


def steps(workers: list, count: int, divider: pdawl.Divider | None) -> float:
    """Seconds of so many steps, by a divider or in equal shares."""
    began = time.perf_counter()
    for _ in range(count):
        parts = divider.next() if divider else [range(0, ROWS // 2), range(ROWS // 2, ROWS)]
        for pipe, rows in zip(workers, parts):
            pipe.send(rows)
        seconds = [pipe.recv() for pipe in workers]
        if divider:
            divider.took(seconds)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--library", type=pathlib.Path)
    arguments = parser.parse_args()
    print("| `next` and `took` from | 2 parts | 16 parts |\n|---|---|---|")
    if arguments.library:
        print("| C |", " | ".join(f"{took:.2f} us" for _, took in decisions_from_c(arguments.library)), "|")
    print("| Python |", " | ".join(f"{decisions_from_python(parts):.2f} us" for parts in (2, 16)), "|\n")

    # BLAS in one thread, before the workers load it.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    context = multiprocessing.get_context("spawn")
    cores = sorted(os.sched_getaffinity(0))[:2]
    workers, processes = [], []
    for core in cores:
        ours, theirs = context.Pipe()
        processes.append(context.Process(target=worker, args=(core, theirs), daemon=True))
        processes[-1].start()
        workers.append(ours)
    steps(workers, 20, None)
    print("| a competitor on the second core | equal shares | divider | gain | shares at the end |")
    print("|---|---|---|---|---|")
    for competes in (False, True):
        competitor = context.Process(target=compete, args=(cores[1],), daemon=True)
        if competes:
            competitor.start()
            time.sleep(0.5)
        taken: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(arguments.repeats):
            for divides in (False, True):
                divider = pdawl.Divider(ROWS, 2, granularity=8) if divides else None
                taken[divides].append(steps(workers, arguments.steps, divider))
                last = divider or pdawl.Divider(2, 2)
        equal, ours = (statistics.median(taken[divides]) for divides in (False, True))
        shares = " and ".join(f"{100 * len(part) / ROWS:.0f} %" for part in last.next())
        print(f"| {'yes' if competes else 'no'} | {equal:.3f} s | {ours:.3f} s | {equal / ours:.2f} | {shares} |")
        if competes:
            competitor.terminate()
    for pipe in workers:
        pipe.send(None)


if __name__ == "__main__":
    main()
