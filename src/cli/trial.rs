//! `pdawl bench codelet`: times the variants of one codelet on each device.

use std::sync::atomic::Ordering;

use clap::ValueEnum;
use pdawl::codelet::add_norm::AddNorm;
use pdawl::codelet::gemm::Gemm;
use pdawl::codelet::softmax::Softmax;
use pdawl::codelet::transpose::Transpose;
use pdawl::engine::trial::{Case, Options, TrialError, compare};
use pdawl::machine::{Device, Host, RuntimeKind};
use pdawl::quantity::Bytes;
use pdawl::report::trial::Trial;
use pdawl::runtime::DeviceId;
use pdawl::runtime::select::{self, Libraries, Selection};

use super::args::Format;
use super::failure::{Failure, refused, wrong_devices};
use super::integer::integer;
use super::precision::NumberFormatArg;
use super::{interrupt, terminal};

const EXAMPLES: &str = "Examples:\n  pdawl bench codelet gemm --size 512 --batch 16\n  \
                        pdawl bench codelet gemm --size 512 --queues 8 --devices opencl0.0\n  \
                        pdawl bench codelet gemm --size 4096 --precision bf16\n  \
                        pdawl bench codelet softmax --size 512 --batch 16 --format json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The codelet
    #[arg(value_enum)]
    codelet: Name,

    /// Rows and columns of each matrix
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = integer(1..=32768_u32))]
    size: u32,

    /// Matrices of a launch; for add-norm, summands
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(1..=1024_u32))]
    batch: u32,

    /// The precision of all matrices; sums are f32
    #[arg(long, value_enum, default_value_t)]
    precision: NumberFormatArg,

    /// gemm with its second operand stored transposed
    #[arg(long)]
    transposed: bool,

    /// gemm with the same first operand for the whole batch
    #[arg(long)]
    common: bool,

    /// Queues that get launches at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(1..=64_usize))]
    queues: usize,

    /// Launches of each queue that are timed together
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = integer(1..=1000_usize))]
    launches: usize,

    /// Measurements of each variant
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = integer(1..=u32::MAX))]
    repeats: u32,

    /// Seed of the random data
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    /// Devices, one after the other: host:8,opencl0.0 [default: the host and every
    /// OpenCL device that is not the same CPU]
    #[arg(long, value_name = "LIST", help_heading = "Machine")]
    devices: Option<String>,

    /// How the result is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Matrix times matrix
    Gemm,
    /// Softmax of every row
    Softmax,
    /// Transposition
    Transpose,
    /// A sum of matrices, every row normalised
    AddNorm,
}

impl Args {
    fn case(&self) -> Result<Case, Failure> {
        let (size, batch, format) = (self.size, self.batch, self.precision.into());
        for (given, option) in [(self.transposed, "--transposed"), (self.common, "--common")] {
            if given && self.codelet != Name::Gemm {
                return Err(Failure::usage(
                    format!("{option} is for gemm"),
                    format!("no {option}, or gemm"),
                ));
            }
        }
        let gemm = Gemm {
            transposed: self.transposed,
            common_a: self.common,
            ..Gemm::square(size).format(format).batch(batch)
        };
        Ok(match self.codelet {
            Name::Gemm => Case::gemm(gemm),
            Name::Softmax => Case::softmax(Softmax {
                format,
                rows: u64::from(size) * u64::from(batch),
                width: size,
                factor: 1.0 / (size as f32).sqrt(),
            }),
            Name::Transpose => Case::transpose(Transpose {
                format,
                rows: size,
                columns: size,
                batch,
            }),
            Name::AddNorm => Case::add_norm(AddNorm {
                format,
                rows: size,
                width: size,
                stacks: vec![batch],
            }),
        })
    }
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut case = args.case()?;
    let stop = interrupt::listen()?;
    let options = Options {
        queues: args.queues,
        launches: args.launches,
        repeats: args.repeats,
        seed: args.seed,
    };
    let selection = (args.devices.as_deref())
        .map(str::parse::<Selection>)
        .transpose()
        .map_err(wrong_devices)?;
    let (mut runtime, notes) = select::open(selection.as_ref(), false).map_err(refused)?;
    for device in runtime.devices() {
        fits(&case, args.queues, device)?;
    }
    let mut trial = Trial {
        notes,
        ..Trial::of(&case, options)
    };
    let all = case.variants.clone();
    for (index, device) in runtime.devices().to_vec().iter().enumerate() {
        // On the host all variants are the same native code.
        let native = device.runtime == RuntimeKind::Host;
        let has_libraries =
            device.runtime == RuntimeKind::Cuda && select::libraries() == Libraries::Auto;
        case.variants = (all.iter())
            .filter(|variant| match variant.by_library {
                true => has_libraries,
                false => variant.chosen || !native,
            })
            .cloned()
            .collect();
        let turns = case.variants.len() as u64 * (1 + u64::from(args.repeats));
        let bar = terminal::progress(args.format, turns, &device.name);
        let tried = compare(&mut *runtime, DeviceId(index), &case, options, &mut || {
            bar.inc(1);
            !stop.load(Ordering::Relaxed)
        });
        bar.finish_and_clear();
        trial.add(device, &tried.map_err(failure)?, case.cost);
        trial.interrupted = stop.load(Ordering::Relaxed);
        if trial.interrupted {
            break;
        }
    }
    terminal::print_report(args.format, &trial, Trial::render)?;
    match (trial.interrupted, trial.right()) {
        (true, _) => Err(Failure::Interrupted),
        (false, true) => Ok(()),
        (false, false) => Err(Failure::failed(
            "the result of a variant differs from the reference",
            "another driver, or a bug report with the table above",
        )),
    }
}

/// Refuses a case that does not fit the memory of the host or of a device.
fn fits(case: &Case, queues: usize, device: &Device) -> Result<(), Failure> {
    let (host, own) = case.memory(queues, device.shares_host_memory);
    let free = Host::detect().memory.obtainable(0);
    let (whose, needed, there) = match own > device.memory {
        true => (device.name.as_str(), own, device.memory),
        false => ("the host", host, free),
    };
    if needed <= there {
        return Ok(());
    }
    Err(Failure::failed(
        format!(
            "{}: it needs {} of the memory of {whose}, and {} are free",
            case.title,
            Bytes(needed),
            Bytes(there)
        ),
        "a smaller --size or --batch, or fewer --queues",
    ))
}

fn failure(error: TrialError) -> Failure {
    match error {
        TrialError::Runtime(error) => refused(error),
        other => Failure::of(other),
    }
}
