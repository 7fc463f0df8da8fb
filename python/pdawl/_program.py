"""What the program `pdawl` does for Python: runs, training cost models, and predicting with them."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Mapping, Sequence, TypedDict, Union

from . import _START, _pdawl
from ._run import _frame

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack


class Report(dict[str, Any]):
    """A report, as the program prints it with `--format json` (docs/report.md)."""

    def frame(self, member: str, index: str | None = None) -> pandas.DataFrame:
        """A member that is a list, as a table."""
        return _frame(self[member], index)


#: What an option takes. Lists are as `sizes=[512, 1024]`; True stands for an option without a value.
Value = Union[str, int, float, bool, "os.PathLike[str]", Sequence[Union[str, int, float]], None]


class TrainOptions(TypedDict, total=False):
    """The options of `pdawl train`."""

    runtime: Value
    libraries: Value
    budget: Value
    kinds: Value
    steps: Value
    seed: Value
    repeats: Value
    configurations: Value
    precision: Value
    sizes: Value
    max_size: Value
    dims: Value
    gpu_memory: Value
    host_memory: Value
    noise: Value
    out: Value
    fresh: Value
    dataset: Value
    no_profile: Value
    name: Value


class PredictOptions(TypedDict, total=False):
    """The options of `pdawl predict stencil` and `spmv`."""

    runtime: Value
    libraries: Value
    input: Value
    coefficients: Value
    size: Value
    nx: Value
    ny: Value
    nz: Value
    dims: Value
    steps: Value
    superstep: Value
    precision: Value
    seed: Value
    gpu_memory: Value
    model: Value
    matrix: Value
    iterate: Value
    irregular: Value
    no_cache: Value


def train(
    machine: str | None = None, *, workload: str = "stencil", **options: Unpack[TrainOptions]
) -> Report:
    """Profiles a machine, this one or a simulated one, and trains its cost model. Options are
    those of `pdawl train`: `train("k40", budget="1m", name="lab")`."""
    given = {"machine": machine, "workload": workload, **options}
    return _run(["train"], given)


def predict(
    workload: str, *, machine: str | None = None, **options: Unpack[PredictOptions]
) -> Report:
    """How long a workload takes by strategy, by a machine's cost model. Options are those of
    `pdawl predict`: `predict("stencil", size=20000, machine="k40").frame("predictions")`."""
    return _run(["predict", workload], {"machine": machine, **options})


def run(workload: str, **options: Value) -> Report:
    """Runs a workload in a process of its own. Options are those of `pdawl run`, of which a list
    gives one several times: `run("cholesky", size=8192, machine="v100x2", policy="heft",
    fault=["gpu0:slow:2@0.005s"])`."""
    return _run(["run", workload], options, again=True)


def _run(command: list[str], options: Mapping[str, object], again: bool = False) -> Report:
    line = [*_START, *command, "--format", "json"]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            line.append(option)
        elif value is not None and value is not False:
            values = [str(one) for one in (value if isinstance(value, (list, tuple)) else [value])]
            # A value may begin with a dash.
            line.extend(f"{option}={one}" for one in (values if again else [",".join(values)]))
    # Ctrl-C reaches the program, too; it ends cleanly and keeps what was measured.
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        try:
            printed, said = ran.communicate()
        except KeyboardInterrupt:
            ran.communicate()
            raise
    if ran.returncode == 0:
        return Report(json.loads(printed))
    why = said.strip() or f"pdawl {command[0]} ended with status {ran.returncode}"
    raise ValueError(why) if ran.returncode == 2 else _pdawl.Error(why)
