//! A task that multiplies a banded matrix with a vector: a band a subtask.

use std::sync::Arc;

use super::Spaces;
use super::bands::Bands;
use crate::cluster::space::{Block, Part, SpaceId};
use crate::cluster::task::{Computed, ReadArgument, SubtaskLaunch, SubtaskValue, Task};
use crate::codelet::spmv::band::Affine;
use crate::codelet::sums::SLOTS;
use crate::codelet::{Codelet, Cost};

pub(super) struct Product {
    pub bands: Arc<Bands>,
    pub codelet: Arc<Codelet>,
    pub affine: Affine,
    pub spaces: Spaces,
    pub from: SpaceId,
    pub to: SpaceId,
}

/// A range of a vector.
pub(super) fn part(space: SpaceId, columns: std::ops::Range<u64>) -> Part {
    Part {
        space,
        block: Block::new(0..1, columns),
    }
}

impl Task for Product {
    fn name(&self) -> &str {
        "product"
    }

    fn count(&self) -> u64 {
        self.bands.count()
    }

    fn reads(&self, subtask: u64) -> Vec<Part> {
        let (rows, entries) = (self.bands.rows(subtask), self.bands.entries(subtask));
        let vector = self.bands.reads(subtask).iter().cloned();
        let vector = vector.map(|range| part(self.from, range));
        let others = [
            part(self.spaces.columns, entries.clone()),
            part(self.spaces.values, entries),
            part(self.spaces.ends, rows),
            part(self.spaces.totals, 0..SLOTS.into()),
        ];
        vector.chain(others).collect()
    }

    fn writes(&self, subtask: u64) -> Vec<Part> {
        vec![part(self.to, self.bands.rows(subtask))]
    }

    /// Each entry, row and number of the vector once.
    fn cost(&self, subtask: u64) -> Cost {
        let count = |range: std::ops::Range<u64>| range.end - range.start;
        let (entries, rows) = (
            count(self.bands.entries(subtask)),
            count(self.bands.rows(subtask)),
        );
        let vector: u64 = self.bands.reads(subtask).iter().cloned().map(count).sum();
        let number = self.bands.precision().bytes();
        Cost {
            flops: (2 * (entries + rows)) as f64,
            bytes: (entries * (4 + number) + rows * (4 + number) + vector * number) as f64,
        }
    }
}

impl Computed for Product {
    fn is_compact(&self) -> bool {
        true
    }

    /// The ranges of the vector are one argument.
    fn read_arguments(&self, subtask: u64) -> Vec<ReadArgument> {
        let reads = self.reads(subtask);
        let arguments = reads.chunk_by(|a, b| a.space == b.space);
        arguments
            .map(|parts| ReadArgument::compact(parts.to_vec()))
            .collect()
    }

    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        let rows = self.bands.rows(subtask);
        // A matrix has fewer rows than 32 bits count.
        let rows = (rows.end - rows.start) as u32;
        SubtaskLaunch {
            codelet: Arc::clone(&self.codelet),
            units: 0..rows.into(),
            values: (self.affine.values(rows, self.bands.precision()).into_iter())
                .map(SubtaskValue::from)
                .collect(),
        }
    }
}
