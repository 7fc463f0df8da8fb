//! Sparse matrices in NumPy's memory.

use std::ptr::NonNull;

use numpy::{Element, PyArray1, PyReadonlyArray1};
use pdawl::matrix::Shared;
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
        column_of: &Bound<'_, PyArray1<u32>>,
        values: &Bound<'_, PyArray1<f64>>,
    ) -> PyResult<Self> {
        let starts = row_starts.as_slice()?.to_vec();
        // NumPy's copy, as its memory is in huge pages: fresh memory takes most of the time. A
        // check of the columns in each product takes less, but sees no change during the product.
        let column_of = column_of.call_method0("copy")?;
        let column_of: Shared<u32> = lent("matrix.indices", column_of.cast()?)?;
        let values = lent("matrix.data", values)?;
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

    /// Copies of the row starts, the column numbers and the values.
    fn arrays<'py>(&self, py: Python<'py>) -> Arrays<'py> {
        let (starts, column_of, values) = self.0.arrays();
        (
            PyArray1::from_slice(py, starts),
            PyArray1::from_slice(py, column_of),
            PyArray1::from_slice(py, values),
        )
    }
}

type Arrays<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
);

/// The elements of an array, which keeps them.
fn lent<T: Element + 'static>(name: &str, array: &Bound<'_, PyArray1<T>>) -> PyResult<Shared<T>> {
    shared(NonNull::from(read(name, array)?.as_slice()?), array)
}
