//! Who wants the results.

use std::fmt;
use std::sync::Arc;

/// Is told what a written buffer has at the end, by its position.
#[derive(Clone)]
pub struct Sink(pub(super) Arc<Take>);

type Take = dyn Fn(usize, &[u8]) + Send + Sync;

impl Sink {
    /// Calls this function.
    pub fn new(take: impl Fn(usize, &[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Sink")
    }
}
