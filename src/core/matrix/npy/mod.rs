//! Dense matrices in NPY files, the format of `numpy.save`.
//!
//! `npyz` reads and writes headers; `header` gives it those of all versions of NumPy, and says what the elements may be.
//! Numbers are read where they are needed, in pieces, so that a matrix is never in memory
//! twice; those of a pipe are copied into a temporary file first. `header` also writes them. Both C and Fortran order and both byte orders
//! are read; C order and this machine's bytes are written. Without the crate's feature
//! `matrix-files` no file can be opened (`open`) or written.
//!
//! Source: `numpy.lib.format`, NumPy's documentation of the format.

#[cfg(feature = "matrix-files")]
mod header;
#[cfg(feature = "matrix-files")]
mod open;

#[cfg(all(test, feature = "matrix-files"))]
mod tests;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[cfg(feature = "matrix-files")]
pub use header::{ElementType, write_array_header, write_header};

use crate::codelet::{Element, Precision};
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
    element: Element,
    /// Whether it is stored by columns.
    by_columns: bool,
    /// Whether its numbers have the other byte order than this machine's.
    swapped: bool,
}

impl NpyMatrix {
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

    /// How its numbers are stored.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The precision that has its numbers.
    pub fn precision(&self) -> Precision {
        match self.element {
            Element::F64 => Precision::F64,
            Element::F16 | Element::Bf16 | Element::F32 => Precision::F32,
        }
    }

    fn element_bytes(&self) -> u64 {
        self.per * self.element.bytes()
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
            true => self.read_columns(rows, columns, 1, to),
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

    /// Each element is stored in so many `parts`, each with those of all other elements.
    fn read_columns(
        &self,
        rows: Range<u64>,
        columns: Range<u64>,
        parts: u64,
        to: &mut [u8],
    ) -> io::Result<()> {
        let element = self.element_bytes() as usize;
        let bytes = element / parts as usize;
        let width = (columns.end - columns.start) as usize * element;
        let mut one = vec![0; (rows.end - rows.start) as usize * bytes];
        for part in 0..parts {
            for (place, column) in columns.clone().enumerate() {
                let column = part * self.columns + column;
                let at = self.first + (column * self.rows + rows.start) * bytes as u64;
                self.read_at(&mut one, at)?;
                let place = place * element + part as usize * bytes;
                for (number, row) in one
                    .chunks_exact(bytes)
                    .zip(to.chunks_exact_mut(width.max(1)))
                {
                    row[place..][..bytes].copy_from_slice(number);
                }
            }
        }
        Ok(())
    }

    /// Reads numbers from `at` on, in this machine's byte order.
    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(to, at)?;
        if self.swapped {
            let bytes = self.element.bytes() as usize;
            to.chunks_exact_mut(bytes).for_each(<[u8]>::reverse);
        }
        Ok(())
    }
}

/// Why a file cannot be read as a matrix.
#[derive(Debug, Error)]
pub enum NpyError {
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error(
        "{}: is not an NPY file: {why}; write one with numpy.save(\"FILE.npy\", matrix)",
        path.display()
    )]
    Header { path: PathBuf, why: String },

    #[error(
        "{}: has numbers of type {found}, and {needed} are needed; {remedy}",
        path.display()
    )]
    Type {
        path: PathBuf,
        found: String,
        needed: &'static str,
        /// How they are converted, and what that loses.
        remedy: String,
    },

    #[error(
        "{}: has an array of {} dimensions, shape {found:?}, and {needed}",
        path.display(),
        found.len()
    )]
    Dimensions {
        path: PathBuf,
        found: Vec<u64>,
        needed: &'static str,
    },

    #[error(
        "{}: is truncated: its header says {} x {} numbers of type {type_name}, and {has} bytes \
         follow; write it again",
        path.display(),
        shape.0,
        shape.1
    )]
    Length {
        path: PathBuf,
        shape: (u64, u64),
        type_name: &'static str,
        /// Bytes after the header.
        has: u64,
    },
}
