#!/usr/bin/env python3
"""Kills and stops ranks of `mpirun --enable-recovery ... pdawl run` at random moments, over
all workloads of nodes, and says which runs did not end as they must.

    scripts/kill-ranks.py --program target/release/pdawl --seed 1 --count 60

A run must end within ten seconds of the fault and of its usual time, every rank by itself,
and either rank 0 prints a report that says 'right', or a rank that is left says why there is
none. Each workload runs first without faults, which gives its usual time. The same seed makes
the same choices; the moments within a run differ, as runs do.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

WORKLOADS = [
    "stencil --size 1500 --steps 60",
    "matmul --size 1100 --tile 96",
    "spmv --matrix rmat:14,16 --steps 30",
    "spmv --matrix rmat:14,16 --iterate --steps 30",
    "pagerank --matrix rmat:14,16 --steps 30",
    "pagerank --matrix rmat:13,16 --steps 60 --tolerance 1e-9",
    # Mostly preparation.
    "spmv --matrix rmat:18,16 --steps 3",
    "lu --size 1000 --tile 96",
    "fft --size 1024 --tile 32",
    "sort --size 500000",
    "convolution --size 700 --filter 15 --tile 64",
]
# Needs an OpenCL driver for the CPU. Each rank examines the kernel before the first task.
KERNEL = os.path.join(os.path.dirname(__file__), "..", "kernels", "examples", "matmul.json")
KERNELS = [f"kernel {os.path.realpath(KERNEL)} -D n=256 --steps 20"]
SPREADS = ["together", "together", "oblivious", "static", "steal"]

# Seconds for the end after a fault.
LIMIT = 10


class Run:
    """One run over ranks of this machine."""

    def __init__(self, options, words, folder):
        self.out = open(os.path.join(folder, "out"), "w+b")
        self.err = open(os.path.join(folder, "err"), "w+b")
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", *options.recovery.split()]
        command += ["--mca", "btl", options.btl, "-n", str(options.ranks), options.program]
        devices = [] if words[0] == "kernel" else ["--devices", "host:1"]
        command += ["run", *words, *devices, "--verify", "--format", "json"]
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.program = os.path.realpath(options.program)
        self.began = time.monotonic()
        self.mpirun = subprocess.Popen(command, stdout=self.out, stderr=self.err, env=environment)

    def ranks(self):
        """The processes of the ranks that are there, by rank."""
        found = {}
        try:
            children = open(f"/proc/{self.mpirun.pid}/task/{self.mpirun.pid}/children").read().split()
        except OSError:
            return found
        for child in children:
            try:
                if os.path.realpath(f"/proc/{child}/exe") != self.program:
                    continue
                variables = open(f"/proc/{child}/environ", "rb").read().split(b"\0")
            except OSError:
                continue
            for variable in variables:
                name, _, value = variable.partition(b"=")
                if name == b"OMPI_COMM_WORLD_RANK":
                    found[int(value)] = int(child)
        return found

    def wait(self, until):
        """Waits for the end. Whether it came in time."""
        try:
            self.mpirun.wait(max(0.1, until - time.monotonic()))
            return True
        except subprocess.TimeoutExpired:
            return False

    def abort(self):
        for pid in [*self.ranks().values(), self.mpirun.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.mpirun.wait()

    def texts(self):
        texts = []
        for file in (self.out, self.err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        return texts


def right(out):
    """Whether rank 0 has printed a report that says right."""
    start = out.find("{")
    try:
        report, _ = json.JSONDecoder().raw_decode(out[start:] if start >= 0 else "")
    except ValueError:
        return None
    return bool((report.get("verification") or {}).get("right"))


def judge(ended, out, err):
    """What is wrong with a run, if something is."""
    if "panicked" in err:
        return "a panic"
    if not ended:
        return "it did not end"
    verdict = right(out)
    if verdict is False:
        return "a wrong result"
    messages = [line for line in err.splitlines() if line.startswith("pdawl:")]
    if verdict is None and not messages:
        return "no result, and nobody says why"
    if verdict and any("start the run again" in line or "was lost before it had written" in line for line in messages):
        excluded = [line for line in messages if "takes it for lost" not in line and "takes rank" not in line]
        if excluded:
            return "a right result, and another rank says that there is none: " + excluded[0]
    return None


def usual(options, words):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(options, words, folder)
        ended = run.wait(run.began + 120)
        seconds = time.monotonic() - run.began
        if not ended:
            run.abort()
        out, err = run.texts()
        if not ended or not right(out):
            sys.exit(f"without faults, {' '.join(words)} is not right:\n{out}\n{err}")
        return seconds


def strike(run, victim, fault, length):
    """Kills or stops a rank, if it is there. The instant from which it must end."""
    ranks = run.ranks()
    if victim not in ranks:
        return None
    try:
        if fault == "kill":
            os.kill(ranks[victim], signal.SIGKILL)
        else:
            os.kill(ranks[victim], signal.SIGSTOP)
            time.sleep(length)
            os.kill(ranks[victim], signal.SIGCONT)
    except OSError:
        return None
    return time.monotonic()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/pdawl")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="faults that strike a rank")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--btl", default="vader,self", help="Open MPI's transports")
    parser.add_argument(
        "--recovery",
        default="--enable-recovery",
        help="with what the others go on; '--with-ft ulfm' for Open MPI 5",
    )
    parser.add_argument("--only", default="", help="workloads that begin so")
    parser.add_argument("--kernels", action="store_true", help="also kernels in OpenCL C")
    parser.add_argument("--late", action="store_true", help="strike near the usual end")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    known = WORKLOADS + (KERNELS if options.kernels else [])
    workloads = [line for line in known if line.startswith(options.only)]
    times = {line: usual(options, line.split()) for line in workloads}
    for line, seconds in times.items():
        print(f"usual {seconds:6.2f} s  {line}", flush=True)
    kinds = {"right": 0, "ended": 0}
    bad = missed = struck = 0
    while struck < options.count and missed < 10 * options.count:
        line = chance.choice(workloads)
        words = [*line.split(), "--spread", chance.choice(SPREADS)]
        victim = chance.randrange(options.ranks)
        fault = chance.choice(["kill", "stop"])
        length = chance.uniform(0.5, 5)
        usually = times[line]
        moment = usually * (chance.uniform(0.85, 1.05) if options.late else chance.uniform(0, 1.05))
        with tempfile.TemporaryDirectory() as folder:
            run = Run(options, words, folder)
            time.sleep(moment)
            since = strike(run, victim, fault, length)
            # What is left of the work takes longer with fewer ranks, and the tasks may begin anew.
            ended = run.wait((since or time.monotonic()) + LIMIT + 2 * usually)
            late = time.monotonic() - (since or run.began)
            left = run.ranks()
            if not ended:
                run.abort()
            out, err = run.texts()
        if since is None:
            missed += 1
            continue
        struck += 1
        wrong = judge(ended, out, err)
        what = f"{fault}{'' if fault == 'kill' else f' {length:.1f} s'} of rank {victim} after {moment:.2f} s"
        kinds["right" if right(out) else "ended"] += 1
        print(f"{'BAD ' if wrong else 'fine'} {late:5.1f} s  {what}: {' '.join(words)}", flush=True)
        if wrong:
            bad += 1
            print(f"  {wrong}; left: {left}\n  " + "\n  ".join((err or out).splitlines()[-12:]), flush=True)
    print(f"{struck} faults, {missed} missed: {kinds['right']} right, {kinds['ended']} ended, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
