//! The LU factorisation of a dense matrix of singles, by blocks and in place (Unicorn,
//! section V).
//!
//! For each diagonal block, three tasks follow one another: the factors of the block, the
//! blocks of its row and its column, and what is left. Rows are exchanged within diagonal
//! blocks only, and blocks left of a diagonal block keep their rows.

use std::ops::Range;
use std::sync::Arc;

use super::tiles::Tiles;
use super::verify::{positions, single};
use super::{Check, ClusterWorkload, Contents, Fill, NewSpace, Placement};
use crate::cluster::record::Checked;
use crate::cluster::space::{Block, Extent, Part, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, Task};
use crate::codelet::lu::{LuFactor, LuSolve};
use crate::codelet::tile::GemmTile;
use crate::codelet::{Codelet, Cost, Precision};

/// A factorisation.
#[derive(Clone)]
pub struct LuWorkload {
    /// Rows and columns of the matrix.
    pub size: u64,
    /// Rows and columns of a block.
    pub tile: u64,
    pub placement: Placement,
    pub matrix: Fill,
}

impl LuWorkload {
    /// The space of the exchanges: a 32-bit number a row.
    pub const PIVOTS: usize = 1;

    fn extent(&self) -> Extent {
        Extent {
            rows: self.size,
            columns: self.size,
            element: 4,
        }
    }

    fn pivots(&self) -> Extent {
        Extent {
            rows: 1,
            columns: self.size,
            element: 4,
        }
    }

    fn blocks(&self) -> u64 {
        self.size.div_ceil(self.tile)
    }

    /// The rows or columns of a block.
    fn range(&self, index: u64) -> Range<u64> {
        index * self.tile..((index + 1) * self.tile).min(self.size)
    }
}

impl ClusterWorkload for LuWorkload {
    fn name(&self) -> &'static str {
        "lu"
    }

    fn spaces(&self) -> Vec<NewSpace> {
        vec![
            NewSpace {
                extent: self.extent(),
                contents: Some(Contents::placed(self.placement, Arc::clone(&self.matrix))),
            },
            NewSpace {
                extent: self.pivots(),
                contents: None,
            },
        ]
    }

    fn tasks(&self) -> u64 {
        // Nothing is left after the last diagonal block.
        3 * self.blocks() - 2
    }

    fn task(&self, number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        let diagonal = number / 3;
        let stage = match number % 3 {
            0 => Stage::Factor,
            1 => Stage::Solve,
            _ => Stage::Update,
        };
        Arc::new(LuTask {
            workload: self.clone(),
            matrix: spaces[0],
            pivots: spaces[1],
            diagonal,
            stage,
            factor: Arc::new(LuFactor::codelet()),
            row: Arc::new(LuSolve::row_codelet()),
            column: Arc::new(LuSolve::column_codelet()),
        })
    }

    fn result(&self) -> usize {
        0
    }

    fn check(&self) -> Check<'_> {
        Check::Whole(
            vec![0, 1],
            Box::new(|spaces, seed| self.compare(spaces, seed)),
        )
    }
}

impl LuWorkload {
    /// Multiplies a row of L and a column of U for numbers of every block, and compares
    /// with the matrix.
    fn compare(&self, spaces: &[Vec<u8>], seed: u64) -> Checked {
        let whole = self.extent().whole();
        let number =
            |row: u64, column: u64| f64::from(single(&whole, &spaces[0], [row, column], 1, 0));
        let mut checked = Checked::default();
        let rows: Vec<u64> = (0..self.blocks())
            .flat_map(|block| self.exchanged(block, &spaces[1]))
            .collect();
        for block in Tiles::new(self.extent(), [self.tile, self.tile]).all() {
            for [row, column] in positions(&block, seed).into_iter().step_by(8) {
                let diagonal = row.min(column) / self.tile;
                let begin = diagonal * self.tile;
                // Blocks right of the diagonal one have the exchanged rows, what was
                // subtracted from them has the others.
                let from = match row / self.tile <= column / self.tile {
                    true => rows[row as usize],
                    false => row,
                };
                let (mut sum, mut magnitude) = (0.0, 0.0);
                let mut add = |l: f64, u: f64| {
                    sum += l * u;
                    magnitude += (l * u).abs();
                };
                (0..begin).for_each(|k| add(number(from, k), number(k, column)));
                for k in begin..=row.min(column) {
                    let l = if k == row { 1.0 } else { number(row, k) };
                    add(l, number(k, column));
                }
                let mut right = [0; 4];
                let element = Block::new(from..from + 1, column..column + 1);
                Contents::again(&self.matrix, &element, &mut right);
                let right = f64::from(f32::from_ne_bytes(right));
                let rounding = 2.0 * self.size as f64 * f64::from(f32::EPSILON);
                checked.number(sum, right, rounding * (magnitude + 1.0));
            }
        }
        checked
    }

    /// For each row of a diagonal block, the row of the matrix that is there after the
    /// exchanges.
    fn exchanged(&self, block: u64, pivots: &[u8]) -> Vec<u64> {
        let range = self.range(block);
        let mut rows: Vec<u64> = range.clone().collect();
        for row in 0..rows.len() {
            let at = 4 * (range.start as usize + row);
            let pivot = pivots[at..at + 4]
                .first_chunk()
                .map_or(0, |four| u32::from_ne_bytes(*four));
            // A wrong pivot is found by the comparison.
            let other = (pivot as usize).min(rows.len() - 1);
            rows.swap(row, other);
        }
        rows
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Factor,
    Solve,
    Update,
}

struct LuTask {
    workload: LuWorkload,
    matrix: SpaceId,
    pivots: SpaceId,
    diagonal: u64,
    stage: Stage,
    factor: Arc<Codelet>,
    row: Arc<Codelet>,
    column: Arc<Codelet>,
}

impl LuTask {
    /// Blocks after the diagonal one.
    fn rest(&self) -> u64 {
        self.workload.blocks() - self.diagonal - 1
    }

    /// The block that a subtask changes: row and column of blocks.
    fn place(&self, subtask: u64) -> (u64, u64) {
        let (first, rest) = (self.diagonal + 1, self.rest());
        match self.stage {
            Stage::Factor => (self.diagonal, self.diagonal),
            // The row, then the column.
            Stage::Solve if subtask < rest => (self.diagonal, first + subtask),
            Stage::Solve => (first + subtask - rest, self.diagonal),
            Stage::Update => (first + subtask / rest, first + subtask % rest),
        }
    }

    fn block(&self, row: u64, column: u64) -> Part {
        let block = Block::new(self.workload.range(row), self.workload.range(column));
        Part {
            space: self.matrix,
            block,
        }
    }

    fn pivots(&self) -> Part {
        Part {
            space: self.pivots,
            block: Block::new(0..1, self.workload.range(self.diagonal)),
        }
    }

    fn update(&self, subtask: u64) -> GemmTile {
        let (row, column) = self.place(subtask);
        let length = |index: u64| {
            let range = self.workload.range(index);
            (range.end - range.start) as u32
        };
        GemmTile::new(
            Precision::F32,
            length(row),
            length(column),
            length(self.diagonal),
        )
        .factors(-1.0, 1.0)
    }

    fn solve(&self, subtask: u64) -> LuSolve {
        let (row, column) = self.place(subtask);
        let other = if row == self.diagonal { column } else { row };
        let length = |index: u64| {
            let range = self.workload.range(index);
            (range.end - range.start) as u32
        };
        LuSolve {
            rows: length(self.diagonal),
            others: length(other),
        }
    }

    fn factors(&self) -> LuFactor {
        let range = self.workload.range(self.diagonal);
        LuFactor {
            rows: (range.end - range.start) as u32,
        }
    }
}

impl Task for LuTask {
    fn name(&self) -> &str {
        match self.stage {
            Stage::Factor => "lu-factor",
            Stage::Solve => "lu-solve",
            Stage::Update => "lu-update",
        }
    }

    fn count(&self) -> u64 {
        match self.stage {
            Stage::Factor => 1,
            Stage::Solve => 2 * self.rest(),
            Stage::Update => self.rest() * self.rest(),
        }
    }

    fn reads(&self, subtask: u64) -> Vec<Part> {
        let (row, column) = self.place(subtask);
        let own = self.block(row, column);
        let diagonal = self.block(self.diagonal, self.diagonal);
        match self.stage {
            Stage::Factor => vec![own],
            Stage::Solve if row == self.diagonal => vec![diagonal, self.pivots(), own],
            Stage::Solve => vec![diagonal, own],
            Stage::Update => vec![
                self.block(row, self.diagonal),
                self.block(self.diagonal, column),
                own,
            ],
        }
    }

    fn writes(&self, subtask: u64) -> Vec<Part> {
        let (row, column) = self.place(subtask);
        let own = self.block(row, column);
        match self.stage {
            Stage::Factor => vec![own, self.pivots()],
            _ => vec![own],
        }
    }

    fn cost(&self, subtask: u64) -> Cost {
        match self.stage {
            Stage::Factor => self.factors().cost(),
            Stage::Solve => self.solve(subtask).cost(),
            Stage::Update => self.update(subtask).cost(),
        }
    }
}

impl Computed for LuTask {
    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        let (codelet, units, values) = match self.stage {
            Stage::Factor => {
                let factors = self.factors();
                let codelet = Arc::clone(&self.factor);
                (codelet, factors.units(), factors.values().to_vec())
            }
            Stage::Solve => {
                let solve = self.solve(subtask);
                let codelet = match self.place(subtask).0 == self.diagonal {
                    true => Arc::clone(&self.row),
                    false => Arc::clone(&self.column),
                };
                (codelet, solve.units(), solve.values().to_vec())
            }
            Stage::Update => {
                let update = self.update(subtask);
                let codelet = Arc::new(update.codelet());
                (codelet, update.units(), update.values().to_vec())
            }
        };
        SubtaskLaunch {
            codelet,
            units: 0..units,
            values,
        }
    }
}
