"""Reads what pdawl writes: comparisons of strategies, datasets, models, and how
models predicted.

Whatever is read is checked for its schema's name and version first, and a file
that is something else, or newer, stops the notebook with its name. Simulated
and measured figures stay apart: every table has a column `simulated`.
"""

import json
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent

BENCH = "pdawl-bench/1"
SAMPLES = "pdawl-samples/1"
MODEL = "pdawl-model/1"
CHECK = "pdawl-model-check/1"


class Unreadable(Exception):
    """A file that is not what its place says."""


def origin(simulated):
    """The word for titles."""
    return "simulated" if simulated else "measured"


def relative(path):
    """A path as it is written in the text: from the repository's root."""
    return str(Path(path).resolve().relative_to(ROOT))


def _require(found, wanted, path):
    if found != wanted:
        raise Unreadable(f"{path} is of format {found!r}, and these notebooks read {wanted!r}")


# Comparisons of strategies


def benches(folder=ROOT / "datasets"):
    """Every comparison in the files bench.json below a folder, a row a strategy.

    `seconds` are those of all steps, `whole_seconds` those of the whole run:
    setup (the grid's copy to the devices, probes), steps, and gather (the
    result's copy back). Both are medians over the runs. `cores` counts the
    CPU's cores that took part, and `gpus` the GPUs that could. Entries without
    a report, whose command failed, are left out.
    """
    rows = []
    for path in sorted(Path(folder).rglob("bench.json")):
        for entry in json.loads(path.read_text()):
            if entry["report"] is not None:
                rows += _results(entry, path)
    if not rows:
        raise Unreadable(
            f"there is no bench.json below {folder}; scripts/paper-reports.sh makes some"
        )
    return pd.DataFrame(rows)


def _results(entry, path):
    report = entry["report"]
    _require(report.get("schema"), BENCH, path)
    machine, grid = report["machine"], report["workload"]["parameters"]
    devices = machine["devices"]
    common = {
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
    return [common | _times(result) for result in report["results"]]


def _times(result):
    parts = [pd.Series(result[name]) for name in ("seconds", "setup_seconds", "gather_seconds")]
    return {
        "strategy": result["strategy"],
        "runs": len(parts[0]),
        "seconds": parts[0].median(),
        "whole_seconds": sum(parts).median(),
    }


# Datasets


def dataset(path):
    """The runs of one dataset, a row a run: the columns of docs/datasets.md,
    and `file`, `step_seconds` and `size_bytes` (of the whole grid)."""
    path = Path(path)
    with path.open() as lines:
        _require(lines.readline().strip().removeprefix("# "), SAMPLES, path)
    # A machine or a device may be called `nan`; only an empty cell is unknown.
    runs = pd.read_csv(path, comment="#", keep_default_na=False, na_values=[""])
    return runs.assign(
        file=relative(path),
        step_seconds=runs["seconds"] / runs["steps"],
        size_bytes=runs["known.units_count"] * runs["known.unit_bytes"],
    )


def profiles(folder=ROOT / "datasets"):
    """The runs that models learned: those of the files MACHINE.csv below a
    folder, whatever the folders' names are."""
    tables = [dataset(path) for path in sorted(Path(folder).rglob("*.csv"))]
    found = [runs for runs in tables if set(runs["machine"]) == {Path(runs["file"][0]).stem}]
    if not found:
        raise Unreadable(f"there is no profile below {folder}; `pdawl profile` makes some")
    return pd.concat(found, ignore_index=True)


def provenance(file):
    """What the lines `key: value` of a dataset's head say, by key. Of a profile
    that was continued, the last value."""
    pairs = {}
    with (ROOT / file).open() as lines:
        next(lines)
        for line in lines:
            if not line.startswith("#"):
                break
            key, _, value = line.removeprefix("#").strip().partition(": ")
            pairs[key] = value
    return pairs


# Models


def models(folder=ROOT / "models"):
    """The model files of a folder, each as the program wrote it: a dictionary,
    with `file`."""
    found = []
    for path in sorted(Path(folder).glob("*.json")):
        model = json.loads(path.read_text())
        _require(model.get("format"), MODEL, path)
        found.append(model | {"file": relative(path)})
    if not found:
        raise Unreadable(f"there is no model in {folder}; `pdawl train` makes some")
    return found


def candidates(found):
    """How the families of models did in the cross-validation, a row a family.
    `chosen` is the one that plans; "prior", "naive" and "roofline" learn nothing.
    Models that were adapted from another machine's are left out: their
    validation is of that machine."""
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
            for place, candidate in enumerate(validation["candidates"]):
                chosen = place == validation["chosen"]
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
    """Runs that the models `found` had not learned, a row a run: the files
    held.json below a folder, with the dataset held.csv beside each.

    `step_seconds`, what the run took, is virtual where `simulated` is true.
    `model_seconds`, and one column `..._seconds` for each way that learns
    nothing, are predictions of it.
    """
    known = {model["checksum"] for model in found}
    tables = [_held_out(path, known) for path in sorted(Path(folder).rglob("held.json"))]
    if not tables:
        raise Unreadable(
            f"there is no held.json below {folder}; scripts/paper-reports.sh makes some"
        )
    return pd.concat(tables, ignore_index=True)


def _held_out(path, known):
    report = json.loads(path.read_text())
    _require(report.get("schema"), CHECK, path)
    if report["checksum"] not in known:
        raise Unreadable(
            f"{path} is of a model of {report['machine']} that is no longer in models/; "
            "run scripts/paper-reports.sh again"
        )
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
        raise Unreadable(f"{path} is not of the runs of held.csv beside it")
    return both
