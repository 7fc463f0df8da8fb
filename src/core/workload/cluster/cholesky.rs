//! The Cholesky factorisation `A = L L^T` of a symmetric positive definite matrix, of which only
//! the lower triangle is read, in tiles and in place, for one machine by itself.
//!
//! Source: the tiled factorisation of Agullo et al. (SAAHPC 2010).

use std::convert::Infallible;
use std::ops::Range;

use super::product::{are_aligned, length, numbers_of, parts};
use super::program::Program;
use super::tiled::TileProgram;
use super::{Contents, DenseSizes, Fill, Operation, Place, Placed, Placement, tiles};
use crate::cluster::space::Block;
use crate::codelet::Precision;
use crate::codelet::tile::{GemmTile, PotrfTile, SyrkTile, TrsmTile};
use crate::verify::product::{GROUPS, Matrix, MatrixPart, Product as Sums};
use crate::verify::{Checked, Rounding, numbers};
use crate::workload::task_set::Operation as TileOperation;

/// Numbers of a matrix that are compared at once.
const READ: u64 = 1 << 22;

/// A matrix that is factored.
#[derive(Clone)]
pub struct Cholesky {
    /// Its rows.
    pub size: u64,
    pub precision: Precision,
    pub matrix: Fill,
}

impl Cholesky {
    /// The operation, on one machine.
    pub fn operation(self) -> Operation {
        let (size, name) = (self.size, self.precision.name());
        // Operations are as LAPACK counts them.
        let n = size as f64;
        Operation {
            title: format!("{size} x {size} {name}"),
            fp64: self.precision == Precision::F64,
            bytes: u128::from(size) * u128::from(size) * u128::from(self.precision.bytes()),
            dense: Some(DenseSizes {
                rows: size,
                columns: size,
                depth: None,
                precision: name,
                flops: n * n * n / 3.0 + n * n / 2.0 + n / 6.0,
            }),
            hosts_only: false,
            outputs: vec![0],
            make: Box::new(move |place, tile| {
                let suits = || match place {
                    Place::Alone(lone) => tiles::of_factorisation(&self, lone),
                    Place::Nodes(fit) => fit.factors(size, n.powi(3) / 3.0),
                };
                let tile = tile.unwrap_or_else(suits).min(size);
                Placed::in_tiles(self.tasks(tile), || self.in_tiles(tile), tile)
            }),
        }
    }

    /// Tasks in tiles of so many rows and columns: one for each triple of tiles `i >= j >= k`.
    pub fn tasks(&self, tile: u64) -> u64 {
        let n = u128::from(self.size.div_ceil(tile));
        (n * (n + 1) * (n + 2) / 6).try_into().unwrap_or(u64::MAX)
    }

    fn in_tiles(&self, tile: u64) -> Program {
        let (size, precision) = (self.size, self.precision);
        let mut made = TileProgram::new("cholesky");
        let contents = Contents::placed(Placement::Rows, self.matrix.clone());
        let a = made.matrix((size, size), precision.into(), Some(contents));
        let is_aligned = are_aligned(precision.into(), &[size, tile]);
        let ranges: Vec<Range<u64>> = parts(size, tile).collect();
        let at = |i: usize, j: usize| (a, Block::new(ranges[i].clone(), ranges[j].clone()));
        let rows = |i: usize| length(&ranges[i]);
        let (alpha, beta) = (-1.0, 1.0);
        let n = ranges.len();
        for k in 0..n {
            let columns = rows(k);
            let potrf = PotrfTile {
                precision,
                rows: columns,
            };
            let (name, potrf) = (format!("potrf.{k}"), TileOperation::Potrf(potrf));
            made.task(name, potrf, Vec::new(), at(k, k), true);
            for i in k + 1..n {
                let trsm = TrsmTile {
                    precision,
                    rows: rows(i),
                    columns,
                };
                let (name, trsm) = (format!("trsm.{i}.{k}"), TileOperation::Trsm(trsm));
                made.task(name, trsm, vec![at(k, k)], at(i, k), true);
            }
            for i in k + 1..n {
                for j in k + 1..i {
                    let gemm = GemmTile::new(precision, rows(i), rows(j), columns);
                    let gemm = gemm.transposed().factors(alpha, beta);
                    let gemm = if is_aligned { gemm } else { gemm.unaligned() };
                    let (name, gemm) = (format!("gemm.{i}.{j}.{k}"), TileOperation::Gemm(gemm));
                    made.task(name, gemm, vec![at(i, k), at(j, k)], at(i, j), true);
                }
                let syrk = TileOperation::Syrk(SyrkTile {
                    precision,
                    rows: rows(i),
                    depth: columns,
                    alpha,
                    beta,
                    aligned: is_aligned,
                });
                let name = format!("syrk.{i}.{k}");
                made.task(name, syrk, vec![at(i, k)], at(i, i), true);
            }
        }
        let mut program = made.program;
        program.set_triangle();
        let of = self.clone();
        program.set_refusal(a, move |bytes| of.no_factor(bytes));
        let of = self.clone();
        program.set_compare_whole(vec![a], move |spaces, seed| of.compare(spaces[0], seed));
        program
    }

    /// The numbers of a part of the given matrix.
    fn given(&self, part: &Block) -> Vec<f64> {
        let mut bytes = vec![0; (self.precision.bytes() * part.elements()) as usize];
        Contents::again(&self.matrix, part, &mut bytes);
        numbers(&bytes, self.precision)
    }

    /// Why the matrix has no factor, if so, by what came of it. Rows and columns are counted
    /// from 0.
    fn no_factor(&self, l: &[u8]) -> Option<String> {
        let pivot = |row: &u64| {
            let diagonal = Block::new(*row..row + 1, *row..row + 1);
            let root = numbers_of(l, self.size, &diagonal, self.precision)[0];
            // Not a number where the pivot was negative.
            !(root.is_finite() && root > 0.0)
        };
        let row = (0..self.size).find(pivot)?;
        let not_finite = (0..self.size).find_map(|row| {
            let numbers = self.given(&Block::new(row..row + 1, 0..row + 1));
            let column = numbers.iter().position(|number| !number.is_finite())?;
            Some((row, column, numbers[column]))
        });
        Some(match not_finite {
            Some((row, column, number)) => format!(
                "the matrix has {number} in row {row} and column {column} (counted from 0), and \
                 so no factor; give finite numbers on its diagonal and below"
            ),
            None => format!(
                "the matrix is not positive definite: the pivot of row {row} (counted from 0) is \
                 not positive; give a positive definite one, or f64 instead of f32"
            ),
        })
    }

    /// Compares the product of L and its transpose with the matrix.
    fn compare(&self, l: &[u8], seed: u64) -> Checked {
        let size = self.size;
        let group = size.div_ceil(GROUPS as u64);
        let product = Sums {
            rows: size,
            columns: size,
            depth: size,
            group,
            rounding: Rounding::from(self.precision),
            // Not that of generated matrices.
            seed: seed.wrapping_add(1 << 32),
        };
        let of_factor = |rows: &Range<u64>| {
            let part = Block::new(rows.clone(), 0..size);
            let mut numbers = numbers_of(l, size, &part, self.precision);
            let lines = numbers.chunks_exact_mut(size as usize);
            for (row, line) in rows.clone().zip(lines) {
                line[row as usize + 1..].fill(0.0);
            }
            part_of(part, numbers)
        };
        let of_matrix = |part: Block| {
            let numbers = self.given(&part);
            part_of(part, numbers)
        };
        // Of rows that are columns of one group.
        let lines = (READ / size).clamp(1, group);
        let bands = parts(size, group).flat_map(|group| {
            let bands = parts(group.end - group.start, lines);
            bands.map(move |band| group.start + band.start..group.start + band.end)
        });
        let mut source = |matrix, act: &mut dyn FnMut(MatrixPart)| {
            for rows in bands.clone() {
                match matrix {
                    Matrix::A => act(of_factor(&rows)),
                    Matrix::B => act(of_factor(&rows).transposed()),
                    Matrix::C => {
                        for columns in parts(rows.start, group) {
                            let part = of_matrix(Block::new(rows.clone(), columns));
                            act(part.transposed());
                            act(part);
                        }
                        act(of_matrix(Block::new(rows.clone(), rows)).mirrored());
                    }
                }
            }
            Ok::<bool, Infallible>(true)
        };
        let Ok(Some(verification)) = product.verify(&mut source) else {
            unreachable!("nothing interrupts it");
        };
        verification.checked(size * size)
    }
}

fn part_of(part: Block, numbers: Vec<f64>) -> MatrixPart {
    MatrixPart {
        rows: part.rows,
        columns: part.columns,
        numbers,
    }
}
