#!/usr/bin/env python3
"""Compares measured step times with simulated ones.

    scripts/compare-simulated.py OUTDIR [--machine FILE.toml] [--pdawl PATH]

OUTDIR is the output of scripts/measure-gpu.sh. The script simulates every
successful run of runs.json on OUTDIR/measured.toml or on the given machine file.
The figure of a case is the median over its runs of the median step, without the
first step, since this one also transfers data. The exit status is 1 if the error
of a case with fixed shares (cpu, gpu, fixed:SHARE) exceeds --within.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


def main():
    arguments = parse()
    entries = json.loads((arguments.outdir / "runs.json").read_text())
    machine = arguments.machine or arguments.outdir / "measured.toml"
    with tempfile.TemporaryDirectory() as folder:
        other = without_fingerprint(machine, pathlib.Path(folder))
        cases = {}
        for entry in entries:
            if entry["exit"] == 0:
                cases.setdefault(entry["command"], []).append(entry)
        rows = [compare(runs, other, arguments.pdawl) for runs in cases.values()]
    failed = [entry["command"] for entry in entries if entry["exit"] != 0]
    print_table(rows, machine, arguments.within)
    for command in failed:
        print(f"not measured: {command}")
    required = [row for row in rows if row["required"]]
    wrong = [row for row in required if abs(row["error"]) > arguments.within]
    print(
        f"{len(required) - len(wrong)} of {len(required)} cases with fixed shares are "
        f"within {arguments.within:.0%}"
    )
    return 1 if wrong or not required else 0


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("outdir", type=pathlib.Path, help="output of measure-gpu.sh")
    parser.add_argument(
        "--machine", type=pathlib.Path, help="a machine file [OUTDIR/measured.toml]"
    )
    parser.add_argument("--pdawl", default="./target/release/pdawl", help="the program")
    parser.add_argument("--within", type=float, default=0.15, help="allowed error [0.15]")
    return parser.parse_args()


def without_fingerprint(path, folder):
    """Copies the machine file without its fingerprint, so that pdawl simulates
    the machine even if it is this one."""
    lines = path.read_text().splitlines(keepends=True)
    copy = folder / path.name
    copy.write_text("".join(l for l in lines if not l.startswith("fingerprint")))
    return copy


def compare(runs, machine, pdawl):
    entry = runs[0]
    measured = entry["report"]
    predicted = simulate(entry, machine, pdawl)
    kinds = [[device["kind"] for device in r["devices"]] for r in (measured, predicted)]
    if kinds[0] != kinds[1]:
        sys.exit(
            f"the devices of {machine.name} ({', '.join(kinds[1])}) differ from those of the "
            f"measured machine ({', '.join(kinds[0])})"
        )
    step = statistics.median(median_step(run["report"]) for run in runs)
    simulated = median_step(predicted)
    strategy = measured["policy"]
    return {
        "strategy": strategy,
        "gpu_memory": entry["gpu_memory"] or "all",
        "size": "{nx} x {ny}".format(**measured["workload"]["parameters"]),
        "measured": step,
        "simulated": simulated,
        "error": simulated / step - 1,
        "is_simulated": measured["machine"]["simulated"],
        "required": strategy in ("cpu", "gpu") or strategy.startswith("fixed:"),
    }


def simulate(entry, machine, pdawl):
    parameters = entry["report"]["workload"]["parameters"]
    command = [pdawl, "run", "stencil", "--machine", str(machine), "--format", "json"]
    for axis in ("nx", "ny", "nz"):
        if parameters[axis] is not None:
            command += [f"--{axis}", str(parameters[axis])]
    command += ["--precision", parameters["precision"], "--steps", str(parameters["steps"])]
    command += ["--strategy", entry["report"]["policy"]]
    if entry["gpu_memory"]:
        command += ["--gpu-memory", entry["gpu_memory"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    if not report["machine"]["simulated"]:
        sys.exit(f"{' '.join(command)} was not simulated")
    return report


def median_step(report):
    seconds = [step["seconds"] for step in report["details"]["steps"]]
    return statistics.median(seconds[1:] or seconds)


def print_table(rows, machine, within):
    print(f"median step in ms; simulated on {machine}")
    if any(row["is_simulated"] for row in rows):
        print("the figures in the column `measured` are simulated, as their reports say")
    header = ("strategy", "grid", "GPU memory", "measured", "simulated", "error", "")
    form = "{:<12} {:<15} {:>10} {:>10} {:>10} {:>9}  {}"
    print(form.format(*header).rstrip())
    for row in rows:
        verdict = ""
        if row["required"] and abs(row["error"]) > within:
            verdict = f"error above {within:.0%}"
        cells = (
            row["strategy"],
            row["size"],
            row["gpu_memory"],
            f"{row['measured'] * 1e3:.3f}",
            f"{row['simulated'] * 1e3:.3f}",
            f"{row['error']:+.1%}",
            verdict,
        )
        print(form.format(*cells).rstrip())


if __name__ == "__main__":
    sys.exit(main())
