#!/usr/bin/env python3
"""Times supersteps of the stencil on a machine with one or two NVIDIA GPUs.

    scripts/superstep-figures.py PROGRAM [--turns N] > measured.tsv
    scripts/superstep-figures.py PROGRAM --machine FILE.toml --against measured.tsv

Prints a line for each case with its Gpoint/s in each turn; all cases run in every turn. Small
grids are verified first. `auto` needs the machine's file (`pdawl machine save`).
With --machine the cases are simulated on that file, and with --against each is compared with the
median of what was measured.
"""

import argparse
import json
import statistics
import subprocess
import sys

STEPS = 30
GRIDS = {
    "16384": (["--size", "16384", "--gpu-memory", "512MiB"], 16384**2),
    "16384 resident": (["--size", "16384"], 16384**2),
    "24576": (["--size", "24576", "--gpu-memory", "2GiB"], 24576**2),
    "24576 resident": (["--size", "24576"], 24576**2),
    "640^3": (["--size", "640", "--dims", "3", "--gpu-memory", "512MiB"], 640**3),
    "640^3 resident": (["--size", "640", "--dims", "3"], 640**3),
    "8192": (["--size", "8192"], 8192**2),
}
# Looks at the changes of every tenth step, and never ends the run.
CHECKED = ["--until", "1e-300", "--check-every", "10"]
# Devices, strategy, grid, supersteps; with `checked` the changes are looked at.
CASES = [
    ("cuda0", "gpu", "16384", ("1", "8", "10", "10 checked", "15", "30", "auto")),
    ("cuda0", "gpu", "16384 resident", ("1", "1 checked")),
    ("host,cuda0", "adaptive", "16384", ("1", "8", "15", "30", "auto")),
    ("cuda0", "gpu", "640^3", ("1", "4", "8", "auto")),
    ("cuda0", "gpu", "640^3 resident", ("1", "1 checked")),
    ("host,cuda0", "adaptive", "640^3", ("1", "4", "8", "auto")),
    ("host", "cpu", "8192", ("1", "1 checked", "8", "10", "10 checked", "15", "30", "auto")),
    ("cuda0,cuda1", "gpu", "24576", ("1", "8", "15", "30", "auto")),
    ("cuda0,cuda1", "gpu", "24576 resident", ("1", "1 checked")),
    ("host,cuda0,cuda1", "adaptive", "24576", ("1", "15", "30", "auto")),
]
RIGHT = [
    ["--size", "1500", "--gpu-memory", "8MiB", "--superstep", "7"],
    ["--size", "1000", "--superstep", "30"],
    ["--size", "900", "--precision", "f32", "--gpu-memory", "4MiB", "--superstep", "4"],
    ["--size", "120", "--dims", "3", "--gpu-memory", "16MiB", "--superstep", "5"],
    ["--size", "1100", "--gpu-memory", "8MiB", "--superstep", "9", "--coefficients", "0.3,0.1,0.2,0.15,0.25"],
    ["--size", "90", "--dims", "3", "--superstep", "3", "--coefficients", "0.3,0.1,0.1,0.2,0.1,0.1,0.1"],
    ["--size", "700", "--until", "0.01", "--check-every", "5", "--gpu-memory", "4MiB"],
    ["--size", "800", "--until", "0.01", "--check-every", "7", "--superstep", "3"],
    ["--size", "70", "--dims", "3", "--precision", "f32", "--until", "0.02", "--check-every", "3"],
]


def run(program, options):
    """The report of a run, or why there is none."""
    command = [program, "run", "stencil", "--steps", str(STEPS), *options, "--format", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None, "more than 60 s"
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "fails"
    return json.loads(done.stdout), ""


def cases(gpus):
    """Names, options and points of the cases that so many GPUs can run."""
    for devices, strategy, grid, supersteps in CASES:
        if devices.count("cuda") <= gpus:
            sizes, points = GRIDS[grid]
            for superstep in supersteps:
                size, *checked = superstep.split()
                by = ["--adaptive"] if strategy == "adaptive" else ["--strategy", strategy]
                options = [*sizes, *by, "--superstep", size]
                options += CHECKED if checked else []
                name = f"{grid}\t{devices}\t{strategy}\t{superstep}"
                yield name, ["--devices", devices, *options], points


def verify(program, gpus):
    """Whether small grids are right on all devices."""
    devices = ",".join(["host", *(f"cuda{gpu}" for gpu in range(gpus))])
    right = True
    for options in RIGHT:
        report, why = run(program, ["--devices", devices, *options, "--verify"])
        verified = "right" if report else why
        print(f"# {' '.join(options)}: {verified}", flush=True)
        right &= bool(report)
    return right


def measured(path):
    """The median speed of each case of a file that this script wrote."""
    speeds = {}
    for line in open(path):
        cells = line.rstrip("\n").split("\t")
        if len(cells) >= 5 and not line.startswith("#"):
            numbers = [float(cell) for cell in cells[4:] if cell != "-"]
            if numbers:
                speeds["\t".join(cells[:4])] = statistics.median(numbers)
    return speeds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--gpus", type=int, default=2, choices=(1, 2))
    parser.add_argument("--machine")
    parser.add_argument("--against")
    arguments = parser.parse_args()
    simulated = ["--machine", arguments.machine] if arguments.machine else []
    if not simulated and not verify(arguments.program, arguments.gpus):
        sys.exit("a result is wrong")
    speeds = {}
    # The first run after the machine's start is slow: its memory is new.
    if not simulated:
        run(arguments.program, ["--size", "24576", "--devices", "host"])
    turns = 1 if simulated else arguments.turns
    for turn in range(turns):
        for name, options, points in cases(arguments.gpus):
            report, why = run(arguments.program, [*simulated, *options])
            if why:
                print(f"# {name}: {why}", flush=True)
            for note in (report or {}).get("notes", []):
                print(f"# {name}: {note}", flush=True)
            speed = f"{points * STEPS / report['seconds'] / 1e9:.1f}" if report else "-"
            speeds.setdefault(name, []).append(speed)
            print(f"# turn {turn} {name}\t{speed}", file=sys.stderr, flush=True)
    before = measured(arguments.against) if arguments.against else {}
    for name, numbers in speeds.items():
        cells = [name, *numbers]
        if name in before and numbers[0] != "-":
            cells += [f"{before[name]:.1f}", f"{float(numbers[0]) / before[name]:.2f}"]
        print("\t".join(cells), flush=True)


if __name__ == "__main__":
    main()
