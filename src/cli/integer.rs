//! Parses integers within a range, as option values.

use std::fmt::Display;
use std::ops::RangeInclusive;

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
