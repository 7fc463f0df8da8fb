//! The product of two dense matrices of singles, `C = A B` (Unicorn, section V).

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use super::tiles::Tiles;
use super::{Check, ClusterWorkload, Contents, Fill, NewSpace, Placement};
use crate::cluster::space::{Block, Extent, SpaceBlock, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, SubtaskValue, Task};
use crate::codelet::gemm::Gemm;
use crate::codelet::{Cost, Precision};
use crate::verify::product::{Matrix, MatrixPart, Product};
use crate::verify::{Checked, Rounding, numbers};

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
        let tiles = Tiles::new(singles(self.rows, self.columns), [self.tile, self.tile]);
        Arc::new(MatmulTask {
            order: OnceLock::new(),
            tiles,
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

/// Numbers of the given matrices that are read at once.
const READ: u64 = 1 << 22;

impl MatmulWorkload {
    /// Checks a block as the product of rows of A and columns of B, with random vectors.
    fn compare(&self, block: &Block, bytes: &[u8], seed: u64) -> Checked {
        let (rows, columns) = (block.height(), block.width());
        let product = Product {
            rows,
            columns,
            depth: self.depth,
            group: columns,
            rounding: Rounding::from(Precision::F32),
            // Not that of generated matrices.
            seed: seed.wrapping_add(1 << 32),
        };
        let given = |of: &Fill, part: &Block| {
            let mut bytes = vec![0; 4 * part.elements() as usize];
            Contents::again(of, part, &mut bytes);
            numbers(&bytes, Precision::F32)
        };
        // A piece of the depth.
        let step = (READ / rows.max(columns)).clamp(1, self.depth) as usize;
        let pieces = (0..self.depth).step_by(step);
        let pieces = pieces.map(|begin| begin..(begin + step as u64).min(self.depth));
        let mut source = |matrix, act: &mut dyn FnMut(MatrixPart)| {
            match matrix {
                Matrix::A => pieces.clone().for_each(|piece| {
                    let of = Block::new(block.rows.clone(), piece.clone());
                    act(MatrixPart {
                        rows: 0..rows,
                        columns: piece,
                        numbers: given(&self.a, &of),
                    });
                }),
                Matrix::B => pieces.clone().for_each(|piece| {
                    let of = Block::new(piece.clone(), block.columns.clone());
                    act(MatrixPart {
                        rows: piece,
                        columns: 0..columns,
                        numbers: given(&self.b, &of),
                    });
                }),
                Matrix::C => act(MatrixPart {
                    rows: 0..rows,
                    columns: 0..columns,
                    numbers: numbers(bytes, Precision::F32),
                }),
            }
            Ok::<bool, Infallible>(true)
        };
        let Ok(Some(verification)) = product.verify(&mut source) else {
            unreachable!("nothing interrupts it");
        };
        verification.checked(block.elements())
    }
}

struct MatmulTask {
    tiles: Tiles,
    /// The block of each subtask: a node that computes them in their order needs few rows of A
    /// and columns of B for many blocks. Made when it is needed, as they may be too many.
    order: OnceLock<Arc<[u64]>>,
    depth: u64,
    spaces: [SpaceId; 3],
}

impl MatmulTask {
    fn block(&self, subtask: u64) -> Block {
        let order = self.order.get_or_init(|| self.tiles.nested());
        self.tiles.block(order[subtask as usize])
    }

    fn shape(&self, subtask: u64) -> Gemm {
        let block = self.block(subtask);
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

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        let block = self.block(subtask);
        vec![
            SpaceBlock {
                space: self.spaces[0],
                block: Block::new(block.rows, 0..self.depth),
            },
            SpaceBlock {
                space: self.spaces[1],
                block: Block::new(0..self.depth, block.columns),
            },
        ]
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        vec![SpaceBlock {
            space: self.spaces[2],
            block: self.block(subtask),
        }]
    }

    fn cost(&self, subtask: u64) -> Cost {
        self.shape(subtask).cost()
    }
}

impl Computed for MatmulTask {
    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        let gemm = self.shape(subtask);
        SubtaskLaunch {
            codelet: Arc::new(gemm.codelet()),
            units: 0..gemm.units(),
            values: gemm.sizes().map(SubtaskValue::from).to_vec(),
        }
    }
}
