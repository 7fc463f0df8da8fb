//! The convolution of an image with a square filter (Unicorn, section V).

use std::sync::Arc;

use super::program::{CodeletTask, Program, Uses};
use super::tiles::Tiles;
use super::{Contents, Fill, Operation, Place, Placed, Placement};
use crate::cluster::space::{Block, Extent};
use crate::cluster::task::{SubtaskLaunch, SubtaskValue};
use crate::codelet::convolution::{Convolution, codelet};

/// An image of singles, `channels` a pixel.
#[derive(Clone)]
pub struct ConvolutionWorkload {
    pub rows: u64,
    pub columns: u64,
    pub channels: u32,
    /// Rows of the filter, an odd number.
    pub size: u32,
    pub placement: Placement,
    /// The pixels and the filter.
    pub image: Fill,
    pub filter: Fill,
}

const IMAGE: usize = 0;
const FILTER: usize = 1;
const RESULT: usize = 2;

impl ConvolutionWorkload {
    fn extent(&self) -> Extent {
        Extent {
            rows: self.rows,
            columns: self.columns,
            element: 4 * u64::from(self.channels),
        }
    }

    pub(super) fn filter_extent(&self) -> Extent {
        let size = u64::from(self.size);
        Extent {
            rows: size,
            columns: size,
            element: 4,
        }
    }

    pub(super) fn halo(&self, block: &Block) -> Block {
        let radius = u64::from(self.size / 2);
        let widen = |range: &std::ops::Range<u64>, end: u64| {
            range.start.saturating_sub(radius)..(range.end + radius).min(end)
        };
        Block::new(
            widen(&block.rows, self.rows),
            widen(&block.columns, self.columns),
        )
    }
}

impl ConvolutionWorkload {
    /// The operation, in blocks of `alone` rows on one machine by itself.
    pub fn operation(self, alone: u64) -> Operation {
        let (rows, columns) = (self.rows, self.columns);
        Operation {
            title: format!(
                "{rows} x {columns} x {0} with {1} x {1}",
                self.channels, self.size
            ),
            fp64: false,
            bytes: 2 * self.extent().all_bytes() + self.filter_extent().all_bytes(),
            dense: None,
            hosts_only: false,
            outputs: vec![RESULT],
            make: Box::new(move |place, tile| {
                let reach = u64::from(self.size / 2);
                let suits = || match place {
                    Place::Alone(_) => alone,
                    Place::Nodes(fit) => fit.image(rows, columns, reach),
                };
                let tile = tile.unwrap_or_else(suits);
                let parts = format!("blocks of {tile}");
                Ok(Placed::new(self.program(tile), parts, tile))
            }),
        }
    }

    /// The task, in blocks of so many rows and pixels a row.
    pub fn program(&self, tile: u64) -> Program {
        let mut program = Program::new("convolution");
        let image = Contents::placed(self.placement, Arc::clone(&self.image));
        let filter = Contents::placed(Placement::Central, Arc::clone(&self.filter));
        program.add_space(self.extent(), "pixels", Some(image));
        program.add_space(self.filter_extent(), "f32", Some(filter));
        let result = program.add_space(self.extent(), "pixels", None);
        program.set_result_number(result);
        let tiles = Tiles::new(self.extent(), [tile, tile]);
        let codelet = Arc::new(codelet(self.size, self.channels));
        let (of, launched) = (self.clone(), self.clone());
        let uses = move |subtask| {
            let block = tiles.block(subtask);
            Uses {
                reads: vec![
                    (IMAGE, of.halo(&block)),
                    (FILTER, of.filter_extent().whole()),
                ],
                cost: of.shape(&block).cost(),
                writes: vec![(RESULT, block)],
            }
        };
        let launch = move |subtask| {
            let shape = launched.shape(&tiles.block(subtask));
            SubtaskLaunch {
                codelet: Arc::clone(&codelet),
                units: 0..shape.units(),
                values: (SubtaskValue::place(0, 4).into_iter())
                    .chain(SubtaskValue::place(2, 4))
                    .chain(shape.sizes().map(SubtaskValue::from))
                    .collect(),
            }
        };
        program.add_task(CodeletTask::new("convolution", tiles.count(), uses, launch));
        let of = self.clone();
        program.set_compare(move |block, bytes, seed| of.compare(block, bytes, seed));
        program
    }

    fn shape(&self, block: &Block) -> Convolution {
        let around = self.halo(block);
        Convolution {
            rows: block.height() as u32,
            columns: block.width() as u32,
            in_rows: around.height() as u32,
            in_columns: around.width() as u32,
            above: (block.rows.start - around.rows.start) as u32,
            left: (block.columns.start - around.columns.start) as u32,
            size: self.size,
            channels: self.channels,
        }
    }
}
