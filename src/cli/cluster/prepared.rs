//! A workload that was made from the command line.

use std::path::Path;
use std::sync::Arc;

use pdawl::balance::Strategy;
use pdawl::catalogue::Values;
use pdawl::engine::cluster::simulate::Computing;
use pdawl::report::Workload;
use pdawl::report::run::nodes::Tolerance;
use pdawl::spread::Network;
use pdawl::workload::cluster::{
    BandsWorkload, ClusterWorkload, Fit, Operation, OperationError, Place, Placed, demand,
};

use super::options::SpreadOptions;
use crate::failure::Failure;

/// Blocks of a co-run have no common height and width.
const NO_TILE: u64 = 1;

/// What is computed.
pub enum Work {
    /// A workload that several nodes compute.
    Fixed(Box<PreparedWorkload>),
    /// One that is made for the place where it runs.
    Operation(OperationJob),
}

/// An operation as it is asked for.
#[derive(Clone)]
pub struct OperationJob {
    pub operation: Arc<Operation>,
    /// What the user says of it, such as the rows and columns of its parts.
    pub values: Values,
    /// The given files, for its description.
    pub inputs: Vec<String>,
    seed: u64,
}

/// A workload over nodes.
pub struct PreparedWorkload {
    pub workload: Arc<dyn ClusterWorkload>,
    /// Its sizes, in words.
    pub size: String,
    /// Rows and columns of blocks.
    pub tile: u64,
    /// When it may end before its last step.
    pub tolerance: Option<Tolerance>,
    /// Notes for the report.
    pub notes: Vec<String>,
    /// Which devices of a simulated node compute it.
    pub computing: Computing,
    /// What makes it for other nodes; none if its sizes do not depend on them.
    pub operation: Option<OperationJob>,
}

impl OperationJob {
    /// An operation on generated data, or on those of these files.
    pub fn new(operation: Operation, values: Values, inputs: &[&Path], seed: u64) -> Self {
        Self {
            operation: Arc::new(operation),
            values,
            inputs: inputs
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
            seed,
        }
    }

    /// The workload for a place, and its sizes in words.
    ///
    /// # Errors
    /// Data that cannot be read, and too many tasks.
    pub fn at(&self, place: Place) -> Result<(Placed, String), Failure> {
        let placed = self.operation.at(place, self.values.tile());
        let placed = placed.map_err(|error| match error {
            OperationError::Input(_) => Failure::failed(error, "a file that does not change"),
            OperationError::Tasks { .. } => Failure::usage(error, "a larger --tile"),
            OperationError::Singles(_) => Failure::failed(
                error,
                "the run without mpirun; matrix.astype(\"float32\") rounds float64 to 7 digits",
            ),
        })?;
        let size = (self.operation).described(&placed, &self.inputs, Some(self.seed));
        Ok((placed, size))
    }

    /// Which devices of a simulated node compute it.
    pub fn computing(&self) -> Computing {
        match self.operation.hosts_only {
            true => Computing::Host,
            false => Computing::All,
        }
    }

    /// The workload over nodes; until these are known, of one with a device.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn over_nodes(self) -> Result<PreparedWorkload, Failure> {
        let (placed, size) = self.at(Place::Nodes(Fit::new(&[], Network::default())))?;
        Ok(PreparedWorkload {
            workload: placed.workload,
            size,
            tile: placed.tile,
            tolerance: None,
            notes: Vec::new(),
            computing: self.computing(),
            operation: Some(self),
        })
    }
}

impl Work {
    /// The workload over nodes.
    ///
    /// # Errors
    /// As [`OperationJob::at`].
    pub fn over_nodes(self) -> Result<PreparedWorkload, Failure> {
        match self {
            Self::Fixed(workload) => Ok(*workload),
            Self::Operation(operation) => operation.over_nodes(),
        }
    }
}

impl From<PreparedWorkload> for Work {
    fn from(workload: PreparedWorkload) -> Self {
        Self::Fixed(Box::new(workload))
    }
}

impl From<OperationJob> for Work {
    fn from(operation: OperationJob) -> Self {
        Self::Operation(operation)
    }
}

impl PreparedWorkload {
    /// A co-run over nodes.
    pub fn of_bands(workload: BandsWorkload, size: String) -> Self {
        Self {
            workload: Arc::new(workload),
            size,
            tile: NO_TILE,
            tolerance: None,
            notes: Vec::new(),
            computing: Computing::All,
            operation: None,
        }
    }

    /// What spreads it over nodes and devices, for reports.
    pub fn policy(&self, spread: &SpreadOptions) -> String {
        match self.workload.bands() {
            Some(_) => Strategy::Dawl.to_string(),
            None => spread.spread().to_string(),
        }
    }

    /// Gives its subtasks sizes that fit the nodes which compute it.
    ///
    /// # Errors
    /// As [`OperationJob::at`].
    pub fn fit(&mut self, fit: Fit) -> Result<(), Failure> {
        if let Some(operation) = &self.operation {
            let (placed, size) = operation.at(Place::Nodes(fit))?;
            (self.workload, self.size, self.tile) = (placed.workload, size, placed.tile);
        }
        Ok(())
    }

    /// The rows and columns of blocks that fit the nodes; none if these depend on no nodes.
    pub fn fitted_tile(&self) -> Option<u64> {
        self.operation.as_ref().map(|_| self.tile)
    }

    /// Bytes of all spaces.
    pub fn bytes(&self) -> u128 {
        demand::bytes(&*self.workload)
    }

    /// What is computed, for reports: so many tasks.
    pub fn described(&self, tasks: u64) -> Workload {
        Workload::of_tasks(&*self.workload, self.size.clone(), tasks)
    }
}
