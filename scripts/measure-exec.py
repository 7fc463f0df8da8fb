#!/usr/bin/env python3
"""Measures what `pdawl exec` costs and gains on NPB programs, against runs without it.

    scripts/measure-exec.py --pdawl PROGRAM --npb FOLDER --vendors FOLDER [--gemm FOLDER] [--repeats N] [--tsv FILE] CASE...

CASE is one of
    pass   DEVICE PROGRAM.CLASS...   without us, and under `--policy off`
    map    QUEUES PROGRAM.CLASS...   all maps of the queues to the first two devices (NPB-OCL-MD), and `auto-fit` in a first and in later runs
    divide DEVICE PROGRAM.CLASS...   the device alone (`--policy off`), and `divide` in a first and in later runs, and after a run of `divide:equal`,
                                     which examines all kernels
    shares STEPS  PROGRAM.CLASS...   the first device alone, the second one alone, fixed shares of it in so many steps near the best one, and `divide` in later runs
    cost   DEVICE PROGRAM.CLASS...   `off`, and `divide` in a first run
and ends with a comma where another follows. DEVICE is gpu or cpu. FOLDER of --npb has NPB3.3-OCL and NPB3.3-OCL-MD, built
(SNU-NPB 1.0.3); FOLDER of --vendors has one .icd file a driver. `shares` and `divide` also take gemm.N, the program gemm.N.x in FOLDER of --gemm (PolyBench-ACC,
of N rows, which tells the seconds of its launch after "GPU Time in seconds:"). The ways of a case run in turns. Seconds are those
that the programs tell; a run that does not verify fails the measurement.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

VERIFIED = re.compile(r"Verification\s*=\s*SUCCESSFUL|Percent: 0\s*$")
SECONDS = re.compile(r"(?:Time in seconds\s*=|GPU Time in seconds:)\s*([\d.]+)")


def run(argv, folder, environment, limit=300):
    env = {**os.environ, **environment}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=limit)
    text = done.stdout + done.stderr
    seconds = SECONDS.search(text)
    if done.returncode != 0 or not VERIFIED.search(text) or not seconds:
        sys.exit(f"{' '.join(argv)} fails with status {done.returncode}:\n{text[-2000:]}")
    return float(seconds.group(1))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pdawl", required=True)
    p.add_argument("--npb", required=True)
    p.add_argument("--vendors", required=True)
    p.add_argument("--gemm")
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--tsv")
    p.add_argument("case", nargs="+")
    a = p.parse_args()
    pdawl, npb = os.path.abspath(a.pdawl), os.path.abspath(a.npb)
    vendors = os.path.abspath(a.vendors)
    rows = []

    def measure(case, program, ways):
        """ways: name -> function that runs once and returns seconds"""
        found = {name: [] for name in ways}
        for _ in range(a.repeats):
            for name, once in ways.items():
                found[name].append(once())
        for name, seconds in found.items():
            rows.append((case, program, name, seconds))
            print(case, program, name, f"median {statistics.median(seconds):.3f}", *(f"{s:.2f}" for s in seconds), flush=True)

    def simple(program, device):
        name = program.split(".")[0].upper()
        folder = os.path.join(npb, "NPB3.3-OCL")
        argv = [f"bin/{program}.x", os.path.join(folder, name), device]
        return folder, argv, {"OPENCL_DEVICE_TYPE": device}

    def learning(argv, folder, environment, kernels):
        """The first run learns, and later ones know."""
        shutil.rmtree(kernels, ignore_errors=True)
        os.makedirs(kernels)
        return run(argv, folder, {**environment, "PDAWL_KERNELS": kernels})

    cases, case = [], []
    for word in a.case:
        case.append(word.rstrip(","))
        if word.endswith(","):
            cases, case = cases + [case], []
    cases.append(case)
    with tempfile.TemporaryDirectory() as scratch:
        for kind, what, *programs in cases:
            for program in programs:
                first, later = os.path.join(scratch, program + "-first"), os.path.join(scratch, program + "-later")
                os.makedirs(later, exist_ok=True)
                if kind == "pass":
                    folder, argv, environment = simple(program, what)
                    own = next(f for f in os.listdir(vendors) if ("nvidia" in f) == (what == "gpu"))
                    alone = os.path.join(scratch, "vendor-" + what)
                    os.makedirs(alone, exist_ok=True)
                    shutil.copy(os.path.join(vendors, own), alone)
                    environment["OCL_ICD_VENDORS"] = alone
                    exec_off = [pdawl, "exec", "--policy", "off", "--device-type", what] + argv
                    measure(kind, program, {
                        "without": lambda: run(argv, folder, environment),
                        "off": lambda: run(exec_off, folder, {**environment, "PDAWL_KERNELS": later}),
                    })
                elif kind == "divide":
                    folder, argv, environment = simple(program, "gpu")
                    if program.startswith("gemm"):
                        folder, argv = os.path.abspath(a.gemm), [f"./{program}.x"]
                    environment["OCL_ICD_VENDORS"] = vendors
                    alone = [pdawl, "exec", "--policy", "off", "--devices", what] + argv
                    divided = [pdawl, "exec", "--policy", "divide"] + argv
                    examined = {**environment, "PDAWL_KERNELS": os.path.join(scratch, program + "-examined")}
                    os.makedirs(examined["PDAWL_KERNELS"])
                    equal = [pdawl, "exec", "--policy", "divide:equal"] + argv
                    print(program, "divide:equal", run(equal, folder, examined), flush=True)
                    measure(kind, program, {
                        "alone": lambda: run(alone, folder, {**environment, "PDAWL_KERNELS": later}),
                        "first": lambda: learning(divided, folder, environment, first),
                        "later": lambda: run(divided, folder, {**environment, "PDAWL_KERNELS": later}),
                        "examined": lambda: run(divided, folder, examined),
                    })
                elif kind == "cost":
                    folder, argv, environment = simple(program, what)
                    environment["OCL_ICD_VENDORS"] = vendors
                    shown = [pdawl, "exec", "--device-type", what, "--policy"]
                    measure(kind, program, {
                        "off": lambda: run(shown + ["off"] + argv, folder, {**environment, "PDAWL_KERNELS": later}),
                        "first": lambda: learning(shown + ["divide"] + argv, folder, environment, first),
                    })
                elif kind == "shares":
                    folder, argv, environment = simple(program, "gpu")
                    if program.startswith("gemm"):
                        folder, argv = os.path.abspath(a.gemm), [f"./{program}.x"]
                    environment.update(OCL_ICD_VENDORS=vendors, PDAWL_KERNELS=later)

                    def way(policy, steps=None):
                        shares = {} if steps is None else {"PDAWL_SHARES": f"{steps},{int(what) - steps}"}
                        return run([pdawl, "exec", "--policy", policy] + argv, folder, {**environment, **shares})

                    way("divide:equal")  # leaves the verdict
                    coarse = sorted({1, *range(int(what) // 4, int(what), int(what) // 4)})
                    best = min(coarse, key=lambda steps: way("divide:equal", steps))
                    near = [steps for steps in range(best - 3, best + 4) if 0 < steps < int(what)]
                    measure(kind, program, {
                        "alone": lambda: way("off"),
                        "second": lambda: run([pdawl, "exec", "--map", "1"] + argv, folder, environment),
                        **{f"{steps}/{what}": lambda steps=steps: way("divide:equal", steps) for steps in near},
                        "later": lambda: way("divide"),
                    })
                else:
                    queues = int(what)
                    name = program.split(".")[0].upper()
                    folder = os.path.join(npb, "NPB3.3-OCL-MD")
                    argv = [f"bin/{program}.x", os.path.join(folder, name), "gpu"]
                    environment = {"OCL_ICD_VENDORS": vendors, "SNU_NPB_COMMAND_QUEUES": what}
                    shown = [pdawl, "exec", "--virtual", what]
                    ways = {}
                    for number in range(2 ** queues):
                        places = ",".join(str(number >> queue & 1) for queue in range(queues))
                        ways[places] = lambda places=places: run(shown + ["--map", places] + argv, folder,
                                                                 {**environment, "PDAWL_KERNELS": later})
                    fit = shown + ["--policy", "auto-fit"] + argv
                    ways["first"] = lambda: learning(fit, folder, environment, first)
                    ways["later"] = lambda: run(fit, folder, {**environment, "PDAWL_KERNELS": later})
                    measure(kind, program, ways)
    if a.tsv:
        with open(a.tsv, "w") as out:
            out.write("case\tprogram\tway\trun\tseconds\n")
            for case, program, way, seconds in rows:
                for index, one in enumerate(seconds):
                    out.write(f"{case}\t{program}\t{way}\t{index}\t{one}\n")


main()
