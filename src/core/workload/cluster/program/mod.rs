//! Workloads of users in safe Rust: typed spaces, and tasks that compute blocks of them with
//! functions.
//!
//! A function sees only what its subtask names, as views that know where their elements are
//! in the space. Blocks that two subtasks write are refused when the task begins.
//!
//! ```
//! use pdawl_core::cluster::space::Block;
//! use pdawl_core::workload::cluster::program::{ProgramTask, Program};
//!
//! // The mean of each number and its neighbours in the row, in bands of 16 rows.
//! let mut program = Program::new("smooth");
//! let image = program.given(64, 100, |row, column| (row * column) as f32);
//! let result = program.space::<f32>(64, 100);
//! let band = |subtask: u64| Block::new(16 * subtask..16 * (subtask + 1), 0..100);
//! let accesses = (image.read(band), result.write(band));
//! program.add_task(ProgramTask::new("smooth", 4, accesses, |_, (image, mut result)| {
//!     for row in result.block().rows.clone() {
//!         for column in 0..100_u64 {
//!             let near = column.saturating_sub(1)..(column + 2).min(100);
//!             let count = (near.end - near.start) as f32;
//!             result[(row, column)] = near.map(|column| image[(row, column)]).sum::<f32>() / count;
//!         }
//!     }
//! }));
//! program.set_result(result);
//! # use pdawl_core::workload::cluster::ClusterWorkload;
//! # assert_eq!((program.tasks(), program.spaces().len()), (1, 2));
//! ```
//!
//! A session's `Nodes` runs it, and `cluster::simulate::simulate_workload` simulates it.

mod access;
mod collect;
mod kernel;
mod order;
mod subscription;
mod task;
mod touch;

use std::collections::HashMap;
use std::sync::Arc;

use bytemuck::Pod;
use thiserror::Error;

pub use access::{
    Access, Bytes, Gather, Gathered, Read, Space, Subscription, View, ViewMut, Write,
};
pub use collect::{Collected, Yielded};
pub use kernel::{CodeletTask, SubtaskKernel, Uses};
pub use task::{ProgramTask, Unit};
pub use touch::{Touch, Touched};

use self::order::{ProgramCourse, Repeated};
use super::{
    Check, ClusterWorkload, ComputedBlocks, Condition, Contents, Course, Fill, NewSpace, Placement,
    Refusal, RefusalOf,
};
use crate::cluster::space::{Block, Extent, SpaceId};
use crate::cluster::task::Computed;
use crate::cluster::wire::agreement::Agreement;
use crate::verify::Checked;

/// Makes a task from the bytes of a space.
type Make = Box<dyn Fn(&[u8]) -> ProgramTask + Send + Sync>;

/// A task of a program.
pub trait SpaceTask: Send + Sync {
    fn name(&self) -> &str;

    /// The number of its subtasks.
    fn count(&self) -> u64;

    /// The task on a workload's spaces, by the ids that they have in a run.
    fn on(&self, spaces: &[SpaceId]) -> Arc<dyn Computed>;
}

/// A task, and the space that it depends on with the way to make it from its bytes.
struct Step {
    task: Box<dyn SpaceTask>,
    depends: Option<(usize, Make)>,
}

/// Spaces, and tasks one after the other.
pub struct Program {
    name: &'static str,
    spaces: Vec<NewSpace>,
    /// By space, the name of its elements' type.
    elements: Vec<&'static str>,
    steps: Vec<Step>,
    result: usize,
    /// Other spaces that are brought to the first node.
    also: Vec<usize>,
    /// Steps that are repeated, inner ones before those that they are in.
    repeated: Vec<Repeated>,
    /// By space of what was collected: the space of the counts, and where parts begin.
    collected: HashMap<usize, (usize, Arc<[u64]>)>,
    /// What was found wrong while it was made.
    refused: Vec<ProgramError>,
    check: Check<'static>,
    refusal: Option<(usize, RefusalOf<'static>)>,
    is_triangle: bool,
}

impl Program {
    /// A program without spaces and tasks.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            spaces: Vec::new(),
            elements: Vec::new(),
            steps: Vec::new(),
            result: 0,
            also: Vec::new(),
            repeated: Vec::new(),
            collected: HashMap::new(),
            refused: Vec::new(),
            check: Check::Whole(Vec::new(), Box::new(|_, _| Checked::default())),
            refusal: None,
            is_triangle: false,
        }
    }

    /// A space whose elements are given, as a function of row and column. Each node has a
    /// band of its rows at first.
    pub fn given<T: Pod>(
        &mut self,
        rows: u64,
        columns: u64,
        element: impl Fn(u64, u64) -> T + Send + Sync + 'static,
    ) -> Space<T> {
        let fill: Fill = Arc::new(move |block, bytes| {
            let rows = block.rows.clone();
            let places = rows.flat_map(|row| block.columns.clone().map(move |c| (row, c)));
            for (to, (row, column)) in bytes.chunks_exact_mut(size_of::<T>()).zip(places) {
                to.copy_from_slice(bytemuck::bytes_of(&element(row, column)));
            }
            Ok(())
        });
        self.filled(rows, columns, Contents::placed(Placement::Rows, fill))
    }

    /// A space with these contents.
    pub fn filled<T: Pod>(&mut self, rows: u64, columns: u64, contents: Contents) -> Space<T> {
        self.add(rows, columns, Some(contents))
    }

    /// A space that a task writes before another one reads it.
    pub fn space<T: Pod>(&mut self, rows: u64, columns: u64) -> Space<T> {
        self.add(rows, columns, None)
    }

    fn add<T: Pod>(&mut self, rows: u64, columns: u64, contents: Option<Contents>) -> Space<T> {
        let space = Space::at(self.spaces.len(), rows, columns);
        let element = std::any::type_name::<T>();
        self.add_space(space.extent(), element, contents);
        space
    }

    /// Adds a space of elements of which only the bytes are known. Returns its number.
    pub(in crate::workload) fn add_space(
        &mut self,
        extent: Extent,
        element: &'static str,
        contents: Option<Contents>,
    ) -> usize {
        self.spaces.push(NewSpace { extent, contents });
        self.elements.push(element);
        self.spaces.len() - 1
    }

    /// The extent of a space.
    pub(in crate::workload) fn extent(&self, space: usize) -> Extent {
        self.spaces[space].extent
    }

    /// Adds a task. It begins when the one before it has ended.
    pub fn add_task(&mut self, task: impl SpaceTask + 'static) {
        self.steps.push(Step {
            task: Box::new(task),
            depends: None,
        });
    }

    /// Adds tasks in any order, which follows from what they read and write: a task comes after
    /// those that write what it reads. No two of them write the same elements.
    pub fn add_tasks(&mut self, tasks: impl IntoIterator<Item = ProgramTask>) {
        let mut tasks: Vec<Option<ProgramTask>> = tasks.into_iter().map(Some).collect();
        let given: Vec<ProgramTask> = tasks.iter().flatten().cloned().collect();
        match order::ordered(&given, self.spaces.len()) {
            Ok(order) => {
                let ordered = order.into_iter().filter_map(|number| tasks[number].take());
                ordered.for_each(|task| self.add_task(task));
            }
            Err(error) => self.refuse(error),
        }
    }

    /// The tasks before a task, in the order of the program, that must have ended before it
    /// begins, because one of the two writes what the other reads or writes. Repetitions are not
    /// regarded, and a task of [`Self::add_task_by`] uses what is expected of it.
    ///
    /// # Panics
    /// When the program has fewer tasks.
    pub fn dependencies(&self, number: u64) -> Vec<u64> {
        let ids: Vec<SpaceId> = (0..self.spaces.len() as u32).map(SpaceId).collect();
        let on = |number: u64| self.steps[number as usize].task.on(&ids);
        let task = on(number);
        let before = 0..number;
        before
            .filter(|before| order::depends(&*task, &*on(*before)))
            .collect()
    }

    /// Repeats the tasks that `tasks` adds so often.
    pub fn repeat(&mut self, rounds: u64, tasks: impl FnOnce(&mut Self)) {
        self.add_repeated(Some(rounds), None, tasks);
    }

    /// Repeats the tasks that `tasks` adds, once at least, until a condition is met: after each
    /// round the first node gets the elements of a space, which should be small, and which tasks
    /// of the round write. With `most` there are so many rounds at most; without, the
    /// condition alone ends them. A simulation runs one round.
    pub fn repeat_until<T: Pod>(
        &mut self,
        space: Space<T>,
        is_met: impl Fn(&[T]) -> bool + Send + Sync + 'static,
        most: Option<u64>,
        tasks: impl FnOnce(&mut Self),
    ) {
        let is_met = move |bytes: &[u8]| is_met(&bytemuck::pod_collect_to_vec::<u8, T>(bytes));
        let condition = Condition {
            space: space.index,
            is_met: Arc::new(is_met),
        };
        self.add_repeated(most, Some(condition), tasks);
    }

    fn add_repeated(
        &mut self,
        most: Option<u64>,
        until: Option<Condition>,
        tasks: impl FnOnce(&mut Self),
    ) {
        let first = self.steps.len();
        tasks(self);
        let end = self.steps.len();
        if first == end {
            let program = self.name.to_owned();
            return self.refuse(ProgramError::NothingRepeated { program });
        }
        if most == Some(0) {
            let task = self.steps[first].task.name().to_owned();
            return self.refuse(ProgramError::NoRound { task });
        }
        self.repeated.push(Repeated {
            first,
            end,
            most,
            until,
        });
    }

    /// Notes an error, which [`Self::check`] tells.
    fn refuse(&mut self, error: ProgramError) {
        self.refused.push(error);
    }

    /// Checks that tasks of a repetition write the space of its condition: nothing would ever
    /// meet it otherwise, and the space might be lost without them.
    fn check_condition(&self, repeated: &Repeated) -> Result<(), ProgramError> {
        let Some(condition) = &repeated.until else {
            return Ok(());
        };
        let steps = &self.steps[repeated.first..repeated.end];
        if steps.iter().any(|step| step.depends.is_some()) {
            // What they write is not known yet.
            return Ok(());
        }
        let Some(space) = self.spaces.get(condition.space) else {
            return Err(ProgramError::OtherSpace {
                program: self.name.to_owned(),
                space: condition.space,
            });
        };
        let ids: Vec<SpaceId> = (0..self.spaces.len() as u32).map(SpaceId).collect();
        let mut rest = vec![space.extent.whole()];
        for step in steps {
            let task = step.task.on(&ids);
            for part in (0..task.count()).flat_map(|subtask| task.writes(subtask)) {
                if part.space == ids[condition.space] {
                    rest = rest
                        .iter()
                        .flat_map(|rest| rest.without(&part.block))
                        .collect();
                }
            }
        }
        match rest.into_iter().next() {
            Some(block) => Err(ProgramError::Condition {
                task: steps[0].task.name().to_owned(),
                space: condition.space,
                block,
            }),
            None => Ok(()),
        }
    }

    /// Adds a task whose blocks depend on the elements of a space, which all nodes get: it
    /// should be small. `expected` is what simulations run.
    pub fn add_task_by<T: Pod>(
        &mut self,
        space: Space<T>,
        expected: ProgramTask,
        make: impl Fn(&[T]) -> ProgramTask + Send + Sync + 'static,
    ) {
        let make = move |bytes: &[u8]| make(&bytemuck::pod_collect_to_vec::<u8, T>(bytes));
        self.steps.push(Step {
            task: Box::new(expected),
            depends: Some((space.index, Box::new(make))),
        });
    }

    /// Says which space is the result; the first one by default.
    pub fn set_result<T>(&mut self, space: Space<T>) {
        self.result = space.index;
    }

    /// As [`Self::set_result`], by the space's number.
    pub(in crate::workload) fn set_result_number(&mut self, space: usize) {
        self.result = space;
    }

    /// Has another space brought to the first node, beside the result.
    pub fn add_result<T>(&mut self, space: Space<T>) {
        self.also.push(space.index);
    }

    /// The spaces that are brought to the first node, the result first.
    pub fn results(&self) -> impl Iterator<Item = usize> {
        [self.result].into_iter().chain(self.also.iter().copied())
    }

    /// The name of the type of a space's elements.
    pub fn element_type(&self, space: usize) -> &'static str {
        self.elements[space]
    }

    /// What all nodes must have alike of it, as far as that can be compared.
    pub fn agreement(&self) -> Agreement {
        let mut agreement = Agreement::default();
        agreement.add("the operation", format!("program {}", self.name));
        for (number, (space, element)) in self.spaces.iter().zip(&self.elements).enumerate() {
            let Extent { rows, columns, .. } = space.extent;
            let given = if space.contents.is_some() {
                ", given"
            } else {
                ""
            };
            let value = format!("{rows} x {columns} of {element}{given}");
            agreement.add(format!("space {number}"), value);
        }
        for (number, step) in self.steps.iter().enumerate() {
            let (name, count) = (step.task.name(), step.task.count());
            let depends = step.depends.as_ref();
            let by = depends.map_or_else(String::new, |(space, _)| format!(" by space {space}"));
            agreement.add(
                format!("task {number}"),
                format!("{name}{by}, {count} subtasks"),
            );
        }
        for repeated in &self.repeated {
            let Repeated {
                first,
                end,
                most,
                until,
            } = repeated;
            let until = until.as_ref().map(|condition| condition.space);
            let value = format!("tasks {first}..{end}, at most {most:?} times, by {until:?}");
            agreement.add("what is repeated", value);
        }
        let results: Vec<String> = self.results().map(|space| space.to_string()).collect();
        agreement.add("the results' spaces", results.join(" "));
        agreement
    }

    /// Checks what can be known before it runs. What tasks read and write is checked when each
    /// begins.
    ///
    /// # Errors
    /// A program without tasks or spaces, results that are none of its spaces, conditions that
    /// no task can meet, and what was wrong when something was added.
    pub fn check(&self) -> Result<(), ProgramError> {
        if let Some(error) = self.refused.first() {
            return Err(error.clone());
        }
        let program = || self.name.to_owned();
        if self.steps.is_empty() {
            return Err(ProgramError::NoTask { program: program() });
        }
        if self.spaces.is_empty() {
            return Err(ProgramError::NoSpace { program: program() });
        }
        let depends = self.steps.iter().filter_map(|step| step.depends.as_ref());
        let depends = depends.map(|(space, _)| *space);
        match depends
            .chain(self.results())
            .find(|of| *of >= self.spaces.len())
        {
            Some(space) => Err(ProgramError::OtherSpace {
                program: program(),
                space,
            }),
            None => (self.repeated.iter()).try_for_each(|repeated| self.check_condition(repeated)),
        }
    }

    /// Says how blocks of the result are compared with a reference.
    pub fn set_compare(
        &mut self,
        compare: impl Fn(&Block, &[u8], u64) -> Checked + Send + Sync + 'static,
    ) {
        self.check = Check::Blocks(Box::new(compare));
    }

    /// Says how these spaces, whole, are compared with a reference.
    pub(in crate::workload) fn set_compare_whole(
        &mut self,
        spaces: Vec<usize>,
        compare: impl Fn(&[&[u8]], u64) -> Checked + Send + Sync + 'static,
    ) {
        self.check = Check::Whole(spaces, Box::new(compare));
    }

    /// Says what may refuse the result, by the bytes of a space.
    pub(in crate::workload) fn set_refusal(
        &mut self,
        space: usize,
        of: impl Fn(&[u8]) -> Option<String> + Send + Sync + 'static,
    ) {
        self.refusal = Some((space, Box::new(of)));
    }

    /// Says that the result is a lower triangle.
    pub(in crate::workload) fn set_triangle(&mut self) {
        self.is_triangle = true;
    }
}

impl ClusterWorkload for Program {
    fn name(&self) -> &'static str {
        self.name
    }

    fn spaces(&self) -> Vec<NewSpace> {
        self.spaces.clone()
    }

    fn tasks(&self) -> u64 {
        self.steps.len() as u64
    }

    fn task(&self, number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        self.steps[number as usize].task.on(spaces)
    }

    fn depends(&self, number: u64) -> Option<usize> {
        let depends = self.steps[number as usize].depends.as_ref();
        depends.map(|(space, _)| *space)
    }

    fn task_by(&self, number: u64, spaces: &[SpaceId], bytes: &[u8]) -> Arc<dyn Computed> {
        let step = &self.steps[number as usize];
        match &step.depends {
            Some((_, make)) => make(bytes).on(spaces),
            None => step.task.on(spaces),
        }
    }

    fn course(&self) -> Box<dyn Course + '_> {
        Box::new(ProgramCourse::new(self.steps.len(), &self.repeated))
    }

    fn computed_blocks(&self, space: usize) -> Option<ComputedBlocks> {
        let (counts, begins) = self.collected.get(&space)?.clone();
        let blocks = move |bytes: &[u8]| {
            collect::blocks(&begins, &bytemuck::pod_collect_to_vec::<u8, u64>(bytes))
        };
        Some(ComputedBlocks {
            counts,
            blocks: Box::new(blocks),
        })
    }

    fn result(&self) -> usize {
        self.result
    }

    fn check(&self) -> Check<'_> {
        match &self.check {
            Check::Blocks(compare) => Check::Blocks(Box::new(compare)),
            Check::Whole(spaces, compare) => Check::Whole(spaces.clone(), Box::new(compare)),
        }
    }

    fn refusal(&self) -> Option<Refusal<'_>> {
        let (space, of) = self.refusal.as_ref()?;
        Some(Refusal {
            space: *space,
            of: Box::new(of),
        })
    }

    fn is_triangle(&self) -> bool {
        self.is_triangle
    }
}

/// A program that cannot run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProgramError {
    #[error("{program} has no task; add one with Program::add_task")]
    NoTask { program: String },

    #[error("{program} has no space; add one with Program::space or Program::given")]
    NoSpace { program: String },

    #[error(
        "{program} has no space {space}, which another program has made; each program uses its \
         own spaces"
    )]
    OtherSpace { program: String, space: usize },

    #[error(
        "tasks {one} and {other} both write rows {rows:?} and columns {columns:?} of space \
         {space}, and nothing says which comes first; add them with Program::add_task one after \
         the other, or let one task reduce",
        rows = block.rows, columns = block.columns
    )]
    TwoWriters {
        one: String,
        other: String,
        space: u32,
        block: Block,
    },

    #[error(
        "tasks wait for each other: each of {tasks:?} reads what the next one writes, and the \
         last one what the first one writes; let one of them write another space"
    )]
    Cycle { tasks: Vec<String> },

    #[error("{program} repeats no tasks; let the function that is given add some")]
    NothingRepeated { program: String },

    #[error("task {task} would be repeated 0 times; once is the least")]
    NoRound { task: String },

    #[error(
        "what is repeated from task {task} on ends by space {space}, of which no task of it \
         writes rows {rows:?} and columns {columns:?}; let one write all of it in each round",
        rows = block.rows, columns = block.columns
    )]
    Condition {
        task: String,
        space: usize,
        block: Block,
    },

    #[error(
        "the items of {task} do not ascend from subtask to subtask, there are none, or they may \
         yield more elements than can be counted; give each subtask a range behind the one \
         before, and a smaller `most`"
    )]
    Items { task: &'static str },

    #[error("{file} cannot be read: {why}; name a file of OpenCL C")]
    Unreadable { file: String, why: String },

    #[error("{file}: {why}")]
    Source { file: String, why: String },
}
