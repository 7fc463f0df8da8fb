//! A Cholesky factorisation `A = L L^T` of the lower tiles of a symmetric matrix
//! (Agullo et al., SAAHPC 2010; the paper's sections V.A and V.F).

use super::TaskSetError;
use super::builder::Builder;
use super::operation::{Numbers, Operation};
use crate::codelet::tile::{GemmTile, PotrfTile, SyrkTile, TrsmTile};
use crate::graph::{Argument, DatumId};

/// A factorisation of a square matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cholesky {
    /// Rows of tiles of the matrix.
    pub rows: u32,
    /// Whether tasks work in the place of their last tile and wait for one another;
    /// the host wants the factor. The paper's tasks are independent: they read their
    /// tiles.
    pub dependencies: bool,
}

/// The tiles while tasks are added.
struct Tiles {
    dependencies: bool,
    /// By row and column: the present version.
    present: Vec<DatumId>,
}

impl Cholesky {
    /// The paper's independent tasks on `n x n` tiles.
    pub fn paper(n: u32) -> Self {
        Self {
            rows: n,
            dependencies: false,
        }
    }

    /// One for each triple of tiles `i >= j >= k`.
    pub(super) fn count(&self) -> u64 {
        let n = u128::from(self.rows);
        (n * (n + 1) * (n + 2) / 6).try_into().unwrap_or(u64::MAX)
    }

    pub(super) fn check(&self) -> Result<Option<&'static str>, TaskSetError> {
        let remedy = "let the tasks of the Cholesky factorisation work in place";
        Ok((!self.dependencies).then_some(remedy))
    }

    pub(super) fn add(&self, builder: &mut Builder) {
        let (rows, precision) = (builder.set.tile, builder.set.precision.sums());
        let (alpha, beta) = (-1.0, 1.0);
        let potrf = Operation::Potrf(PotrfTile { precision, rows });
        let trsm = Operation::Trsm(TrsmTile {
            precision,
            rows,
            columns: rows,
        });
        let gemm = GemmTile::new(precision, rows, rows, rows).transposed();
        let gemm = Operation::Gemm(gemm.factors(alpha, beta));
        let syrk = Operation::Syrk(SyrkTile {
            precision,
            rows,
            depth: rows,
            alpha,
            beta,
            aligned: true,
        });
        let mut tiles = Tiles::new(self, builder);
        for k in 0..self.rows {
            tiles.task(builder, format!("potrf.{k}"), potrf, &[], (k, k), true);
            for i in k + 1..self.rows {
                tiles.task(
                    builder,
                    format!("trsm.{i}.{k}"),
                    trsm,
                    &[(k, k)],
                    (i, k),
                    true,
                );
            }
            for i in k + 1..self.rows {
                for j in k + 1..i {
                    let (name, inputs) = (format!("gemm.{i}.{j}.{k}"), [(i, k), (j, k)]);
                    tiles.task(builder, name, gemm, &inputs, (i, j), false);
                }
                let name = format!("syrk.{i}.{k}");
                tiles.task(builder, name, syrk, &[(i, k)], (i, i), false);
            }
        }
    }
}

impl Tiles {
    /// The lower tiles of a matrix that is positive definite.
    fn new(of: &Cholesky, builder: &mut Builder) -> Self {
        let (tile, element) = (builder.set.tile, builder.set.precision.factors());
        // More than the sum of any row's other numbers.
        let diagonal = f64::from(of.rows) * f64::from(tile);
        let mut present = Vec::new();
        for i in 0..of.rows {
            for j in 0..=i {
                let numbers = match i == j {
                    true => Numbers::Diagonal(diagonal),
                    false => Numbers::Uniform,
                };
                let name = format!("A.{i}.{j}");
                present.push(builder.given(name, (tile, tile), element, numbers));
            }
        }
        Self {
            dependencies: of.dependencies,
            present,
        }
    }

    /// The place of a tile in `present`: row i follows rows of 1 to i tiles.
    fn at((i, j): (u32, u32)) -> usize {
        let (i, j) = (i as usize, j as usize);
        i * (i + 1) / 2 + j
    }

    /// Adds a task with these inputs and one tile in place. The tile is final after
    /// the `last` task.
    fn task(
        &mut self,
        builder: &mut Builder,
        name: String,
        operation: Operation,
        inputs: &[(u32, u32)],
        place: (u32, u32),
        last: bool,
    ) {
        let inputs = inputs.iter().map(|tile| self.present[Self::at(*tile)]);
        let mut arguments: Vec<Argument> = inputs.map(Argument::Input).collect();
        let present = &mut self.present[Self::at(place)];
        let from = *present;
        arguments.push(match self.dependencies {
            false => Argument::Input(from),
            true => {
                let to = builder.version(format!("{name}.to"), from, last);
                *present = to;
                Argument::InOut { from, to }
            }
        });
        builder.task(name, operation, arguments);
    }
}
