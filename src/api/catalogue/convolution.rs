//! The convolution of an image with a filter.

use std::path::Path;

use super::{Entry, Given, Made, OUTPUT, Parameter, Unfit, input};
use crate::cluster::space::Extent;
use crate::codelet::Precision;
use crate::matrix::npy::{ElementType, NpyMatrix};
use crate::workload::cluster::{ConvolutionWorkload, Placement, generated, of_file};

/// Rows and columns, rows of the filter and numbers of a pixel by default.
const SIZE: u64 = 4096;
const FILTER: u64 = 31;
const CHANNELS: u64 = 3;

/// Most rows of a filter and numbers of a pixel: the kernel sums all of them for a pixel.
const MOST_FILTER: u64 = 999;
const MOST_CHANNELS: u64 = 64;
const LENGTH: (u64, u64) = (1, u32::MAX as u64);

pub const ENTRY: Entry = Entry {
    name: "convolution",
    about: "An image convolved with a filter that is not mirrored (a correlation), over the nodes \
            of a cluster",
    examples: "Examples:\n  pdawl run convolution --size 8192 --filter 31 --verify\n  \
               mpirun -n 4 pdawl run convolution --size 16384 --filter 31\n  \
               mpirun -n 4 pdawl run convolution --spread steal --placement random --format json\n  \
               pdawl run convolution --size 65536 --cluster unicorn --noise 0.05\n  \
               mpirun -n 4 pdawl run convolution --image a.npy --filter-file f.npy --output b.npy",
    parameters: &[
        Parameter {
            excludes: &["rows", "columns"],
            ..Parameter::number(
                "size",
                LENGTH,
                "Rows and pixels a row of a square image [default: 4096]",
            )
        },
        Parameter {
            needs: &["columns"],
            ..Parameter::number("rows", LENGTH, "Rows of the image")
        },
        Parameter {
            needs: &["rows"],
            ..Parameter::number("columns", LENGTH, "Pixels of a row")
        },
        Parameter::number(
            "filter",
            (1, MOST_FILTER),
            "Rows and columns of the filter, an odd number [default: 31]",
        ),
        Parameter::number(
            "channels",
            (1, MOST_CHANNELS),
            "Numbers of a pixel [default: 3]",
        ),
        Parameter::tile(
            (1, 16384),
            "Rows and pixels a row of a subtask's block [default: a sixteenth of the image, at \
             most 2048, and at least what the filter reaches beyond it]",
        ),
        Parameter {
            excludes: &["size", "rows", "columns", "channels"],
            ..Parameter::file(
                "image",
                "Read the image from an NPY file of float32: rows, columns, and channels if it has \
                 several; all nodes must see it",
            )
        },
        Parameter {
            excludes: &["filter"],
            ..Parameter::file(
                "filter-file",
                "Read the filter, a square matrix, from an NPY file of float32",
            )
        },
    ],
    results: &[OUTPUT],
    nodes: Some(Placement::Grid),
    hosts_only: false,
    make,
};

/// What no file has is generated.
fn make(given: &Given) -> Result<Made, Unfit> {
    let generated = |rows, columns, element, seed| {
        let extent = Extent {
            rows,
            columns,
            element,
        };
        generated(extent, seed)
    };
    let (rows, columns, channels, image) = match given.file("image") {
        Some(path) => {
            let image = input::singles(path, NpyMatrix::open_image)?;
            let (rows, columns, per) = (image.rows(), image.columns(), image.per());
            let channels = at_most(path, "numbers of a pixel", per, MOST_CHANNELS)?;
            (rows, columns, channels, of_file(image))
        }
        None => {
            let square = given.number("size").unwrap_or(SIZE);
            let length = |name| given.number(name).unwrap_or(square);
            let (rows, columns) = (length("rows"), length("columns"));
            let channels = given.number("channels").unwrap_or(CHANNELS);
            let image = generated(rows, columns, 4 * channels, given.seed);
            (rows, columns, channels, image)
        }
    };
    let (size, filter) = match given.file("filter-file") {
        Some(path) => {
            let filter = input::square(input::singles(path, NpyMatrix::open)?)?;
            let size = at_most(path, "rows", filter.rows(), MOST_FILTER)?;
            (size, of_file(filter))
        }
        None => {
            let size = given.number("filter").unwrap_or(FILTER);
            (size, generated(size, size, 4, given.seed.wrapping_add(1)))
        }
    };
    if size.is_multiple_of(2) {
        return Err(Unfit::value(
            format!("{size} rows of the filter: one without a middle has no pixel to belong to"),
            format!("an odd number, such as {}", size + 1),
        ));
    }
    let reach = size / 2;
    let sixteenth = rows.max(columns).div_ceil(16).min(2048);
    let tile = given.values.tile().unwrap_or(sixteenth.max(reach).max(1));
    if reach > tile {
        return Err(Unfit::value(
            format!("the filter reaches {reach} pixels beyond a block, more than its {tile}"),
            format!("--tile {reach} or more, or a smaller --filter"),
        ));
    }
    let workload = ConvolutionWorkload {
        rows,
        columns,
        channels: channels as u32,
        size: size as u32,
        placement: given.placement,
        image,
        filter,
    };
    // An image of one channel is a matrix.
    let pixel = (channels > 1).then_some(channels);
    Ok(Made {
        operation: workload.operation(tile),
        arrays: vec![(
            [rows, columns].into_iter().chain(pixel).collect(),
            ElementType::Real(Precision::F32),
        )],
    })
}

/// A size of a file that has a limit.
fn at_most(path: &Path, what: &str, found: u64, most: u64) -> Result<u64, Unfit> {
    match found <= most {
        true => Ok(found),
        false => Err(Unfit::input(
            format!("{}: {found} {what}", path.display()),
            format!("at most {most}"),
        )),
    }
}
