#!/usr/bin/env python3
"""Compares first steps with the oracle's on this machine, with limited GPU memory.

    scripts/measure-first-steps.py OUT --model FILE [--model FILE ...]
    scripts/measure-first-steps.py --show FILE

Each round runs 30 steps of every grid with `pdawl` and each model, and with
`dawl`. The first round also runs ten steps of the oracle, which first searches
for the best fixed shares. OUT is a JSON file with the seconds of every step. At
the end, or with --show, the script prints a table: the median of the first step,
its ratio to the oracle's median step, and the medians of the totals of 5 and 30
steps.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

SIZES = "13000:1GiB,9700:640MiB,12300:512MiB"


def steps(options, size, memory, strategy, count, words=()):
    """Runs pdawl and returns an entry of OUT. Exits with the run's error message."""
    command = [options.pdawl, "run", "stencil", "--size", size, "--gpu-memory", memory,
               "--strategy", strategy, "--steps", str(count), "--format", "json", *words]
    if options.devices:
        command += ["--devices", options.devices]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()}")
    report = json.loads(done.stdout)
    if report["machine"]["simulated"]:
        raise SystemExit("the devices are simulated; scripts/first-step.py compares simulated machines")
    seconds = [step["seconds"] for step in report["details"]["steps"]]
    predicted = (report["details"]["model"] or {}).get("predicted_step_seconds")
    return {"size": int(size), "gpu_memory": memory, "strategy": strategy,
            "model": None, "predicted": predicted, "steps": seconds}


def measure(options):
    """Yields one entry per run."""
    for number in range(options.rounds):
        for case in options.sizes.split(","):
            size, _, memory = case.partition(":")
            runs = [("pdawl", 30, model) for model in options.model] + [("dawl", 30, None)]
            if number == 0:
                runs.append(("oracle", 10, None))
            for strategy, count, model in runs:
                words = ["--model", model] if model else []
                entry = steps(options, size, memory, strategy, count, words)
                yield {**entry, "model": model and pathlib.Path(model).stem, "round": number + 1}


def write(path, entries):
    """Replaces the file atomically."""
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    with tempfile.NamedTemporaryFile("w", dir=path.absolute().parent, delete=False) as temporary:
        temporary.write(f"[\n{lines}\n]\n")
    os.replace(temporary.name, path)


def median_ms(entries, of):
    """The median in milliseconds; empty if an entry lacks the figure."""
    values = [of(entry) for entry in entries]
    return "" if None in values else f"{statistics.median(values) * 1e3:.2f} ms"


def total(count):
    """Returns a function: the seconds of the first `count` steps of an entry, if it has that many."""
    return lambda entry: sum(entry["steps"][:count]) if len(entry["steps"]) >= count else None


def show(entries):
    """Prints the table."""
    print("| machine | grid | strategy, model | runs | predicted | first step "
          "| over the oracle's | 5 steps | 30 steps |")
    print("|---|---|---|---|---|---|---|---|---|")
    cases = {}
    for entry in entries:
        case = (entry.get("machine") or "this one", entry["size"], entry["gpu_memory"])
        label = " ".join(filter(None, [entry["strategy"], entry["model"]]))
        cases.setdefault(case, {}).setdefault(label, []).append(entry)
    for (machine, size, memory), groups in cases.items():
        oracle = [statistics.median(run["steps"]) for run in groups.get("oracle", [])]
        for label, runs in groups.items():
            first, ratio = median_ms(runs, total(1)), ""
            if label == "oracle":
                first = f"(step: {median_ms(runs, lambda run: statistics.median(run['steps']))})"
            elif oracle:
                seconds = statistics.median(run["steps"][0] for run in runs)
                ratio = f"{seconds / statistics.median(oracle):.3f}"
            cells = [machine, f"{size} in {memory}", label, len(runs),
                     median_ms(runs, lambda run: run["predicted"]), first, ratio,
                     median_ms(runs, total(5)), median_ms(runs, total(30))]
            print(f"| {' | '.join(map(str, cells))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=pathlib.Path, help="the JSON file to write")
    parser.add_argument("--show", type=pathlib.Path, metavar="FILE",
                        help="print the table of a file without measuring")
    parser.add_argument("--model", action="append", default=[], metavar="FILE")
    parser.add_argument("--sizes", default=SIZES, help=f"SIZE:MEMORY,... [{SIZES}]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--devices", help="as in `pdawl run` [all]")
    parser.add_argument("--pdawl", default="target/release/pdawl")
    options = parser.parse_args()
    if options.show:
        try:
            show(json.loads(options.show.read_text()))
        except (OSError, ValueError) as error:
            raise SystemExit(f"{options.show}: {error}") from None
        except (KeyError, TypeError, AttributeError, IndexError):
            raise SystemExit(f"{options.show}: this script did not write the file") from None
        return
    missing = [model for model in options.model if not pathlib.Path(model).is_file()]
    if not options.out or not options.model or missing:
        parser.error(f"no model file {missing[0]}" if missing else "OUT and --model are required")
    if not options.out.absolute().parent.is_dir():
        parser.error(f"the directory of {options.out} does not exist")
    if options.rounds < 1 or not all(case.count(":") == 1 for case in options.sizes.split(",")):
        parser.error("--rounds must be at least 1, and --sizes a list of SIZE:MEMORY")
    if not shutil.which(options.pdawl):
        parser.error(f"cannot run {options.pdawl}; build it (cargo build --release) or set --pdawl")
    entries = []
    try:
        for entry in measure(options):
            entries.append(entry)
            write(options.out, entries)
            if sys.stderr.isatty():
                print(entry["size"], entry["strategy"], entry["model"] or "",
                      f"{entry['steps'][0] * 1e3:.2f} ms", file=sys.stderr)
    except KeyboardInterrupt:
        raise SystemExit(f"interrupted; {len(entries)} runs are in {options.out}") from None
    show(entries)


if __name__ == "__main__":
    main()
