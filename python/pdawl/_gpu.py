"""Arrays on a GPU: CuPy's, PyTorch's, JAX's, and all that have `__cuda_array_interface__` or DLPack.

The GPUs of a session compute on them without passing them through the host: the arrays are copied
within the GPU's memory, where a second session has what else is host memory.
"""

from __future__ import annotations

import ctypes
import math
from functools import wraps
from typing import TYPE_CHECKING, Any, Callable, Iterable, Literal, Sequence, TypeVar

import numpy as np

from . import _arrays, _pdawl
from ._run import Result

if TYPE_CHECKING:
    from ._session import Session

#: Of DLPack: devices whose memory is a GPU's, and the kinds of numbers.
_CUDA = (2, 13)
_CODES = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


class _DLTensor(ctypes.Structure):
    """What a capsule of DLPack points to first."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class GpuArray:
    """An array of the user's on a GPU: its address, shape and dtype. Its numbers follow one
    another in C's order or in Fortran's, or, if `order` is None, do not."""

    def __init__(
        self,
        name: str,
        given: Any,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: Iterable[int] | None,
        read_only: bool,
    ) -> None:
        self.given, self.address, self.shape = given, address, shape
        self.dtype, self.read_only = _arrays.stored(name, dtype), read_only
        self.nbytes = math.prod(shape) * dtype.itemsize
        if self.nbytes == 0:
            raise ValueError(f"{name} has the shape {shape}, and so no numbers")
        self.order: Literal["C", "F"] | None = "C"
        if strides is not None:
            # Steps along axes of one number say nothing.
            axes = [axis for axis, length in enumerate(shape) if length > 1]
            of, c = list(strides), _steps(shape, dtype.itemsize)
            if any(of[axis] != c[axis] for axis in axes):
                f = _steps(shape[::-1], dtype.itemsize)[::-1]
                self.order = None if any(of[axis] != f[axis] for axis in axes) else "F"
        try:
            self.gpu = _pdawl.gpu_of(address, self.nbytes) if self.order else 0
        except _pdawl.Error as error:
            raise ValueError(f"{name} is not the array on a GPU that it tells: {error}") from None

    def overlaps(self, other: GpuArray) -> bool:
        """Whether both have a byte."""
        last = min(self.address + self.nbytes, other.address + other.nbytes)
        return max(self.address, other.address) < last

    def loaded(self, session: Session) -> np.ndarray:
        """A copy where it is, which is NumPy's."""
        numbers = session._session.load(self.address, self.nbytes).view(self.dtype)
        return numbers.reshape(self.shape, order=self.order)

    def store(self, session: Session, array: np.ndarray) -> None:
        """Replaces its numbers by those of what was loaded."""
        flat = array.reshape(-1, order=self.order)
        session._session.store(self.address, flat.view(np.uint8))

    def like(self, array: np.ndarray) -> Any:
        """An array in the GPU's memory as one of the same kind, which keeps it."""
        held = _Held(array)
        kind = type(self.given).__module__.split(".")[0]
        if kind == "cupy":
            import cupy

            return cupy.asarray(held)
        if kind == "torch":
            import torch

            return torch.as_tensor(held, device=self.given.device)
        if kind in ("jax", "jaxlib"):
            import jax

            # A copy: JAX's view would not keep the memory.
            return jax.block_until_ready(jax.numpy.array(held, copy=True))
        return held


def _steps(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Bytes from one number to the next along each axis, in C's order."""
    return tuple(math.prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape)))


class _Held:
    """An array that lies on a GPU, for whoever takes `__cuda_array_interface__`."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = np.ascontiguousarray(array)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self._array.shape,
            "typestr": self._array.dtype.str,
            "data": (self._array.ctypes.data, False),
            "strides": None,
            "version": 3,
        }


def found(name: str, given: Any, changed: bool = False) -> GpuArray | None:
    """The array on a GPU that an argument is, or None. What is only read is copied there where it
    lies in another order than C's."""
    if isinstance(given, Result):
        given = given.array
    if given is None or isinstance(given, (np.ndarray, np.generic)):
        return None
    array = _parsed(name, given)
    if array is None or array.order == "C" or (changed and array.order):
        return array
    in_order = getattr(given, "contiguous", None) or getattr(given, "copy", None)
    if changed or in_order is None:
        raise ValueError(
            f"{name} is not contiguous in C's order, and is on a GPU; give a copy that is"
        )
    return _parsed(name, in_order())


def _parsed(name: str, given: Any) -> GpuArray | None:
    try:
        interface = getattr(given, "__cuda_array_interface__", None)
    except RuntimeError as error:
        raise TypeError(f"{name} is a tensor on a GPU, which says: {error}") from error
    if interface is not None and not interface["typestr"][1:].startswith("V"):
        address, read_only = interface["data"]
        dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
        strides = interface.get("strides")
        return GpuArray(name, given, address, shape, dtype, strides, read_only)
    if not hasattr(given, "__dlpack_device__") or given.__dlpack_device__()[0] not in _CUDA:
        return None
    return _by_dlpack(name, given)


def _capsule(given: Any) -> Any:
    if type(given).__module__ != "torch":
        return given.__dlpack__()
    import torch

    # PyTorch gives what is on the present device.
    with torch.cuda.device(given.device):
        return given.__dlpack__()


def _by_dlpack(name: str, given: Any) -> GpuArray:
    capsule = _capsule(given)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _DLTensor.from_address(pointer(capsule, b"dltensor"))
    bfloat = tensor.code == 4 and tensor.bits == 16
    if (tensor.code not in _CODES and not bfloat) or tensor.lanes != 1:
        raise TypeError(f"{name} has numbers of a type that NumPy does not have")
    if bfloat:
        import ml_dtypes

        dtype = np.dtype(ml_dtypes.bfloat16)
    else:
        dtype = np.dtype(f"{_CODES[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = None
    if tensor.strides:
        strides = [step * dtype.itemsize for step in tensor.strides[: tensor.ndim]]
    return GpuArray(name, given, tensor.data + tensor.byte_offset, shape, dtype, strides, False)


class Lent:
    """The arguments of a call of which some are on a GPU, as a session there has them; it writes
    into those that it `changes`. Only the first one's GPU computes if it is `alone`. False where
    none are on a GPU."""

    def __init__(
        self,
        session: Session,
        arguments: dict[str, Any],
        changes: Sequence[str] = (),
        alone: bool = False,
    ) -> None:
        of = {name: found(name, given, name in changes) for name, given in arguments.items()}
        self._on = {name: array for name, array in of.items() if array is not None}
        self._changes = [name for name in self._on if name in changes]
        if not self._on:
            return
        for name in self._changes:
            if self._on[name].read_only:
                raise ValueError(f"{name} is read-only, and results are written there; give a copy")
            for other, array in self._on.items():
                if other != name and self._on[name].overlaps(array):
                    raise ValueError(
                        f"{name} is written, and shares memory with {other}; give a copy"
                    )
        self._first = next(iter(self._on.values()))
        self.session = session._beside(self._first.gpu, alone)
        self.given = arguments | {
            name: array.loaded(self.session) for name, array in self._on.items()
        }

    def __bool__(self) -> bool:
        return bool(self._on)

    def store(self) -> None:
        """Replaces what was changed."""
        for name in self._changes:
            self._on[name].store(self.session, self.given[name])

    def returned(self, result: Any) -> Any:
        """What a call returns, with its array as one of the first argument's kind."""
        if isinstance(result, Result):
            result.array = self._first.like(result.array)
            return result
        if not isinstance(result, np.ndarray):
            return result
        written = [name for name in self._changes if self.given[name] is result]
        return self._on[written[0]].given if written else self._first.like(result)


Call = TypeVar("Call", bound=Callable[..., Any])


def takes(*names: str, changes: Sequence[str] = ()) -> Callable[[Call], Call]:
    """A method of a session whose first parameters, of these names, may be arrays on a GPU, of
    which it `changes` some."""

    def of(method: Call) -> Call:
        @wraps(method)
        def call(self: Session, *given: Any, **options: Any) -> Any:
            arguments = dict(zip(names, given))
            arguments |= {name: options[name] for name in names if name in options}
            lent = Lent(self, arguments, changes)
            if not lent:
                return method(self, *given, **options)
            first = [lent.given[name] for name in names[: len(given)]]
            options |= {name: lent.given[name] for name in names if name in options}
            result = method(lent.session, *first, *given[len(names) :], **options)
            lent.store()
            return lent.returned(result)

        return call  # type: ignore[return-value]

    return of
