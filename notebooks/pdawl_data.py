"""Reads files of pdawl: comparisons of strategies and of policies, machine files,
datasets, models, and evaluations of models.

Every function checks the schema and its version first. A file with another
schema or a newer version raises `Unreadable` with the file's name. Every table
has a column `simulated`, which separates simulated and measured figures.
"""

import itertools
import json
import tomllib
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent

BENCH = "pdawl-bench/2"
TASKS = "pdawl-tasks/1"
MACHINE = "pdawl-machine/1"
SAMPLES = "pdawl-samples/1"
MODEL = "pdawl-model/1"
CHECK = "pdawl-model-check/1"


class Unreadable(Exception):
    """A missing file, or one with an unexpected format."""


def origin(simulated):
    """The word for titles: `simulated` or `measured`."""
    return "simulated" if simulated else "measured"


def relative(path):
    """The path relative to the repository's root."""
    return str(Path(path).resolve().relative_to(ROOT))


def _require(found, wanted, path):
    if found != wanted:
        raise Unreadable(f"{path} has the format {found!r}; these notebooks read {wanted!r}")


# Comparisons of strategies


def benches(folder=ROOT / "datasets"):
    """The comparisons in all files bench.json below a folder, one row per strategy.

    `seconds` is the time of all steps. `whole_seconds` is the time of the whole
    run: setup (transfer of the grid to the devices, probes), steps, and gather
    (transfer of the result to the host). Both are of the run with the median time.
    `cores` and `gpus` count the CPU cores and the GPUs available to the run. Entries
    of failed commands are left out.
    """
    rows = []
    for path in sorted(Path(folder).rglob("bench.json")):
        for entry in json.loads(path.read_text()):
            if entry["report"] is not None:
                rows += _results(entry, path)
    if not rows:
        raise Unreadable(
            f"no bench.json below {folder}; scripts/paper-reports.sh makes some"
        )
    return pd.DataFrame(rows)


def _results(entry, path):
    report = entry["report"]
    _require(report.get("schema"), BENCH, path)
    return [_common(run["report"], entry, path) | _times(run) for run in report["runs"]]


def _common(report, entry, path):
    machine, grid = report["machine"], report["workload"]["parameters"]
    devices = machine["devices"]
    return {
        "machine": machine["name"],
        "simulated": machine["simulated"],
        "nx": grid["nx"],
        "ny": grid["ny"],
        "nz": grid["nz"],
        "precision": grid["precision"],
        "steps": grid["steps"],
        "gpu_memory": entry["gpu_memory"],
        "cores": sum(d["compute_units"] for d in devices if d["kind"] == "cpu"),
        "gpus": sum(d["kind"] == "gpu" for d in devices),
        "version": report["version"],
        "command": entry["command"],
        "file": relative(path),
    }


def _times(run):
    """Those of the run with the median time."""
    report = run["report"]
    parts = [report["seconds"], report["setup_seconds"], report["details"]["gather_seconds"]]
    return {
        "strategy": report["policy"],
        "runs": len(run["seconds"]),
        "seconds": report["seconds"],
        "whole_seconds": sum(parts),
    }


# Comparisons of policies


def task_sets(folder=ROOT / "datasets" / "reports" / "tasks"):
    """The comparisons of policies on tasks that share data, one row per set, size and
    policy: the columns of `rows` in datasets/README.md, `set`, `machine`, `simulated`,
    `gpus`, `gpu_memory` (bytes; NaN: no limit), `version` and `file`.

    `seconds` are virtual where `simulated` is true; `deciding_seconds` never are.
    """
    rows = []
    for path in sorted(Path(folder).glob("*.json")):
        report = json.loads(path.read_text())
        _require(report.get("schema"), TASKS, path)
        common = {name: report[name] for name in ("set", "machine", "simulated", "version")} | {
            "gpus": len(report["devices"]),
            "gpu_memory": report["gpu_memory_bytes"],
            "file": relative(path),
        }
        rows += [common | row for row in report["rows"]]
    if not rows:
        raise Unreadable(f"no report in {folder}; scripts/simulated-tasks.py makes some")
    return pd.DataFrame(rows)


# Machine files


def limits(name, folder=ROOT / "datasets" / "machines"):
    """Limits of a machine file: operations per second of all GPUs together in single
    precision, and bytes per second from host memory to them."""
    path = Path(folder) / f"{name}.toml"
    machine = tomllib.loads(path.read_text())
    _require(machine.get("format"), MACHINE, path)
    gpus = [device for device in machine["device"] if device["kind"] == "gpu"]
    links = sum(gpu["link"]["h2d"] for gpu in gpus)
    return {
        "flops": sum(gpu["flops_f32"] for gpu in gpus),
        "bus": min(links, machine["host"].get("bus_bandwidth", links)),
    }


# Datasets


def dataset(path):
    """The runs of a dataset, one per row, with the columns of docs/datasets.md,
    `file`, `step_seconds`, and `size_bytes` (of the whole grid)."""
    path = Path(path)
    with path.open() as lines:
        _require(lines.readline().strip().removeprefix("# "), SAMPLES, path)
    # Only empty cells are unknown values: `nan` is a valid name of a machine.
    runs = pd.read_csv(path, comment="#", keep_default_na=False, na_values=[""])
    return runs.assign(
        file=relative(path),
        step_seconds=runs["seconds"] / runs["steps"],
        size_bytes=runs["known.units_count"] * runs["known.unit_bytes"],
    )


def _is_dataset(path):
    """Whether a file is a dataset of any version."""
    with Path(path).open() as lines:
        return lines.readline().startswith("# pdawl-samples/")


def profiles(folder=ROOT / "datasets"):
    """The training runs of models: the files MACHINE.csv below a folder. Tables that are
    no datasets, such as those of other programs, are left out."""
    paths = [path for path in sorted(Path(folder).rglob("*.csv")) if _is_dataset(path)]
    tables = [dataset(path) for path in paths]
    found = [runs for runs in tables if set(runs["machine"]) == {Path(runs["file"][0]).stem}]
    if not found:
        raise Unreadable(f"no profile below {folder}; `pdawl profile` makes some")
    return pd.concat(found, ignore_index=True)


def commands(file):
    """The commands that made a dataset, from its head: one for each time it was continued."""
    with (ROOT / file).open() as lines:
        head = itertools.takewhile(lambda line: line.startswith("#"), lines)
        pairs = [line.removeprefix("#").strip().partition(": ") for line in head]
    return [value for key, _, value in pairs if key == "command"]


# Models


def models(folder=ROOT / "models"):
    """The model files of a folder, each as a dictionary with the additional key
    `file`."""
    found = []
    for path in sorted(Path(folder).glob("*.json")):
        model = json.loads(path.read_text())
        _require(model.get("format"), MODEL, path)
        found.append(model | {"file": relative(path)})
    if not found:
        raise Unreadable(f"no model in {folder}; `pdawl train` makes some")
    return found


def candidates(found):
    """Cross-validation errors of the model families, one row per family.

    `chosen` marks the model that plans; "prior", "naive" and "roofline" learn
    nothing. Adapted models are left out, since their validation belongs to the
    original machine."""
    rows = []
    for model in found:
        if "adapted" in model:
            continue
        for entry in model["models"]:
            validation = entry["validation"]
            common = {
                "machine": model["machine"],
                "simulated": model["simulated"],
                "kind": entry["kind"],
                "codelet": entry["codelet"],
                "file": model["file"],
            }
            for index, candidate in enumerate(validation["candidates"]):
                chosen = index == validation["chosen"]
                more = {"clusters": candidate["clusters"], "inputs": candidate["inputs"]}
                rows.append(common | _family(candidate["family"], chosen, candidate) | more)
            for baseline in validation["baselines"]:
                rows.append(common | _family(baseline["name"], False, baseline))
    return pd.DataFrame(rows)


def _family(name, chosen, of):
    accuracy, beyond = of["accuracy"], of["beyond"]
    return {
        "family": name,
        "chosen": chosen,
        "mape": accuracy["mape"],
        "r_squared": accuracy["r_squared"],
        "beyond": beyond["mape"] if beyond else float("nan"),
    }


def held_out(found, folder=ROOT / "datasets"):
    """Runs outside of the training data of the models `found`, one per row: the
    files held.json below a folder, each with the dataset held.csv beside it. The
    second result lists the files whose model is not among `found`, since it was
    trained again; their predictions say nothing of the present one.

    `step_seconds` is the run's time; it is virtual where `simulated` is true.
    `model_seconds` and one column `..._seconds` for each baseline are
    predictions of it.
    """
    known = {model["checksum"] for model in found}
    tables, former = [], []
    for path in sorted(Path(folder).rglob("held.json")):
        report = json.loads(path.read_text())
        _require(report.get("schema"), CHECK, path)
        if report["checksum"] in known:
            tables.append(_held_out(path, report))
        else:
            former.append(relative(path))
    if not tables:
        raise Unreadable(
            f"no held.json below {folder} is of a model in models/; "
            "scripts/paper-reports.sh makes some"
        )
    return pd.concat(tables, ignore_index=True), former


def _held_out(path, report):
    rows = []
    for group in report["held_out"]["groups"]:
        names = [f"{baseline['name']}_seconds" for baseline in group["baselines"]]
        for run in group["runs"]:
            row = {key: run[key] for key in ("device", "configuration", "repeat")}
            row |= {"codelet": group["codelet"], "model_seconds": run["predicted"]}
            rows.append(row | dict(zip(names, run["baselines"], strict=True)))
    runs = dataset(path.with_name("held.csv"))
    key = ["device", "codelet", "configuration", "repeat"]
    both = runs.merge(pd.DataFrame(rows), on=key, validate="one_to_one")
    if len(both) != len(runs):
        raise Unreadable(f"{path} does not match the runs of held.csv beside it")
    return both
