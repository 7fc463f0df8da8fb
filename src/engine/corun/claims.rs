//! What a run has allocated on its runtime, released when the run ends.

pub use crate::engine::scope::RuntimeScope as Claims;
