//! A short-lived buffer without an allocation.

/// Buffers up to this many numbers live on the stack. Models have 4 to 12
/// inputs.
const STACK: usize = 32;

/// Calls `use_it` with `length` zeros.
pub(crate) fn scratch<R>(length: usize, use_it: impl FnOnce(&mut [f64]) -> R) -> R {
    if length <= STACK {
        use_it(&mut [0.0; STACK][..length])
    } else {
        use_it(&mut vec![0.0; length])
    }
}
