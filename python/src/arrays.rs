//! Dense arrays: NumPy's as matrices of the session, and results as NumPy's arrays.

use std::ptr::NonNull;
use std::sync::Arc;

use numpy::{Complex32, PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pdawl::matrix::Shared;
use pdawl::session::{Complex, DenseMatrix, Error, Factor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::exception;
use crate::run::Run;

/// Elements that stay in NumPy's array, which the owner keeps.
pub fn shared<T: 'static, A: 'static>(elements: NonNull<[T]>, array: &Bound<'_, A>) -> Shared<T> {
    let owner: Py<A> = array.clone().unbind();
    // SAFETY: the array keeps its memory while it lives, and is not resized while others refer
    // to it. That nobody writes it is what the package asks of its users.
    unsafe { Shared::new(elements, Arc::new(owner)) }
}

fn elements<T: numpy::Element + 'static>(
    array: &Bound<'_, PyArrayDyn<T>>,
) -> PyResult<NonNull<[T]>> {
    let array = array.try_readonly()?;
    Ok(NonNull::from(array.as_slice()?))
}

/// A matrix of floats or doubles.
pub enum AnyMatrix {
    F32(DenseMatrix<f32>),
    F64(DenseMatrix<f64>),
}

impl AnyMatrix {
    pub fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(array) = array.cast::<PyArrayDyn<f64>>() {
            return Ok(Self::F64(dense(array)?));
        }
        Ok(Self::F32(dense(array.cast::<PyArrayDyn<f32>>()?)?))
    }
}

fn sides(shape: &[usize]) -> PyResult<[u32; 2]> {
    let sides: Vec<u32> = shape
        .iter()
        .filter_map(|side| (*side).try_into().ok())
        .collect();
    sides.try_into().map_err(|_| {
        exception(&Error::Arguments(format!(
            "an array of shape {shape:?} is no matrix; give 2 axes of less than 2^32"
        )))
    })
}

fn dense<T>(array: &Bound<'_, PyArrayDyn<T>>) -> PyResult<DenseMatrix<T>>
where
    T: numpy::Element + pdawl::session::Number,
{
    let [rows, columns] = sides(array.shape())?;
    let elements = shared(elements(array)?, array);
    DenseMatrix::new(rows, columns, elements).map_err(|error| exception(&error))
}

/// Rows and columns, and the numbers, which NumPy has in another type of as many bytes.
fn stored_as<N: numpy::Element + 'static, T: 'static>(
    array: &Bound<'_, PyAny>,
) -> PyResult<(u32, u32, Shared<T>)> {
    assert_eq!(size_of::<T>(), size_of::<N>());
    let array = array.cast::<PyArrayDyn<N>>()?;
    let [rows, columns] = sides(array.shape())?;
    let stored = elements(array)?;
    let numbers = NonNull::slice_from_raw_parts(stored.cast::<T>(), stored.len());
    Ok((rows, columns, shared(numbers, array)))
}

/// A matrix of numbers of 16 bits, which come as integers: NumPy has no type for all of them.
pub fn of_bits<T: Factor>(array: &Bound<'_, PyAny>) -> PyResult<DenseMatrix<T>> {
    let (rows, columns, numbers) = stored_as::<u16, T>(array)?;
    DenseMatrix::new(rows, columns, numbers).map_err(|error| exception(&error))
}

/// A matrix of complex numbers, which are pairs of floats.
pub fn complex(array: &Bound<'_, PyAny>) -> PyResult<DenseMatrix<Complex>> {
    let (rows, columns, pairs) = stored_as::<Complex32, Complex>(array)?;
    DenseMatrix::new(rows, columns, pairs).map_err(|error| exception(&error))
}

/// A vector of floats.
pub fn vector(array: &Bound<'_, PyAny>) -> PyResult<Shared<f32>> {
    let array = array.cast::<PyArrayDyn<f32>>()?;
    Ok(shared(elements(array)?, array))
}

/// A flat array of a result's elements, which are not copied, and the run.
pub type Answer = (Py<PyAny>, Run);

pub fn answer<T: numpy::Element>(
    py: Python<'_>,
    elements: Vec<T>,
    run: pdawl::session::Run,
) -> Answer {
    (
        PyArray1::from_vec(py, elements).into_any().unbind(),
        Run(run),
    )
}

/// The exception of matrices of unlike types.
pub fn unlike() -> PyErr {
    PyTypeError::new_err("the matrices have different types; astype() makes them the same")
}

/// The same of complex numbers.
pub fn complex_answer(
    py: Python<'_>,
    matrix: DenseMatrix<Complex>,
    run: pdawl::session::Run,
) -> Answer {
    let pairs = matrix.into_elements().into_iter();
    let numbers = pairs.map(|[real, imaginary]| Complex32::new(real, imaginary));
    answer(py, numbers.collect(), run)
}
