//! `pdawl run convolution`.

use std::path::{Path, PathBuf};

use pdawl::cluster::space::Extent;
use pdawl::codelet::Precision;
use pdawl::matrix::npy::{ElementType, NpyMatrix};
use pdawl::workload::cluster::{ConvolutionWorkload, Placement, generated, of_file};

use super::files::{self, ResultArray, ResultFile};
use super::options::ClusterOptions;
use super::prepared::OperationJob;
use super::run::{ClusterJob, Prepared, run_job};
use crate::failure::Failure;
use crate::integer::integer;
use crate::paths::Paths;

/// Rows and columns, rows of the filter and numbers of a pixel by default.
const SIZE: u64 = 4096;
const FILTER: u32 = 31;
const CHANNELS: u32 = 3;

/// Most rows of a filter and numbers of a pixel: the kernel sums all of them for a pixel.
const MOST_FILTER: u32 = 999;
const MOST_CHANNELS: u32 = 64;

const EXAMPLES: &str = "Examples:\n  pdawl run convolution --size 8192 --filter 31 --verify\n  \
                        mpirun -n 4 pdawl run convolution --size 16384 --filter 31\n  \
                        mpirun -n 4 pdawl run convolution --spread steal --placement random \
                        --format json\n  \
                        pdawl run convolution --size 65536 --cluster unicorn --noise 0.05\n  \
                        mpirun -n 4 pdawl run convolution --image a.npy --filter-file f.npy \
                        --output b.npy";

/// The sizes of an image, its filter and its blocks.
#[derive(Debug, clap::Args)]
pub struct Sizes {
    /// Rows and pixels a row of a square image [default: 4096]
    #[arg(long, value_name = "N", value_parser = integer(1..=u64::from(u32::MAX)),
          conflicts_with_all = ["rows", "columns"])]
    size: Option<u64>,

    /// Rows of the image
    #[arg(long, value_name = "N", value_parser = integer(1..=u64::from(u32::MAX)),
          requires = "columns")]
    rows: Option<u64>,

    /// Pixels of a row
    #[arg(long, value_name = "N", value_parser = integer(1..=u64::from(u32::MAX)),
          requires = "rows")]
    columns: Option<u64>,

    /// Rows and columns of the filter, an odd number [default: 31]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST_FILTER))]
    filter: Option<u32>,

    /// Numbers of a pixel [default: 3]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST_CHANNELS))]
    channels: Option<u32>,

    /// Rows and pixels a row of a subtask's block [default: a sixteenth of the image, at
    /// most 2048, and at least what the filter reaches beyond it]
    #[arg(long, value_name = "N", value_parser = integer(1..=16384_u64))]
    tile: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    sizes: Sizes,

    /// Read the image from an NPY file of float32: rows, columns, and channels if it has
    /// several; all nodes must see it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["size", "rows", "columns", "channels"])]
    image: Option<PathBuf>,

    /// Read the filter, a square matrix, from an NPY file of float32
    #[arg(long, value_name = "FILE", conflicts_with = "filter")]
    filter_file: Option<PathBuf>,

    #[command(flatten)]
    options: ClusterOptions,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    run_job(&ClusterJob::new(&args.options), || given(args))
}

fn given(args: &Args) -> Result<Prepared, Failure> {
    let options = &args.options;
    let files = [&args.image, &args.filter_file].map(Option::as_deref);
    let placement = options.placement(Placement::Grid);
    let (workload, alone) = workload(&args.sizes, files, placement, options.seed)?;
    let ConvolutionWorkload {
        rows,
        columns,
        channels,
        ..
    } = workload;
    let operation = workload.operation(alone);
    let shape = [rows, columns, channels.into()];
    let array = ResultArray {
        space: operation.outputs[0],
        // An image of one channel is a matrix.
        shape: if channels == 1 { &shape[..2] } else { &shape },
        element: ElementType::Real(Precision::F32),
    };
    let inputs: Vec<&Path> = files.into_iter().flatten().collect();
    let operation = OperationJob::new(operation, args.sizes.tile, &inputs, options.seed);
    let mut paths = Paths::reading(inputs);
    let result = ResultFile::prepare(options.output.as_deref(), &mut paths, &array)?;
    Ok(Prepared::new(operation, result, paths))
}

/// The convolution of an image with a filter, and the rows of its blocks on one machine. What no
/// file has is generated.
fn workload(
    args: &Sizes,
    [image, filter]: [Option<&Path>; 2],
    placement: Placement,
    seed: u64,
) -> Result<(ConvolutionWorkload, u64), Failure> {
    let extent = |rows, columns, element| Extent {
        rows,
        columns,
        element,
    };
    let (rows, columns, channels, image) = match image {
        Some(path) => {
            let image = files::open(path, NpyMatrix::open_image)?;
            let (rows, columns, per) = (image.rows(), image.columns(), image.per());
            let channels = at_most(path, "numbers of a pixel", per, MOST_CHANNELS)?;
            (rows, columns, channels, of_file(image))
        }
        None => {
            let square = args.size.unwrap_or(SIZE);
            let (rows, columns) = (args.rows.unwrap_or(square), args.columns.unwrap_or(square));
            let channels = args.channels.unwrap_or(CHANNELS);
            let pixel = 4 * u64::from(channels);
            let image = generated(extent(rows, columns, pixel), seed);
            (rows, columns, channels, image)
        }
    };
    let (size, filter) = match filter {
        Some(path) => {
            let filter = files::square(files::open(path, NpyMatrix::open)?)?;
            let size = at_most(path, "rows", filter.rows(), MOST_FILTER)?;
            (size, of_file(filter))
        }
        None => {
            let size = args.filter.unwrap_or(FILTER);
            let extent = extent(size.into(), size.into(), 4);
            (size, generated(extent, seed.wrapping_add(1)))
        }
    };
    if size.is_multiple_of(2) {
        return Err(Failure::usage(
            format!("{size} rows of the filter: one without a middle has no pixel to belong to"),
            format!("an odd number, such as {}", size + 1),
        ));
    }
    let reach = u64::from(size / 2);
    let sixteenth = rows.max(columns).div_ceil(16).min(2048);
    let tile = args.tile.unwrap_or(sixteenth.max(reach).max(1));
    if reach > tile {
        return Err(Failure::usage(
            format!("the filter reaches {reach} pixels beyond a block, more than its {tile}"),
            format!("--tile {reach} or more, or a smaller --filter"),
        ));
    }
    let workload = ConvolutionWorkload {
        rows,
        columns,
        channels,
        size,
        placement,
        image,
        filter,
    };
    Ok((workload, tile))
}

/// A size of a file that has a limit.
fn at_most(path: &Path, what: &str, found: u64, most: u32) -> Result<u32, Failure> {
    let allowed = u32::try_from(found).ok().filter(|size| *size <= most);
    allowed.ok_or_else(|| {
        Failure::failed(
            format!("{}: {found} {what}", path.display()),
            format!("at most {most}"),
        )
    })
}
