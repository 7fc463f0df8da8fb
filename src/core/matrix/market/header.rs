//! Parses the first lines of a Matrix Market file: the banner, comments, and the size
//! line.

use super::entries::Line;
use super::line_error::{LineError, excerpt};
use crate::matrix::csr::MOST;

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

    fn read(text: &str) -> Result<Header, LineError> {
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
            read("%%MatrixMarket  MATRIX Coordinate\treal general\n% a\n\n  %b\n 3 4 5 \n");
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
        let mirrored = read("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 5").unwrap();
        assert_eq!((mirrored.expanded(), mirrored.shortest_line()), (10, 4));
        let most = read("%%MatrixMarket matrix coordinate real general\n2147483647 1 0").unwrap();
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
            let header = read(&format!("{banner}\n2 2 0\n")).unwrap();
            assert_eq!(header.field, field, "{banner}");
        }
        assert_eq!(read("MatrixMarket matrix"), Err(LineError::NoBanner));
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
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
