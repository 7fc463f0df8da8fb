//! Sets of many tasks that share data, as task graphs with a kernel a task: the
//! workloads of Gonthier, Marchal and Thibault, "Memory-Aware Scheduling of Tasks
//! Sharing Data on Multiple GPUs with Dynamic Runtime Systems" (IPDPS 2022), section
//! V.A, and the same with results and dependencies.
//!
//! * [`Matmul2d`]: a product of matrices by block rows and block columns, or a few of
//!   its tasks (the paper's sparse product).
//! * [`Matmul3d`]: a product by tiles.
//! * [`Cholesky`]: a tiled Cholesky factorisation.
//! * [`RandomTasks`]: random tasks, for tests.
//!
//! A [`TaskSet`] says which tasks there are, their order, and what they compute
//! ([`Body`]). [`TaskSet::graph`] makes the graph;
//! [`Components::single_kernels`](crate::graph::Components::single_kernels) makes a
//! component of each task. `builder` has what all sets share, `operation` the computations of
//! tasks and the contents of given data.

mod builder;
mod cholesky;
mod matmul;
mod operation;
mod random;

#[cfg(test)]
mod tests;

pub use cholesky::Cholesky;
pub use matmul::{Matmul2d, Matmul3d};
pub use random::RandomTasks;

use thiserror::Error;

use builder::Builder;
pub(in crate::workload) use operation::{Codelets, Operation};

use crate::codelet::{Precision, ProductPrecision};
use crate::graph::{GraphError, MOST_TASKS, TaskGraph, check_tasks};

/// Rows and columns of the paper's tiles (section V.A).
pub const TILE: u32 = 960;

/// Columns of the paper's block rows: those of StarPU's 2-D product, whose data have
/// 14 MiB (140 MB for 5 block rows and 5 block columns, section V.A).
pub const DEPTH: u32 = 4 * TILE;

/// Most rows and columns of a tile or a block.
pub const MOST_ROWS: u32 = 1 << 16;

/// The sets by name, and what they are.
pub const SETS: [(&str, &str); 5] = [
    (
        "matmul2d",
        "A matrix product, a task a pair of a block row and a block column",
    ),
    ("matmul3d", "A matrix product by square tiles"),
    ("cholesky", "A tiled Cholesky factorisation"),
    ("sparse", "2 % of the tasks of matmul2d"),
    ("random", "Random tasks of unlike sizes"),
];

/// Most bytes and most operations of a random task's data and of itself: about those of the
/// paper's 2-D product.
const RANDOM_BYTES: u32 = 16 << 20;
const RANDOM_FLOPS: f64 = 14e9;

/// A set of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSet {
    pub tasks: Tasks,
    /// Rows and columns of a tile, at most [`MOST_ROWS`].
    pub tile: u32,
    /// Of the tasks. Results, and what is neither factor of a product, are stored in the
    /// precision of its sums. A factorisation's factors are, too.
    pub precision: ProductPrecision,
    pub order: Order,
    pub body: Body,
    /// Seeds the order, the choice of tasks and the contents of given data.
    pub seed: u64,
}

/// The tasks of a set.
#[derive(Clone, Debug, PartialEq)]
pub enum Tasks {
    Matmul2d(Matmul2d),
    Matmul3d(Matmul3d),
    Cholesky(Cholesky),
    Random(RandomTasks),
}

/// The order of the tasks in the graph, in which policies learn of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// That of the loops; row by row for matrix products.
    #[default]
    Natural,
    /// A random one.
    Random,
}

impl Order {
    /// `natural` or `random`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Natural => "natural",
            Self::Random => "random",
        }
    }
}

/// What the tasks compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// Nothing: they have sizes and costs. Only for the simulator.
    #[default]
    Model,
    /// Bytes that show any wrong order or copy ([`crate::codelet::mix`]). Data have 1
    /// to 64 bytes, those of random tasks their own sizes. A task without a result
    /// gets one.
    Mix,
    /// The numbers of the matrices. Only for tasks with results.
    Real,
}

impl TaskSet {
    /// Tasks with the sizes of the paper, in natural order, for the simulator.
    pub fn paper(tasks: Tasks) -> Self {
        Self {
            tasks,
            tile: TILE,
            precision: Precision::F32.into(),
            order: Order::default(),
            body: Body::default(),
            seed: 1,
        }
    }

    /// A set of `n` tiles along a matrix, or of `n` random tasks, by its name in [`SETS`].
    pub fn named(name: &str, n: u32, tile: u32) -> Option<Self> {
        let depth = |paper: Matmul2d| {
            Tasks::Matmul2d(Matmul2d {
                depth: tile.saturating_mul(DEPTH / TILE),
                ..paper
            })
        };
        let tasks = match name {
            "matmul2d" => depth(Matmul2d::paper(n)),
            "sparse" => depth(Matmul2d::sparse(n)),
            "matmul3d" => Tasks::Matmul3d(Matmul3d::paper(n)),
            "cholesky" => Tasks::Cholesky(Cholesky::paper(n)),
            "random" => Tasks::Random(RandomTasks {
                bytes: RANDOM_BYTES,
                flops: RANDOM_FLOPS,
                ..RandomTasks::small(n)
            }),
            _ => return None,
        };
        Some(Self {
            tile,
            ..Self::paper(tasks)
        })
    }

    /// Its name in [`SETS`].
    pub fn name(&self) -> &'static str {
        match &self.tasks {
            Tasks::Matmul2d(of) if of.removed > 0.0 => "sparse",
            Tasks::Matmul2d(_) => "matmul2d",
            Tasks::Matmul3d(_) => "matmul3d",
            Tasks::Cholesky(_) => "cholesky",
            Tasks::Random(_) => "random",
        }
    }

    /// How many tasks there are.
    pub fn count(&self) -> u64 {
        match &self.tasks {
            Tasks::Matmul2d(of) => of.count(),
            Tasks::Matmul3d(of) => of.count(),
            Tasks::Cholesky(of) => of.count(),
            Tasks::Random(of) => of.tasks.into(),
        }
    }

    /// Checks sizes, and that the tasks can compute what is asked for.
    ///
    /// # Errors
    /// [`TaskSetError`], with the allowed values.
    pub fn check(&self) -> Result<(), TaskSetError> {
        within("rows of a tile", self.tile, MOST_ROWS)?;
        let not_real = match &self.tasks {
            Tasks::Matmul2d(of) => of.check()?,
            Tasks::Matmul3d(of) => of.check()?,
            Tasks::Cholesky(of) => {
                if self.precision != self.precision.sums().into() {
                    return Err(TaskSetError::Precision(self.precision.name()));
                }
                of.check()?
            }
            Tasks::Random(of) => of.check()?,
        };
        let given = self.count();
        if !(1..=MOST_TASKS).contains(&given) {
            return Err(TaskSetError::Count { given });
        }
        match not_real {
            Some(remedy) if self.body == Body::Real => Err(TaskSetError::NotReal(remedy)),
            _ => Ok(()),
        }
    }

    /// The graph: a kernel a task. Equal sets have equal graphs.
    ///
    /// # Errors
    /// Those of [`TaskSet::check`].
    pub fn graph(&self) -> Result<TaskGraph, TaskSetError> {
        self.check()?;
        check_tasks(self.count())?;
        let mut builder = Builder::new(self);
        match &self.tasks {
            Tasks::Matmul2d(of) => of.add(&mut builder),
            Tasks::Matmul3d(of) => of.add(&mut builder),
            Tasks::Cholesky(of) => of.add(&mut builder),
            Tasks::Random(of) => of.add(&mut builder),
        }
        builder.finish()
    }
}

/// What is wrong with a task set.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TaskSetError {
    #[error("{what} are {given}; take 1 to {most}")]
    Range {
        what: &'static str,
        given: u32,
        most: u32,
    },

    #[error("the removed part of the tasks is {0}; take 0 to less than 1")]
    Removed(f64),

    #[error("the set has {given} tasks; take sizes with 1 to {MOST_TASKS}")]
    Count { given: u64 },

    #[error("factorisations have no precision {0}; take f32 or f64")]
    Precision(&'static str),

    #[error("real arithmetic needs tasks with results; {0}")]
    NotReal(&'static str),

    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Checks that a size is 1 to `most`.
fn within(what: &'static str, given: u32, most: u32) -> Result<(), TaskSetError> {
    match (1..=most).contains(&given) {
        true => Ok(()),
        false => Err(TaskSetError::Range { what, given, most }),
    }
}

/// Random tasks of a sample.
const RANDOM: u32 = 32;

impl TaskSet {
    /// A small set with a task of every kind that this one has, whatever its size.
    pub fn sample(&self) -> Self {
        let tasks = match self.tasks.clone() {
            Tasks::Matmul2d(mut of) => {
                of.n = of.n.min(2);
                of.removed = 0.0;
                Tasks::Matmul2d(of)
            }
            // The first update of a tile of C is that of the second tile of the depth.
            Tasks::Matmul3d(mut of) => {
                (of.rows, of.columns) = (of.rows.min(1), of.columns.min(1));
                of.depth = of.depth.min(2);
                Tasks::Matmul3d(of)
            }
            // The first update of a tile below the diagonal is that of row 2.
            Tasks::Cholesky(mut of) => {
                of.rows = of.rows.min(3);
                Tasks::Cholesky(of)
            }
            Tasks::Random(mut of) => {
                of.tasks = of.tasks.min(RANDOM);
                of.given = of.given.min(RANDOM);
                Tasks::Random(of)
            }
        };
        Self {
            tasks,
            order: Order::Natural,
            ..self.clone()
        }
    }
}
