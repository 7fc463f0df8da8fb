#!/usr/bin/env python3
"""Compares where simulated stencils settle after a fault with where they settle if it is there
from the first step on.

    scripts/settled-after-faults.py PROGRAM [--count 600] [--seed 3] [--steps 500]

Draws machines, sizes, limits of GPU memory and faults (slow, lost, fewer cores) at step 10, with
single steps between two barriers. A run settles at the median of its last ten steps. Prints how many
settle above 1.03 times the other run's, and the greatest ratios. Few steps pay for no moves.
"""

import argparse
import concurrent.futures
import json
import os
import random
import statistics
import subprocess

SIZES = {2: [1000, 2000, 3000, 4000, 6000, 8000, 10000, 12000], 3: [80, 120, 200, 300, 400]}


def drawn(rng, machines):
    machine = rng.choice(machines)
    cores = machine["cores"]
    dims = 2 if rng.random() < 0.8 else 3
    options = ["--dims", str(dims), "--size", str(rng.choice(SIZES[dims]))]
    if rng.random() < 0.4:
        options += ["--gpu-memory", rng.choice(["100MiB", "300MiB", "600MiB"])]
    names = ["host"] + machine["devices"]
    kind, device = rng.choice(["slow", "slow", "slow", "lost", "cores"]), rng.choice(names)
    fault = {
        "slow": f"{device}:slow:{rng.choice([2, 4, 8])}",
        "lost": f"{rng.choice(names[1:])}:lost",
        "cores": f"host:cores:{max(1, cores // rng.choice([2, 4]))}",
    }
    return ["--machine", machine["name"], *options], fault[kind]


def settled(arguments, options, fault):
    words = [arguments.program, "run", "stencil", *options, "--superstep", "1"]
    words += ["--steps", str(arguments.steps), "--fault", fault, "--format", "json"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    steps = json.loads(ran.stdout)["details"]["steps"]
    return statistics.median(step["seconds"] for step in steps[-10:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--steps", type=int, default=500)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    words = [arguments.program, "machine", "list", "--format", "json"]
    listed = subprocess.run(words, capture_output=True, check=True).stdout
    machines = json.loads(listed)["machines"]
    cases = [drawn(rng, machines) for _ in range(arguments.count)]

    def compared(case):
        options, fault = case
        late, early = (settled(arguments, options, f"{fault}@{step}") for step in (10, 0))
        return late / early, " ".join([*options, "--fault", f"{fault}@10"])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        ratios = sorted(pool.map(compared, cases), reverse=True)
    above = sum(ratio > 1.03 for ratio, _ in ratios)
    print(f"{above} of {len(ratios)} settle above 1.03")
    for ratio, case in ratios[:10]:
        print(f"{ratio:.3f} {case}")


main()
