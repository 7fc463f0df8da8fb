//! The simulated devices: which resources each command needs, and how much.
//!
//! | command | resources |
//! |---|---|
//! | kernel on a host pool | the pool's compute and bandwidth, host memory |
//! | kernel on a device | its compute and memory bandwidth; host memory if it shares that |
//! | write, read | the link's direction, the link both ways, the host's bus and memory |
//! | copy from device to device | the direct link from the one to the other |
//!
//! A kernel on a host pool occupies as many cores as it has tiles for. The next
//! one runs beside it if enough cores are left.
//!
//! A kernel occupies its device for the launch overhead before it starts (that of all kernels
//! of a series), and
//! longer while a write is in flight. Traces of an H200 show that the launch is
//! delayed, not the kernel: kernels of 7 rows lose as much as those of 337, and
//! reads delay neither.

use std::collections::BTreeMap;
use std::ops::Range;

use super::bandwidth_sharing::{Fluid, Resource, Use};
use super::options::Selected;
use super::schedule::{Delay, Demand, Engine, Schedule, Slots};
use crate::codelet::{Codelet, Cost, HostCode, Precision, stencil};
use crate::machine::file::efficiency;
use crate::machine::{
    Device, DeviceSpec, LinkSpec, MachineFile, PeerSpec, RuntimeKind, SubDeviceSupport,
};
use crate::runtime::tiles::Tiles;
use crate::runtime::{CommandCosts, CommandKind, Launch};
use crate::time::Nanos;

/// A simulated device.
pub struct DeviceModel {
    pub device: Device,
    /// Its number in the schedule.
    pub number: usize,
    /// Host time of an enqueue, and time from a command's end until the driver is
    /// notified.
    pub enqueue: Nanos,
    pub completion: Nanos,
    launch_overhead: Nanos,
    kernels: Engine,
    /// Seconds of the whole device.
    compute: Resource,
    /// Bytes to and from the memory, as far as the device itself is the limit.
    memory: Resource,
    memory_rate: f64,
    host_memory: Resource,
    /// Operations a second of a pool in double precision.
    flops: Option<f64>,
    efficiency: BTreeMap<String, f64>,
    /// Of a device that is no pool.
    spec: Option<DeviceSpec>,
    cores: Option<Cores>,
    link: Option<Link>,
    /// Direct links from it, by the index of the device that they lead to.
    peers: BTreeMap<usize, PeerLink>,
    slowed: f64,
}

/// A pool's cores.
struct Cores {
    all: u32,
    now: u32,
    /// Bytes a second that one core reaches.
    bandwidth: f64,
}

struct Link {
    spec: LinkSpec,
    up: Resource,
    down: Resource,
    both: Resource,
    bus: Option<Resource>,
    up_engine: Engine,
    down_engine: Engine,
}

/// A kernel, as far as its time is concerned.
#[derive(Clone, Copy, Debug)]
pub struct KernelDemand<'a> {
    /// The name of its codelet, by which a machine file may tell an efficiency.
    pub codelet: &'a str,
    pub cost: Cost,
    /// Whether it computes with doubles.
    pub fp64: bool,
    /// The units among which a pool's cores are divided; `None`: all cores share it, whatever
    /// its units are.
    pub units: Option<u64>,
    /// Kernels that a device launches for it, one after the other. A pool runs native code.
    pub launches: u64,
}

impl<'a> KernelDemand<'a> {
    /// A codelet over units, as one kernel.
    pub fn of(codelet: &'a Codelet, units: &Range<u64>, cost: Cost) -> Self {
        let kernel = codelet.opencl.as_ref();
        let is_shared = codelet.host.as_ref().is_some_and(HostCode::is_shared);
        let fp64 = match kernel {
            Some(kernel) => kernel.fp64,
            None => stencil::superstep_named(&codelet.name) != Some(Precision::F32),
        };
        Self {
            codelet: &codelet.name,
            cost,
            fp64,
            units: (!is_shared).then(|| units.end.saturating_sub(units.start)),
            launches: 1,
        }
    }
}

/// Adds the devices selected from a machine to a schedule, with the resources that they
/// share.
pub fn add(machine: &MachineFile, selected: &[Selected], to: &mut Schedule) -> Vec<DeviceModel> {
    let fluid = to.fluid();
    let host = HostResources {
        memory: fluid.resource(machine.host.shared()),
        bus: (machine.host.bus_bandwidth).map(|bandwidth| fluid.resource(bandwidth)),
    };
    let mut parts: Vec<DeviceModel> = selected
        .iter()
        .map(|device| match device {
            Selected::Pool(cores) => pool(machine, *cores, host, to),
            Selected::Device(i) => other(machine, &machine.devices[*i], host, to),
        })
        .collect();
    let position = |name: &str| {
        let is_it =
            |s: &Selected| matches!(s, Selected::Device(i) if machine.devices[*i].name == name);
        selected.iter().position(is_it)
    };
    for spec in machine.peers.iter().filter(|spec| !spec.through_host) {
        if let (Some(from), Some(towards)) = (position(&spec.from), position(&spec.to)) {
            let link = PeerLink::new(spec, to);
            parts[from].peers.insert(towards, link);
        }
    }
    parts
}

/// What the devices share.
#[derive(Clone, Copy)]
struct HostResources {
    memory: Resource,
    bus: Option<Resource>,
}

fn pool(
    machine: &MachineFile,
    cores: u32,
    resources: HostResources,
    to: &mut Schedule,
) -> DeviceModel {
    let host = &machine.host;
    let flops = host
        .flops
        .map(|f| f * f64::from(cores) / f64::from(host.cores));
    let memory_rate = (f64::from(cores) * host.core_bandwidth).min(host.memory_bandwidth);
    DeviceModel {
        number: to.device(),
        device: Device {
            clock_mhz: host.clock_mhz,
            driver: driver(machine),
            ..Device::host_pool(
                RuntimeKind::Sim,
                pool_name(machine, cores),
                host.model.clone(),
                cores,
                host.memory,
            )
        },
        enqueue: 0,
        completion: host.completion_latency_ns,
        launch_overhead: host.launch_overhead_ns,
        kernels: to.engine(cores.max(1)),
        compute: to.fluid().resource(1.0),
        memory: to.fluid().resource(memory_rate),
        memory_rate,
        host_memory: resources.memory,
        flops,
        efficiency: host.efficiency.clone(),
        spec: None,
        cores: Some(Cores {
            all: cores,
            now: cores,
            bandwidth: host.core_bandwidth,
        }),
        link: None,
        peers: BTreeMap::new(),
        slowed: 1.0,
    }
}

fn other(
    machine: &MachineFile,
    spec: &DeviceSpec,
    host: HostResources,
    to: &mut Schedule,
) -> DeviceModel {
    let link = spec.link.as_ref().map(|link| {
        let up_engine = to.engine(1);
        Link {
            spec: link.clone(),
            up: to.fluid().resource(link.h2d),
            down: to.fluid().resource(link.d2h),
            both: to.fluid().resource(2.0 * link.both_ways),
            bus: host.bus,
            up_engine,
            down_engine: if spec.copy_engines == 1 {
                up_engine
            } else {
                to.engine(1)
            },
        }
    });
    DeviceModel {
        number: to.device(),
        device: Device {
            name: spec.name.clone(),
            model: spec.model.clone(),
            kind: spec.kind,
            runtime: RuntimeKind::Sim,
            compute_units: spec.compute_units,
            memory: spec.memory,
            max_allocation: spec.memory,
            clock_mhz: spec.clock_mhz,
            shares_host_memory: spec.shares_host_memory,
            fp64: spec.fp64,
            sub_devices: SubDeviceSupport::default(),
            queues: spec.queues,
            driver: driver(machine),
            link_bandwidth: spec.link.as_ref().map(|link| link.both_ways),
            one_way: spec.link.as_ref().map(|link| [link.h2d, link.d2h]),
        },
        enqueue: spec.enqueue_ns,
        completion: spec.completion_latency_ns,
        launch_overhead: spec.launch_overhead_ns,
        kernels: to.engine(spec.concurrent_kernels),
        compute: to.fluid().resource(1.0),
        memory: to.fluid().resource(spec.memory_bandwidth),
        memory_rate: spec.memory_bandwidth,
        host_memory: host.memory,
        flops: None,
        efficiency: spec.efficiency.clone(),
        spec: Some(spec.clone()),
        cores: None,
        link,
        peers: BTreeMap::new(),
        slowed: 1.0,
    }
}

/// The name of a pool of so many cores.
pub(super) fn pool_name(machine: &MachineFile, cores: u32) -> String {
    match cores == machine.host.cores {
        true => "host".to_owned(),
        false => format!("host:{cores}"),
    }
}

/// How many of a pool's cores a kernel occupies, at most all of them.
fn busy_cores(kernel: &KernelDemand, cores: u32) -> u32 {
    let units = kernel.units.unwrap_or(cores.into());
    let tiles = Tiles::of(units, kernel.cost, cores as usize);
    tiles.busy(cores as usize) as u32
}

fn driver(machine: &MachineFile) -> String {
    format!("simulated {} ({})", machine.name, machine.format)
}

impl DeviceModel {
    /// Operations a second of a codelet; `None` if only memory limits it.
    pub fn flops(&self, codelet: &str, fp64: bool) -> Option<f64> {
        match &self.spec {
            Some(spec) => spec.flops(codelet, fp64),
            None => self.flops.map(|f| if fp64 { f } else { 2.0 * f }),
        }
    }

    /// Bytes a second of its memory.
    pub fn memory_bandwidth(&self) -> f64 {
        self.memory_rate
    }

    /// What a launch needs, `noise` times as much as described.
    pub fn launch(&self, launch: &Launch, noise: f64) -> Demand {
        let (codelet, units) = (&launch.codelet, &launch.units);
        let mut kernel = KernelDemand::of(codelet, units, launch.cost);
        // Only a device launches all kernels of a series.
        if let (None, Some(series)) = (&self.cores, &codelet.opencl) {
            kernel.launches = series.launches(units, &launch.args);
        }
        self.kernel(&kernel, noise)
    }

    /// What a kernel needs, `noise` times as much as described.
    ///
    /// A codelet's efficiency limits the device and adds no traffic: host memory
    /// bandwidth that it leaves idle is free for others.
    pub fn kernel(&self, kernel: &KernelDemand, noise: f64) -> Demand {
        let flops = self.flops(kernel.codelet, kernel.fp64);
        let traffic = kernel.cost.bytes * noise;
        let bytes = traffic / efficiency(&self.efficiency, kernel.codelet);
        let mut seconds = flops.map_or(0.0, |rate| kernel.cost.flops * noise / rate);
        let (mut slots, mut launches) = (None, kernel.launches);
        if let Some(cores) = &self.cores {
            // One core cannot use the whole memory bandwidth, and a small launch
            // has tiles for some of the cores only.
            let by_cores = bytes / (f64::from(cores.all) * cores.bandwidth);
            seconds = match stencil::superstep_named(kernel.codelet) {
                Some(_) => seconds + by_cores.max(bytes / self.memory_rate),
                None => seconds.max(by_cores),
            };
            launches = 1;
            slots = Some(Slots {
                count: busy_cores(kernel, cores.all),
                of: self.compute,
            });
        }
        let mut uses = vec![Use::of(self.memory, bytes), Use::of(self.compute, seconds)];
        if self.device.shares_host_memory {
            uses.push(Use::of(self.host_memory, traffic));
        }
        let known = |spec: &DeviceSpec| spec.seconds.get(kernel.codelet).copied();
        if let Some(seconds) = self.spec.as_ref().and_then(known) {
            uses = vec![Use::of(self.compute, seconds * noise)];
        }
        Demand {
            slots,
            gap: self.launch_overhead,
            delay: self.link.as_ref().map(|link| Delay {
                behind: link.up,
                by: link.spec.launch_delay_ns,
            }),
            // A codelet of several launches has begun with the first one.
            latency: launches.saturating_sub(1) * self.launch_overhead,
            ..Demand::of(self.kernels, uses)
        }
    }

    /// What its commands cost beside their work.
    pub fn costs(&self) -> CommandCosts {
        let seconds = |nanos: Nanos| nanos as f64 / 1e9;
        let of_link = |nanos: fn(&LinkSpec) -> Nanos| {
            (self.link.as_ref()).map_or(0.0, |link| seconds(nanos(&link.spec)))
        };
        CommandCosts {
            enqueue: seconds(self.enqueue),
            launch: seconds(self.launch_overhead),
            behind_write: of_link(|link| link.launch_delay_ns),
            latency: of_link(|link| link.latency_ns),
            completion: seconds(self.completion),
            kernels: self.spec.as_ref().map_or(1, |spec| spec.concurrent_kernels),
        }
    }

    /// What a transfer needs; `None` for a device without a link.
    pub fn transfer(&self, kind: CommandKind, bytes: u64, noise: f64) -> Option<Demand> {
        let link = self.link.as_ref()?;
        let (way, engine) = match kind {
            CommandKind::Write => (link.up, link.up_engine),
            CommandKind::Read => (link.down, link.down_engine),
            CommandKind::Launch | CommandKind::Copy => return None,
        };
        let amount = bytes as f64 * noise;
        let uses = [way, link.both, self.host_memory];
        let uses = uses.into_iter().chain(link.bus);
        let uses = uses.map(|resource| Use::of(resource, amount)).collect();
        Some(Demand {
            latency: link.spec.latency_ns,
            ..Demand::of(engine, uses)
        })
    }

    /// What a copy within the device's own memory needs, where each byte is read and written.
    pub fn copy_within(&self, bytes: u64, noise: f64) -> Demand {
        let uses = vec![Use::of(self.memory, 2.0 * bytes as f64 * noise)];
        Demand {
            gap: self.launch_overhead,
            ..Demand::of(self.kernels, uses)
        }
    }

    /// What a copy to the memory of the device of index `to` needs; `None` without a
    /// direct link to it.
    pub fn peer_copy(&self, to: usize, bytes: u64, noise: f64) -> Option<Demand> {
        self.peers.get(&to).map(|link| link.copy(bytes, noise))
    }

    /// What a copy to the memory of `to` needs that goes through host memory in pieces,
    /// so that both devices' links are busy at once; `None` without both links.
    pub fn staged_copy(&self, to: &Self, bytes: u64, noise: f64) -> Option<Demand> {
        let read = self.transfer(CommandKind::Read, bytes, noise)?;
        let write = to.transfer(CommandKind::Write, bytes, noise)?;
        Some(Demand {
            latency: read.latency + write.latency,
            uses: read.uses.into_iter().chain(write.uses).collect(),
            ..read
        })
    }

    /// From now on everything of the device is `factor` times slower than
    /// described.
    pub fn slow(&mut self, factor: f64, fluid: &mut Fluid) {
        self.slowed = factor;
        self.set_capacities(fluid);
    }

    /// From now on a pool has this many cores (`None`: all).
    pub fn set_cores(&mut self, left: Option<u32>, fluid: &mut Fluid) {
        if let Some(cores) = &mut self.cores {
            cores.now = left.unwrap_or(cores.all);
        }
        self.set_capacities(fluid);
    }

    fn set_capacities(&self, fluid: &mut Fluid) {
        let compute = self
            .cores
            .as_ref()
            .map_or(1.0, |cores| f64::from(cores.now) / f64::from(cores.all));
        fluid.set_capacity(self.compute, compute / self.slowed);
        fluid.set_capacity(self.memory, self.memory_rate / self.slowed);
        if let Some(link) = &self.link {
            fluid.set_capacity(link.up, link.spec.h2d / self.slowed);
            fluid.set_capacity(link.down, link.spec.d2h / self.slowed);
            fluid.set_capacity(link.both, 2.0 * link.spec.both_ways / self.slowed);
        }
        for link in self.peers.values() {
            link.slow(self.slowed, fluid);
        }
    }
}

/// A direct link from a device to another. Copies over it take turns. It uses neither
/// the host's bus nor its memory, and the devices' memories are faster.
struct PeerLink {
    spec: PeerSpec,
    link: Resource,
    engine: Engine,
}

impl PeerLink {
    pub fn new(spec: &PeerSpec, to: &mut Schedule) -> Self {
        Self {
            spec: spec.clone(),
            link: to.fluid().resource(spec.bandwidth),
            engine: to.engine(1),
        }
    }

    /// What a copy of `bytes` bytes needs, `noise` times as much as described.
    pub fn copy(&self, bytes: u64, noise: f64) -> Demand {
        let uses = vec![Use::of(self.link, bytes as f64 * noise)];
        Demand {
            latency: self.spec.latency_ns,
            ..Demand::of(self.engine, uses)
        }
    }

    /// From now on it is `factor` times slower than described.
    pub fn slow(&self, factor: f64, fluid: &mut Fluid) {
        fluid.set_capacity(self.link, self.spec.bandwidth / factor);
    }
}
