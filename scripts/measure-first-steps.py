#!/usr/bin/env python3
"""How near the first step comes to the oracle's, with models and without, on
this machine with limited GPU memory.

    scripts/measure-first-steps.py OUT --model FILE [--model FILE ...]
    scripts/measure-first-steps.py --show FILE

Runs 30 steps of each grid with `pdawl` and each model, and with `dawl`, in turns
in rounds; in the first round the oracle as well, which searches for the best
fixed shares (a minute or so for 13000 x 13000) and computes ten steps. OUT, a
JSON file, has every step's seconds. With --show, or when all is done, a table:
medians of the first step over the oracle's median step, and of the totals of
5 and 30 steps.
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
    """An entry of OUT; ends the program with what the run said if it fails."""
    command = [options.pdawl, "run", "stencil", "--size", size, "--gpu-memory", memory,
               "--strategy", strategy, "--steps", str(count), "--format", "json", *words]
    if options.devices:
        command += ["--devices", options.devices]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()}")
    report = json.loads(done.stdout)
    if report["machine"]["simulated"]:
        raise SystemExit("the devices are simulated; scripts/first-step.py is for those")
    seconds = [step["seconds"] for step in report["steps"]]
    predicted = (report["model"] or {}).get("predicted_step_seconds")
    return {"size": int(size), "gpu_memory": memory, "strategy": strategy,
            "model": None, "predicted": predicted, "steps": seconds}


def measure(options):
    """Yields the entries, one run after the other."""
    for number in range(options.rounds):
        for case in options.sizes.split(","):
            size, _, memory = case.partition(":")
            turns = [("pdawl", 30, model) for model in options.model] + [("dawl", 30, None)]
            if number == 0:
                turns.append(("oracle", 10, None))
            for strategy, count, model in turns:
                words = ["--model", model] if model else []
                entry = steps(options, size, memory, strategy, count, words)
                yield {**entry, "model": model and pathlib.Path(model).stem, "round": number + 1}


def write(path, entries):
    """Replaces the file as a whole."""
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    with tempfile.NamedTemporaryFile("w", dir=path.absolute().parent, delete=False) as beside:
        beside.write(f"[\n{lines}\n]\n")
    os.replace(beside.name, path)


def middle(entries, of):
    """The median in milliseconds; nothing where an entry has no such figure."""
    values = [of(entry) for entry in entries]
    return "" if None in values else f"{statistics.median(values) * 1e3:.2f} ms"


def total(count):
    """Of the first steps of an entry, if it has so many."""
    return lambda entry: sum(entry["steps"][:count]) if len(entry["steps"]) >= count else None


def show(entries):
    """Prints the table."""
    print("| machine | grid | strategy, model | runs | predicted | first step "
          "| over the oracle's | 5 steps | 30 steps |")
    print("|---|---|---|---|---|---|---|---|---|")
    cases = {}
    for entry in entries:
        case = (entry.get("machine") or "this one", entry["size"], entry["gpu_memory"])
        who = " ".join(filter(None, [entry["strategy"], entry["model"]]))
        cases.setdefault(case, {}).setdefault(who, []).append(entry)
    for (machine, size, memory), groups in cases.items():
        oracle = [statistics.median(run["steps"]) for run in groups.get("oracle", [])]
        for who, runs in groups.items():
            first, ratio = middle(runs, total(1)), ""
            if who == "oracle":
                first = f"(step: {middle(runs, lambda run: statistics.median(run['steps']))})"
            elif oracle:
                seconds = statistics.median(run["steps"][0] for run in runs)
                ratio = f"{seconds / statistics.median(oracle):.3f}"
            cells = [machine, f"{size} in {memory}", who, len(runs),
                     middle(runs, lambda run: run["predicted"]), first, ratio,
                     middle(runs, total(5)), middle(runs, total(30))]
            print(f"| {' | '.join(map(str, cells))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=pathlib.Path, help="the JSON file to write")
    parser.add_argument("--show", type=pathlib.Path, metavar="FILE",
                        help="print the table of a file, and measure nothing")
    parser.add_argument("--model", action="append", default=[], metavar="FILE")
    parser.add_argument("--sizes", default=SIZES, help=f"SIZE:MEMORY,... [{SIZES}]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--devices", help="as of `pdawl run` [all]")
    parser.add_argument("--pdawl", default="target/release/pdawl")
    options = parser.parse_args()
    if options.show:
        try:
            show(json.loads(options.show.read_text()))
        except (OSError, ValueError) as error:
            raise SystemExit(f"{options.show}: {error}") from None
        except (KeyError, TypeError, AttributeError, IndexError):
            raise SystemExit(f"{options.show}: not a file that this script wrote") from None
        return
    missing = [model for model in options.model if not pathlib.Path(model).is_file()]
    if not options.out or not options.model or missing:
        parser.error(f"no model {missing[0]}" if missing else "OUT and --model are needed")
    if not options.out.absolute().parent.is_dir():
        parser.error(f"no folder for {options.out}")
    if options.rounds < 1 or not all(case.count(":") == 1 for case in options.sizes.split(",")):
        parser.error("--rounds is at least 1, and --sizes a list of SIZE:MEMORY")
    if not shutil.which(options.pdawl):
        parser.error(f"cannot run {options.pdawl}; build it (cargo build --release), or name it")
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
