//! A workload over spaces as one task graph, for a machine that has all of its blocks: its
//! subtasks are kernels, and their blocks are data at places of the spaces. Kernels of
//! several tasks run side by side where their blocks allow it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use fastrand::Rng;
use thiserror::Error;

use super::{ClusterWorkload, FillError, NewSpace, demand};
use crate::cluster::space::{Block, Directory, Extent, SpaceBlock, SpaceId, Spaces};
use crate::cluster::task::{Computed, SubtaskValue, TaskError, check};
use crate::codelet::Name;
use crate::graph::{
    Argument, Contents, Datum, DatumId, GraphBuilder, GraphError, HostSpace, HostSpaceId, Kernel,
    MOST_TASKS, Place, SpaceContents, TaskGraph, check_tasks, go_on,
};

/// Why a workload is no task graph.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WorkloadGraphError {
    #[error(transparent)]
    Task(#[from] TaskError),

    #[error(transparent)]
    Graph(#[from] GraphError),

    #[error(
        "{task} reads rows {rows:?} and columns {columns:?} of space {space}, which no task \
         before it writes and which has no contents",
        rows = part.block.rows, columns = part.block.columns, space = part.space.0
    )]
    NoContents { task: String, part: SpaceBlock },

    #[error("{task} {why}, which a single task graph cannot do")]
    Unsuited { task: String, why: &'static str },
}

impl WorkloadGraphError {
    /// Whether it was stopped before it was complete.
    pub fn is_stopped(&self) -> bool {
        matches!(
            self,
            Self::Task(TaskError::Stopped) | Self::Graph(GraphError::Stopped)
        )
    }
}

/// A workload as a task graph.
pub struct WorkloadGraph {
    pub graph: TaskGraph,
    /// The extents of the workload's spaces, in its order. A space of the graph has the same
    /// number.
    pub extents: Vec<Extent>,
    /// For each space, the blocks that were written last.
    pub written: Vec<Vec<Block>>,
    /// The first error of making contents.
    pub error: Arc<OnceLock<FillError>>,
}

impl WorkloadGraph {
    /// The graph of all tasks of a workload. The host wants these of its spaces at the end.
    /// Policies learn of the tasks in a random order if there is a seed for it.
    ///
    /// # Errors
    /// Blocks outside of their spaces, or written twice by a task; blocks without contents;
    /// tasks that depend on data, reduce, or take their blocks without gaps; more tasks than
    /// memory has room for; and `stop`.
    pub fn new(
        workload: &dyn ClusterWorkload,
        wanted: &[usize],
        shuffled: Option<u64>,
        stop: &AtomicBool,
    ) -> Result<Self, WorkloadGraphError> {
        check_tasks(demand::subtasks(workload, MOST_TASKS))?;
        let mut making = Making::new(workload.spaces());
        let ids: Vec<SpaceId> = (0..making.spaces.len() as u32).map(SpaceId).collect();
        for number in 0..workload.tasks() {
            let task = workload.task(number, &ids);
            if workload.depends(number).is_some() || task.reduces() {
                return Err(WorkloadGraphError::Unsuited {
                    task: task.name().to_owned(),
                    why: "depends on what the tasks before it have computed, or reduces",
                });
            }
            check(&*task, &making.known, stop)?;
            making.task(&*task, stop)?;
        }
        if let Some(seed) = shuffled {
            Rng::with_seed(seed).shuffle(&mut making.kernels);
        }
        making.build(wanted)
    }
}

struct Making {
    graph: GraphBuilder,
    kernels: Vec<Kernel>,
    spaces: Vec<Space>,
    /// The same spaces, for the check of tasks.
    known: Spaces,
    /// The block of each datum.
    blocks: HashMap<DatumId, Block>,
    error: Arc<OnceLock<FillError>>,
}

/// The data of a space.
struct Space {
    host: HostSpaceId,
    extent: Extent,
    has_contents: bool,
    /// What was written last.
    written: Directory<DatumId>,
    /// First contents that subtasks have read, which may overlap.
    given: HashMap<Block, DatumId>,
    /// Views of what has not been written since.
    views: HashMap<Block, DatumId>,
}

impl Space {
    fn place(&self, block: &Block) -> Place {
        let element = self.extent.element;
        Place {
            space: self.host,
            rows: block.rows.clone(),
            columns: block.columns.start * element..block.columns.end * element,
        }
    }
}

impl Making {
    fn new(spaces: Vec<NewSpace>) -> Self {
        let mut graph = GraphBuilder::default();
        let mut known = Spaces::default();
        let error: Arc<OnceLock<FillError>> = Arc::default();
        let space = |(number, space): (usize, NewSpace)| {
            let extent = space.extent;
            known.add(extent, []);
            let has_contents = space.contents.is_some();
            let contents = space.contents.map(|contents| {
                let error = Arc::clone(&error);
                SpaceContents::filled(move |place, to| {
                    let columns = &place.columns;
                    let block = Block::new(
                        place.rows.clone(),
                        columns.start / extent.element..columns.end / extent.element,
                    );
                    if let Err(why) = (contents.fill)(&block, to) {
                        // Later errors have the same cause.
                        let _ = error.set(why);
                    }
                })
            });
            Space {
                host: graph.space(HostSpace {
                    name: format!("space {number}").into(),
                    rows: extent.rows,
                    pitch: extent.columns * extent.element,
                    contents,
                }),
                extent,
                has_contents,
                written: Directory::default(),
                given: HashMap::new(),
                views: HashMap::new(),
            }
        };
        let spaces = spaces.into_iter().enumerate().map(space).collect();
        Self {
            spaces,
            graph,
            kernels: Vec::new(),
            known,
            blocks: HashMap::new(),
            error,
        }
    }

    /// Adds the kernels of a task. All of them read what was there before it.
    fn task(&mut self, task: &dyn Computed, stop: &AtomicBool) -> Result<(), WorkloadGraphError> {
        let unsuited = |why| WorkloadGraphError::Unsuited {
            task: task.name().to_owned(),
            why,
        };
        let name = Name::from(task.name().to_owned());
        let mut read = Vec::new();
        for subtask in 0..task.count() {
            go_on(stop)?;
            let (writes, changed) = (task.writes(subtask), task.changes(subtask));
            let changes: Vec<&SpaceBlock> = (writes.iter().zip(&changed))
                .filter_map(|(part, changed)| changed.then_some(part))
                .collect();
            let mut inputs = Vec::new();
            for part in task.reads(subtask) {
                if !changes.contains(&&part) {
                    inputs.push(self.read(task, part)?);
                }
            }
            let mut outputs = Vec::new();
            for (part, changed) in writes.into_iter().zip(changed) {
                let from = match changed {
                    true => Some(self.read(task, part.clone())?),
                    false => None,
                };
                outputs.push((part, from));
            }
            read.push((inputs, outputs));
        }
        let mut parts = read.iter().flat_map(|(_, outputs)| outputs);
        if parts.any(|(part, from)| self.cuts(part, *from)) {
            return Err(unsuited(
                "writes a part of what another task wrote, and not all of it",
            ));
        }
        for (subtask, (inputs, outputs)) in (0..).zip(read) {
            go_on(stop)?;
            let mut memories: Vec<DatumId> = inputs.clone();
            let mut arguments: Vec<Argument> = inputs.into_iter().map(Argument::Input).collect();
            for (part, from) in outputs {
                let to = self.write(&name, &part, from);
                memories.push(to);
                arguments.push(match from {
                    Some(from) => Argument::InOut { from, to },
                    None => Argument::FullOutput(to),
                });
            }
            let launch = task.launch(subtask);
            if task.is_compact() || task.keeps_places(subtask).contains(&true) {
                return Err(unsuited("takes blocks without gaps"));
            }
            let values = launch.values.into_iter().map(|value| match value {
                SubtaskValue::Value(value) => Argument::Value(value),
                SubtaskValue::Memory(memory) => Argument::Again(memories[memory]),
                SubtaskValue::Stride { memory, number } => Argument::Stride {
                    of: memories[memory],
                    number,
                },
                SubtaskValue::First {
                    memory,
                    number,
                    row,
                    column,
                } => Argument::First {
                    of: memories[memory],
                    number,
                    row,
                    column,
                },
            });
            arguments.extend(values);
            self.kernels.push(Kernel {
                name: name.clone(),
                codelet: launch.codelet,
                units: launch.units,
                arguments,
                cost: task.cost(subtask),
                prefers: None,
            });
        }
        for space in &mut self.spaces {
            space.views.clear();
        }
        Ok(())
    }

    /// The datum that a subtask reads as a part.
    fn read(
        &mut self,
        task: &dyn Computed,
        part: SpaceBlock,
    ) -> Result<DatumId, WorkloadGraphError> {
        let space = &self.spaces[part.space.0 as usize];
        let held: Vec<(Block, DatumId)> = space.written.holders(&part.block).collect();
        if let [(_, datum)] = &held[..]
            && self.blocks[datum] == part.block
        {
            return Ok(*datum);
        }
        if let Some(view) = space.views.get(&part.block) {
            return Ok(*view);
        }
        let mut rest = vec![part.block.clone()];
        for (block, _) in &held {
            rest = rest.iter().flat_map(|rest| rest.without(block)).collect();
        }
        if !rest.is_empty() && !space.has_contents {
            return Err(WorkloadGraphError::NoContents {
                task: task.name().to_owned(),
                part,
            });
        }
        if held.is_empty() {
            return Ok(self.given(&part));
        }
        let mut pieces: Vec<DatumId> = held.iter().map(|(_, datum)| *datum).collect();
        for block in rest {
            let space = part.space;
            pieces.push(self.given(&SpaceBlock { space, block }));
        }
        let mut seen = HashSet::new();
        pieces.retain(|piece| seen.insert(*piece));
        let space = &mut self.spaces[part.space.0 as usize];
        let view = Datum::view("view", space.place(&part.block), pieces);
        let view = self.graph.datum(view);
        space.views.insert(part.block.clone(), view);
        self.blocks.insert(view, part.block);
        Ok(view)
    }

    /// The first contents of a part.
    fn given(&mut self, part: &SpaceBlock) -> DatumId {
        let space = &mut self.spaces[part.space.0 as usize];
        let (graph, blocks) = (&mut self.graph, &mut self.blocks);
        let place = space.place(&part.block);
        *space.given.entry(part.block.clone()).or_insert_with(|| {
            let datum = graph.datum(Datum::at("given", place).with(Contents::OfSpace));
            blocks.insert(datum, part.block.clone());
            datum
        })
    }

    /// Whether a part overlaps what was written before, and does not cover it: its copy to the
    /// host would have to go around the rest.
    fn cuts(&self, part: &SpaceBlock, from: Option<DatumId>) -> bool {
        let space = &self.spaces[part.space.0 as usize];
        let mut held = space.written.holders(&part.block);
        held.any(|(_, datum)| Some(datum) != from && !part.block.contains(&self.blocks[&datum]))
    }

    /// The datum that a subtask writes as a part, in the place of another one if it changes
    /// that.
    fn write(&mut self, name: &Name, part: &SpaceBlock, from: Option<DatumId>) -> DatumId {
        let space = &mut self.spaces[part.space.0 as usize];
        let held = space.written.holders(&part.block).map(|(_, datum)| datum);
        let given = space.given.iter();
        let given = given.filter(|(block, _)| block.common(&part.block).is_some());
        let old = held.chain(given.map(|(_, datum)| *datum));
        let mut old: Vec<DatumId> = old.filter(|datum| Some(*datum) != from).collect();
        old.sort_unstable();
        old.dedup();
        let datum = Datum::at(name.clone(), space.place(&part.block)).over(old);
        let datum = self.graph.datum(datum);
        space.written.set(&part.block, datum);
        self.blocks.insert(datum, part.block.clone());
        datum
    }

    fn build(mut self, wanted: &[usize]) -> Result<WorkloadGraph, WorkloadGraphError> {
        for kernel in self.kernels {
            self.graph.kernel(kernel);
        }
        let mut written = Vec::new();
        for (number, space) in self.spaces.iter().enumerate() {
            let whole = space.extent.whole();
            let held: Vec<(Block, DatumId)> = space.written.holders(&whole).collect();
            for (_, datum) in &held {
                if let Some(datum) = self.graph.datum_mut(*datum) {
                    datum.wanted = wanted.contains(&number);
                }
            }
            written.push(held.into_iter().map(|(block, _)| block).collect());
        }
        Ok(WorkloadGraph {
            graph: self.graph.build()?,
            extents: self.spaces.iter().map(|space| space.extent).collect(),
            written,
            error: self.error,
        })
    }
}
