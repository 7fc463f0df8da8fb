//! `pdawl run sort`.

use std::path::{Path, PathBuf};

use pdawl::cluster::space::Extent;
use pdawl::codelet::Precision;
use pdawl::matrix::npy::{ElementType, NpyMatrix};
use pdawl::workload::cluster::{self, Fill, SortSamples, generated, of_file};

use super::files::{self, ResultArray, ResultFile};
use super::options::ClusterOptions;
use super::prepared::OperationJob;
use super::run::{ClusterJob, Prepared, run_job};
use crate::failure::Failure;
use crate::integer::integer;
use crate::paths::Paths;

/// Numbers by default, and at most.
const SIZE: u64 = 1 << 26;
const MOST: u64 = 1 << 40;

const EXAMPLES: &str = "Examples:\n  pdawl run sort --size 100000000 --verify\n  \
                        mpirun -n 4 pdawl run sort --input a.npy --output sorted.npy\n  \
                        pdawl run sort --size 1000000000 --cluster four";

/// The numbers and those of a subtask.
#[derive(Debug, clap::Args)]
pub struct Sizes {
    /// Numbers to be sorted, singles from -1 to 1 [default: 67108864]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST))]
    size: Option<u64>,

    /// Numbers of a subtask over nodes [default: by the nodes]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST))]
    tile: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    sizes: Sizes,

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
    let mut on_hosts = options.clone();
    if options.nodes.cluster.is_none() {
        let devices = &mut on_hosts.machine.devices;
        devices.get_or_insert_with(|| "host".to_owned());
    }
    let job = ClusterJob::new(&on_hosts);
    run_job(&job, || given(args))
}

fn given(args: &Args) -> Result<Prepared, Failure> {
    let options = &args.options;
    let (numbers, keys) = match &args.input {
        Some(path) => {
            let row = files::open(path, NpyMatrix::open_vector)?;
            (row.columns(), of_file(row))
        }
        None => random(args.sizes.size.unwrap_or(SIZE), options.seed),
    };
    let inputs: Vec<&Path> = args.input.iter().map(PathBuf::as_path).collect();
    let sort = prepared(args.sizes.tile, (numbers, keys), &inputs, options.seed)?;
    let array = ResultArray {
        space: sort.operation.outputs[0],
        shape: &[numbers],
        element: ElementType::Real(Precision::F32),
    };
    let mut paths = Paths::reading(inputs);
    let result = ResultFile::prepare(options.output.as_deref(), &mut paths, &array)?;
    Ok(Prepared::new(sort, result, paths))
}

/// The sort of some numbers, of a file if they have one.
fn prepared(
    tile: Option<u64>,
    (numbers, keys): (u64, Fill),
    inputs: &[&Path],
    seed: u64,
) -> Result<OperationJob, Failure> {
    let (most, least) = (SortSamples::MOST_BANDS, SortSamples::least_tile(numbers));
    if let Some(tile) = tile.filter(|tile| *tile < least) {
        return Err(Failure::usage(
            format!("--tile {tile} makes more than {most} subtasks of {numbers} numbers"),
            format!("--tile {least} or more"),
        ));
    }
    let operation = cluster::sort(numbers, keys);
    Ok(OperationJob::new(operation, tile, inputs, seed))
}

/// Refuses what sorting cannot do.
fn check(options: &ClusterOptions) -> Result<(), Failure> {
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
