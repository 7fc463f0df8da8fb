//! Matrix Market files: coordinate format, real, integer or pattern, general,
//! symmetric or skew-symmetric, plain, compressed with gzip, or in a tar archive.
//!
//! * [`read()`] and [`write()`] read and write a file.
//! * `header` parses the first lines, `entries` the others, and `line` words and
//!   numbers. [`line_error`] has the errors of lines.
//! * `blocks` divides a file into blocks of whole lines of its `text`, which `decompress`
//!   and `archive` take out of what it is packed in (`packed`). Without the crate's feature
//!   `matrix-files` a file must be plain text in UTF-8 (`absent`).
//!
//! The format is that of R. F. Boisvert, R. Pozo and K. A. Remington: *The
//! Matrix Market Exchange Formats: Initial Design*, NISTIR 5935, 1996. In addition,
//! comments and blank lines may follow anywhere after the first line, words of the
//! banner may be in any case and begin with one `%`, its field may be `double` or
//! `unsigned-integer` (as SciPy writes), a symmetric file may have the upper triangle, a
//! value may have Fortran's exponent (`1.0D+05`), and the text may have a byte order mark.

#[cfg(not(feature = "matrix-files"))]
mod absent;
#[cfg(feature = "matrix-files")]
mod archive;
mod blocks;
#[cfg(feature = "matrix-files")]
mod decompress;
mod entries;
mod header;
mod line;
pub mod line_error;
#[cfg(feature = "matrix-files")]
mod packed;
mod read;
mod text;
mod write;

#[cfg(all(test, feature = "matrix-files"))]
mod packed_tests;
#[cfg(all(test, feature = "matrix-files"))]
mod tests;

#[cfg(not(feature = "matrix-files"))]
use absent as packed;

pub use line_error::LineError;
pub use read::{Market, read};
pub use text::TextError;
pub use write::write;
