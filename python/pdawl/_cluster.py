"""The nodes of a cluster."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from . import _arrays, _pdawl
from ._run import Factors, Result
from ._session import _PARTS, _square


class Cluster:
    """The processes that `mpirun -n 4 python program.py` has started together, each with its
    devices; one that was started by itself is the only node.

    All call the same operations with the same arrays in the same order, as with mpi4py. The
    first one (`rank` 0) gets the results, the others `None`. After an error the nodes can run
    nothing more.
    """

    def __init__(
        self,
        devices: str | None = None,
        *,
        wire: str | Path | None = None,
        spread: str | None = None,
        threads: int | None = None,
    ) -> None:
        """`wire` is the library that carries messages, by default `$PDAWL_WIRE` or the one that
        is installed with the program `pdawl`; `spread` is how subtasks are spread over nodes, as
        in `pdawl run matmul --spread`. With `threads` so many nodes are threads of this process,
        for trying a program."""
        wire = wire or _wire()
        self._cluster = _pdawl.Cluster(devices, wire, spread, threads)

    @property
    def rank(self) -> int:
        """The number of this node, from 0."""
        return self._cluster.rank

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self._cluster.size

    def matmul(
        self, a: Any, b: Any, *, tile: int | None = None, verify: bool = False
    ) -> Result | None:
        """The product of two matrices of float32, in blocks of `tile` rows and columns."""
        a, b = (_arrays.matrix(name, of, ("float32",)) for name, of in (("a", a), ("b", b)))
        found = self._cluster.matmul(a, b, tile, verify)
        return _result(found, (a.shape[0], b.shape[1]))

    def lu(self, a: Any, *, tile: int | None = None, verify: bool = False) -> Factors | None:
        """The factors of a square matrix of float32 or float64, as `Session.lu`."""
        a = _square("a", a)
        found = self._cluster.lu(a, tile, verify)
        if found is None:
            return None
        (array, run), pivots = found
        return Factors(array.reshape(a.shape), pivots, run)

    def fft2(self, a: Any, *, tile: int | None = None, verify: bool = False) -> Result | None:
        """The Fourier transform of a matrix of complex64 or complex128."""
        a = _arrays.matrix("a", a, ("complex64", "complex128"))
        found = self._cluster.fft2(a.view(_PARTS[a.dtype.name][1]), tile, verify)
        return _result(found and (found[0].view(a.dtype), found[1]), a.shape)

    def sort(
        self, numbers: Any, *, tile: int | None = None, verify: bool = False
    ) -> Result | None:
        """The numbers of a vector of float32 or float64 in ascending order."""
        numbers = _arrays.vector("numbers", numbers, ("float32", "float64"))
        return _result(self._cluster.sort(numbers, tile, verify), numbers.shape)

    def __repr__(self) -> str:
        return f"<pdawl.Cluster node {self.rank} of {self.size}>"


def _result(found: tuple[np.ndarray, Any] | None, shape: tuple[int, ...]) -> Result | None:
    return None if found is None else Result(found[0].reshape(shape), found[1])


def _wire() -> Path | None:
    """The library that is installed with the program; the environment counts before it."""
    program = shutil.which("pdawl")
    if program is None or "PDAWL_WIRE" in os.environ:
        return None
    if not any(name in os.environ for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")):
        return None
    folder = Path(program).resolve().parent
    for place in (folder, folder / "../lib/pdawl", folder / "../lib64/pdawl", folder / "../lib"):
        library = place / "libpdawl_wire_mpi.so"
        if library.is_file():
            return library
    return None
