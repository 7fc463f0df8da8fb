//! The given files.

use std::path::Path;

use pdawl::codelet::{Element, Precision, ProductPrecision};
use pdawl::matrix::npy::NpyMatrix;

use crate::cli::failure::Failure;

/// Opens a matrix.
///
/// # Errors
/// When it cannot be read, has no numbers or too many rows or columns.
pub fn open(path: &Path) -> Result<NpyMatrix, Failure> {
    let matrix = NpyMatrix::open(path).map_err(Failure::of)?;
    size(&matrix)?;
    Ok(matrix)
}

/// Rows and columns of a matrix.
///
/// # Errors
/// When one is 0 or exceeds 32 bits.
pub fn size(matrix: &NpyMatrix) -> Result<(u32, u32), Failure> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let allowed = |length: u64| u32::try_from(length).ok().filter(|length| *length > 0);
    match (allowed(rows), allowed(columns)) {
        (Some(rows), Some(columns)) => Ok((rows, columns)),
        _ => Err(Failure::failed(
            format!(
                "{}: has {rows} x {columns} numbers",
                matrix.path().display()
            ),
            format!("a matrix of 1 to {} rows and columns", u32::MAX),
        )),
    }
}

/// The precision of the computation: as asked, if the files, all of one type, have its numbers,
/// otherwise that of the files.
///
/// # Errors
/// When they differ, or the user asks for another.
pub fn precision<P: Copy + Into<ProductPrecision>>(
    files: &[&NpyMatrix],
    asked: Option<P>,
) -> Result<ProductPrecision, Failure> {
    let asked: Option<ProductPrecision> = asked.map(Into::into);
    let Some((first, others)) = files.split_first() else {
        return Ok(asked.unwrap_or(Precision::F32.into()));
    };
    let precision = first.precision();
    let describe =
        |file: &NpyMatrix| format!("{} has {}", file.path().display(), file.precision().name());
    if let Some(other) = others.iter().find(|other| other.precision() != precision) {
        return Err(Failure::failed(
            format!("{}, and {}", describe(first), describe(other)),
            "files of one type: matrix.astype(\"float64\") converts float32 exactly",
        ));
    }
    match asked {
        Some(asked) if asked.factors() != Element::from(precision) => Err(Failure::usage(
            format!("--precision {}: {}", asked.name(), describe(first)),
            format!("--precision {}, or none", precision.name()),
        )),
        asked => Ok(asked.unwrap_or(precision.into())),
    }
}
