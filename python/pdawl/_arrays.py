"""Arrays of the user's: checks, and views without copies."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from . import _pdawl
from ._run import Result


def array(name: str, given: Any) -> np.ndarray:
    """A NumPy array of what is given, without a copy: an array, or what has DLPack. Whatever
    takes an array of the user's takes it by this, as its bytes are those of numbers of the
    machine then."""
    if type(given) is np.ndarray:
        found = given
    elif isinstance(given, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, whose masked values would count; give "
            f"{name}.filled(...) with the value that they are to have"
        )
    elif isinstance(given, (np.ndarray, Result)):
        # A matrix or an array in a file is an array, and so is what a run has returned.
        found = np.asarray(given)
    elif hasattr(given, "__dlpack__"):
        try:
            found = np.from_dlpack(given)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise TypeError(
                f"{name} is of type {type(given).__name__}, which NumPy does not take by DLPack: "
                f"{error}; give a tensor in host memory, or a NumPy array"
            ) from error
    else:
        ways = {"to_numpy": f"{name}.to_numpy()", "toarray": f"{name}.toarray()"}
        remedies = [remedy for way, remedy in ways.items() if hasattr(given, way)]
        raise TypeError(
            f"{name} is of type {type(given).__name__}; give a NumPy array "
            f"({(remedies or [f'numpy.asarray({name})'])[0]} makes one), or a tensor in host "
            "memory with DLPack"
        )
    stored(name, found.dtype)
    if not found.flags.aligned:
        raise ValueError(f"{name} is not aligned in memory; {name}.copy() is")
    return found


def stored(name: str, dtype: np.dtype) -> np.dtype:
    """A type of numbers as the machine has them; others are refused."""
    if dtype.hasobject:
        raise TypeError(
            f"{name} has dtype {dtype}, which refers to objects of Python; give numbers: "
            "astype(numpy.float64)"
        )
    if not dtype.isnative:
        raise TypeError(
            f"{name} has dtype {dtype}, whose bytes are not in this machine's order: "
            "astype(x.dtype.newbyteorder('=')) makes an array x that is"
        )
    return dtype


def cast(name: str, given: Any, dtype: np.dtype) -> np.ndarray:
    """What a function has returned as an array of a type; refused if the type does not hold its
    numbers, but for rounding of numbers that are no integers."""
    found = array(name, given) if isinstance(given, np.ndarray) else np.asarray(given)
    if found.dtype == dtype:
        return found
    if np.can_cast(found.dtype, dtype, "same_kind"):
        made = found.astype(dtype)
        if dtype.kind not in "iu" or (made == found).all():
            return made
    raise TypeError(
        f"{name} has dtype {found.dtype}, and {dtype} does not hold its numbers; convert them by "
        "astype(), or give the datum another dtype"
    )


def checked(name: str, given: Any, dtypes: tuple[str, ...], written: bool = False) -> np.ndarray:
    """The same in C's order, refused unless it has one of these types, and can be written where
    that is needed. What is only read is copied where it lies in another order."""
    found = array(name, given)
    if _name(found.dtype) not in dtypes:
        raise TypeError(
            f"{name} has dtype {found.dtype}; it needs {' or '.join(dtypes)}: "
            f"{name}.astype(numpy.{dtypes[-1]})"
        )
    if written and not found.flags.c_contiguous:
        raise ValueError(
            f"{name} is not contiguous in C's order, and results are written there; "
            f"numpy.ascontiguousarray({name}) makes a copy that is"
        )
    if written and not found.flags.writeable:
        raise ValueError(f"{name} is read-only, and results are written there; give a copy")
    return found if found.flags.c_contiguous else np.ascontiguousarray(found)


@lru_cache
def _name(dtype: np.dtype) -> str:
    # NumPy makes it anew each time, which takes longer than all checks together.
    return str(dtype.name)


def matrix(name: str, given: Any, dtypes: tuple[str, ...]) -> np.ndarray:
    """A checked array of two axes, none of which is empty."""
    found = checked(name, given, dtypes)
    if found.ndim != 2 or 0 in found.shape:
        raise ValueError(f"{name} has the shape {found.shape}; a matrix has rows and columns")
    return found


def vector(name: str, given: Any, dtypes: tuple[str, ...]) -> np.ndarray:
    """A checked array of one axis."""
    found = checked(name, given, dtypes)
    if found.ndim != 1:
        raise ValueError(
            f"{name} has the shape {found.shape}, and a vector has one axis; {name}.ravel() has "
            "all its numbers in one"
        )
    return found


class Matrix:
    """A sparse matrix for products with many vectors.

    Its values stay in the array of the SciPy matrix, which must not be changed while this object
    lives; its column numbers and row pointers are copied. Devices with memory of their own keep
    their part from one product to the next. A CuPy matrix passes the host once.
    """

    def __init__(self, matrix: Any) -> None:
        if type(matrix).__module__.startswith("cupyx."):
            matrix = matrix.get()
        name = type(matrix).__name__
        if getattr(matrix, "format", None) != "csr":
            remedy = "matrix.tocsr()" if hasattr(matrix, "tocsr") else "scipy.sparse.csr_array(...)"
            raise TypeError(f"the matrix is of type {name}; give compressed rows: {remedy}")
        values, indices, starts = (
            array(f"matrix.{of}", getattr(matrix, of)) for of in ("data", "indices", "indptr")
        )
        if values.dtype != np.float64:
            raise TypeError(
                f"the matrix has dtype {values.dtype}; it needs float64: "
                "matrix.astype(numpy.float64)"
            )
        if indices.dtype != np.int32:
            raise TypeError(
                f"the matrix's indices have dtype {indices.dtype}, and a matrix has at most "
                "2^31 - 1 columns: matrix.indices = matrix.indices.astype(numpy.int32)"
            )
        rows, columns = matrix.shape
        if max(rows, columns) >= 2**31:
            raise ValueError(f"the matrix has the shape {matrix.shape}; each is below 2^31")
        starts = np.ascontiguousarray(starts, dtype=np.uint64)
        indices = np.ascontiguousarray(indices).view(np.uint32)
        values = np.ascontiguousarray(values)
        try:
            self._matrix = _pdawl.Matrix(rows, columns, starts, indices, values)
        except ValueError as error:
            if "columns must ascend" in str(error):
                raise ValueError(
                    f"{error}: matrix.sum_duplicates() sorts each row and adds duplicates"
                ) from None
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        rows, columns = self.shape
        return _pickled, (rows, columns, *self._matrix.arrays())

    @property
    def shape(self) -> tuple[int, int]:
        return self._matrix.shape

    @property
    def nnz(self) -> int:
        return self._matrix.nnz

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<pdawl.Matrix {rows} x {columns}, {self.nnz} nonzeros>"


def _pickled(rows: int, columns: int, *arrays: np.ndarray) -> Matrix:
    matrix = Matrix.__new__(Matrix)
    matrix._matrix = _pdawl.Matrix(rows, columns, *arrays)
    return matrix
