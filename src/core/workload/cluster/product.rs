//! A product of dense matrices, `C = A B`, of any precision: in tiles, of which no device needs
//! to hold a whole matrix, for one machine by itself; of singles also in whole blocks of C, for nodes
//! (Unicorn, section V).

use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::program::{CodeletTask, Program, Uses};
use super::tiled::TileProgram;
use super::tiles::{self, Tiles};
use super::{Contents, DenseSizes, Fill, Operation, OperationError, Place, Placed, Placement};
use crate::cluster::space::{Block, Extent};
use crate::cluster::task::{SubtaskLaunch, SubtaskValue};
use crate::codelet::gemm::Gemm;
use crate::codelet::tile::GemmTile;
use crate::codelet::{Element, Precision, ProductPrecision};
use crate::verify::product::{GROUPS, Matrix, MatrixPart, Product as Sums};
use crate::verify::{Checked, Rounding, numbers};
use crate::workload::task_set::Operation as TileOperation;

/// Numbers of a matrix that are compared at once.
const READ: u64 = 1 << 22;

/// Two given matrices. A is `rows x depth`, B `depth x columns`; their elements are as the
/// precision stores factors.
#[derive(Clone)]
pub struct Product {
    pub rows: u64,
    pub columns: u64,
    pub depth: u64,
    pub precision: ProductPrecision,
    pub a: Fill,
    pub b: Fill,
}

impl Product {
    /// The space of the product.
    pub const RESULT: usize = 2;

    /// The operation on one machine, and with singles over nodes.
    pub fn operation(self, placement: Placement) -> Operation {
        let Self {
            rows,
            columns,
            depth,
            precision,
            ..
        } = self;
        let (name, flops) = (precision.name(), self.sizes().flops);
        Operation {
            title: format!("{rows} x {depth} by {depth} x {columns} {name}"),
            fp64: precision == ProductPrecision::Double,
            bytes: self.bytes(),
            dense: Some(self.sizes()),
            hosts_only: false,
            outputs: vec![Self::RESULT],
            make: Box::new(move |place, tile| {
                Ok(match place {
                    Place::Alone(lone) => {
                        let suits = || tiles::of_product(&self, lone);
                        let tile = tile.unwrap_or_else(suits).min(rows.max(columns).max(depth));
                        Placed::in_tiles(self.tasks(tile), || self.in_tiles(tile), tile)?
                    }
                    Place::Nodes(fit) if precision == Precision::F32.into() => {
                        let tile = tile.unwrap_or_else(|| fit.product(rows, columns, flops));
                        let parts = format!("blocks of {tile}");
                        Placed::new(self.in_blocks(tile, placement), parts, tile)
                    }
                    Place::Nodes(_) => return Err(OperationError::Singles(name)),
                })
            }),
        }
    }

    fn bytes(&self) -> u128 {
        let [m, n, k] = [self.rows, self.columns, self.depth].map(u128::from);
        let factors = u128::from(self.precision.factors().bytes());
        (m * k + k * n) * factors + m * n * u128::from(self.precision.sums().bytes())
    }

    /// Two operations a multiplication and addition.
    fn sizes(&self) -> DenseSizes {
        let lengths = [self.rows, self.columns, self.depth];
        DenseSizes {
            rows: self.rows,
            columns: self.columns,
            depth: Some(self.depth),
            precision: self.precision.name(),
            flops: lengths.iter().fold(2.0, |of, length| of * *length as f64),
        }
    }

    /// Tasks in tiles of so many rows and columns.
    pub fn tasks(&self, tile: u64) -> u64 {
        let tiles = [self.rows, self.columns, self.depth].map(|of| of.div_ceil(tile));
        tiles.into_iter().fold(1, u64::saturating_mul)
    }

    /// Each task adds the product of two tiles to one of C; the first one writes it.
    pub fn in_tiles(&self, tile: u64) -> Program {
        let [rows, columns, depth] = [self.rows, self.columns, self.depth];
        let (factors, sums) = (self.precision.factors(), self.precision.sums());
        let mut made = TileProgram::new("matmul");
        let given = |fill: &Fill| Some(Contents::placed(Placement::Rows, fill.clone()));
        let a = made.matrix((rows, depth), factors, given(&self.a));
        let b = made.matrix((depth, columns), factors, given(&self.b));
        let c = made.matrix((rows, columns), sums.into(), None);
        let is_aligned = are_aligned(factors, &[depth, columns, tile])
            && are_aligned(sums.into(), &[columns, tile]);
        for (i, of_rows) in parts(rows, tile).enumerate() {
            for (j, of_columns) in parts(columns, tile).enumerate() {
                for (k, summed) in parts(depth, tile).enumerate() {
                    let [m, n, d] = [&of_rows, &of_columns, &summed].map(length);
                    let gemm = GemmTile::new(self.precision, m, n, d);
                    let gemm = if is_aligned { gemm } else { gemm.unaligned() };
                    made.task(
                        format!("gemm.{i}.{j}.{k}"),
                        TileOperation::Gemm(if k == 0 { gemm } else { gemm.factors(1.0, 1.0) }),
                        vec![
                            (a, Block::new(of_rows.clone(), summed.clone())),
                            (b, Block::new(summed, of_columns.clone())),
                        ],
                        (c, Block::new(of_rows.clone(), of_columns.clone())),
                        k > 0,
                    );
                }
            }
        }
        let mut program = made.program;
        program.set_result_number(c);
        let (of, whole) = (self.clone(), Block::new(0..rows, 0..columns));
        program.set_compare_whole(vec![c], move |spaces, seed| {
            of.compare(&whole, spaces[0], GROUPS as u64, seed)
        });
        program
    }

    /// A subtask multiplies rows of A with columns of B, of singles.
    pub fn in_blocks(&self, tile: u64, placement: Placement) -> Program {
        let [rows, columns, depth] = [self.rows, self.columns, self.depth];
        let singles = |rows, columns| Extent {
            rows,
            columns,
            element: 4,
        };
        let mut program = Program::new("matmul");
        let given = |fill: &Fill| Some(Contents::placed(placement, fill.clone()));
        let a = program.add_space(singles(rows, depth), "f32", given(&self.a));
        let b = program.add_space(singles(depth, columns), "f32", given(&self.b));
        let c = program.add_space(singles(rows, columns), "f32", None);
        program.set_result_number(c);
        let tiles = Tiles::new(singles(rows, columns), [tile, tile]);
        // A node that computes blocks in this order needs few rows of A and columns of B for many
        // of them. Made when it is needed, as they may be too many.
        let order: Arc<OnceLock<Arc<[u64]>>> = Arc::default();
        let block = move |subtask: u64| {
            let order = order.get_or_init(|| tiles.nested());
            tiles.block(order[subtask as usize])
        };
        let shape = move |block: &Block| Gemm {
            rows: block.height() as u32,
            columns: block.width() as u32,
            depth: depth as u32,
            ..Gemm::square(0)
        };
        let used = block.clone();
        let uses = move |subtask| {
            let block = used(subtask);
            Uses {
                reads: vec![
                    (a, Block::new(block.rows.clone(), 0..depth)),
                    (b, Block::new(0..depth, block.columns.clone())),
                ],
                cost: shape(&block).cost(),
                writes: vec![(c, block)],
            }
        };
        let launch = move |subtask| {
            let gemm = shape(&block(subtask));
            SubtaskLaunch {
                codelet: Arc::new(gemm.codelet()),
                units: 0..gemm.units(),
                values: gemm.sizes().map(SubtaskValue::from).to_vec(),
            }
        };
        program.add_task(CodeletTask::new("matmul", tiles.count(), uses, launch));
        let of = self.clone();
        program.set_compare(move |block, bytes, seed| of.compare(block, bytes, 1, seed));
        program
    }

    /// Checks a block as the product of rows of A and columns of B, with random vectors of
    /// groups of its columns.
    fn compare(&self, block: &Block, bytes: &[u8], groups: u64, seed: u64) -> Checked {
        let (rows, columns) = (block.height(), block.width());
        let group = columns.div_ceil(groups);
        let (factors, sums) = (self.precision.factors(), self.precision.sums());
        let product = Sums {
            rows,
            columns,
            depth: self.depth,
            group,
            rounding: Rounding::from(self.precision),
            // Not that of generated matrices.
            seed: seed.wrapping_add(1 << 32),
        };
        let given = |fill: &Fill, [row, column]: [u64; 2], part: &Block| {
            let place = Block::new(
                row + part.rows.start..row + part.rows.end,
                column + part.columns.start..column + part.columns.end,
            );
            let mut bytes = vec![0; (factors.bytes() * part.elements()) as usize];
            Contents::again(fill, &place, &mut bytes);
            numbers(&bytes, factors)
        };
        let mut source = |matrix, act: &mut dyn FnMut(MatrixPart)| {
            let (height, width, step) = match matrix {
                Matrix::A => (rows, self.depth, READ),
                Matrix::B => (self.depth, columns, group),
                Matrix::C => (rows, columns, group),
            };
            for across in parts(width, step) {
                let lines = (READ / (across.end - across.start)).max(1);
                for down in parts(height, lines) {
                    let part = Block::new(down, across.clone());
                    let numbers = match matrix {
                        Matrix::A => given(&self.a, [block.rows.start, 0], &part),
                        Matrix::B => given(&self.b, [0, block.columns.start], &part),
                        Matrix::C => numbers_of(bytes, columns, &part, sums),
                    };
                    act(MatrixPart {
                        rows: part.rows,
                        columns: part.columns,
                        numbers,
                    });
                }
            }
            Ok::<bool, Infallible>(true)
        };
        let Ok(Some(verification)) = product.verify(&mut source) else {
            unreachable!("nothing interrupts it");
        };
        let checked = verification.checked(block.elements());
        let [row, column] = [block.rows.start, block.columns.start];
        Checked {
            at: (checked.at).map(|[of, begin, end]| [row + of, column + begin, column + end]),
            ..checked
        }
    }
}

/// The numbers of a part of a matrix with rows of so many.
pub(super) fn numbers_of(
    bytes: &[u8],
    columns: u64,
    part: &Block,
    precision: Precision,
) -> Vec<f64> {
    let at = |row: u64, column: u64| ((row * columns + column) * precision.bytes()) as usize;
    if part.width() == columns {
        return numbers(
            &bytes[at(part.rows.start, 0)..at(part.rows.end, 0)],
            precision,
        );
    }
    let row = |row| &bytes[at(row, part.columns.start)..at(row, part.columns.end)];
    let rows: Vec<&[u8]> = part.rows.clone().map(row).collect();
    numbers(&rows.concat(), precision)
}

/// A length in parts of so many, of which the last one has the rest.
pub(super) fn parts(length: u64, of: u64) -> impl Iterator<Item = Range<u64>> + Clone {
    let begins = (0..length.div_ceil(of)).map(move |part| part * of);
    begins.map(move |begin| begin..(begin + of).min(length))
}

pub(super) fn length(range: &Range<u64>) -> u32 {
    (range.end - range.start) as u32
}

/// Whether so many numbers are multiples of 16 bytes, in which OpenCL kernels read.
pub(super) fn are_aligned(element: Element, counts: &[u64]) -> bool {
    let mut bytes = counts.iter().map(|count| count * element.bytes());
    bytes.all(|bytes| bytes.is_multiple_of(16))
}
