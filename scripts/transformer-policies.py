#!/usr/bin/env python3
"""Makes the experiments of the PySchedCL paper's section 5, a transformer's layer under policies:

    scripts/transformer-policies.py PDAWL [--repeats 9] [--resident] [--points heads,...:beta,...]
        [OPTION ...]

The points are by default the paper's: 1 to 16 heads at beta 256, and beta 64 to 512 at 16 heads.
OPTIONs are those of `pdawl run transformer`, such as `--machine k40`. `--resident` leaves inputs
and results on the devices from run to run; without it all are copied, as in the paper. For each
point all policies run in turns (`pdawl bench`), and the table has their times over that of the
best clustering, which a search finds. The last lines are what the paper's text says of a GTX 970
beside four cores of an i5-4690K."""

import argparse
import json
import subprocess

CASES = {
    "coarse": "--policy clustering --queues gpu=1,cpu=1",
    "clustering": "--policy clustering --search",
    "eager": "--policy eager",
    "heft": "--policy heft",
    # It learns in its first runs.
    "adaptive": "--policy adaptive --repeats 5",
    "batch": "--batch --policy clustering --search",
}
PAPER = [
    "coarse: 1.15 to 1.17 for 1 to 10 heads, beta 256 (section 5, experiment 1, Figure 11)",
    "eager or heft: 1.4 to 3.4 for 16 heads, beta 64 to 512 (section 1, Figure 12)",
    "eager over heft: 2.4 for 16 heads, beta 512 (section 5, Figure 13)",
]


def bench(given, options, heads, betas):
    words = ["bench", "--repeats", str(given.repeats)]
    words += ["--vary", f"heads={heads}", "--vary", f"beta={betas}"]
    words += [word for case in CASES.values() for word in ("--case", case)]
    words += ["run", "transformer", *options, "--format", "json"]
    if given.resident:
        words += ["--keep-inputs", "--leave-results"]
    done = subprocess.run([given.pdawl, *words], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["runs"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pdawl")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--resident", action="store_true")
    parser.add_argument("--points", action="append", help="HEADS:BETAS, lists with commas")
    given, options = parser.parse_known_args()
    paper = [",".join(map(str, range(1, 17))) + ":256", "16:64,128,512"]
    print(f"{'heads':>5} {'beta':>5} {'clustering':>12}" + "".join(f"{n:>10}" for n in CASES))
    for point in given.points or paper:
        runs = bench(given, options, *point.split(":"))
        for first in range(0, len(runs), len(CASES)):
            of = dict(zip(CASES, runs[first : first + len(CASES)]))
            best = of["clustering"]["report"]["seconds"]
            ratios = "".join(f"{run['report']['seconds'] / best:>10.3f}" for run in of.values())
            values = of["clustering"]["values"]
            print(f"{values['heads']:>5} {values['beta']:>5} {best * 1e3:>9.3f} ms{ratios}")
    print("The paper's text:", *PAPER, sep="\n  ")


if __name__ == "__main__":
    main()
