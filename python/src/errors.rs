//! Errors as exceptions, with the same words.

use pdawl::session::Error as SessionError;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::{PyErr, create_exception, import_exception};

create_exception!(
    pdawl,
    Error,
    PyRuntimeError,
    "A run that devices, memory or drivers do not allow."
);

import_exception!(numpy.linalg, LinAlgError);

/// The exception of an error: a `ValueError` for wrong arguments, NumPy's for a matrix without
/// factors.
pub fn exception(error: &SessionError) -> PyErr {
    let text = error.to_string();
    match error {
        SessionError::NoResult(_) => LinAlgError::new_err(text),
        SessionError::Arguments(_)
        | SessionError::Devices(_)
        | SessionError::KernelDevices(_)
        | SessionError::NoKernelDevice { .. }
        | SessionError::Machine(_)
        | SessionError::Strategy(_)
        | SessionError::LeftOut(..)
        | SessionError::Tiles { .. }
        | SessionError::Matrix(_)
        | SessionError::Product(_)
        | SessionError::Stencil(_)
        | SessionError::Graph(_)
        | SessionError::Policy(_) => PyValueError::new_err(text),
        _ => Error::new_err(text),
    }
}
