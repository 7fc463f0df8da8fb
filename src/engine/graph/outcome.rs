//! The outcome of a run of a graph: figures that were measured in it, and its trace; or why it
//! has none.

use crate::policy::MapError;
use crate::quantity::Bytes;
use crate::runtime::RuntimeError;
use crate::time::Nanos;
use crate::trace::Trace;
use pdawl_core::graph::GraphError;
use pdawl_core::graph::KernelId;
use thiserror::Error;

/// Where and when a component ran.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Placement {
    pub component: usize,
    /// Its layer.
    pub level: usize,
    /// Index of the device.
    pub device: usize,
    /// Seconds from the begin of the run until it was dispatched, until its last kernel of
    /// which the host was told began (its first one, if it was a command graph), and until
    /// its last command ended.
    pub dispatched: f64,
    pub started: f64,
    pub ended: f64,
}

/// A kernel's launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    pub kernel: KernelId,
    pub device: usize,
    pub queue: usize,
    pub started: Nanos,
    pub ended: Nanos,
}

/// A device's part in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceUse {
    pub components: usize,
    /// Those of them that were one command graph each.
    pub graphs: usize,
    pub kernels: u64,
    pub writes: u64,
    pub reads: u64,
    pub bytes_h2d: u64,
    pub bytes_d2h: u64,
    /// Bytes that came from other devices' memory directly.
    pub bytes_peer: u64,
    /// Data that left its own memory to make room, or since nothing needed them.
    pub evictions: u64,
    /// Queues that were used.
    pub queues: usize,
    /// Seconds in which at least one of its commands ran; `None` without a trace,
    /// which alone has the times of the device.
    pub busy_seconds: Option<f64>,
}

/// A device that was lost in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphLoss {
    /// Index of the device.
    pub device: usize,
    pub why: String,
    /// Components that had ended and ran again, since only this device had their
    /// results.
    pub repeated: Vec<usize>,
    /// Whether it came back and took part again.
    pub back: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphOutcome {
    /// Device names, by index.
    pub devices: Vec<String>,
    /// The policy's name.
    pub policy: &'static str,
    /// Seconds from the first decision until the host was notified of the last
    /// command's end.
    pub seconds: f64,
    /// Seconds of these spent submitting, and spent in the engine and the policy;
    /// the rest was waiting.
    pub submit_seconds: f64,
    pub engine_seconds: f64,
    /// Seconds of the submitting that driver calls took; 0 where they are not
    /// measured.
    pub driver_seconds: f64,
    /// In the order in which they ended.
    pub placements: Vec<Placement>,
    /// By device.
    pub uses: Vec<DeviceUse>,
    pub losses: Vec<GraphLoss>,
    /// Ended early on request.
    pub interrupted: bool,
    /// Every launch that ended well, in the order of starts; empty without a trace.
    pub launches: Vec<Launched>,
    pub trace: Trace,
}

impl GraphOutcome {
    /// Kernels that were launched.
    pub fn kernels(&self) -> u64 {
        self.uses.iter().map(|used| used.kernels).sum()
    }

    /// Seconds of driver calls a kernel; 0 where they are not measured.
    pub fn driver_seconds_per_kernel(&self) -> f64 {
        self.driver_seconds / self.kernels().max(1) as f64
    }

    /// Seconds of the host a kernel, driver calls excluded.
    pub fn host_seconds_per_kernel(&self) -> f64 {
        let host = self.submit_seconds + self.engine_seconds - self.driver_seconds;
        host.max(0.0) / self.kernels().max(1) as f64
    }
}

/// An error of the graph engine.
#[derive(Debug, Error)]
pub enum GraphRunError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error(transparent)]
    Graph(#[from] GraphError),

    #[error(transparent)]
    Map(#[from] MapError),

    #[error("there is no device to run on")]
    NoDevice,

    #[error(
        "{device}: component {component} ({kernels}) needs {} of its memory at once, and has \
         {}; divide its kernels among more components, choose a smaller size, or raise \
         --gpu-memory",
        Bytes(*needed),
        Bytes(*has)
    )]
    Memory {
        device: String,
        component: usize,
        kernels: String,
        needed: u64,
        has: u64,
    },

    #[error(
        "component {component} ({kernels}) can run on none of the devices that are left; lost: {lost}"
    )]
    Lost {
        component: usize,
        kernels: String,
        lost: String,
    },

    #[error(
        "{codelet} can be computed on none of the devices, {devices}: {why}; other devices, or \
         another size"
    )]
    Unable {
        codelet: String,
        devices: String,
        why: &'static str,
    },

    #[error("`{0}` was lost with a device, and what made it is forgotten")]
    Gone(String),

    #[error("policy `{policy}`: {what} (a bug in the policy)")]
    Policy { policy: &'static str, what: String },
}
