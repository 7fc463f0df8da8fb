//! `pdawl predict`: how long a workload would take on a machine, by strategy.

use clap::Subcommand;
use pdawl::machine::{DeviceKind, MachineFile};
use pdawl::model::planner::{Kind, Member, MemberError, Modelled, predict_run};
use pdawl::model::shelf::Wanted;
use pdawl::model::{ModelShelf, Work, command};
use pdawl::report::prediction::{Machine, Model, PredictionReport, SCHEMA};
use pdawl::runtime::opencl;
use pdawl::workload::Divisible;
use pdawl_profiler::bundle::Bundle;

use super::args::Format;
use super::failure::Failure;
use super::grid::{Budget, Grid};
use super::model::Source;
use super::session::machine_file;
use super::size::ByteSize;
use super::{here, terminal};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  pdawl predict stencil --size 20000 --machine k40")]
pub struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// Predict a Jacobi stencil: 2-D 5-point or 3-D 7-point
    ///
    /// Nothing is run: a machine's cost model predicts the CPU's and the GPUs'
    /// steps, and the planner what both reach together.
    Stencil(Box<Stencil>),
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl predict stencil --size 20000 --machine k40\n  \
                  pdawl predict stencil --size 20000 --machine k40 --gpu-memory 2GiB --format json"
)]
struct Stencil {
    #[command(flatten)]
    grid: Grid,

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
    let Workload::Stencil(args) = &args.workload;
    args.grid.check()?;
    let report = predicted(args)?;
    match args.format {
        Format::Text => terminal::print(&report.render()),
        Format::Json => terminal::print_json(&report),
    }
}

fn predicted(args: &Stencil) -> Result<PredictionReport, Failure> {
    let ground = Ground::find(args.machine.as_deref())?;
    let file = &ground.file;
    let stencil = args.grid.stencil(Budget {
        memory: ByteSize(file.host.memory),
        grids: 2,
    })?;
    let mut notes = Vec::new();
    let codelet = stencil.codelet();
    let bundle = model(args.model.as_deref(), &ground, &codelet.name, &mut notes)?;
    let modelled = Modelled {
        bundle: &bundle,
        machine: file,
        codelet: &codelet.name,
        fp64: stencil.fp64(),
        gpu_memory: args.gpu_memory.map(|size| size.0),
    };
    let members = ground.members(&modelled).map_err(Failure::of)?;
    let work = Work::of(&stencil);
    let predictions: Vec<_> = [Kind::Cpu, Kind::Gpu, Kind::Pdawl]
        .into_iter()
        .filter_map(|kind| predict_run(kind, &work, &members, args.grid.steps))
        .collect();
    if predictions.is_empty() {
        return Err(Failure::failed(
            "no device of the machine has the memory for the smallest part of the grid",
            "a larger --gpu-memory, or a smaller --size",
        ));
    }
    if bundle.simulated != ground.simulated {
        notes.push(match bundle.simulated {
            true => "the model learned simulated times, and this machine is real".to_owned(),
            false => "the model learned measured times; runs on the machine are simulated here"
                .to_owned(),
        });
    }
    Ok(PredictionReport {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        workload: args.grid.workload(&stencil),
        machine: Machine {
            name: file.name.clone(),
            simulated: ground.simulated,
            cores: file.host.cores,
            memory: file.host.memory,
            devices: members[1..].iter().map(|m| m.name.clone()).collect(),
            gpu_memory: modelled.gpu_memory,
        },
        model: Model {
            name: bundle.name.clone(),
            machine: bundle.machine.clone(),
            simulated: bundle.simulated,
            checksum: bundle.checksum().map_err(Failure::of)?,
        },
        predictions: predictions.into_iter().map(Into::into).collect(),
        notes,
    })
}

/// The machine that is asked about.
struct Ground {
    file: MachineFile,
    simulated: bool,
}

impl Ground {
    fn find(name: Option<&str>) -> Result<Self, Failure> {
        let here = here::fingerprint();
        let file = match name {
            Some(name) => machine_file(name)?,
            None => here::file(&here).ok_or_else(|| {
                Failure::failed(
                    format!("no machine file is of this machine, which is {here}"),
                    "pdawl machine save NAME and pdawl train --machine NAME, \
                     or --machine of another one",
                )
            })?,
        };
        Ok(Self {
            simulated: !here.is(file.fingerprint.as_deref()),
            file,
        })
    }

    /// The host's cores and the devices beside them: of the machine's file, or
    /// those that this machine shows.
    fn members(&self, modelled: &Modelled) -> Result<Vec<Member>, MemberError> {
        if self.simulated {
            return modelled.described();
        }
        let found = opencl::discover()
            .devices
            .into_iter()
            .map(|found| found.info);
        let devices: Vec<_> = found
            .filter(|d| d.kind != DeviceKind::Cpu && (d.fp64 || !modelled.fp64))
            .collect();
        modelled.beside_host(&devices)
    }
}

/// The model of this name, or else of the machine.
fn model(
    name: Option<&str>,
    ground: &Ground,
    codelet: &str,
    notes: &mut Vec<String>,
) -> Result<Bundle, Failure> {
    let shelf = ModelShelf::of_user();
    let machine = &ground.file.name;
    if let Some(name) = name {
        let bundle = Source::find(&shelf, name)?.bundle;
        if bundle.machine != *machine {
            notes.push(format!(
                "model {} is of machine {}; `pdawl model adapt` makes one for {machine} of it",
                bundle.name, bundle.machine
            ));
        }
        return Ok(bundle);
    }
    let search = shelf.for_machine(Wanted {
        machine,
        fingerprint: ground.file.fingerprint.as_deref(),
        simulated: ground.simulated,
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
