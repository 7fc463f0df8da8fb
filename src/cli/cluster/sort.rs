//! `pdawl run sort`.

use std::path::{Path, PathBuf};

use pdawl::cluster::space::Extent;
use pdawl::codelet::Precision;
use pdawl::matrix::npy::{ElementType, NpyMatrix};
use pdawl::workload::cluster::{ClusterWorkload, Fill, SortWorkload, generated, of_file};

use super::files::{self, ResultArray, ResultFile};
use super::options::ClusterOptions;
use super::prepared::PreparedWorkload;
use super::run::{ClusterJob, Prepared, run_job};
use crate::cli::failure::Failure;
use crate::cli::integer::integer;
use crate::cli::paths::Paths;

/// Numbers by default, and at most.
const SIZE: u64 = 1 << 26;
const MOST: u64 = 1 << 40;

/// Bands by default: enough for some dozens of nodes.
const BANDS: u64 = 64;

/// Most bands: all nodes get how many numbers of each rank each run has.
const MOST_BANDS: u64 = 256;

/// Numbers of a band that is worth a subtask.
const LEAST_TILE: u64 = 1 << 14;

const EXAMPLES: &str = "Examples:\n  pdawl run sort --size 100000000 --verify\n  \
                        mpirun -n 4 pdawl run sort --input a.npy --output sorted.npy";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Numbers to be sorted, singles from -1 to 1 [default: 67108864]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST))]
    size: Option<u64>,

    /// Numbers of a subtask [default: a sixty-fourth of all]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST))]
    tile: Option<u64>,

    /// Read the numbers from an NPY file of float32 with one dimension; all nodes must see it
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    input: Option<PathBuf>,

    #[command(flatten)]
    options: ClusterOptions,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let options = &args.options;
    check(options)?;
    let job = ClusterJob {
        devices: Some(options.machine.devices.as_deref().unwrap_or("host")),
        ..ClusterJob::new(options)
    };
    run_job(&job, || prepared(args))
}

fn prepared(args: &Args) -> Result<Prepared, Failure> {
    let options = &args.options;
    let (numbers, keys) = match &args.input {
        Some(path) => {
            let row = files::open(path, NpyMatrix::open_vector)?;
            (row.columns(), of_file(row))
        }
        None => random(args.size.unwrap_or(SIZE), options.seed),
    };
    let least = numbers.div_ceil(MOST_BANDS);
    let usual = numbers.div_ceil(BANDS).max(LEAST_TILE).min(numbers);
    let tile = args.tile.unwrap_or(usual);
    if tile < least {
        return Err(Failure::usage(
            format!("--tile {tile} makes more than {MOST_BANDS} subtasks of {numbers} numbers"),
            format!("--tile {least} or more"),
        ));
    }
    let workload = SortWorkload::new(numbers, tile, keys)
        .map_err(|error| Failure::failed(error, "a file that does not change"))?;
    let inputs: Vec<&Path> = args.input.iter().map(PathBuf::as_path).collect();
    let array = ResultArray {
        space: workload.result(),
        shape: &[numbers],
        element: ElementType::Real(Precision::F32),
    };
    let named = files::named(&inputs);
    let mut paths = Paths::reading(inputs);
    let result = ResultFile::prepare(options.output.as_deref(), &mut paths, &array)?;
    let workload = PreparedWorkload {
        workload: Box::new(workload),
        size: format!(
            "{named}{numbers} numbers, {tile} a subtask, seed {}",
            options.seed
        ),
        tile,
        tolerance: None,
        notes: Vec::new(),
        alone: None,
    };
    Ok(Prepared::new(workload, result, paths))
}

/// Refuses what sorting cannot do.
fn check(options: &ClusterOptions) -> Result<(), Failure> {
    options
        .nodes
        .spread
        .refuse_placement("numbers that are sorted")?;
    if options.nodes.cluster.is_some() {
        return Err(Failure::usage(
            "--cluster simulates devices of all kinds, and only hosts sort",
            "the run without it",
        ));
    }
    let devices = options
        .machine
        .devices
        .iter()
        .flat_map(|list| list.split(','));
    match devices
        .into_iter()
        .find(|device| !device.starts_with("host"))
    {
        None => Ok(()),
        Some(device) => Err(Failure::usage(
            format!("--devices: {device} does not sort; only hosts do"),
            "host, or host:N for N cores",
        )),
    }
}

/// Generated numbers.
fn random(numbers: u64, seed: u64) -> (u64, Fill) {
    let extent = Extent {
        rows: 1,
        columns: numbers,
        element: 4,
    };
    (numbers, generated(extent, seed))
}
