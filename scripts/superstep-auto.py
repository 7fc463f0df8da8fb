#!/usr/bin/env python3
"""Compares `--superstep auto` with fixed numbers of steps between two barriers, in simulations.

    scripts/superstep-auto.py PROGRAM [--machines k40,titan | --here] [--steps 32]

Runs grids that fit a GPU's memory and grids that are streamed, by --adaptive and the strategies
dawl, gpu and cpu, with each fixed number and with `auto`, and prints a line for each case. The
exit status is 1 if `auto` takes more than 1.03 times the time of the best number, or more than
1.01 times the time with a barrier after each step.
"""

import argparse
import concurrent.futures
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

OF_BEST = 1.03
OF_ONE = 1.01
NUMBERS = (1, 2, 4, 8, 16, 32)
# Real runs: of a number, of `auto`, and how many of the last ones count.
TURNS, SETTLING, LAST = 3, 10, 3
# Options, and whether they are of interest without a GPU.
GRIDS = {
    "4096": (["--size", "4096"], True),
    "9000": (["--size", "9000"], True),
    "16384": (["--size", "16384"], True),
    "9000 in 512 MiB": (["--size", "9000", "--gpu-memory", "512MiB"], False),
    "16384 in 512 MiB": (["--size", "16384", "--gpu-memory", "512MiB"], False),
    "16384 in 2 GiB": (["--size", "16384", "--gpu-memory", "2GiB"], False),
    "16384 f32 in 512 MiB": (
        ["--size", "16384", "--precision", "f32", "--gpu-memory", "512MiB"],
        False,
    ),
    "20000 in 1 GiB": (["--size", "20000", "--gpu-memory", "1GiB"], False),
    "600^3 in 1 GiB": (["--size", "600", "--dims", "3", "--gpu-memory", "1GiB"], False),
    "400^3": (["--size", "400", "--dims", "3"], True),
    "400^3 in 512 MiB": (["--size", "400", "--dims", "3", "--gpu-memory", "512MiB"], False),
}


def run(program, machine, options, superstep):
    """The seconds and the number of steps of a simulated run, or of real ones."""
    command = [program, "run", "stencil", *options]
    command += ["--superstep", str(superstep), "--format", "json"]
    turns = 1 if machine else SETTLING if superstep == "auto" else TURNS
    command += ["--machine", machine] if machine else []
    reports = []
    with tempfile.TemporaryDirectory() as kept:
        environment = {**os.environ, "PDAWL_KERNELS": kept}
        for _ in range(turns):
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=environment
            )
            if "are too few" in done.stderr and superstep != "auto":
                # So many steps have no room for their halos.
                return math.inf, superstep
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
            reports.append(json.loads(done.stdout))
            if machine and not reports[-1]["machine"]["simulated"]:
                raise RuntimeError(f"{machine} is this machine; it was not simulated")
    seconds = [report["seconds"] for report in reports]
    if turns > 1:
        print(f"# {' '.join(command[3:])}: {' '.join(f'{of:.4f}' for of in seconds)}", flush=True)
    chosen = reports[-1]["workload"]["parameters"]["superstep"]
    return statistics.median(seconds[-LAST:]), chosen


def known_machines(program):
    """The names of all machines that have a file."""
    done = subprocess.run(
        [program, "machine", "list", "--format", "json"], capture_output=True, text=True, check=True
    )
    return [machine["name"] for machine in json.loads(done.stdout)["machines"]]


def cases(machines, strategies):
    """Machine, grid, strategy and options of each case."""
    for machine in machines:
        for grid, (options, on_host) in GRIDS.items():
            for strategy in strategies:
                if strategy != "cpu" or on_host:
                    by = ["--adaptive"] if strategy == "adaptive" else ["--strategy", strategy]
                    yield machine, grid, strategy, [*options, *by]


def compare(program, steps, case):
    """The line of a case, and whether `auto` is within the bounds."""
    machine, grid, strategy, options = case
    options = [*options, "--steps", str(steps)]
    numbers = [number for number in NUMBERS if number <= steps]
    seconds = {n: run(program, machine, options, n)[0] for n in numbers}
    auto, chosen = run(program, machine, options, "auto")
    best = min(seconds, key=seconds.get)
    of_best, of_one = auto / seconds[best], auto / seconds[1]
    good = of_best <= OF_BEST and of_one <= OF_ONE
    line = (
        f"{machine or 'here':<10} {grid:<21} {strategy:<8} {best:>5} {chosen:>5} {seconds[best]:>9.4f} "
        f"{auto:>9.4f} {of_best:>6.3f} {of_one:>6.3f}  {'' if good else 'broken'}"
    )
    return line.rstrip(), good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("--machines", help="names, with commas [all]")
    parser.add_argument("--here", action="store_true", help="real runs of this machine")
    parser.add_argument("--strategies", default="adaptive,dawl,gpu,cpu")
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    machines = arguments.machines
    if arguments.here:
        # One run at a time.
        machines, arguments.jobs = [None], 1
    else:
        machines = machines.split(",") if machines else known_machines(arguments.program)
    all_cases = list(cases(machines, arguments.strategies.split(",")))
    print(
        f"{'machine':<10} {'grid':<21} {'strategy':<8} {'best':>5} {'auto':>5} {'best s':>9} "
        f"{'auto s':>9} {'/best':>6} {'/one':>6}"
    )
    broken = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        of = lambda case: compare(arguments.program, arguments.steps, case)
        for line, good in pool.map(of, all_cases):
            print(line, flush=True)
            broken += not good
    print(f"{len(all_cases) - broken} of {len(all_cases)} cases are within the bounds")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
