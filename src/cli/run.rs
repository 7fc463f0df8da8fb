//! `pdawl run`: one run of a workload, and its report.

use std::sync::atomic::AtomicBool;

use clap::Subcommand;
use pdawl::balance::Strategy;
use pdawl::engine::Outcome;
use pdawl::report::{self, text};
use pdawl::trace::About;

use super::args::{Format, ModelArgs, Place};
use super::failure::Failure;
use super::files::{Files, Prepared};
use super::grid::Grid;
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
    sharing: Sharing,

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

/// Where it runs, and what comes of it.
#[derive(Debug, clap::Args)]
struct Rest {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    model: ModelArgs,

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
            args.rest
                .run(&args.sharing, None, |_| Ok(Wanted::Stencil(&args.grid)))
        }
        Workload::Transformer(args) => transformer::run::run(args),
        Workload::Spmv(args) => args.rest.run(&args.sharing, None, |stop| {
            let memory = args.rest.place.host_memory.map(|size| size.0);
            let matrix = args.product.load(memory, args.rest.format, stop)?;
            Ok(Wanted::Spmv(&args.product, matrix))
        }),
        Workload::Dag(args) => dag::run(args),
        Workload::Kernel(args) => {
            let (task, saves) = args.kernel.prepare()?;
            args.rest.run(&args.sharing, Some(saves), |_| {
                Ok(Wanted::Kernel(Box::new(task)))
            })
        }
    }
}

impl Rest {
    /// Runs a workload, which is made once everything else is known to be
    /// right.
    fn run<'a>(
        &self,
        sharing: &Sharing,
        saves: Option<Saves>,
        wanted: impl FnOnce(&AtomicBool) -> Result<Wanted<'a>, Failure>,
    ) -> Result<(), Failure> {
        let files = self.files.prepare()?;
        let stop = interrupt::listen()?;
        let choice = self.model.of(sharing.strategy.as_ref())?;
        let mut session = Session::open(&self.place, wanted(stop)?, self.verify, choice)?;
        let strategy = session.strategy(sharing.strategy.as_ref(), sharing.adaptive);
        let steps = session.steps().into();
        let bar = terminal::progress(self.format, steps, &strategy.to_string());
        let outcome = session.run(&strategy, stop, &mut |done, _| {
            bar.set_position(done.into())
        });
        bar.finish_and_clear();
        let outcome = outcome?;
        if let Some(saves) = saves.filter(|_| !outcome.interrupted) {
            saves.write(&session.results())?;
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
