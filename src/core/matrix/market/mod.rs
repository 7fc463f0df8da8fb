//! Matrix Market files: coordinate format, real, integer or pattern, general,
//! symmetric or skew-symmetric, plain, compressed with gzip, or in a tar archive.
//!
//! * [`read()`] and [`write()`] read and write a file.
//! * `parse` parses lines.
//!   [`line_error`] has the errors of lines.
//! * `text` is divided into blocks of whole lines, which are taken out of what the file is
//!   packed in (`packed`). Without the crate's feature
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
pub mod line_error;
#[cfg(feature = "matrix-files")]
mod packed;
mod parse;
mod read;
mod text;

#[cfg(all(test, feature = "matrix-files"))]
mod packed_tests;
#[cfg(all(test, feature = "matrix-files"))]
mod tests;

#[cfg(not(feature = "matrix-files"))]
use absent as packed;

pub use line_error::LineError;
pub use read::{Market, read};
pub use text::TextError;

use std::io;
use std::io::Write;

use super::FileError;
use super::rows::{map, threads};
use crate::matrix::control::Control;
use crate::matrix::csr::Csr;

/// Entries that a thread formats at a time.
const PIECE: usize = 1 << 16;

/// Writes a matrix, with a line for each of `comments`. A value has the fewest digits
/// that give the same number when they are read.
///
/// A compressed file consists of several gzip members, which are compressed in
/// parallel; gzip and other readers by its specification (RFC 1952) read them as one.
///
/// # Errors
/// When it cannot be written, and on interruption.
pub fn write(
    csr: &Csr,
    comments: &[String],
    compressed: bool,
    out: &mut impl Write,
    control: &mut Control,
) -> Result<(), FileError> {
    let mut head = "%%MatrixMarket matrix coordinate real general\n".to_owned();
    for line in comments.iter().flat_map(|comment| comment.lines()) {
        head.push_str(&format!("% {line}\n"));
    }
    let (rows, columns, nonzeros) = (csr.rows(), csr.columns(), csr.nonzeros());
    head.push_str(&format!("{rows} {columns} {nonzeros}\n"));
    out.write_all(&compressed_if(compressed, head.into_bytes())?)?;

    let pieces: Vec<usize> = (0..csr.values().len()).step_by(PIECE).collect();
    let total = pieces.len() as u64;
    // Batches limit the memory that texts take.
    for (round, batch) in pieces.chunks(4 * threads()).enumerate() {
        let texts = control.without_progress(|control| {
            map(batch.to_vec(), "writing", control, |first| {
                compressed_if(compressed, lines(csr, first))
            })
        })?;
        for text in texts {
            out.write_all(&text?)?;
        }
        let done = (round * 4 * threads() + batch.len()) as u64;
        control.report("writing", done, total)?;
    }
    Ok(())
}

/// The lines of the entries from `first` on.
fn lines(csr: &Csr, first: usize) -> Vec<u8> {
    let entries = first..(first + PIECE).min(csr.values().len());
    let mut row = csr
        .row_starts()
        .partition_point(|start| *start <= first as u64)
        - 1;
    let mut text = Vec::with_capacity(entries.len() * 32);
    for entry in entries {
        while csr.row_starts()[row + 1] <= entry as u64 {
            row += 1;
        }
        let (column, value) = (csr.column_of()[entry] + 1, csr.values()[entry]);
        // Writing to a Vec cannot fail.
        let _ = writeln!(text, "{} {column} {value:?}", row + 1);
    }
    text
}

fn compressed_if(compressed: bool, text: Vec<u8>) -> io::Result<Vec<u8>> {
    match compressed {
        true => packed::gzip(&text),
        false => Ok(text),
    }
}
