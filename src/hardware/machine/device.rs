//! A device as a runtime reports it, with the properties that matter for sharing
//! work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    Cpu,
    Gpu,
    Accelerator,
}

impl DeviceKind {
    /// As in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Accelerator => "accelerator",
        }
    }
}

/// The runtime that runs a device's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeKind {
    Host,
    Opencl,
    Cuda,
    Sim,
}

/// How a device can be divided into sub-devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct SubDeviceSupport {
    pub equally: bool,
    pub by_counts: bool,
    pub by_affinity: bool,
}

/// A device or sub-device that work can be given to.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Device {
    /// How the user names it: `host`, `host:8`, `opencl0.0`, `opencl1.0:4`, `cuda0`.
    pub name: String,
    /// What the vendor calls it.
    pub model: String,
    pub kind: DeviceKind,
    pub runtime: RuntimeKind,
    /// Cores of a CPU, multiprocessors of a GPU.
    pub compute_units: u32,
    /// Memory in bytes; for a device that shares the host's, the host's.
    pub memory: u64,
    /// Largest single allocation in bytes.
    pub max_allocation: u64,
    /// Highest clock in MHz, where known.
    pub clock_mhz: Option<u32>,
    /// Whether it computes on host memory without transfers.
    pub shares_host_memory: bool,
    /// Whether it computes in double precision.
    pub fp64: bool,
    pub sub_devices: SubDeviceSupport,
    /// In-order queues that overlap usefully (copy engines and compute).
    pub queues: u32,
    /// Driver or implementation and its version.
    pub driver: String,
    /// An expectation of the link's bandwidth in bytes a second, each way,
    /// where known beforehand; `None` for a device without a link.
    pub link_bandwidth: Option<f64>,
}

/// Whether these are the cores of one host alone, or of one other CPU.
pub fn is_pool(devices: &[Device]) -> bool {
    matches!(devices, [device] if device.kind == DeviceKind::Cpu)
}

/// The place of the device that is most likely the fastest of those that are `wanted`: a GPU if
/// there is one.
pub fn likely_fastest(devices: &[Device], wanted: impl Fn(&Device) -> bool) -> Option<usize> {
    let rank = |place: &usize| {
        let device = &devices[*place];
        (device.kind != DeviceKind::Cpu, device.compute_units)
    };
    let places = (0..devices.len()).filter(|place| wanted(&devices[*place]));
    places.max_by_key(rank)
}

impl Device {
    /// Whether both are the same product, through the same driver.
    pub fn is_like(&self, other: &Self) -> bool {
        let product = |device: &Self| Self {
            name: String::new(),
            link_bandwidth: None,
            ..device.clone()
        };
        product(self) == product(other)
    }

    /// A pool of host cores, with the properties that all such pools have.
    pub fn host_pool(
        runtime: RuntimeKind,
        name: String,
        model: String,
        cores: u32,
        memory: u64,
    ) -> Self {
        Self {
            name,
            model,
            kind: DeviceKind::Cpu,
            runtime,
            compute_units: cores,
            memory,
            max_allocation: memory,
            clock_mhz: None,
            shares_host_memory: true,
            fp64: true,
            sub_devices: SubDeviceSupport {
                equally: true,
                by_counts: true,
                by_affinity: false,
            },
            queues: 1,
            driver: String::new(),
            link_bandwidth: None,
        }
    }
}
