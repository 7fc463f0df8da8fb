"""Sessions, and the same calls without one."""

from __future__ import annotations

import json
from typing import Any, Callable, Sequence

import numpy as np

from . import _arrays, _pdawl
from ._arrays import Matrix
from ._graph import Graph
from ._kernel import Kernel
from ._run import Run
from ._scheduling import Balancer


class Session:
    """The devices of this machine: all, or those of a list such as `host:8,cuda0`.

    The interpreter's lock is free while they work, and Ctrl-C ends a run.
    """

    def __init__(self, devices: str | None = None, *, strategy: str | None = None) -> None:
        self._open(devices, None, strategy)

    def _open(self, devices: str | None, machine: str | None, strategy: str | None) -> None:
        self._session = _pdawl.Session(devices, machine)
        if strategy is not None:
            self.set_strategy(strategy)

    @property
    def devices(self) -> list[dict[str, Any]]:
        """The devices, in the order of shares."""
        return json.loads(self._session.devices_json())

    @property
    def notes(self) -> list[str]:
        """What was left out when the devices were opened, and why."""
        return self._session.notes()

    @property
    def is_simulated(self) -> bool:
        return self._session.is_simulated()

    def set_strategy(self, strategy: str) -> None:
        """How steps are divided from now on: `dawl`, `cpu`, `gpu`, `fixed:0.3`, `guided`."""
        self._session.set_strategy(strategy)

    def set_balancer(self, balancer: Callable[[dict[str, Any]], Balancer]) -> None:
        """Divides steps by a balancer of one's own from now on: a subclass of `Balancer`."""
        name = getattr(balancer, "__name__", type(balancer).__name__)
        self._session.set_balancer(name, balancer)

    def spmv(self, matrix: Any, x: Any, out: np.ndarray | None = None) -> np.ndarray:
        """The product of a sparse matrix and a vector on all devices.

        A `Matrix` stays on the devices for the next vector; a SciPy matrix in compressed rows
        is opened anew by each call.
        """
        matrix = matrix if isinstance(matrix, Matrix) else Matrix(matrix)
        x = _arrays.checked("x", x, ("float64",))
        rows, columns = matrix.shape
        y = np.empty(rows) if out is None else _arrays.checked("out", out, ("float64",), True)
        for name, vector, wanted, of in (("x", x, columns, "columns"), ("out", y, rows, "rows")):
            if vector.shape != (wanted,):
                raise ValueError(
                    f"{name} has the shape {vector.shape}, and the matrix {wanted} {of}: it needs "
                    f"({wanted},)"
                )
        self._session.spmv(matrix._matrix, x, y)
        return y

    @property
    def spmv_shares(self) -> list[float]:
        """Each device's fraction of the last product."""
        return self._session.spmv_shares()

    def stencil(
        self,
        grid: Any,
        steps: int = 1,
        *,
        superstep: int = 1,
        coefficients: Sequence[float] | None = None,
        until: float | None = None,
        check_every: int = 10,
        gpu_memory: int | None = None,
        verify: bool = False,
        traced: bool = False,
    ) -> Run:
        """A Jacobi stencil on a grid of 2 or 3 axes, float32 or float64, in place."""
        grid = _arrays.checked("grid", grid, ("float32", "float64"), True)
        options = {
            "steps": steps,
            "superstep": superstep,
            "coefficients": None if coefficients is None else [float(c) for c in coefficients],
            "until": until,
            "every": check_every,
            "gpu_memory": gpu_memory,
            "verify": verify,
            "traced": traced,
        }
        return Run(self._session.stencil(grid, options))

    def kernel(self, source: str, name: str | None = None) -> Kernel:
        """A kernel of a source in OpenCL C: its only one, or the one of a name."""
        return Kernel(self, source, name)

    def graph(self) -> Graph:
        """A graph, to which tasks are added."""
        return Graph(self)

    def __repr__(self) -> str:
        names = ", ".join(f"{device['name']} ({device['model']})" for device in self.devices)
        return f"<pdawl.Session {'simulated ' if self.is_simulated else ''}{names}>"


def simulate(machine: str, *, strategy: str | None = None) -> Session:
    """A simulated machine: one that ships with pdawl, such as `k40`, or the path of a machine
    file. Results are computed here; times are those of the simulated machine."""
    session = Session.__new__(Session)
    session._open(None, machine, strategy)
    return session


_shared: Session | None = None


def _this_machine() -> Session:
    global _shared
    if _shared is None:
        _shared = Session()
    return _shared


def devices() -> list[dict[str, Any]]:
    """The devices of this machine."""
    return _this_machine().devices


def spmv(matrix: Any, x: Any, out: np.ndarray | None = None) -> np.ndarray:
    """`Session.spmv` on all devices of this machine."""
    return _this_machine().spmv(matrix, x, out)


def stencil(grid: Any, steps: int = 1, **options: Any) -> Run:
    """`Session.stencil` on all devices of this machine."""
    return _this_machine().stencil(grid, steps, **options)
