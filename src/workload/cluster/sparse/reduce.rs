//! A task that sums over a vector: a band a subtask, whose sums are combined.

use std::sync::Arc;

use super::bands::Bands;
use super::step::part;
use crate::cluster::space::{Part, SpaceId};
use crate::cluster::task::{Combine, Computed, SubtaskLaunch, Task};
use crate::codelet::sums::{SLOTS, Sums, adder};
use crate::codelet::{Codelet, Cost, Value};

pub(super) struct Reduce {
    pub bands: Arc<Bands>,
    pub sums: Sums,
    pub codelet: Arc<Codelet>,
    /// The vectors, in the codelet's order.
    pub vectors: Vec<SpaceId>,
    pub totals: SpaceId,
}

impl Reduce {
    fn numbers(&self, subtask: u64) -> u64 {
        let rows = self.bands.rows(subtask);
        rows.end - rows.start
    }
}

impl Task for Reduce {
    fn name(&self) -> &str {
        "sums"
    }

    fn count(&self) -> u64 {
        self.bands.count()
    }

    fn reads(&self, subtask: u64) -> Vec<Part> {
        let vectors = self.vectors.iter();
        vectors
            .map(|space| part(*space, self.bands.rows(subtask)))
            .collect()
    }

    fn writes(&self, _subtask: u64) -> Vec<Part> {
        vec![part(self.totals, 0..2 * u64::from(SLOTS))]
    }

    fn cost(&self, subtask: u64) -> Cost {
        let precision = self.bands.precision();
        self.sums.cost(self.numbers(subtask), precision)
    }

    fn reduces(&self) -> bool {
        true
    }
}

impl Computed for Reduce {
    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        SubtaskLaunch {
            codelet: Arc::clone(&self.codelet),
            units: 0..SLOTS.into(),
            // A matrix has fewer rows than 32 bits count.
            values: vec![Value::U32(self.numbers(subtask) as u32).into()],
        }
    }

    fn combine(&self) -> Option<Combine> {
        Some(Arc::new(adder(self.bands.precision())))
    }
}
