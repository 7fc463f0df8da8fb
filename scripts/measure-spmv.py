#!/usr/bin/env python3
"""Measures products of sparse matrices on a machine with a GPU.

    scripts/measure-spmv.py OUTDIR [--pdawl PATH] [--budget 480]
        [--only unlimited,quarter,cusparse,host] [--repeats 5] [--model FILE]
        [MATRIX ...]

A MATRIX is an argument of `pdawl matrix generate`. The default is look-alikes of
the PDAWL paper's five matrices at full size and ten other matrices. The script
measures for each matrix:

* the time of a product by cuSPARSE, if CuPy is available;
* with unlimited GPU memory, and with GPU memory for a quarter of the matrix:
  the strategies cpu, gpu and fixed shares over a few steps, and then the best of
  these and dawl (with --model pdawl, too) over 100 steps, interleaved;
* the fraction of the host's copy bandwidth (as `pdawl machine save` measures it) that
  its cores reach, their speed-up over one of them, and the imbalance of its workers.

OUTDIR receives spmv.json, an array with one entry per matrix that contains the
reports of the program, and provenance.txt. At the end of the budget (in seconds)
the script leaves out the remaining commands and notes them. The last lines are a
summary: throughput of the adaptive strategies over the best of the others, with
and without the time of probes."""

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
import tomllib

MATRICES = [
    "like:FullChip", "like:eu-2005", "like:in-2004", "like:circuit5M",
    "uniform:1000000,16", "banded:1000000,8", "rmat:20,16", "uniform:4000000,4",
    "banded:200000,50", "rmat:18,64", "uniform:200000,100", "banded:4000000,1",
    "rmat:22,4", "uniform:8000000,2", "like:kmer_U1a",
]
# Shares of the CPU; small ones if the GPU can hold the whole matrix.
SHARES = {"all": ["0.01", "0.02", "0.05"], "quarter": [f"0.{n}" for n in range(1, 10)] + ["0.95"]}
STEPS = 100
# Adaptive strategies.
ADAPTIVE = ["dawl", "pdawl"]
# Size of a matrix entry in double precision.
ENTRY_BYTES = 12
# Steps longer than this many seconds get fewer repeats.
LONG_STEP = 0.02


class Measurement:
    """Runs the program within the time budget and keeps a log."""

    def __init__(self, options):
        self.options = options
        self.start = time.monotonic()
        self.log = []

    def left(self):
        return self.options.budget - (time.monotonic() - self.start)

    def note(self, text):
        line = f"[{time.monotonic() - self.start:4.0f} s] {text}"
        self.log.append(line)
        print(line, file=sys.stderr, flush=True)

    def pdawl(self, *words):
        """Returns the program's report, or None after a failure or without time."""
        words = [str(word) for word in words]
        command = "pdawl " + " ".join(words)
        if self.left() < 5:
            self.note(f"left out: {command}")
            return None
        try:
            done = subprocess.run(
                [self.options.pdawl, *words, "--format", "json"],
                capture_output=True, text=True, timeout=max(self.left(), 5), check=False,
            )
        except subprocess.TimeoutExpired:
            self.note(f"timeout: {command}")
            return None
        if done.returncode != 0:
            self.note(f"{command}: {done.stderr.strip()}")
            return None
        self.note(command)
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
            words = ["run", "spmv", "--matrix", path, "--strategy", "cpu", "--steps", 10]
            entry["cpu"] = self.pdawl(*words)
            entry["one_core"] = self.pdawl(*words, "--devices", "host:1")
            entry["copy_bandwidth"] = self.copy_bandwidth()
        os.remove(path)
        return entry

    def copy_bandwidth(self):
        """Bytes a second that all cores read and write."""
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PDAWL_MACHINES"] = folder
            saved = self.pdawl("machine", "save", "measured", "--copy-size", "512MiB")
            del os.environ["PDAWL_MACHINES"]
            if saved is None:
                return None
            with open(os.path.join(folder, "measured.toml"), "rb") as file:
                return tomllib.load(file)["host"]["memory_bandwidth"]

    def strategies(self, names, repeats, *run):
        """Runs strategies in turns; returns the runs' figures by strategy."""
        model = {"pdawl": f" --model {self.options.model}"}
        cases = [("--case", f"--strategy {name}{model.get(name, '')}") for name in names]
        words = ["bench", "--repeats", repeats, *itertools.chain(*cases), *run]
        report = self.pdawl(*words)
        return report and {
            run["report"]["policy"]: {
                "seconds": run["seconds"],
                "setup_seconds": run["report"]["setup_seconds"],
                "probe_seconds": run["report"]["details"]["probe_seconds"],
            }
            for run in report["runs"]
        }

    def cusparse(self, path):
        if importlib.util.find_spec("cupy") is None:
            self.note("CuPy is not available: no comparison with cuSPARSE")
            return None
        # A separate process, so that its memory is freed.
        done = subprocess.run(
            [sys.executable, os.path.realpath(__file__), "--cusparse", path],
            capture_output=True, text=True, check=False, timeout=max(self.left(), 5),
        )
        if done.returncode != 0:
            self.note(f"cuSPARSE: {done.stderr.strip().splitlines()[-1:]}")
            return None
        return json.loads(done.stdout)

    def compare(self, path, memory, limit, vectors):
        run = ["run", "spmv", "--matrix", path, *limit]
        fixed = [f"fixed:{share}" for share in SHARES[memory]]
        sweep_repeats = 2 if self.options.repeats >= 5 else 1
        # A GPU without memory for the vectors cannot be used.
        gpu_fits = memory == "all" or limit[1] > vectors
        few = [*run, "--steps", 10]
        sweep = self.strategies(["cpu", "gpu", *fixed], sweep_repeats, *few) if gpu_fits else None
        if sweep is None:
            sweep = self.strategies(["cpu"], sweep_repeats, *few)
        if sweep is None:
            return None
        seconds = {name: statistics.median(of["seconds"]) / 10 for name, of in sweep.items()}
        ranked = sorted(seconds, key=seconds.get)
        # Up to two candidates within 10 % of the fastest.
        best = [s for s in ranked if seconds[s] < 1.1 * seconds[ranked[0]]][:2]
        repeats = self.options.repeats
        if seconds[ranked[0]] > LONG_STEP:
            repeats = max(1, repeats // 3)
        adaptive = ADAPTIVE if self.options.model else ["dawl"]
        final = self.strategies([*best, *adaptive], repeats, *run, "--steps", STEPS)
        return {"sweep": sweep, "final": final}


# Header of the binary form; docs/matrices.md describes it.
BINARY_HEADER = 80


def cusparse_load(path):
    """Loads a matrix in binary form into GPU memory."""
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
    """Seconds of a product in a sequence of `steps`: median of the rounds after the first."""
    import cupy

    x = cupy.random.rand(matrix.shape[1])
    seconds = []
    for _ in range(rounds):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            matrix @ x
        cupy.cuda.Device().synchronize()
        seconds.append((time.perf_counter() - start) / steps)
    # The first round is a warm-up.
    return statistics.median(seconds[1:])


def cusparse_seconds_in_a_graph(matrix, steps):
    """The same as a CUDA graph, without the time of Python calls; None if CuPy
    cannot capture the product."""
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
            seconds = []
            for _ in range(6):
                stream.synchronize()
                start = time.perf_counter()
                graph.launch(stream)
                stream.synchronize()
                seconds.append((time.perf_counter() - start) / steps)
            del y
    except Exception:  # The driver and CuPy raise different types.
        return None
    return statistics.median(seconds[1:])


def cusparse(path):
    """Prints the seconds of a cuSPARSE product with a matrix in binary form."""
    matrix = cusparse_load(path)
    seconds = {
        "seconds": cusparse_seconds(matrix, 100),
        "graph_seconds": cusparse_seconds_in_a_graph(matrix, 20),
    }
    print(json.dumps(seconds))


def step_seconds(result, steps):
    return statistics.median(result["seconds"]) / steps


def ratio_to_best(compared, strategy, probes):
    """Throughput of an adaptive strategy over the best of the others; `probes` adds
    the time of probes."""
    if not compared or not compared["final"]:
        return None
    results = compared["final"]
    adaptive = results.get(strategy)
    if adaptive is None:
        return None
    seconds = statistics.median(adaptive["seconds"])
    seconds += adaptive["probe_seconds"] if probes else 0.0
    others = (r for name, r in results.items() if name not in ADAPTIVE)
    return min(statistics.median(r["seconds"]) for r in others) / seconds


def summary(entries):
    lines = []
    ratios = {}
    for entry in entries:
        words = [f"{entry['matrix']:<20}"]
        for memory, strategy, probes in itertools.product(("all", "quarter"), ADAPTIVE, (False, True)):
            ratio = ratio_to_best(entry.get(memory), strategy, probes)
            key = f"{memory}, {strategy}" + (", with probes" if probes else "")
            if ratio is not None:
                ratios.setdefault(key, []).append(ratio)
                words.append(f"{key} {ratio:.3f}")
        compared = entry.get("all") or {}
        gpu = (compared.get("sweep") or {}).get("gpu")
        gpu_final = (compared.get("final") or {}).get("gpu")
        theirs = entry.get("cusparse")
        if (gpu or gpu_final) and theirs:
            ours = step_seconds(gpu_final, STEPS) if gpu_final else step_seconds(gpu, 10)
            least = min(s for s in theirs.values() if s)
            ratios.setdefault("cuSPARSE", []).append(least / ours)
            words.append(f"cuSPARSE {least / ours:.2f} ({ours * 1e6:.0f} us)")
        host, bandwidth = entry.get("cpu"), entry.get("copy_bandwidth")
        if host and bandwidth:
            of = host["workload"]["parameters"]
            # 12 bytes an entry, 2 + 8 a row, and 8 an element of the vector.
            bytes_ = ENTRY_BYTES * of["nonzeros"] + 10 * of["rows"] + 8 * of["columns"]
            ratio = bytes_ * of["steps"] / host["seconds"] / bandwidth
            words.append(f"host {ratio:.2f} of copy bandwidth")
        if host and entry.get("one_core"):
            words.append(f"{entry['one_core']['seconds'] / host['seconds']:.1f} x one core")
        pools = [d["worker_imbalance"] for d in (entry.get("cpu") or {}).get("devices", []) if d["units"]]
        words += [f"worker imbalance {100 * i:.1f} %" for i in pools if i is not None]
        lines.append("; ".join(words))
    for name, values in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, values)))
        lines.append(f"{name}: {len(values)} matrices, geometric mean {mean:.3f}, least {min(values):.3f}")
    return lines


def provenance(options):
    def output_of(*command):
        if shutil.which(command[0]) is None:
            return f"{command[0]}: not available"
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return f"$ {' '.join(command)}\n{done.stdout.strip()}"

    return [
        f"date: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}",
        f"system: {platform.platform()}",
        output_of(options.pdawl, "--version"),
        output_of("lscpu"),
        output_of("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv"),
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
    parser.add_argument("--repeats", type=int, default=5, help="repeats of the final comparison")
    parser.add_argument("--model", help="model file; adds the strategy pdawl")
    parser.add_argument(
        "--only", default="unlimited,quarter,cusparse,host", help="the measurements"
    )
    options = parser.parse_intermixed_args()
    options.pdawl = os.path.realpath(options.pdawl)
    if options.model and not os.path.isfile(options.model):
        parser.error(f"--model {options.model}: no such file; an example is models/h200-spmv.json")
    options.model = options.model and os.path.realpath(options.model)
    options.only = options.only.split(",")
    os.makedirs(options.out, exist_ok=True)
    measurement = Measurement(options)
    entries = []
    ram_disk = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=ram_disk) as folder:
        for name in options.matrices:
            if measurement.left() < 10:
                measurement.note(f"left out: {name}")
                continue
            entries.append(measurement.matrix(name, folder))
            with open(os.path.join(options.out, "spmv.json"), "w", encoding="utf-8") as out:
                json.dump(entries, out)
    lines = [*provenance(options), "", *measurement.log, "", *summary(entries)]
    with open(os.path.join(options.out, "provenance.txt"), "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    print("\n".join(summary(entries)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cusparse"]:
        cusparse(sys.argv[2])
    else:
        main()
