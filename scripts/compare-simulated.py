#!/usr/bin/env python3
"""Compares measured step times with those that the simulator predicts.

    scripts/compare-simulated.py OUTDIR [--machine FILE.toml] [--pdawl PATH]

OUTDIR is what scripts/measure-gpu.sh wrote. Every run of its runs.json that
succeeded is run again in the simulator, on OUTDIR/measured.toml or on the
machine file given. A case is the median over its runs of the median step; the
first step is left out, since it moves data that later ones find in place. The
exit status is 1 if a case with fixed shares (cpu, gpu, fixed:SHARE) is off by
more than --within.
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
        other = as_other_machine(machine, pathlib.Path(folder))
        cases = {}
        for entry in entries:
            if entry["exit"] == 0:
                cases.setdefault(entry["command"], []).append(entry)
        rows = [compare(runs, other, arguments.pdawl) for runs in cases.values()]
    failed = [entry["command"] for entry in entries if entry["exit"] != 0]
    tell(rows, machine, arguments.within)
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
    parser.add_argument("outdir", type=pathlib.Path, help="what measure-gpu.sh wrote")
    parser.add_argument(
        "--machine", type=pathlib.Path, help="a machine file [OUTDIR/measured.toml]"
    )
    parser.add_argument("--pdawl", default="./target/release/pdawl", help="the program")
    parser.add_argument("--within", type=float, default=0.15, help="allowed error [0.15]")
    return parser.parse_args()


def as_other_machine(path, folder):
    """The machine file without its fingerprint: pdawl runs on real devices
    where the fingerprint is this machine's, and here it shall simulate."""
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
            f"{machine.name} has other devices ({', '.join(kinds[1])}) than the measured "
            f"machine ({', '.join(kinds[0])})"
        )
    step = statistics.median(median_step(run["report"]) for run in runs)
    simulated = median_step(predicted)
    strategy = measured["strategy"]
    return {
        "strategy": strategy,
        "gpu_memory": entry["gpu_memory"] or "all",
        "size": "{nx} x {ny}".format(**measured["workload"]["parameters"]),
        "measured": step,
        "simulated": simulated,
        "error": simulated / step - 1,
        "stand_in": measured["machine"]["simulated"],
        "required": strategy in ("cpu", "gpu") or strategy.startswith("fixed:"),
    }


def simulate(entry, machine, pdawl):
    parameters = entry["report"]["workload"]["parameters"]
    command = [pdawl, "run", "stencil", "--machine", str(machine), "--format", "json"]
    for axis in ("nx", "ny", "nz"):
        if parameters[axis] is not None:
            command += [f"--{axis}", str(parameters[axis])]
    command += ["--precision", parameters["precision"], "--steps", str(parameters["steps"])]
    command += ["--strategy", entry["report"]["strategy"]]
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
    seconds = [step["seconds"] for step in report["steps"]]
    return statistics.median(seconds[1:] or seconds)


def tell(rows, machine, within):
    print(f"median step in ms; simulated on {machine}")
    if any(row["stand_in"] for row in rows):
        print("the measured figures are not measured: their reports say that they are simulated")
    header = ("strategy", "grid", "GPU memory", "measured", "simulated", "error", "")
    form = "{:<12} {:<15} {:>10} {:>10} {:>10} {:>9}  {}"
    print(form.format(*header).rstrip())
    for row in rows:
        verdict = ""
        if row["required"] and abs(row["error"]) > within:
            verdict = f"off by more than {within:.0%}"
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
