//! The report of a run of any kind, `pdawl-report/2`: one envelope, whose `details` are those
//! of the kind of run.
//!
//! * [`workload`] is what was run.
//! * [`corun`], [`graph`] and [`nodes`] make reports of what the engines tell, and [`bounds`]
//!   compares their times with what was possible.
//! * [`sheet`] is what a chart shows of a report.
//! * `text` writes a report for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::{Device, DeviceKind, Host, MachineFile};
use crate::runtime::Comparison;
use crate::trace::About;

pub use bounds::Bounds;
pub use workload::{DenseAsked, Parameters, Throughput, Workload};

pub mod bounds;
pub mod corun;
#[cfg(test)]
pub(super) mod fixtures;
pub mod graph;
pub mod nodes;
pub mod sheet;
#[cfg(feature = "text")]
mod text;
pub mod workload;

/// A run of a workload. Times are virtual, of the simulator, if `machine.simulated`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub workload: Workload,
    /// How the work was shared, as on the command line, with variants in a fixed order: the
    /// strategy of a co-run (`pdawl` for `--adaptive` if a cost model fits the machine, else
    /// `dawl`), the policy of a graph, or that of `--spread` between nodes.
    pub policy: String,
    /// Seconds of the run, the median of `runs`. A co-run: all steps, from barrier to barrier,
    /// those that were computed again included. A graph: from the first decision until the
    /// whole result is in host memory. Nodes: from the first task's begin to the last one's
    /// end; if the tasks began anew, from the last begin.
    pub seconds: f64,
    /// Seconds of each timed run; empty if none ended.
    pub runs: Vec<f64>,
    /// Seconds before the first timed run: memory, data, queues, kernel builds, measurements,
    /// and a run that does not count. Those of tasks are real, never simulated. Null over nodes.
    pub setup_seconds: Option<f64>,
    /// Work over `seconds`; null if the operations are not known, or no timed run ended.
    pub throughput: Option<Throughput>,
    /// What the run could not go below: of a co-run, of a simulated graph of kernels or tasks,
    /// and with `--trace`, `--gantt` or `--csv` of every other run that is not over nodes, there
    /// of the one that was traced; null for others.
    pub bounds: Option<Bounds>,
    /// The check of `--verify`; null if not asked for, interrupted, or no number could be compared.
    pub verification: Option<Verification>,
    /// Devices and nodes that were lost.
    pub lost: Vec<Lost>,
    /// Whether Ctrl-C ended the run early; the report has what was complete.
    pub interrupted: bool,
    /// In the order of `machine.devices`; over nodes, by rank.
    pub devices: Vec<DevicePart>,
    /// By rank; empty for a run that is not of nodes.
    pub nodes: Vec<nodes::Node>,
    pub details: Details,
    /// Messages for the reader, such as warnings.
    pub notes: Vec<String>,
    /// The words after `pdawl run` that give the run, each option by its long name, without those
    /// of its outputs; null for a run of a library.
    pub command: Option<Vec<String>>,
}

/// What only runs of a kind have.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Details {
    /// Steps that several devices share: `stencil`, `spmv`, `kernel`.
    CoRun(corun::CoRun),
    /// A graph of kernels: `transformer`, `dag`.
    Graph(graph::Graph),
    /// A graph of tasks on tiles: `matmul`, `cholesky`, `tasks`.
    Dense(graph::Dense),
    /// Tasks over spaces: workloads over nodes, and `convolution`, `lu`, `fft`, `sort` and
    /// `pagerank` on one machine.
    Nodes(nodes::Tasks),
}

/// A device's part in a run, in the last one of several. What the kind of run does not have,
/// or was not measured, is null.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DevicePart {
    pub name: String,
    /// Rank of its node; null in a run that is not of nodes.
    pub node: Option<usize>,
    /// Null over nodes.
    pub kind: Option<DeviceKind>,
    /// Fraction of the work, 0 to 1: of units, kernels, operations (`matmul`, `cholesky`,
    /// `tasks`) or subtasks.
    pub share: f64,
    /// What it computed: units of a co-run (rows or planes), components of a graph, tasks, or
    /// subtasks, whether they count or not.
    pub units: u64,
    /// Kernels of a graph that it ran.
    pub kernels: Option<u64>,
    /// Components of a graph that it ran as one command each.
    pub command_graphs: Option<u64>,
    /// Seconds in which at least one of its commands ran. A graph on real devices has them
    /// only with a trace.
    pub busy_seconds: Option<f64>,
    /// The rest of `seconds`.
    pub idle_seconds: Option<f64>,
    /// Seconds from the run's begin to the end of its last component; null without any.
    pub finished_seconds: Option<f64>,
    /// The sum of the seconds of its subtasks, of which several may run at once.
    pub subtask_seconds: Option<f64>,
    /// Seconds of its commands from ready to start, in all; null if the run kept none. Unless
    /// `--trace`, `--gantt` or `--csv` asks for every command, commands that follow one
    /// another on a queue are submitted as a series: a series of launches counts as one
    /// command, and a streamed chunk as its transfers in, its kernel and its transfers out,
    /// whose boundaries are known only from the kernel's times.
    pub wait_seconds: Option<f64>,
    /// 1 - mean / longest of its workers' times in kernels, both summed over all kernels.
    pub worker_imbalance: Option<f64>,
    /// Chunks of steps that it computed.
    pub chunks: Option<u64>,
    /// Queues that were used.
    pub queues: Option<usize>,
    /// Copies to the device, and back.
    pub writes: Option<u64>,
    pub reads: Option<u64>,
    /// Bytes copied to the device, and back.
    pub bytes_h2d: Option<u64>,
    pub bytes_d2h: Option<u64>,
    /// Bytes from other devices' memory, directly.
    pub bytes_peer: Option<u64>,
    /// Data that left its memory, to make room or since nothing needed them.
    pub evictions: Option<u64>,
}

/// The check of a result. It is right if `error` is at most `tolerance`, where there is one.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Verification {
    pub right: bool,
    /// The greatest error; null: a number is finite that should not be, or the reverse. A
    /// co-run: the largest absolute difference from the sequential reference. A graph: as the
    /// workload defines it. Others: a multiple of what rounding allows; of `matmul` and `cholesky`
    /// that of a row and a group of columns.
    pub error: Option<f64>,
    /// The greatest error that is allowed; null: the workload decides.
    pub tolerance: Option<f64>,
    /// Numbers that were compared, and wrong ones.
    pub numbers: Option<u64>,
    pub wrong: Option<u64>,
    /// Of `lu`: LAPACK's ratio of the residual, |P A - L U| / (n |A| u), below 10 for stable
    /// factors; null: not finite, or another workload.
    pub residual: Option<f64>,
    /// Of `lu`: the greatest number of U over that of A.
    pub growth: Option<f64>,
    /// Of a wrong product: the row, and from which column to before which, with the greatest
    /// error.
    #[serde(skip)]
    pub at: Option<[u64; 3]>,
}

/// A loss of a device or of a node, in any run, or a device that was left out since it cannot
/// run a kernel.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Lost {
    /// The device; null for a node.
    pub device: Option<String>,
    /// Rank of the node; null for a device.
    pub node: Option<usize>,
    /// The step of a co-run.
    pub step: Option<u32>,
    /// The error message; null for a node.
    pub why: Option<String>,
    /// Steps of a co-run, or components that had ended, that were computed again, since only
    /// the lost memory had their results.
    pub repeated: u64,
    /// Whether it came back and took part again.
    pub back: bool,
    /// The step of a co-run from which on it took part again.
    pub back_step: Option<u32>,
}

/// What a report has beside the outcome of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    pub workload: Workload,
    /// Its devices are in the order of the outcome's.
    pub machine: Machine,
    pub policy: String,
    pub notes: Vec<String>,
}

impl Context {
    /// The report of a run that took `seconds`, without what depends on the kind of run.
    fn report(self, seconds: f64, details: Details) -> Report {
        Report {
            machine: self.machine,
            workload: self.workload,
            policy: self.policy,
            seconds,
            runs: vec![seconds],
            setup_seconds: None,
            throughput: None,
            bounds: None,
            verification: None,
            lost: Vec::new(),
            interrupted: false,
            devices: Vec::new(),
            nodes: Vec::new(),
            details,
            notes: self.notes,
            command: None,
        }
    }
}

impl Report {
    /// Whether the result was found wrong.
    pub fn is_wrong(&self) -> bool {
        (self.verification.as_ref()).is_some_and(|verification| !verification.right)
    }

    /// The run, for the files that show its commands.
    pub fn about(&self) -> About {
        let machine = &self.machine;
        About {
            workload: self.workload.title.clone(),
            strategy: self.policy.clone(),
            machine: match (self.nodes.len(), machine.simulated) {
                (0 | 1, _) | (_, true) => machine.name.clone(),
                (nodes, false) => format!("{nodes} nodes"),
            },
            simulated: machine.simulated,
        }
    }
}

/// A part of a whole, from 0 to 1.
fn fraction(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// A device of a list of names, by its place.
fn device_name(devices: &[String], device: usize) -> String {
    let name = devices.get(device).cloned();
    name.unwrap_or_else(|| format!("device {device}"))
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Machine {
    /// Of a simulated run over nodes, the name of the cluster.
    pub name: String,
    /// Whether times, rates and bandwidths are virtual, from the simulator, rather than
    /// measured.
    pub simulated: bool,
    /// The host; over nodes, that of the first one.
    pub host: HostInfo,
    /// The devices of the run; over nodes, those of the first one, if it is real.
    pub devices: Vec<Device>,
    /// Codelets of the run that had two implementations on a GPU, our kernels and a library's
    /// calls, and which one serves; empty without such devices.
    pub implementations: Vec<Comparison>,
}

/// The host of a machine.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct HostInfo {
    /// Model of the processor.
    pub cpu: String,
    /// Cores that may be used.
    pub cores: u32,
    /// Of the host.
    pub memory: u64,
}

impl Machine {
    /// The machine that the program runs on.
    pub fn real(name: String, host: Host, devices: Vec<Device>) -> Self {
        Self {
            name,
            simulated: false,
            host: HostInfo {
                cpu: host.model,
                cores: host.cores.len() as u32,
                memory: host.memory.total(),
            },
            devices,
            implementations: Vec::new(),
        }
    }

    /// A simulated machine.
    pub fn simulated(file: &MachineFile, devices: Vec<Device>) -> Self {
        Self {
            name: file.name.clone(),
            simulated: true,
            host: HostInfo {
                cpu: file.host.model.clone(),
                cores: file.host.cores,
                memory: file.host.memory,
            },
            devices,
            implementations: Vec::new(),
        }
    }
}
