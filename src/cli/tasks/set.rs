//! The set of tasks, as users describe it.

use clap::ValueEnum;
use pdawl::workload::task_set::{
    Body, Cholesky, MOST_ROWS, Matmul2d, Matmul3d, Order, RandomTasks, TILE, TaskSet, TaskSetError,
    Tasks,
};

use crate::failure::Failure;
use crate::integer::integer;

/// Columns of A in the 2-D products, in tiles, as in the paper.
const DEPTH: u32 = 4;

/// Most bytes and most operations of a random task's data and of itself: about those of
/// the paper's 2-D product.
const RANDOM_BYTES: u32 = 16 << 20;
const RANDOM_FLOPS: f64 = 14e9;

#[derive(Clone, Debug, clap::Args)]
pub struct SetArgs {
    /// The tasks
    #[arg(long, value_enum)]
    set: Name,

    /// Tiles along a matrix, or the number of random tasks
    #[arg(long, value_name = "N", value_parser = integer(1..=10_000_000_u32))]
    pub n: u32,

    /// Rows and columns of a tile [default: the paper's 960]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST_ROWS / DEPTH))]
    tile: Option<u32>,

    /// The order in which the policy learns of the tasks
    #[arg(long, value_enum, default_value_t)]
    pub order: OrderName,

    /// Let the tasks of matmul2d, sparse and random write results
    ///
    /// The paper's tasks only read.
    #[arg(long)]
    pub outputs: bool,

    /// Let the tasks of matmul3d add up their tiles, one after the other
    #[arg(long)]
    pub sum: bool,

    /// Let the tasks of cholesky and random depend on one another
    #[arg(long)]
    pub dependencies: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// A matrix product, a task a pair of a block row and a block column
    Matmul2d,
    /// A matrix product by square tiles
    Matmul3d,
    /// A tiled Cholesky factorisation
    Cholesky,
    /// 2 % of the tasks of matmul2d
    Sparse,
    /// Random tasks of unlike sizes
    Random,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OrderName {
    /// That of the loops, row by row
    #[default]
    Natural,
    /// A random one
    Random,
}

impl From<OrderName> for Order {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::Natural => Self::Natural,
            OrderName::Random => Self::Random,
        }
    }
}

impl SetArgs {
    /// As on the command line.
    pub fn name(&self) -> &'static str {
        match self.set {
            Name::Matmul2d => "matmul2d",
            Name::Matmul3d => "matmul3d",
            Name::Cholesky => "cholesky",
            Name::Sparse => "sparse",
            Name::Random => "random",
        }
    }

    /// Rows and columns of a tile; random tasks have none.
    pub fn tile(&self) -> Option<u32> {
        (self.set != Name::Random).then_some(self.tile.unwrap_or(TILE))
    }

    /// A line for people.
    pub fn title(&self) -> String {
        format!("tasks {}, n {}", self.name(), self.n)
    }

    /// The set.
    pub fn set(&self, body: Body, seed: u64) -> TaskSet {
        let n = self.n;
        let tile = self.tile().unwrap_or(TILE);
        let product = |paper: Matmul2d| {
            Tasks::Matmul2d(Matmul2d {
                depth: DEPTH * tile,
                outputs: self.outputs,
                ..paper
            })
        };
        let tasks = match self.set {
            Name::Matmul2d => product(Matmul2d::paper(n)),
            Name::Sparse => product(Matmul2d::sparse(n)),
            Name::Matmul3d => Tasks::Matmul3d(Matmul3d {
                sum: self.sum,
                ..Matmul3d::paper(n)
            }),
            Name::Cholesky => Tasks::Cholesky(Cholesky {
                dependencies: self.dependencies,
                ..Cholesky::paper(n)
            }),
            Name::Random => Tasks::Random(RandomTasks {
                bytes: RANDOM_BYTES,
                flops: RANDOM_FLOPS,
                dependencies: self.dependencies,
                outputs: self.outputs,
                ..RandomTasks::small(n)
            }),
        };
        TaskSet {
            tile,
            order: self.order.into(),
            body,
            seed,
            ..TaskSet::paper(tasks)
        }
    }

    /// Checks the options, and the size with tasks of this body.
    ///
    /// # Errors
    /// Wrong usage.
    pub fn check(&self, body: Body) -> Result<(), Failure> {
        use Name::{Cholesky, Matmul2d, Matmul3d, Random, Sparse};
        let only = [
            (self.outputs, "--outputs", &[Matmul2d, Sparse, Random][..]),
            (self.sum, "--sum", &[Matmul3d]),
            (self.dependencies, "--dependencies", &[Cholesky, Random]),
            (
                self.tile.is_some(),
                "--tile",
                &[Matmul2d, Matmul3d, Cholesky, Sparse],
            ),
        ];
        for (given, option, sets) in only {
            if given && !sets.contains(&self.set) {
                let sets: Vec<_> = sets.iter().filter_map(Name::to_possible_value).collect();
                let sets: Vec<&str> = sets.iter().map(|value| value.get_name()).collect();
                return Err(Failure::usage(
                    format!("{option} is for --set {}", sets.join(", ")),
                    format!("no {option}, or another --set"),
                ));
            }
        }
        let checked = self.set(body, 0).check();
        checked.map_err(|error| self.failure(&error))
    }

    /// The failure of the set.
    pub fn failure(&self, error: &TaskSetError) -> Failure {
        let simulated = "--machine NAME of another machine, which is simulated";
        let (what, remedy) = match (error, self.set) {
            (TaskSetError::NotReal(_), Name::Random) => (
                "random tasks compute nothing, so they only run on simulated machines".to_owned(),
                simulated.to_owned(),
            ),
            (TaskSetError::NotReal(_), set) => {
                let option = match set {
                    Name::Matmul3d => "--sum",
                    Name::Cholesky => "--dependencies",
                    _ => "--outputs",
                };
                (
                    format!("on real devices, the tasks of {} need results", self.name()),
                    format!("{option}, or {simulated}"),
                )
            }
            _ => (format!("--n {}: {error}", self.n), "another --n".to_owned()),
        };
        Failure::usage(what, remedy)
    }
}
