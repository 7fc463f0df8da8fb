//! The receiver of the results of a kernel, a product or a stencil.

use std::fmt;
use std::sync::Arc;

/// Receives the final contents of each written buffer, with its position.
#[derive(Clone)]
pub struct Sink(Arc<Take>);

type Take = dyn Fn(usize, &[u8]) + Send + Sync;

impl Sink {
    /// A sink that calls this function.
    pub fn new(take: impl Fn(usize, &[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Passes it the contents of a buffer.
    pub(crate) fn take(&self, position: usize, bytes: &[u8]) {
        (self.0)(position, bytes);
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Sink")
    }
}
