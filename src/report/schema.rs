//! The report of a run as JSON, schema `pdawl-report/1`.
//!
//! A field may be added within version 1; none may go or change its meaning.

use serde::Serialize;

use crate::machine::{Device, DeviceKind};

/// The schema's name and version.
pub const SCHEMA: &str = "pdawl-report/1";

/// A whole run. Times are seconds, on the simulator's virtual clock if
/// `machine.simulated`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub schema: &'static str,
    /// Of the program.
    pub version: &'static str,
    pub workload: Workload,
    pub machine: Machine,
    pub strategy: String,
    /// All steps, barrier to barrier.
    pub seconds: f64,
    pub setup_seconds: f64,
    /// Of these, the balancer's probes.
    pub probe_seconds: f64,
    pub gather_seconds: f64,
    /// Points, or nonzeros of a product, computed in all completed steps; a step
    /// that had to be computed again counts once.
    pub points: u64,
    pub throughput: Throughput,
    pub devices: Vec<DevicePart>,
    pub steps: Vec<Step>,
    /// Mean of the steps' imbalance, weighted by their seconds.
    pub imbalance: f64,
    /// Fraction of the time of copies during which a kernel ran on the same
    /// device; `None` without copies.
    pub overlap: Option<f64>,
    /// Time that the engine and the balancer took, within `seconds`.
    pub engine_seconds: f64,
    /// Time that the drivers took to enqueue commands, within `seconds`.
    pub enqueue_seconds: f64,
    /// Whether the result was found right; `None` if not asked.
    pub verified: Option<bool>,
    pub max_abs_error: Option<f64>,
    /// The estimate of the largest eigenvalue's magnitude; `None` if the run
    /// was no iteration, or carried no data.
    pub eigenvalue: Option<f64>,
    pub lost: Vec<Lost>,
    pub interrupted: bool,
    /// The device that did all of the last step by itself, where the strategy
    /// had the choice.
    pub alone: Option<String>,
    /// What single devices reach on the same workload and machine, where known.
    pub comparison: Vec<Single>,
    /// The cost model's part; `None` if the strategy works without one.
    pub model: Option<Model>,
    pub notes: Vec<String>,
}

/// What was computed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    pub name: &'static str,
    pub parameters: Parameters,
}

/// The workload's parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Parameters {
    Stencil(StencilParameters),
    Spmv(SpmvParameters),
    Kernel(KernelParameters),
}

/// A stencil's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StencilParameters {
    pub nx: u64,
    pub ny: u64,
    /// `None` in 2-D.
    pub nz: Option<u64>,
    /// `f64` or `f32`.
    pub precision: &'static str,
    /// Steps asked for.
    pub steps: u32,
    /// Of the first data.
    pub seed: u64,
}

/// A product's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpmvParameters {
    /// The matrix's name; a look-alike is called so.
    pub matrix: String,
    pub rows: u64,
    pub columns: u64,
    pub nonzeros: u64,
    /// `product` or `iteration`.
    pub form: &'static str,
    /// The part of the rows that may count as irregular.
    pub irregular: f64,
    /// `f64` or `f32`.
    pub precision: &'static str,
    /// Steps asked for.
    pub steps: u32,
    /// Of the first vector, and of a generated matrix.
    pub seed: u64,
}

/// A user's kernel's.
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
    /// Of a work-group; `None`: the driver chooses.
    pub local: Option<Vec<u64>>,
    /// The dimension along which it is divided.
    pub dimension: usize,
    /// Parts into which it can be divided.
    pub units: u64,
    /// Of all buffers.
    pub bytes: u64,
    /// Positions of the buffers that are divided with it; the others are whole
    /// on every device.
    pub sliced: Vec<usize>,
    /// `f64` if it computes in double precision at all, else `f32`.
    pub precision: &'static str,
    /// Steps asked for.
    pub steps: u32,
    /// Of the buffers' first contents.
    pub seed: u64,
}

impl Workload {
    /// One line: `stencil 4096 x 4096 f64`.
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

    /// Steps asked for.
    pub fn steps(&self) -> u32 {
        match &self.parameters {
            Parameters::Stencil(grid) => grid.steps,
            Parameters::Spmv(product) => product.steps,
            Parameters::Kernel(kernel) => kernel.steps,
        }
    }

    /// What throughput counts, computed in each step: points of a grid,
    /// nonzeros of a matrix, or work-items of a kernel.
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

    /// So many of them in so many seconds.
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

/// What it was computed on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    pub name: String,
    /// Whether every time in the report is virtual.
    pub simulated: bool,
    pub host: HostInfo,
    /// The devices that took part.
    pub devices: Vec<Device>,
}

/// The host, as far as a reader needs it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostInfo {
    pub cpu: String,
    pub cores: u32,
    /// Bytes.
    pub memory: u64,
}

/// Work a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Throughput {
    pub value: f64,
    pub unit: &'static str,
}

impl Throughput {
    /// Points a second; 0 when nothing was done.
    pub fn of_points(points: u64, seconds: f64) -> Self {
        let value = if seconds > 0.0 {
            points as f64 / seconds
        } else {
            0.0
        };
        Self {
            value,
            unit: "points/s",
        }
    }

    /// Its unit for one: `point/s`.
    pub fn each(&self) -> &'static str {
        match self.unit {
            "nonzeros/s" => "nonzero/s",
            "work-items/s" => "work-item/s",
            _ => "point/s",
        }
    }
}

/// A device's part in the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DevicePart {
    pub name: String,
    pub kind: DeviceKind,
    /// Fraction of all units that were computed.
    pub share: f64,
    pub units: u64,
    /// At least one of its commands ran.
    pub busy_seconds: f64,
    /// The rest of `seconds`.
    pub idle_seconds: f64,
    pub chunks: u64,
    pub bytes_h2d: u64,
    pub bytes_d2h: u64,
    /// From ready to start, summed over its commands; `None` if the run kept no
    /// spans.
    pub wait_seconds: Option<f64>,
    /// 1 - mean / longest of its workers' times in a kernel, over all kernels;
    /// `None` for a device whose workers are not known.
    pub worker_imbalance: Option<f64>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    pub step: u32,
    pub seconds: f64,
    /// Fraction of the step's units, by device.
    pub shares: Vec<f64>,
    /// 1 - mean / latest of the finishing times of the devices that had work.
    pub imbalance: f64,
    /// Units that changed hands at its begin.
    pub moved: u64,
}

/// A device that was lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lost {
    pub device: String,
    pub step: u32,
    pub why: String,
    /// Steps computed again.
    pub repeated: u32,
}

/// A cost model's part in the run. Its seconds are expected, not measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    pub name: String,
    /// Of the first step as planned, before anything ran; `None` if the model
    /// had no plan.
    pub predicted_step_seconds: Option<f64>,
    /// Of each step when it was planned, by step; `None` where the model was
    /// not asked.
    pub expected_step_seconds: Vec<Option<f64>>,
    /// Plans made anew, since measured and expected seconds parted or a device
    /// was lost.
    pub replans: u32,
    /// The step from which on the model was not asked any more.
    pub handed_over: Option<u32>,
    pub devices: Vec<Trust>,
}

/// How far the model was trusted on a device, at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trust {
    pub device: String,
    /// Measured over expected seconds; `None` if the device was lost.
    pub slowdown: Option<f64>,
    /// Relative deviation from that which is no surprise.
    pub interval: f64,
}

/// A single device's throughput on the same workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Single {
    /// `cpu` or `gpu`: the strategy that uses it alone.
    pub strategy: String,
    pub throughput: Throughput,
}
