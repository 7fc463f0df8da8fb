#!/usr/bin/env python3
"""Evaluates a cost model and the baselines on products of unknown matrices:
look-alikes of the PDAWL paper's five.

    scripts/product-accuracy.py [--pdawl target/release/pdawl] [--machine h200]
        [--model NAME] [--dataset FILE] [--json FILE]

Without --dataset, the script profiles the machine; unless it is this one, it is
simulated with 2 % noise. --model defaults to the machine's own model. The table
shows the mean absolute percentage error of a step's seconds by matrix and device."""

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
    parser.add_argument("--model", help="[the machine's]")
    parser.add_argument("--dataset", help="runs to predict, from `pdawl profile spmv`")
    parser.add_argument("--budget", default="10m", help="time for profiling")
    parser.add_argument("--json", help="also write the figures to this file")
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
            for index, name in enumerate(names):
                row[name] = error(runs, lambda r, index=index: r["baselines"][index])
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
