//! Parses a Matrix Market file: its first lines (the banner, comments, and the size line), and the
//! entries in a block of the others.

use memchr::memchr;

use super::line_error::{LineError, excerpt};
use crate::matrix::assemble::Entries;
use crate::matrix::csr::MOST;

/// The entries of a block.
#[derive(Debug, Default)]
pub struct ParsedBlock {
    pub entries: Entries,
    pub lines: u64,
    /// The first lines with an entry below and above the diagonal, counted from 1 in
    /// the block. Only set for files that have one triangle.
    pub below: Option<u64>,
    pub above: Option<u64>,
}

/// An error and its line, counted from 1 in the block.
#[derive(Debug, PartialEq, Eq)]
pub struct NumberedLineError {
    pub line: u64,
    pub error: LineError,
}

/// Parses whole lines.
///
/// # Errors
/// The first line that is neither an entry, a comment nor blank.
pub fn read(text: &[u8], header: &Header) -> Result<ParsedBlock, NumberedLineError> {
    let mut block = ParsedBlock::default();
    // An estimate from the usual length of lines avoids most reallocations.
    let guess = text.len() / 16;
    block.entries.rows.reserve(guess);
    block.entries.columns.reserve(guess);
    if header.field != Field::Pattern {
        block.entries.values.reserve(guess);
    }
    for text in lines(text) {
        block.lines += 1;
        let mut line = Line::new(text);
        if line.is_comment_or_blank() {
            continue;
        }
        if let Err(error) = entry(&mut line, header, &mut block) {
            let line = block.lines;
            return Err(NumberedLineError { line, error });
        }
    }
    Ok(block)
}

/// The line of the entry with this number. Both are counted from 1.
pub fn line_of(text: &[u8], entry: u64) -> u64 {
    let is_entry = |line: &[u8]| !Line::new(line).is_comment_or_blank();
    let numbered = lines(text).zip(1..).filter(|(line, _)| is_entry(line));
    let mut from_there = numbered.skip(entry.saturating_sub(1) as usize);
    from_there.next().map_or(0, |(_, number)| number)
}

/// Lines without their ends.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}

fn entry(line: &mut Line, header: &Header, block: &mut ParsedBlock) -> Result<(), LineError> {
    let row = index(line, "row", header.rows, header)?;
    let column = index(line, "column", header.columns, header)?;
    if header.field != Field::Pattern {
        let value = value(line, header)?;
        if header.symmetry == Symmetry::SkewSymmetric && row == column && value != 0.0 {
            return Err(LineError::Diagonal(value.to_string()));
        }
        block.entries.values.push(value);
    }
    if !line.at_end() {
        return Err(LineError::Extra {
            text: excerpt(line.word()),
            expected: form(header.field),
        });
    }
    block.entries.rows.push(row);
    block.entries.columns.push(column);
    if header.symmetry != Symmetry::General {
        let lines = block.lines;
        match row.cmp(&column) {
            std::cmp::Ordering::Greater => block.below.get_or_insert(lines),
            std::cmp::Ordering::Less => block.above.get_or_insert(lines),
            std::cmp::Ordering::Equal => return Ok(()),
        };
    }
    Ok(())
}

/// Parses an index, and returns it counted from 0.
fn index(
    line: &mut Line,
    what: &'static str,
    size: u32,
    header: &Header,
) -> Result<u32, LineError> {
    let before = line.clone();
    match line.number() {
        Some(number) if number.wrapping_sub(1) < size.into() => Ok((number - 1) as u32),
        Some(0) => Err(LineError::Zero { what }),
        Some(_) => Err(LineError::Beyond {
            what,
            index: excerpt(before.clone().word()),
            size,
            size_line: header.size_line,
        }),
        None => {
            let form = form(header.field);
            Err(match before.clone().word() {
                [] => LineError::Missing { what, form },
                word => LineError::Index {
                    what,
                    text: excerpt(word),
                    form,
                },
            })
        }
    }
}

fn value(line: &mut Line, header: &Header) -> Result<f64, LineError> {
    let word = line.word();
    if word.is_empty() {
        return Err(LineError::Missing {
            what: "value",
            form: form(header.field),
        });
    }
    match header.field {
        Field::Integer => match integer(word) {
            Some(value) => Ok(value as f64),
            None => Err(LineError::Integer(excerpt(word))),
        },
        Field::Real | Field::Pattern => real(word).ok_or_else(|| LineError::Value(excerpt(word))),
    }
}

/// What an entry consists of, for messages.
fn form(field: Field) -> &'static str {
    match field {
        Field::Pattern => "a row and a column",
        Field::Real | Field::Integer => "a row, a column and a value",
    }
}

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
fn real(word: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(word).ok()?;
    text.parse().ok().or_else(|| {
        let text = text.replace(['d', 'D'], "e");
        // A finite number that Rust parses contains no `d`.
        text.parse().ok().filter(|number: &f64| number.is_finite())
    })
}

/// A word as a whole number of 64 bits, with or without a sign.
fn integer(word: &[u8]) -> Option<i128> {
    let number: i128 = std::str::from_utf8(word).ok()?.parse().ok()?;
    let allowed = i128::from(i64::MIN)..=i128::from(u64::MAX);
    allowed.contains(&number).then_some(number)
}

// Parses the first lines of a Matrix Market file: the banner, comments, and the size
// line.

/// The kind of values in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Real,
    Integer,
    /// The file has no values; all are 1.
    Pattern,
}

/// Which entries of the matrix the file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// All.
    General,
    /// Those of one triangle, including the diagonal.
    Symmetric,
    /// Those of one triangle. Their mirror images have the opposite sign.
    SkewSymmetric,
}

/// The content of the first lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub field: Field,
    pub symmetry: Symmetry,
    pub rows: u32,
    pub columns: u32,
    /// Entries that the size line declares.
    pub entries: u64,
    /// The number of the size line, counted from 1.
    pub size_line: u64,
}

impl Header {
    /// Most entries of the matrix in memory, including mirrored ones.
    pub fn expanded(&self) -> u64 {
        match self.symmetry {
            Symmetry::General => self.entries,
            Symmetry::Symmetric | Symmetry::SkewSymmetric => self.entries.saturating_mul(2),
        }
    }

    /// Bytes of the shortest possible line of an entry.
    pub fn shortest_line(&self) -> u64 {
        match self.field {
            Field::Pattern => "1 1\n".len() as u64,
            Field::Real | Field::Integer => "1 1 1\n".len() as u64,
        }
    }
}

/// Parses a header line by line.
#[derive(Debug, Default)]
pub struct HeaderReader {
    lines: u64,
    banner: Option<(Field, Symmetry)>,
}

impl HeaderReader {
    /// The number of lines parsed.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The error of a file that ends here.
    pub fn unfinished(&self) -> LineError {
        match (self.banner, self.lines) {
            (None, 0) => LineError::Empty,
            (None, _) => LineError::NoBanner,
            (Some(_), _) => LineError::NoSizeLine,
        }
    }

    /// Parses the next line. Returns the header after the size line.
    ///
    /// # Errors
    /// When the line violates the format, or describes a feature that is not
    /// supported.
    pub fn line(&mut self, text: &[u8]) -> Result<Option<Header>, LineError> {
        self.lines += 1;
        let Some((field, symmetry)) = self.banner else {
            self.banner = Some(banner(text)?);
            return Ok(None);
        };
        let mut line = Line::new(text);
        if line.is_comment_or_blank() {
            return Ok(None);
        }
        let [rows, columns, entries] = sizes(&mut line, text)?;
        let dimension = |what, count: u64| match u32::try_from(count) {
            Ok(count) if count <= MOST => Ok(count),
            _ => Err(LineError::TooLarge { what, count }),
        };
        let (rows, columns) = (dimension("rows", rows)?, dimension("columns", columns)?);
        if symmetry != Symmetry::General && rows != columns {
            return Err(LineError::NotSquare { rows, columns });
        }
        Ok(Some(Header {
            field,
            symmetry,
            rows,
            columns,
            entries,
            size_line: self.lines,
        }))
    }
}

/// The three numbers of the size line.
fn sizes(line: &mut Line, text: &[u8]) -> Result<[u64; 3], LineError> {
    let mut sizes = [0; 3];
    for size in &mut sizes {
        let word = std::str::from_utf8(line.word()).unwrap_or_default();
        let digits = word.bytes().all(|byte| byte.is_ascii_digit());
        let number = word.parse().ok().filter(|_| digits);
        *size = number.ok_or_else(|| LineError::SizeLine(excerpt(text)))?;
    }
    match line.at_end() {
        true => Ok(sizes),
        false => Err(LineError::SizeLine(excerpt(text))),
    }
}

/// The first line: `%%MatrixMarket matrix coordinate FIELD SYMMETRY`.
fn banner(text: &[u8]) -> Result<(Field, Symmetry), LineError> {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    let mut words = text.split_ascii_whitespace();
    if !matches!(words.next(), Some("%%matrixmarket" | "%matrixmarket")) {
        return Err(LineError::NoBanner);
    }
    let mut word = |missing| words.next().ok_or(LineError::BannerWord { missing });
    let unknown = |word: &str, what, known| LineError::UnknownWord {
        word: excerpt(word.as_bytes()),
        what,
        known,
    };
    let object = word("matrix")?;
    if object != "matrix" {
        return Err(unknown(object, "object", "matrix"));
    }
    match word("coordinate")? {
        "coordinate" => {}
        "array" => return Err(LineError::Array),
        other => return Err(unknown(other, "format", "coordinate")),
    }
    let field = match word("real, integer or pattern")? {
        "real" | "double" => Field::Real,
        "integer" | "unsigned-integer" => Field::Integer,
        "pattern" => Field::Pattern,
        "complex" => return Err(LineError::Complex("complex")),
        other => {
            return Err(unknown(
                other,
                "field",
                "real, double, integer, unsigned-integer, pattern",
            ));
        }
    };
    let symmetry = match word("general, symmetric or skew-symmetric")? {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::SkewSymmetric,
        "hermitian" => return Err(LineError::Complex("hermitian")),
        other => {
            let known = "general, symmetric, skew-symmetric";
            return Err(unknown(other, "symmetry", known));
        }
    };
    if (field, symmetry) == (Field::Pattern, Symmetry::SkewSymmetric) {
        return Err(LineError::SkewPattern);
    }
    match words.next() {
        None => Ok((field, symmetry)),
        Some(extra) => Err(LineError::Extra {
            text: excerpt(extra.as_bytes()),
            expected: "the five words of the banner",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(field: Field, symmetry: Symmetry) -> Header {
        Header {
            field,
            symmetry,
            rows: 4,
            columns: 5,
            entries: 2,
            size_line: 3,
        }
    }

    fn error(text: &str, field: Field, symmetry: Symmetry) -> (u64, String) {
        let at = read(text.as_bytes(), &header(field, symmetry)).unwrap_err();
        (at.line, at.error.to_string())
    }

    #[test]
    fn entries_are_read_whatever_is_between_them() {
        let text = b"1 1 1.5\r\n\n% no entry\n   \t\n 4\t5   -2e1 \n2 3 nan";
        let block = read(text, &header(Field::Real, Symmetry::General)).unwrap();
        assert_eq!(block.lines, 6);
        assert_eq!(block.entries.rows, [0, 3, 1]);
        assert_eq!(block.entries.columns, [0, 4, 2]);
        assert_eq!(block.entries.values[..2], [1.5, -20.0]);
        assert!(block.entries.values[2].is_nan());
        assert_eq!([1, 2, 3, 4].map(|entry| line_of(text, entry)), [1, 5, 6, 0]);
    }

    #[test]
    fn a_pattern_has_no_values_and_integers_are_whole() {
        let block = read(b"1 2\n", &header(Field::Pattern, Symmetry::General)).unwrap();
        assert!(block.entries.values.is_empty());
        let block = read(b"1 2 -7", &header(Field::Integer, Symmetry::General)).unwrap();
        assert_eq!(block.entries.values, [-7.0]);
        assert_eq!((block.below, block.above), (None, None));
    }

    #[test]
    fn sides_of_the_diagonal_are_distinguished() {
        let symmetric = header(Field::Pattern, Symmetry::Symmetric);
        let block = read(b"1 1\n\n2 1\n3 1\n1 2\n", &symmetric).unwrap();
        assert_eq!((block.below, block.above), (Some(3), Some(5)));
    }

    #[test]
    fn errors_have_a_line_and_a_remedy() {
        use Field::{Integer, Pattern, Real};
        for (text, field, line, part) in [
            ("\n0 1 1", Real, 2, "row 0: indices begin at 1"),
            ("1 1 1\n1 0 1", Real, 2, "column 0: indices begin at 1"),
            ("5 1 1", Real, 1, "row 5 is beyond the 4 rows that line 3"),
            ("1 6 1", Real, 1, "column 6 is beyond the 5 columns"),
            (
                "1 99999999999999999999999 1",
                Real,
                1,
                "column 99999999999999999999999 is beyond",
            ),
            ("x 1 1", Real, 1, "`x` is no number of a row"),
            ("1 -1 1", Real, 1, "`-1` is no number of a column"),
            ("1.0 1 1", Real, 1, "`1.0` is no number of a row"),
            ("1", Real, 1, "the column is missing"),
            ("1 1", Real, 1, "the value is missing; an entry is a row, a"),
            ("1 1 one", Real, 1, "`one` is no number"),
            ("1 1 1.5 2.5", Real, 1, "`2.5` follows a row, a column and"),
            ("1 1 1.5", Integer, 1, "`1.5` is no whole number"),
            ("1 1 1", Pattern, 1, "`1` follows a row and a column"),
        ] {
            let (at, error) = error(text, field, Symmetry::General);
            assert_eq!(at, line, "{text}");
            assert!(error.contains(part), "{text}: {error}");
        }
        let (_, diagonal) = error("2 1 1\n3 3 1", Real, Symmetry::SkewSymmetric);
        assert!(diagonal.contains("zeros there"), "{diagonal}");
        let skew = header(Real, Symmetry::SkewSymmetric);
        assert!(read(b"3 3 0", &skew).is_ok());
    }

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

    fn read_header(text: &str) -> Result<Header, LineError> {
        let mut reader = HeaderReader::default();
        for line in text.lines() {
            if let Some(header) = reader.line(line.as_bytes())? {
                return Ok(header);
            }
        }
        Err(reader.unfinished())
    }

    #[test]
    fn headers_are_read() {
        let header =
            read_header("%%MatrixMarket  MATRIX Coordinate\treal general\n% a\n\n  %b\n 3 4 5 \n");
        let expected = Header {
            field: Field::Real,
            symmetry: Symmetry::General,
            rows: 3,
            columns: 4,
            entries: 5,
            size_line: 5,
        };
        assert_eq!(header, Ok(expected));
        assert_eq!((expected.expanded(), expected.shortest_line()), (5, 6));
        let mirrored =
            read_header("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 5").unwrap();
        assert_eq!((mirrored.expanded(), mirrored.shortest_line()), (10, 4));
        let most =
            read_header("%%MatrixMarket matrix coordinate real general\n2147483647 1 0").unwrap();
        assert_eq!(most.rows, MOST);
    }

    #[test]
    fn banners_of_other_writers_are_read() {
        for (banner, field) in [
            (
                "%%MatrixMarket matrix coordinate unsigned-integer general",
                Field::Integer,
            ),
            (
                "%MatrixMarket matrix coordinate double general",
                Field::Real,
            ),
            (
                "%MatrixMarket MATRIX coordinate Pattern symmetric",
                Field::Pattern,
            ),
        ] {
            let header = read_header(&format!("{banner}\n2 2 0\n")).unwrap();
            assert_eq!(header.field, field, "{banner}");
        }
        assert_eq!(read_header("MatrixMarket matrix"), Err(LineError::NoBanner));
    }

    #[test]
    fn what_cannot_be_read_is_reported() {
        let coordinate = |rest: &str| format!("%%MatrixMarket matrix coordinate {rest}");
        let size = |text: &str| coordinate(&format!("real general\n{text}"));
        for (text, part) in [
            (String::new(), "the file is empty"),
            ("\n1 1 1".into(), "%%MatrixMarket"),
            ("1 1 1".into(), "%%MatrixMarket"),
            ("%%MatrixMarket".into(), "`matrix` is missing"),
            (
                "%%MatrixMarket vector coordinate real general".into(),
                "`vector`",
            ),
            ("%%MatrixMarket matrix array real general".into(), "array"),
            ("%%MatrixMarket matrix csr real general".into(), "`csr`"),
            (coordinate("complex general"), "complex"),
            (coordinate("complex hermitian"), "complex"),
            (coordinate("real hermitian"), "hermitian"),
            (coordinate("float general"), "`float`"),
            (coordinate("real"), "skew-symmetric is missing"),
            (coordinate("real upper"), "`upper`"),
            (coordinate("pattern skew-symmetric"), "sign"),
            (coordinate("real general 7"), "`7`"),
            (coordinate("real general"), "before the size line"),
            (size("% only a comment"), "before the size line"),
            (size("3 4"), "three whole numbers"),
            (size("3 4 5 6"), "three whole numbers"),
            (size("3 4 -5"), "three whole numbers"),
            (size("3.0 4 5"), "three whole numbers"),
            (size("3 4 99999999999999999999"), "three whole numbers"),
            (
                size("18446744073709551616 4 5"),
                "three whole numbers below 2^64",
            ),
            (
                size("18446744073709551615 4 5"),
                "18446744073709551615 rows are more than",
            ),
            (size("+3 4 5"), "three whole numbers"),
            (size("2147483648 4 5"), "2147483648 rows"),
            (size("4 4294967297 5"), "4294967297 columns"),
            (coordinate("real symmetric\n3 4 5"), "3 x 4"),
        ] {
            let error = read_header(&text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
