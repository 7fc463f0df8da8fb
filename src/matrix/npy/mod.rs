//! Dense matrices in NPY files, the format of `numpy.save`.
//!
//! `npyz` reads and writes headers. Numbers are read where they are needed, in pieces, so
//! that a matrix is never in memory twice. Both C and Fortran order are read; C order is
//! written.
//!
//! Source: `numpy.lib.format`, NumPy's documentation of the format.

mod error;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use npyz::{AutoSerialize, NpyHeader, Order, WriteOptions, WriterBuilder};

pub use error::NpyError;

use crate::codelet::Precision;
use crate::parallel;

/// Bytes that one core reads at a time.
const PIECE: usize = 1 << 20;

/// Most bytes of a header. That of a matrix has 128; a hostile one could nest without an
/// end.
const MOST_HEADER: u64 = 2048;

/// A matrix in a file, of which the header has been read and checked.
#[derive(Debug)]
pub struct NpyMatrix {
    path: PathBuf,
    file: File,
    /// Where the numbers begin.
    first: u64,
    rows: u64,
    columns: u64,
    precision: Precision,
    /// Whether it is stored by columns.
    by_columns: bool,
}

impl NpyMatrix {
    /// Opens a file with a matrix of single or double precision.
    ///
    /// # Errors
    /// When it cannot be read, is no NPY file, has another type or another number of
    /// dimensions, or is shorter than its header says.
    pub fn open(path: &Path) -> Result<Self, NpyError> {
        let failed = |source| NpyError::Read {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut reader = BufReader::new(&file);
        let header = NpyHeader::from_reader((&mut reader).take(MOST_HEADER));
        let header = header.map_err(|error| NpyError::Header {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        let first = reader.stream_position().map_err(failed)?;
        let precision = precision(&header).ok_or_else(|| NpyError::Type {
            path: path.to_owned(),
            found: header.dtype().descr(),
        })?;
        let [rows, columns] = *header.shape() else {
            return Err(NpyError::Dimensions {
                path: path.to_owned(),
                found: header.shape().to_vec(),
            });
        };
        let needed = (rows.checked_mul(columns))
            .and_then(|numbers| numbers.checked_mul(precision.bytes()))
            .and_then(|bytes| bytes.checked_add(first));
        if needed.is_none_or(|needed| needed > length) {
            return Err(NpyError::Length {
                path: path.to_owned(),
                shape: (rows, columns),
                type_name: precision.name(),
                has: length.saturating_sub(first),
            });
        }
        drop(reader);
        Ok(Self {
            path: path.to_owned(),
            file,
            first,
            rows,
            columns,
            precision,
            by_columns: header.order() == Order::Fortran,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn columns(&self) -> u64 {
        self.columns
    }

    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Reads the numbers of these rows and columns, which the matrix has, into `to`, by
    /// rows.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(
        &self,
        rows: Range<u64>,
        columns: Range<u64>,
        to: &mut [u8],
    ) -> Result<(), NpyError> {
        let read = match self.by_columns {
            false => self.read_rows(rows, columns, to),
            true => self.read_columns(rows, columns, to),
        };
        read.map_err(|source| NpyError::Read {
            path: self.path.clone(),
            source,
        })
    }

    /// A piece of the rows a core: most of the time goes into copies out of the cache of
    /// files.
    fn read_rows(&self, rows: Range<u64>, columns: Range<u64>, to: &mut [u8]) -> io::Result<()> {
        let bytes = self.precision.bytes();
        let width = ((columns.end - columns.start) * bytes).max(1) as usize;
        let piece = PIECE.div_ceil(width);
        let read = parallel::pieces(to, piece * width, |index, to| {
            let first = rows.start + (index * piece) as u64;
            let mut rows = (first..rows.end).zip(to.chunks_exact_mut(width));
            rows.try_for_each(|(row, to)| {
                let at = self.first + (row * self.columns + columns.start) * bytes;
                self.file.read_exact_at(to, at)
            })
        });
        read.into_iter().collect()
    }

    fn read_columns(&self, rows: Range<u64>, columns: Range<u64>, to: &mut [u8]) -> io::Result<()> {
        let bytes = self.precision.bytes() as usize;
        let width = (columns.end - columns.start) as usize * bytes;
        let mut one = vec![0; (rows.end - rows.start) as usize * bytes];
        for (place, column) in columns.enumerate() {
            let at = self.first + (column * self.rows + rows.start) * bytes as u64;
            self.file.read_exact_at(&mut one, at)?;
            for (number, row) in one
                .chunks_exact(bytes)
                .zip(to.chunks_exact_mut(width.max(1)))
            {
                row[place * bytes..][..bytes].copy_from_slice(number);
            }
        }
        Ok(())
    }
}

/// The precision of a file's numbers, if it is one of ours in this machine's byte order.
fn precision(header: &NpyHeader) -> Option<Precision> {
    let found = header.dtype();
    let known = [
        (f32::default_dtype(), Precision::F32),
        (f64::default_dtype(), Precision::F64),
    ];
    let mut known = known.into_iter();
    known.find_map(|(dtype, precision)| (dtype == found).then_some(precision))
}

/// Writes the header of a matrix in C order. Its numbers follow, by rows.
///
/// # Errors
/// When it cannot be written.
pub fn write_header(
    out: &mut dyn Write,
    (rows, columns): (u64, u64),
    precision: Precision,
) -> io::Result<()> {
    let dtype = match precision {
        Precision::F32 => f32::default_dtype(),
        Precision::F64 => f64::default_dtype(),
    };
    let header = WriteOptions::new_header_only().dtype(dtype);
    let header = header.shape(&[rows, columns]).writer(out);
    header.write_header_only().map(|_| ())
}
