//! The unit of time inside the house.

/// Nanoseconds on a runtime's one clock, counted from the runtime's creation.
pub type Nanos = u64;
