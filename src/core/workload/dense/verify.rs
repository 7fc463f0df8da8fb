//! The check of a result without computing it again: a factorisation is the product
//! `A = L L^T`.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{DenseTask, Operation};
use crate::codelet::Element;
use crate::graph::DatumId;
use crate::verify::Rounding;
use crate::verify::product::{self, GROUPS, MatrixPart, Product, Verification};
use crate::workload::task_set::{Matrix, TiledGraph};

impl DenseTask {
    /// Checks a result. `read` gives the numbers of a tile, stored as
    /// [`Matrix::element`] says. `None` if `stop` was set
    /// meanwhile.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn verify<E>(
        &self,
        tiled: &TiledGraph,
        mut read: impl FnMut(DatumId, Element) -> Result<Vec<f64>, E>,
        stop: &AtomicBool,
    ) -> Result<Option<Verification>, E> {
        let mut each = |matrix, act: &mut dyn FnMut(MatrixPart)| {
            for (tile, datum) in tiled.of(matrix) {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                act(MatrixPart {
                    rows: tile.rows.clone(),
                    columns: tile.columns.clone(),
                    numbers: read(*datum, tile.matrix.element(self.precision))?,
                });
            }
            Ok(true)
        };
        let mut source = |of, act: &mut dyn FnMut(MatrixPart)| match self.operation {
            Operation::Product { .. } => each(of_product(of), act),
            Operation::Factorisation { .. } => match of {
                product::Matrix::A => each(Matrix::L, &mut |part| act(part.lower())),
                product::Matrix::B => each(Matrix::L, &mut |part| act(part.lower().transposed())),
                product::Matrix::C => each(Matrix::A, &mut |part| match part.on_diagonal() {
                    true => act(part.mirrored()),
                    false => {
                        act(part.transposed());
                        act(part);
                    }
                }),
            },
        };
        self.product().verify(&mut source)
    }

    fn product(&self) -> Product {
        let (rows, columns, depth) = match self.operation {
            Operation::Product {
                rows,
                columns,
                depth,
            } => (rows, columns, depth),
            Operation::Factorisation { rows } => (rows, rows, rows),
        };
        let group = columns.div_ceil(GROUPS as u32);
        Product {
            rows: rows.into(),
            columns: columns.into(),
            depth: depth.into(),
            // Whole tiles.
            group: u64::from(group).next_multiple_of(self.tile.into()),
            rounding: Rounding::from(self.precision),
            // Not that of generated matrices.
            seed: self.seed.wrapping_add(1 << 32),
        }
    }
}

fn of_product(matrix: product::Matrix) -> Matrix {
    match matrix {
        product::Matrix::A => Matrix::A,
        product::Matrix::B => Matrix::B,
        product::Matrix::C => Matrix::C,
    }
}
