//! The operations on dense data that `pdawl run` has: one file and one line each.
//!
//! An [`Entry`] has all that is said of one: its name, its parameters with defaults and bounds, its
//! results, and the function that makes it of given values. The command line, its help and the
//! checks of options read it.

mod cholesky;
mod convolution;
mod fft;
mod input;
mod lu;
mod matmul;
mod parameter;
mod sort;

use std::path::Path;

use thiserror::Error;

use crate::cluster::space::Extent;
use crate::codelet::Element;
use crate::matrix::npy::{ElementType, NpyError};
use crate::workload::cluster::{Fill, Operation, Placement, generated_as};
use crate::workload::task_set::MOST_ROWS;

pub use parameter::{Kind, Parameter, Value, Values};

/// All of them, in the order of the help.
pub const OPERATIONS: &[&Entry] = &[
    &matmul::ENTRY,
    &cholesky::ENTRY,
    &convolution::ENTRY,
    &lu::ENTRY,
    &fft::ENTRY,
    &sort::ENTRY,
];

/// An operation.
pub struct Entry {
    pub name: &'static str,
    /// A line for people.
    pub about: &'static str,
    /// Command lines that begin with it, and what else people should see.
    pub examples: &'static str,
    pub parameters: &'static [Parameter],
    /// Files that results are written to, in the order of [`Made::arrays`].
    pub results: &'static [Parameter],
    /// Where blocks of the inputs are at first over nodes; `None` if it is for one machine alone.
    pub nodes: Option<Placement>,
    /// Whether only hosts compute it.
    pub hosts_only: bool,
    pub make: fn(&Given) -> Result<Made, Unfit>,
}

/// What an operation is made of.
pub struct Given<'a> {
    pub values: &'a Values,
    /// Of generated data.
    pub seed: u64,
    pub placement: Placement,
}

/// An operation of given values.
pub struct Made {
    pub operation: Operation,
    /// Of its outputs: shape and elements.
    pub arrays: Vec<(Vec<u64>, ElementType)>,
}

/// Why there is no operation of given values.
#[derive(Debug, Error)]
pub enum Unfit {
    /// A value is wrong.
    #[error("{what}; {remedy}")]
    Value { what: String, remedy: String },
    /// A file has something that cannot be computed.
    #[error("{what}; {remedy}")]
    Input { what: String, remedy: String },
    #[error(transparent)]
    File(#[from] NpyError),
}

impl Unfit {
    fn value(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Value {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    fn input(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input {
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl Entry {
    /// Makes it, in parts that are not larger than it is.
    ///
    /// # Errors
    /// Values and files that do not suit.
    pub fn made(&self, given: &Given) -> Result<Made, Unfit> {
        let made = (self.make)(given)?;
        let longest = made.operation.dense.map(|sizes| sizes.longest());
        match longest.zip(given.values.tile()) {
            Some((longest, tile)) if tile > longest => Err(Unfit::value(
                format!(
                    "--tile {tile}: the tile is larger than the matrices, which have at most \
                     {longest} rows and columns"
                ),
                format!("--tile {longest} or less, or --tile auto"),
            )),
            _ => Ok(made),
        }
    }
}

impl Given<'_> {
    /// The path of a file, if there is one.
    fn file(&self, name: &str) -> Option<&Path> {
        self.values.file(name)
    }

    /// A number, if it is given.
    fn number(&self, name: &str) -> Option<u64> {
        self.values.number(name)
    }

    /// A generated matrix.
    fn generated(&self, element: impl Into<Element>, rows: u64, columns: u64, seed: u64) -> Fill {
        let element = element.into();
        let extent = Extent {
            rows,
            columns,
            element: element.bytes(),
        };
        generated_as(element, extent, seed)
    }
}

/// The file of the only result.
const OUTPUT: Parameter = Parameter::file(
    "output",
    "Write the result to an NPY file, unless it was found wrong",
);

/// Of products and factorisations in tiles, on one machine: the order of the tasks, those that a
/// device has at once, and timed runs.
const ORDER: Parameter = Parameter {
    default: "natural",
    ..Parameter::choice(
        "order",
        &[("natural", ""), ("random", "")],
        "The order in which the policy learns of the tasks",
    )
};
const WINDOW: Parameter = Parameter::number(
    "window",
    (1, 10_000),
    "Tasks that a device has at once, running and loading, of policies that have a window \
     [default: 16]",
);
const REPEATS: Parameter = Parameter {
    default: "1",
    ..Parameter::number(
        "repeats",
        (1, u32::MAX as u64),
        "Timed runs; on real devices without --fault, one that is not timed comes first",
    )
};

const TILE: Parameter = Parameter {
    more: "Tiles at the edges are smaller where the size is no multiple. `auto` takes the greatest \
           power of two from 256 to 4096 (1024 for cholesky) that leaves each device 128 tasks, or \
           a smaller one if the tiles of 16 tasks do not fit a GPU's memory; on GPUs alone 2, 4 ... \
           times as long ones, if these are expected to be faster. OpenCL kernels are fastest where \
           rows are multiples of 16 bytes.",
    default: "auto",
    ..Parameter::tile(
        (1, MOST_ROWS as u64),
        "Rows and columns of a tile, or `auto`",
    )
};
