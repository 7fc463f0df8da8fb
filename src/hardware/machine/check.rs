//! Checks the figures of a machine file.
//!
//! Most mistakes are wrong units (GB for bytes, GHz for MHz), so each figure has a
//! range that holds for every machine, and the message states the unit.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{DeviceSpec, HostSpec, LinkSpec, MachineError, MachineFile, PeerSpec};
use crate::file_store::check_name;

/// Checks every figure of `machine`; `file` is its name in messages.
pub(super) fn check(machine: &MachineFile, file: &str) -> Result<(), MachineError> {
    check_name("machine", &machine.name)?;
    let check = Check { file };
    check.host(&machine.host)?;
    for (i, device) in machine.devices.iter().enumerate() {
        check.device(device, &machine.host)?;
        if machine.devices[..i].iter().any(|d| d.name == device.name) {
            return Err(check.wrong(
                "device.name",
                &device.name,
                "two devices have it",
                "give each device its own name".into(),
            ));
        }
    }
    for (i, peer) in machine.peers.iter().enumerate() {
        check.peer(peer, &machine.devices)?;
        let pair = (&peer.from, &peer.to);
        if machine.peers[..i].iter().any(|p| (&p.from, &p.to) == pair) {
            return Err(check.wrong(
                &format!("peer` from `{}` to `{}", peer.from, peer.to),
                &"given twice",
                "an entry is the only one of its direction",
                "remove one, or exchange its `from` and `to`".into(),
            ));
        }
    }
    check.range(
        "noise.relative",
        machine.noise.relative,
        0.0..=1.0,
        "give a relative standard deviation, such as 0.02".into(),
    )
}

/// The range of a kind of figure, and an example with its unit.
struct Kind(RangeInclusive<f64>, &'static str);

const CLOCK: Kind = Kind(50.0..=20_000.0, "MHz, such as 2600 for 2.6 GHz");
const CACHE: Kind = Kind(1024.0..=1e11, "bytes, such as 20971520 for 20 MiB");
const MEMORY: Kind = Kind(1e6..=1e16, "bytes, such as 12000000000 for 12 GB");
const BANDWIDTH: Kind = Kind(1e6..=1e15, "bytes a second, such as 55e9 for 55 GB/s");
const FLOPS: Kind = Kind(
    1e6..=1e18,
    "operations a second, such as 1.43e12 for 1.43 TFLOP/s",
);
const DELAY: Kind = Kind(0.0..=1e9, "nanoseconds, such as 13000 for 13 us");
const SECONDS: Kind = Kind(1e-9..=1e9, "seconds, such as 0.015 for 15 ms");

struct Check<'a> {
    file: &'a str,
}

impl Check<'_> {
    fn host(&self, host: &HostSpec) -> Result<(), MachineError> {
        self.count("host.sockets", host.sockets, 64)?;
        self.count("host.cores", host.cores, 1 << 16)?;
        self.figure("host.clock_mhz", host.clock_mhz.map(f64::from), CLOCK)?;
        self.figure("host.l2", host.l2.map(|bytes| bytes as f64), CACHE)?;
        self.figure("host.l3", host.l3.map(|bytes| bytes as f64), CACHE)?;
        self.figure("host.memory", host.memory as f64, MEMORY)?;
        self.figure("host.memory_bandwidth", host.memory_bandwidth, BANDWIDTH)?;
        self.figure("host.shared_bandwidth", host.shared_bandwidth, BANDWIDTH)?;
        self.at_most(
            "host.memory_bandwidth",
            host.memory_bandwidth,
            host.shared(),
            "the cores alone take more than memory gives; host.shared_bandwidth is that of \
             cores and transfers together",
        )?;
        self.figure("host.core_bandwidth", host.core_bandwidth, BANDWIDTH)?;
        self.at_most(
            "host.core_bandwidth",
            host.core_bandwidth,
            host.memory_bandwidth,
            "one core is faster than all; host.memory_bandwidth is that of all cores",
        )?;
        self.figure("host.bus_bandwidth", host.bus_bandwidth, BANDWIDTH)?;
        self.figure("host.flops", host.flops, FLOPS)?;
        self.delay("host.launch_overhead_ns", host.launch_overhead_ns)?;
        self.delay("host.completion_latency_ns", host.completion_latency_ns)?;
        self.efficiency("host", &host.efficiency)
    }

    fn device(&self, device: &DeviceSpec, host: &HostSpec) -> Result<(), MachineError> {
        let key = |k: &str| format!("device.{k}` of `{}", device.name);
        let clock = device.clock_mhz.map(f64::from);
        self.count(&key("compute_units"), device.compute_units, 1 << 16)?;
        self.figure(&key("clock_mhz"), clock, CLOCK)?;
        self.figure(&key("memory"), device.memory as f64, MEMORY)?;
        self.figure(&key("memory_bandwidth"), device.memory_bandwidth, BANDWIDTH)?;
        self.figure(&key("flops_f64"), device.flops_f64, FLOPS)?;
        self.figure(&key("flops_f32"), device.flops_f32, FLOPS)?;
        self.figure(&key("flops_f16"), device.flops_f16, FLOPS)?;
        self.figure(&key("flops_tf32"), device.flops_tf32, FLOPS)?;
        self.count(&key("copy_engines"), device.copy_engines, 2)?;
        self.count(&key("queues"), device.queues, 1024)?;
        self.count(&key("concurrent_kernels"), device.concurrent_kernels, 1024)?;
        self.delay(&key("launch_overhead_ns"), device.launch_overhead_ns)?;
        self.delay(&key("enqueue_ns"), device.enqueue_ns)?;
        self.delay(&key("completion_latency_ns"), device.completion_latency_ns)?;
        self.efficiency(&device.name, &device.efficiency)?;
        for (codelet, seconds) in &device.seconds {
            self.figure(&key(&format!("seconds.{codelet}")), *seconds, SECONDS)?;
        }
        match (&device.link, device.shares_host_memory) {
            (Some(link), false) => self.link(&device.name, link),
            (None, true) => self.at_most(
                &key("memory"),
                device.memory as f64,
                host.memory as f64,
                "it shares the host's memory, which is smaller",
            ),
            (Some(_), true) => Err(self.wrong(
                &key("link"),
                &"given",
                "a device that shares the host's memory has no link",
                "remove the link or shares_host_memory".into(),
            )),
            (None, false) => Err(self.wrong(
                &key("link"),
                &"missing",
                "a device with memory of its own is reached over a link",
                "add [device.link] with h2d, d2h, both_ways and latency_ns".into(),
            )),
        }
    }

    fn link(&self, device: &str, link: &LinkSpec) -> Result<(), MachineError> {
        let key = |k: &str| format!("device.link.{k}` of `{device}");
        self.figure(&key("h2d"), link.h2d, BANDWIDTH)?;
        self.figure(&key("d2h"), link.d2h, BANDWIDTH)?;
        self.figure(&key("both_ways"), link.both_ways, BANDWIDTH)?;
        self.at_most(
            &key("both_ways"),
            link.both_ways,
            link.h2d.max(link.d2h),
            "each way is faster with both busy than alone; it is the figure of one way",
        )?;
        self.delay(&key("latency_ns"), link.latency_ns)?;
        self.delay(&key("launch_delay_ns"), link.launch_delay_ns)
    }

    fn peer(&self, peer: &PeerSpec, devices: &[DeviceSpec]) -> Result<(), MachineError> {
        let linked = || devices.iter().filter(|d| !d.shares_host_memory);
        for (key, name) in [("peer.from", &peer.from), ("peer.to", &peer.to)] {
            if linked().any(|d| d.name == *name) {
                continue;
            }
            let names: Vec<&str> = linked().map(|d| d.name.as_str()).collect();
            let why = match devices.iter().any(|d| d.name == *name) {
                true => "it computes on the host's memory, so nothing is copied to it",
                false => "no device has this name",
            };
            let remedy = match names.is_empty() {
                true => "remove the entry: no device has memory of its own".into(),
                false => format!("give a device with memory of its own: {}", names.join(", ")),
            };
            return Err(self.wrong(key, name, why, remedy));
        }
        if peer.from == peer.to {
            return Err(self.wrong(
                "peer.to",
                &peer.to,
                "`from` is the same device",
                "give two devices, or remove the entry".into(),
            ));
        }
        let key = |k: &str| format!("peer.{k}` from `{}` to `{}", peer.from, peer.to);
        self.figure(&key("bandwidth"), peer.bandwidth, BANDWIDTH)?;
        self.delay(&key("latency_ns"), peer.latency_ns)
    }

    fn efficiency(&self, of: &str, table: &BTreeMap<String, f64>) -> Result<(), MachineError> {
        const EFFICIENCY: Kind = Kind(
            0.001..=1.5,
            "the fraction of the copy's bandwidth that the codelet reaches, such as 0.8",
        );
        for (codelet, fraction) in table {
            let key = format!("efficiency.{codelet}` of `{of}");
            self.figure(&key, *fraction, EFFICIENCY)?;
        }
        Ok(())
    }

    fn count(&self, key: &str, value: u32, most: u32) -> Result<(), MachineError> {
        let remedy = format!("give a number from 1 to {most}");
        self.range(key, f64::from(value), 1.0..=f64::from(most), remedy)
    }

    fn delay(&self, key: &str, ns: u64) -> Result<(), MachineError> {
        self.figure(key, ns as f64, DELAY)
    }

    /// Checks a figure, if it is given.
    fn figure(
        &self,
        key: &str,
        value: impl Into<Option<f64>>,
        Kind(range, example): Kind,
    ) -> Result<(), MachineError> {
        match value.into() {
            Some(value) => self.range(key, value, range, format!("give {example}")),
            None => Ok(()),
        }
    }

    fn at_most(
        &self,
        key: &str,
        value: f64,
        most: f64,
        why: &'static str,
    ) -> Result<(), MachineError> {
        if value <= most {
            return Ok(());
        }
        Err(self.wrong(key, &value, why, format!("it can be at most {most}")))
    }

    fn range(
        &self,
        key: &str,
        value: f64,
        range: RangeInclusive<f64>,
        remedy: String,
    ) -> Result<(), MachineError> {
        if range.contains(&value) {
            return Ok(());
        }
        let why = if !value.is_finite() {
            "not a finite number"
        } else if value <= 0.0 {
            "not positive"
        } else if value < *range.start() {
            "too small for any machine"
        } else {
            "too large for any machine"
        };
        Err(self.wrong(key, &value, why, remedy))
    }

    fn wrong(
        &self,
        key: &str,
        value: &dyn std::fmt::Display,
        why: &'static str,
        remedy: String,
    ) -> MachineError {
        MachineError::Value {
            file: self.file.to_owned(),
            key: key.to_owned(),
            value: value.to_string(),
            why,
            remedy,
        }
    }
}
