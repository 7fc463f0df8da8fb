"""Graphs of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

import numpy as np

from . import _arrays, _gpu
from ._run import Run

if TYPE_CHECKING:
    from ._session import Session


class Data:
    """A datum of a graph: an array that is written once."""

    def __init__(self, number: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.number, self.shape, self.dtype = number, shape, dtype

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


class Graph:
    """Tasks that read and write data, which a policy places on the devices of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._data: list[tuple[str, int, np.ndarray | None, bool]] = []
        self._on_gpu: dict[str, Any] = {}
        self._of: list[Data] = []
        self._tasks: list[dict[str, Any]] = []

    def given(self, name: str, array: Any) -> Data:
        """A datum with the contents of an array, which are copied. An array on a GPU is read when
        the graph runs, on GPUs alone, and the results are of its kind."""
        on_gpu = _gpu.found(name, array)
        if on_gpu is not None:
            data = self._add(name, on_gpu.shape, on_gpu.dtype, None, False)
            self._on_gpu[str(data.number)] = on_gpu.given
            return data
        array = _arrays.array(name, array)
        contents = np.array(array, order="C").reshape(-1).view(np.uint8)
        return self._add(name, array.shape, array.dtype, contents, False)

    def between(self, name: str, shape: Any, dtype: Any = np.float64) -> Data:
        """A datum that a task makes for other tasks."""
        return self._add(name, shape, dtype, None, False)

    def result(self, name: str, shape: Any, dtype: Any = np.float64) -> Data:
        """A datum that a task makes, and that the run returns."""
        return self._add(name, shape, dtype, None, True)

    def _add(self, name: str, shape: Any, dtype: Any, given: np.ndarray | None, wanted: bool) -> Data:
        shape = tuple(shape) if isinstance(shape, Sequence) else (int(shape),)
        data = Data(len(self._of), shape, _arrays.stored(f"datum {name}", np.dtype(dtype)))
        if data.nbytes == 0:
            raise ValueError(f"datum {name} has no bytes: its shape is {shape}")
        self._of.append(data)
        self._data.append((name, data.nbytes, given, wanted))
        return data

    def task(
        self,
        name: str,
        function: Callable[..., Any] | None,
        reads: Sequence[Data] = (),
        writes: Sequence[Data] = (),
        *,
        flops: float = 0.0,
        bytes: float = 0.0,
        kernel: tuple[str, str, Sequence[int]] | None = None,
        unchecked: bool = False,
    ) -> int:
        """Adds a task and returns its number. `function` gets the arrays that are read, and
        returns the array that is written, or a tuple of them. `kernel` is the same for GPUs:
        source, name and work-items, with the data that are read before those that are written.
        It is examined as a `Kernel` is, unless it is `unchecked`.
        A task without a function runs on GPUs only. A simulation runs every task on every device,
        with times from `flops` and `bytes`, and results from the function."""
        for data in (*reads, *writes):
            if data not in self._of:
                raise ValueError(f"task {name}: a datum is of another graph")
        if kernel is None and function is not None and self._session.is_simulated:
            # A simulator takes times from the cost, and results from the function.
            kernel = ("", "task", [1])
        self._tasks.append(
            {
                "name": name,
                "function": None if function is None else _function(name, function, reads, writes),
                "reads": [data.number for data in reads],
                "writes": [data.number for data in writes],
                "flops": float(flops),
                "bytes": float(bytes or sum(data.nbytes for data in (*reads, *writes))),
                "kernel": None if kernel is None else (kernel[0], kernel[1], list(kernel[2])),
                "unchecked": bool(unchecked),
            }
        )
        return len(self._tasks) - 1

    def run(self, policy: Any = "locality", *, gpu_memory: int | None = None) -> GraphRun:
        """Runs all tasks. `policy` is a name, as in `pdawl run dag --policy`, or a `Policy`."""
        session, data = self._session, self._data
        lent = _gpu.Lent(session, self._on_gpu)
        if lent:
            for task in self._tasks:
                if task["kernel"] is None:
                    raise TypeError(
                        f"task {task['name']} has no kernel, and data are on a GPU; give it one, "
                        "or give the data in the host's memory"
                    )
            session, data = lent.session, list(data)
            for number, array in lent.given.items():
                name, bytes, _, wanted = data[int(number)]
                data[int(number)] = (name, bytes, array.reshape(-1).view(np.uint8), wanted)
        run, results, took = session._session.graph(data, self._tasks, policy, gpu_memory)
        arrays = {
            number: contents.view(self._of[number].dtype).reshape(self._of[number].shape)
            for number, contents in results.items()
        }
        if lent:
            arrays = {number: lent.returned(array) for number, array in arrays.items()}
        return GraphRun(run, arrays, took)


class GraphRun(Run):
    """The run of a graph, with its results."""

    def __init__(self, run: Any, results: dict[int, np.ndarray], took: float | None) -> None:
        super().__init__(run)
        self._results = results
        #: Real seconds in a policy written in Python, or None.
        self.policy_seconds = took

    def __getitem__(self, data: Data) -> np.ndarray:
        if data.number not in self._results:
            raise KeyError("this datum is no result of the graph: `Graph.result` makes one")
        return self._results[data.number]


def _function(name: str, function: Callable[..., Any], reads: Any, writes: Any) -> Any:
    """The function on bytes."""

    def on_bytes(memory: list[bytes]) -> list[bytes]:
        arrays = (
            np.frombuffer(contents, data.dtype).reshape(data.shape)
            for contents, data in zip(memory, reads)
        )
        made = function(*arrays)
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(writes):
            raise ValueError(f"task {name} makes {len(writes)} data, and returned {len(made)}")
        contents = []
        for array, data in zip(made, writes):
            array = _arrays.cast(f"what task {name} returned", array, data.dtype)
            if array.shape != data.shape:
                raise ValueError(
                    f"task {name} makes an array of shape {data.shape}, and returned {array.shape}"
                )
            contents.append(array.tobytes())
        return contents

    return on_bytes
