//! `pdawl run`: runs a workload once and reports.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Subcommand;
use clap::builder::ArgPredicate;
use pdawl_api::balance::Strategy;
use pdawl_api::matrix::npy::ElementType;
use pdawl_api::session::nodes::NodesWork;

use super::args::{Format, MachineArgs, ModelArgs, ModelChoice};
use super::cluster::{ClusterJob, NodeOptions, Prepared, ResultArray, ResultFile, Work, is_first};
use super::divided::StrategyChoice;
use super::failure::Failure;
use super::files::TraceFiles;
use super::grid::{Grid, MemoryBudget, Until};
use super::operation::{OperationCommand, POLICY};
use super::paths::Paths;
use super::product::{Product, Ranking, tolerance};
use super::saves::Saves;
use super::size::ByteSize;
use super::size::integer;
use super::spec::dag;
use super::spec::kernel::KernelArgs;
use super::workload::WorkloadRequest;
use super::{cluster, interrupt, place, tasks, transformer};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  pdawl run stencil --adaptive\n  \
                        pdawl run spmv --matrix like:FullChip@0.1 --adaptive")]
pub struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// A Jacobi stencil: 2-D 5-point or 3-D 7-point
    #[command(after_help = STENCIL_EXAMPLES)]
    Stencil(Box<Divided<Stencil>>),
    /// Sparse matrix times vector, or its power iteration
    #[command(after_help = SPMV_EXAMPLES)]
    Spmv(Box<Divided<Spmv>>),
    /// Your own kernel in OpenCL C, from its specification
    Kernel(Box<Kernel>),
    /// A graph of your own kernels, from its specification
    #[command(
        after_help = dag::EXAMPLES,
        mut_arg("host_memory", |limit| limit.hide(true)),
        mut_arg("policy", |of| of.default_value_if("starpu", ArgPredicate::IsPresent, POLICY))
    )]
    Dag(Box<dag::Args>),
    /// Layers of a transformer, as a graph of kernels
    Transformer(Box<transformer::Args>),
    #[command(flatten)]
    Operation(Box<OperationCommand>),
    /// The page ranks of a graph
    #[command(after_help = PAGERANK_EXAMPLES)]
    Pagerank(Box<Divided<Pagerank>>),
    /// Tasks that share data, in memories that are too small for all
    Tasks(Box<tasks::Args>),
}

const STENCIL_EXAMPLES: &str = "Examples:\n  pdawl run stencil --adaptive\n  \
                  pdawl run stencil --size 16384 --gpu-memory 2GiB --gantt run.html\n  \
                  pdawl run stencil --strategy fixed:0.3 --verify --format json\n  \
                  pdawl run stencil --input plate.npy --steps 1000 --output later.npy \\\n      \
                  --coefficients 0.2,0.2,0.2,0.2,0.2 --verify\n  \
                  pdawl run stencil --steps 100000 --until 1e-6 --check-every 50 --superstep 10\n  \
                  pdawl run stencil --machine k40 --fault gpu0:slow:2@10\n  \
                  pdawl run stencil --size 32768 --cluster four --nodes 8";

#[derive(Debug, clap::Args)]
struct Stencil {
    #[command(flatten)]
    grid: Grid,

    /// End once no point changes more than this in a step, such as 1e-6; --steps is then the
    /// greatest number of steps
    #[arg(long, value_name = "RESIDUAL", value_parser = residual)]
    until: Option<f64>,

    /// Look at the changes after each multiple of so many steps, and after the last; no
    /// superstep is longer
    #[arg(long, value_name = "STEPS", requires = "until", default_value_t = 10, value_parser = integer(1..=u32::MAX))]
    check_every: u32,

    /// Write the last version to this file, an array in NPY format, unless it was found wrong
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

const SPMV_EXAMPLES: &str = "Examples:\n  pdawl run spmv --matrix memplus.mtx.gz --adaptive\n  \
                  pdawl run spmv --matrix like:FullChip@0.1 --strategy fixed:0.3 --verify\n  \
                  pdawl run spmv --matrix rmat:20,16 --iterate --steps 100 --format json\n  \
                  pdawl run spmv --matrix banded:1000000,8 --machine k40 --gpu-memory 512MiB\n  \
                  pdawl run spmv --matrix a.mtx --vector x.npy --output y.npy --steps 1\n  \
                  mpirun -n 4 pdawl run spmv --matrix rmat:22,16 --iterate --verify\n  \
                  pdawl run spmv --matrix rmat:20,16 --iterate --cluster four --nodes 16";

#[derive(Debug, clap::Args)]
struct Spmv {
    #[command(flatten)]
    product: Product,

    /// The first vector: an NPY file of float32 or float64 with one dimension
    ///
    /// Without it, its numbers are uniform from 0 to 1.
    #[arg(long, value_name = "FILE", help_heading = "Workload")]
    vector: Option<PathBuf>,

    /// Write the vector of the last step to this file, an array in NPY format, unless it was
    /// found wrong
    ///
    /// It is A x; with --iterate it is A x / |x|, whose length estimates the greatest eigenvalue.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl run kernel kernels/examples/vadd.json -D dataset=1048576 --adaptive\n  \
                  pdawl run kernel kernels/examples/matmul.json -D n=1024 --verify\n  \
                  pdawl run kernel INFO.json --load 0=in.bin --save 2=out.bin --steps 1\n  \
                  pdawl run kernel INFO.json --devices opencl0.0,opencl1.0 --strategy fixed:0.1\n  \
                  mpirun -n 4 pdawl run kernel kernels/examples/matmul.json -D n=4096 --verify"
)]
struct Kernel {
    #[command(flatten)]
    kernel: KernelArgs,

    #[command(flatten)]
    sharing: KernelSharing,

    #[command(flatten)]
    options: Options,

    #[command(flatten)]
    nodes: NodeOptions,
}

const PAGERANK_EXAMPLES: &str = "Examples:\n  pdawl run pagerank --matrix web.mtx.gz --verify\n  \
                  pdawl run pagerank --matrix web.mtx.gz --tolerance 1e-8 --steps 200\n  \
                  pdawl run pagerank --matrix rmat:20,16 --machine k40 --strategy fixed:0.2\n  \
                  pdawl run pagerank --matrix like:eu-2005@0.1 --damping 0.9 --output ranks.npy\n  \
                  mpirun -n 4 pdawl run pagerank --matrix rmat:22,16 --steps 50\n  \
                  pdawl run pagerank --matrix rmat:20,16 --cluster four --nodes 16";

#[derive(Debug, clap::Args)]
struct Pagerank {
    #[command(flatten)]
    ranking: Ranking,

    /// End when all changes in a step sum to at most this, such as 1e-6; --steps is then
    /// the greatest number of steps
    #[arg(long, value_name = "SUM", value_parser = tolerance)]
    tolerance: Option<f64>,

    /// Seed of a generated graph, of random placements, and of a simulation's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    /// Write the ranks to this file, an array in NPY format
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// A workload whose steps are divided, how they are, and where it runs.
#[derive(Debug, clap::Args)]
struct Divided<W: clap::Args> {
    #[command(flatten)]
    workload: W,

    #[command(flatten)]
    sharing: Sharing,

    #[command(flatten)]
    options: Options,

    #[command(flatten)]
    nodes: NodeOptions,
}

/// How the work is shared.
#[derive(Debug, clap::Args)]
struct Sharing {
    /// How the work is shared: cpu, gpu, fixed:SHARE, guided, dawl, pdawl or
    /// oracle
    ///
    /// SHARE is the CPU's fraction of the work, from 0 to 1. fixed:0.2,0.5,0.3 gives
    /// a share for each device instead.
    #[arg(long, value_name = "STRATEGY")]
    strategy: Option<Strategy>,

    /// Learn the shares during the run (the default)
    ///
    /// The same as --strategy pdawl where a cost model fits the machine; it then
    /// gives the first plan. Otherwise the same as --strategy dawl, which needs no
    /// model.
    #[arg(long, conflicts_with = "strategy")]
    adaptive: bool,

    #[command(flatten)]
    model: ModelArgs,
}

/// How a user's kernel is shared. No cost model predicts it.
#[derive(Debug, clap::Args)]
struct KernelSharing {
    /// How the work is shared: cpu, gpu, fixed:SHARE, guided, dawl or oracle
    ///
    /// SHARE is the CPU's fraction of the work, from 0 to 1. fixed:0.2,0.5,0.3 gives
    /// a share for each device instead.
    #[arg(long, value_name = "STRATEGY", value_parser = without_model)]
    strategy: Option<Strategy>,

    /// Learn the shares during the run, whatever the file's `partition` says
    #[arg(long, conflicts_with = "strategy")]
    adaptive: bool,
}

/// Parses a change of a point.
fn residual(text: &str) -> Result<f64, String> {
    let change = text.trim().parse().ok();
    change
        .filter(|change: &f64| change.is_finite() && *change > 0.0)
        .ok_or_else(|| "this is no change of a point, a number above 0 such as 1e-6".to_owned())
}

/// Parses a strategy that needs no cost model.
fn without_model(text: &str) -> Result<Strategy, String> {
    match text.parse::<Strategy>().map_err(|e| e.to_string())? {
        Strategy::Pdawl => Err(
            "strategy pdawl plans with a cost model, and there is none for your own kernels; \
             dawl needs none"
                .to_owned(),
        ),
        strategy => Ok(strategy),
    }
}

/// The machine and the outputs of a run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub machine: MachineArgs,

    /// Compare the result with the sequential reference
    #[arg(long, help_heading = "Output")]
    pub verify: bool,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,

    #[command(flatten)]
    pub files: TraceFiles,
}

/// What every workload of divided steps has.
struct Given<'a> {
    /// Of what is generated, and of a simulation's noise.
    seed: u64,
    /// The files that it reads.
    inputs: [Option<&'a Path>; 2],
    /// The file of its result.
    output: Option<&'a Path>,
}

impl<W: clap::Args> Divided<W> {
    /// Runs it, on one node or over several. `request` loads it for a place, where it may have so
    /// many bytes of the host's memory if the user limits them.
    fn run(
        &self,
        given: Given,
        request: impl FnOnce(&Options, Place, &AtomicBool) -> Result<WorkloadRequest, Failure>,
    ) -> Result<(), Failure> {
        let on_one_node = self.options.on_one_node(&self.nodes)?;
        let [first, second] = given.inputs;
        if on_one_node.is_none() && self.nodes.several() {
            let options = &self.options;
            return options.run_over_nodes(&self.nodes, given.seed, |_| {
                let stop = interrupt::listen()?;
                // All nodes must make the same, whatever memory they have.
                let all = MemoryBudget {
                    memory: ByteSize(u64::MAX),
                    grids: 2,
                };
                let prepared = request(options, Place::Nodes, stop)?.prepare(all)?;
                let mut work = NodesWork::of_divided(prepared.divided)?;
                work.notes = prepared.notes;
                let mut paths = options.reading(&[first, second]);
                let mut results = Vec::new();
                if let Some((shape, precision)) = &work.result {
                    let array = ResultArray {
                        space: work.workload.result(),
                        shape,
                        element: ElementType::Real(*precision),
                    };
                    results.extend(ResultFile::prepare(given.output, &mut paths, &array)?);
                }
                Ok(Prepared::new(Work::Fixed(Box::new(work)), results, paths))
            });
        }
        let options = on_one_node.as_ref().unwrap_or(&self.options);
        let choice = self.sharing.choice()?;
        let mut paths = options.reading(&[self.sharing.model.path(), first, second]);
        let output = given.output.map(|path| paths.output(path)).transpose()?;
        let saves = output.map(|output| Saves(vec![(0, output)]));
        let stop = interrupt::listen()?;
        let request = || request(options, Place::Machine, stop);
        options.run(choice, paths, stop, saves, request)
    }

    /// The same of a product.
    fn run_product(&self, given: Given, product: &Product) -> Result<(), Failure> {
        let keeps = given.output.is_some();
        self.run(given, |options, place, stop| {
            let (memory, keeps, format) = match place {
                Place::Machine => (options.machine.host_memory, keeps, options.format),
                // Only the first node shows a bar.
                Place::Nodes if !is_first() => (None, false, Format::Json),
                Place::Nodes => (None, false, options.format),
            };
            let matrix = product.load(memory.map(|size| size.0), format, stop)?;
            let product = Box::new(product.keeping(keeps));
            Ok(WorkloadRequest::Spmv(product, matrix))
        })
    }
}

/// Where a workload is to run.
#[derive(Clone, Copy)]
enum Place {
    Machine,
    Nodes,
}

impl Divided<Stencil> {
    fn run_stencil(&self) -> Result<(), Failure> {
        let Stencil { grid, output, .. } = &self.workload;
        let until = self.workload.until.map(|change| Until {
            change,
            every: self.workload.check_every,
        });
        let grid = grid.clone().ending(until);
        grid.check()?;
        let given = Given {
            seed: grid.seed,
            inputs: [grid.input.as_deref(), None],
            output: output.as_deref(),
        };
        self.run(given, |_, place, _| {
            let keeps = output.is_some() && matches!(place, Place::Machine);
            Ok(WorkloadRequest::Stencil(grid.keeping(keeps)))
        })
    }
}

impl Divided<Spmv> {
    fn run_spmv(&self) -> Result<(), Failure> {
        let Spmv {
            product,
            vector,
            output,
        } = &self.workload;
        let given = Given {
            seed: product.seed,
            inputs: [product.path(), vector.as_deref()],
            output: output.as_deref(),
        };
        self.run_product(given, &product.clone().with_vector(vector.clone()))
    }
}

impl Divided<Pagerank> {
    fn run_pagerank(&self) -> Result<(), Failure> {
        let of = &self.workload;
        let given = Given {
            seed: of.seed,
            inputs: [of.ranking.path(), None],
            output: of.output.as_deref(),
        };
        self.run_product(given, &of.ranking.product(of.tolerance, of.seed))
    }
}

impl Kernel {
    /// Runs it, on one node or over several.
    fn run(&self) -> Result<(), Failure> {
        let stop = interrupt::listen()?;
        if self.nodes.several() {
            return self.over_nodes();
        }
        let mut paths = Paths::default();
        let machine = &self.options.machine;
        let (task, saves) = self.kernel.prepare(machine, &mut paths, stop)?;
        let choice = StrategyChoice {
            strategy: self.sharing.strategy.as_ref(),
            adaptive: self.sharing.adaptive,
            model: ModelChoice::None,
        };
        let mut options = self.options.clone();
        options.machine.devices = Some(task.devices.clone());
        let request = || Ok(WorkloadRequest::Kernel(Box::new(task)));
        options.run(choice, paths, stop, Some(saves), request)
    }

    /// Runs it over several nodes.
    fn over_nodes(&self) -> Result<(), Failure> {
        let options = &self.options;
        options.run_over_nodes(&self.nodes, self.kernel.seed, |nodes| self.prepared(nodes))
    }

    /// Reads and examines the kernel of a run over so many nodes.
    fn prepared(&self, nodes: usize) -> Result<Prepared, Failure> {
        let options = &self.options;
        let (mut paths, stop) = (Paths::default(), interrupt::listen()?);
        let task = self.kernel.read(&options.machine, &mut paths, stop)?;
        let (user, devices) = (task.user.clone(), task.devices.clone());
        let kernel = task.over_nodes(nodes, options.verify && is_first())?;
        let mut results = Vec::new();
        for (position, path) in self.kernel.saves(&user, |path| Ok(path.to_owned()))? {
            let space = kernel.written.iter().find(|(at, _)| *at == position);
            if let Some((_, space)) = space {
                results.extend(ResultFile::of_bytes(&path, &mut paths, *space)?);
            }
        }
        Ok(Prepared {
            devices: Some(devices),
            ..Prepared::new(Work::Fixed(Box::new(kernel.work)), results, paths)
        })
    }
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    interrupt::listen()?;
    place::check()?;
    match &args.workload {
        Workload::Stencil(args) => args.run_stencil(),
        Workload::Transformer(args) => transformer::run(args),
        Workload::Operation(operation) => operation.run(),
        Workload::Pagerank(args) => args.run_pagerank(),
        Workload::Tasks(args) => tasks::run(args),
        Workload::Spmv(args) => args.run_spmv(),
        Workload::Dag(args) => dag::run(args),
        Workload::Kernel(args) => args.run(),
    }
}

impl Sharing {
    fn choice(&self) -> Result<StrategyChoice<'_>, Failure> {
        let strategy = self.strategy.as_ref();
        Ok(StrategyChoice {
            strategy,
            adaptive: self.adaptive,
            model: self.model.for_strategy(strategy)?,
        })
    }
}

impl Options {
    /// The options of a run on the only node of a described cluster, if it is one.
    fn on_one_node(&self, nodes: &NodeOptions) -> Result<Option<Self>, Failure> {
        let machine = self.machine.on_one_node(nodes)?;
        Ok(machine.map(|machine| Self {
            machine,
            ..self.clone()
        }))
    }

    /// The input files: these, and the machine file.
    fn reading(&self, files: &[Option<&Path>]) -> Paths {
        let machine = self.machine.machine_path();
        Paths::reading(files.iter().copied().chain([machine]).flatten())
    }

    /// Runs a workload over several nodes, or simulates that.
    fn run_over_nodes(
        &self,
        nodes: &NodeOptions,
        seed: u64,
        prepare: impl FnOnce(usize) -> Result<Prepared, Failure>,
    ) -> Result<(), Failure> {
        let job = ClusterJob {
            devices: self.machine.devices.as_deref(),
            nodes,
            alone: None,
            noise: self.machine.noise,
            seed,
            verify: self.verify,
            format: self.format,
            files: &self.files,
        };
        cluster::run_job(&job, prepare)
    }
}
