//! What a precision may lose.

use crate::codelet::{Precision, ProductPrecision};

/// The limits of a precision's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounding {
    /// The greatest relative error of an operation: half the distance from 1 to the next
    /// number.
    pub unit: f64,
    /// The greatest absolute error of an operation whose result is near zero: the smallest
    /// normal number, as devices may replace smaller ones by zero.
    pub least: f64,
    /// The greatest finite number.
    pub most: f64,
    /// The greatest relative error of a product of two numbers whose factors are rounded first;
    /// 0 if they are not.
    pub product: f64,
}

impl From<Precision> for Rounding {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self {
                unit: f64::from(f32::EPSILON) / 2.0,
                least: f32::MIN_POSITIVE.into(),
                most: f32::MAX.into(),
                product: 0.0,
            },
            Precision::F64 => Self {
                unit: f64::EPSILON / 2.0,
                least: f64::MIN_POSITIVE,
                most: f64::MAX,
                product: 0.0,
            },
        }
    }
}

impl From<ProductPrecision> for Rounding {
    fn from(precision: ProductPrecision) -> Self {
        Self {
            product: match precision {
                ProductPrecision::Single(format) => format.product_error(),
                ProductPrecision::Double => 0.0,
            },
            ..Self::from(precision.sums())
        }
    }
}
