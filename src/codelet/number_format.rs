//! Formats of numbers that have fewer bits than singles, the precisions of products, and how
//! numbers are stored.
//!
//! Single or double precision.
//!
//! Numbers of the formats as they are stored on the host, and the singles that kernels compute
//! with.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::Value;
use super::host::{Vectorised, vectorised};

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
        precision.choose(Self::Single(NumberFormat::F32), Self::Double)
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
        precision.choose(Self::F32, Self::F64)
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

/// The floating-point type that a codelet computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    F32,
    F64,
}

impl Precision {
    /// What is for numbers of this precision.
    pub fn choose<T>(self, single: T, double: T) -> T {
        match self {
            Self::F32 => single,
            Self::F64 => double,
        }
    }

    /// A number, rounded to the precision, as an argument.
    pub fn value(self, number: f64) -> Value {
        self.choose(Value::F32(number as f32), Value::F64(number))
    }

    /// Bytes of a number.
    pub fn bytes(self) -> u64 {
        self.choose(4, 8)
    }

    /// The type in OpenCL C.
    pub fn c_type(self) -> &'static str {
        self.choose("float", "double")
    }

    /// `f32` or `f64`.
    pub fn name(self) -> &'static str {
        self.choose("f32", "f64")
    }
}

/// A stored number.
pub(crate) trait Stored: Copy + Send + Sync {
    /// Converts as many numbers to their values.
    fn to_values(from: &[Self], to: &mut [f32]);

    /// Converts as many numbers to factors of products.
    fn to_factors(from: &[Self], to: &mut [f32]) {
        Self::to_values(from, to);
    }

    /// Stores as many values, each rounded to the nearest number.
    fn from_values(from: &[f32], to: &mut [Self]);
}

impl Stored for f16 {
    fn to_values(from: &[Self], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }

    fn from_values(from: &[f32], to: &mut [Self]) {
        to.convert_from_f32_slice(from);
    }
}

impl Stored for bf16 {
    fn to_values(from: &[Self], to: &mut [f32]) {
        each(from, to, |one| {
            f32::from_bits(u32::from(one.to_bits()) << 16)
        });
    }

    fn from_values(from: &[f32], to: &mut [Self]) {
        each(from, to, |value| bf16::from_bits(rounded_to_bf16(value)));
    }
}

impl Stored for f32 {
    fn to_values(from: &[Self], to: &mut [f32]) {
        to.copy_from_slice(from);
    }

    fn from_values(from: &[f32], to: &mut [Self]) {
        to.copy_from_slice(from);
    }
}

/// A single whose products are those of [`NumberFormat::Tf32`](super::NumberFormat::Tf32).
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Tf32(f32);

impl Stored for Tf32 {
    fn to_values(from: &[Self], to: &mut [f32]) {
        each(from, to, |one| one.0);
    }

    fn to_factors(from: &[Self], to: &mut [f32]) {
        each(from, to, |one| rounded_to_tf32(one.0));
    }

    fn from_values(from: &[f32], to: &mut [Self]) {
        each(from, to, Self);
    }
}

/// The upper half of a single, rounded to the nearest, in a tie to the even one. What is no
/// number stays none.
#[inline(always)]
fn rounded_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let none = bits >> 16 | 0x40;
    (if value.is_nan() { none } else { rounded }) as u16
}

/// A single with 10 bits of its mantissa, rounded likewise. What is infinite or no number stays
/// as it is.
#[inline(always)]
fn rounded_to_tf32(value: f32) -> f32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0xfff + (bits >> 13 & 1)) & !0x1fff;
    f32::from_bits(if value.is_finite() { rounded } else { bits })
}

/// Converts number by number.
fn each<A: Copy, B>(from: &[A], to: &mut [B], convert: impl Fn(A) -> B) {
    struct Each<'a, A, B, F> {
        from: &'a [A],
        to: &'a mut [B],
        convert: F,
    }
    impl<A: Copy, B, F: Fn(A) -> B> Vectorised for Each<'_, A, B, F> {
        #[inline(always)]
        fn run(self) {
            for (from, to) in self.from.iter().zip(self.to) {
                *to = (self.convert)(*from);
            }
        }
    }
    vectorised(Each { from, to, convert });
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

    /// Numbers on both sides of ties, the greatest ones, small ones, and what is none.
    fn singles() -> Vec<f32> {
        let mut random = fastrand::Rng::with_seed(11);
        let some = (0..10_000).map(|_| f32::from_bits(random.u32(..)));
        let ties = (0..64).map(|n| f32::from_bits(0x3f80_0000 | n << 11));
        let ends = [
            f32::MAX,
            f32::MIN,
            f32::INFINITY,
            f32::NAN,
            0.0,
            -0.0,
            1e-40,
        ];
        // No number with only the lowest bit of the mantissa.
        let none = [f32::from_bits(0x7f80_0001), f32::from_bits(0xff80_0001)];
        some.chain(ties).chain(ends).chain(none).collect()
    }

    fn same(one: f32, other: f32) -> bool {
        one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan()
    }

    fn check<S: Stored>(of: impl Fn(f32) -> S, value: impl Fn(S) -> f32) {
        let values = singles();
        let mut stored: Vec<S> = values.iter().map(|_| of(7.0)).collect();
        S::from_values(&values, &mut stored);
        let mut back = vec![0.0; values.len()];
        S::to_values(&stored, &mut back);
        for ((before, stored), back) in values.iter().zip(stored).zip(back) {
            let right = value(of(*before));
            assert!(same(value(stored), right), "{before}: {}", value(stored));
            assert!(same(back, right), "{before}: {back} for {right}");
        }
    }

    #[test]
    fn numbers_are_stored_as_the_library_rounds_them() {
        check(f16::from_f32, f16::to_f32);
        check(bf16::from_f32, bf16::to_f32);
        check(|value| value, |value: f32| value);
        check(Tf32, |one| one.0);
    }

    #[test]
    fn factors_of_tf32_have_ten_bits_and_are_the_nearest() {
        let values = singles();
        let stored: Vec<Tf32> = values.iter().copied().map(Tf32).collect();
        let mut factors = vec![0.0; values.len()];
        Tf32::to_factors(&stored, &mut factors);
        for (value, factor) in values.into_iter().zip(factors) {
            if !value.is_finite() || value.abs() < f32::MIN_POSITIVE {
                assert!(!value.is_finite() || factor.abs() <= f32::MIN_POSITIVE);
                assert!(
                    value.is_finite() || same(value, factor),
                    "{value}: {factor}"
                );
                continue;
            }
            // The distance of numbers with 10 bits.
            let unit = 2f64.powi(f64::from(value).abs().log2().floor() as i32 - 10);
            let right = (f64::from(value) / unit).round_ties_even() * unit;
            let right = if right.abs() > f64::from(f32::MAX) {
                f64::INFINITY.copysign(right)
            } else {
                right
            };
            assert_eq!(f64::from(factor), right, "{value}");
        }
    }
}
