//! The exception of a policy, a balancer or a task, which ends the run.

use std::sync::{Arc, Mutex, PoisonError};

use pdawl::session::Stop;
use pyo3::prelude::*;

/// The first exception of a run.
#[derive(Clone, Default)]
pub struct Failure(Arc<Mutex<Option<PyErr>>>);

/// The same, with the stop of the session that it ends.
#[derive(Clone)]
pub struct Ending {
    failure: Failure,
    stop: Stop,
}

impl Failure {
    pub fn of(self, stop: Stop) -> Ending {
        Ending {
            failure: self,
            stop,
        }
    }

    /// Takes the exception.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Ending {
    /// Ends the run with this exception, unless there is one.
    pub fn raise(&self, error: PyErr) {
        let mut first = (self.failure.0.lock()).unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.stop.set();
    }

    /// Whether the run ends with an exception.
    pub fn is_raised(&self) -> bool {
        let first = (self.failure.0.lock()).unwrap_or_else(PoisonError::into_inner);
        first.is_some()
    }

    /// What `call` returns, or `otherwise` when it raises something.
    pub fn guard<R>(&self, otherwise: R, call: impl FnOnce(Python<'_>) -> PyResult<R>) -> R {
        if self.is_raised() {
            return otherwise;
        }
        Python::attach(call).unwrap_or_else(|error| {
            self.raise(error);
            otherwise
        })
    }
}
