//! Workloads of users in safe Rust: typed spaces, and tasks that compute blocks of them with
//! functions.
//!
//! A function sees only what its subtask names, as views that know where their elements are
//! in the space. Blocks that two subtasks write are refused when the task begins.
//!
//! ```
//! use pdawl::cluster::space::Block;
//! use pdawl::workload::cluster::program::{ProgramTask, Program};
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
//! # use pdawl::workload::cluster::ClusterWorkload;
//! # assert_eq!((program.tasks(), program.spaces().len()), (1, 2));
//! ```
//!
//! [`engine::cluster::Cluster`] runs it, and [`simulate_workload`] simulates it.
//!
//! [`engine::cluster::Cluster`]: crate::engine::cluster::Cluster
//! [`simulate_workload`]: crate::engine::cluster::simulate::simulate_workload

mod access;
mod error;
mod task;
mod view;

use std::sync::Arc;

use bytemuck::Pod;

pub use access::{Access, Bytes, Gather, Read, Space, Subscription, Write};
pub use error::ProgramError;
pub use task::{ProgramTask, Unit};
pub use view::{Gathered, View, ViewMut};

use super::{Check, ClusterWorkload, Contents, Fill, NewSpace, Placement};
use crate::cluster::space::{Block, SpaceId};
use crate::cluster::task::Computed;
use crate::verify::Checked;

/// Makes a task from the bytes of a space.
type Make = Box<dyn Fn(&[u8]) -> ProgramTask + Send + Sync>;

/// Compares the bytes of a block of the result; as [`CheckBlock`](super::CheckBlock).
type Compare = Box<dyn Fn(&Block, &[u8], u64) -> Checked + Send + Sync>;

/// A task, and the space that it depends on with the way to make it from its bytes.
struct Step {
    task: ProgramTask,
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
    compare: Option<Compare>,
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
            compare: None,
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
        let extent = space.extent();
        self.spaces.push(NewSpace { extent, contents });
        self.elements.push(std::any::type_name::<T>());
        space
    }

    /// Adds a task. It begins when the one before it has ended.
    pub fn add_task(&mut self, task: ProgramTask) {
        let depends = None;
        self.steps.push(Step { task, depends });
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
            task: expected,
            depends: Some((space.index, Box::new(make))),
        });
    }

    /// Says which space is the result; the first one by default.
    pub fn set_result<T>(&mut self, space: Space<T>) {
        self.result = space.index;
    }

    /// Has another space brought to the first node, beside the result.
    pub fn add_result<T>(&mut self, space: Space<T>) {
        self.also.push(space.index);
    }

    /// The spaces that are brought to the first node, the result first.
    pub(crate) fn results(&self) -> impl Iterator<Item = usize> {
        [self.result].into_iter().chain(self.also.iter().copied())
    }

    /// The name of the type of a space's elements.
    pub(crate) fn element_type(&self, space: usize) -> &'static str {
        self.elements[space]
    }

    /// Checks what can be known before it runs. What tasks read and write is checked when each
    /// begins.
    ///
    /// # Errors
    /// A program without tasks or spaces, and results that are none of its spaces.
    pub fn check(&self) -> Result<(), ProgramError> {
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
            None => Ok(()),
        }
    }

    /// Says how blocks of the result are compared with a reference.
    pub fn set_compare(
        &mut self,
        compare: impl Fn(&Block, &[u8], u64) -> Checked + Send + Sync + 'static,
    ) {
        self.compare = Some(Box::new(compare));
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

    fn result(&self) -> usize {
        self.result
    }

    fn check(&self) -> Check<'_> {
        match &self.compare {
            Some(compare) => Check::Blocks(Box::new(compare)),
            None => Check::Whole(Vec::new(), Box::new(|_, _| Checked::default())),
        }
    }
}
