//! Workloads over the nodes of a cluster: spaces, and tasks one after the other. Nodes and
//! the simulated cluster run the same ones.

mod bands;
mod cholesky;
mod contents;
mod convolution;
pub mod demand;
mod fft;
pub mod graph;
mod kernel;
mod lu;
mod operation;
mod product;
pub mod program;
mod sort;
mod tiled;
mod tiles;

use std::sync::Arc;

pub use bands::{Bands, BandsWorkload};
pub use cholesky::Cholesky;
pub use contents::{
    Contents, Fill, FillError, Layout, Placement, definite, generated, generated_as, of_file,
    of_memory, rounded,
};
pub use convolution::ConvolutionWorkload;
pub use fft::FftWorkload;
pub use kernel::{KernelWorkload, NotDivided};
pub use lu::{LuWorkload, panel_width};
pub use operation::{DenseSizes, Lone, Operation, OperationError, Place, Placed};
pub use product::Product;
pub use sort::{
    MOST_BANDS, SortSamples, SortWorkload, Sorted, least_tile, order, sort, sort_alone,
};
pub use tiles::Fit;

use crate::cluster::space::{Block, Extent, SpaceBlock, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, Task};
use crate::codelet::{Codelet, Cost};
use crate::verify::Checked;

/// A space of a workload.
#[derive(Clone)]
pub struct NewSpace {
    pub extent: Extent,
    /// Its first contents; none if a task writes it first.
    pub contents: Option<Contents>,
}

/// What the nodes of a cluster compute.
pub trait ClusterWorkload: Send + Sync {
    /// Its name, as in `pdawl run NAME`.
    fn name(&self) -> &'static str;

    /// Its spaces. Tasks get their ids in this order.
    fn spaces(&self) -> Vec<NewSpace>;

    /// The number of its tasks.
    fn tasks(&self) -> u64;

    /// A task. A workload of [`bands`](Self::bands) has none.
    fn task(&self, _number: u64, _spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(NoTask)
    }

    /// What nodes compute as one co-run, when its course says so.
    fn bands(&self) -> Option<Bands<'_>> {
        None
    }

    /// Puts the bytes of a space in the order in which files and checks of whole spaces have
    /// them, if that is another one.
    fn ordered(&self, _space: usize) -> Option<Ordered<'_>> {
        None
    }

    /// The space that a task's blocks depend on: all nodes get its bytes before the task
    /// begins, so it should be small.
    fn depends(&self, _number: u64) -> Option<usize> {
        None
    }

    /// A task, by the bytes of the space that it depends on. [`Self::task`] is then what is
    /// expected of it, for its cost.
    fn task_by(&self, number: u64, spaces: &[SpaceId], _bytes: &[u8]) -> Arc<dyn Computed> {
        self.task(number, spaces)
    }

    /// Which of its spaces is the result.
    fn result(&self) -> usize;

    /// How its result is compared with a reference.
    fn check(&self) -> Check<'_>;

    /// What may refuse its result, such as a matrix without factors.
    fn refusal(&self) -> Option<Refusal<'_>> {
        None
    }

    /// Whether the result is a lower triangle: what tasks leave above its diagonal means
    /// nothing, and whoever gets it finds zeros there.
    fn is_triangle(&self) -> bool {
        false
    }

    /// A number that its report has beside the times.
    fn figure(&self) -> Option<Figure> {
        None
    }

    /// The order of its tasks: by default that of their numbers.
    fn course(&self) -> Box<dyn Course + '_> {
        Box::new(InOrder::new(self.tasks()))
    }

    /// The same workload, of which only so many tasks have run, if they make its result another
    /// one.
    fn shortened(&self, _tasks: u64) -> Option<Box<dyn ClusterWorkload>> {
        None
    }

    /// Which blocks a space has at the end, where that depends on what was computed.
    fn computed_blocks(&self, _space: usize) -> Option<ComputedBlocks> {
        None
    }
}

/// A workload with height and width of the blocks that it places.
pub type PlacedWorkload = (Arc<dyn ClusterWorkload>, u64);

/// The bytes of a whole space in another order.
pub type Ordered<'a> = Box<dyn Fn(&[u8]) -> Vec<u8> + 'a>;

/// A task without subtasks.
struct NoTask;

impl Task for NoTask {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn count(&self) -> u64 {
        0
    }

    fn reads(&self, _subtask: u64) -> Vec<SpaceBlock> {
        Vec::new()
    }

    fn writes(&self, _subtask: u64) -> Vec<SpaceBlock> {
        Vec::new()
    }

    fn cost(&self, _subtask: u64) -> Cost {
        Cost::default()
    }
}

impl Computed for NoTask {
    fn launch(&self, _subtask: u64) -> SubtaskLaunch {
        SubtaskLaunch {
            codelet: Arc::new(Codelet {
                name: "nothing".into(),
                host: None,
                opencl: None,
                library: None,
            }),
            units: 0..0,
            values: Vec::new(),
        }
    }
}

/// Blocks of a space that are known when they were computed.
pub struct ComputedBlocks {
    /// The space whose bytes tell.
    pub counts: usize,
    pub blocks: BlocksOf,
}

/// Blocks, in the order of a result, by the bytes of a space.
pub type BlocksOf = Box<dyn Fn(&[u8]) -> Vec<Block> + Send + Sync>;

/// Why a workload has no result although all tasks ended.
pub struct Refusal<'a> {
    /// The space whose bytes tell, whole.
    pub space: usize,
    pub of: RefusalOf<'a>,
}

/// Why there is no result, by the bytes of a space; none if there is one.
pub type RefusalOf<'a> = Box<dyn Fn(&[u8]) -> Option<String> + Send + Sync + 'a>;

/// A number, from the bytes of a space.
pub type FigureOf = Box<dyn Fn(&[u8]) -> f64 + Send + Sync>;

/// A number of a workload, such as an eigenvalue, from the bytes of a space.
pub struct Figure {
    /// In reports for programs.
    pub name: &'static str,
    /// In reports for people.
    pub title: &'static str,
    pub space: usize,
    pub of: FigureOf,
}

/// Compares the bytes of a block of the result. The seed chooses numbers in large blocks.
pub type CheckBlock<'a> = Box<dyn Fn(&Block, &[u8], u64) -> Checked + Send + Sync + 'a>;

/// Compares spaces, each by rows without gaps.
pub type CheckWhole<'a> = Box<dyn Fn(&[&[u8]], u64) -> Checked + Send + Sync + 'a>;

/// A comparison with the problem.
pub enum Check<'a> {
    /// A node compares its own blocks.
    Blocks(CheckBlock<'a>),
    /// The first node compares these spaces of the workload, whole and in the order of files.
    Whole(Vec<usize>, CheckWhole<'a>),
}

// The order in which a workload's tasks run. It may depend on what they compute: then the
// first node decides, and tells the others.

/// What all nodes do next.
pub enum Turn {
    /// Run the task of this number.
    Task(u64),
    /// Compute all steps of [`bands`](ClusterWorkload::bands).
    Bands,
    /// Find out whether a condition is met, and tell it to [`Course::decided`].
    Decide(Condition),
    /// Nothing: the workload has ended.
    End,
}

/// A condition on data.
#[derive(Clone)]
pub struct Condition {
    /// The space whose bytes tell. Tasks have written all of it, so that it is lost only
    /// together with what they did.
    pub space: usize,
    pub is_met: IsMet,
}

/// Whether a condition is met, by the bytes of a space.
pub type IsMet = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// The order of tasks, from the first one on.
pub trait Course {
    /// What comes next.
    fn next(&mut self) -> Turn;

    /// Whether the condition is met that was asked for last.
    fn decided(&mut self, is_met: bool);
}

/// All tasks by their numbers.
pub struct InOrder {
    next: u64,
    count: u64,
}

impl InOrder {
    /// So many tasks.
    pub fn new(count: u64) -> Self {
        Self { next: 0, count }
    }
}

impl Course for InOrder {
    fn next(&mut self) -> Turn {
        if self.next == self.count {
            return Turn::End;
        }
        self.next += 1;
        Turn::Task(self.next - 1)
    }

    fn decided(&mut self, _is_met: bool) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_in_the_order_of_their_numbers() {
        let mut course = InOrder::new(3);
        for expected in 0..3 {
            assert!(matches!(course.next(), Turn::Task(number) if number == expected));
        }
        assert!(matches!(course.next(), Turn::End));
    }
}
