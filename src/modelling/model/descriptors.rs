//! The figures of a machine file for one codelet: of a device, and of its host. A
//! figure that the file lacks is `None`.

use crate::machine::file::efficiency;
use crate::machine::{DeviceSpec, HostSpec, LinkSpec, MachineFile};

/// The figures that a model may read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Descriptors {
    pub host: HostFigures,
    /// `None` for the host's own cores.
    pub device: Option<DeviceFigures>,
}

/// The figures of the host. Rates are per second, times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostFigures {
    pub cores: u32,
    pub sockets: u32,
    pub clock_mhz: Option<u32>,
    /// Bytes of a core's L2 and of a socket's L3 cache.
    pub l2: Option<u64>,
    pub l3: Option<u64>,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes a second of a copy by all cores.
    pub bandwidth: f64,
    /// Bytes a second of host memory that transfers share with the cores.
    pub shared_bandwidth: f64,
    /// Bytes a second of all transfers between host memory and devices together; `None`
    /// where only links limit them.
    pub bus: Option<f64>,
    /// The slowest direct way between two devices with memory of their own, if there is one
    /// between any two.
    pub direct: Option<LinkFigures>,
    /// Bytes a second of a copy by one core.
    pub core_bandwidth: f64,
    /// Operations a second of all cores, in the codelet's precision.
    pub flops: Option<f64>,
    pub launch_seconds: f64,
    pub completion_seconds: f64,
    /// The fraction of a copy's bandwidth that the codelet reaches.
    pub efficiency: f64,
}

/// The figures of a device other than the host's cores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceFigures {
    pub compute_units: u32,
    pub clock_mhz: Option<u32>,
    pub memory: u64,
    pub bandwidth: f64,
    pub flops: Option<f64>,
    pub copy_engines: u32,
    /// Whether kernels of several queues take turns instead of sharing it.
    pub turns: bool,
    pub launch_seconds: f64,
    pub enqueue_seconds: f64,
    pub completion_seconds: f64,
    pub efficiency: f64,
    /// `None` for a device that shares the host's memory.
    pub link: Option<LinkFigures>,
}

/// The link between host memory and device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkFigures {
    /// Bytes a second to and from the device alone, and each way while both
    /// are busy.
    pub h2d: f64,
    pub d2h: f64,
    pub both_ways: f64,
    /// Seconds of a transfer of nothing.
    pub latency_seconds: f64,
    /// Seconds that a launch takes longer while a write is under way.
    pub launch_delay_seconds: f64,
}

impl Descriptors {
    /// The figures of `device` (`None`: of the host's cores) in a machine file, for the
    /// codelet of this name in double or single precision.
    pub fn of(
        machine: &MachineFile,
        device: Option<&DeviceSpec>,
        codelet: &str,
        fp64: bool,
    ) -> Self {
        Self {
            host: HostFigures {
                direct: LinkFigures::between_devices(machine),
                ..HostFigures::of(&machine.host, codelet, fp64)
            },
            device: device.map(|device| DeviceFigures::of(device, codelet, fp64)),
        }
    }
}

impl HostFigures {
    /// Bytes a second that all transfers together reach at most; infinite without a bus.
    pub fn transfers(&self) -> f64 {
        self.bus.unwrap_or(f64::INFINITY)
    }

    fn of(host: &HostSpec, codelet: &str, fp64: bool) -> Self {
        // Single precision counts twice as fast.
        let flops = |rate: f64| if fp64 { rate } else { 2.0 * rate };
        Self {
            cores: host.cores,
            sockets: host.sockets,
            clock_mhz: host.clock_mhz,
            l2: host.l2,
            l3: host.l3,
            memory: host.memory,
            bandwidth: host.memory_bandwidth,
            shared_bandwidth: host.shared(),
            bus: host.bus_bandwidth,
            direct: None,
            core_bandwidth: host.core_bandwidth,
            flops: host.flops.map(flops),
            launch_seconds: seconds(host.launch_overhead_ns),
            completion_seconds: seconds(host.completion_latency_ns),
            efficiency: efficiency(&host.efficiency, codelet),
        }
    }
}

impl DeviceFigures {
    fn of(device: &DeviceSpec, codelet: &str, fp64: bool) -> Self {
        Self {
            compute_units: device.compute_units,
            clock_mhz: device.clock_mhz,
            memory: device.memory,
            bandwidth: device.memory_bandwidth,
            flops: device.flops(codelet, fp64),
            copy_engines: device.copy_engines,
            turns: device.concurrent_kernels == 1,
            launch_seconds: seconds(device.launch_overhead_ns),
            enqueue_seconds: seconds(device.enqueue_ns),
            completion_seconds: seconds(device.completion_latency_ns),
            efficiency: efficiency(&device.efficiency, codelet),
            link: device.link.as_ref().map(LinkFigures::of),
        }
    }
}

impl LinkFigures {
    /// The slowest way between two devices' memories that passes by the host's, if there is one
    /// between any two.
    fn between_devices(machine: &MachineFile) -> Option<Self> {
        let own = machine
            .devices
            .iter()
            .filter(|d| !d.shares_host_memory)
            .count();
        let ways = machine.peers.iter().filter(|way| !way.through_host);
        let slowest = ways
            .clone()
            .min_by(|one, other| one.bandwidth.total_cmp(&other.bandwidth));
        let slowest = slowest.filter(|_| ways.count() == own * own.saturating_sub(1));
        slowest.map(|way| Self {
            h2d: way.bandwidth,
            latency_seconds: seconds(way.latency_ns),
            ..Self::default()
        })
    }

    fn of(link: &LinkSpec) -> Self {
        Self {
            h2d: link.h2d,
            d2h: link.d2h,
            both_ways: link.both_ways,
            latency_seconds: seconds(link.latency_ns),
            launch_delay_seconds: seconds(link.launch_delay_ns),
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}
