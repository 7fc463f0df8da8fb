//! The Fourier transform of a matrix of complex numbers: a task along rows, in place, and one
//! along columns (Unicorn, section V). Nothing is transposed in between: the second task
//! takes columns of what the first one wrote.

use std::sync::Arc;

use super::program::{CodeletTask, Program, Uses};
use super::{Contents, Fill, Operation, Place, Placed, Placement};
use crate::cluster::space::{Block, Extent};
use crate::cluster::task::{SubtaskLaunch, SubtaskValue};
use crate::codelet::Precision;
use crate::codelet::fft::{Along, Fft};
use crate::verify::transform::{Complex, Transform};
use crate::verify::{Checked, Rounding, numbers};

/// The spaces.
const GIVEN: usize = 0;
const RESULT: usize = 1;

/// A transform.
#[derive(Clone)]
pub struct FftWorkload {
    pub rows: u64,
    pub columns: u64,
    /// Of both parts of a number.
    pub precision: Precision,
    pub placement: Placement,
    pub matrix: Fill,
}

impl FftWorkload {
    /// The operation. One machine by itself has eight subtasks a task.
    pub fn operation(self) -> Operation {
        let (rows, columns, element) = (self.rows, self.columns, self.extent().element);
        Operation {
            title: format!("{rows} x {columns}"),
            fp64: self.precision == Precision::F64,
            bytes: 2 * u128::from(self.extent().bytes(&self.extent().whole())),
            dense: None,
            hosts_only: false,
            outputs: vec![RESULT],
            make: Box::new(move |place, tile| {
                let longest = rows.max(columns);
                let suits = || match place {
                    Place::Alone(_) => longest.div_ceil(8),
                    Place::Nodes(fit) => fit.lines(longest, element * rows.min(columns)),
                };
                let tile = tile.unwrap_or_else(suits).min(longest);
                let parts = format!("{tile} lines a subtask");
                Ok(Placed::new(self.program(tile), parts, tile))
            }),
        }
    }

    /// The tasks, with so many rows or columns a subtask.
    pub fn program(&self, tile: u64) -> Program {
        let extent = self.extent();
        let mut program = Program::new("fft");
        let given = Contents::placed(self.placement, Arc::clone(&self.matrix));
        let kind = self.precision.choose("[f32; 2]", "[f64; 2]");
        program.add_space(extent, kind, Some(given));
        let result = program.add_space(extent, kind, None);
        program.set_result_number(result);
        for along in [Along::Rows, Along::Columns] {
            let lines = Lines {
                precision: self.precision,
                extent,
                tile,
                along,
            };
            program.add_task(lines.task());
        }
        let of = self.clone();
        program.set_compare(move |block, bytes, seed| of.compare(block, bytes, seed));
        program
    }

    fn extent(&self) -> Extent {
        Extent {
            rows: self.rows,
            columns: self.columns,
            element: 2 * self.precision.bytes(),
        }
    }
}

impl FftWorkload {
    /// A row of the given matrix.
    fn row(&self, row: u64, line: &mut [Complex]) {
        let whole = Block::new(row..row + 1, 0..self.columns);
        let mut bytes = vec![0; (self.extent().element * self.columns) as usize];
        Contents::again(&self.matrix, &whole, &mut bytes);
        let numbers = numbers(&bytes, self.precision);
        for (to, number) in line.iter_mut().zip(numbers.as_chunks().0) {
            *to = *number;
        }
    }

    fn compare(&self, block: &Block, bytes: &[u8], seed: u64) -> Checked {
        let transform = Transform {
            rows: self.rows,
            columns: self.columns,
            rounding: Rounding::from(self.precision),
        };
        let found = numbers(bytes, self.precision);
        let mut row = |row, line: &mut [Complex]| self.row(row, line);
        // Not the numbers that were generated.
        let seed = seed.wrapping_add(1 << 32);
        transform.compare(
            (&block.rows, &block.columns),
            seed,
            &mut row,
            found.as_chunks().0,
        )
    }
}

/// The rows or the columns of a subtask, which become transforms.
#[derive(Clone, Copy)]
struct Lines {
    precision: Precision,
    extent: Extent,
    tile: u64,
    along: Along,
}

impl Lines {
    fn lines(&self) -> u64 {
        match self.along {
            Along::Rows => self.extent.rows,
            Along::Columns => self.extent.columns,
        }
    }

    fn block(&self, subtask: u64) -> Block {
        let lines = subtask * self.tile..((subtask + 1) * self.tile).min(self.lines());
        match self.along {
            Along::Rows => Block::new(lines, 0..self.extent.columns),
            Along::Columns => Block::new(0..self.extent.rows, lines),
        }
    }

    fn shape(&self, block: &Block) -> Fft {
        Fft {
            rows: block.height() as u32,
            columns: block.width() as u32,
            along: self.along,
            precision: self.precision,
        }
    }

    /// Rows are transformed in place, columns from one space to another.
    fn task(self) -> CodeletTask {
        let (name, to, in_place) = match self.along {
            Along::Rows => ("fft-rows", GIVEN, Some(SubtaskValue::Memory(0))),
            Along::Columns => ("fft-columns", RESULT, None),
        };
        let uses = move |subtask| {
            let block = self.block(subtask);
            Uses {
                cost: self.shape(&block).cost(),
                reads: vec![(GIVEN, block.clone())],
                writes: vec![(to, block)],
            }
        };
        let element = self.extent.element as u32;
        let launch = move |subtask| {
            let shape = self.shape(&self.block(subtask));
            let values = (in_place.into_iter())
                .chain(SubtaskValue::place(0, element))
                .chain(SubtaskValue::place(to, element))
                .chain(shape.values().map(SubtaskValue::from));
            SubtaskLaunch {
                codelet: Arc::new(shape.codelet()),
                units: 0..shape.units(),
                values: values.collect(),
            }
        };
        CodeletTask::new(name, self.lines().div_ceil(self.tile), uses, launch)
    }
}
