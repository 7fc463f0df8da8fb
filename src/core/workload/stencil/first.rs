//! The first version of a grid: random numbers, or those of a file.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::codelet::Precision;
use crate::matrix::Shared;
use crate::matrix::npy::{NpyError, NpyMatrix};
use crate::parallel;
use crate::random::uniform;
use crate::workload::FirstVersionError;

/// Bytes of a file that one core compares at a time.
const PIECE: u64 = 4 << 20;

/// Why a file is not the first version of a grid.
#[derive(Debug, Error)]
pub enum GridFileError {
    #[error(transparent)]
    Npy(#[from] NpyError),

    #[error(
        "{}: the number in {place} (counted from 0) is {value}, and a grid has finite numbers; \
         numpy.nan_to_num(grid) replaces others",
        path.display()
    )]
    NotFinite {
        path: PathBuf,
        /// Its row and column, and its plane in 3-D.
        place: String,
        value: f64,
    },
}

/// A grid's first version.
#[derive(Clone, Debug)]
pub enum FirstVersion {
    /// Uniform in [0, 1), by a hash of the seed and a point's index.
    Random { seed: u64 },
    /// The numbers of a file, which has the grid's shape and precision.
    File(Arc<NpyMatrix>),
    /// These bytes, as many as the grid has.
    Given(Shared<u8>),
}

impl FirstVersion {
    /// Writes some units of so many points.
    pub(super) fn write(
        &self,
        units: Range<u64>,
        unit_points: u64,
        precision: Precision,
        bytes: &mut [u8],
    ) -> Result<(), FirstVersionError> {
        match (self, precision) {
            (Self::File(file), _) => file
                .read(units, 0..file.columns(), bytes)
                .map_err(|error| FirstVersionError(error.to_string())),
            (Self::Given(numbers), _) => {
                let unit_bytes = unit_points * precision.bytes();
                let own = units.start * unit_bytes..units.end * unit_bytes;
                parallel::copy(bytes, &numbers[own.start as usize..own.end as usize]);
                Ok(())
            }
            (Self::Random { seed }, Precision::F64) => {
                let points: &mut [f64] = bytemuck::cast_slice_mut(bytes);
                for (index, point) in (units.start * unit_points..).zip(points) {
                    *point = uniform(*seed, index);
                }
                Ok(())
            }
            (Self::Random { seed }, Precision::F32) => {
                let points: &mut [f32] = bytemuck::cast_slice_mut(bytes);
                for (index, point) in (units.start * unit_points..).zip(points) {
                    *point = uniform(*seed, index) as f32;
                }
                Ok(())
            }
        }
    }
}

/// Checks that all numbers of a grid's file are finite.
///
/// # Errors
/// When it cannot be read, and the place of the first number that is infinite or NaN.
pub fn check_finite(file: &NpyMatrix) -> Result<(), GridFileError> {
    let unit_points = file.columns() * file.per();
    let unit_bytes = unit_points * file.precision().bytes();
    let units = PIECE.div_ceil(unit_bytes.max(1));
    let pieces: Vec<Range<u64>> = (0..file.rows())
        .step_by(units as usize)
        .map(|first| first..(first + units).min(file.rows()))
        .collect();
    let found = parallel::map(pieces, |units| {
        let first = units.start * unit_points;
        let number = |found: Option<(usize, f64)>| found.map(|(at, of)| (first + at as u64, of));
        let count = (units.end - units.start) * unit_points;
        match file.precision() {
            Precision::F64 => {
                let mut numbers = vec![0f64; count as usize];
                let bytes = bytemuck::cast_slice_mut(&mut numbers);
                file.read(units, 0..file.columns(), bytes)?;
                Ok(number(not_finite(numbers.into_iter())))
            }
            Precision::F32 => {
                let mut numbers = vec![0f32; count as usize];
                let bytes = bytemuck::cast_slice_mut(&mut numbers);
                file.read(units, 0..file.columns(), bytes)?;
                Ok(number(not_finite(numbers.into_iter().map(f64::from))))
            }
        }
    });
    let found: Vec<Option<(u64, f64)>> = found.into_iter().collect::<Result<_, NpyError>>()?;
    match found.into_iter().flatten().next() {
        None => Ok(()),
        Some((index, value)) => Err(GridFileError::NotFinite {
            path: file.path().to_owned(),
            place: place(file, index),
            value,
        }),
    }
}

/// The first number that is infinite or NaN, and its position.
fn not_finite(numbers: impl Iterator<Item = f64>) -> Option<(usize, f64)> {
    numbers.enumerate().find(|(_, number)| !number.is_finite())
}

/// Where a number is, in words.
fn place(file: &NpyMatrix, index: u64) -> String {
    match file.grid_shape() {
        (nx, _, None) => format!("row {}, column {}", index / nx, index % nx),
        (nx, ny, Some(_)) => {
            let (row, column) = (index / nx % ny, index % nx);
            format!("plane {}, row {row}, column {column}", index / (nx * ny))
        }
    }
}
