//! Dense matrices.

use bytemuck::Pod;

use super::super::{Error, Factor, Number};
use crate::codelet::Precision;
use crate::matrix::Shared;
use crate::workload::cluster::{Fill, of_memory};

/// A complex number of singles or doubles: its real and its imaginary part.
pub type Complex<T> = [T; 2];

/// A dense matrix, row after row. Clones share the elements, which are not changed.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseMatrix<T> {
    rows: u32,
    columns: u32,
    elements: Shared<T>,
}

impl<T: Pod + Send + Sync> DenseMatrix<T> {
    /// A matrix of the elements of the first row, then those of the second, and so on. Elements
    /// that are [`Shared`] stay where they are; devices get copies of its tiles.
    ///
    /// # Errors
    /// When there are no rows or columns, or more or fewer elements than the matrix has.
    pub fn new(rows: u32, columns: u32, elements: impl Into<Shared<T>>) -> Result<Self, Error> {
        let elements = elements.into();
        let all = u64::from(rows) * u64::from(columns);
        match all > 0 && all == elements.len() as u64 {
            true => Ok(Self {
                rows,
                columns,
                elements,
            }),
            false => Err(Error::Arguments(format!(
                "a matrix of {rows} x {columns} has {all} elements, and {} are given; it has at \
                 least one",
                elements.len()
            ))),
        }
    }

    /// At least 1.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Elements of a row, at least 1.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// Row after row.
    pub fn elements(&self) -> &[T] {
        &self.elements
    }

    /// Row after row; without a copy if nothing else has the matrix.
    pub fn into_elements(self) -> Vec<T> {
        self.elements.into_vec()
    }

    /// Row after row, where they are.
    pub fn into_shared(self) -> Shared<T> {
        self.elements
    }

    /// Its elements, block by block.
    pub(super) fn fill(&self) -> Fill {
        of_memory(self.elements.clone(), self.columns.into())
    }

    /// Checks that it is square.
    pub(super) fn square(&self) -> Result<u32, Error> {
        match self.rows == self.columns {
            true => Ok(self.rows),
            false => Err(Error::Arguments(format!(
                "the matrix is {} x {}, and only a square one has such factors",
                self.rows, self.columns
            ))),
        }
    }
}

/// Checks that A and B have a product.
pub(super) fn check_product<T: Factor>(
    a: &DenseMatrix<T>,
    b: &DenseMatrix<T>,
) -> Result<(), Error> {
    match a.columns() == b.rows() {
        true => Ok(()),
        false => Err(Error::Arguments(format!(
            "A has {} columns, and B {} rows; a product needs as many",
            a.columns(),
            b.rows()
        ))),
    }
}

/// The precision of a matrix's numbers.
pub(super) fn precision<T: Number>(_: &DenseMatrix<T>) -> Precision {
    T::PRECISION
}
