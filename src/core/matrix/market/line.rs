//! Parses the words and numbers of one line.

/// A line that is parsed from left to right.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    rest: &'a [u8],
}

impl<'a> Line<'a> {
    /// A line, with or without its end-of-line characters.
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    /// Whether only a comment or blanks are left.
    pub fn is_comment_or_blank(&mut self) -> bool {
        self.at_end() || self.rest.first() == Some(&b'%')
    }

    /// Whether only blanks are left.
    pub fn at_end(&mut self) -> bool {
        self.skip_blanks();
        self.rest.is_empty()
    }

    /// The next word; empty at the end.
    pub fn word(&mut self) -> &'a [u8] {
        self.skip_blanks();
        let end = self.rest.iter().position(|byte| is_blank(*byte));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// The next word as a whole number without a sign, or `u64::MAX` for a larger one;
    /// `None` if it is no such number, and then it is not consumed.
    pub fn number(&mut self) -> Option<u64> {
        self.skip_blanks();
        let (mut number, mut digits) = (0u64, 0);
        // Nineteen digits do not overflow.
        while let Some(digit) = self.rest.get(digits).map(|b| b.wrapping_sub(b'0'))
            && digit < 10
        {
            number = number.wrapping_mul(10).wrapping_add(digit.into());
            digits += 1;
        }
        let ends = self.rest.get(digits).is_none_or(|byte| is_blank(*byte));
        if digits == 0 || !ends {
            return None;
        }
        self.rest = &self.rest[digits..];
        Some(if digits > 19 { u64::MAX } else { number })
    }

    fn skip_blanks(&mut self) {
        while let Some((first, rest)) = self.rest.split_first()
            && is_blank(*first)
        {
            self.rest = rest;
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

/// A word as a real number: what Rust parses, and Fortran's `1.0D+05`.
pub fn real(word: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(word).ok()?;
    text.parse().ok().or_else(|| {
        let text = text.replace(['d', 'D'], "e");
        // A finite number that Rust parses contains no `d`.
        text.parse().ok().filter(|number: &f64| number.is_finite())
    })
}

/// A word as a whole number of 64 bits, with or without a sign.
pub fn integer(word: &[u8]) -> Option<i128> {
    let number: i128 = std::str::from_utf8(word).ok()?.parse().ok()?;
    let allowed = i128::from(i64::MIN)..=i128::from(u64::MAX);
    allowed.contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_read() {
        let mut line = Line::new(b" \t12 34\tab 5\r\n");
        assert_eq!((line.number(), line.number()), (Some(12), Some(34)));
        assert_eq!((line.number(), line.word()), (None, &b"ab"[..]));
        assert!(!line.at_end());
        assert_eq!(line.number(), Some(5));
        assert!(line.at_end());
        assert_eq!((line.number(), line.word()), (None, &b""[..]));
    }

    #[test]
    fn numbers_too_large_are_the_largest() {
        let number = |text: &str| Line::new(text.as_bytes()).number();
        assert_eq!(
            number("9999999999999999999"),
            Some(9_999_999_999_999_999_999)
        );
        assert_eq!(number("18446744073709551616"), Some(u64::MAX));
        assert_eq!(number(&"9".repeat(400)), Some(u64::MAX));
        for text in ["", "-1", "+1", "1.0", "1e3", "0x10", "1%", "x"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn comments_and_blank_lines_are_known() {
        for (text, expected) in [
            ("", true),
            (" \t\r\n", true),
            ("% a", true),
            ("  %a", true),
            ("1 1", false),
        ] {
            assert_eq!(Line::new(text.as_bytes()).is_comment_or_blank(), expected);
        }
    }

    #[test]
    fn values_are_read() {
        for (text, value) in [
            ("1", 1.0),
            ("-.5", -0.5),
            ("+1.e-3", 1e-3),
            ("1.5D+05", 1.5e5),
            ("-1.5d-2", -1.5e-2),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("4.9e-324", 5e-324),
        ] {
            assert_eq!(real(text.as_bytes()), Some(value), "{text}");
        }
        assert!(real(b"NaN").unwrap().is_nan());
        for text in [
            "", "x", "1,5", "1e", "0x1p3", "1.0.0", "\u{ff11}", "1d", "d",
        ] {
            assert_eq!(real(text.as_bytes()), None, "{text}");
        }
        assert_eq!(real(b"\xff"), None);
        assert_eq!(integer(b"-7"), Some(-7));
        assert_eq!(integer(b"18446744073709551615"), Some(u64::MAX.into()));
        for text in [
            "1.0",
            "18446744073709551616",
            "-9223372036854775809",
            "x",
            "",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }
}
