//! `pdawl run tasks`: a set of tasks that share data, under a policy for small memories.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pdawl_api::machine::DeviceKind;
use pdawl_api::policy::NamedPolicy;
use pdawl_api::session::{GraphJob, GraphOptions, NamedMachine, Session};
use pdawl_api::workload::task_set::{
    Body, DEPTH, MOST_ROWS, Order, SETS, TILE, TaskSet, TaskSetError, Tasks,
};

use super::args::{Format, MachineArgs};
use super::failure::Failure;
use super::files::TraceFiles;
use super::graph::{self, shown};
use super::interrupt;
use super::machine_session::{self, Needs};
use super::operation::POLICY;
use super::paths::Paths;
use super::saved_report::run_words;
use super::size::integer;

const EXAMPLES: &str = "Examples:\n  pdawl run tasks --set matmul2d --n 40 --machine v100x2 \
                        --gpu-memory 500MiB\n  \
                        pdawl run tasks --set cholesky --n 20 --dependencies --machine v100x4 \
                        --policy dmdar\n  \
                        pdawl bench --vary n=5,10,40,75 --vary policy=dmdar,darts+luf,locality \
                        \\\n      run tasks --set matmul2d --machine v100x2 --devices gpu0,gpu1 \
                        --gpu-memory 500MiB";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    set: SetArgs,

    /// Seed of the random order, the random tasks and the policy's random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    /// The scheduling policy
    #[arg(
        long,
        value_name = "POLICY",
        default_value = POLICY,
        long_help = NamedPolicy::help(),
        help_heading = "Scheduling"
    )]
    policy: NamedPolicy,

    /// Tasks that a device has at once, whose data are loaded ahead [default: 16]
    ///
    /// Under adaptive, clustering and heft, devices get all tasks that are ready.
    #[arg(long, value_name = "N", value_parser = integer(1..=1000_usize),
          help_heading = "Scheduling")]
    window: Option<usize>,

    #[command(flatten)]
    machine: MachineArgs,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,

    #[command(flatten)]
    files: TraceFiles,
}

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

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let machine = &args.machine;
    let named = machine_session::named(machine)?;
    let body = match named.as_ref().is_some_and(NamedMachine::is_simulated) {
        true => Body::Model,
        false => Body::Real,
    };
    args.set.check(body)?;
    let files = (args.files).prepare(&mut Paths::reading(machine.machine_path()))?;
    let stop = interrupt::listen()?;
    let mut session = open(args, named)?;
    let job = GraphJob::of_set(&args.set.set(body, args.seed))?;
    let options = GraphOptions {
        window: args.window,
        repeats: Some(1),
        seed: args.seed,
        faults: machine.fault.clone(),
        gpu_memory: machine.gpu_memory.map(|size| size.0),
        host_memory: machine.host_memory.map(|size| size.0),
        traced: args.files.wanted(),
        ..GraphOptions::of(args.policy)
    };
    let ran = shown(args.format, "tasks", |progress| {
        session.run_graph(&job, options, stop, progress)
    });
    let run = ran?.run.with_command(run_words());
    graph::print(&run, run.trace(), args.format, files)?;
    match run.interrupted {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// Opens the devices that the user names, else those among which the usual policy chooses. Another
/// policy gets the GPUs, if there are some.
fn open(args: &Args, named: Option<NamedMachine>) -> Result<Session, Failure> {
    let needs = Needs {
        fp64: false,
        data: false,
        seed: args.seed,
    };
    let open = |machine: &MachineArgs| {
        Session::with(machine_session::options(machine, named.clone(), needs))
    };
    let session = open(&args.machine)?;
    let gpus = session.devices().iter();
    let gpus = gpus.filter(|device| device.kind == DeviceKind::Gpu);
    let gpus: Vec<&str> = gpus.map(|device| device.name.as_str()).collect();
    let chooses = args.policy == NamedPolicy::LOCALITY;
    if chooses || args.machine.devices.is_some() || gpus.is_empty() {
        return Ok(session);
    }
    Ok(open(&MachineArgs {
        devices: Some(gpus.join(",")),
        ..args.machine.clone()
    })?)
}
