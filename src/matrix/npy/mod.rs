//! Dense matrices in NPY files, the format of `numpy.save`.
//!
//! `npyz` reads and writes headers; `header` gives it those of all versions of NumPy.
//! Numbers are read where they are needed, in pieces, so that a matrix is never in memory
//! twice; those of a pipe are copied into a temporary file first. `element` says what the
//! elements may be, `write` writes headers. Both C and Fortran order and both byte orders
//! are read; C order and this machine's bytes are written.
//!
//! Source: `numpy.lib.format`, NumPy's documentation of the format.

mod element;
mod error;
mod header;
mod write;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use npyz::Order;

pub use error::NpyError;
pub use write::{ElementType, write_array_header, write_header};

use element::{Elements, Wanted, Wrong};
use header::{Header, HeaderError};

use crate::codelet::Precision;
use crate::parallel;

/// Bytes that one core reads at a time.
const PIECE: usize = 1 << 20;

/// A matrix in a file, of which the header has been read and checked.
#[derive(Debug)]
pub struct NpyMatrix {
    path: PathBuf,
    file: File,
    /// Where the numbers begin.
    first: u64,
    rows: u64,
    columns: u64,
    /// Numbers of an element: 1, but for complex ones, pixels, and rows of planes.
    per: u64,
    precision: Precision,
    /// Whether it is stored by columns.
    by_columns: bool,
    /// Whether its numbers have the other byte order than this machine's.
    swapped: bool,
}

impl NpyMatrix {
    /// Opens a file with a matrix of single or double precision.
    ///
    /// # Errors
    /// When it cannot be read, is no NPY file, has another type or another number of
    /// dimensions, or is shorter than its header says.
    pub fn open(path: &Path) -> Result<Self, NpyError> {
        Self::open_as(path, Wanted::Matrix)
    }

    /// Opens a file with an image: a matrix, or an array of rows, columns and channels in C
    /// order.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_image(path: &Path) -> Result<Self, NpyError> {
        Self::open_as(path, Wanted::Image)
    }

    /// Opens a file with a matrix of complex singles.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_complex(path: &Path) -> Result<Self, NpyError> {
        Self::open_as(path, Wanted::Complex)
    }

    /// Opens a file with an array of one dimension, as a matrix of one row.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_vector(path: &Path) -> Result<Self, NpyError> {
        Self::open_as(path, Wanted::Vector)
    }

    /// Opens a file with a grid: an array of 2 or 3 dimensions, each of at least 3 points, in
    /// C order. Its rows are those of a grid of 2 dimensions, and the planes of one of 3.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_grid(path: &Path) -> Result<Self, NpyError> {
        Self::open_as(path, Wanted::Grid)
    }

    fn open_as(path: &Path, wanted: Wanted) -> Result<Self, NpyError> {
        let failed = |source| NpyError::Read {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let mut reader = BufReader::new(&file);
        let Header { header, bytes } = header::read(&mut reader).map_err(|error| match error {
            HeaderError::Read(source) => failed(source),
            HeaderError::Wrong(why) => NpyError::Header {
                path: path.to_owned(),
                why,
            },
        })?;
        let elements = wanted.elements(&header).map_err(|wrong| match wrong {
            Wrong::Type => NpyError::Type {
                path: path.to_owned(),
                found: header.dtype().descr(),
                needed: wanted.types(),
                remedy: wanted.conversion(header.dtype()),
            },
            Wrong::Order => NpyError::Order {
                path: path.to_owned(),
            },
            Wrong::Dimensions => NpyError::Dimensions {
                path: path.to_owned(),
                found: header.shape().to_vec(),
                needed: wanted.dimensions(),
            },
        })?;
        let Elements {
            rows,
            columns,
            per,
            precision,
            swapped,
        } = elements;
        let needed = (rows.checked_mul(columns))
            .and_then(|elements| elements.checked_mul(per))
            .and_then(|numbers| numbers.checked_mul(precision.bytes()));
        let (copy, has) = match needed {
            _ if about.is_file() => (None, about.len().saturating_sub(bytes)),
            None => (None, 0),
            Some(needed) => {
                let (copy, has) = copied(reader, needed).map_err(failed)?;
                (Some(copy), has)
            }
        };
        if needed.is_none_or(|needed| needed > has) {
            return Err(NpyError::Length {
                path: path.to_owned(),
                shape: (rows, columns),
                type_name: precision.name(),
                has,
            });
        }
        let first = if copy.is_some() { 0 } else { bytes };
        Ok(Self {
            path: path.to_owned(),
            file: copy.unwrap_or(file),
            first,
            rows,
            columns,
            per,
            precision,
            by_columns: header.order() == Order::Fortran,
            swapped,
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

    /// Points along each axis of a grid: columns, rows, and planes if it has 3 dimensions.
    pub fn grid_shape(&self) -> (u64, u64, Option<u64>) {
        match self.per {
            1 => (self.columns, self.rows, None),
            // The points along an axis are at least 3.
            points => (points, self.columns, Some(self.rows)),
        }
    }

    /// Numbers of an element.
    pub fn per(&self) -> u64 {
        self.per
    }

    pub fn precision(&self) -> Precision {
        self.precision
    }

    fn element_bytes(&self) -> u64 {
        self.per * self.precision.bytes()
    }

    /// Reads the elements of these rows and columns, which the matrix has, into `to`, by
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
        let bytes = self.element_bytes();
        let width = ((columns.end - columns.start) * bytes).max(1) as usize;
        let piece = PIECE.div_ceil(width);
        let read = parallel::pieces(to, piece * width, |index, to| {
            let first = rows.start + (index * piece) as u64;
            let mut rows = (first..rows.end).zip(to.chunks_exact_mut(width));
            rows.try_for_each(|(row, to)| {
                let at = self.first + (row * self.columns + columns.start) * bytes;
                self.read_at(to, at)
            })
        });
        read.into_iter().collect()
    }

    fn read_columns(&self, rows: Range<u64>, columns: Range<u64>, to: &mut [u8]) -> io::Result<()> {
        let bytes = self.element_bytes() as usize;
        let width = (columns.end - columns.start) as usize * bytes;
        let mut one = vec![0; (rows.end - rows.start) as usize * bytes];
        for (place, column) in columns.enumerate() {
            let at = self.first + (column * self.rows + rows.start) * bytes as u64;
            self.read_at(&mut one, at)?;
            for (number, row) in one
                .chunks_exact(bytes)
                .zip(to.chunks_exact_mut(width.max(1)))
            {
                row[place * bytes..][..bytes].copy_from_slice(number);
            }
        }
        Ok(())
    }

    /// Reads numbers from `at` on, in this machine's byte order.
    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(to, at)?;
        if self.swapped {
            let bytes = self.precision.bytes() as usize;
            to.chunks_exact_mut(bytes).for_each(<[u8]>::reverse);
        }
        Ok(())
    }
}

/// The next `most` bytes of a pipe, as far as there are so many, in a file without a
/// name, and how many there are.
fn copied(pipe: impl Read, most: u64) -> io::Result<(File, u64)> {
    let mut file = tempfile::tempfile()?;
    let bytes = io::copy(&mut pipe.take(most), &mut file)?;
    Ok((file, bytes))
}
