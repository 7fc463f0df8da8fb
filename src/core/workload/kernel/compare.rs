//! Compares two results of a user's kernel, element by element.

use crate::codelet::Precision;
use crate::graph::spec::scalar::Base;
use crate::verify::{Checked, Rounding};

/// Relative differences that devices' rounding may cause.
const SINGLE: f64 = 1e-4;
const DOUBLE: f64 = 1e-10;
const HALF: f64 = 1e-2;

/// How far two results differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The largest absolute difference.
    pub largest: f64,
    /// Whether all differences are allowed.
    pub right: bool,
}

/// Compares elements of a type. `exact` requires equal bits, for the same kernel on
/// devices of one kind. Otherwise floating-point numbers may differ by a device's
/// rounding, and integers must be equal.
pub fn compare(base: Base, ours: &[u8], reference: &[u8], exact: bool) -> Difference {
    let mut largest = 0.0f64;
    for (a, b) in pairs(base, ours, reference) {
        let is_same = a == b || (a.is_nan() && b.is_nan());
        let distance = if is_same { 0.0 } else { (a - b).abs() };
        largest = largest.max(match distance.is_nan() {
            true => f64::INFINITY,
            false => distance,
        });
    }
    let right = match exact {
        true => ours == reference,
        false => ours.len() == reference.len() && check(base, ours, reference).wrong == 0,
    };
    Difference { largest, right }
}

/// Compares elements of a type of results of which nobody knows which device computed
/// them: floating-point numbers may differ by a device's rounding, and integers must be
/// equal. Numbers that are infinite or none must be the same.
pub fn check(base: Base, ours: &[u8], reference: &[u8]) -> Checked {
    let mut checked = Checked::default();
    if !base.is_float() {
        let each = base.bytes() as usize;
        let elements = ours.chunks(each).zip(reference.chunks(each));
        elements.for_each(|(one, other)| checked.exactly(one == other));
        return checked;
    }
    // Sums of large numbers may be small: errors are relative to the typical number.
    let (mut norm, mut count) = (0.0f64, 0.0f64);
    for (_, right) in pairs(base, ours, reference).filter(|(_, right)| right.is_finite()) {
        (norm, count) = (norm.hypot(right), count + 1.0);
    }
    let typical = norm / count.max(1.0).sqrt();
    let (relative, least) = limits(base);
    for (found, right) in pairs(base, ours, reference) {
        let allowed = relative * right.abs().max(typical) + least;
        checked.number(found, right, if right.is_finite() { allowed } else { 0.0 });
    }
    checked
}

/// The numbers of two results.
fn pairs<'a>(
    base: Base,
    ours: &'a [u8],
    reference: &'a [u8],
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let each = base.bytes() as usize;
    let elements = ours.chunks(each).zip(reference.chunks(each));
    elements.map(move |(one, other)| (number(base, one), number(base, other)))
}

/// The relative difference that a device's rounding may cause, and the one near zero.
fn limits(base: Base) -> (f64, f64) {
    match base {
        Base::Float => (SINGLE, Rounding::from(Precision::F32).least),
        Base::Double => (DOUBLE, Rounding::from(Precision::F64).least),
        // The smallest normal number.
        Base::Half => (HALF, 2f64.powi(-14)),
        _ => (0.0, 0.0),
    }
}

fn number(base: Base, bytes: &[u8]) -> f64 {
    fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.try_into().unwrap_or([0; N])
    }
    match base {
        Base::Char => i8::from_ne_bytes(array(bytes)).into(),
        Base::Uchar | Base::Struct => u8::from_ne_bytes(array(bytes)).into(),
        Base::Short => i16::from_ne_bytes(array(bytes)).into(),
        Base::Ushort => u16::from_ne_bytes(array(bytes)).into(),
        Base::Int => i32::from_ne_bytes(array(bytes)).into(),
        Base::Uint => u32::from_ne_bytes(array(bytes)).into(),
        Base::Long => i64::from_ne_bytes(array(bytes)) as f64,
        Base::Ulong => u64::from_ne_bytes(array(bytes)) as f64,
        Base::Half => half(u16::from_ne_bytes(array(bytes))),
        Base::Float => f32::from_ne_bytes(array(bytes)).into(),
        Base::Double => f64::from_ne_bytes(array(bytes)),
    }
}

/// IEEE 754 binary16.
fn half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}
