#!/usr/bin/env python3
"""Compares DAWL with the best fixed share under noise and disturbances.

Simulates a stencil with noise on every command and with devices that are slower
during some steps. For every seed, DAWL and a fixed share run under the same noise
and disturbances. Prints the time of DAWL over that of the fixed share, and the
number of steps that moved units.

    scripts/disturbed.py [--pdawl target/release/pdawl] [--machine h200]
        [--size 16384] [--gpu-memory 2GiB] [--fixed 0.041] [--seeds 30]

The fixed share is the best one without disturbances; `pdawl run stencil
--strategy oracle` finds it. All times are simulated.
"""

import argparse
import json
import random
import statistics
import subprocess

STEPS = 30
# Name of the row; noise; number of disturbances in a run; their slowdown factors;
# their lengths in steps.
CASES = [
    ("5 % noise", 0.05, 0, [], []),
    ("10 % noise", 0.1, 0, [], []),
    ("5 % noise, five single slow steps", 0.05, 5, [1.05, 1.1, 1.2, 1.3], [1]),
    ("5 % noise, five slow periods", 0.05, 5, [1.05, 1.1, 1.15], [1, 2, 5, 8]),
    ("3 % noise, four of up to half the speed", 0.03, 4, [1.1, 1.15, 1.3, 2.0], [1, 1, 2, 4]),
]


def faults(seed, count, factors, lengths):
    """`count` disturbances as options of pdawl, determined by the seed."""
    generator = random.Random(seed)
    options = []
    for _ in range(count):
        # The host is disturbed twice as often as the GPU.
        device = generator.choice(["host", "host", "gpu0"])
        factor = generator.choice(factors)
        begin = generator.randrange(STEPS - 2)
        end = min(begin + generator.choice(lengths), STEPS - 1)
        options += ["--fault", f"{device}:slow:{factor}@{begin}"]
        options += ["--fault", f"{device}:slow:1@{end}"]
    return options


def run(arguments, strategy, noise, seed, disturbances):
    """Runs pdawl and returns its report."""
    command = [arguments.pdawl, "run", "stencil", "--machine", arguments.machine]
    command += ["--size", arguments.size, "--gpu-memory", arguments.gpu_memory]
    command += ["--steps", str(STEPS), "--strategy", strategy, "--noise", str(noise)]
    command += ["--seed", str(seed), "--format", "json", *disturbances]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pdawl", default="target/release/pdawl")
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--size", default="16384")
    parser.add_argument("--gpu-memory", default="2GiB")
    parser.add_argument("--fixed", default="0.041", help="the CPU's share")
    parser.add_argument("--seeds", type=int, default=30)
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error("--seeds must be at least 1")

    print("| simulated | dawl over fixed: mean | worst | steps with moves |")
    print("|---|---|---|---|")
    for name, noise, count, factors, lengths in CASES:
        ratios, moves = [], []
        for seed in range(1, arguments.seeds + 1):
            disturbances = faults(seed, count, factors, lengths)
            dawl = run(arguments, "dawl", noise, seed, disturbances)
            fixed = run(arguments, f"fixed:{arguments.fixed}", noise, seed, disturbances)
            ratios.append(dawl["seconds"] / fixed["seconds"])
            moves.append(sum(step["moved"] > 0 for step in dawl["details"]["steps"]))
        print(
            f"| {name} | {statistics.mean(ratios):.3f} | {max(ratios):.3f} "
            f"| {statistics.mean(moves):.1f} |"
        )


if __name__ == "__main__":
    main()
