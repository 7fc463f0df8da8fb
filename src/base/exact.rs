//! Floats in messages, as the integers of their bits: JSON has neither infinities nor NaN, whose
//! bits count, too. For `#[serde(with = "crate::exact")]`.

use serde::{Deserialize, Deserializer, Serializer};

/// Writes a float.
///
/// # Errors
/// Those of `to`.
pub fn serialize<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(number.to_bits())
}

/// Reads a float.
///
/// # Errors
/// What is no integer of 64 bits.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    u64::deserialize(from).map(f64::from_bits)
}
