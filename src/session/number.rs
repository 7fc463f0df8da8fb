//! Numbers that are computed with.

use super::GridNumbers;
use crate::codelet::Precision;

/// A number of a grid or of a dense matrix: `f32` or `f64`.
pub trait Number: bytemuck::Pod + Send + Sync {
    /// Single or double.
    const PRECISION: Precision;

    /// The numbers of a grid of this type.
    fn numbers(numbers: &mut [Self]) -> GridNumbers<'_>;
}

impl Number for f32 {
    const PRECISION: Precision = Precision::F32;

    fn numbers(numbers: &mut [Self]) -> GridNumbers<'_> {
        GridNumbers::F32(numbers)
    }
}

impl Number for f64 {
    const PRECISION: Precision = Precision::F64;

    fn numbers(numbers: &mut [Self]) -> GridNumbers<'_> {
        GridNumbers::F64(numbers)
    }
}
