//! Opens a file: its header is read and checked.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use npyz::Order;
use pdawl_profiler::file::waiting;

use super::header;
use super::header::{Elements, Header, HeaderError, Wanted, Wrong};
use super::{NpyError, NpyMatrix};

/// Bytes of rows that are put together at a time, out of files by columns.
const TURNED: u64 = 64 << 20;

impl NpyMatrix {
    /// Opens a file with a matrix of single or double precision.
    ///
    /// # Errors
    /// When it cannot be read, is no NPY file, has another type or another number of
    /// dimensions, or is shorter than its header says.
    pub fn open(path: &Path) -> Result<Self, NpyError> {
        Self::open_as(path, Wanted::Matrix)
    }

    /// Opens a file with a matrix of half, single or double precision.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_factor(path: &Path) -> Result<Self, NpyError> {
        Self::open_as(path, Wanted::Factor)
    }

    /// Opens a file with an image: a matrix, or an array of rows, columns and channels.
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

    /// Opens a file with a grid: an array of 2 or 3 dimensions, each of at least 3 points. Its
    /// rows are those of a grid of 2 dimensions, and the planes of one of 3.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_grid(path: &Path) -> Result<Self, NpyError> {
        Self::open_as(path, Wanted::Grid)
    }

    fn open_as(path: &Path, wanted: Wanted) -> Result<Self, NpyError> {
        match fs::metadata(path).is_ok_and(|about| about.is_file()) {
            true => Self::open_file(path, wanted),
            false => waiting(|| Self::open_file(path, wanted)),
        }
    }

    fn open_file(path: &Path, wanted: Wanted) -> Result<Self, NpyError> {
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
            element,
            swapped,
        } = elements;
        let needed = (rows.checked_mul(columns))
            .and_then(|elements| elements.checked_mul(per))
            .and_then(|numbers| numbers.checked_mul(element.bytes()));
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
                type_name: element.name(),
                has,
            });
        }
        let first = if copy.is_some() { 0 } else { bytes };
        let matrix = Self {
            path: path.to_owned(),
            file: copy.unwrap_or(file),
            first,
            rows,
            columns,
            per,
            element,
            by_columns: header.order() == Order::Fortran,
            swapped,
        };
        // Of a grid, pieces of few rows are read; of three dimensions, the numbers of an element
        // are far from each other.
        let is_turned = wanted == Wanted::Grid || header.shape().len() == 3;
        match matrix.by_columns && matrix.rows > 0 && is_turned {
            true => matrix.by_rows().map_err(failed),
            false => Ok(matrix),
        }
    }

    /// The same matrix by rows, in a file without a name.
    fn by_rows(self) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        let row_bytes = self.columns * self.element_bytes();
        let rows = (TURNED / row_bytes.max(1)).clamp(1, self.rows.max(1));
        let mut bytes = vec![0; (rows * row_bytes) as usize];
        for first in (0..self.rows).step_by(rows as usize) {
            let rows = first..(first + rows).min(self.rows);
            let bytes = &mut bytes[..((rows.end - rows.start) * row_bytes) as usize];
            self.read_columns(rows, 0..self.columns, self.per, bytes)?;
            file.write_all(bytes)?;
        }
        Ok(Self {
            file,
            first: 0,
            by_columns: false,
            swapped: false,
            ..self
        })
    }
}

/// The next `most` bytes of a pipe, as far as there are so many, in a file without a
/// name, and how many there are.
fn copied(pipe: impl Read, most: u64) -> io::Result<(File, u64)> {
    let mut file = tempfile::tempfile()?;
    let bytes = io::copy(&mut pipe.take(most), &mut file)?;
    Ok((file, bytes))
}
