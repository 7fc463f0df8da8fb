//! The unit of time within the library.

/// Nanoseconds on the clock of a runtime, since the runtime was created.
pub type Nanos = u64;
