"""Runs of pdawl on the nodes that scripts/emulated-nodes.sh makes, for the scripts that
measure them."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).resolve().parent / "emulated-nodes.sh"
# Where the script notes the worker thread of each node.
STATE = Path("/run/pdawl-nodes")
# Seconds after which a run hangs: several times as long as any that is measured.
LIMIT = 300
# A machine of one core that computes at a given speed, whatever it reads.
MACHINE = """format = "pdawl-machine/1"
name = "node{node}"
title = "an emulated node"
description = "A worker of an emulated node."
[host]
model = "emulated"
sockets = 1
cores = 1
memory = 8_000_000_000
memory_bandwidth = 1e15
core_bandwidth = 1e15
flops = {flops}
launch_overhead_ns = 30_000
completion_latency_ns = 0
[source]
all = "measured"
"""
# Seconds between two looks at a worker.
LOOK = 0.002


@dataclass
class Done:
    """A run that has ended. Moments are seconds since 1970."""

    report: Any
    errors: str
    # When the report came, if one did, and when the run had ended.
    printed: float
    ended: float
    # What happened meanwhile returned.
    meanwhile: Any


class Program:
    """pdawl and its wire."""

    def __init__(self, arguments):
        self.path = str(Path(arguments.pdawl).resolve())
        self.wire = str(Path(arguments.wire).resolve())
        for path, how in [(self.path, "cargo build --release"), (self.wire, "cargo build --release -p pdawl-wire-mpi")]:
            if not Path(path).exists():
                sys.exit(f"{path} is not there: {how}")

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--pdawl", default="target/release/pdawl")
        parser.add_argument("--wire", default="target/release/libpdawl_wire_mpi.so")
        parser.add_argument("--out", default="datasets/emulated-nodes", help="the folder of the tables")
        parser.add_argument("--rate", default="1gbit", help="of a node's link")
        parser.add_argument("--share", type=float, default=0.2, help="of a core, for a node's worker")

    def command(self, line):
        return [self.path, *line, "--devices", "host:1", "--wire", self.wire]

    def run_here(self, line, ranks):
        """The report of a run of several processes over shared memory, without emulated nodes."""
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        done = subprocess.run([*mpirun, *self.command(line)], capture_output=True, text=True, timeout=LIMIT)
        if done.returncode != 0:
            sys.exit(f"{' '.join(line)} fails:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout)

    def simulate(self, line, cluster, folder):
        """The report of a run on a described cluster, whose machine files are in a folder."""
        command = [self.path, *line, "--cluster", cluster]
        done = subprocess.run(command, capture_output=True, text=True, env=stores(folder), timeout=LIMIT)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} fails:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout)


class Nodes:
    """Emulated nodes, which are removed at the end of a `with`."""

    def __init__(self, arguments, count, slow=None):
        self.program, self.count = Program(arguments), count
        self.made = ["make", str(count), "--rate", arguments.rate, "--share", str(arguments.share)]
        for node, factor in (slow or {}).items():
            self.made += ["--slow", f"{node}={factor:.6f}"]

    def __enter__(self):
        script(*self.made)
        return self

    def __exit__(self, *_):
        script("remove")

    def run(self, line, on=None, meanwhile=None, recover=False):
        """Runs pdawl on these nodes, or on all, and calls `meanwhile` beside it.

        A run without a report ends the measurement, unless ranks may be lost."""
        options = (["--on", ",".join(map(str, on))] if on else []) + (["--recover"] if recover else [])
        for node in on or range(self.count):
            worker(node).unlink(missing_ok=True)
        returned = []
        beside = threading.Thread(target=lambda: returned.append(meanwhile()), daemon=True)
        with tempfile.TemporaryFile("w+") as errors:
            command = [SCRIPT, "run", *options, *self.program.command(line)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
            timer = threading.Timer(LIMIT, process.terminate)
            timer.start()
            if meanwhile:
                beside.start()
            first = process.stdout.readline()
            printed = time.time()
            text = first + process.stdout.read()
            process.wait()
            ended = time.time()
            is_late = not timer.is_alive()
            timer.cancel()
            errors.seek(0)
            said = errors.read()
        if meanwhile:
            # It waits for what no longer happens if the run was too short.
            beside.join(timeout=1)
        if is_late:
            said += f"\nit hung: no end after {LIMIT} s"
        report = json.loads(text) if text.startswith("{") else None
        if report is None and not recover:
            sys.exit(f"{' '.join(line)} fails:\n{said[-2000:]}")
        return Done(report, said, printed, ended, returned[0] if returned else None)

    def run_other(self, command, environment=None):
        """What another program prints that runs on all nodes, one process each."""
        done = subprocess.run([SCRIPT, "run", *command], capture_output=True, text=True,
                              env={**os.environ, **(environment or {})}, timeout=LIMIT)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))} fails:\n{done.stderr[-2000:]}")
        return done.stdout

    def measure_network(self, folder):
        """The network's figures as `pdawl cluster measure` finds them."""
        line = ["cluster", "measure", "emulated", "--force", "--copy-size", "64MiB", "--wire", self.program.wire]
        done = subprocess.run([SCRIPT, "run", "--unlimited", self.program.path, *line], capture_output=True, text=True,
                              env=stores(folder), timeout=LIMIT)
        if done.returncode != 0:
            sys.exit(f"{' '.join(line)} fails:\n{done.stderr[-2000:]}")
        return tomllib.loads((Path(folder) / "emulated.toml").read_text())["network"]

    def describe(self, folder, speeds, network):
        """Writes a cluster file whose nodes compute so many operations a second."""
        for node, speed in enumerate(speeds):
            # The simulation computes in single precision, twice as fast as in double.
            (Path(folder) / f"node{node}.toml").write_text(MACHINE.format(node=node, flops=speed / 2))
        nodes = "".join(f'[[node]]\nmachine = "node{node}"\ncount = 1\n' for node in range(len(speeds)))
        values = "".join(f"{key} = {json.dumps(value)}\n" for key, value in network.items())
        path = Path(folder) / "described.toml"
        path.write_text(f'format = "pdawl-cluster-file/1"\nname = "described"\ntitle = "emulated nodes"\n'
                        f'description = "Emulated nodes."\n{nodes}[network]\n{values}[source]\nall = "measured"\n')
        return str(path)

    def slow(self, node, factor):
        script("slow", str(node), str(factor))

    def wait_until_computed(self, node, seconds):
        """Waits until a node's worker has had so many seconds of a core."""
        while True:
            try:
                thread = worker(node).read_text().strip()
                if int(Path(f"/proc/{thread}/schedstat").read_text().split()[0]) >= seconds * 1e9:
                    return
            except (OSError, ValueError, IndexError):
                # The worker has not begun, or its run has ended.
                pass
            time.sleep(LOOK)

    def process(self, node):
        """The process of a node's rank."""
        status = Path(f"/proc/{worker(node).read_text().strip()}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("Tgid")))


def stores(folder):
    """The environment of a program whose machine and cluster files are in a folder."""
    return {**os.environ, "PDAWL_MACHINES": folder, "PDAWL_CLUSTERS": folder}


def worker(node):
    return STATE / f"worker{node}"


def script(*words):
    done = subprocess.run([SCRIPT, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())


def table(folder, name, header, rows):
    """Writes rows of values with tabs between them."""
    os.makedirs(folder, exist_ok=True)
    with open(Path(folder) / name, "w") as out:
        for row in [header, *rows]:
            text = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in row)
            out.write("\t".join(text) + "\n")
