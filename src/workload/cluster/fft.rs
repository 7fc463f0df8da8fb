//! The Fourier transform of a matrix of complex singles: a task along rows, and one along
//! columns (Unicorn, section V). Nothing is transposed in between: the second task reads
//! columns of what the first one wrote.

use std::ops::Range;
use std::sync::Arc;

use super::verify::{positions, single};
use super::{Check, ClusterWorkload, Contents, Fill, NewSpace, Placement};
use crate::cluster::record::Checked;
use crate::cluster::space::{Block, Extent, Part, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, Task};
use crate::codelet::Cost;
use crate::codelet::fft::{Along, Fft};

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

/// Terms of sums that are computed for the comparison of a block.
const TERMS: u64 = 1 << 22;

impl FftWorkload {
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
        let empty = || NewSpace {
            extent: self.extent(),
            contents: None,
        };
        let given = NewSpace {
            contents: Some(Contents::placed(self.placement, Arc::clone(&self.matrix))),
            ..empty()
        };
        vec![given, empty(), empty()]
    }

    fn tasks(&self) -> u64 {
        2
    }

    fn task(&self, number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        let (along, from, to) = match number {
            0 => (Along::Rows, spaces[0], spaces[1]),
            _ => (Along::Columns, spaces[1], spaces[2]),
        };
        Arc::new(Lines {
            extent: self.extent(),
            tile: self.tile,
            along,
            from,
            to,
        })
    }

    fn result(&self) -> usize {
        2
    }

    fn check(&self) -> Check<'_> {
        Check::Blocks(Box::new(|block, bytes, seed| {
            self.compare(block, bytes, seed)
        }))
    }
}

impl FftWorkload {
    fn compare(&self, block: &Block, bytes: &[u8], seed: u64) -> Checked {
        let all = self.rows * self.columns;
        let mut places = positions(block, seed);
        places.reverse();
        places.truncate((TERMS / all).max(1) as usize);
        let mut sums = vec![[0.0f64; 2]; places.len()];
        let mut squares = 0.0;
        let mut line = vec![0; 8 * self.columns as usize];
        let turns = |length: u64| -> Vec<[f64; 2]> {
            let angle = |number: u64| -std::f64::consts::TAU * number as f64 / length as f64;
            (0..length)
                .map(|number| [angle(number).cos(), angle(number).sin()])
                .collect()
        };
        let (of_rows, of_columns) = (turns(self.rows), turns(self.columns));
        let turn = |turns: &[[f64; 2]], number: u64| turns[(number % turns.len() as u64) as usize];
        let times =
            |a: [f64; 2], b: [f64; 2]| [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
        for row in 0..self.rows {
            let whole = Block::new(row..row + 1, 0..self.columns);
            Contents::again(&self.matrix, &whole, &mut line);
            let mut parts = vec![[0.0; 2]; places.len()];
            for column in 0..self.columns {
                let x =
                    [0, 1].map(|which| f64::from(single(&whole, &line, [row, column], 2, which)));
                squares += x[0] * x[0] + x[1] * x[1];
                for (part, place) in parts.iter_mut().zip(&places) {
                    let term = times(x, turn(&of_columns, column * place[1]));
                    *part = [part[0] + term[0], part[1] + term[1]];
                }
            }
            for ((sum, part), place) in sums.iter_mut().zip(parts).zip(&places) {
                let term = times(part, turn(&of_rows, row * place[0]));
                *sum = [sum[0] + term[0], sum[1] + term[1]];
            }
        }
        let mut checked = Checked::default();
        // The error of a fast transform grows with the logarithm of its length (Higham,
        // Accuracy and Stability of Numerical Algorithms, section 24.1).
        let allowed = 8.0 * f64::from(f32::EPSILON) * (all as f64).log2().max(1.0) * squares.sqrt();
        for (sum, place) in sums.iter().zip(&places) {
            for which in [0, 1] {
                let found = single(block, bytes, *place, 2, which);
                checked.number(f64::from(found), sum[which as usize], allowed);
            }
        }
        checked
    }
}

struct Lines {
    extent: Extent,
    tile: u64,
    along: Along,
    from: SpaceId,
    to: SpaceId,
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

    fn part(&self, space: SpaceId, subtask: u64) -> Part {
        Part {
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

    fn reads(&self, subtask: u64) -> Vec<Part> {
        vec![self.part(self.from, subtask)]
    }

    fn writes(&self, subtask: u64) -> Vec<Part> {
        vec![self.part(self.to, subtask)]
    }

    fn cost(&self, subtask: u64) -> Cost {
        self.shape(subtask).cost()
    }
}

impl Computed for Lines {
    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        let shape = self.shape(subtask);
        SubtaskLaunch {
            codelet: Arc::new(shape.codelet()),
            units: 0..shape.units(),
            values: shape.values().to_vec(),
        }
    }
}
