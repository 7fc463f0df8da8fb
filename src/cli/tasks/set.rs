//! The set of tasks, as users describe it.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pdawl::workload::task_set::{
    Body, DEPTH, MOST_ROWS, Order, SETS, TILE, TaskSet, TaskSetError, Tasks,
};

use crate::failure::Failure;
use crate::integer::integer;

#[derive(Clone, Debug, clap::Args)]
pub struct SetArgs {
    /// The tasks
    #[arg(long, value_name = "SET", value_parser = names())]
    set: String,

    /// Tiles along a matrix, or the number of random tasks
    #[arg(long, value_name = "N", value_parser = integer(1..=10_000_000_u32))]
    pub n: u32,

    /// Rows and columns of a tile [default: the paper's 960]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST_ROWS / (DEPTH / TILE)))]
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

/// The names of the sets.
fn names() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(SETS.map(|(name, help)| PossibleValue::new(name).help(help)))
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
    /// The set.
    pub fn set(&self, body: Body, seed: u64) -> TaskSet {
        let named = TaskSet::named(&self.set, self.n, self.tile.unwrap_or(TILE));
        let mut set = named.expect("a name of the option");
        match &mut set.tasks {
            Tasks::Matmul2d(of) => of.outputs = self.outputs,
            Tasks::Matmul3d(of) => of.sum = self.sum,
            Tasks::Cholesky(of) => of.dependencies = self.dependencies,
            Tasks::Random(of) => {
                (of.dependencies, of.outputs) = (self.dependencies, self.outputs);
            }
        }
        TaskSet {
            order: self.order.into(),
            body,
            seed,
            ..set
        }
    }

    /// Checks the options, and the size with tasks of this body.
    ///
    /// # Errors
    /// Wrong usage.
    pub fn check(&self, body: Body) -> Result<(), Failure> {
        let only = [
            (
                self.outputs,
                "--outputs",
                &["matmul2d", "sparse", "random"][..],
            ),
            (self.sum, "--sum", &["matmul3d"]),
            (self.dependencies, "--dependencies", &["cholesky", "random"]),
            (
                self.tile.is_some(),
                "--tile",
                &["matmul2d", "matmul3d", "cholesky", "sparse"],
            ),
        ];
        for (given, option, sets) in only {
            if given && !sets.contains(&&*self.set) {
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
        let (what, remedy) = match (error, &*self.set) {
            (TaskSetError::NotReal(_), "random") => (
                "random tasks compute nothing, so they only run on simulated machines".to_owned(),
                simulated.to_owned(),
            ),
            (TaskSetError::NotReal(_), set) => {
                let option = match set {
                    "matmul3d" => "--sum",
                    "cholesky" => "--dependencies",
                    _ => "--outputs",
                };
                (
                    format!("on real devices, the tasks of {} need results", self.set),
                    format!("{option}, or {simulated}"),
                )
            }
            _ => (format!("--n {}: {error}", self.n), "another --n".to_owned()),
        };
        Failure::usage(what, remedy)
    }
}
