//! Matrix Market files: coordinate format, real, integer or pattern, general,
//! symmetric or skew-symmetric, plain, compressed with gzip or bzip2, or in a tar archive.
//!
//! * [`read()`] and [`write()`] read and write a file.
//! * `header` parses the first lines, `entries` the others, and `line` words and
//!   numbers. [`line_error`] has the errors of lines.
//! * `blocks` divides a file into blocks of whole lines of its `text`, which `decompress`
//!   and `archive` take out of what it is packed in.
//!
//! The format is that of R. F. Boisvert, R. Pozo and K. A. Remington: *The
//! Matrix Market Exchange Formats: Initial Design*, NISTIR 5935, 1996. In addition,
//! comments and blank lines may follow anywhere after the first line, words of the
//! banner may be in any case and begin with one `%`, its field may be `double` or
//! `unsigned-integer` (as SciPy writes), a symmetric file may have the upper triangle, a
//! value may have Fortran's exponent (`1.0D+05`), and the text may have a byte order mark
//! or be in UTF-16.

mod archive;
mod blocks;
mod decompress;
mod entries;
mod header;
mod line;
pub mod line_error;
mod read;
mod text;
mod write;

#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod tests;

pub use line_error::LineError;
pub use read::{Market, read};
pub use text::TextError;
pub use write::write;
