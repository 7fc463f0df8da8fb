#!/usr/bin/env python3
"""Measures runs over emulated nodes, as root; scripts/emulated-nodes.sh makes the nodes.

    scripts/measure-nodes.py WHAT [--pdawl PROGRAM] [--wire LIBRARY] [--out FOLDER]
        [--repeats N] [--size N] [--rate RATE] [--share S]

WHAT is one of
    speeds    four nodes, one at a third from the start or falling to a tenth in mid-run: each
              policy's time as a part of the ideal one (speeds.tsv)
    losses    one rank of four is killed at a random moment, 20 times, and rank 0 three times
              (losses.tsv)
    pipeline  a product whose blocks travel for 0.4 of the time that nodes compute: its time with
              and without prefetching, and on links that are no limit (pipeline.tsv)
    simulated four workloads on equal nodes, on nodes of which one is at a third, and on links of a
              quarter, simulated and run: the simulated time against the median one (simulated.tsv)
    overhead  seconds per subtask and rank of runs with tiny subtasks, two processes over
              shared memory, without emulated nodes (overhead.tsv)

The files are for datasets/emulated-nodes/. The ideal time is that of the sum of the nodes'
speeds while they compute, which runs with equal parts show before and after the others.
Policies run in turns, and figures are medians.
"""

import argparse
import os
import random
import signal
import statistics
import sys
import tempfile
import time

from emulated import Nodes, Program, table

NODES = 4
# A subtask takes some 100 ms. A worker that waits loses the rest of its turn, up to 2.5 ms.
FILTER, TILE = 47, 384
# When it falls, as a part of the ideal time before, and to which speed.
FALL_AT, FALL_TO = 0.4, 0.1
# After this long without a sign a node is lost (docs/wire.md).
DETECTION = 2.0
# How long blocks travel, as a part of the time of a run on links that are no limit.
TRAVEL = 0.4
# Runs that lose rank 0.
KILLS_OF_FIRST = 3


def convolution(size, *more):
    line = f"run convolution --size {size} --filter {FILTER} --tile {TILE} --format json"
    return line.split() + list(more)


def rates(nodes, size):
    """Each node's operations a second while it computes, where all compute equal parts."""
    report = nodes.run(convolution(size // 2, "--spread", "static")).report
    whole = sum(node["subtasks"] for node in report["nodes"])
    flops = report["workload"]["parameters"]["flops"]
    return [flops * node["subtasks"] / whole / node["busy_seconds"] for node in report["nodes"]]


def fall(nodes, seconds):
    """Slows the last node when it has computed for so long, and returns the moment."""
    nodes.wait_until_computed(NODES - 1, seconds)
    nodes.slow(NODES - 1, FALL_TO)
    return time.time()


def speeds(arguments):
    rows = []
    for case in ["third", "tenth"]:
        slow = {NODES - 1: 1 / 3} if case == "third" else {}
        with Nodes(arguments, NODES, slow) as nodes:
            rows += speeds_of(nodes, case, arguments)
    table(arguments.out, "speeds.tsv", ["case", "policy", "run", "seconds", "ideal", "fell_at", "part"], rows)
    for case in ["third", "tenth"]:
        for policy in arguments.policies.split(","):
            parts = [row[-1] for row in rows if row[:2] == (case, policy)]
            print(f"{case}\t{policy}\t{statistics.median(parts):.3f}\tof the ideal")


def speeds_of(nodes, case, arguments):
    size = arguments.size or 6144
    for policy in arguments.policies.split(","):
        report = nodes.run(convolution(size // 2, "--spread", policy, "--verify")).report
        if not report["verification"]["right"]:
            sys.exit(f"{policy} computes a wrong result")
    before, runs = rates(nodes, size), []
    expected = report_flops(size) / sum(before)
    for run in range(arguments.repeats):
        for policy in arguments.policies.split(","):
            line = convolution(size, "--spread", policy)
            if case == "third":
                runs.append((policy, run, nodes.run(line), None))
                continue
            computed = FALL_AT * expected * arguments.share
            done = nodes.run(line, meanwhile=lambda: fall(nodes, computed))
            runs.append((policy, run, done, done.meanwhile - (done.printed - done.report["seconds"])))
            nodes.slow(NODES - 1, 1)
    both = zip(before, rates(nodes, size))
    own = [statistics.mean(two) for two in both]
    rows = []
    for policy, run, done, fell in runs:
        work, seconds = done.report["workload"]["parameters"]["flops"], done.report["seconds"]
        ideal = work / sum(own)
        if fell is not None and fell < ideal:
            slower = sum(own[:-1]) + FALL_TO * own[-1]
            ideal = fell + (work - fell * sum(own)) / slower
        part = ideal / seconds
        rows.append((case, policy, run, seconds, ideal, "" if fell is None else fell, part))
    return rows


def report_flops(size):
    """Operations of the convolution of an image with three channels."""
    return 2.0 * FILTER * FILTER * 3 * size * size


def losses(arguments):
    size, rows = arguments.size or 3072, []
    line = convolution(size, "--verify")
    with Nodes(arguments, NODES) as nodes:
        own = rates(nodes, size)
        whole = report_flops(size) / sum(own)
        for seed in range(1, arguments.kills + KILLS_OF_FIRST + 1):
            generator = random.Random(seed)
            rank = generator.randrange(1, NODES) if seed <= arguments.kills else 0
            moment = generator.uniform(0, 0.9) * whole
            begun = time.time()
            done = nodes.run(line, meanwhile=lambda: kill(nodes, rank, moment * arguments.share), recover=True)
            if rank == 0:
                reported = [part for part in done.errors.splitlines() if "node 0" in part]
                seconds = done.ended - done.meanwhile if done.meanwhile else ""
                rows.append((seed, rank, moment, seconds, "", reported[0] if reported else "nothing is told"))
            else:
                rows.append((seed, rank, moment, *survived(done, own, rank)))
            print(*rows[-1], f"{time.time() - begun:.1f} s in all", sep="\t", flush=True)
    header = ["seed", "rank", "killed_after", "seconds", "allowed", "what"]
    table(arguments.out, "losses.tsv", header, rows)
    others = [row for row in rows if row[1] != 0]
    right = sum(row[5] == "right" for row in others)
    within = sum(row[5] == "right" and row[3] <= row[4] for row in others)
    print(f"{right} of {len(others)} right, {within} within the survivors' ideal + 10 % + {DETECTION} s")


def survived(done, own, rank):
    """A run's seconds, the allowed ones, and whether its result is right."""
    if done.report is None:
        return "", "", "no report: " + done.errors[-200:].replace("\n", " ").replace("\t", " ")
    report = done.report
    ideal = report["workload"]["parameters"]["flops"] / (sum(own) - own[rank])
    what = "right" if report["verification"]["right"] else "wrong"
    if not any(lost["node"] == rank for lost in report["lost"]):
        what = "ended before"
    return report["seconds"], 1.1 * ideal + DETECTION, what


def kill(nodes, rank, computed):
    """Kills a rank when its worker has computed for so long."""
    nodes.wait_until_computed(rank, computed)
    os.kill(nodes.process(rank), signal.SIGKILL)
    return time.time()


def product(size, *more):
    return f"run matmul --size {size} --tile {size // 16} --format json".split() + list(more)


def pipeline(arguments):
    size = arguments.size or 8192
    fast = "10gbit"

    def seconds(rate, *more):
        arguments.rate = rate
        with Nodes(arguments, NODES) as nodes:
            return nodes.run(product(size, *more)).report

    free = seconds(fast, "--verify")
    if not free["verification"]["right"]:
        sys.exit("the product is wrong")
    received = max(node["received_bytes"] for node in free["nodes"])
    rate = f"{received * 8 / (TRAVEL * free['seconds']) / 1e6:.0f}mbit"
    rows = []
    for run in range(arguments.repeats):
        for name, of, more in [("no limit", fast, []), ("limited", rate, []), ("no prefetching", rate, ["--prefetch", "0"])]:
            rows.append((name, run, of, received, seconds(of, *more)["seconds"]))
    table(arguments.out, "pipeline.tsv", ["way", "run", "rate", "bytes_of_a_node", "seconds"], rows)
    median = {way: statistics.median(row[-1] for row in rows if row[0] == way) for way in {row[0] for row in rows}}
    alone, limited = median["no limit"], median["limited"]
    print(f"links of {rate}: {alone / limited:.3f} of computing alone, "
          f"{median['no prefetching'] / limited:.2f} times as fast as without prefetching")


# Workload, size, and block. A subtask computes for 20 ms of a core or more: the kernel looks at
# shares each 4 ms only, and forgets what was too much when a worker has waited.
SIMULATED = [
    ("convolution", 4608, 384, ["--filter", str(FILTER)]),
    ("matmul", 5120, 640, []),
    ("fft", 8192, 512, []),
    ("lu", 8192, 1024, []),
]


def simulated(arguments):
    """Workers have the speed that they have in the compared runs, operations by busy time, as it
    depends on what else this machine does. So the comparison is of all that is not a kernel."""
    full, quarter, third = arguments.rate, "250mbit", {NODES - 1: 1 / 3}
    rows = []

    def line(name, size, tile, more):
        return ["run", name, "--size", str(size), "--tile", str(tile), *more, "--format", "json"]

    def speed(report, slow):
        busy = sum(node["busy_seconds"] * slow.get(i, 1) for i, node in enumerate(report["nodes"]))
        return report["workload"]["parameters"]["flops"] / busy

    for case, rate, slow in [("equal", full, {}), ("third", full, third), ("links", quarter, {})]:
        arguments.rate = rate
        with Nodes(arguments, NODES, slow) as nodes, tempfile.TemporaryDirectory() as folder:
            # Links are made for each direction. Two ranks that exchange large messages over one
            # connection of Open MPI's do not fill both, so the measured figure is not the link's.
            network = {**nodes.measure_network(folder), "full_duplex": True}
            found = {name: [] for name, *_ in SIMULATED}
            for _ in range(arguments.repeats):
                for name, *of in SIMULATED:
                    found[name].append(nodes.run(line(name, *of)).report)
            for name, *of in SIMULATED:
                own = statistics.median(speed(report, slow) for report in found[name])
                described = nodes.describe(folder, [own * slow.get(node, 1) for node in range(NODES)], network)
                report = nodes.program.simulate(line(name, *of), described, folder)
                seconds = [report["seconds"] for report in found[name]]
                real = statistics.median(seconds)
                rows.append((case, name, network["bandwidth"], network["message_ns"], own, real, min(seconds),
                             max(seconds), report["seconds"], report["seconds"] / real - 1))
                print(*rows[-1], sep="\t", flush=True)
    table(arguments.out, "simulated.tsv",
          ["nodes", "workload", "bandwidth", "message_ns", "operations_a_second", "seconds", "least", "most",
           "simulated", "error"], rows)
    errors = sorted(abs(row[-1]) for row in rows)
    print(f"{len(rows)} cases: median error {statistics.median(errors):.3f}, worst {errors[-1]:.3f}")


def overhead(arguments):
    """A larger product of tiny blocks against one of few: what the other subtasks take."""
    program, rows = Program(arguments), []
    size = arguments.size or 1024
    for run in range(arguments.repeats):
        for tile in [4, 8, 16]:
            line = f"run convolution --size {size} --filter 1 --tile {tile} --format json"
            report = program.run_here(line.split(), ranks=2)
            subtasks = report["workload"]["parameters"]["subtasks"]
            computing = sum(device["subtask_seconds"] for device in report["devices"])
            rows.append((run, tile, subtasks, report["seconds"], computing, 2e6 * report["seconds"] / subtasks))
    table(arguments.out, "overhead.tsv",
          ["run", "tile", "subtasks", "seconds", "computing", "us_per_subtask_and_rank"], rows)
    for tile in [4, 8, 16]:
        found = [row[-1] for row in rows if row[1] == tile]
        print(f"blocks of {tile}: {statistics.median(found):.1f} us a subtask and rank")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speeds", "losses", "pipeline", "simulated", "overhead"])
    Program.add_arguments(parser)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--kills", type=int, default=20, help="runs that lose a rank")
    parser.add_argument("--policies", default="together,static,steal")
    parser.add_argument("--size", type=int, help="rows and columns of the image")
    arguments = parser.parse_args()
    measures = [speeds, losses, pipeline, simulated, overhead]
    next(measure for measure in measures if measure.__name__ == arguments.what)(arguments)


main()
