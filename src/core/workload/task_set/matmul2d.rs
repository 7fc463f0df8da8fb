//! A product `C = A B` by block rows of A and block columns of B: the paper's main
//! workload (section V.A) and, with few of its tasks, its sparse one (section V.G).

use super::builder::Builder;
use super::error::{TaskSetError, within};
use super::numbers::Numbers;
use super::operation::Operation;
use super::{DEPTH, MOST_ROWS};
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
