//! A Cholesky factorisation `A = L L^T` of the lower tiles of a symmetric matrix
//! (Agullo et al., SAAHPC 2010; the paper's sections V.A and V.F).

use super::builder::Builder;
use super::error::TaskSetError;
use super::extent::Extent;
use super::numbers::Numbers;
use super::operation::Operation;
use super::tiled::{Matrix, Tile};
use crate::codelet::tile::{GemmTile, PotrfTile, SyrkTile, TrsmTile};
use crate::graph::{Argument, DatumId};

/// A factorisation of a square matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cholesky {
    /// Rows and columns of the matrix.
    pub rows: Extent,
    /// Whether tasks work in the place of their last tile and wait for one another;
    /// the host wants the factor. The paper's tasks are independent: they read their
    /// tiles.
    pub dependencies: bool,
}

/// The tiles while tasks are added.
struct Tiles {
    dependencies: bool,
    /// By row and column: the place, and the present version.
    present: Vec<(Tile, DatumId)>,
}

impl Cholesky {
    /// The paper's independent tasks on `n x n` tiles.
    pub fn paper(n: u32) -> Self {
        Self {
            rows: Extent::Tiles(n),
            dependencies: false,
        }
    }

    /// One for each triple of tiles `i >= j >= k`.
    pub(super) fn count(&self, tile: u32) -> u64 {
        let n = u128::from(self.rows.tiles(tile));
        (n * (n + 1) * (n + 2) / 6).try_into().unwrap_or(u64::MAX)
    }

    pub(super) fn check(&self) -> Result<Option<&'static str>, TaskSetError> {
        let remedy = "let the tasks of the Cholesky factorisation work in place";
        Ok((!self.dependencies).then_some(remedy))
    }

    pub(super) fn add(&self, builder: &mut Builder) {
        let (tile, precision) = (builder.set.tile, builder.set.precision.sums());
        let n = self.rows.tiles(tile);
        let (alpha, beta) = (-1.0, 1.0);
        let mut tiles = Tiles::new(self, builder);
        for k in 0..n {
            let (columns, _) = tiles.size((k, k));
            let potrf = Operation::Potrf(PotrfTile {
                precision,
                rows: columns,
            });
            tiles.task(builder, format!("potrf.{k}"), potrf, &[], (k, k), true);
            for i in k + 1..n {
                let name = format!("trsm.{i}.{k}");
                let trsm = Operation::Trsm(TrsmTile {
                    precision,
                    rows: tiles.size((i, k)).0,
                    columns,
                });
                tiles.task(builder, name, trsm, &[(k, k)], (i, k), true);
            }
            for i in k + 1..n {
                let (rows, _) = tiles.size((i, k));
                for j in k + 1..i {
                    let name = format!("gemm.{i}.{j}.{k}");
                    let inputs = [(i, k), (j, k)];
                    let (_, across) = tiles.size((i, j));
                    let gemm = GemmTile::new(precision, rows, across, columns).transposed();
                    let gemm = Operation::Gemm(gemm.factors(alpha, beta));
                    tiles.task(builder, name, gemm, &inputs, (i, j), false);
                }
                let name = format!("syrk.{i}.{k}");
                let syrk = Operation::Syrk(SyrkTile {
                    precision,
                    rows,
                    depth: columns,
                    alpha,
                    beta,
                });
                tiles.task(builder, name, syrk, &[(i, k)], (i, i), false);
            }
        }
        if self.dependencies {
            for (tile, datum) in tiles.present {
                let matrix = Matrix::L;
                builder.result_tile(Tile { matrix, ..tile }, datum);
            }
        }
    }
}

impl Tiles {
    /// The lower tiles of a matrix that is positive definite.
    fn new(of: &Cholesky, builder: &mut Builder) -> Self {
        let tile = builder.set.tile;
        // More than the sum of any row's other numbers.
        let diagonal = of.rows.numbers(tile) as f64;
        let mut present = Vec::new();
        for i in 0..of.rows.tiles(tile) {
            for j in 0..=i {
                let numbers = match i == j {
                    true => Numbers::Diagonal(diagonal),
                    false => Numbers::Uniform,
                };
                let place = Tile {
                    matrix: Matrix::A,
                    place: (i, j),
                    rows: of.rows.part(i, tile),
                    columns: of.rows.part(j, tile),
                };
                let datum = builder.given_tile(place.clone(), numbers);
                present.push((place, datum));
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

    /// Rows and columns of a tile.
    fn size(&self, place: (u32, u32)) -> (u32, u32) {
        self.present[Self::at(place)].0.size()
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
        let inputs = inputs.iter().map(|tile| self.present[Self::at(*tile)].1);
        let mut arguments: Vec<Argument> = inputs.map(Argument::Input).collect();
        let (_, present) = &mut self.present[Self::at(place)];
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
