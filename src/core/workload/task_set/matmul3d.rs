//! A product `C = A B` by tiles, which are square but at the edges (the paper's sections V.A and V.E).

use super::builder::Builder;
use super::error::TaskSetError;
use super::extent::Extent;
use super::numbers::Numbers;
use super::operation::Operation;
use super::tiled::{Matrix, Tile};
use crate::codelet::tile::GemmTile;
use crate::graph::Argument;

/// A product of matrices by tiles. Task `(i, j, k)` multiplies tile `(i, k)` of A by
/// tile `(k, j)` of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matmul3d {
    /// Rows of A and C.
    pub rows: Extent,
    /// Columns of B and C.
    pub columns: Extent,
    /// Columns of A, rows of B.
    pub depth: Extent,
    /// Whether the tasks of a tile of C add to it in place, one after the other; the
    /// first one writes it, and the host wants the sum. The paper's tasks are
    /// independent: they read the tile of C as a third input.
    pub sum: bool,
}

impl Matmul3d {
    /// The paper's independent tasks on matrices of `n x n` tiles.
    pub fn paper(n: u32) -> Self {
        let n = Extent::Tiles(n);
        Self {
            rows: n,
            columns: n,
            depth: n,
            sum: false,
        }
    }

    pub(super) fn count(&self, tile: u32) -> u64 {
        let tiles = [self.rows, self.columns, self.depth].map(|of| u64::from(of.tiles(tile)));
        tiles.into_iter().fold(1, u64::saturating_mul)
    }

    pub(super) fn check(&self) -> Result<Option<&'static str>, TaskSetError> {
        Ok((!self.sum).then_some("let the tasks of the 3-D product add up their tiles"))
    }

    pub(super) fn add(&self, builder: &mut Builder) {
        let (tile, precision) = (builder.set.tile, builder.set.precision);
        let part = |matrix, (rows, columns): (Extent, Extent), (i, j)| Tile {
            matrix,
            place: (i, j),
            rows: rows.part(i, tile),
            columns: columns.part(j, tile),
        };
        let mut given = |matrix, size: (Extent, Extent)| -> Vec<_> {
            pairs(size.0.tiles(tile), size.1.tiles(tile))
                .map(|place| builder.given_tile(part(matrix, size, place), Numbers::Uniform))
                .collect()
        };
        let a = given(Matrix::A, (self.rows, self.depth));
        let b = given(Matrix::B, (self.depth, self.columns));
        let c = match self.sum {
            true => Vec::new(),
            false => given(Matrix::C, (self.rows, self.columns)),
        };
        let (columns, depth) = (self.columns.tiles(tile), self.depth.tiles(tile));
        let at = |i: u32, j: u32, columns: u32| i as usize * columns as usize + j as usize;
        for (i, j) in pairs(self.rows.tiles(tile), columns) {
            let of_c = part(Matrix::C, (self.rows, self.columns), (i, j));
            let size = of_c.size();
            let mut sum = None;
            for k in 0..depth {
                let last = k + 1 == depth;
                let (_, summed) = part(Matrix::A, (self.rows, self.depth), (i, k)).size();
                let first = GemmTile::new(precision, size.0, size.1, summed);
                let next = first.factors(1.0, 1.0);
                let (to_c, gemm) = match (self.sum, sum) {
                    (false, _) => (Argument::Input(c[at(i, j, columns)]), next),
                    (true, None) => {
                        let to = builder.made(format!("C.{i}.{j}.{k}"), size, last);
                        sum = Some(to);
                        (Argument::FullOutput(to), first)
                    }
                    (true, Some(from)) => {
                        let to = builder.version(format!("C.{i}.{j}.{k}"), from, last);
                        sum = Some(to);
                        (Argument::InOut { from, to }, next)
                    }
                };
                let inputs = [a[at(i, k, depth)], b[at(k, j, columns)]].map(Argument::Input);
                builder.task(
                    format!("gemm.{i}.{j}.{k}"),
                    Operation::Gemm(gemm),
                    inputs.into_iter().chain([to_c]).collect(),
                );
            }
            if let Some(sum) = sum {
                builder.result_tile(of_c, sum);
            }
        }
    }
}

/// All pairs of numbers below these, by rows.
fn pairs(rows: u32, columns: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..rows).flat_map(move |i| (0..columns).map(move |j| (i, j)))
}
