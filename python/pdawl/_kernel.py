"""OpenCL kernels on arrays."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from . import _arrays, _gpu
from ._run import Run

if TYPE_CHECKING:
    from ._session import Session

_TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "long": "i8", "ulong": "u8", "float": "f4", "double": "f8", "half": "f2", "size_t": "u8",
    "unsigned char": "u1", "unsigned short": "u2", "unsigned int": "u4", "unsigned long": "u8",
    "unsigned": "u4", "bool": "u1",
}


class Kernel:
    """A kernel of a source in OpenCL C, which is divided among the devices of a session.

    Called with its arguments in their order: arrays for pointers, numbers for values. What it
    writes is written into the arrays.

    A kernel that would run in this process, as on PoCL's devices, is first launched in a second
    one, and refused if it leaves its arrays there: a tenth of a second and more, once for each
    shape, lengths and values; where the data decide which memory it touches, in each call.
    `unchecked=True` leaves this out, for a kernel that is known to stay within its arrays:
    another one writes over Python's memory.
    """

    def __init__(
        self, session: Session, source: str, name: str | None = None, *, unchecked: bool = False
    ) -> None:
        self._session = session
        self._kernel = session._session.kernel(source, name)
        self._unchecked = unchecked

    @property
    def name(self) -> str:
        return self._kernel.name

    @property
    def parameters(self) -> list[tuple[str, str, str | None]]:
        """Name, type, and `reads`, `writes` or `updates` for a pointer, None for a value."""
        return self._kernel.parameters

    def __call__(
        self,
        *arguments: Any,
        items: int | Sequence[int] | None = None,
        groups: int | Sequence[int] | None = None,
        steps: int = 1,
        gpu_memory: int | None = None,
        traced: bool = False,
    ) -> Run:
        """Launches it over `items` work-items; by default one for each element, of the type in
        the kernel, of the first array that it writes."""
        parameters = self.parameters
        if len(arguments) != len(parameters):
            names = ", ".join(name for name, _, _ in parameters)
            raise TypeError(
                f"kernel {self.name} takes {len(parameters)} arguments ({names}), and "
                f"{len(arguments)} are given"
            )
        lent = _gpu.Lent(
            self._session,
            {name: of for of, (name, _, usage) in zip(arguments, parameters) if usage},
            [name for name, _, usage in parameters if usage not in (None, "reads")],
            # What several GPUs write is put together in the host's memory.
            alone=True,
        )
        session = lent.session if lent else self._session
        if lent:
            arguments = tuple(
                lent.given.get(name, of) for of, (name, _, _) in zip(arguments, parameters)
            )
        given: list[bytes | tuple[str, np.ndarray]] = []
        elements = None
        sizes = self._kernel.element_bytes
        for argument, (name, kind, usage), size in zip(arguments, parameters, sizes):
            if usage is None:
                given.append(_value(name, kind, argument))
                continue
            array = _buffer(name, kind, usage, argument)
            if usage != "reads" and elements is None:
                elements = array.nbytes // size if size else array.size
            given.append((usage, array.reshape(-1).view(np.uint8)))
        if items is None:
            if elements is None:
                raise ValueError(f"kernel {self.name} writes no array; give `items`")
            items = elements
        run = session._session.launch(
            self._kernel, _sizes("items", items),
            None if groups is None else _sizes("groups", groups), given, steps, gpu_memory, traced,
            self._unchecked,
        )
        if lent:
            lent.store()
        return Run(run)


def _sizes(name: str, sizes: int | Sequence[int]) -> list[int]:
    all = [operator.index(size) for size in (sizes if isinstance(sizes, Sequence) else [sizes])]
    if any(not 0 <= size < 2**63 for size in all):
        raise ValueError(f"{name} are {all}; give whole numbers from 1 on")
    return all


def _buffer(name: str, kind: str, usage: str, argument: Any) -> np.ndarray:
    array = _arrays.array(name, argument)
    # The numbers of a vector; other types are structures, whose size the kernel knows.
    wanted = _TYPES.get(kind) or _TYPES.get(kind.rstrip("0123456789"))
    if wanted is not None and array.dtype != np.dtype(wanted):
        raise TypeError(f"{name} has dtype {array.dtype}, and the kernel takes {np.dtype(wanted)}")
    if usage == "reads" and not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous in C's order; give numpy.ascontiguousarray({name})")
    if usage != "reads" and not array.flags.writeable:
        raise ValueError(f"{name} is read-only, and the kernel writes it; give a copy")
    return array


def _value(name: str, kind: str, argument: Any) -> bytes:
    wanted = _TYPES.get(kind)
    if wanted is None:
        return np.asarray(argument).tobytes()
    value = np.asarray(argument)
    if value.ndim != 0:
        raise TypeError(f"{name} is a value of type {kind}, and an array is given")
    try:
        return np.array(value.item(), dtype=wanted).tobytes()
    except (OverflowError, ValueError) as error:
        raise type(error)(f"{name} is of type {kind}, and {argument!r} does not fit") from None
