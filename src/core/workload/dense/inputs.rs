//! The given matrices: generated, or of files or arrays.

use std::sync::{Arc, OnceLock};

use super::Operation;
use crate::cluster::space::Block;
use crate::codelet::Element;
use crate::graph::Contents;
use crate::parallel;
use crate::random::uniform;
use crate::workload::cluster::{Fill, FillError};
use crate::workload::task_set::{Matrix, Tile};

/// Numbers of a tile that one thread makes at a time: 0.2 ms of work or more.
const PIECE: usize = 1 << 16;

/// The given matrices of an operation.
///
/// Generated numbers are uniform from -1 to 1, rounded as they are stored, and a function of the
/// seed, the matrix and the position alone, whatever the tiles are. A generated matrix for a factorisation is
/// symmetric, and `2 sqrt(n) + 1` is added on its diagonal. By Wigner's semicircle law the
/// least eigenvalue of the other numbers is about `-1.16 sqrt(n)`, so the matrix is
/// positive definite, and its factor depends on all updates. A diagonal that exceeds the sum
/// of each row would make it definite, too, but the updates would vanish beside it, and no
/// check would find one that is missing.
pub struct Inputs {
    operation: Operation,
    seed: u64,
    a: Option<Fill>,
    b: Option<Fill>,
    /// The first error of reading.
    error: OnceLock<FillError>,
}

impl Inputs {
    /// Generated matrices.
    pub fn generated(operation: Operation, seed: u64) -> Self {
        Self {
            operation,
            seed,
            a: None,
            b: None,
            error: OnceLock::new(),
        }
    }

    /// Matrices of the user's: A, and B for a product. They have the operation's sizes, and
    /// elements as its precision stores them.
    pub fn given(operation: Operation, a: Fill, b: Option<Fill>) -> Self {
        Self {
            a: Some(a),
            b,
            ..Self::generated(operation, 0)
        }
    }

    /// The contents of a tile. If it cannot be read, it becomes zeros, and
    /// [`Inputs::error`] says so.
    pub(super) fn contents(self: &Arc<Self>, tile: &Tile, element: Element) -> Contents {
        let (inputs, tile) = (Arc::clone(self), tile.clone());
        Contents::filled(move |bytes| inputs.fill(&tile, element, bytes))
    }

    /// Why a matrix could not be read, if so.
    pub fn error(&self) -> Option<&FillError> {
        self.error.get()
    }

    fn fill(&self, tile: &Tile, element: Element, to: &mut [u8]) {
        let given = match tile.matrix {
            Matrix::A => &self.a,
            _ => &self.b,
        };
        let Some(given) = given else {
            return self.generate(tile, element, to);
        };
        let block = Block::new(tile.rows.clone(), tile.columns.clone());
        if let Err(error) = given(&block, to) {
            to.fill(0);
            // Later errors have the same cause.
            let _ = self.error.set(error);
        }
    }

    fn generate(&self, tile: &Tile, element: Element, to: &mut [u8]) {
        let width = (tile.columns.end - tile.columns.start) as usize;
        let rows = PIECE.div_ceil(width.max(1));
        let bytes = rows * width * element.bytes() as usize;
        parallel::pieces(to, bytes, |piece, to| {
            let first = tile.rows.start + (piece * rows) as u64;
            self.generate_rows(tile, first, element, to);
        });
    }

    /// Generates the rows of a tile from `first` on.
    fn generate_rows(&self, tile: &Tile, first: u64, element: Element, to: &mut [u8]) {
        let bytes = element.bytes() as usize;
        let width = (tile.columns.end - tile.columns.start) as usize;
        for (row, to) in (first..).zip(to.chunks_exact_mut(width * bytes)) {
            let columns = tile.columns.clone();
            let numbers = columns.map(|column| self.number(tile.matrix, row, column));
            element.store(numbers, to);
        }
    }

    /// The generated number at a position.
    fn number(&self, matrix: Matrix, row: u64, column: u64) -> f64 {
        let random = |seed, row: u64, columns: u32, column| {
            2.0 * uniform(seed, row * u64::from(columns) + column) - 1.0
        };
        match (self.operation, matrix) {
            (Operation::Product { depth, .. }, Matrix::A) => random(self.seed, row, depth, column),
            // Another seed, far from those that users choose.
            (Operation::Product { columns, .. }, _) => random(!self.seed, row, columns, column),
            (Operation::Factorisation { rows }, _) => {
                let number = random(self.seed, row.max(column), rows, row.min(column));
                match row == column {
                    true => number + 2.0 * f64::from(rows).sqrt() + 1.0,
                    false => number,
                }
            }
        }
    }
}
