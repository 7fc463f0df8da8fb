//! Parses sizes of memory, such as `2GiB`, `1.5GB`, `512M` and `4096`, and integers within a range.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use thiserror::Error;

/// A number of bytes, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub u64);

/// Why a text is not a size.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ByteSizeError {
    #[error("a size must be at least 1 byte; give one such as 2GiB")]
    Zero,
    #[error("this is not a size; write a number and a unit, such as 2GiB, 512MiB, 1.5GB or 4096")]
    Malformed,
    #[error("`{0}` is not a unit of bytes; known are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB")]
    Unit(String),
    #[error("the size does not fit 64 bits; choose a smaller one")]
    TooLarge,
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let text = text.trim();
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(ByteSizeError::Malformed);
        }
        let factor = factor(unit.trim())?;
        // Whole numbers stay exact; a float has 53 bits.
        let bytes = match number.parse::<u64>() {
            Ok(whole) => whole.checked_mul(factor).ok_or(ByteSizeError::TooLarge)?,
            Err(_) => rounded(number, factor)?,
        };
        if bytes == 0 {
            return Err(ByteSizeError::Zero);
        }
        Ok(Self(bytes))
    }
}

fn rounded(number: &str, factor: u64) -> Result<u64, ByteSizeError> {
    let value: f64 = number.parse().map_err(|_| ByteSizeError::Malformed)?;
    let bytes = (value * factor as f64).round();
    if bytes >= u64::MAX as f64 {
        return Err(ByteSizeError::TooLarge);
    }
    Ok(bytes as u64)
}

fn factor(unit: &str) -> Result<u64, ByteSizeError> {
    let lower = unit.to_ascii_lowercase();
    let exponent = |prefix: &str| "kmgt".find(prefix).map(|i| i as u32 + 1);
    let (prefix, base) = match lower.strip_suffix('b').unwrap_or(&lower) {
        "" => return Ok(1),
        prefix => match prefix.strip_suffix('i') {
            Some(binary) => (binary, 1024u64),
            None => (prefix, 1000),
        },
    };
    match exponent(prefix).filter(|_| prefix.len() == 1) {
        Some(exponent) => Ok(base.pow(exponent)),
        None => Err(ByteSizeError::Unit(unit.to_owned())),
    }
}

/// A parser of integers in `range`. Its errors name the range.
pub fn integer<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: TryFrom<i128> + PartialOrd + Display + Clone,
{
    move |text| {
        let (least, most) = (range.start(), range.end());
        let number: i128 = (text.trim().parse())
            .map_err(|_| format!("this is not a whole number; write one from {least} to {most}"))?;
        (T::try_from(number).ok())
            .filter(|number| range.contains(number))
            .ok_or_else(|| format!("{number} is not in {least}..={most}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("4096", 4096),
            ("1B", 1),
            ("2GiB", 2 << 30),
            ("512MiB", 512 << 20),
            ("1.5GB", 1_500_000_000),
            ("1.5 gib", 3 << 29),
            ("64k", 64_000),
            ("0.5KiB", 512),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size() {
        use ByteSizeError::{Malformed, TooLarge, Unit, Zero};
        for (text, error) in [
            ("0", Zero),
            ("0GiB", Zero),
            ("0.0", Zero),
            ("", Malformed),
            ("GiB", Malformed),
            ("-1", Malformed),
            ("1.2.3", Malformed),
            ("2 GiG", Unit("GiG".into())),
            ("2kmB", Unit("kmB".into())),
            ("1e9", Unit("e9".into())),
            ("99999999TiB", TooLarge),
            ("99999999999999999999.0", TooLarge),
        ] {
            assert_eq!(text.parse::<ByteSize>(), Err(error), "{text}");
        }
    }

    #[test]
    fn numbers_of_the_range_are_read_and_others_reported() {
        let small = integer(2u8..=200);
        assert_eq!(small("2"), Ok(2));
        assert_eq!(small(" 200 "), Ok(200));
        for (text, part) in [
            ("1", "1 is not in 2..=200"),
            ("-3", "-3 is not in 2..=200"),
            ("300", "300 is not in 2..=200"),
            ("", "write one from 2 to 200"),
            ("x", "write one from 2 to 200"),
            ("2.5", "write one from 2 to 200"),
        ] {
            let message = small(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
        assert_eq!(integer(0..=u64::MAX)("18446744073709551615"), Ok(u64::MAX));
        assert!(integer(0..=u64::MAX)("18446744073709551616").is_err());
    }
}
