//! Workloads over the nodes of a cluster: what is computed, by real nodes ([`Part`]) or by
//! simulated ones ([`simulate`]). [`Nodes`] run several, one after the other, for programs of users.

mod driver;
mod joined;
mod kernel;
mod real;
mod simulated;

use std::sync::Arc;

use super::divided::{Divided, Work};
use super::{DeviceOptions, Error, OpenDevices};
use crate::balance::Strategy;
use crate::cluster::info::NodeInfo;
use crate::cluster::record::ClusterOutcome;
use crate::codelet::Precision;
use crate::engine::cluster::simulate::taking_part;
use crate::report::run::nodes::{Asked, Tolerance, report};
use crate::report::{Context, Machine, Report, Workload};
use crate::spread::{NamedSpread, Network};
use crate::workload::Supersteps;
use crate::workload::cluster::{BandsWorkload, ClusterWorkload, Fit, Operation, Place, demand};
use crate::workload::spmv::{Form, Spmv};
use crate::workload::stencil::{FirstVersion, Stencil};

pub use crate::engine::cluster::{Sink, abandon, build_agreement, heard, measure};
pub use joined::{ClusterOptions, Nodes, ResultError, Results};
pub use kernel::{AskedKernel, KernelOverNodes};
pub use real::{Part, PartEnd};

pub(in crate::session) use driver::Job;
pub use simulated::simulate;

/// Blocks of what is no operation have no common height and width.
const NO_TILE: u64 = 1;

/// How a workload runs over nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodesOptions {
    /// How subtasks are spread over nodes.
    pub spread: NamedSpread,
    /// Long blocks that are on their way to a node at once.
    pub prefetch: u32,
    /// Of random choices, of the comparison and of simulated times.
    pub seed: u64,
    /// Of simulated times: their relative standard deviation.
    pub noise: Option<f64>,
    /// Compares the result with a reference.
    pub verify: bool,
    /// Keeps what devices did.
    pub traced: bool,
}

/// An operation as it is asked for.
#[derive(Clone)]
pub struct AskedOperation {
    pub operation: Arc<Operation>,
    /// Rows and columns of its parts; `None`: those that suit the place.
    pub tile: Option<u64>,
    /// The given files, for its description.
    pub inputs: Vec<String>,
    /// Of generated data.
    pub seed: u64,
}

/// A workload over nodes.
pub struct NodesWork {
    pub workload: Arc<dyn ClusterWorkload>,
    /// Its sizes, in words: what all nodes must have alike.
    pub size: String,
    /// Rows and columns of blocks.
    tile: u64,
    /// When it may end before its last step.
    tolerance: Option<Tolerance>,
    /// Notes for the report.
    pub notes: Vec<String>,
    /// What makes it for other nodes; none if its sizes do not depend on them.
    operation: Option<AskedOperation>,
    /// The shape and the type of its result, if that is an array.
    pub result: Option<(Vec<u64>, Precision)>,
}

impl NodesWork {
    /// A workload of these sizes, in words.
    pub fn of(workload: Arc<dyn ClusterWorkload>, size: String) -> Self {
        Self {
            workload,
            size,
            tile: NO_TILE,
            tolerance: None,
            notes: Vec::new(),
            operation: None,
            result: None,
        }
    }

    /// An operation; until the nodes are known, for one with a device.
    ///
    /// # Errors
    /// Data that cannot be read, and too many tasks.
    pub fn of_operation(asked: AskedOperation) -> Result<Self, Error> {
        let place = Place::Nodes(Fit::new(&[], Network::default()));
        let placed = asked.operation.at(place, asked.tile)?;
        let size = (asked.operation).described(&placed, &asked.inputs, Some(asked.seed));
        Ok(Self {
            tile: placed.tile,
            operation: Some(asked),
            ..Self::of(placed.workload, size)
        })
    }

    /// A stencil, or a product, whose steps the nodes divide.
    ///
    /// # Errors
    /// A kernel, which has to be examined first.
    pub fn of_divided(divided: Divided) -> Result<Self, Error> {
        let (steps, tolerance) = (divided.supersteps.steps(), divided.tolerance);
        let seed = divided.origin.1;
        let result = divided.result();
        let (workload, size) = match divided.work {
            Work::Stencil(stencil) => of_stencil(stencil, divided.supersteps, tolerance),
            Work::Product(spmv) => {
                let size = size_of_product(&spmv, (steps, tolerance), seed);
                let spmv = Arc::unwrap_or_clone(spmv);
                (BandsWorkload::product(spmv, steps, tolerance), size)
            }
            Work::Kernel { .. } => {
                let why = "a kernel over nodes is examined first";
                return Err(Error::Arguments(why.to_owned()));
            }
        };
        Ok(Self {
            tolerance: tolerance.map(|tolerance| Tolerance {
                tolerance,
                steps: steps.into(),
                tasks: steps.into(),
            }),
            result,
            ..Self::of(Arc::new(workload), size)
        })
    }

    /// What spreads it over nodes and devices, for reports.
    fn policy(&self, spread: NamedSpread) -> String {
        match self.workload.bands() {
            Some(_) => Strategy::Dawl.to_string(),
            None => spread.to_string(),
        }
    }

    /// Gives its subtasks sizes that fit the nodes which compute it. Returns how many these are.
    ///
    /// # Errors
    /// As [`Self::of_operation`].
    fn fit(
        &mut self,
        nodes: &[NodeInfo],
        network: Network,
        spread: NamedSpread,
    ) -> Result<usize, Error> {
        let Some(asked) = &self.operation else {
            return Ok(nodes.len());
        };
        let part = taking_part(&asked.operation, asked.tile, (nodes, network), spread)?;
        let place = Place::Nodes(Fit::new(&nodes[..part.count], network));
        let placed = asked.operation.at(place, asked.tile)?;
        self.size = (asked.operation).described(&placed, &asked.inputs, Some(asked.seed));
        (self.workload, self.tile) = (placed.workload, placed.tile);
        self.notes.extend(part.note);
        Ok(part.count)
    }

    /// Bytes of all spaces.
    fn bytes(&self) -> u128 {
        demand::bytes(&*self.workload)
    }

    /// The report of a run.
    fn report(
        &self,
        outcome: &ClusterOutcome,
        machine: Machine,
        notes: Vec<String>,
        options: &NodesOptions,
    ) -> Report {
        let workload = &*self.workload;
        let context = Context {
            workload: Workload::of_tasks(workload, self.size.clone(), outcome.tasks),
            machine,
            policy: self.policy(options.spread),
            notes: self.notes.iter().cloned().chain(notes).collect(),
        };
        let asked = Asked {
            figure: workload.figure().map(|figure| [figure.name, figure.title]),
            tolerance: self.tolerance,
            prefetch: options.prefetch,
        };
        report(outcome, context, asked)
    }
}

/// The devices of a list, or all, of this machine as a node.
fn opened_here(list: Option<String>) -> Result<OpenDevices, Error> {
    let mut devices = OpenDevices::open(DeviceOptions {
        list,
        ..DeviceOptions::default()
    })?;
    devices.begin(None)?;
    Ok(devices)
}

/// A stencil, and its sizes in words.
fn of_stencil(
    stencil: Stencil,
    supersteps: Supersteps,
    tolerance: Option<f64>,
) -> (BandsWorkload, String) {
    let steps = supersteps.steps();
    let (nx, ny, nz) = stencil.shape();
    let third = nz.map_or(String::new(), |nz| format!(" x {nz}"));
    let rule = stencil.coefficients().map_or(String::new(), |numbers| {
        let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
        format!(", coefficients {}", numbers.join(","))
    });
    let first = match stencil.first() {
        FirstVersion::Random { seed } => format!("seed {seed}"),
        FirstVersion::File(file) => format!("from {}", file.path().display()),
        FirstVersion::Given(_) => "from memory".to_owned(),
    };
    let together = match supersteps.size() {
        1 => String::new(),
        size => format!(", supersteps of {size}"),
    };
    let until = tolerance.map_or(String::new(), |change| {
        format!(", until {change:e} after each {}", supersteps.period())
    });
    let size = format!("{nx} x {ny}{third}{rule}, {steps} steps{until}, {first}{together}");
    let workload = BandsWorkload::stencil(stencil, supersteps).until(tolerance);
    (workload, size)
}

/// The sizes of a product, in words.
fn size_of_product(spmv: &Spmv, (steps, tolerance): (u32, Option<f64>), seed: u64) -> String {
    let (csr, options) = (spmv.matrix(), spmv.options());
    let what = match options.form {
        Form::Iteration => "x = A x / |A x|".to_owned(),
        Form::Ranks => format!("page ranks, damping {}", options.damping),
        Form::Product => "y = A x".to_owned(),
    };
    let steps_asked = match tolerance {
        None => format!("{steps} steps"),
        Some(sum) => format!("at most {steps} steps, tolerance {sum:e}"),
    };
    format!(
        "{}, {} x {} with {} entries, {what}, {steps_asked}, {}, seed {seed}",
        spmv.matrix_name(),
        csr.rows(),
        csr.columns(),
        csr.nonzeros(),
        options.precision.name(),
    )
}
