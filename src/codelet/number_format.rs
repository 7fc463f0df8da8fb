//! Formats of numbers that have fewer bits than singles, the precisions of products, and how
//! numbers are stored.

use half::{bf16, f16};

use super::Precision;

/// A format of numbers whose sums are computed in single precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NumberFormat {
    /// IEEE 754's binary16: 11 bits of precision, at most 65504.
    F16,
    /// bfloat16: a single's exponent, and 8 bits of precision.
    Bf16,
    /// NVIDIA's TF32: stored as singles; the factors of a product are rounded to 11 bits of
    /// precision.
    Tf32,
    #[default]
    F32,
}

impl NumberFormat {
    pub const ALL: [Self; 4] = [Self::F16, Self::Bf16, Self::Tf32, Self::F32];

    /// `f16`, `bf16`, `tf32` or `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
            Self::F32 => "f32",
        }
    }

    /// How its numbers are stored.
    pub fn element(self) -> Element {
        match self {
            Self::F16 => Element::F16,
            Self::Bf16 => Element::Bf16,
            Self::Tf32 | Self::F32 => Element::F32,
        }
    }

    /// The format of the same numbers where they are not multiplied.
    pub(super) fn unmultiplied(self) -> Self {
        match self {
            Self::Tf32 => Self::F32,
            other => other,
        }
    }

    /// The greatest relative error that rounding a factor makes; 0 where factors are multiplied
    /// as they are stored.
    pub fn factor_error(self) -> f64 {
        match self {
            Self::Tf32 => TF32_UNIT,
            Self::F16 | Self::Bf16 | Self::F32 => 0.0,
        }
    }

    /// The greatest relative error of a product of two stored numbers whose factors are
    /// rounded first; 0 where they are multiplied as they are stored.
    pub fn product_error(self) -> f64 {
        (1.0 + self.factor_error()).powi(2) - 1.0
    }

    /// The format for `kernels/stored.h`, as an option of a compiler.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::F16 => "-DFORMAT=FORMAT_F16",
            Self::Bf16 => "-DFORMAT=FORMAT_BF16",
            Self::Tf32 => "-DFORMAT=FORMAT_TF32",
            Self::F32 => "-DFORMAT=FORMAT_F32",
        }
    }
}

/// Half the distance from 1 to the next number of TF32.
const TF32_UNIT: f64 = 1.0 / 2048.0;

/// The precision of a product: the format of its factors, whose sums are singles, or doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProductPrecision {
    Single(NumberFormat),
    Double,
}

impl ProductPrecision {
    /// `f16`, `bf16`, `tf32`, `f32` or `f64`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single(format) => format.name(),
            Self::Double => Precision::F64.name(),
        }
    }

    /// The precision of the sums.
    pub fn sums(self) -> Precision {
        match self {
            Self::Single(_) => Precision::F32,
            Self::Double => Precision::F64,
        }
    }

    /// How the factors are stored.
    pub fn factors(self) -> Element {
        match self {
            Self::Single(format) => format.element(),
            Self::Double => Element::F64,
        }
    }
}

impl From<NumberFormat> for ProductPrecision {
    fn from(format: NumberFormat) -> Self {
        Self::Single(format)
    }
}

impl From<Precision> for ProductPrecision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self::Single(NumberFormat::F32),
            Precision::F64 => Self::Double,
        }
    }
}

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    F16,
    Bf16,
    F32,
    F64,
}

impl Element {
    /// Bytes of a number.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// `f16`, `bf16`, `f32` or `f64`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The greatest relative error of storing a number: half the distance from 1 to the next.
    pub fn unit(self) -> f64 {
        match self {
            Self::F16 => f64::from(f16::EPSILON) / 2.0,
            Self::Bf16 => f64::from(bf16::EPSILON) / 2.0,
            Self::F32 => f64::from(f32::EPSILON) / 2.0,
            Self::F64 => f64::EPSILON / 2.0,
        }
    }

    /// The smallest normal number: relative errors of smaller ones are greater.
    pub fn least(self) -> f64 {
        match self {
            Self::F16 => f16::MIN_POSITIVE.into(),
            Self::Bf16 => bf16::MIN_POSITIVE.into(),
            Self::F32 => f32::MIN_POSITIVE.into(),
            Self::F64 => f64::MIN_POSITIVE,
        }
    }

    /// Stores numbers, each rounded to a single first where less than a double is stored.
    pub fn store(self, numbers: impl Iterator<Item = f64>, to: &mut [u8]) {
        match self {
            Self::F16 => store(numbers, to, |n| f16::from_f32(n as f32).to_ne_bytes()),
            Self::Bf16 => store(numbers, to, |n| bf16::from_f32(n as f32).to_ne_bytes()),
            Self::F32 => store(numbers, to, |n| (n as f32).to_ne_bytes()),
            Self::F64 => store(numbers, to, f64::to_ne_bytes),
        }
    }
}

impl From<Precision> for Element {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self::F32,
            Precision::F64 => Self::F64,
        }
    }
}

fn store<const N: usize>(
    numbers: impl Iterator<Item = f64>,
    to: &mut [u8],
    bytes: impl Fn(f64) -> [u8; N],
) {
    for (to, number) in to.as_chunks_mut().0.iter_mut().zip(numbers) {
        *to = bytes(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_the_formats() {
        let units = [Element::F16, Element::Bf16, Element::F32, Element::F64];
        let expected = [11, 8, 24, 53].map(|bits| 0.5_f64.powi(bits));
        assert_eq!(units.map(Element::unit), expected);
        assert_eq!(Element::F16.least(), 0.5_f64.powi(14));
        let of_product = NumberFormat::Tf32.product_error();
        assert!((0.5_f64.powi(10)..0.5_f64.powi(10) * 1.001).contains(&of_product));
    }
}
