//! `pdawl run`: one run of a workload, and its report.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use clap::Subcommand;
use pdawl::balance::Strategy;
use pdawl::engine::Outcome;
use pdawl::report::{self, text};
use pdawl::trace::About;

use super::args::{Format, MachineArgs, ModelArgs, ModelChoice};
use super::failure::Failure;
use super::files::{Files, Prepared};
use super::grid::Grid;
use super::paths::Paths;
use super::product::Product;
use super::session::Session;
use super::spec::dag;
use super::spec::kernel::{KernelArgs, Saves};
use super::task::Wanted;
use super::{interrupt, terminal, transformer};

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
    Stencil(Box<Stencil>),
    /// Sparse matrix times vector, or its power iteration
    Spmv(Box<Spmv>),
    /// A kernel of yours, in OpenCL C, by its specification
    Kernel(Box<Kernel>),
    /// A graph of kernels of yours, by its specification
    #[command(after_help = dag::EXAMPLES)]
    Dag(Box<dag::Args>),
    /// Layers of a transformer, as a graph of kernels
    Transformer(Box<transformer::run::Args>),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  pdawl run stencil --adaptive\n  \
                  pdawl run stencil --size 16384 --gpu-memory 2GiB --gantt run.html\n  \
                  pdawl run stencil --strategy fixed:0.3 --verify --format json\n  \
                  pdawl run stencil --machine k40 --fault gpu0:slow:2@10")]
struct Stencil {
    #[command(flatten)]
    sharing: Sharing,

    #[command(flatten)]
    grid: Grid,

    #[command(flatten)]
    model: ModelArgs,

    #[command(flatten)]
    rest: Rest,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl run spmv --matrix memplus.mtx.gz --adaptive\n  \
                  pdawl run spmv --matrix like:FullChip@0.1 --strategy fixed:0.3 --verify\n  \
                  pdawl run spmv --matrix rmat:20,16 --iterate --steps 100 --format json\n  \
                  pdawl run spmv --matrix banded:1000000,8 --machine k40 --gpu-memory 512MiB"
)]
struct Spmv {
    #[command(flatten)]
    sharing: Sharing,

    #[command(flatten)]
    product: Product,

    #[command(flatten)]
    model: ModelArgs,

    #[command(flatten)]
    rest: Rest,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl run kernel kernels/examples/vadd.json -D dataset=1048576 --adaptive\n  \
                  pdawl run kernel kernels/examples/matmul.json -D n=1024 --verify\n  \
                  pdawl run kernel INFO.json --load 0=in.bin --save 2=out.bin --steps 1\n  \
                  pdawl run kernel INFO.json --devices opencl0.0,opencl1.0 --strategy fixed:0.1"
)]
struct Kernel {
    #[command(flatten)]
    sharing: KernelSharing,

    #[command(flatten)]
    kernel: KernelArgs,

    #[command(flatten)]
    rest: Rest,
}

/// How the work is shared.
#[derive(Debug, clap::Args)]
struct Sharing {
    /// How the work is shared: cpu, gpu, fixed:SHARE, guided, dawl, pdawl or
    /// oracle
    ///
    /// SHARE is the CPU's part of the work, from 0 to 1; fixed:0.2,0.5,0.3 gives
    /// one share a device instead.
    #[arg(long, value_name = "STRATEGY")]
    strategy: Option<Strategy>,

    /// Learn the shares while it runs (the default)
    ///
    /// As --strategy pdawl where a cost model fits the machine, which then gives
    /// the first plan; else as --strategy dawl, which needs none.
    #[arg(long, conflicts_with = "strategy")]
    adaptive: bool,
}

/// How a kernel is shared, of which no cost model knows anything.
#[derive(Debug, clap::Args)]
struct KernelSharing {
    /// How the work is shared: cpu, gpu, fixed:SHARE, guided, dawl or oracle
    ///
    /// SHARE is the CPU's part of the work, from 0 to 1; fixed:0.2,0.5,0.3 gives
    /// one share a device instead.
    #[arg(long, value_name = "STRATEGY", value_parser = without_model)]
    strategy: Option<Strategy>,

    /// Learn the shares while it runs, whatever the file's `partition` says
    #[arg(long, conflicts_with = "strategy")]
    adaptive: bool,
}

/// A strategy that plans without a cost model.
fn without_model(text: &str) -> Result<Strategy, String> {
    match text.parse::<Strategy>().map_err(|e| e.to_string())? {
        Strategy::Pdawl => Err(
            "strategy pdawl plans with a cost model, and of a kernel of yours there is none; \
             dawl needs none"
                .to_owned(),
        ),
        strategy => Ok(strategy),
    }
}

/// Where it runs, and what comes of it.
#[derive(Debug, clap::Args)]
struct Rest {
    #[command(flatten)]
    machine: MachineArgs,

    /// Compare the result with the sequential reference
    #[arg(long, help_heading = "Output")]
    verify: bool,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,

    #[command(flatten)]
    files: Files,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.workload {
        Workload::Stencil(args) => {
            args.grid.check()?;
            let planned = Planned::of(&args.sharing, &args.model)?;
            let paths = args.rest.reading(&[args.model.path()]);
            let stop = interrupt::listen()?;
            let wanted = || Ok(Wanted::Stencil(&args.grid));
            args.rest.run(planned, paths, stop, None, wanted)
        }
        Workload::Transformer(args) => transformer::run::run(args),
        Workload::Spmv(args) => {
            let planned = Planned::of(&args.sharing, &args.model)?;
            let paths = (args.rest).reading(&[args.model.path(), args.product.path()]);
            let stop = interrupt::listen()?;
            args.rest.run(planned, paths, stop, None, || {
                let memory = args.rest.machine.host_memory.map(|size| size.0);
                let matrix = args.product.load(memory, args.rest.format, stop)?;
                Ok(Wanted::Spmv(&args.product, matrix))
            })
        }
        Workload::Dag(args) => dag::run(args),
        Workload::Kernel(args) => {
            let mut paths = Paths::default();
            let asked = args.sharing.strategy.clone();
            let stop = interrupt::listen()?;
            let machine = &args.rest.machine;
            let (task, saves) = args.kernel.prepare(asked, machine, &mut paths, stop)?;
            let planned = Planned {
                strategy: args.sharing.strategy.as_ref(),
                adaptive: args.sharing.adaptive,
                model: ModelChoice::None,
            };
            let wanted = || Ok(Wanted::Kernel(Box::new(task)));
            args.rest.run(planned, paths, stop, Some(saves), wanted)
        }
    }
}

/// Who plans a run.
struct Planned<'a> {
    strategy: Option<&'a Strategy>,
    adaptive: bool,
    model: ModelChoice<'a>,
}

impl<'a> Planned<'a> {
    fn of(sharing: &'a Sharing, model: &'a ModelArgs) -> Result<Self, Failure> {
        let strategy = sharing.strategy.as_ref();
        Ok(Self {
            strategy,
            adaptive: sharing.adaptive,
            model: model.of(strategy)?,
        })
    }
}

impl Rest {
    /// The files that are read, these and a machine's.
    fn reading(&self, files: &[Option<&Path>]) -> Paths {
        let machine = self.machine.machine_path();
        Paths::reading(files.iter().copied().chain([machine]).flatten())
    }

    /// Runs a workload, which is made once everything else is known to be
    /// right.
    fn run<'a>(
        &self,
        planned: Planned,
        mut paths: Paths,
        stop: &AtomicBool,
        saves: Option<Saves>,
        wanted: impl FnOnce() -> Result<Wanted<'a>, Failure>,
    ) -> Result<(), Failure> {
        let files = self.files.prepare(&mut paths)?;
        let mut session = Session::open(&self.machine, wanted()?, self.verify, planned.model)?;
        let strategy = session.strategy(planned.strategy, planned.adaptive);
        let steps = session.steps().into();
        let bar = terminal::progress(self.format, steps, &strategy.to_string());
        let outcome = session.run(&strategy, stop, &mut |done, _| {
            bar.set_position(done.into())
        });
        bar.finish_and_clear();
        let outcome = outcome?;
        match saves {
            Some(saves) if outcome.interrupted => saves.drop_unwritten(),
            Some(saves) => saves.write(&session.results())?,
            None => {}
        }
        if !outcome.interrupted {
            session.compare(&strategy, stop)?;
        }
        self.report(&session, &strategy, &outcome, files)
    }

    fn report(
        &self,
        session: &Session,
        strategy: &Strategy,
        outcome: &Outcome,
        files: Prepared,
    ) -> Result<(), Failure> {
        let context = session.context(strategy);
        let about = About {
            workload: context.workload.title(),
            strategy: context.strategy.clone(),
            machine: context.machine.name.clone(),
            simulated: context.machine.simulated,
        };
        let report = report::report(outcome, &context);
        // The files do not depend on who reads the report, nor the report on them.
        let written = files.write(&outcome.trace, &about);
        match self.format {
            Format::Text => terminal::print(&text::render(&report))?,
            Format::Json => terminal::print_json(&report)?,
        }
        written?;
        verdict(outcome)
    }
}

/// What the exit status tells beyond the report.
fn verdict(outcome: &Outcome) -> Result<(), Failure> {
    if outcome.verified == Some(false) {
        let error = outcome.max_abs_error.unwrap_or(f64::NAN);
        return Err(Failure::failed(
            format!("the result differs from the sequential reference by up to {error:e}"),
            "the same run on single devices (--strategy cpu, --devices ...) to find the one that \
             computes wrongly",
        ));
    }
    if outcome.interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(())
}
