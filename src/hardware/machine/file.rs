//! Machine files: the descriptions that the simulator simulates and that measuring a
//! machine produces.
//!
//! The format is TOML with the header `format = "pdawl-machine/1"`. Units are
//! plain: bytes, bytes a second, operations a second, MHz, nanoseconds. A
//! memory bandwidth is that of a copy, reads and writes both counted.
//!
//! A device as a runtime reports it, with the properties that matter for sharing
//! work.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MachineError, check};

/// The header of this version of the format.
pub const FORMAT: &str = "pdawl-machine/1";

/// A described machine.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFile {
    /// Always [`FORMAT`].
    pub format: String,
    /// What the command line calls it, and the file's name without `.toml`.
    pub name: String,
    /// One line for lists.
    pub title: String,
    /// What it is and where its figures come from, in a few sentences.
    pub description: String,
    /// The [`super::Fingerprint`] of the machine, if it is a particular one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    pub host: HostSpec,
    /// GPUs and other devices beside the host's cores.
    #[serde(default, rename = "device", skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceSpec>,
    /// The ways from one device's memory to another one's.
    #[serde(default, rename = "peer", skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerSpec>,
    #[serde(default, skip_serializing_if = "Noise::is_zero")]
    pub noise: Noise,
    /// For a key, a group of keys or `everything`: where its figures come from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub source: BTreeMap<String, String>,
}

/// The host: its cores and its memory.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// CPU model.
    pub model: String,
    pub sockets: u32,
    /// Cores that work can be given to, on all sockets together.
    pub cores: u32,
    /// Absent where a virtual machine hides it; nothing is computed from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// Bytes of a core's L2 cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2: Option<u64>,
    /// Bytes of a socket's L3 cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3: Option<u64>,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes a second of a copy by all cores.
    pub memory_bandwidth: f64,
    /// Bytes a second that its memory sustains when devices' transfers share it
    /// with the cores, which alone may not saturate it; at least
    /// `memory_bandwidth`, and the same if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_bandwidth: Option<f64>,
    /// Bytes a second of a copy by one core.
    pub core_bandwidth: f64,
    /// Bytes a second of all transfers between host memory and devices together,
    /// both directions counted; absent: only their links and memory limit them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_bandwidth: Option<f64>,
    /// Double-precision operations a second of all cores; when absent, kernels
    /// are limited by memory alone. Single precision counts twice as fast. Measured
    /// by a superstep of the 2-D stencil
    /// ([`superstep_flops`](crate::codelet::stencil::superstep_flops)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<f64>,
    /// Time to dispatch a command on a pool of cores, before it starts.
    pub launch_overhead_ns: u64,
    /// From a command's end until the driver thread knows.
    pub completion_latency_ns: u64,
    /// Fraction of the copy's bandwidth that a codelet reaches; see
    /// [`efficiency`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub efficiency: BTreeMap<String, f64>,
}

impl HostSpec {
    /// Bytes a second that its memory sustains for cores and transfers together.
    pub fn shared(&self) -> f64 {
        self.shared_bandwidth.unwrap_or(self.memory_bandwidth)
    }
}

/// A device beside the host's cores.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// How the user names it.
    pub name: String,
    /// What the vendor calls it.
    pub model: String,
    pub kind: DeviceKind,
    /// Multiprocessors of a GPU.
    pub compute_units: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// Bytes of its memory; of the host's, if it shares that.
    pub memory: u64,
    /// Bytes a second of a copy within its memory.
    pub memory_bandwidth: f64,
    /// Whether it computes in double precision.
    #[serde(default = "yes")]
    pub fp64: bool,
    /// Operations a second in double precision; when absent, kernels are limited by memory alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops_f64: Option<f64>,
    /// Operations a second in single precision; when absent, kernels are limited by memory alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops_f32: Option<f64>,
    /// Operations a second of products with factors in f16 or bf16; when absent, `flops_f32`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops_f16: Option<f64>,
    /// Operations a second of products with factors in tf32; when absent, `flops_f32`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops_tf32: Option<f64>,
    /// 1: transfers of both directions take turns; 2: one engine each way.
    pub copy_engines: u32,
    /// In-order queues that overlap usefully.
    pub queues: u32,
    /// Kernels of several queues that run at once.
    pub concurrent_kernels: u32,
    /// Time on the device between back-to-back kernels.
    pub launch_overhead_ns: u64,
    /// Host time of enqueueing one command.
    pub enqueue_ns: u64,
    /// From a command's end until the driver thread knows.
    pub completion_latency_ns: u64,
    /// Whether it computes on host memory without transfers.
    #[serde(default)]
    pub shares_host_memory: bool,
    /// Fraction of the copy's bandwidth that a codelet reaches; see
    /// [`efficiency`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub efficiency: BTreeMap<String, f64>,
    /// Seconds of a launch of a codelet, by its whole name, whatever its cost is. Launches of
    /// others take what their costs say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seconds: BTreeMap<String, f64>,
    /// Absent exactly when it shares the host's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkSpec>,
}

impl DeviceSpec {
    /// Operations a second of a codelet, whose name ends with the format of its numbers; `None` if
    /// only memory limits it.
    pub fn flops(&self, codelet: &str, fp64: bool) -> Option<f64> {
        match codelet.rsplit('-').next() {
            _ if fp64 => self.flops_f64,
            Some("f16" | "bf16") => self.flops_f16.or(self.flops_f32),
            Some("tf32") => self.flops_tf32.or(self.flops_f32),
            _ => self.flops_f32,
        }
    }
}

/// The way between host memory and a device's, for pinned host memory.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Bytes a second host to device, nothing else running.
    pub h2d: f64,
    /// Bytes a second device to host, nothing else running.
    pub d2h: f64,
    /// Bytes a second each way while both are busy.
    pub both_ways: f64,
    /// Time of a transfer of nothing.
    pub latency_ns: u64,
    /// The additional time of a launch while a write is in flight: its commands reach
    /// the device behind the write's bytes. Absent: none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub launch_delay_ns: u64,
}

/// The way of copies from one device's memory to another one's. The opposite direction
/// is an entry of its own.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerSpec {
    /// Name of the device that is read.
    pub from: String,
    /// Name of the device that is written.
    pub to: String,
    /// Bytes a second of a copy.
    pub bandwidth: f64,
    /// Time of a copy of nothing.
    pub latency_ns: u64,
    /// Whether copies pass through the host's memory, over its bus. A direct link uses
    /// neither.
    #[serde(default, skip_serializing_if = "is_false")]
    pub through_host: bool,
}

/// How much times vary.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Relative standard deviation of a command's time.
    pub relative: f64,
}

impl Noise {
    fn is_zero(&self) -> bool {
        self.relative == 0.0
    }
}

fn yes() -> bool {
    true
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_none(ns: &u64) -> bool {
    *ns == 0
}

/// The fraction of a copy's bandwidth that `codelet` reaches: the entry of its
/// name, else of its name up to the first `-` (`stencil5` for
/// `stencil5-f64`), else 1.
pub fn efficiency(table: &BTreeMap<String, f64>, codelet: &str) -> f64 {
    let family = codelet.split('-').next().unwrap_or(codelet);
    table
        .get(codelet)
        .or_else(|| table.get(family))
        .copied()
        .unwrap_or(1.0)
}

impl MachineFile {
    /// Reads and checks a description; `file` is its name in messages.
    ///
    /// # Errors
    /// Names the file, the key and what to do: another format, a missing or
    /// unknown key, a value that cannot be.
    pub fn parse(text: &str, file: &str) -> Result<Self, MachineError> {
        let parse_error = |e: toml::de::Error| MachineError::Parse {
            file: file.to_owned(),
            why: e.to_string().trim_end().to_owned(),
        };
        let table: toml::Table = toml::from_str(text).map_err(parse_error)?;
        match table.get("format").and_then(toml::Value::as_str) {
            Some(FORMAT) => {}
            found => {
                return Err(MachineError::Format {
                    file: file.to_owned(),
                    expected: FORMAT,
                    found: found.map_or("none".to_owned(), |f| format!("`{f}`")),
                });
            }
        }
        let machine: Self = toml::from_str(text).map_err(parse_error)?;
        machine.check(file)?;
        Ok(machine)
    }

    /// Checks its figures; `file` is its name in messages.
    ///
    /// # Errors
    /// A figure that no machine has.
    pub fn check(&self, file: &str) -> Result<(), MachineError> {
        check::check(self, file)
    }

    /// The description as TOML; [`Self::parse`] reads it back.
    ///
    /// # Errors
    /// When a number does not fit TOML's.
    pub fn to_toml(&self) -> Result<String, MachineError> {
        toml::to_string_pretty(self).map_err(|e| MachineError::Parse {
            file: format!("{}.toml", self.name),
            why: e.to_string(),
        })
    }
}

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
    /// Bytes a second to its memory, and from there, while the other way is idle.
    #[serde(skip)]
    pub one_way: Option<[f64; 2]>,
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
            one_way: None,
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
            one_way: None,
        }
    }
}
