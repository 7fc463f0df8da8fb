//! What a long load tells and hears.

use std::sync::atomic::{AtomicBool, Ordering};

use super::error::MatrixError;

/// Whoever waits for a matrix: what may end the work early, and who is told
/// how far it is.
pub struct Control<'a> {
    /// Ends the work with [`MatrixError::Interrupted`] once it is set.
    pub stop: &'a AtomicBool,
    /// Told now and then, on the thread that asked for the matrix.
    pub progress: &'a mut dyn FnMut(Progress),
}

/// How far a part of the work is; `done` and `total` have the same unit, and
/// `total` is 0 where it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Such as `reading`.
    pub what: &'static str,
    pub done: u64,
    pub total: u64,
}

impl Control<'_> {
    /// Tells how far the work is, and hears whether it shall go on.
    ///
    /// # Errors
    /// [`MatrixError::Interrupted`].
    pub fn tell(&mut self, what: &'static str, done: u64, total: u64) -> Result<(), MatrixError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(MatrixError::Interrupted);
        }
        (self.progress)(Progress { what, done, total });
        Ok(())
    }

    /// The same for a part of the work that tells nothing.
    pub fn silently<T>(&self, act: impl FnOnce(&mut Control) -> T) -> T {
        act(&mut Control {
            stop: self.stop,
            progress: &mut |_| {},
        })
    }
}

/// Works for somebody who neither watches nor interrupts.
pub fn quietly<T>(act: impl FnOnce(&mut Control) -> T) -> T {
    act(&mut Control {
        stop: &AtomicBool::new(false),
        progress: &mut |_| {},
    })
}
