//! A graph on tiles of matrices, with the place of each tile.

use std::ops::Range;

use crate::codelet::{Element, ProductPrecision};
use crate::graph::{DatumId, TaskGraph};

/// The matrix that a tile belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// The first operand of a product, or the matrix that is factored.
    A,
    /// The second operand of a product.
    B,
    /// The product.
    C,
    /// The Cholesky factor.
    L,
}

impl Matrix {
    /// How its numbers are stored in a set of tasks of this precision.
    pub fn element(self, precision: ProductPrecision) -> Element {
        match self {
            Self::A | Self::B => precision.factors(),
            Self::C | Self::L => precision.sums().into(),
        }
    }
}

/// A tile: its place among the matrix's tiles, and its rows and columns there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    pub matrix: Matrix,
    /// Row and column of tiles.
    pub place: (u32, u32),
    pub rows: Range<u64>,
    pub columns: Range<u64>,
}

impl Tile {
    /// Rows and columns; a task set's tiles have at most [`super::MOST_ROWS`].
    pub(super) fn size(&self) -> (u32, u32) {
        let length = |range: &Range<u64>| (range.end - range.start) as u32;
        (length(&self.rows), length(&self.columns))
    }
}

/// A graph on tiles.
#[derive(Clone, Debug)]
pub struct TiledGraph {
    pub graph: TaskGraph,
    /// The tiles that the host gives and wants, by rows of their matrix.
    pub tiles: Vec<(Tile, DatumId)>,
}

impl TiledGraph {
    /// The tiles of one matrix, by rows.
    pub fn of(&self, matrix: Matrix) -> impl Iterator<Item = &(Tile, DatumId)> {
        let tiles = self.tiles.iter();
        tiles.filter(move |(tile, _)| tile.matrix == matrix)
    }
}
