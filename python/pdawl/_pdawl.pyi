"""The part of the package that is Rust. The modules beside it have its documentation."""

from os import PathLike
from typing import Any, Callable, Protocol, Sequence

import numpy as np
from numpy.typing import NDArray

__version__: str

def loaded(start: Sequence[str], file: str) -> None:
    """Says where this module is, and with which words the program is started."""

def program(arguments: Sequence[str]) -> int:
    """Runs the program with arguments, of which the first is its name. Returns its status."""

class Error(RuntimeError):
    """A run that devices, memory or drivers do not allow."""

class _Plans(Protocol):
    def plan(self, step: int) -> Sequence[float]: ...

class Divider:
    """Divides the units of a loop among parts (threads, processes, GPUs, nodes) so that all end
    together, and corrects that by what each step took. It knows no device, thread or clock."""

    def __init__(
        self,
        units: int,
        parts: int,
        *,
        granularity: int = 1,
        limits: Sequence[int | None] | None = None,
        weights: Sequence[float] | NDArray[np.float64] | None = None,
        sizes: Sequence[int] | NDArray[np.uint64] | None = None,
        rates: Sequence[float] | None = None,
        steps: int | None = None,
        move_seconds: float | None = None,
        hysteresis: float | None = None,
        balancer: str | _Plans | None = None,
    ) -> None: ...
    def next(self, units: range | None = None) -> list[range]:
        """The ranges of the next step, one a part, together all units or those given."""
    def took(
        self, seconds: Sequence[float | None], moving: float | None = None
    ) -> list[tuple[int, range]]:
        """The step has ended: the seconds of each part, None where it is lost, and of moving units
        before it. Returns what lost parts had, with the part that computes it now."""
    def take(self, part: int) -> range | None:
        """Without barriers: the units that a free part computes next, or None."""
    def done(self, part: int, seconds: float) -> None:
        """A part has computed what it had taken."""
    def lost(self, part: int) -> None:
        """A part is lost."""
    def back(self, part: int) -> None:
        """A part that was lost is back."""
    @property
    def is_done(self) -> bool:
        """Whether all units of a step that parts take from are computed."""
    @property
    def rates(self) -> list[float]:
        """Units of work a second of each part; 0 where nothing is known."""
    def why(self) -> str:
        """Why the parts have the ranges that they have."""
    def to_json(self) -> str: ...
    @staticmethod
    def from_json(text: str) -> Divider: ...

def gpu_of(address: int, bytes: int) -> int:
    """The GPU on which so many bytes are, from an address on, by CUDA's number."""

class Matrix:
    def __init__(
        self,
        rows: int,
        columns: int,
        row_starts: NDArray[np.uint64],
        column_of: NDArray[np.uint32],
        values: NDArray[np.float64],
    ) -> None: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    def arrays(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float64]]: ...

class Run:
    def report_json(self) -> str: ...
    def shares(self) -> list[float]: ...
    def trace_json(self) -> str: ...
    def gantt_html(self) -> str: ...
    def gantt_svg(self) -> str: ...

class Kernel:
    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> list[tuple[str, str, str | None]]: ...
    @property
    def element_bytes(self) -> list[int | None]: ...

_Answer = tuple[NDArray[Any], Run]
_Ran = tuple[Run, dict[int, NDArray[np.uint8]], float | None]

class Session:
    def __init__(
        self,
        devices: str | None,
        machine: str | None,
        gpu_memory: int | None,
        arrays_on: int | None,
    ) -> None: ...
    def memory(self, bytes: int) -> NDArray[np.uint8]: ...
    def load(self, address: int, bytes: int) -> NDArray[np.uint8]: ...
    def store(self, address: int, bytes: NDArray[np.uint8]) -> None: ...
    def works(self) -> bool: ...
    def devices_json(self) -> str: ...
    def notes(self) -> list[str]: ...
    def is_simulated(self) -> bool: ...
    def set_strategy(self, strategy: str) -> None: ...
    def set_balancer(self, name: str, make: Callable[[dict[str, Any]], Any]) -> None: ...
    def spmv(
        self, matrix: Matrix, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> None: ...
    def spmv_shares(self) -> list[float]: ...
    def stencil(self, grid: NDArray[Any], options: dict[str, Any]) -> Run: ...
    def matmul(
        self, a: NDArray[Any], b: NDArray[Any], bits: str | None, options: dict[str, Any]
    ) -> _Answer: ...
    def cholesky(self, a: NDArray[Any], options: dict[str, Any]) -> _Answer: ...
    def lu(
        self, a: NDArray[Any], options: dict[str, Any]
    ) -> tuple[_Answer, NDArray[np.int32]]: ...
    def fft2(self, a: NDArray[Any], options: dict[str, Any]) -> _Answer: ...
    def sort(self, numbers: NDArray[np.float32], options: dict[str, Any]) -> _Answer: ...
    def kernel(self, source: str, name: str | None) -> Kernel: ...
    def launch(
        self,
        kernel: Kernel,
        items: Sequence[int],
        groups: Sequence[int] | None,
        arguments: Sequence[Any],
        steps: int,
        gpu_memory: int | None,
        traced: bool,
        unchecked: bool,
    ) -> Run: ...
    def graph(
        self,
        data: Sequence[tuple[str, int, NDArray[np.uint8] | None, bool]],
        tasks: Sequence[dict[str, Any]],
        policy: Any,
        gpu_memory: int | None,
    ) -> _Ran: ...
    def task_set(
        self, name: str, n: int, tile: int | None, policy: Any, gpu_memory: int | None
    ) -> _Ran: ...

class Cluster:
    def __init__(
        self,
        devices: str | None,
        wire: str | PathLike[str] | None,
        spread: str | None,
        threads: int | None,
    ) -> None: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def matmul(
        self, a: NDArray[np.float32], b: NDArray[np.float32], tile: int | None, verify: bool
    ) -> _Answer | None: ...
    def lu(
        self, a: NDArray[Any], tile: int | None, verify: bool
    ) -> tuple[_Answer, NDArray[np.int32]] | None: ...
    def fft2(
        self, a: NDArray[Any], tile: int | None, verify: bool
    ) -> _Answer | None: ...
    def sort(
        self, numbers: NDArray[np.float32], tile: int | None, verify: bool
    ) -> _Answer | None: ...
