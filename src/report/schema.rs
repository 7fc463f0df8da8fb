//! The report of a run as JSON, schema `pdawl-report/1`.
//!
//! Version 1 may gain fields. No field may be removed or change its meaning.

use serde::Serialize;

use crate::machine::{Device, DeviceKind};

/// The schema's name and version.
pub const SCHEMA: &str = "pdawl-report/1";

/// The report of a run. Times are seconds, on the simulator's virtual clock if
/// `machine.simulated`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub schema: &'static str,
    /// The version of the program.
    pub version: &'static str,
    pub workload: Workload,
    pub machine: Machine,
    pub strategy: String,
    /// The time of all steps, from barrier to barrier.
    pub seconds: f64,
    pub setup_seconds: f64,
    /// The part of `setup_seconds` in which devices were probed.
    pub probe_seconds: f64,
    pub gather_seconds: f64,
    /// Points, nonzeros or work-items computed in all completed steps. A step that was
    /// computed again counts once.
    pub points: u64,
    pub throughput: Throughput,
    pub devices: Vec<DevicePart>,
    pub steps: Vec<Step>,
    /// The mean imbalance of steps, weighted by their seconds.
    pub imbalance: f64,
    /// The fraction of the time of copies in which a kernel ran on the same device;
    /// `None` without copies.
    pub overlap: Option<f64>,
    /// Time that the engine and the balancer took, within `seconds`.
    pub engine_seconds: f64,
    /// Time that the drivers took to enqueue commands, within `seconds`.
    pub enqueue_seconds: f64,
    /// Whether the result was right; `None` if it was not verified.
    pub verified: Option<bool>,
    pub max_abs_error: Option<f64>,
    /// The estimate of the largest eigenvalue's magnitude; `None` if the run was no
    /// iteration, or a simulation without data.
    pub eigenvalue: Option<f64>,
    pub lost: Vec<Lost>,
    pub interrupted: bool,
    /// The device that computed all of the last step, if the strategy chose it.
    pub alone: Option<String>,
    /// The throughput of single devices on the same workload and machine, if known.
    pub comparison: Vec<Single>,
    /// The cost model of the run; `None` if the strategy uses none.
    pub model: Option<Model>,
    pub notes: Vec<String>,
}

/// The workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    pub name: &'static str,
    pub parameters: Parameters,
}

/// The parameters of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Parameters {
    Stencil(StencilParameters),
    Spmv(SpmvParameters),
    Kernel(KernelParameters),
}

/// The parameters of a stencil.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StencilParameters {
    pub nx: u64,
    pub ny: u64,
    /// `None` in 2-D.
    pub nz: Option<u64>,
    /// `f64` or `f32`.
    pub precision: &'static str,
    /// Requested steps.
    pub steps: u32,
    /// The seed of the initial data.
    pub seed: u64,
}

/// The parameters of a product with a sparse matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpmvParameters {
    /// The name of the matrix, which says so if it is a look-alike.
    pub matrix: String,
    pub rows: u64,
    pub columns: u64,
    pub nonzeros: u64,
    /// `product` or `iteration`.
    pub form: &'static str,
    /// The fraction of the rows that may count as irregular.
    pub irregular: f64,
    /// `f64` or `f32`.
    pub precision: &'static str,
    /// Requested steps.
    pub steps: u32,
    /// The seed of the first vector, and of a generated matrix.
    pub seed: u64,
}

/// The parameters of a user's kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelParameters {
    /// The kernel file's name.
    pub file: String,
    /// The kernel function.
    pub kernel: String,
    /// The name of its source file.
    pub source: String,
    /// Work-items along each dimension.
    pub global: Vec<u64>,
    /// Work-items of a work-group along each dimension; `None`: the driver chooses.
    pub local: Option<Vec<u64>>,
    /// The dimension along which the kernel is divided.
    pub dimension: usize,
    /// The number of units that it can be divided into.
    pub units: u64,
    /// Bytes of all buffers.
    pub bytes: u64,
    /// Positions of the buffers that are divided along with the kernel. Every device has
    /// the others as a whole.
    pub sliced: Vec<usize>,
    /// `f64` if the kernel uses double precision, else `f32`.
    pub precision: &'static str,
    /// Requested steps.
    pub steps: u32,
    /// The seed of the buffers' initial contents.
    pub seed: u64,
}

impl Workload {
    /// The title, such as `stencil 4096 x 4096 f64`.
    pub fn title(&self) -> String {
        match &self.parameters {
            Parameters::Stencil(grid) => {
                let depth = grid.nz.map_or_else(String::new, |nz| format!(" x {nz}"));
                format!(
                    "{} {} x {}{depth} {}",
                    self.name, grid.nx, grid.ny, grid.precision
                )
            }
            Parameters::Kernel(kernel) => {
                let sizes: Vec<String> = kernel.global.iter().map(u64::to_string).collect();
                format!("{} {} of {}", self.name, kernel.kernel, sizes.join(" x "))
            }
            Parameters::Spmv(product) => {
                let form = match product.form {
                    "iteration" => ", iterated",
                    _ => "",
                };
                format!(
                    "{} {} ({} x {}, {} nonzeros) {}{form}",
                    self.name,
                    product.matrix,
                    product.rows,
                    product.columns,
                    product.nonzeros,
                    product.precision
                )
            }
        }
    }

    /// Requested steps.
    pub fn steps(&self) -> u32 {
        match &self.parameters {
            Parameters::Stencil(grid) => grid.steps,
            Parameters::Spmv(product) => product.steps,
            Parameters::Kernel(kernel) => kernel.steps,
        }
    }

    /// What throughput counts, for one step: points of a grid, nonzeros of a matrix, or
    /// work-items of a kernel.
    pub fn points(&self) -> u64 {
        match &self.parameters {
            Parameters::Stencil(StencilParameters { nx, ny, nz, .. }) => {
                nx.saturating_mul(*ny).saturating_mul(nz.unwrap_or(1))
            }
            Parameters::Spmv(product) => product.nonzeros,
            Parameters::Kernel(kernel) => kernel
                .global
                .iter()
                .fold(1, |all, items| all.saturating_mul(*items)),
        }
    }

    /// The throughput of computing `count` of them in `seconds`.
    pub fn throughput(&self, count: u64, seconds: f64) -> Throughput {
        let unit = match &self.parameters {
            Parameters::Stencil(_) => "points/s",
            Parameters::Spmv(_) => "nonzeros/s",
            Parameters::Kernel(_) => "work-items/s",
        };
        Throughput {
            unit,
            ..Throughput::of_points(count, seconds)
        }
    }
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    pub name: String,
    /// Whether every time in the report is virtual.
    pub simulated: bool,
    pub host: HostInfo,
    /// The devices that took part.
    pub devices: Vec<Device>,
}

/// The host of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostInfo {
    pub cpu: String,
    pub cores: u32,
    /// Bytes.
    pub memory: u64,
}

/// Work per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Throughput {
    pub value: f64,
    pub unit: &'static str,
}

impl Throughput {
    /// Points per second; 0 for 0 seconds.
    pub fn of_points(points: u64, seconds: f64) -> Self {
        Self {
            value: match seconds > 0.0 {
                true => points as f64 / seconds,
                false => 0.0,
            },
            unit: "points/s",
        }
    }

    /// The unit in the singular, such as `point/s`.
    pub fn each(&self) -> &'static str {
        match self.unit {
            "nonzeros/s" => "nonzero/s",
            "work-items/s" => "work-item/s",
            _ => "point/s",
        }
    }
}

/// A device's part in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DevicePart {
    pub name: String,
    pub kind: DeviceKind,
    /// The fraction of all units that it computed.
    pub share: f64,
    pub units: u64,
    /// The time in which at least one of its commands ran.
    pub busy_seconds: f64,
    /// The rest of `seconds`.
    pub idle_seconds: f64,
    pub chunks: u64,
    pub bytes_h2d: u64,
    pub bytes_d2h: u64,
    /// The time from ready to start, summed over its commands; `None` if the run kept
    /// no times. A series of launches counts as one command.
    pub wait_seconds: Option<f64>,
    /// 1 - mean / longest of its workers' times in a kernel, over all kernels; `None` for
    /// a device without known workers.
    pub worker_imbalance: Option<f64>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    pub step: u32,
    pub seconds: f64,
    /// The fraction of the step's units, by device.
    pub shares: Vec<f64>,
    /// 1 - mean / latest of the finishing times of the devices that had work.
    pub imbalance: f64,
    /// Units that moved to another device at the begin of the step.
    pub moved: u64,
}

/// A device that was lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lost {
    pub device: String,
    pub step: u32,
    pub why: String,
    /// Steps that were computed again.
    pub repeated: u32,
    /// The step from which on it took part again; `None` if it did not.
    pub back: Option<u32>,
}

/// The cost model of a run. Its seconds are expected, not measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    pub name: String,
    /// Seconds of the first step, predicted before the run; `None` without a plan.
    pub predicted_step_seconds: Option<f64>,
    /// Seconds of each step, as expected when it was planned; `None` where the model was
    /// not used.
    pub expected_step_seconds: Vec<Option<f64>>,
    /// New plans, made since measured and expected seconds differed or a device was
    /// lost.
    pub replans: u32,
    /// The step from which on the model was not used any more.
    pub handed_over: Option<u32>,
    pub devices: Vec<Trust>,
}

/// How far the model was trusted on a device at the end of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trust {
    pub device: String,
    /// Measured over expected seconds; `None` if the device was lost.
    pub slowdown: Option<f64>,
    /// The relative deviation from `slowdown` within which a measurement is expected.
    pub interval: f64,
}

/// The throughput of a single device on the same workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Single {
    /// The strategy that uses this device alone, `cpu` or `gpu`.
    pub strategy: String,
    pub throughput: Throughput,
}
