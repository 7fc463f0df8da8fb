//! Programs of operations on tiles of matrices, each of which is a task: what every one reads
//! and changes decides which run side by side.

use std::sync::Arc;

use super::Contents;
use super::program::{CodeletTask, Program, Uses};
use crate::cluster::space::{Block, Extent};
use crate::cluster::task::{SubtaskLaunch, SubtaskValue};
use crate::codelet::{Codelet, Element};
use crate::workload::task_set::{Codelets, Operation};

/// A tile: the space of its matrix, and its place there.
pub(super) type Tile = (usize, Block);

/// A program while its tasks are added.
pub(super) struct TileProgram {
    pub program: Program,
    codelets: Codelets<Operation>,
}

/// A task on tiles: the last one is changed, or written.
struct TileTask {
    operation: Operation,
    codelet: Arc<Codelet>,
    inputs: Vec<Tile>,
    to: Tile,
    is_changed: bool,
    /// Bytes of a number of each tile.
    numbers: Vec<u32>,
}

impl TileProgram {
    pub fn new(name: &'static str) -> Self {
        Self {
            program: Program::new(name),
            codelets: Codelets::default(),
        }
    }

    /// Adds a matrix. Returns the number of its space.
    pub fn matrix(
        &mut self,
        (rows, columns): (u64, u64),
        element: Element,
        contents: Option<Contents>,
    ) -> usize {
        let extent = Extent {
            rows,
            columns,
            element: element.bytes(),
        };
        self.program.add_space(extent, element.name(), contents)
    }

    /// Adds a task, whose operation gets `inputs` and then the tile that it changes or writes.
    pub fn task(
        &mut self,
        name: String,
        operation: Operation,
        inputs: Vec<Tile>,
        to: Tile,
        is_changed: bool,
    ) {
        let codelet = self.codelets.get(operation, Operation::codelet);
        let tiles = inputs.iter().chain([&to]);
        let numbers = tiles.map(|(space, _)| self.program.extent(*space).element as u32);
        let of = Arc::new(TileTask {
            operation,
            codelet,
            numbers: numbers.collect(),
            inputs,
            to,
            is_changed,
        });
        let launched = Arc::clone(&of);
        let uses = move |_| of.uses();
        let launch = move |_| launched.launch();
        self.program
            .add_task(CodeletTask::new(name, 1, uses, launch));
    }
}

impl TileTask {
    fn uses(&self) -> Uses {
        let changed = self.is_changed.then(|| self.to.clone());
        Uses {
            reads: self.inputs.iter().cloned().chain(changed).collect(),
            writes: vec![self.to.clone()],
            cost: self.operation.cost(),
        }
    }

    fn launch(&self) -> SubtaskLaunch {
        let values = self.operation.values().into_iter();
        let mut values: Vec<SubtaskValue> = values.map(SubtaskValue::from).collect();
        let strides = self.operation.strides();
        for (memory, number) in self.numbers.iter().enumerate() {
            let [first, stride] = SubtaskValue::place(memory, *number);
            values[strides + memory] = stride;
            values[strides + self.numbers.len() + memory] = first;
        }
        SubtaskLaunch {
            codelet: Arc::clone(&self.codelet),
            units: 0..self.operation.units(),
            values,
        }
    }
}
