//! A workload that was made from the command line.

use pdawl::balance::Strategy;
use pdawl::engine::cluster::simulate::Computing;
use pdawl::machine::Device;
use pdawl::report::Workload;
use pdawl::report::run::nodes::Tolerance;
use pdawl::spread::Network;
use pdawl::workload::cluster::{BandsWorkload, ClusterWorkload, Fit, demand};

use super::options::SpreadOptions;

/// Blocks of a co-run have no common height and width.
const NO_TILE: u64 = 1;

/// A workload over nodes.
pub struct PreparedWorkload {
    pub workload: Box<dyn ClusterWorkload>,
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
    /// How one machine computes it by itself.
    pub alone: Option<LonePart>,
    /// Makes it for the nodes of a run; none if its sizes do not depend on them.
    pub fits: Option<Fits>,
}

/// Makes a workload whose subtasks fit nodes.
pub type Fits = Box<dyn Fn(Fit) -> FittedWorkload>;

/// A workload as the nodes of a run compute it.
pub struct FittedWorkload {
    pub workload: Box<dyn ClusterWorkload>,
    /// Its sizes, in words.
    pub size: String,
    /// Rows and columns of blocks.
    pub tile: u64,
}

/// Makes a workload for the devices of one machine.
pub type OnDevices = Box<dyn Fn(&[Device]) -> LoneWorkload>;

/// How one machine computes a workload by itself.
pub struct LonePart {
    /// The workload for its devices.
    pub on: OnDevices,
    /// Whether it computes with doubles.
    pub fp64: bool,
}

/// A workload as the devices of one machine compute it.
pub struct LoneWorkload {
    pub workload: Box<dyn ClusterWorkload>,
    /// Its sizes, in words.
    pub size: String,
}

impl PreparedWorkload {
    /// A workload whose subtasks fit nodes; until these are known, one node with a device.
    pub fn fitted(computing: Computing, fits: Fits, alone: Option<LonePart>) -> Self {
        let FittedWorkload {
            workload,
            size,
            tile,
        } = fits(Fit::new(&[], Network::default()));
        Self {
            workload,
            size,
            tile,
            tolerance: None,
            notes: Vec::new(),
            computing,
            alone,
            fits: Some(fits),
        }
    }

    /// A co-run over nodes.
    pub fn of_bands(workload: BandsWorkload, size: String) -> Self {
        Self {
            workload: Box::new(workload),
            size,
            tile: NO_TILE,
            tolerance: None,
            notes: Vec::new(),
            computing: Computing::All,
            alone: None,
            fits: None,
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
    pub fn fit(&mut self, fit: Fit) {
        if let Some(fits) = &self.fits {
            let FittedWorkload {
                workload,
                size,
                tile,
            } = fits(fit);
            (self.workload, self.size, self.tile) = (workload, size, tile);
        }
    }

    /// The rows and columns of blocks that fit the nodes; none if these depend on no nodes.
    pub fn fitted_tile(&self) -> Option<u64> {
        self.fits.as_ref().map(|_| self.tile)
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
