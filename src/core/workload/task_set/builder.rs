//! What all task sets share: data of the sizes that the tasks' bodies need, and
//! kernels in the set's order.

use fastrand::Rng;

use super::operation::{self, Codelets, Numbers, Operation};
use super::{Body, Order, TaskSet, TaskSetError};
use crate::codelet::mix::Mix;
use crate::codelet::{Element, Name, Value};
use crate::graph::{Argument, Contents, Datum, DatumId, GraphBuilder, Kernel, KernelId, TaskGraph};
use crate::random::uniform;

/// Most bytes of a tile of checking tasks.
const MOST_MIXED: f64 = 64.0;

/// Collects data and tasks.
pub(super) struct Builder<'a> {
    pub(super) set: &'a TaskSet,
    graph: GraphBuilder,
    tasks: Vec<Task>,
    /// Tasks of which the first runs before the second, whatever data they have.
    order: Vec<(usize, usize)>,
}

struct Task {
    name: Name,
    operation: Operation,
    arguments: Vec<Argument>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(set: &'a TaskSet) -> Self {
        Self {
            set,
            graph: GraphBuilder::default(),
            tasks: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Adds a tile of factors that the host gives, of these rows and columns.
    pub(super) fn given(
        &mut self,
        name: String,
        (rows, columns): (u32, u32),
        element: Element,
        numbers: Numbers,
    ) -> DatumId {
        let bytes = self.bytes((rows, columns), element);
        self.given_bytes(name, bytes, |seed| numbers.contents(seed, columns, element))
    }

    /// Adds a datum of so many bytes that the host gives; `real` makes its contents
    /// for real arithmetic.
    pub(super) fn given_bytes(
        &mut self,
        name: String,
        bytes: u64,
        real: impl FnOnce(u64) -> Contents,
    ) -> DatumId {
        let seed = operation::seed(self.set.seed, self.graph.data().len());
        let contents = match self.set.body {
            Body::Model => Contents::zeros(),
            Body::Mix => operation::bytes(seed),
            Body::Real => real(seed),
        };
        self.graph.datum(Datum::new(name, bytes).with(contents))
    }

    /// Adds a tile of results of these rows and columns that a task makes.
    pub(super) fn made(&mut self, name: String, size: (u32, u32), wanted: bool) -> DatumId {
        let bytes = self.bytes(size, self.set.precision.sums().into());
        self.made_bytes(name, bytes, wanted)
    }

    /// Adds a datum of so many bytes that a task makes.
    pub(super) fn made_bytes(&mut self, name: String, bytes: u64, wanted: bool) -> DatumId {
        let datum = Datum::new(name, bytes);
        self.graph.datum(Datum { wanted, ..datum })
    }

    /// Adds the next version of a datum.
    pub(super) fn version(&mut self, name: String, of: DatumId, wanted: bool) -> DatumId {
        let bytes = self.graph.data()[of.0].bytes;
        self.made_bytes(name, bytes, wanted)
    }

    /// Bytes of all data that a task with these memories reads and writes.
    pub(super) fn traffic(&self, memories: &[Argument]) -> u64 {
        let data = memories.iter().flat_map(|of| [of.reads(), of.writes()]);
        data.flatten()
            .map(|datum| self.graph.data()[datum.0].bytes)
            .sum()
    }

    /// Adds a task with these memories, in the order of its operation.
    pub(super) fn task(&mut self, name: String, operation: Operation, arguments: Vec<Argument>) {
        self.tasks.push(Task {
            name: name.into(),
            operation,
            arguments,
        });
    }

    /// Lets one task, by its number, end before another begins.
    pub(super) fn order(&mut self, before: usize, after: usize) {
        self.order.push((before, after));
    }

    /// `count` of the numbers below `all`, at random, in ascending order.
    pub(super) fn choose(&self, all: u64, count: u64) -> Vec<u64> {
        let mut rng = Rng::with_seed(self.set.seed);
        let mut chosen = rng.choose_multiple(0..all, count as usize);
        chosen.sort_unstable();
        chosen
    }

    /// The graph of all tasks.
    pub(super) fn finish(mut self) -> Result<TaskGraph, TaskSetError> {
        let mut numbers: Vec<usize> = (0..self.tasks.len()).collect();
        if self.set.order == Order::Random {
            Rng::with_seed(self.set.seed).shuffle(&mut numbers);
        }
        let mut places = vec![KernelId(0); numbers.len()];
        let mut operations = Codelets::default();
        let mut mixes = Codelets::default();
        for number in numbers {
            let name = self.tasks[number].name.clone();
            let operation = self.tasks[number].operation;
            let memories = std::mem::take(&mut self.tasks[number].arguments);
            let precision = self.set.precision;
            // Tasks of any cost share a codelet.
            let key = match operation {
                Operation::Any(_) => Operation::Any(Default::default()),
                named => named,
            };
            let (codelet, units, arguments) = match self.set.body {
                Body::Model => {
                    let codelet = operations.get(key, |of| of.model(precision));
                    (codelet, operation.units(), memories)
                }
                Body::Real => {
                    let codelet = operations.get(key, Operation::codelet);
                    let mut arguments = memories;
                    let values = operation.values();
                    arguments.extend(values.into_iter().map(Argument::Value));
                    (codelet, operation.units(), arguments)
                }
                Body::Mix => {
                    let (mix, arguments) = self.mix(number, &name, memories);
                    let codelet = mixes.get(mix, Mix::codelet);
                    (codelet, mix.units(), arguments)
                }
            };
            places[number] = self.graph.kernel(Kernel {
                name,
                codelet,
                units: 0..units,
                arguments,
                cost: operation.cost(),
                prefers: None,
            });
        }
        for (before, after) in self.order {
            self.graph.order(places[before], places[after]);
        }
        Ok(self.graph.build()?)
    }

    /// The arguments of a checking task with these memories. It gets a result that
    /// the host wants if it has none.
    fn mix(
        &mut self,
        number: usize,
        name: &Name,
        mut memories: Vec<Argument>,
    ) -> (Mix, Vec<Argument>) {
        if memories.iter().all(|memory| memory.writes().is_none()) {
            let result = self.made(format!("{name}.result"), (1, 1), true);
            memories.push(Argument::FullOutput(result));
        }
        // An output that may be written in part begins with zeros, which a task
        // checks if it reads them.
        let kind = |memory: &Argument| match memory {
            Argument::Input(_)
            | Argument::Value(_)
            | Argument::Again(_)
            | Argument::Stride { .. }
            | Argument::First { .. } => 0,
            Argument::InOut { .. } | Argument::Output(_) => 1,
            Argument::FullOutput(_) => 2,
        };
        memories.sort_by_key(kind);
        let count = |of| memories.iter().filter(|memory| kind(memory) == of).count() as u32;
        let mix = Mix {
            reads: count(0),
            updates: count(1),
            writes: count(2),
        };
        let mut arguments: Vec<Argument> =
            (mix.values(number as u64)).map(Argument::Value).to_vec();
        for memory in memories {
            let datum = memory.reads().or(memory.writes());
            let bytes = datum.map_or(0, |datum| self.graph.data()[datum.0].bytes);
            arguments.extend([memory, Argument::Value(Value::U64(bytes))]);
        }
        (mix, arguments)
    }

    /// Bytes of the next tile.
    fn bytes(&self, (rows, columns): (u32, u32), element: Element) -> u64 {
        match self.set.body {
            Body::Mix => {
                let random = uniform(self.set.seed, self.graph.data().len() as u64);
                1 + (MOST_MIXED * random) as u64
            }
            Body::Model | Body::Real => u64::from(rows) * u64::from(columns) * element.bytes(),
        }
    }
}
