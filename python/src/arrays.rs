//! Dense arrays: NumPy's as matrices of the session, and results as NumPy's arrays.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use numpy::ndarray::{ArrayView1, Dimension};
use numpy::{
    Element, PyArray, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray, PyReadonlyArrayDyn,
    PyReadwriteArray, PyUntypedArray, PyUntypedArrayMethods,
};
use pdawl::matrix::Shared;
use pdawl::session::{ArrayResult, Complex, DenseMatrix, Error, Factor, Factors, Number};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyWeakrefReference};

use crate::errors::exception;
use crate::run::Run;

/// What keeps the memory of an array where it is: NumPy resizes no array to which a weak
/// reference refers, whatever `refcheck` says. A view has its memory from others.
pub fn pins(array: &Bound<'_, PyAny>) -> PyResult<Vec<Py<PyWeakrefReference>>> {
    let mut pins = Vec::new();
    let mut next = array.clone();
    loop {
        if next.cast::<PyUntypedArray>().is_ok() {
            pins.push(PyWeakrefReference::new(&next)?.unbind());
            next = next.getattr("base")?;
        } else if next.cast::<PyMemoryView>().is_ok() {
            next = next.getattr("obj")?;
        } else {
            return Ok(pins);
        }
    }
}

/// The array, which no call writes meanwhile.
pub fn read<'py, T: Element, D: Dimension>(
    name: &str,
    array: &Bound<'py, PyArray<T, D>>,
) -> PyResult<PyReadonlyArray<'py, T, D>> {
    array.try_readonly().map_err(|_| {
        PyValueError::new_err(format!(
            "{name} is written by a call of another thread; wait for its end, or give a copy"
        ))
    })
}

/// The array, which no call uses otherwise meanwhile.
pub fn written<'py, T: Element, D: Dimension>(
    name: &str,
    array: &Bound<'py, PyArray<T, D>>,
) -> PyResult<PyReadwriteArray<'py, T, D>> {
    array.try_readwrite().map_err(|_| {
        PyValueError::new_err(format!(
            "{name} is written, and shares memory with another argument or with a call of \
             another thread; give a copy"
        ))
    })
}

/// Elements that stay in NumPy's array, which the owner keeps.
pub fn shared<T: 'static>(elements: NonNull<[T]>, array: &Bound<'_, PyAny>) -> PyResult<Shared<T>> {
    let owner = (array.clone().unbind(), pins(array)?);
    // SAFETY: the owner keeps the array, and its memory where it is. That nobody writes it is
    // what the package asks of its users; only numbers depend on it.
    Ok(unsafe { Shared::new(elements, Arc::new(owner)) })
}

/// What a call makes of an array, with the borrow that keeps other calls from writing it.
pub struct Lent<'py, M, T: Element>(pub M, PyReadonlyArrayDyn<'py, T>);

/// A matrix of floats or doubles, or of pairs of them.
pub enum AnyMatrix<'py, F = f32, D = f64> {
    F32(Lent<'py, DenseMatrix<F>, f32>),
    F64(Lent<'py, DenseMatrix<D>, f64>),
}

/// The same of a matrix of either type.
macro_rules! of_any {
    ($any:expr, $matrix:ident => $do:expr) => {
        match $any {
            $crate::arrays::AnyMatrix::F32($matrix) => $do,
            $crate::arrays::AnyMatrix::F64($matrix) => $do,
        }
    };
}
pub(crate) use of_any;

impl<'py> AnyMatrix<'py> {
    pub fn of(name: &str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        match array.cast::<PyArrayDyn<f64>>() {
            Ok(_) => Ok(Self::F64(matrix(name, array)?)),
            Err(_) => Ok(Self::F32(matrix(name, array)?)),
        }
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

/// Rows and columns, and the numbers, which NumPy may have in another type of as many bytes.
fn stored_as<'py, N: Element + 'static, T: 'static>(
    name: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<(u32, u32, Lent<'py, Shared<T>, N>)> {
    assert_eq!(size_of::<T>(), size_of::<N>());
    let lent = read(name, array.cast::<PyArrayDyn<N>>()?)?;
    let [rows, columns] = sides(lent.shape())?;
    let stored = NonNull::from(lent.as_slice()?);
    let numbers = NonNull::slice_from_raw_parts(stored.cast::<T>(), stored.len());
    Ok((rows, columns, Lent(shared(numbers, array)?, lent)))
}

/// A matrix. Numbers of 16 bits come as integers: NumPy has no type for all of them.
pub fn matrix<'py, N: Element + 'static, T: Factor>(
    name: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<Lent<'py, DenseMatrix<T>, N>> {
    let (rows, columns, Lent(numbers, lent)) = stored_as(name, array)?;
    let matrix = DenseMatrix::new(rows, columns, numbers);
    Ok(Lent(matrix.map_err(|error| exception(&error))?, lent))
}

/// A matrix of complex numbers, which come as pairs of numbers.
pub fn any_complex<'py>(
    array: &Bound<'py, PyAny>,
) -> PyResult<AnyMatrix<'py, Complex<f32>, Complex<f64>>> {
    Ok(match array.cast::<PyArrayDyn<f64>>() {
        Ok(array) => AnyMatrix::F64(complex(array)?),
        Err(_) => AnyMatrix::F32(complex(array.cast::<PyArrayDyn<f32>>()?)?),
    })
}

fn complex<'py, T: Element + Number>(
    array: &Bound<'py, PyArrayDyn<T>>,
) -> PyResult<Lent<'py, DenseMatrix<Complex<T>>, T>> {
    let lent = read("a", array)?;
    let [rows, columns] = sides(lent.shape())?;
    let pairs = shared(NonNull::from(lent.as_slice()?), array)?.cast();
    let matrix = DenseMatrix::new(rows, columns / 2, pairs);
    Ok(Lent(matrix.map_err(|error| exception(&error))?, lent))
}

/// Rows of numbers, one after the other, and how many there are.
pub fn rows<'py, T: Element + 'static>(
    array: &Bound<'py, PyArrayDyn<T>>,
) -> PyResult<(u64, Lent<'py, Shared<T>, T>)> {
    let lent = read("numbers", array)?;
    let numbers = shared(NonNull::from(lent.as_slice()?), array)?;
    let rows: usize = lent.shape().iter().rev().skip(1).product();
    Ok((rows as u64, Lent(numbers, lent)))
}

/// Bytes that stay in NumPy's array.
pub fn bytes(array: &Bound<'_, PyArray1<u8>>) -> PyResult<Shared<u8>> {
    shared(NonNull::from(read("data", array)?.as_slice()?), array)
}

/// A flat array of a result's elements, which are not copied, and the run.
pub type Answer = (Py<PyAny>, Run);

pub fn answer<T: Element + Clone + Send + Sync + 'static>(
    py: Python<'_>,
    elements: impl Into<Shared<T>>,
    run: pdawl::session::Run,
) -> PyResult<Answer> {
    Ok((kept(py, elements.into())?.unbind(), Run(run)))
}

/// What keeps the elements of an array.
#[pyclass(frozen)]
struct Kept(#[allow(dead_code, reason = "it is kept")] Box<dyn Any + Send + Sync>);

/// A flat array of the pairs of complex numbers.
pub fn complex_answer<T: Element + Number>(
    py: Python<'_>,
    ArrayResult { result, run }: ArrayResult<DenseMatrix<Complex<T>>>,
) -> PyResult<Answer> {
    answer(py, result.into_shared().cast::<T>(), run)
}

/// The factors and the exchanges of rows of an LU factorisation.
pub type LuAnswer = (Answer, Py<PyArray1<i32>>);

pub fn lu_answer<T: Element + Number>(
    py: Python<'_>,
    ArrayResult { result, run }: ArrayResult<Factors<T>>,
) -> PyResult<LuAnswer> {
    let pivots = PyArray1::from_vec(py, result.pivots).unbind();
    Ok((answer(py, result.lu.into_shared(), run)?, pivots))
}

/// A flat array of elements, which stay where they are.
pub fn kept<T: Element + Clone + Send + Sync + 'static>(
    py: Python<'_>,
    elements: Shared<T>,
) -> PyResult<Bound<'_, PyAny>> {
    let view = ArrayView1::from(&*elements);
    let owner = Bound::new(py, Kept(Box::new(elements.clone())))?.into_any();
    // SAFETY: the elements stay at their place as long as the container has them, and nobody else
    // reads them.
    Ok(unsafe { PyArray1::borrow_from_array(&view, owner) }.into_any())
}

/// The exception of matrices of unlike types.
pub fn unlike() -> PyErr {
    PyTypeError::new_err("the matrices have different types; astype() makes them the same")
}
