"""Sessions, and the same calls without one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable, Literal, Sequence, TypedDict

import numpy as np

from . import _arrays, _gpu, _pdawl
from ._arrays import Matrix
from ._graph import Graph, GraphRun
from ._kernel import Kernel
from ._run import Factors, Result, Run
from ._scheduling import Balancer

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Options(TypedDict, total=False):
    """What operations on dense arrays can be asked for."""

    #: The name of a policy, as in `pdawl run matmul --policy`.
    policy: str | None
    #: Rows of a tile.
    tile: int | None
    #: Most bytes of each GPU's memory.
    gpu_memory: int | None
    #: Whether the result is compared with what solves its problem.
    verify: bool
    #: Whether the run has a chart.
    traced: bool


class StencilOptions(TypedDict, total=False):
    """The options of `Session.stencil`."""

    superstep: int | Literal["auto"] | None
    coefficients: Sequence[float] | None
    until: float | None
    check_every: int
    gpu_memory: int | None
    verify: bool
    traced: bool


class Session:
    """The devices of this machine: all, or those of a list such as `host:8,cuda0`. At most
    `gpu_memory` bytes of each GPU's memory are used.

    The interpreter's lock is free while they work. Ctrl-C ends a run, and is `KeyboardInterrupt`
    in a policy, a balancer or a task, which the thread that has called the run calls, one at a
    time. A process that is forked opens a session of its own.
    """

    def __init__(
        self,
        devices: str | None = None,
        *,
        strategy: str | None = None,
        gpu_memory: int | None = None,
    ) -> None:
        self._open(devices, None, strategy, gpu_memory)

    def _open(
        self,
        devices: str | None,
        machine: str | None,
        strategy: str | None,
        gpu_memory: int | None,
        arrays_on: int | None = None,
    ) -> None:
        self._session = _pdawl.Session(devices, machine, gpu_memory, arrays_on)
        self._gpu_memory = gpu_memory
        self._is_on_gpu = arrays_on is not None
        self._divided: Callable[[Session], None] | None = None
        self._others: dict[tuple[int, str], Session] = {}
        # The session of the last product, which those on GPUs' arrays share.
        self._product: dict[str, _pdawl.Session] = {}
        if strategy is not None:
            self.set_strategy(strategy)

    def _beside(self, gpu: int, alone: bool) -> Session:
        """A session on this one's GPUs, or that one alone, whose arrays are on one of them."""
        if self._is_on_gpu:
            return self
        names = [device["name"] for device in self.devices if device["runtime"] == "cuda"]
        names = [name for name in names if name == f"cuda{gpu}"] or names if alone else names
        key = gpu, ",".join(names)
        if key not in self._others:
            if not names:
                raise TypeError(
                    "an array is on a GPU, and the session has none through CUDA; open a session "
                    "with one, or give the array in the host's memory"
                )
            session = Session.__new__(Session)
            session._open(key[1], None, None, self._gpu_memory, gpu)
            if self._divided is not None:
                self._divided(session)
            session._product = self._product
            self._others[key] = session
        return self._others[key]

    def _divides(self, how: Callable[[Session], None]) -> None:
        for session in (self, *self._others.values()):
            how(session)
        self._divided = how

    def _empty(self, length: int) -> np.ndarray:
        """A vector for a result."""
        if not self._is_on_gpu:
            return np.empty(length)
        return self._session.memory(8 * length).view(np.float64)

    @property
    def devices(self) -> list[dict[str, Any]]:
        """The devices, in the order of shares."""
        devices: list[dict[str, Any]] = json.loads(self._session.devices_json())
        return devices

    @property
    def notes(self) -> list[str]:
        """What was left out when the devices were opened, and why."""
        return self._session.notes()

    @property
    def is_simulated(self) -> bool:
        return self._session.is_simulated()

    def set_strategy(self, strategy: str) -> None:
        """How steps are divided from now on: `dawl` (learned), `pdawl` (begun with the plan of the
        machine's cost model), `cpu`, `gpu`, `fixed:0.3`, `guided`."""
        self._divides(lambda session: session._session.set_strategy(strategy))

    def set_balancer(self, balancer: Callable[[dict[str, Any]], Balancer]) -> None:
        """Divides steps by a balancer of one's own from now on: a subclass of `Balancer`."""
        name = getattr(balancer, "__name__", type(balancer).__name__)
        self._divides(lambda session: session._session.set_balancer(name, balancer))

    @_gpu.takes("matrix", "x", "out", changes=("out",))
    def spmv(self, matrix: Any, x: Any, out: np.ndarray | None = None) -> np.ndarray:
        """The product of a sparse matrix and a vector on all devices.

        A `Matrix` stays on the devices for the next vector; a SciPy matrix in compressed rows
        is opened anew by each call.
        """
        matrix = matrix if isinstance(matrix, Matrix) else Matrix(matrix)
        x = _arrays.checked("x", x, ("float64",))
        rows, columns = matrix.shape
        y = self._empty(rows) if out is None else _arrays.checked("out", out, ("float64",), True)
        for name, vector, wanted, of in (("x", x, columns, "columns"), ("out", y, rows, "rows")):
            if vector.shape != (wanted,):
                raise ValueError(
                    f"{name} has the shape {vector.shape}, and the matrix {wanted} {of}: it needs "
                    f"({wanted},)"
                )
        self._session.spmv(matrix._matrix, x, y)
        self._product["last"] = self._session
        return y if out is None else out

    @property
    def spmv_shares(self) -> list[float]:
        """Each device's fraction of the last product."""
        return self._product.get("last", self._session).spmv_shares()

    @_gpu.takes("grid", changes=("grid",))
    def stencil(
        self,
        grid: Any,
        steps: int = 1,
        *,
        superstep: int | Literal["auto"] | None = None,
        coefficients: Sequence[float] | None = None,
        until: float | None = None,
        check_every: int = 10,
        gpu_memory: int | None = None,
        verify: bool = False,
        traced: bool = False,
    ) -> Run:
        """A Jacobi stencil on a grid of 2 or 3 axes, float32 or float64, in place.

        `superstep` steps are between two barriers; with "auto" as many as were fastest in
        earlier runs, or as are predicted to be; without it one, or as "auto" where the GPUs'
        memory does not hold the grid.
        """
        grid = _arrays.array("grid", grid)
        if grid.flags.f_contiguous and not grid.flags.c_contiguous:
            # The same grid with its axes in the other order, and so are the neighbours.
            grid = grid.T
            if coefficients is not None and len(coefficients) > 4:
                # Those along x and, in 3-D, z, or, in 2-D, y.
                *before, a, b, c, d = coefficients
                coefficients = [*before, c, d, a, b]
        grid = _arrays.checked("grid", grid, ("float32", "float64"), True)
        options = {
            "steps": steps,
            "superstep": None if superstep == "auto" else superstep,
            "planned": superstep == "auto",
            "coefficients": None if coefficients is None else [float(c) for c in coefficients],
            "until": until,
            "every": check_every,
            "gpu_memory": gpu_memory,
            "verify": verify,
            "traced": traced,
        }
        return Run(self._session.stencil(grid, options))

    @_gpu.takes("a", "b")
    def matmul(self, a: Any, b: Any, **options: Unpack[Options]) -> Result:
        """The product of two matrices of the same type: float32, float64, or float16 or
        ml_dtypes' bfloat16, whose products are summed in float32.

        As all operations on dense arrays, it returns a `Result`: the array with its run, and takes
        `Options`. A factor in another order than C's is copied; of two in Fortran's order neither is.
        """
        a, b = (_arrays.array(name, of) for name, of in (("a", a), ("b", b)))
        if all(of.ndim == 2 and of.flags.f_contiguous and not of.flags.c_contiguous for of in (a, b)):
            # (A B)^T = B^T A^T, whose factors lie in C's order.
            found = self.matmul(b.T, a.T, **options)
            found.array = found.array.T
            return found
        a, b = (_arrays.matrix(name, of, _FACTORS) for name, of in (("a", a), ("b", b)))
        if a.dtype != b.dtype:
            raise TypeError(
                f"a has dtype {a.dtype} and b {b.dtype}; astype() makes them the same"
            )
        if a.shape[1] != b.shape[0]:
            raise ValueError(
                f"a has the shape {a.shape} and b {b.shape}; a product needs as many columns of a "
                "as rows of b"
            )
        bits = _BITS.get(a.dtype.name)
        if bits is not None:
            a, b = a.view(np.uint16), b.view(np.uint16)
        array, run = self._session.matmul(a, b, bits, _options(options))
        return Result(array.reshape(a.shape[0], b.shape[1]), run)

    @_gpu.takes("a")
    def cholesky(self, a: Any, **options: Unpack[Options]) -> Result:
        """The factor L of a symmetric positive definite matrix `a = L @ L.T`. Only the lower
        triangle of `a` is read."""
        a = _square("a", a)
        array, run = self._session.cholesky(a, _options(options))
        return Result(array.reshape(a.shape), run)

    @_gpu.takes("a")
    def lu(self, a: Any, **options: Unpack[Options]) -> Factors:
        """The factors of a square matrix with partial pivoting, as `scipy.linalg.lu_factor`
        returns them: `scipy.linalg.lu_solve((f.lu, f.pivots), b)` solves with them."""
        a = _square("a", a)
        (array, run), pivots = self._session.lu(a, _options(options))
        return Factors(array.reshape(a.shape), pivots, run)

    def fft2(
        self, a: Any, axes: tuple[int, int] = (-2, -1), **options: Unpack[Options]
    ) -> Result:
        """The Fourier transform of an array of complex or real numbers over two axes, as
        `numpy.fft.fft2`: of complex64 and float32 in single precision. Of several matrices, each is
        a run, and the result has the last one's."""
        a = _arrays.checked("a", a, ("float32", "float64", "complex64", "complex128"))
        if a.ndim < 2 or a.size == 0:
            raise ValueError(f"a has the shape {a.shape}; a transform is of two axes with numbers")
        last = np.moveaxis(a, axes, (-2, -1))
        dtype, real = _PARTS[a.dtype.name]
        matrices = np.ascontiguousarray(last, dtype).reshape(-1, *last.shape[-2:])
        ran = [self._session.fft2(matrix.view(real), _options(options)) for matrix in matrices]
        arrays = [array.view(dtype) for array, _ in ran]
        found = arrays[0] if len(arrays) == 1 else np.stack(arrays)
        return Result(np.moveaxis(found.reshape(last.shape), (-2, -1), axes), ran[-1][1])

    def sort(
        self, numbers: Any, axis: int | None = -1, **options: Unpack[Options]
    ) -> Result:
        """Numbers of float32 or float64 in ascending order along an axis, as `numpy.sort`, by the
        host's cores; with `axis=None` all in one."""
        numbers = _arrays.checked("numbers", numbers, ("float32", "float64"))
        last = numbers.reshape(-1) if axis is None else np.moveaxis(numbers, axis, -1)
        array, run = self._session.sort(np.ascontiguousarray(last), _options(options))
        found = array.reshape(last.shape)
        return Result(found if axis is None else np.moveaxis(found, -1, axis), run)

    def task_set(
        self,
        name: str,
        n: int,
        policy: Any = "locality",
        *,
        tile: int | None = None,
        gpu_memory: int | None = None,
    ) -> GraphRun:
        """Runs a set of tasks that share data, as `pdawl run tasks --set NAME --n N` does:
        `matmul2d`, `matmul3d`, `cholesky`, `sparse` or `random`. The tasks compute nothing, so
        the session is a simulated one. `policy` is a name or a `Policy`."""
        run, _, took = self._session.task_set(name, n, tile, policy, gpu_memory)
        return GraphRun(run, {}, took)

    def kernel(
        self, source: str, name: str | None = None, *, unchecked: bool = False
    ) -> Kernel:
        """A kernel of a source in OpenCL C: its only one, or the one of a name. `Kernel` says
        what an `unchecked` one is."""
        return Kernel(self, source, name, unchecked=unchecked)

    def graph(self) -> Graph:
        """A graph, to which tasks are added."""
        return Graph(self)

    def __repr__(self) -> str:
        names = ", ".join(f"{device['name']} ({device['model']})" for device in self.devices)
        return f"<pdawl.Session {'simulated ' if self.is_simulated else ''}{names}>"


def simulate(
    machine: str, *, strategy: str | None = None, gpu_memory: int | None = None
) -> Session:
    """A simulated machine: one that ships with pdawl, such as `k40`, or the path of a machine
    file. At most `gpu_memory` bytes of each GPU's memory are used. Results are computed here;
    times are those of the simulated machine."""
    session = Session.__new__(Session)
    session._open(None, machine, strategy, gpu_memory)
    return session


#: Types of the factors of a product; those of 16 bits, as pdawl calls them.
_FACTORS = ("float16", "bfloat16", "float32", "float64")
_BITS = {"float16": "f16", "bfloat16": "bf16"}


def _matrix(name: str, given: Any) -> np.ndarray:
    return _arrays.matrix(name, given, ("float32", "float64"))


def _square(name: str, given: Any) -> np.ndarray:
    array = _matrix(name, given)
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} has the shape {array.shape}; only a square matrix has factors")
    return array


#: The complex numbers of transforms, and their parts, of each type.
_PARTS = {
    **dict.fromkeys(("float32", "complex64"), (np.complex64, np.float32)),
    **dict.fromkeys(("float64", "complex128"), (np.complex128, np.float64)),
}


def _options(given: Options) -> dict[str, Any]:
    options = {"policy": None, "tile": None, "gpu_memory": None, "verify": False, "traced": False}
    for name in given:
        if name not in options:
            raise TypeError(f"there is no option {name}; there are {', '.join(options)}")
    return options | given


_shared: Session | None = None


def _this_machine() -> Session:
    """The session of the calls without one: another one after a panic, and in a process that was
    forked."""
    global _shared
    if _shared is None or not _shared._session.works():
        _shared = Session()
    return _shared


def devices() -> list[dict[str, Any]]:
    """The devices of this machine."""
    return _this_machine().devices


def spmv(matrix: Any, x: Any, out: np.ndarray | None = None) -> np.ndarray:
    """`Session.spmv` on all devices of this machine."""
    return _this_machine().spmv(matrix, x, out)


def matmul(a: Any, b: Any, **options: Unpack[Options]) -> Result:
    """`Session.matmul` on all devices of this machine."""
    return _this_machine().matmul(a, b, **options)


def cholesky(a: Any, **options: Unpack[Options]) -> Result:
    """`Session.cholesky` on all devices of this machine."""
    return _this_machine().cholesky(a, **options)


def lu(a: Any, **options: Unpack[Options]) -> Factors:
    """`Session.lu` on all devices of this machine."""
    return _this_machine().lu(a, **options)


def fft2(a: Any, axes: tuple[int, int] = (-2, -1), **options: Unpack[Options]) -> Result:
    """`Session.fft2` on all devices of this machine."""
    return _this_machine().fft2(a, axes, **options)


def sort(numbers: Any, axis: int | None = -1, **options: Unpack[Options]) -> Result:
    """`Session.sort` on all devices of this machine."""
    return _this_machine().sort(numbers, axis, **options)


def stencil(grid: Any, steps: int = 1, **options: Unpack[StencilOptions]) -> Run:
    """`Session.stencil` on all devices of this machine."""
    return _this_machine().stencil(grid, steps, **options)
