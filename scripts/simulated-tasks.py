#!/usr/bin/env python3
"""Makes the reports for the figures of notebooks/tasks.ipynb:

    scripts/simulated-tasks.py PDAWL FOLDER [--repeats 3]

PDAWL is the program, such as target/release/pdawl. FOLDER gets a table of rows
(`pdawl-tasks/1`, see datasets/README.md) for each set of tasks and machine, from the runs of a
`pdawl bench`, and provenance.txt with the commands. Times of tasks are simulated.
`deciding_seconds` are real, those of this machine. It takes some 15 minutes on one core.

Each policy runs with so many seeds, and the run with the median time counts. If a command fails,
the script ends and leaves FOLDER unchanged."""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

# StarPU counts 2^20 bytes as a megabyte, so the paper's 500 MB are 500 MiB.
LIMIT = ["--gpu-memory", "500MiB"]
COMMON = "eager,dmdar,partition,mhfp"
SEVERAL = f"{COMMON},darts,darts+luf,locality"


def sizes(*steps):
    """Numbers with commas, of ranges first, last, step or of single numbers."""
    ranges = [range(s[0], s[1] + 1, s[2]) if isinstance(s, tuple) else [s] for s in steps]
    return ",".join(str(n) for numbers in ranges for n in numbers)


# The file, N, the policies, and the words of the run.
REPORTS = [
    # Figures 3 and 4; 5, 6 and 7; 8; 9.
    ("matmul2d-v100x1", sizes((5, 75, 5)), "eager,dmdar,mhfp,darts,darts+luf,locality",
     ["--set", "matmul2d", "--machine", "v100x1", *LIMIT]),
    ("matmul2d-v100x2", sizes(5, (10, 140, 10)), SEVERAL,
     ["--set", "matmul2d", "--machine", "v100x2", *LIMIT]),
    ("matmul2d-v100x4", sizes(5, (20, 300, 20)), SEVERAL,
     ["--set", "matmul2d", "--machine", "v100x4", *LIMIT]),
    ("matmul2d-random-v100x2", sizes(5, (10, 140, 10)), SEVERAL,
     ["--set", "matmul2d", "--order", "random", "--machine", "v100x2", *LIMIT]),
    # Figure 10.
    ("matmul3d-v100x4", sizes((2, 20, 2), (24, 32, 4), 40, 48, 56, 69),
     f"{COMMON},darts+luf,darts+luf+3inputs,locality",
     ["--set", "matmul3d", "--machine", "v100x4", *LIMIT]),
    # Figure 11.
    ("cholesky-v100x4", sizes((4, 72, 4)),
     f"{COMMON},darts+luf,darts+luf+3inputs,darts+luf+3inputs+opti,locality",
     ["--set", "cholesky", "--machine", "v100x4", *LIMIT]),
    # Figures 12 and 13.
    ("sparse-v100x4", sizes((20, 300, 20)), f"{COMMON},darts,darts+luf,darts+luf+opti,locality",
     ["--set", "sparse", "--machine", "v100x4", *LIMIT]),
    ("sparse-unlimited-v100x4", sizes((20, 300, 20)),
     f"{COMMON},darts,darts+luf,darts+opti,locality",
     ["--set", "sparse", "--machine", "v100x4"]),
]


def table(bench):
    """The rows of a comparison: for each size and policy the run with the median time of all
    seeds, and the median of their decisions."""
    of = {}
    for run in bench["runs"]:
        of.setdefault((run["values"]["n"], run["values"]["policy"]), []).append(run["report"])
    rows = []
    for reports in of.values():
        reports.sort(key=lambda report: report["seconds"])
        report = reports[(len(reports) - 1) // 2]
        tasks, details = report["workload"]["parameters"], report["details"]
        total = lambda figure: sum(device[figure] for device in report["devices"])  # noqa: E731
        deciding = [one["details"]["deciding_seconds"] for one in reports]
        rows.append({
            "n": tasks["n"], "tasks": tasks["tasks"], "policy": report["policy"],
            "order": tasks["order"], "seconds": report["seconds"],
            "gflops": tasks["flops"] / report["seconds"] / 1e9,
            "bound_gflops": tasks["flops"] / details["least_seconds"] / 1e9,
            "loaded_bytes": total("bytes_h2d"), "written_back_bytes": total("bytes_d2h"),
            "peer_bytes": total("bytes_peer"), "evictions": total("evictions"),
            "deciding_seconds": statistics.median(deciding), "repeats": len(reports),
        })
    machine, tasks = report["machine"], report["workload"]["parameters"]
    return {
        "schema": "pdawl-tasks/1", "version": bench["version"], "machine": machine["name"],
        "simulated": machine["simulated"],
        "devices": [device["name"] for device in machine["devices"]],
        "gpu_memory_bytes": report["details"]["gpu_memory_bytes"],
        "set": tasks["set"], "tile": tasks["tile"], "rows": rows,
    }


def processor():
    """The processor's model. `platform.processor` is empty on most Linux machines."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(": ", 1)[1] for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pdawl")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=3, help="seeds of each policy [3]")
    given = parser.parse_args()
    pdawl = os.path.realpath(given.pdawl)
    seeds = ",".join(str(seed) for seed in range(1, given.repeats + 1))
    tables, commands = {}, []
    for name, n, policies, words in REPORTS:
        print(name, file=sys.stderr)
        vary = [f"n={n}", f"policy={policies}", f"seed={seeds}"]
        gpus = int(words[words.index("--machine") + 1].removeprefix("v100x"))
        words = [*words, "--devices", ",".join(f"gpu{gpu}" for gpu in range(gpus))]
        words = ["bench", "--repeats", "1", *(word for v in vary for word in ("--vary", v)),
                 "run", "tasks", *words, "--format", "json"]
        done = subprocess.run([pdawl, *words], check=True, stdout=subprocess.PIPE)
        tables[name] = table(json.loads(done.stdout))
        commands.append(f"{name}.json: pdawl {' '.join(words)}")
    version = subprocess.run([pdawl, "--version"], check=True, capture_output=True, text=True)
    commit = subprocess.run(
        ["git", "-C", os.path.dirname(os.path.realpath(__file__)), "describe", "--always",
         "--dirty", "--abbrev=40"], check=False, capture_output=True, text=True,
    )
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        (given.folder / f"{name}.json").write_text(json.dumps(rows, indent=2) + "\n")
    (given.folder / "provenance.txt").write_text("\n".join([
        "times: simulated, on machines that ship with the program; `deciding_seconds` are real",
        f"date: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}",
        f"program: {version.stdout.strip()}",
        f"commit: {commit.stdout.strip() or 'unknown'}",
        f"decided on: {processor()}, {os.cpu_count()} cores, {platform.platform()}",
        f"load average at the end: {' '.join(f'{load:.1f}' for load in os.getloadavg())}",
        f"command: scripts/simulated-tasks.py PDAWL FOLDER --repeats {given.repeats}",
        "", *commands, "",
    ]))


if __name__ == "__main__":
    main()
