//! A product `C = A B` by square tiles (the paper's sections V.A and V.E).

use super::builder::Builder;
use super::error::TaskSetError;
use super::numbers::Numbers;
use super::operation::Operation;
use crate::codelet::tile::GemmTile;
use crate::graph::Argument;

/// A product of matrices of `n x n` tiles. Task `(i, j, k)` multiplies tile `(i, k)`
/// of A by tile `(k, j)` of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matmul3d {
    /// Tiles along each matrix.
    pub n: u32,
    /// Whether the tasks of a tile of C add to it in place, one after the other; the
    /// first one writes it, and the host wants the sum. The paper's tasks are
    /// independent: they read the tile of C as a third input.
    pub sum: bool,
}

impl Matmul3d {
    /// The paper's independent tasks.
    pub fn paper(n: u32) -> Self {
        Self { n, sum: false }
    }

    pub(super) fn count(&self) -> u64 {
        u64::from(self.n).saturating_pow(3)
    }

    pub(super) fn check(&self) -> Result<Option<&'static str>, TaskSetError> {
        Ok((!self.sum).then_some("let the tasks of the 3-D product add up their tiles"))
    }

    pub(super) fn add(&self, builder: &mut Builder) {
        let (n, tile) = (self.n, builder.set.tile);
        let size = (tile, tile);
        let mut matrix = |name: &str| -> Vec<_> {
            (0..n)
                .flat_map(|i| (0..n).map(move |j| (i, j)))
                .map(|(i, j)| builder.given(format!("{name}.{i}.{j}"), size, Numbers::Uniform))
                .collect()
        };
        let (a, b) = (matrix("A"), matrix("B"));
        let c = if self.sum { Vec::new() } else { matrix("C") };
        let first = GemmTile::new(builder.set.precision, tile, tile, tile);
        let next = first.factors(1.0, 1.0);
        let at = |i: u32, j: u32| (i * n + j) as usize;
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let mut sum = None;
            for k in 0..n {
                let last = k + 1 == n;
                let (of_c, gemm) = match (self.sum, sum) {
                    (false, _) => (Argument::Input(c[at(i, j)]), next),
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
                let inputs = [a[at(i, k)], b[at(k, j)]].map(Argument::Input);
                builder.task(
                    format!("gemm.{i}.{j}.{k}"),
                    Operation::Gemm(gemm),
                    inputs.into_iter().chain([of_c]).collect(),
                );
            }
        }
    }
}
