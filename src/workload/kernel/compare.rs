//! Compares two results of a user's kernel, element by element.

use crate::cluster::record::Checked;
use crate::graph::spec::scalar::Base;

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
    let each = base.bytes() as usize;
    let mut difference = Difference {
        largest: 0.0,
        right: ours.len() == reference.len(),
    };
    for (one, other) in ours.chunks(each).zip(reference.chunks(each)) {
        if one == other {
            continue;
        }
        let (a, b) = (number(base, one), number(base, other));
        let both_nan = a.is_nan() && b.is_nan();
        let distance = if both_nan { 0.0 } else { (a - b).abs() };
        difference.largest = difference.largest.max(match distance.is_nan() {
            true => f64::INFINITY,
            false => distance,
        });
        difference.right &= !exact && distance <= allowed(base, b);
    }
    difference
}

/// Compares elements of a type of results of which nobody knows which device computed
/// them: floating-point numbers may differ by a device's rounding, and integers must be
/// equal.
pub fn check(base: Base, ours: &[u8], reference: &[u8]) -> Checked {
    let each = base.bytes() as usize;
    let mut checked = Checked::default();
    for (one, other) in ours.chunks(each).zip(reference.chunks(each)) {
        let (a, b) = (number(base, one), number(base, other));
        let is_same = one == other || (a.is_nan() && b.is_nan());
        match is_same || !base.is_float() {
            true => checked.number(f64::from(u8::from(!is_same)), 0.0, 0.5),
            false => checked.number(a, b, allowed(base, b)),
        }
    }
    checked
}

/// The difference from a number that a device's rounding may cause.
fn allowed(base: Base, number: f64) -> f64 {
    let relative = match base {
        Base::Float => SINGLE,
        Base::Double => DOUBLE,
        Base::Half => HALF,
        _ => 0.0,
    };
    relative * number.abs().max(1.0)
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
