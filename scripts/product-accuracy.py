#!/usr/bin/env python3
"""How well a cost model predicts products of matrices that it has not learned:
look-alikes of the PDAWL paper's five, beside the baselines.

    scripts/product-accuracy.py [--pdawl target/release/pdawl] [--machine h200]
        [--model NAME] [--dataset FILE] [--json FILE]

Without a dataset, one is profiled on the machine: simulated with 2 % noise,
unless it is this one. Without a model, the machine's own is asked. The table has
the mean absolute percentage error of a step's seconds by matrix and device; the
figures are the simulator's where it says so, else measured."""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

MATRICES = "like:circuit5M like:eu-2005 like:in-2004 like:FullChip like:kmer_U1a"


def pdawl(program, *words):
    done = subprocess.run(
        [program, *words, "--format", "json"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def error(runs, predicted):
    return statistics.fmean(abs(predicted(r) / r["measured"] - 1) for r in runs)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pdawl", default="target/release/pdawl")
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--model", help="the machine's, if none is named")
    parser.add_argument("--dataset", help="runs to predict, as `pdawl profile spmv` writes them")
    parser.add_argument("--budget", default="10m", help="for profiling")
    parser.add_argument("--json", help="write the figures to this file as well")
    options = parser.parse_args()
    program = os.path.abspath(options.pdawl)
    with tempfile.TemporaryDirectory() as folder:
        dataset = options.dataset
        if dataset is None:
            dataset = os.path.join(folder, "held-out.csv")
            pdawl(program, "profile", "spmv", "--machine", options.machine, "--matrices", MATRICES,
                  "--seed", "99", "--budget", options.budget, "--out", dataset)
        model = options.model or options.machine
        groups = pdawl(program, "model", "check", model, "--dataset", dataset)["held_out"]["groups"]

    figures = []
    for group in groups:
        names = [baseline["name"] for baseline in group["baselines"]]
        matrices = {}
        for run in group["runs"]:
            matrices.setdefault(run["configuration"].split(" ")[0], []).append(run)
        for matrix, runs in [*sorted(matrices.items()), ("all", group["runs"])]:
            row = {"device": group["kind"], "matrix": matrix, "runs": len(runs)}
            row["model"] = error(runs, lambda r: r["predicted"])
            for place, name in enumerate(names):
                row[name] = error(runs, lambda r, place=place: r["baselines"][place])
            figures.append(row)
    print(f"Model {model}; mean absolute percentage error of a step's seconds\n")
    print("| matrix | device | runs | model | naive | roofline | physics alone |")
    print("|---|---|---|---|---|---|---|")
    for row in figures:
        cells = [f"{100 * row[name]:.2f} %" for name in ("model", "naive", "roofline", "prior")]
        print(f"| {row['matrix']} | {row['device']} | {row['runs']} | {' | '.join(cells)} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=2)
            out.write("\n")


if __name__ == "__main__":
    main()
