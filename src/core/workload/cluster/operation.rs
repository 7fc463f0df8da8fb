//! An operation on given data, wherever it is computed: the one place where its sizes, its
//! workload and what comes of it are set up, for the command line, sessions and predictions.

use std::sync::Arc;

use thiserror::Error;

use super::program::Program;
use super::{ClusterWorkload, FillError, Fit};
use crate::graph::{GraphError, check_tasks};
use crate::machine::{Device, is_pool};

/// What computes an operation.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// One machine by itself.
    Alone(Lone),
    /// The nodes of a cluster.
    Nodes(Fit),
}

impl Place {
    /// The nodes, if they are several, or one has several parts as the user says their size.
    pub(super) fn several(self, tile: Option<u64>) -> Option<Fit> {
        match self {
            Self::Nodes(fit) if !fit.is_single() || tile.is_some() => Some(fit),
            _ => None,
        }
    }
}

/// What sizes on one machine depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lone {
    pub devices: usize,
    /// Whether the workers of one pool are all that there is.
    pub is_pool: bool,
    /// The least that a device has of memory of its own; none if no device has some.
    pub memory: Option<u64>,
}

impl Lone {
    /// These devices, of whose own memory at most so many bytes are used.
    pub fn on(devices: &[Device], most: Option<u64>) -> Self {
        let own = devices.iter().filter(|device| !device.shares_host_memory);
        let own = own.map(|device| device.memory.min(most.unwrap_or(u64::MAX)));
        Self {
            devices: devices.len(),
            is_pool: is_pool(devices),
            memory: own.min(),
        }
    }
}

/// An operation.
pub struct Operation {
    /// Its sizes, in words.
    pub title: String,
    /// Whether it computes with doubles.
    pub fp64: bool,
    /// Bytes of all of its data.
    pub bytes: u128,
    /// Of one on tiles.
    pub dense: Option<DenseSizes>,
    /// Whether only hosts compute it.
    pub hosts_only: bool,
    /// The spaces that it returns, the result first.
    pub outputs: Vec<usize>,
    pub(super) make: Box<Make>,
}

/// The sizes of a product or a factorisation in tiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseSizes {
    /// Of the result.
    pub rows: u64,
    pub columns: u64,
    /// Columns of the first factor.
    pub depth: Option<u64>,
    pub precision: &'static str,
    pub flops: f64,
}

impl DenseSizes {
    /// The greatest length.
    pub fn longest(&self) -> u64 {
        self.rows.max(self.columns).max(self.depth.unwrap_or(0))
    }
}

/// Makes an operation's workload for a place, in parts of so many rows, or of those that suit
/// the place.
type Make = dyn Fn(Place, Option<u64>) -> Result<Placed, OperationError> + Send + Sync;

/// A workload for a place.
#[derive(Clone)]
pub struct Placed {
    pub workload: Arc<dyn ClusterWorkload>,
    /// Its parts, in words, such as `blocks of 64`; empty if it is not divided.
    pub parts: String,
    /// Rows and columns of a part.
    pub tile: u64,
}

/// Why an operation has no workload.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum OperationError {
    #[error(transparent)]
    Input(#[from] FillError),

    #[error(
        "the matrices have {0}, and products over nodes are of f32; one machine multiplies them, \
         and matrix.astype(\"float32\") rounds float64 to 7 digits"
    )]
    Singles(&'static str),

    #[error("with tiles of {tile}: {error}")]
    Tasks { tile: u64, error: GraphError },
}

impl Operation {
    /// The workload for a place, in parts of `tile` rows if the user says so.
    ///
    /// # Errors
    /// Data that cannot be read, and too many tasks.
    pub fn at(&self, place: Place, tile: Option<u64>) -> Result<Placed, OperationError> {
        (self.make)(place, tile)
    }

    /// Its sizes and those of its parts, in words.
    pub fn size(&self, placed: &Placed) -> String {
        match placed.parts.is_empty() {
            true => self.title.clone(),
            false => format!("{}, {}", self.title, placed.parts),
        }
    }

    /// The same with the files of its data, and with the seed of generated ones.
    pub fn described(&self, placed: &Placed, inputs: &[String], seed: Option<u64>) -> String {
        let named: String = inputs.iter().map(|file| format!("{file}, ")).collect();
        let seed = seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
        format!("{named}{}{seed}", self.size(placed))
    }
}

impl Placed {
    /// A workload in parts of so many rows.
    pub(super) fn new(workload: impl ClusterWorkload + 'static, parts: String, tile: u64) -> Self {
        Self {
            workload: Arc::new(workload),
            parts,
            tile,
        }
    }

    /// A program of so many tasks on tiles.
    pub(super) fn in_tiles(
        tasks: u64,
        program: impl FnOnce() -> Program,
        tile: u64,
    ) -> Result<Self, OperationError> {
        check_tasks(tasks).map_err(|error| OperationError::Tasks { tile, error })?;
        Ok(Self::new(program(), format!("tiles of {tile}"), tile))
    }
}
