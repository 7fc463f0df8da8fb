#!/usr/bin/env python3
"""Compares the first step of `pdawl` and `dawl` with the best fixed shares.

The machines are simulated, GPU memory is limited, and the sizes are not among
the models' training sizes.

    scripts/first-step.py [--pdawl target/release/pdawl]

Prints the ratio of the first step to the oracle's median step, and the same
ratio for the totals of 5 and 30 steps. All times are simulated.
"""

import argparse
import json
import subprocess

CASES = [
    ("k20-32", 7300, "2GiB"),
    ("k20-32", 22000, "2GiB"),
    ("k20-40", 13300, "2GiB"),
    ("k20-40", 27000, "2GiB"),
    ("k40", 13300, "2GiB"),
    ("k40", 27000, "2GiB"),
    ("titan", 13300, "2GiB"),
    ("titan", 27000, "2GiB"),
]


def steps(program, machine, size, memory, strategy):
    """Simulates 30 steps and returns the seconds of each."""
    command = [program, "run", "stencil", "--machine", machine, "--size", str(size),
               "--gpu-memory", memory, "--strategy", strategy, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()}")
    report = json.loads(done.stdout)
    if not report["machine"]["simulated"]:
        raise SystemExit(f"{machine} is this machine; this script needs simulated machines")
    return [step["seconds"] for step in report["details"]["steps"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pdawl", default="target/release/pdawl")
    program = parser.parse_args().pdawl
    print("| machine, size in 2 GiB | first step: pdawl | dawl "
          "| 5 steps: pdawl | dawl | 30 steps: pdawl | dawl |")
    print("|---|---|---|---|---|---|---|")
    for machine, size, memory in CASES:
        best = sorted(steps(program, machine, size, memory, "oracle"))[15]
        pdawl = steps(program, machine, size, memory, "pdawl")
        dawl = steps(program, machine, size, memory, "dawl")
        cells = [f"{sum(each[:n]) / (n * best):.3f}" for n in (1, 5, 30) for each in (pdawl, dawl)]
        print(f"| {machine} {size} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
