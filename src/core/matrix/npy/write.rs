//! Headers of NPY files in C order.

use std::io::{self, Write};

use npyz::{AutoSerialize, DType, TypeStr, WriteOptions, WriterBuilder};

use crate::codelet::Precision;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    Real(Precision),
    /// Complex singles.
    Complex,
    I32,
}

/// Writes the header of an array in C order. Its elements follow, the last dimension
/// fastest.
///
/// # Errors
/// When it cannot be written.
pub fn write_array_header(
    out: &mut dyn Write,
    shape: &[u64],
    element: ElementType,
) -> io::Result<()> {
    let dtype = match element {
        ElementType::Real(Precision::F32) => Some(f32::default_dtype()),
        ElementType::Real(Precision::F64) => Some(f64::default_dtype()),
        ElementType::Complex => complex(),
        ElementType::I32 => Some(i32::default_dtype()),
    };
    let dtype = dtype.ok_or_else(|| io::Error::other("there is no such type"))?;
    let header = WriteOptions::new_header_only().dtype(dtype);
    let header = header.shape(shape).writer(out);
    header.write_header_only().map(|_| ())
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
    write_array_header(out, &[rows, columns], ElementType::Real(precision))
}

/// The type of complex singles.
fn complex() -> Option<DType> {
    let order = if cfg!(target_endian = "little") {
        '<'
    } else {
        '>'
    };
    let name: TypeStr = format!("{order}c8").parse().ok()?;
    Some(DType::new_scalar(name))
}
