#!/usr/bin/env python3
"""Simulates a workload on growing numbers of a described cluster's nodes:

    scripts/scaling.py PDAWL NODES run WORKLOAD --cluster NAME OPTIONS

    scripts/scaling.py target/release/pdawl 1,2,4,8,16 run lu --size 32768 --cluster four

It prints a table from `pdawl bench --vary nodes=NODES`: the size of a subtask that fits so many
nodes, time, rate, speed-up over the first row, efficiency, what nodes sent, the part of the time
in which a node computed nothing, and what was busiest. A row of one node is the machine's own
run, without messages."""

import json
import subprocess
import sys


def shown(value, scales):
    """With three figures and a unit."""
    scale, unit = next(((s, u) for s, u in scales if abs(value) >= s), scales[-1])
    return f"{value / scale:.3g} {unit}"


def busiest(of):
    if not of:
        return ""
    device = of["device"] or of["kind"].replace("_", " ")
    part = f"link of {device}" if of["kind"] == "device_link" else device
    node = "" if of["node"] is None else f"node {of['node']}, "
    return f"{node}{part} {100 * of['share']:.1f} %"


def row(run, first):
    report = run["report"]
    nodes = int(run["values"]["nodes"])
    speedup = first["report"]["seconds"] / report["seconds"]
    efficiency = speedup * int(first["values"]["nodes"]) / nodes
    of_nodes = report["nodes"]
    idle = [of["idle_seconds"] / (of["busy_seconds"] + of["idle_seconds"]) for of in of_nodes]
    rate = (report["throughput"] or {}).get("value", 0)
    details = report["details"]
    return [
        str(nodes),
        str(details.get("tile") or "-"),
        shown(report["seconds"], [(1, "s"), (1e-3, "ms"), (1e-6, "us")]),
        shown(rate, [(1e12, "T/s"), (1e9, "G/s"), (1e6, "M/s")]),
        f"{speedup:.2f}",
        f"{100 * efficiency:.1f} %",
        shown(sum(of["sent_bytes"] for of in of_nodes), [(2**30, "GiB"), (2**20, "MiB"), (1, "B")]),
        f"{100 * sum(idle) / len(idle):.1f} %" if idle else "-",
        busiest(details.get("busiest")),
    ]


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    pdawl, nodes, *words = sys.argv[1:]
    words = [pdawl, "bench", "--repeats", "1", "--vary", f"nodes={nodes}", *words]
    done = subprocess.run([*words, "--format", "json"], stdout=subprocess.PIPE, check=True)
    bench = json.loads(done.stdout)
    names = ["Nodes", "Tile", "Time", "Rate", "Speed-up", "Efficiency", "Sent", "Idle", "Busiest"]
    rows = [names, *(row(run, bench["runs"][0]) for run in bench["runs"])]
    widths = [max(map(len, column)) for column in zip(*rows)]
    print(f"{bench['runs'][-1]['report']['workload']['title']} (simulated)")
    for cells in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths)).rstrip())


if __name__ == "__main__":
    main()
