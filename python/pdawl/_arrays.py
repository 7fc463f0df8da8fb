"""Arrays of the user's: checks, and views without copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _pdawl


def array(name: str, given: Any) -> np.ndarray:
    """A NumPy array of what is given, without a copy: an array, or what has DLPack."""
    if isinstance(given, np.ndarray):
        return given
    if hasattr(given, "__dlpack__"):
        return np.from_dlpack(given)
    raise TypeError(
        f"{name} is of type {type(given).__name__}; give a NumPy array, or a tensor in host "
        "memory with DLPack"
    )


def checked(name: str, given: Any, dtypes: tuple[str, ...], written: bool = False) -> np.ndarray:
    """The same, refused unless it has one of these types, lies in C's order, and can be written
    where that is needed."""
    found = array(name, given)
    if found.dtype.name not in dtypes:
        raise TypeError(
            f"{name} has dtype {found.dtype}; it needs {' or '.join(dtypes)}: "
            f"{name}.astype(numpy.{dtypes[-1]})"
        )
    if not found.flags.c_contiguous:
        raise ValueError(
            f"{name} is not contiguous in C's order; numpy.ascontiguousarray({name}) makes a copy "
            "that is"
        )
    if written and not found.flags.writeable:
        raise ValueError(f"{name} is read-only, and results are written there; give a copy")
    return found


def matrix(name: str, given: Any, dtypes: tuple[str, ...]) -> np.ndarray:
    """A checked array of two axes, none of which is empty."""
    found = checked(name, given, dtypes)
    if found.ndim != 2 or 0 in found.shape:
        raise ValueError(f"{name} has the shape {found.shape}; a matrix has rows and columns")
    return found


class Matrix:
    """A sparse matrix for products with many vectors.

    Its values and column numbers stay in the arrays of the SciPy matrix, which must not be
    changed while this object lives. Devices with memory of their own keep their part from one
    product to the next.
    """

    def __init__(self, matrix: Any) -> None:
        name = type(matrix).__name__
        if getattr(matrix, "format", None) != "csr":
            remedy = "matrix.tocsr()" if hasattr(matrix, "tocsr") else "scipy.sparse.csr_array(...)"
            raise TypeError(f"the matrix is of type {name}; give compressed rows: {remedy}")
        if matrix.data.dtype != np.float64:
            raise TypeError(
                f"the matrix has dtype {matrix.data.dtype}; it needs float64: "
                "matrix.astype(numpy.float64)"
            )
        if matrix.indices.dtype != np.int32:
            raise TypeError(
                f"the matrix's indices have dtype {matrix.indices.dtype}, and a matrix has at most "
                "2^31 - 1 columns: matrix.indices = matrix.indices.astype(numpy.int32)"
            )
        rows, columns = matrix.shape
        if max(rows, columns) >= 2**31:
            raise ValueError(f"the matrix has the shape {matrix.shape}; each is below 2^31")
        starts = np.ascontiguousarray(matrix.indptr, dtype=np.uint64)
        indices = np.ascontiguousarray(matrix.indices).view(np.uint32)
        values = np.ascontiguousarray(matrix.data)
        try:
            self._matrix = _pdawl.Matrix(rows, columns, starts, indices, values)
        except ValueError as error:
            if "columns must ascend" in str(error):
                raise ValueError(
                    f"{error}: matrix.sum_duplicates() sorts each row and adds duplicates"
                ) from None
            raise

    @property
    def shape(self) -> tuple[int, int]:
        return self._matrix.shape

    @property
    def nnz(self) -> int:
        return self._matrix.nnz

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<pdawl.Matrix {rows} x {columns}, {self.nnz} nonzeros>"
