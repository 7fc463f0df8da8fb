//! The Fourier transform of a matrix of complex singles: a task along rows, in place, and one
//! along columns (Unicorn, section V). Nothing is transposed in between: the second task
//! takes columns of what the first one wrote.

use std::ops::Range;
use std::sync::Arc;

use super::{Check, ClusterWorkload, Contents, Fill, NewSpace, Placement};
use crate::cluster::space::{Block, Extent, SpaceBlock, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, SubtaskValue, Task};
use crate::codelet::fft::{Along, Fft};
use crate::codelet::{Cost, Precision};
use crate::verify::transform::{Complex, Transform};
use crate::verify::{Checked, Rounding, numbers};

/// A transform.
#[derive(Clone)]
pub struct FftWorkload {
    pub rows: u64,
    pub columns: u64,
    /// Rows or columns of a subtask.
    pub tile: u64,
    pub placement: Placement,
    pub matrix: Fill,
}

impl FftWorkload {
    /// Lines of a subtask on one machine by itself.
    pub fn lines_alone(rows: u64, columns: u64) -> u64 {
        rows.max(columns).div_ceil(8)
    }

    fn extent(&self) -> Extent {
        Extent {
            rows: self.rows,
            columns: self.columns,
            element: 8,
        }
    }
}

impl ClusterWorkload for FftWorkload {
    fn name(&self) -> &'static str {
        "fft"
    }

    fn spaces(&self) -> Vec<NewSpace> {
        let space = |contents| NewSpace {
            extent: self.extent(),
            contents,
        };
        let given = Contents::placed(self.placement, Arc::clone(&self.matrix));
        vec![space(Some(given)), space(None)]
    }

    fn tasks(&self) -> u64 {
        2
    }

    fn task(&self, number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(Lines {
            extent: self.extent(),
            tile: self.tile,
            along: match number {
                0 => Along::Rows,
                _ => Along::Columns,
            },
            spaces: [spaces[0], spaces[1]],
        })
    }

    fn result(&self) -> usize {
        1
    }

    fn check(&self) -> Check<'_> {
        Check::Blocks(Box::new(|block, bytes, seed| {
            self.compare(block, bytes, seed)
        }))
    }
}

impl FftWorkload {
    /// A row of the given matrix.
    fn row(&self, row: u64, line: &mut [Complex]) {
        let whole = Block::new(row..row + 1, 0..self.columns);
        let mut bytes = vec![0; 8 * self.columns as usize];
        Contents::again(&self.matrix, &whole, &mut bytes);
        let numbers = numbers(&bytes, Precision::F32);
        for (to, number) in line.iter_mut().zip(numbers.as_chunks().0) {
            *to = *number;
        }
    }

    fn compare(&self, block: &Block, bytes: &[u8], seed: u64) -> Checked {
        let transform = Transform {
            rows: self.rows,
            columns: self.columns,
            rounding: Rounding::from(Precision::F32),
        };
        let found = numbers(bytes, Precision::F32);
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

struct Lines {
    extent: Extent,
    tile: u64,
    along: Along,
    spaces: [SpaceId; 2],
}

impl Lines {
    fn lines(&self) -> u64 {
        match self.along {
            Along::Rows => self.extent.rows,
            Along::Columns => self.extent.columns,
        }
    }

    fn block(&self, subtask: u64) -> Block {
        let lines: Range<u64> = subtask * self.tile..((subtask + 1) * self.tile).min(self.lines());
        match self.along {
            Along::Rows => Block::new(lines, 0..self.extent.columns),
            Along::Columns => Block::new(0..self.extent.rows, lines),
        }
    }

    fn shape(&self, subtask: u64) -> Fft {
        let block = self.block(subtask);
        Fft {
            rows: block.height() as u32,
            columns: block.width() as u32,
            along: self.along,
        }
    }

    fn part(&self, space: SpaceId, subtask: u64) -> SpaceBlock {
        SpaceBlock {
            space,
            block: self.block(subtask),
        }
    }
}

impl Task for Lines {
    fn name(&self) -> &str {
        match self.along {
            Along::Rows => "fft-rows",
            Along::Columns => "fft-columns",
        }
    }

    fn count(&self) -> u64 {
        self.lines().div_ceil(self.tile)
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        vec![self.part(self.spaces[0], subtask)]
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        let to = match self.along {
            Along::Rows => self.spaces[0],
            Along::Columns => self.spaces[1],
        };
        vec![self.part(to, subtask)]
    }

    fn cost(&self, subtask: u64) -> Cost {
        self.shape(subtask).cost()
    }
}

impl Computed for Lines {
    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        let shape = self.shape(subtask);
        // Rows are transformed in place, so that there is one memory.
        let (in_place, to) = match self.along {
            Along::Rows => (Some(SubtaskValue::Memory(0)), 0),
            Along::Columns => (None, 1),
        };
        let values = (in_place.into_iter())
            .chain(SubtaskValue::place(0, 8))
            .chain(SubtaskValue::place(to, 8))
            .chain(shape.values().map(SubtaskValue::from))
            .collect();
        SubtaskLaunch {
            codelet: Arc::new(shape.codelet()),
            units: 0..shape.units(),
            values,
        }
    }
}
