//! `pdawl run convolution`.

use pdawl::cluster::space::Extent;
use pdawl::workload::cluster::{ConvolutionWorkload, Placement, generated};

use super::options::ClusterOptions;
use super::prepared::PreparedWorkload;
use super::run::{ClusterJob, run_job};
use crate::cli::failure::Failure;
use crate::cli::integer::integer;

/// Rows and columns by default.
const SIZE: u64 = 4096;

const EXAMPLES: &str = "Examples:\n  pdawl run convolution --size 8192 --filter 31 --verify\n  \
                        mpirun -n 4 pdawl run convolution --size 16384 --filter 31\n  \
                        mpirun -n 4 pdawl run convolution --spread steal --placement random \
                        --format json\n  \
                        pdawl run convolution --size 65536 --cluster unicorn --noise 0.05";

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

    /// Rows and columns of the filter, an odd number
    #[arg(long, value_name = "N", default_value_t = 31, value_parser = integer(1..=999_u32))]
    filter: u32,

    /// Numbers of a pixel
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = integer(1..=64_u32))]
    channels: u32,

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

    #[command(flatten)]
    options: ClusterOptions,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let prepared = prepare(&args.sizes, args.options.placement(), args.options.seed)?;
    run_job(&ClusterJob::new(&prepared, &args.options))
}

/// The convolution of a generated image.
///
/// # Errors
/// A filter without a middle, and blocks that it exceeds.
pub fn prepare(args: &Sizes, placement: Placement, seed: u64) -> Result<PreparedWorkload, Failure> {
    let square = args.size.unwrap_or(SIZE);
    let (rows, columns) = (args.rows.unwrap_or(square), args.columns.unwrap_or(square));
    let size = args.filter;
    if size.is_multiple_of(2) {
        return Err(Failure::usage(
            format!("--filter {size}: a filter without a middle has no pixel to belong to"),
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
    let pixel = 4 * u64::from(args.channels);
    let extent = |rows, columns, element| Extent {
        rows,
        columns,
        element,
    };
    let workload = ConvolutionWorkload {
        rows,
        columns,
        channels: args.channels,
        size,
        tile,
        placement,
        image: generated(extent(rows, columns, pixel), seed),
        filter: generated(extent(size.into(), size.into(), 4), seed.wrapping_add(1)),
    };
    Ok(PreparedWorkload {
        workload: Box::new(workload),
        size: format!(
            "{rows} x {columns} x {} with {size} x {size}, blocks of {tile}, seed {seed}",
            args.channels
        ),
        tile,
    })
}
