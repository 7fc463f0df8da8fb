//! Products of matrices: by block rows and block columns ([`Matmul2d`]), and by square tiles
//! ([`Matmul3d`]).

use super::builder::Builder;
use super::operation::{Numbers, Operation};
use super::{DEPTH, MOST_ROWS, TaskSetError, within};
use crate::codelet::tile::GemmTile;
use crate::graph::{Argument, DatumId};

/// A product of `n` block rows and `n` block columns. Task `(i, j)` multiplies block
/// row i of A, `tile x depth`, by block column j of B, `depth x tile`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matmul2d {
    /// Block rows of A, and block columns of B.
    pub n: u32,
    /// Columns of A, at most [`MOST_ROWS`].
    pub depth: u32,
    /// Whether tasks write their tile of C, which the host then wants. The paper's
    /// tasks have inputs alone.
    pub outputs: bool,
    /// The part of the tasks that is removed at random, 0 to less than 1. Data that
    /// no task needs are removed with them.
    pub removed: f64,
}

impl Matmul2d {
    /// The paper's product: all tasks, without outputs.
    pub fn paper(n: u32) -> Self {
        Self {
            n,
            depth: DEPTH,
            outputs: false,
            removed: 0.0,
        }
    }

    /// The paper's sparse product: 98 % of the tasks are removed.
    pub fn sparse(n: u32) -> Self {
        Self {
            removed: 0.98,
            ..Self::paper(n)
        }
    }

    /// The tasks that are left, at least one.
    pub(super) fn count(&self) -> u64 {
        let all = self.all();
        let left = (all as f64 * (1.0 - self.removed)).round() as u64;
        left.clamp(all.min(1), all)
    }

    fn all(&self) -> u64 {
        u64::from(self.n) * u64::from(self.n)
    }

    pub(super) fn check(&self) -> Result<Option<&'static str>, TaskSetError> {
        within("columns of A", self.depth, MOST_ROWS)?;
        if !(0.0..1.0).contains(&self.removed) {
            return Err(TaskSetError::Removed(self.removed));
        }
        let remedy = "let the tasks of the 2-D product write their tiles";
        Ok((!self.outputs).then_some(remedy))
    }

    pub(super) fn add(&self, builder: &mut Builder) {
        let (n, tile, depth) = (u64::from(self.n), builder.set.tile, self.depth);
        let left = match self.count() {
            count if count == self.all() => None,
            count => Some(builder.choose(self.all(), count)),
        };
        let gemm = GemmTile::new(builder.set.precision, tile, tile, depth);
        let factors = builder.set.precision.factors();
        let mut a: Vec<Option<DatumId>> = vec![None; n as usize];
        let mut b = a.clone();
        for at in 0..self.count() {
            let task = left.as_ref().map_or(at, |left| left[at as usize]);
            let (i, j) = (task / n, task % n);
            let a = *a[i as usize].get_or_insert_with(|| {
                builder.given(format!("A.{i}"), (tile, depth), factors, Numbers::Uniform)
            });
            let b = *b[j as usize].get_or_insert_with(|| {
                builder.given(format!("B.{j}"), (depth, tile), factors, Numbers::Uniform)
            });
            let mut arguments = vec![Argument::Input(a), Argument::Input(b)];
            if self.outputs {
                let c = builder.made(format!("C.{i}.{j}"), (tile, tile), true);
                arguments.push(Argument::FullOutput(c));
            }
            builder.task(format!("gemm.{i}.{j}"), Operation::Gemm(gemm), arguments);
        }
    }
}

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
