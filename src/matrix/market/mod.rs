//! Matrix Market files: coordinate format, real, integer or pattern, general,
//! symmetric or skew-symmetric, plain or compressed with gzip.
//!
//! * [`read()`] reads one, [`write()`] writes one.
//! * `header` is what the first lines say, `entries` are those of the others,
//!   and `line` is what both are made of; [`fault`] is all that can be wrong
//!   with them.
//! * `blocks` is a file as pieces of whole lines, decompressed.
//!
//! The format is that of R. F. Boisvert, R. Pozo and K. A. Remington: *The
//! Matrix Market Exchange Formats: Initial Design*, NISTIR 5935, 1996. Beyond it
//! comments and blank lines may stand anywhere after the first line, words of
//! the banner are of any case, the triangle of a symmetric file may be the upper
//! one, and a value may have Fortran's exponent (`1.0D+05`).

mod blocks;
mod entries;
pub mod fault;
mod header;
mod line;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use read::{Market, read};
pub use write::write;
