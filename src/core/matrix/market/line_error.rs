//! The errors of lines of a Matrix Market file. Each message contains a remedy.

use thiserror::Error;

use crate::matrix::csr::MOST;

/// An error of a line, or of the end of the file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LineError {
    #[error("the file is empty; a Matrix Market file begins with %%MatrixMarket")]
    Empty,
    #[error(
        "this is no Matrix Market file: the first line does not begin with %%MatrixMarket; \
         write the matrix in that format, with scipy.io.mmwrite, say"
    )]
    NoBanner,
    #[error("{missing} is missing; the banner has the form \
             `%%MatrixMarket matrix coordinate real general`", missing = quoted(.missing))]
    BannerWord { missing: &'static str },
    #[error("`{word}` is no known {what}; known are: {known}")]
    UnknownWord {
        word: String,
        what: &'static str,
        known: &'static str,
    },
    #[error(
        "the array format holds a dense matrix, and only sparse ones are read; write it in \
         coordinate format, with scipy.io.mmwrite(FILE, scipy.sparse.coo_array(A)), say"
    )]
    Array,
    #[error(
        "{0} matrices are not computed; write the real or the imaginary part as a matrix \
         of its own"
    )]
    Complex(&'static str),
    #[error("a pattern has no values whose sign could change; write it as symmetric or general")]
    SkewPattern,
    #[error(
        "the file ends before the size line; it is truncated, so fetch or write it again, or add \
         the line `ROWS COLUMNS ENTRIES`"
    )]
    NoSizeLine,
    #[error(
        "`{0}` is no size line; it consists of three whole numbers below 2^64: ROWS COLUMNS ENTRIES"
    )]
    SizeLine(String),
    #[error(
        "{count} {what} are more than the {MOST} that a matrix can have here, \
         since kernels count them in 32 bits; divide the matrix into blocks"
    )]
    TooLarge { what: &'static str, count: u64 },
    #[error(
        "a matrix of {rows} x {columns} cannot be symmetric; correct the size line, \
         or say general in the banner"
    )]
    NotSquare { rows: u32, columns: u32 },

    #[error("`{text}` is no number of a {what}; an entry is {form}")]
    Index {
        what: &'static str,
        text: String,
        form: &'static str,
    },
    #[error("{what} 0: indices begin at 1; add 1 to the indices of the file")]
    Zero { what: &'static str },
    #[error(
        "{what} {index} is beyond the {size} {what}s that line {size_line} declares; \
         correct the entry or the size line"
    )]
    Beyond {
        what: &'static str,
        index: String,
        size: u32,
        size_line: u64,
    },
    #[error("the {what} is missing; an entry is {form}")]
    Missing {
        what: &'static str,
        form: &'static str,
    },
    #[error("`{0}` is no number; write the value as 1.5, -2e-3, nan or inf")]
    Value(String),
    #[error(
        "`{0}` is no whole number below 2^64; correct it, or say real instead of integer in the \
         banner"
    )]
    Integer(String),
    #[error("`{text}` follows {expected}; remove it, or correct the banner")]
    Extra {
        text: String,
        expected: &'static str,
    },
    #[error(
        "an entry on the diagonal has the value {0}, and a skew-symmetric matrix has zeros there; \
         remove it, or say general in the banner and write all entries"
    )]
    Diagonal(String),
    #[error(
        "an entry {here} the diagonal, and line {other} has one on the other side; a symmetric \
         file has entries of one triangle only: remove the others, or say general in the banner"
    )]
    BothTriangles { here: &'static str, other: u64 },
    #[error("the line is longer than {0} bytes; this is no Matrix Market file")]
    LongLine(usize),

    #[error(
        "the file ends after {found} of the {declared} entries that line {size_line} declares; \
         it is truncated, so fetch or write it again, or correct the size line"
    )]
    TooFew {
        found: u64,
        declared: u64,
        size_line: u64,
    },
    #[error(
        "an entry more than the {declared} that line {size_line} declares; \
         correct the size line, or remove what does not belong there"
    )]
    TooMany { declared: u64, size_line: u64 },
    #[error(
        "{declared} entries are declared, and the {bytes} bytes of the file cannot hold more than \
         {possible}; it is truncated, so fetch or write it again, or correct the size line"
    )]
    Impossible {
        declared: u64,
        bytes: u64,
        possible: u64,
    },
}

/// Puts a single word in quotes, and leaves an enumeration as it is.
fn quoted(words: &str) -> String {
    match words.contains(' ') {
        true => words.to_owned(),
        false => format!("`{words}`"),
    }
}

/// The beginning of a line or word, for a message.
pub fn excerpt(text: &[u8]) -> String {
    const MOST: usize = 40;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * MOST)]);
    let text = text.trim();
    let mut excerpt: String = text.escape_debug().take(MOST).collect();
    if text.escape_debug().count() > MOST {
        excerpt.push_str("...");
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt(b" 1 2\r\n"), "1 2");
        assert_eq!(excerpt(b"a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(excerpt(b"\xff\xfe"), "\u{fffd}\u{fffd}");
        assert_eq!(excerpt(&[b'7'; 10_000]), format!("{}...", "7".repeat(40)));
    }
}
