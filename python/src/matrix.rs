//! Sparse matrices in NumPy's memory.

use std::ptr::NonNull;

use numpy::{PyArray1, PyReadonlyArray1};
use pdawl::session::SparseMatrix;
use pyo3::prelude::*;

use crate::arrays::{read, shared};
use crate::errors::exception;

/// A sparse matrix whose values stay in NumPy's array. Its row starts and columns are copies:
/// whoever changes those of the array changes no product, and no product reads outside a vector.
#[pyclass(frozen)]
pub struct Matrix(pub SparseMatrix);

#[pymethods]
impl Matrix {
    #[new]
    fn new(
        rows: u32,
        columns: u32,
        row_starts: PyReadonlyArray1<'_, u64>,
        column_of: PyReadonlyArray1<'_, u32>,
        values: &Bound<'_, PyArray1<f64>>,
    ) -> PyResult<Self> {
        let (starts, column_of) = (
            row_starts.as_slice()?.to_vec(),
            column_of.as_slice()?.to_vec(),
        );
        let numbers = NonNull::from(read("matrix.data", values)?.as_slice()?);
        let values = shared(numbers, values)?;
        let matrix = SparseMatrix::new(rows, columns, starts, column_of, values);
        Ok(Self(matrix.map_err(|error| exception(&error))?))
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.columns())
    }

    #[getter]
    fn nnz(&self) -> u64 {
        self.0.nonzeros()
    }
}
