//! Products and Cholesky factorisations of dense matrices in host memory, as sets of
//! tasks on tiles ([`crate::workload::task_set`]). No device needs to hold a matrix.
//!
//! * [`DenseTask`] says what is computed, in which tiles; [`tile_size`] chooses their
//!   length.
//! * [`Inputs`] are the matrices: generated, or in NPY files.
//! * `verify` checks a result without computing it again, and [`pivot`] finds out that a
//!   factored matrix was not positive definite.

mod inputs;
pub mod pivot;
pub mod tile_size;
mod verify;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use inputs::Inputs;

use crate::codelet::{Element, ProductPrecision};
use crate::workload::task_set::{
    Body, Cholesky, Extent, Matmul3d, Order, TaskSet, TaskSetError, Tasks, Tile, TiledGraph,
};

/// What is computed. No length is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// C = A B, where C has these rows and columns and A has `depth` columns.
    Product { rows: u32, columns: u32, depth: u32 },
    /// A = L L^T for a symmetric positive definite A of so many rows, of which only the
    /// lower triangle is read.
    Factorisation { rows: u32 },
}

/// A computation, its tiles, and the order of its tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseTask {
    pub operation: Operation,
    /// Rows and columns of a tile; those at the edges may be smaller.
    pub tile: u32,
    /// A factorisation has one of which the factors are stored as the sums.
    pub precision: ProductPrecision,
    pub order: Order,
    /// Seeds the order and generated matrices.
    pub seed: u64,
}

impl Operation {
    /// Rows and columns of the result.
    pub fn result_size(&self) -> (u32, u32) {
        match *self {
            Self::Product { rows, columns, .. } => (rows, columns),
            Self::Factorisation { rows } => (rows, rows),
        }
    }

    /// The greatest of its lengths.
    pub fn longest(&self) -> u32 {
        match *self {
            Self::Product {
                rows,
                columns,
                depth,
            } => rows.max(columns).max(depth),
            Self::Factorisation { rows } => rows,
        }
    }

    /// Operations: two a multiplication and addition of a product, and LAPACK's count for a
    /// factorisation.
    pub fn flops(&self) -> f64 {
        match *self {
            Self::Product {
                rows,
                columns,
                depth,
            } => 2.0 * f64::from(rows) * f64::from(columns) * f64::from(depth),
            Self::Factorisation { rows } => {
                let n = f64::from(rows);
                n * n * n / 3.0 + n * n / 2.0 + n / 6.0
            }
        }
    }

    /// Bytes of host memory of the given matrices and the result, with tiles of this
    /// length. A factorisation has the lower tiles alone, of A and of L.
    pub fn matrix_bytes(&self, tile: u32, precision: ProductPrecision) -> u64 {
        let of_factors = u128::from(precision.factors().bytes());
        let of_result = u128::from(Element::from(precision.sums()).bytes());
        let bytes = match *self {
            Self::Product {
                rows,
                columns,
                depth,
            } => {
                let [m, n, k] = [rows, columns, depth].map(u128::from);
                (m * k + k * n) * of_factors + m * n * of_result
            }
            Self::Factorisation { rows } => {
                let (rows, tile) = (u128::from(rows), u128::from(tile));
                let (whole, rest) = (rows / tile, rows % tile);
                (whole * (whole + 1) * tile * tile + 2 * rest * rows) * of_result
            }
        };
        bytes.try_into().unwrap_or(u64::MAX)
    }

    fn tasks(&self) -> Tasks {
        match *self {
            Self::Product {
                rows,
                columns,
                depth,
            } => Tasks::Matmul3d(Matmul3d {
                rows: Extent::Numbers(rows),
                columns: Extent::Numbers(columns),
                depth: Extent::Numbers(depth),
                sum: true,
            }),
            Self::Factorisation { rows } => Tasks::Cholesky(Cholesky {
                rows: Extent::Numbers(rows),
                dependencies: true,
            }),
        }
    }
}

impl DenseTask {
    /// The tasks.
    pub fn set(&self) -> TaskSet {
        TaskSet {
            tasks: self.operation.tasks(),
            tile: self.tile,
            precision: self.precision,
            order: self.order,
            body: Body::Real,
            seed: self.seed,
        }
    }

    /// The graph with these inputs.
    ///
    /// # Errors
    /// Those of [`TaskSet::tiled`].
    pub fn tiled(
        &self,
        inputs: &Arc<Inputs>,
        stop: &AtomicBool,
    ) -> Result<TiledGraph, TaskSetError> {
        let precision = self.precision;
        let contents = |tile: &Tile| inputs.contents(tile, tile.matrix.element(precision));
        self.set().tiled(&contents, stop)
    }
}
