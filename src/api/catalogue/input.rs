//! The given files.

use std::path::Path;

use super::Unfit;
use crate::codelet::{Element, NumberFormat, Precision, ProductPrecision};
use crate::matrix::npy::{NpyError, NpyMatrix};

/// Opens a file of singles.
pub fn singles(
    path: &Path,
    open: impl FnOnce(&Path) -> Result<NpyMatrix, NpyError>,
) -> Result<NpyMatrix, Unfit> {
    let matrix = reals(path, open)?;
    match matrix.precision() {
        Precision::F32 => Ok(matrix),
        Precision::F64 => Err(Unfit::input(
            format!(
                "{}: has float64, and nodes compute in float32",
                path.display()
            ),
            "matrix.astype(\"float32\"), which rounds to 7 digits",
        )),
    }
}

/// Opens a file of any numbers, which has some.
pub fn reals(
    path: &Path,
    open: impl FnOnce(&Path) -> Result<NpyMatrix, NpyError>,
) -> Result<NpyMatrix, Unfit> {
    let matrix = open(path)?;
    match matrix.rows() == 0 || matrix.columns() == 0 {
        true => Err(Unfit::input(
            format!("{}: has no numbers", path.display()),
            "a file with some",
        )),
        false => Ok(matrix),
    }
}

/// Opens a matrix that is factored or multiplied, whose sides 32 bits count.
pub fn matrix(
    path: &Path,
    open: impl FnOnce(&Path) -> Result<NpyMatrix, NpyError>,
) -> Result<NpyMatrix, Unfit> {
    let matrix = open(path)?;
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let allowed = |length: u64| length > 0 && u32::try_from(length).is_ok();
    match allowed(rows) && allowed(columns) {
        true => Ok(matrix),
        false => Err(Unfit::input(
            format!("{}: has {rows} x {columns} numbers", path.display()),
            format!("a matrix of 1 to {} rows and columns", u32::MAX),
        )),
    }
}

/// Checks that a matrix is square.
pub fn square(matrix: NpyMatrix) -> Result<NpyMatrix, Unfit> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    match rows == columns {
        true => Ok(matrix),
        false => Err(Unfit::input(
            format!(
                "{}: is {rows} x {columns}, not square",
                matrix.path().display()
            ),
            "a square matrix",
        )),
    }
}

/// The precision of the computation: as asked, if the files, all of one type, have its numbers or
/// singles that are rounded to them, otherwise that of the files.
pub fn precision(
    files: &[&NpyMatrix],
    asked: Option<ProductPrecision>,
) -> Result<ProductPrecision, Unfit> {
    let Some((first, others)) = files.split_first() else {
        return Ok(asked.unwrap_or(Precision::F32.into()));
    };
    let element = first.element();
    let describe =
        |file: &NpyMatrix| format!("{} has {}", file.path().display(), file.element().name());
    if let Some(other) = others.iter().find(|other| other.element() != element) {
        return Err(Unfit::input(
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
        Some(asked) if asked.factors() != element && !is_rounded(asked) => Err(Unfit::value(
            format!("--precision {}: {}", asked.name(), describe(first)),
            format!("--precision {}, or none", element.name()),
        )),
        asked => Ok(asked.unwrap_or(of_files)),
    }
}

/// The choices of singles and doubles.
pub const REALS: &[(&str, &str)] = &[("f64", ""), ("f32", "")];

/// A precision by its name.
pub fn named(name: &str) -> Option<ProductPrecision> {
    Some(match name {
        "f32" => NumberFormat::F32.into(),
        "f64" => ProductPrecision::Double,
        "f16" => NumberFormat::F16.into(),
        "bf16" => NumberFormat::Bf16.into(),
        "tf32" => NumberFormat::Tf32.into(),
        _ => return None,
    })
}
