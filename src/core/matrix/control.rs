//! Progress reports and interruption of long operations on a matrix.

use std::sync::atomic::{AtomicBool, Ordering};

use super::MatrixError;

/// Receives the progress of work on a matrix, and can interrupt it.
pub struct Control<'a> {
    /// Ends the work with [`MatrixError::Interrupted`] once it is set.
    pub stop: &'a AtomicBool,
    /// Called from time to time, on the thread that requested the matrix.
    pub progress: &'a mut dyn FnMut(Progress),
}

/// The progress of a part of the work. `done` and `total` have the same unit; `total`
/// is 0 where it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The operation, such as `reading`.
    pub what: &'static str,
    pub done: u64,
    pub total: u64,
}

impl Control<'_> {
    /// Reports progress.
    ///
    /// # Errors
    /// [`MatrixError::Interrupted`], if the work is to stop.
    pub fn report(&mut self, what: &'static str, done: u64, total: u64) -> Result<(), MatrixError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(MatrixError::Interrupted);
        }
        (self.progress)(Progress { what, done, total });
        Ok(())
    }

    /// Calls `act` with a control that can interrupt and gets no progress.
    pub fn without_progress<T>(&self, act: impl FnOnce(&mut Control) -> T) -> T {
        act(&mut Control {
            stop: self.stop,
            progress: &mut |_| {},
        })
    }
}

/// Calls `act` with a control that neither interrupts nor gets progress.
pub fn quietly<T>(act: impl FnOnce(&mut Control) -> T) -> T {
    act(&mut Control {
        stop: &AtomicBool::new(false),
        progress: &mut |_| {},
    })
}
