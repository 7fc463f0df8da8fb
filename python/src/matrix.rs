//! Sparse matrices in NumPy's memory.

use std::ptr::NonNull;

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pdawl::matrix::Shared;
use pdawl::session::SparseMatrix;
use pyo3::prelude::*;

use crate::arrays::shared;
use crate::errors::exception;

/// A sparse matrix whose indices and values stay in NumPy's arrays.
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
        let column_of = elements(column_of)?;
        let values = elements(values)?;
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

/// An array's elements, and the array as their owner.
fn elements<T: numpy::Element + 'static>(array: &Bound<'_, PyArray1<T>>) -> PyResult<Shared<T>> {
    let elements = {
        let array = array.try_readonly()?;
        NonNull::from(array.as_slice()?)
    };
    Ok(shared(elements, array))
}
