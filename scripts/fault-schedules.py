#!/usr/bin/env python3
"""Runs pdawl under random faults of simulated devices, and verifies every result.

    scripts/fault-schedules.py [--seed N] [--count N] [--program PATH] [--verbose]

Each schedule is a random workload on a random machine of `pdawl machine list`, with one to
three faults: devices that slow down, are lost, come back, fail commands, or lose cores. Half
of the losses are followed by the device's return. The run must end in time, with status 0
and a verified result. It may end with status 1 only where every device was lost or failed.

Every schedule that does not is printed: its kind, its command, and what the program said.
The exit status is 1 if there is one. Equal seeds give equal schedules.
"""

import argparse
import random
import re
import shlex
import subprocess
import sys

# Seconds of real time after which a run counts as hung. A run takes less than one.
LIMIT = 120
# By machine: how many GPUs it has, and the host's cores.
MACHINES = {
    "h200": (1, 15),
    "k20-32": (1, 32),
    "k20-40": (1, 40),
    "k40": (1, 8),
    "laptop": (1, 6),
    "m2070x2": (2, 12),
    "titan": (1, 12),
    "v100x1": (1, 40),
    "v100x2": (2, 40),
    "v100x4": (4, 40),
}
POLICIES = [
    "adaptive",
    "clustering",
    "auto-fit",
    "round-robin",
    "eager",
    "heft",
    "locality",
    "dmdar",
    "partition",
    "mhfp",
    "darts+luf",
    "darts+luf+3inputs",
]


def grid(rng):
    """A stencil: its options, the number of its steps, and seconds that it may take."""
    options = ["stencil", "--precision", rng.choice(["f32", "f64"])]
    if rng.random() < 0.5:
        options += ["--size", str(rng.randint(40, 700))]
    else:
        options += ["--dims", "3", "--size", str(rng.randint(12, 80))]
    if rng.random() < 0.3:
        options += ["--gpu-memory", "%dKiB" % rng.choice([1024, 2048])]
    return options, rng.randint(2, 40), 1e-2


def product(rng):
    """A sparse product or an iteration."""
    rows = rng.randint(100, 20000)
    matrix = rng.choice(
        [
            "uniform:%d,%d" % (rows, rng.randint(1, 20)),
            "rmat:%d,%d" % (rng.randint(6, 13), rng.randint(2, 16)),
            "circuit:%d" % rows,
        ]
    )
    options = ["spmv", "--matrix", matrix, "--precision", rng.choice(["f32", "f64"])]
    if rng.random() < 0.5:
        options.append("--iterate")
    if rng.random() < 0.2:
        options += ["--gpu-memory", "%dMiB" % rng.choice([1, 2, 4])]
    return options, rng.randint(2, 25), 1e-2


def steps_of(options, steps, rng):
    """The options of a run in steps: their number, and how the devices share them."""
    options += ["--steps", str(steps)]
    share = rng.choice(["dawl", "guided", "fixed", "adaptive", "adaptive"])
    if share == "fixed":
        options += ["--strategy", "fixed:%.2f" % rng.random()]
    elif share == "adaptive":
        options.append("--adaptive")
    else:
        options += ["--strategy", share]


def transformer(rng):
    options = ["transformer", "--heads", str(rng.randint(1, 8))]
    options += ["--beta", str(rng.choice([16, 32, 64]))]
    layers = rng.randint(1, 4)
    options += ["--layers", str(layers)]
    options += ["--policy", rng.choice(POLICIES)]
    if rng.random() < 0.3:
        options += ["--queues", "gpu0=%d" % rng.randint(1, 4)]
    if rng.random() < 0.3:
        options += ["--repeats", str(rng.randint(2, 4))]
    return options, layers, 1e-2


def dense(rng):
    operation = rng.choice(["matmul", "cholesky"])
    tile = rng.choice([32, 64, 128])
    size = rng.randint(tile, 600)
    precision = rng.choice(["f32", "f64"])
    options = [operation, "--size", str(size), "--tile", str(tile)]
    options += ["--precision", precision, "--policy", rng.choice(POLICIES)]
    if rng.random() < 0.5:
        tile_bytes = tile * tile * (4 if precision == "f32" else 8)
        options += ["--gpu-memory", "%dKiB" % (tile_bytes * rng.randint(4, 12) // 1024)]
    if rng.random() < 0.2:
        options += ["--order", "random"]
    if rng.random() < 0.2:
        options += ["--repeats", "2"]
    return options, 1, 2e-3


def moment(rng, steps, seconds, after=None):
    """When a fault strikes, as text and as a number: not before `after`."""
    kind = after[0] if after else rng.choice(["step", "step", "time"])
    if kind == "step":
        at = rng.randint(after[1] if after else 0, steps - 1)
        return "@%d" % at, (kind, at)
    least = after[1] if after else 0.0
    at = least + seconds * 10 ** rng.uniform(-4, 0)
    return "@%.9fs" % at, (kind, at)


def faults(rng, machine, steps, seconds):
    """The options of one to three faults, and the devices that are lost or fail."""
    gpus, cores = MACHINES[machine]
    devices = ["host"] + ["gpu%d" % number for number in range(gpus)]
    options, gone = [], set()
    wanted = rng.randint(1, 3)
    while len(options) < 2 * wanted:
        # GPUs have the memory that is lost.
        device = rng.choice(devices + devices[1:])
        what = rng.choice(["slow", "lost", "lost", "lost", "fail", "cores"])
        if what == "cores" and device != "host":
            continue
        text, at = moment(rng, steps, seconds)
        if what == "slow":
            what = "slow:%.3g" % 10 ** rng.uniform(0, 2)
        elif what == "fail":
            what = "fail:%d" % rng.randint(1, 4)
        elif what == "cores":
            what = "cores:%d" % rng.randint(1, cores)
        if what == "lost" or what.startswith("fail"):
            gone.add(device)
        options += ["--fault", "%s:%s%s" % (device, what, text)]
        returns = 0.5 if what == "lost" else 0.2
        if rng.random() < returns:
            text, _ = moment(rng, steps, seconds, at)
            options += ["--fault", "%s:back%s" % (device, text)]
    return options, len(gone) == len(devices)


def schedule(rng):
    """A random command without the program, and whether it may lose all devices."""
    machine = rng.choice(sorted(MACHINES))
    workload = rng.choice([grid, grid, product, product, transformer, dense])
    options, steps, seconds = workload(rng)
    if workload in (grid, product):
        steps_of(options, steps, rng)
    options += ["--machine", machine, "--verify", "--seed", str(rng.randint(1, 1000))]
    if rng.random() < 0.4:
        options += ["--noise", "%.2f" % rng.uniform(0.01, 0.3)]
    struck, may_lose_all = faults(rng, machine, steps, seconds)
    return ["run"] + options + struck, may_lose_all


def verdict(program, command, may_lose_all):
    """What is wrong with a run, and what it said; None if nothing."""
    try:
        ran = subprocess.run(
            [program] + command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return "hung", "no end after %d s" % LIMIT
    said = (ran.stdout + ran.stderr).strip()
    if "panicked" in said or ran.returncode not in (0, 1, 2):
        return "crashed (status %d)" % ran.returncode, said
    if ran.returncode == 0:
        proven = re.search(r"(Verified|Result) +right", said)
        return None if proven else ("not verified", said)
    if "wrong" in said.lower():
        return "wrong", said
    is_lost = "no device is left" in said or "lost" in said
    if ran.returncode == 1 and may_lose_all and is_lost:
        return None
    return "refused (status %d)" % ran.returncode, said


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="of all schedules (1)")
    parser.add_argument("--count", type=int, default=200, help="of schedules (200)")
    parser.add_argument("--program", default="target/release/pdawl", help="pdawl's path")
    parser.add_argument("--verbose", action="store_true", help="print every command")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    failed = 0
    for number in range(args.count):
        command, may_lose_all = schedule(rng)
        if args.verbose:
            print(number, shlex.join(command), flush=True)
        found = verdict(args.program, command, may_lose_all)
        if found:
            failed += 1
            kind, said = found
            print("%s: pdawl %s" % (kind, shlex.join(command)))
            print("    " + "\n    ".join(said.splitlines()[-6:]), flush=True)
    print("%d of %d schedules failed (seed %d)" % (failed, args.count, args.seed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
