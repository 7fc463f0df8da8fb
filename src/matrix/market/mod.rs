//! Matrix Market files: coordinate format, real, integer or pattern, general,
//! symmetric or skew-symmetric, plain or compressed with gzip.
//!
//! * [`read()`] and [`write()`] read and write a file.
//! * `header` parses the first lines, `entries` the others, and `line` words and
//!   numbers. [`line_error`] has the errors of lines.
//! * `blocks` divides a file into blocks of whole lines, and decompresses it.
//!
//! The format is that of R. F. Boisvert, R. Pozo and K. A. Remington: *The
//! Matrix Market Exchange Formats: Initial Design*, NISTIR 5935, 1996. In addition,
//! comments and blank lines may follow anywhere after the first line, words of the
//! banner may be in any case, a symmetric file may have the upper triangle, and a
//! value may have Fortran's exponent (`1.0D+05`).

mod blocks;
mod entries;
mod header;
mod line;
pub mod line_error;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub use line_error::LineError;
pub use read::{Market, read};
pub use write::write;
