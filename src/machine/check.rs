//! Values that a described machine cannot have.
//!
//! Most mistakes are slips of the unit (GB for bytes, GHz for MHz), so each
//! figure has a range that no machine leaves, and the message says the unit.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{DeviceSpec, HostSpec, LinkSpec, MachineError, MachineFile};
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
    check.range(
        "noise.relative",
        machine.noise.relative,
        0.0..=1.0,
        "give a relative standard deviation, such as 0.02".into(),
    )
}

struct Check<'a> {
    file: &'a str,
}

impl Check<'_> {
    fn host(&self, host: &HostSpec) -> Result<(), MachineError> {
        self.count("host.sockets", host.sockets, 64)?;
        self.count("host.cores", host.cores, 1 << 16)?;
        if let Some(clock) = host.clock_mhz {
            self.clock("host.clock_mhz", clock)?;
        }
        if let Some(l2) = host.l2 {
            self.cache("host.l2", l2)?;
        }
        if let Some(l3) = host.l3 {
            self.cache("host.l3", l3)?;
        }
        self.memory("host.memory", host.memory)?;
        self.bandwidth("host.memory_bandwidth", host.memory_bandwidth)?;
        if let Some(shared) = host.shared_bandwidth {
            self.bandwidth("host.shared_bandwidth", shared)?;
            self.at_most(
                "host.memory_bandwidth",
                host.memory_bandwidth,
                shared,
                "the cores alone take more than memory gives; host.shared_bandwidth is that of \
                 cores and transfers together",
            )?;
        }
        self.bandwidth("host.core_bandwidth", host.core_bandwidth)?;
        self.at_most(
            "host.core_bandwidth",
            host.core_bandwidth,
            host.memory_bandwidth,
            "one core is faster than all; host.memory_bandwidth is that of all cores",
        )?;
        if let Some(flops) = host.flops {
            self.flops("host.flops", flops)?;
        }
        self.delay("host.launch_overhead_ns", host.launch_overhead_ns)?;
        self.delay("host.completion_latency_ns", host.completion_latency_ns)?;
        self.efficiency("host", &host.efficiency)
    }

    fn device(&self, device: &DeviceSpec, host: &HostSpec) -> Result<(), MachineError> {
        let key = |k: &str| format!("device.{k}` of `{}", device.name);
        self.count(&key("compute_units"), device.compute_units, 1 << 16)?;
        if let Some(clock) = device.clock_mhz {
            self.clock(&key("clock_mhz"), clock)?;
        }
        self.memory(&key("memory"), device.memory)?;
        self.bandwidth(&key("memory_bandwidth"), device.memory_bandwidth)?;
        if let Some(flops) = device.flops_f64 {
            self.flops(&key("flops_f64"), flops)?;
        }
        if let Some(flops) = device.flops_f32 {
            self.flops(&key("flops_f32"), flops)?;
        }
        self.count(&key("copy_engines"), device.copy_engines, 2)?;
        self.count(&key("queues"), device.queues, 1024)?;
        self.count(&key("concurrent_kernels"), device.concurrent_kernels, 1024)?;
        self.delay(&key("launch_overhead_ns"), device.launch_overhead_ns)?;
        self.delay(&key("enqueue_ns"), device.enqueue_ns)?;
        self.delay(&key("completion_latency_ns"), device.completion_latency_ns)?;
        self.efficiency(&device.name, &device.efficiency)?;
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
        self.bandwidth(&key("h2d"), link.h2d)?;
        self.bandwidth(&key("d2h"), link.d2h)?;
        self.bandwidth(&key("both_ways"), link.both_ways)?;
        self.at_most(
            &key("both_ways"),
            link.both_ways,
            link.h2d.max(link.d2h),
            "each way is faster with both busy than alone; it is the figure of one way",
        )?;
        self.delay(&key("latency_ns"), link.latency_ns)?;
        self.delay(&key("launch_delay_ns"), link.launch_delay_ns)
    }

    fn efficiency(&self, of: &str, table: &BTreeMap<String, f64>) -> Result<(), MachineError> {
        for (codelet, fraction) in table {
            self.range(
                &format!("efficiency.{codelet}` of `{of}"),
                *fraction,
                0.001..=1.5,
                "give the fraction of the copy's bandwidth that the codelet reaches, such as 0.8"
                    .into(),
            )?;
        }
        Ok(())
    }

    fn count(&self, key: &str, value: u32, most: u32) -> Result<(), MachineError> {
        let remedy = format!("give a number from 1 to {most}");
        self.range(key, f64::from(value), 1.0..=f64::from(most), remedy)
    }

    fn clock(&self, key: &str, mhz: u32) -> Result<(), MachineError> {
        let remedy = "give MHz, such as 2600 for 2.6 GHz".into();
        self.range(key, f64::from(mhz), 50.0..=20_000.0, remedy)
    }

    fn cache(&self, key: &str, bytes: u64) -> Result<(), MachineError> {
        let remedy = "give bytes, such as 20971520 for 20 MiB".into();
        self.range(key, bytes as f64, 1024.0..=1e11, remedy)
    }

    fn memory(&self, key: &str, bytes: u64) -> Result<(), MachineError> {
        let remedy = "give bytes, such as 12000000000 for 12 GB".into();
        self.range(key, bytes as f64, 1e6..=1e16, remedy)
    }

    fn bandwidth(&self, key: &str, rate: f64) -> Result<(), MachineError> {
        let remedy = "give bytes a second, such as 55e9 for 55 GB/s".into();
        self.range(key, rate, 1e6..=1e15, remedy)
    }

    fn flops(&self, key: &str, rate: f64) -> Result<(), MachineError> {
        let remedy = "give operations a second, such as 1.43e12 for 1.43 TFLOP/s".into();
        self.range(key, rate, 1e6..=1e18, remedy)
    }

    fn delay(&self, key: &str, ns: u64) -> Result<(), MachineError> {
        let remedy = "give nanoseconds, such as 13000 for 13 us".into();
        self.range(key, ns as f64, 0.0..=1e9, remedy)
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
