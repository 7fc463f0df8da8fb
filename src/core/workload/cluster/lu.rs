//! The LU factorisation of a dense matrix with partial pivoting, by blocks and in place.
//!
//! For each block column, three tasks follow one another: the factors of the *panel*, which
//! is the block column from its diagonal block down; the exchanges and the rows of U in the
//! block columns right of it; and what is left of their blocks. The panel is one subtask,
//! which gathers its blocks from all nodes, so that a pivot is the greatest number of all
//! rows that are left. The block columns left of a panel get its exchanges at the end, all
//! at once.
//!
//! Where one machine has all blocks, a subtask has a whole block column, so that each is one
//! datum from the begin to the end; over nodes, it has blocks.
//!
//! Source: LAPACK's `getrf`; the tasks over nodes as in Unicorn, section V, which exchanges
//! rows within diagonal blocks only.

use std::ops::Range;
use std::sync::Arc;

use super::program::{CodeletTask, Program, Uses};
use super::{Contents, Fill, Operation, Place, Placed, Placement};
use crate::cluster::space::{Block, Extent};
use crate::cluster::task::{SubtaskLaunch, SubtaskValue};
use crate::codelet::lu::{LuExchange, LuPanel, LuRow, NO_PIVOT, NOT_FINITE};
use crate::codelet::tile::GemmTile;
use crate::codelet::{Codelet, Cost, Precision, Value};
use crate::verify::{Checked, Rounding, factors, numbers};

/// The space of the matrix.
const MATRIX: usize = 0;

/// A factorisation.
#[derive(Clone)]
pub struct LuWorkload {
    /// Rows and columns of the matrix.
    pub size: u64,
    /// Rows and columns of a block.
    pub tile: u64,
    pub precision: Precision,
    pub placement: Placement,
    /// Whether subtasks have whole block columns, for a machine that has all blocks.
    pub by_columns: bool,
    pub matrix: Fill,
}

/// Columns of a panel, for a matrix of so many rows on one machine; `is_pool`: on the workers
/// of one pool alone.
///
/// The workers of a pool share each subtask, so that a pool by itself needs few panels: each
/// passes over the rest of the matrix once. Several devices need enough block columns to
/// divide them, and wait for panels.
pub fn panel_width(size: u64, is_pool: bool) -> u64 {
    let width = match is_pool {
        true => size.div_ceil(4).clamp(512, 4096),
        false => size.div_ceil(32).clamp(64, 512),
    };
    width.min(size)
}

impl LuWorkload {
    /// The space of the exchanges: a 32-bit number a row.
    pub const PIVOTS: usize = 1;

    fn extent(&self) -> Extent {
        Extent {
            rows: self.size,
            columns: self.size,
            element: self.precision.bytes(),
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

impl LuWorkload {
    /// The factors of a matrix of so many rows: of whole columns on one machine by itself.
    pub fn operation(
        size: u64,
        precision: Precision,
        placement: Placement,
        matrix: Fill,
    ) -> Operation {
        Operation {
            title: format!("{size} x {size} {}", precision.name()),
            fp64: precision == Precision::F64,
            bytes: u128::from(size) * u128::from(size * precision.bytes() + 4),
            dense: None,
            hosts_only: false,
            outputs: vec![MATRIX, Self::PIVOTS],
            make: Box::new(move |place, tile| {
                let (suits, by_columns, parts) = match place {
                    Place::Alone(lone) => (panel_width(size, lone.is_pool), true, "columns"),
                    Place::Nodes(fit) => {
                        let flops = 2.0 / 3.0 * (size as f64).powi(3);
                        (fit.factors(size, flops), false, "blocks")
                    }
                };
                let tile = tile.unwrap_or(suits).min(size);
                let workload = Self {
                    size,
                    tile,
                    precision,
                    placement,
                    by_columns,
                    matrix: Arc::clone(&matrix),
                };
                let parts = format!("{parts} of {tile}");
                Ok(Placed::new(workload.program(), parts, tile))
            }),
        }
    }

    /// The tasks.
    pub fn program(&self) -> Program {
        let mut program = Program::new("lu");
        let given = Contents::placed(self.placement, Arc::clone(&self.matrix));
        program.add_space(self.extent(), self.precision.name(), Some(given));
        program.add_space(self.pivots(), "i32", None);
        let workload = Arc::new(self.clone());
        let codelet_of: [Arc<Codelet>; 3] = [
            LuPanel::codelet(self.precision),
            LuRow::codelet(self.precision),
            LuExchange::codelet(self.precision),
        ]
        .map(Arc::new);
        // Nothing is right of the last panel, and nothing left of the first.
        for diagonal in 0..self.blocks() {
            let is_last = diagonal + 1 == self.blocks();
            let rest: &[Stage] = match is_last {
                true if diagonal == 0 => &[],
                true => &[Stage::Exchange],
                false => &[Stage::Row, Stage::Update],
            };
            for stage in [Stage::Panel].iter().chain(rest) {
                let task = Arc::new(LuTask {
                    workload: Arc::clone(&workload),
                    diagonal,
                    stage: *stage,
                    codelet: match stage {
                        Stage::Panel => Some(Arc::clone(&codelet_of[0])),
                        Stage::Row => Some(Arc::clone(&codelet_of[1])),
                        Stage::Exchange => Some(Arc::clone(&codelet_of[2])),
                        Stage::Update => None,
                    },
                });
                let launched = Arc::clone(&task);
                program.add_task(CodeletTask::new(
                    stage.name(),
                    task.count(),
                    move |subtask| task.uses(subtask),
                    move |subtask| launched.launch(subtask),
                ));
            }
        }
        program.set_refusal(Self::PIVOTS, refused);
        program.set_compare_whole(vec![MATRIX, Self::PIVOTS], move |spaces, seed| {
            workload.compare(spaces[0], spaces[1], seed)
        });
        program
    }
}

/// The rows that are exchanged.
fn pivots_of(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|four| u32::from_ne_bytes(*four))
}

/// Why a matrix has no factors, by its exchanges.
///
/// A number of U that is not finite makes those below it so, and thus a later pivot.
fn refused(pivots: &[u8]) -> Option<String> {
    let mut found = pivots_of(pivots).enumerate();
    let (column, why) = found.find(|(_, pivot)| *pivot >= NOT_FINITE)?;
    let counted = "counted from 0";
    Some(match why {
        NO_PIVOT => format!(
            "the matrix is singular: column {column} ({counted}) depends on those before it, \
             and all pivots are zero; a matrix of full rank has factors"
        ),
        _ => format!(
            "the matrix has no factors: column {column} ({counted}) has a pivot that is \
             infinite or no number; the given matrix has such a number, or the numbers grow \
             too large, and --precision f64 or a matrix of smaller numbers helps"
        ),
    })
}

impl LuWorkload {
    /// Compares the factors with the matrix.
    fn compare(&self, lu: &[u8], pivots: &[u8], seed: u64) -> Checked {
        let mut rows: Vec<u64> = (0..self.size).collect();
        for (row, pivot) in pivots_of(pivots).enumerate() {
            // A wrong pivot is found by the comparison.
            let other = (pivot as usize).min(rows.len() - 1);
            rows.swap(row, other);
        }
        let bytes = (self.size * self.precision.bytes()) as usize;
        let mut factored = |band: Range<u64>| {
            let band = band.start as usize * bytes..band.end as usize * bytes;
            numbers(&lu[band], self.precision)
        };
        let mut given = |band: Range<u64>| {
            let of = &rows[band.start as usize..band.end as usize];
            let mut given = vec![0; bytes * of.len()];
            for (row, to) in of.iter().zip(given.chunks_exact_mut(bytes)) {
                let block = Block::new(*row..row + 1, 0..self.size);
                Contents::again(&self.matrix, &block, to);
            }
            numbers(&given, self.precision)
        };
        let rounding = Rounding::from(self.precision);
        // Not that of generated matrices.
        let seed = seed.wrapping_add(1 << 32);
        factors::check(self.size, rounding, seed, &mut factored, &mut given)
    }
}

/// A block of a space.
type Part = (usize, Block);

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Panel,
    Row,
    Update,
    Exchange,
}

/// Sizes and places, as arguments.
fn values<const N: usize>(sizes: [Value; N], places: &[SubtaskValue]) -> Vec<SubtaskValue> {
    let sizes = sizes.into_iter().map(SubtaskValue::from);
    sizes.chain(places.iter().copied()).collect()
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Panel => "lu-panel",
            Self::Row => "lu-row",
            Self::Update => "lu-update",
            Self::Exchange => "lu-exchange",
        }
    }
}

struct LuTask {
    workload: Arc<LuWorkload>,
    diagonal: u64,
    stage: Stage,
    /// None of a product, whose codelet depends on its sizes.
    codelet: Option<Arc<Codelet>>,
}

impl LuTask {
    /// Blocks after the diagonal one.
    fn rest(&self) -> u64 {
        self.workload.blocks() - self.diagonal - 1
    }

    /// The block that a subtask of an update changes: row and column of blocks. By columns it
    /// is the first one of what changes.
    fn place(&self, subtask: u64) -> (u64, u64) {
        let (first, rest) = (self.diagonal + 1, self.rest());
        match self.workload.by_columns {
            true => (first, first + subtask),
            false => (first + subtask / rest, first + subtask % rest),
        }
    }

    /// The part that has these blocks: by columns, the whole column.
    fn part(&self, (space, block): Part) -> Part {
        match self.workload.by_columns {
            true => (space, Block::new(0..self.workload.size, block.columns)),
            false => (space, block),
        }
    }

    /// Where blocks begin in the memory of the argument of this index, and its stride.
    fn at(&self, memory: usize, (_, block): &Part) -> [SubtaskValue; 2] {
        let number = self.workload.precision.bytes() as u32;
        let row = match self.workload.by_columns {
            true => block.rows.start,
            false => 0,
        };
        SubtaskValue::place_at(memory, number, row, 0)
    }

    /// Where the first pivot is in the memory of the argument of this index.
    fn first_pivot(memory: usize) -> SubtaskValue {
        SubtaskValue::place(memory, 4)[0]
    }

    /// A block column from this row of blocks down.
    fn below(&self, row: u64, column: u64) -> Part {
        let rows = self.workload.range(row).start..self.workload.size;
        (MATRIX, Block::new(rows, self.workload.range(column)))
    }

    fn block(&self, row: u64, column: u64) -> Part {
        let rows = self.workload.range(row);
        (MATRIX, Block::new(rows, self.workload.range(column)))
    }

    fn pivots(&self, columns: Range<u64>) -> Part {
        (LuWorkload::PIVOTS, Block::new(0..1, columns))
    }

    /// The pivots of the panel.
    fn of_panel(&self) -> Part {
        self.pivots(self.workload.range(self.diagonal))
    }

    /// The blocks that a subtask changes.
    fn own(&self, subtask: u64) -> Part {
        match self.stage {
            Stage::Panel => self.below(self.diagonal, self.diagonal),
            Stage::Row => self.below(self.diagonal, self.diagonal + 1 + subtask),
            Stage::Update => {
                let (row, column) = self.place(subtask);
                match self.workload.by_columns {
                    true => self.below(row, column),
                    false => self.block(row, column),
                }
            }
            Stage::Exchange => self.below(subtask + 1, subtask),
        }
    }

    /// Columns of the panel.
    fn depth(&self) -> u32 {
        let range = self.workload.range(self.diagonal);
        (range.end - range.start) as u32
    }

    /// The operation of a subtask: its units, its arguments after the memories, and its cost.
    fn operation(&self, subtask: u64) -> (u64, Vec<SubtaskValue>, Cost) {
        let precision = self.workload.precision;
        let own = self.own(subtask);
        let (rows, columns) = (own.1.height() as u32, own.1.width() as u32);
        let first = own.1.rows.start as u32;
        let diagonal = self.block(self.diagonal, self.diagonal);
        match self.stage {
            Stage::Panel => {
                let panel = LuPanel {
                    precision,
                    rows,
                    columns,
                    first,
                };
                let places = [&self.at(0, &own)[..], &[Self::first_pivot(1)]].concat();
                (panel.units(), values(panel.values(), &places), panel.cost())
            }
            Stage::Row => {
                let row = LuRow {
                    precision,
                    rows,
                    columns,
                    depth: self.depth(),
                    first,
                };
                let places = [
                    &self.at(0, &diagonal)[..],
                    &[Self::first_pivot(1)],
                    &self.at(2, &own),
                ];
                (
                    row.units(),
                    values(row.values(), &places.concat()),
                    row.cost(),
                )
            }
            Stage::Update => {
                let update = self.update(subtask);
                let mut all = values(update.values(), &[]);
                let (row, column) = self.place(subtask);
                let matrices = [
                    self.block(row, self.diagonal),
                    self.block(self.diagonal, column),
                    own,
                ];
                for (memory, blocks) in matrices.iter().enumerate() {
                    // The column of whole columns has both the factor U and what changes.
                    let argument = match (self.workload.by_columns, memory) {
                        (true, 1 | 2) => 1,
                        _ => memory,
                    };
                    let [first, stride] = self.at(argument, blocks);
                    (all[3 + memory], all[6 + memory]) = (stride, first);
                }
                if self.workload.by_columns {
                    all.insert(0, SubtaskValue::Memory(1));
                }
                (update.units(), all, update.cost())
            }
            Stage::Exchange => {
                let exchange = LuExchange {
                    precision,
                    rows,
                    columns,
                    first,
                };
                let places = [&[Self::first_pivot(0)][..], &self.at(1, &own)].concat();
                let all = values(exchange.values(), &places);
                (exchange.units(), all, exchange.cost())
            }
        }
    }

    fn update(&self, subtask: u64) -> GemmTile {
        let (_, block) = self.own(subtask);
        let (rows, columns) = (block.height() as u32, block.width() as u32);
        let precision = self.workload.precision;
        let product = GemmTile::new(precision, rows, columns, self.depth()).factors(-1.0, 1.0);
        // Devices that compute in host memory find whole columns in the whole matrix.
        let within = self.workload.by_columns.then_some(self.workload.size);
        let strides = within.into_iter().chain([self.workload.tile]);
        match strides
            .map(|stride| stride * precision.bytes())
            .all(|s| s.is_multiple_of(16))
        {
            true => product,
            false => product.unaligned(),
        }
    }
}

impl LuTask {
    fn count(&self) -> u64 {
        match self.stage {
            Stage::Panel => 1,
            Stage::Row => self.rest(),
            Stage::Update if self.workload.by_columns => self.rest(),
            Stage::Update => self.rest() * self.rest(),
            Stage::Exchange => self.workload.blocks() - 1,
        }
    }

    fn uses(&self, subtask: u64) -> Uses {
        let own = self.part(self.own(subtask));
        let diagonal = || self.block(self.diagonal, self.diagonal);
        let reads = match self.stage {
            Stage::Panel => vec![own.clone()],
            Stage::Row => vec![self.part(diagonal()), self.of_panel(), own.clone()],
            Stage::Update if self.workload.by_columns => {
                vec![self.part(diagonal()), own.clone()]
            }
            Stage::Update => {
                let (row, column) = self.place(subtask);
                vec![
                    self.block(row, self.diagonal),
                    self.block(self.diagonal, column),
                    own.clone(),
                ]
            }
            Stage::Exchange => vec![self.pivots(self.own(subtask).1.rows), own.clone()],
        };
        let pivots = (self.stage == Stage::Panel).then(|| self.of_panel());
        Uses {
            reads,
            writes: [own].into_iter().chain(pivots).collect(),
            cost: self.operation(subtask).2,
        }
    }

    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        let (units, values, _) = self.operation(subtask);
        let codelet = match &self.codelet {
            Some(codelet) => Arc::clone(codelet),
            None => Arc::new(self.update(subtask).codelet()),
        };
        SubtaskLaunch {
            codelet,
            units: 0..units,
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_wide_where_no_other_device_waits_for_them() {
        let widths = |is_pool| [50, 1000, 4096, 30_000].map(|size| panel_width(size, is_pool));
        assert_eq!(widths(true), [50, 512, 1024, 4096]);
        assert_eq!(widths(false), [50, 64, 128, 512]);
    }
}
