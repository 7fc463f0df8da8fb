//! `pdawl predict`: how long a workload would take on a machine, by strategy.

use clap::Subcommand;
use pdawl_api::machine::MachineFile;
use pdawl_api::model::planner::{CandidateDevice, ModelledMachine, PredictedStrategy, predict_run};
use pdawl_api::model::{ModelStore, command, store};
use pdawl_api::report::prediction::{PredictedMachine, PredictingModel, PredictionReport};
use pdawl_api::session::divided::{PlansSupersteps, step};
use pdawl_api::session::{NamedMachine, this_machine};
use pdawl_profiler::bundle::Bundle;

use super::args::Format;
use super::failure::{Failure, refused};
use super::grid::{Grid, MemoryBudget};
use super::model::Source;
use super::product::{Matrix, Product};
use super::size::ByteSize;
use super::workload::{PreparedWorkload, WorkloadRequest};
use super::{interrupt, terminal};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl predict stencil --size 20000 --machine k40\n  \
                        pdawl predict spmv --matrix like:FullChip@0.1 --machine h200"
)]
pub struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// Predict a Jacobi stencil: 2-D 5-point or 3-D 7-point
    ///
    /// Nothing is run: a machine's cost model predicts the CPU's and the GPUs'
    /// steps, and the planner what both reach together, with a barrier after each
    /// step: `pdawl run stencil --superstep 1`.
    Stencil(Box<Stencil>),
    /// Predict the product of a sparse matrix with a vector
    Spmv(Box<Spmv>),
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl predict stencil --size 20000 --machine k40\n  \
                  pdawl predict stencil --size 20000 --machine k40 --gpu-memory 2GiB --format json"
)]
struct Stencil {
    #[command(flatten)]
    grid: Grid,

    #[command(flatten)]
    place: PredictionArgs,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl predict spmv --matrix like:FullChip@0.1 --machine h200\n  \
                  pdawl predict spmv --matrix memplus.mtx.gz --gpu-memory 1GiB --format json"
)]
struct Spmv {
    #[command(flatten)]
    product: Product,

    #[command(flatten)]
    place: PredictionArgs,
}

/// The machine that is predicted, and the model that predicts.
#[derive(Debug, clap::Args)]
struct PredictionArgs {
    /// A machine by name, as `pdawl machine list` shows it [default: this one]
    ///
    /// A path of a machine file works, too.
    #[arg(long, value_name = "NAME", help_heading = "Machine")]
    machine: Option<String>,

    /// Use at most this much of each GPU's memory: 2GiB, 512MiB
    #[arg(
        long,
        value_name = "SIZE",
        allow_negative_numbers = true,
        help_heading = "Machine"
    )]
    gpu_memory: Option<ByteSize>,

    /// The model to predict with, as `pdawl model list` shows it, or a file
    /// [default: the one of the machine]
    #[arg(long, value_name = "NAME|FILE", help_heading = "Machine")]
    model: Option<String>,

    /// How the predictions are printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (report, format) = match &args.workload {
        Workload::Stencil(args) => {
            args.grid.check()?;
            if args.grid.plans_supersteps() == PlansSupersteps::Always {
                return Err(Failure::usage(
                    "--superstep auto plans a run",
                    "--superstep 1",
                ));
            }
            (predicted(&args.place, stencil(&args.grid))?, &args.place)
        }
        Workload::Spmv(args) => {
            let matrix = loaded(&args.product, args.place.format)?;
            let asked = product(&args.product, matrix);
            (predicted(&args.place, asked)?, &args.place)
        }
    };
    terminal::print_report(format.format, &report, |report| report.render())
}

/// The workload to predict, which fits the machine's memory.
type Asked<'a> = Box<dyn FnOnce(MemoryBudget) -> Result<PreparedWorkload, Failure> + 'a>;

/// What a workload may use of a machine's memory.
pub fn of_host(machine: &MachineFile) -> MemoryBudget {
    MemoryBudget {
        memory: ByteSize(machine.host.memory),
        grids: 2,
    }
}

fn stencil(grid: &Grid) -> Asked<'_> {
    Box::new(|budget| WorkloadRequest::Stencil(grid.clone()).prepare(budget))
}

fn loaded(product: &Product, format: Format) -> Result<Matrix, Failure> {
    product.load(None, format, interrupt::listen()?)
}

fn product(product: &Product, matrix: Matrix) -> Asked<'_> {
    Box::new(|budget| WorkloadRequest::Spmv(Box::new(product.clone()), matrix).prepare(budget))
}

fn predicted(args: &PredictionArgs, asked: Asked) -> Result<PredictionReport, Failure> {
    let machine = match &args.machine {
        Some(name) => NamedMachine::find(name)?,
        None => NamedMachine::here().ok_or_else(|| {
            Failure::failed(
                format!(
                    "no machine file is of this machine, which is {}",
                    this_machine::fingerprint()
                ),
                "pdawl machine save NAME and pdawl train --machine NAME, or --machine of another \
                 one",
            )
        })?,
    };
    let (file, simulated) = (&machine.file, machine.is_simulated());
    let workload = asked(of_host(file))?;
    let mut notes = Vec::new();
    let divided = &workload.divided;
    let codelet = divided.work.divisible().codelet();
    if !command::is_trained(&codelet.name) {
        return Err(Failure::usage(
            format!("no model covers {}", codelet.name),
            "a stencil without --coefficients, or a matrix",
        ));
    }
    let bundle = model(args.model.as_deref(), &machine, &codelet.name, &mut notes)?;
    let modelled = ModelledMachine {
        bundle: &bundle,
        machine: file,
        codelet: &codelet.name,
        fp64: divided.work.divisible().fp64(),
        gpu_memory: args.gpu_memory.map(|size| size.0),
    };
    let candidates = candidates(&modelled, simulated)?;
    let work = step(&divided.work, divided.supersteps.size())
        .map_err(|why| Failure::usage(why, "a stencil with --superstep 1, or a matrix"))?;
    let predictions: Vec<_> = [
        PredictedStrategy::Cpu,
        PredictedStrategy::Gpu,
        PredictedStrategy::Pdawl,
    ]
    .into_iter()
    .filter_map(|kind| predict_run(kind, &work, &candidates, divided.supersteps.steps()))
    .collect();
    if predictions.is_empty() {
        return Err(Failure::failed(
            "no device of the machine has the memory for the smallest part of the work",
            "a larger --gpu-memory, or a smaller workload",
        ));
    }
    if bundle.simulated != simulated {
        notes.push(match bundle.simulated {
            true => "the model learned simulated times, and this machine is real".to_owned(),
            false => "the model learned measured times; runs on the machine are simulated here"
                .to_owned(),
        });
    }
    Ok(PredictionReport {
        workload: divided.described(),
        machine: PredictedMachine {
            name: file.name.clone(),
            simulated,
            cores: file.host.cores,
            memory: file.host.memory,
            devices: candidates[1..].iter().map(|m| m.name.clone()).collect(),
            gpu_memory: modelled.gpu_memory,
        },
        model: PredictingModel {
            name: bundle.name.clone(),
            machine: bundle.machine.clone(),
            simulated: bundle.simulated,
            checksum: bundle.checksum().map_err(Failure::of)?,
        },
        predictions: predictions.into_iter().map(Into::into).collect(),
        notes,
    })
}

/// The host's cores and the devices beside them: of the machine's file, or those
/// that this machine shows.
fn candidates(
    modelled: &ModelledMachine,
    simulated: bool,
) -> Result<Vec<CandidateDevice>, Failure> {
    if simulated {
        return modelled.described().map_err(Failure::of);
    }
    let mut devices = this_machine::beside_host().map_err(refused)?;
    devices.retain(|device| device.fp64 || !modelled.fp64);
    modelled.beside_host(&devices).map_err(Failure::of)
}

/// The model of this name, or else of the machine.
fn model(
    name: Option<&str>,
    machine: &NamedMachine,
    codelet: &str,
    notes: &mut Vec<String>,
) -> Result<Bundle, Failure> {
    let models = ModelStore::of_user();
    let simulated = machine.is_simulated();
    let file = &machine.file;
    let machine = &file.name;
    if let Some(name) = name {
        let bundle = Source::find_for(&models, name, codelet)?.bundle;
        if bundle.machine != *machine {
            notes.push(format!(
                "model {} is of machine {}; `pdawl model adapt` adapts it to {machine}",
                bundle.name, bundle.machine
            ));
        }
        return Ok(bundle);
    }
    let search = models.for_machine(store::ModelQuery {
        machine,
        fingerprint: file.fingerprint.as_deref(),
        simulated,
        codelet: Some(codelet),
    });
    for broken in &search.broken {
        terminal::warn(&broken.to_string());
    }
    search.bundle.ok_or_else(|| {
        Failure::failed(
            format!("there is no model of machine {machine}"),
            format!(
                "pdawl train --machine {machine}{}, or --model NAME of another machine",
                command::options(codelet)
            ),
        )
    })
}
