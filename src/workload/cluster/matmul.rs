//! The product of two dense matrices of singles, `C = A B` (Unicorn, section V).

use std::sync::Arc;

use super::tiles::Tiles;
use super::verify::{positions, single};
use super::{Check, ClusterWorkload, Contents, Fill, NewSpace, Placement};
use crate::cluster::record::Checked;
use crate::cluster::space::{Block, Extent, Part, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, Task};
use crate::codelet::gemm::Gemm;
use crate::codelet::{Cost, Value};

/// A product. A is `rows x depth`, B `depth x columns`.
#[derive(Clone)]
pub struct MatmulWorkload {
    pub rows: u64,
    pub columns: u64,
    pub depth: u64,
    /// Rows and columns of a subtask's block of C.
    pub tile: u64,
    pub placement: Placement,
    pub a: Fill,
    pub b: Fill,
}

fn singles(rows: u64, columns: u64) -> Extent {
    Extent {
        rows,
        columns,
        element: 4,
    }
}

impl ClusterWorkload for MatmulWorkload {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn spaces(&self) -> Vec<NewSpace> {
        let given = |extent: Extent, fill: &Fill| NewSpace {
            extent,
            contents: Some(Contents::placed(self.placement, Arc::clone(fill))),
        };
        vec![
            given(singles(self.rows, self.depth), &self.a),
            given(singles(self.depth, self.columns), &self.b),
            NewSpace {
                extent: singles(self.rows, self.columns),
                contents: None,
            },
        ]
    }

    fn tasks(&self) -> u64 {
        1
    }

    fn task(&self, _number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(MatmulTask {
            tiles: Tiles::new(singles(self.rows, self.columns), [self.tile, self.tile]),
            depth: self.depth,
            spaces: [spaces[0], spaces[1], spaces[2]],
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

impl MatmulWorkload {
    fn compare(&self, block: &Block, bytes: &[u8], seed: u64) -> Checked {
        let mut checked = Checked::default();
        let (mut a, mut b) = (
            vec![0; 4 * self.depth as usize],
            vec![0; 4 * self.depth as usize],
        );
        for [row, column] in positions(block, seed) {
            let line = Block::new(row..row + 1, 0..self.depth);
            let pile = Block::new(0..self.depth, column..column + 1);
            Contents::again(&self.a, &line, &mut a);
            Contents::again(&self.b, &pile, &mut b);
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for at in 0..self.depth {
                let a = f64::from(single(&line, &a, [row, at], 1, 0));
                let b = f64::from(single(&pile, &b, [at, column], 1, 0));
                sum += a * b;
                magnitude += (a * b).abs();
            }
            let found = single(block, bytes, [row, column], 1, 0);
            let rounding = self.depth as f64 * f64::from(f32::EPSILON);
            let allowed = rounding * magnitude + f64::from(f32::MIN_POSITIVE);
            checked.number(f64::from(found), sum, allowed);
        }
        checked
    }
}

struct MatmulTask {
    tiles: Tiles,
    depth: u64,
    spaces: [SpaceId; 3],
}

impl MatmulTask {
    fn shape(&self, subtask: u64) -> Gemm {
        let block = self.tiles.block(subtask);
        Gemm {
            rows: block.height() as u32,
            columns: block.width() as u32,
            depth: self.depth as u32,
            ..Gemm::square(0)
        }
    }
}

impl Task for MatmulTask {
    fn name(&self) -> &str {
        "matmul"
    }

    fn count(&self) -> u64 {
        self.tiles.count()
    }

    fn reads(&self, subtask: u64) -> Vec<Part> {
        let block = self.tiles.block(subtask);
        vec![
            Part {
                space: self.spaces[0],
                block: Block::new(block.rows, 0..self.depth),
            },
            Part {
                space: self.spaces[1],
                block: Block::new(0..self.depth, block.columns),
            },
        ]
    }

    fn writes(&self, subtask: u64) -> Vec<Part> {
        vec![Part {
            space: self.spaces[2],
            block: self.tiles.block(subtask),
        }]
    }

    fn cost(&self, subtask: u64) -> Cost {
        self.shape(subtask).cost()
    }
}

impl Computed for MatmulTask {
    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        let gemm = self.shape(subtask);
        let values: Vec<Value> = gemm.sizes().to_vec();
        SubtaskLaunch {
            codelet: Arc::new(gemm.codelet()),
            units: 0..gemm.units(),
            values,
        }
    }
}
