//! A product `C = A B` by square tiles (the paper's sections V.A and V.E).

use super::builder::Builder;
use super::error::TaskSetError;
use super::numbers::Numbers;
use super::operation::Operation;
use crate::codelet::tile::GemmTile;
use crate::graph::Argument;

/// A product of matrices by tiles. Task `(i, j, k)` multiplies tile `(i, k)` of A by
/// tile `(k, j)` of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matmul3d {
    /// Rows of tiles of A and C.
    pub rows: u32,
    /// Columns of tiles of B and C.
    pub columns: u32,
    /// Columns of tiles of A, rows of B.
    pub depth: u32,
    /// Whether the tasks of a tile of C add to it in place, one after the other; the
    /// first one writes it, and the host wants the sum. The paper's tasks are
    /// independent: they read the tile of C as a third input.
    pub sum: bool,
}

impl Matmul3d {
    /// The paper's independent tasks on matrices of `n x n` tiles.
    pub fn paper(n: u32) -> Self {
        Self {
            rows: n,
            columns: n,
            depth: n,
            sum: false,
        }
    }

    pub(super) fn count(&self) -> u64 {
        let tiles = [self.rows, self.columns, self.depth].map(u64::from);
        tiles.into_iter().fold(1, u64::saturating_mul)
    }

    pub(super) fn check(&self) -> Result<Option<&'static str>, TaskSetError> {
        Ok((!self.sum).then_some("let the tasks of the 3-D product add up their tiles"))
    }

    pub(super) fn add(&self, builder: &mut Builder) {
        let (tile, precision) = (builder.set.tile, builder.set.precision);
        let (factors, size) = (precision.factors(), (tile, tile));
        let mut given = |matrix: &str, rows, columns, element| -> Vec<_> {
            let tile = |(i, j)| (format!("{matrix}.{i}.{j}"), size);
            pairs(rows, columns)
                .map(tile)
                .map(|(name, size)| builder.given(name, size, element, Numbers::Uniform))
                .collect()
        };
        let a = given("A", self.rows, self.depth, factors);
        let b = given("B", self.depth, self.columns, factors);
        let c = match self.sum {
            true => Vec::new(),
            false => given("C", self.rows, self.columns, precision.sums().into()),
        };
        let (columns, depth) = (self.columns, self.depth);
        let at = |i: u32, j: u32, columns: u32| i as usize * columns as usize + j as usize;
        let first = GemmTile::new(precision, tile, tile, tile);
        let next = first.factors(1.0, 1.0);
        for (i, j) in pairs(self.rows, columns) {
            let mut sum = None;
            for k in 0..depth {
                let last = k + 1 == depth;
                let name = || format!("C.{i}.{j}.{k}");
                let (to_c, gemm) = match (self.sum, sum) {
                    (false, _) => (Argument::Input(c[at(i, j, columns)]), next),
                    (true, None) => {
                        let to = builder.made(name(), size, last);
                        sum = Some(to);
                        (Argument::FullOutput(to), first)
                    }
                    (true, Some(from)) => {
                        let to = builder.version(name(), from, last);
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
        }
    }
}

/// All pairs of numbers below these, by rows.
fn pairs(rows: u32, columns: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..rows).flat_map(move |i| (0..columns).map(move |j| (i, j)))
}
