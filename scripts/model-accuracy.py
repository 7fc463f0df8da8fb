#!/usr/bin/env python3
"""Evaluates cost models on runs outside of their training data.

Profiles sizes that are in no training set, between the training sizes and up to
1.5 times the largest, in the simulator with 2 % noise. Evaluates on these runs

  * each machine's own model and the baselines;
  * the model of one machine on the others, as it is and adapted by 8 runs.

    scripts/model-accuracy.py [--pdawl target/release/pdawl] [--from k20-32]
        [--machines k20-32,k20-40,k40,titan] [--json FILE]

All times are simulated.
"""

import argparse
import json
import os
import subprocess
import tempfile

# Between the training sizes of scripts/simulated-models.sh and up to 1.5 times the largest.
SIZES = "700,1300,2900,5300,8100,13000,17000,22000,27000"
RUNS = 8


def pdawl(program, *arguments):
    """Runs pdawl and returns its JSON."""
    command = [program, *arguments, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def errors(program, model, dataset):
    """Mean absolute percentage errors of a model and the baselines, by kind of device."""
    found = pdawl(program, "model", "check", model, "--dataset", dataset)["held_out"]
    table = {}
    for group in found["groups"]:
        row = {"model": group["model"]["mape"], "runs": group["rows"]}
        row |= {b["name"]: b["accuracy"]["mape"] for b in group["baselines"]}
        table[group["kind"]] = row
    return table


def percent(value):
    return f"{100 * value:.2f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pdawl", default="target/release/pdawl")
    parser.add_argument("--from", dest="source", default="k20-32")
    parser.add_argument("--machines", default="k20-32,k20-40,k40,titan")
    parser.add_argument("--json", help="also write the figures to this file")
    options = parser.parse_args()
    program = os.path.abspath(options.pdawl)
    machines = options.machines.split(",")

    figures = {"sizes": SIZES, "simulated": True, "held_out": {}, "reuse": {}}
    with tempfile.TemporaryDirectory() as folder:
        # Keep adapted models out of the user's models.
        os.environ["PDAWL_MODELS"] = os.path.join(folder, "models")
        held = {}
        for machine in machines:
            held[machine] = os.path.join(folder, f"{machine}.csv")
            pdawl(program, "profile", "stencil", "--machine", machine, "--sizes", SIZES,
                  "--repeats", "1", "--seed", "99", "--noise", "0.02", "--out", held[machine])
            figures["held_out"][machine] = errors(program, machine, held[machine])
        for machine in machines:
            if machine == options.source:
                continue
            adapted = f"{options.source}-on-{machine}"
            pdawl(program, "model", "adapt", options.source, "--machine", machine,
                  "--runs", str(RUNS), "--name", adapted)
            figures["reuse"][machine] = {
                "unadapted": errors(program, options.source, held[machine]),
                "adapted": errors(program, adapted, held[machine]),
                "native": figures["held_out"][machine],
            }

    print(f"Sizes {SIZES}; mean absolute percentage error of a step's seconds, simulated\n")
    print("| machine | device | runs | model | naive | roofline | physics alone |")
    print("|---|---|---|---|---|---|---|")
    for machine, kinds in figures["held_out"].items():
        for kind, row in kinds.items():
            print(f"| {machine} | {kind} | {row['runs']} | {percent(row['model'])} "
                  f"| {percent(row['naive'])} | {percent(row['roofline'])} | {percent(row['prior'])} |")
    print(f"\n| model of {options.source} on | device | as it is | adapted by {RUNS} runs | native |")
    print("|---|---|---|---|---|")
    for machine, variants in figures["reuse"].items():
        for kind in variants["native"]:
            cells = [percent(variants[name][kind]["model"]) for name in ("unadapted", "adapted", "native")]
            print(f"| {machine} | {kind} | {' | '.join(cells)} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=2)
            out.write("\n")


if __name__ == "__main__":
    main()
