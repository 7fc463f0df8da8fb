//! The given files.

use std::path::Path;

use pdawl::codelet::{Element, NumberFormat, Precision, ProductPrecision};
use pdawl::matrix::npy::{NpyError, NpyMatrix};

use crate::failure::Failure;

/// Opens a matrix.
///
/// # Errors
/// When it cannot be read, has no numbers or too many rows or columns.
pub fn open(path: &Path) -> Result<NpyMatrix, Failure> {
    sized(NpyMatrix::open(path))
}

/// Opens a factor of a product, which may have half precision.
///
/// # Errors
/// As [`open`].
pub fn open_factor(path: &Path) -> Result<NpyMatrix, Failure> {
    sized(NpyMatrix::open_factor(path))
}

fn sized(opened: Result<NpyMatrix, NpyError>) -> Result<NpyMatrix, Failure> {
    let matrix = opened.map_err(Failure::of)?;
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

/// The precision of the computation: as asked, if the files, all of one type, have its numbers or
/// singles that are rounded to them, otherwise that of the files.
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
    let element = first.element();
    let describe =
        |file: &NpyMatrix| format!("{} has {}", file.path().display(), file.element().name());
    if let Some(other) = others.iter().find(|other| other.element() != element) {
        return Err(Failure::failed(
            format!("{}, and {}", describe(first), describe(other)),
            "files of one type: matrix.astype(\"float64\") converts float32 exactly",
        ));
    }
    let of_files = match element {
        Element::F16 => NumberFormat::F16.into(),
        Element::Bf16 => NumberFormat::Bf16.into(),
        Element::F32 => Precision::F32.into(),
        Element::F64 => Precision::F64.into(),
    };
    let is_rounded =
        |asked: ProductPrecision| element == Element::F32 && asked.factors().bytes() < 4;
    match asked {
        Some(asked) if asked.factors() != element && !is_rounded(asked) => Err(Failure::usage(
            format!("--precision {}: {}", asked.name(), describe(first)),
            format!("--precision {}, or none", element.name()),
        )),
        asked => Ok(asked.unwrap_or(of_files)),
    }
}
