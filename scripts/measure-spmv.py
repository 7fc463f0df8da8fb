#!/usr/bin/env python3
"""Measures products of sparse matrices on a machine with a GPU.

    scripts/measure-spmv.py OUTDIR [--pdawl PATH] [--budget 480]
        [--only unlimited,quarter,cusparse,host] [--repeats 5] [--model FILE]
        [MATRIX ...]

A MATRIX is what `pdawl matrix generate` takes; without any, look-alikes of the
PDAWL paper's five matrices at full size, and ten others. Of each:

* cuSPARSE's time of a product, by way of CuPy where that is there;
* with the GPU's memory unlimited, and limited to a quarter of the matrix: the
  strategies cpu, gpu and fixed shares over a few steps, and then the best of
  these and dawl over 100 steps in turns, with a model pdawl as well;
* what the host reaches of its copy bandwidth, how many times as fast as one
  core in a plain loop it is, and how equally its workers are occupied.

OUTDIR gets spmv.json, an array with an entry a matrix in which every report is
as the program printed it, and provenance.txt. Nothing is begun that is not
expected to end within the budget, in seconds; what is left out is noted. The
last lines sum up: the ratios of adapting to the best of the others, with the
time of probes, which is a part of deciding, and without it."""

import argparse
import importlib.util
import itertools
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MATRICES = [
    "like:FullChip", "like:eu-2005", "like:in-2004", "like:circuit5M",
    "uniform:1000000,16", "banded:1000000,8", "rmat:20,16", "uniform:4000000,4",
    "banded:200000,50", "rmat:18,64", "uniform:200000,100", "banded:4000000,1",
    "rmat:22,4", "uniform:8000000,2", "like:kmer_U1a",
]
# The CPU's part. Where the GPU holds everything, little.
SHARES = {"all": ["0.01", "0.02", "0.05"], "quarter": [f"0.{n}" for n in range(1, 10)] + ["0.95"]}
STEPS = 100
# The strategies that adapt.
ADAPTING = ["dawl", "pdawl"]
# Of an entry of a matrix in double precision.
ENTRY_BYTES = 12
# Longer steps than this are repeated less.
LONG = 0.02


class Measuring:
    def __init__(self, options):
        self.options = options
        self.began = time.monotonic()
        self.log = []

    def left(self):
        return self.options.budget - (time.monotonic() - self.began)

    def note(self, text):
        line = f"[{time.monotonic() - self.began:4.0f} s] {text}"
        self.log.append(line)
        print(line, file=sys.stderr, flush=True)

    def pdawl(self, *words):
        """A report of the program; None where there was no time, or it failed."""
        words = [str(word) for word in words]
        told = "pdawl " + " ".join(words)
        if self.left() < 5:
            self.note(f"left out: {told}")
            return None
        try:
            done = subprocess.run(
                [self.options.pdawl, *words, "--format", "json"],
                capture_output=True, text=True, timeout=max(self.left(), 5), check=False,
            )
        except subprocess.TimeoutExpired:
            self.note(f"out of time: {told}")
            return None
        if done.returncode != 0:
            self.note(f"{told}: {done.stderr.strip()}")
            return None
        self.note(told)
        return json.loads(done.stdout)

    def matrix(self, name, folder):
        path = os.path.join(folder, "matrix.pdawl")
        entry = {"matrix": name, "generated": self.pdawl("matrix", "generate", name, path)}
        if entry["generated"] is None:
            return entry
        only = self.options.only
        if "cusparse" in only:
            entry["cusparse"] = self.cusparse(path)
        quarter = entry["generated"]["nonzeros"] * ENTRY_BYTES // 4
        vectors = 8 * (entry["generated"]["rows"] + entry["generated"]["columns"])
        if "unlimited" in only:
            entry["all"] = self.compare(path, "all", [], vectors)
        if "quarter" in only:
            entry["quarter"] = self.compare(path, "quarter", ["--gpu-memory", quarter], vectors)
        if "host" in only:
            entry["cpu"] = self.pdawl(
                "run", "spmv", "--matrix", path, "--strategy", "cpu", "--steps", 10
            )
        os.remove(path)
        return entry

    def cusparse(self, path):
        if importlib.util.find_spec("cupy") is None:
            self.note("no CuPy: nothing is compared with cuSPARSE")
            return None
        # In a process of its own, whose memory is given back.
        done = subprocess.run(
            [sys.executable, os.path.realpath(__file__), "--cusparse", path],
            capture_output=True, text=True, check=False, timeout=max(self.left(), 5),
        )
        if done.returncode != 0:
            self.note(f"cuSPARSE: {done.stderr.strip().splitlines()[-1:]}")
            return None
        return json.loads(done.stdout)

    def compare(self, path, memory, limit, vectors):
        words = ["bench", "spmv", "--matrix", path, *limit]
        fixed = [f"fixed:{share}" for share in SHARES[memory]]
        short = 2 if self.options.repeats >= 5 else 1
        # A GPU without room for the vectors takes no part.
        enough = memory == "all" or limit[1] > vectors
        sweep = self.pdawl(
            *words, "--steps", 10, "--repeats", short, "--strategies", ",".join(["cpu", "gpu", *fixed])
        ) if enough else None
        if sweep is None:
            sweep = self.pdawl(*words, "--steps", 10, "--repeats", short, "--strategies", "cpu")
        if sweep is None:
            return None
        took = {r["strategy"]: statistics.median(r["seconds"]) / 10 for r in sweep["results"]}
        ranked = sorted(took, key=took.get)
        # Those that may be the best, by a short run.
        best = [s for s in ranked if took[s] < 1.1 * took[ranked[0]]][:2]
        repeats = self.options.repeats
        if took[ranked[0]] > LONG:
            repeats = max(1, repeats // 3)
        adapting, model = ["dawl"], []
        if self.options.model:
            adapting, model = ADAPTING, ["--model", self.options.model]
        final = self.pdawl(
            *words, *model, "--steps", STEPS, "--repeats", repeats,
            "--strategies", ",".join([*best, *adapting]),
        )
        return {"sweep": sweep, "final": final}


# Of the binary form: see src/matrix/cache/header.rs.
BINARY_HEADER = 80


def cusparse_load(path):
    """The matrix, on the device."""
    import cupy
    import cupyx.scipy.sparse
    import numpy

    with open(path, "rb") as binary:
        header = numpy.frombuffer(binary.read(BINARY_HEADER), dtype=numpy.uint64)
        rows, columns, nonzeros = (int(n) for n in header[5:8])
        starts = numpy.fromfile(binary, numpy.uint64, rows + 1)
        column_of = numpy.fromfile(binary, numpy.uint32, nonzeros)
        values = numpy.fromfile(binary, numpy.float64, nonzeros)
    arrays = values, column_of.astype(numpy.int32), starts.astype(numpy.int32)
    return cupyx.scipy.sparse.csr_matrix(
        tuple(cupy.asarray(a) for a in arrays), shape=(rows, columns)
    )


def cusparse_seconds(matrix, steps, rounds=6):
    """Seconds of a product, of many in a row: the median round after the first."""
    import cupy

    x = cupy.random.rand(matrix.shape[1])
    took = []
    for _ in range(rounds):
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        for _ in range(steps):
            matrix @ x
        cupy.cuda.Device().synchronize()
        took.append((time.perf_counter() - began) / steps)
    # The first one warms up.
    return statistics.median(took[1:])


def cusparse_seconds_in_a_graph(matrix, steps):
    """The same, recorded once and then launched by the device alone, which leaves
    out what Python takes for a call; None where CuPy cannot record it."""
    import cupy

    x = cupy.random.rand(matrix.shape[1])
    stream = cupy.cuda.Stream(non_blocking=True)
    try:
        with stream:
            y = matrix @ x
            stream.synchronize()
            stream.begin_capture()
            for _ in range(steps):
                y = matrix @ x
            graph = stream.end_capture()
            took = []
            for _ in range(6):
                stream.synchronize()
                began = time.perf_counter()
                graph.launch(stream)
                stream.synchronize()
                took.append((time.perf_counter() - began) / steps)
            del y
    except Exception:  # Of the driver, or of CuPy: each has its own.
        return None
    return statistics.median(took[1:])


def cusparse(path):
    """Prints cuSPARSE's seconds of a product of a matrix in binary form."""
    matrix = cusparse_load(path)
    seconds = {
        "seconds": cusparse_seconds(matrix, 100),
        "graph_seconds": cusparse_seconds_in_a_graph(matrix, 20),
    }
    print(json.dumps(seconds))


def step(result, steps):
    return statistics.median(result["seconds"]) / steps


def reached(compared, strategy, probes):
    """What adapting reaches of the best of the others, with the probes' time or
    without."""
    if not compared or not compared["final"]:
        return None
    results = {r["strategy"]: r for r in compared["final"]["results"]}
    adapting = results.get(strategy)
    if adapting is None:
        return None
    took = statistics.median(
        s + (p if probes else 0.0) for s, p in zip(adapting["seconds"], adapting["probe_seconds"])
    )
    others = (r for name, r in results.items() if name not in ADAPTING)
    return min(statistics.median(r["seconds"]) for r in others) / took


def summary(entries):
    lines = []
    ratios = {}
    for entry in entries:
        words = [f"{entry['matrix']:<20}"]
        for memory, strategy, probes in itertools.product(("all", "quarter"), ADAPTING, (False, True)):
            ratio = reached(entry.get(memory), strategy, probes)
            key = f"{memory}, {strategy}" + (", probes too" if probes else "")
            if ratio is not None:
                ratios.setdefault(key, []).append(ratio)
                words.append(f"{key} {ratio:.3f}")
        gpu = [r for r in ((entry.get("all") or {}).get("sweep") or {}).get("results", []) if r["strategy"] == "gpu"]
        final = (entry.get("all") or {}).get("final")
        gpu_final = [r for r in (final or {}).get("results", []) if r["strategy"] == "gpu"]
        theirs = entry.get("cusparse")
        if (gpu or gpu_final) and theirs:
            ours = step(gpu_final[0], STEPS) if gpu_final else step(gpu[0], 10)
            least = min(s for s in theirs.values() if s)
            ratios.setdefault("cuSPARSE", []).append(least / ours)
            words.append(f"cuSPARSE {least / ours:.2f} ({ours * 1e6:.0f} us)")
        host = ((entry.get("all") or {}).get("sweep") or {}).get("host")
        if host:
            words.append(f"host {host['ratio']:.2f} of copies")
            if host["speedup"]:
                words.append(f"{host['speedup']:.1f} x one core")
        pools = [d["worker_imbalance"] for d in (entry.get("cpu") or {}).get("devices", []) if d["units"]]
        words += [f"workers {100 * i:.1f} % uneven" for i in pools if i is not None]
        lines.append("; ".join(words))
    for name, values in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, values)))
        lines.append(f"{name}: {len(values)} matrices, geometric mean {mean:.3f}, least {min(values):.3f}")
    return lines


def provenance(options):
    def said(*command):
        if shutil.which(command[0]) is None:
            return f"{command[0]}: not there"
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return f"$ {' '.join(command)}\n{done.stdout.strip()}"

    return [
        f"date: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}",
        f"system: {platform.platform()}",
        said(options.pdawl, "--version"),
        said("lscpu"),
        said("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv"),
        f"budget: {options.budget} s; matrices: {' '.join(options.matrices)}",
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", metavar="OUTDIR")
    parser.add_argument("matrices", nargs="*", default=MATRICES, metavar="MATRIX")
    parser.add_argument("--pdawl", default="./target/release/pdawl")
    parser.add_argument("--budget", type=float, default=480.0)
    parser.add_argument("--repeats", type=int, default=5, help="of the runs that are compared")
    parser.add_argument("--model", help="a model's file, with which pdawl is compared as well")
    parser.add_argument(
        "--only", default="unlimited,quarter,cusparse,host", help="what is measured of each matrix"
    )
    options = parser.parse_intermixed_args()
    options.pdawl = os.path.realpath(options.pdawl)
    if options.model and not os.path.isfile(options.model):
        parser.error(f"--model {options.model}: there is no such file; name a model's, as models/h200-spmv.json")
    options.model = options.model and os.path.realpath(options.model)
    options.only = options.only.split(",")
    os.makedirs(options.out, exist_ok=True)
    measuring = Measuring(options)
    entries = []
    fast = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=fast) as folder:
        for name in options.matrices:
            if measuring.left() < 10:
                measuring.note(f"left out: {name}")
                continue
            entries.append(measuring.matrix(name, folder))
            with open(os.path.join(options.out, "spmv.json"), "w", encoding="utf-8") as out:
                json.dump(entries, out)
    lines = [*provenance(options), "", *measuring.log, "", *summary(entries)]
    with open(os.path.join(options.out, "provenance.txt"), "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    print("\n".join(summary(entries)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cusparse"]:
        cusparse(sys.argv[2])
    else:
        main()
