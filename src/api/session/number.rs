//! Numbers that are computed with.

use half::{bf16, f16};

use super::GridNumbers;
use crate::codelet::{NumberFormat, Precision, ProductPrecision};

/// A number of a grid or of a dense matrix: `f32` or `f64`.
pub trait Number: Factor<Sum = Self> {
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

/// A number of a product's factors: `f32`, `f64`, or `f16` or `bf16`, whose products are summed
/// in `f32`.
pub trait Factor: bytemuck::Pod + Send + Sync {
    /// The format of the factors.
    const FACTORS: ProductPrecision;

    /// A number of the product.
    type Sum: Number;
}

macro_rules! factors {
    ($($factor:ty: $format:ident),*) => {
        $(
            impl Factor for $factor {
                const FACTORS: ProductPrecision =
                    ProductPrecision::Single(NumberFormat::$format);

                type Sum = f32;
            }
        )*
    };
}

factors!(f16: F16, bf16: Bf16, f32: F32);

impl Factor for f64 {
    const FACTORS: ProductPrecision = ProductPrecision::Double;

    type Sum = f64;
}
