//! A simulated device: when a subtask on it ends.

use std::ops::Range;

use crate::cluster::info::DeviceInfo;
use crate::cluster::record::Stage;
use crate::codelet::Cost;
use crate::machine::MachineFile;
use crate::time::Nanos;

/// A device of a machine file, as far as subtasks are concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceModel {
    pub info: DeviceInfo,
    /// From a subtask's data being there to its kernel's begin.
    pub launch: Nanos,
}

/// Which of a machine's devices compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Computing {
    /// The host's cores, as one device, and all others.
    #[default]
    All,
    /// The devices beside the host's cores.
    Gpus,
    /// The host's cores.
    Host,
}

/// Subtasks that are on a GPU at once: one computes while another one's data are copied.
const GPU_DEPTH: u32 = 2;

/// The devices of a machine, which compute in single precision.
pub fn devices(machine: &MachineFile, computing: Computing) -> Vec<DeviceModel> {
    let mut devices = Vec::new();
    let unlimited = f64::INFINITY;
    if computing != Computing::Gpus {
        let host = &machine.host;
        devices.push(DeviceModel {
            info: DeviceInfo {
                name: "host".to_owned(),
                // Single precision is twice as fast.
                flops: host.flops.map_or(unlimited, |flops| 2.0 * flops),
                memory_bandwidth: host.memory_bandwidth,
                link_bandwidth: unlimited,
                depth: 1,
            },
            launch: host.launch_overhead_ns,
        });
    }
    if computing != Computing::Host {
        devices.extend(machine.devices.iter().map(|device| {
            DeviceModel {
                info: DeviceInfo {
                    name: device.name.clone(),
                    flops: device.flops_f32.unwrap_or(unlimited),
                    memory_bandwidth: device.memory_bandwidth,
                    link_bandwidth: device
                        .link
                        .as_ref()
                        .map_or(unlimited, |link| link.both_ways),
                    depth: GPU_DEPTH,
                },
                launch: device.launch_overhead_ns,
            }
        }));
    }
    devices
}

/// How fast a node's devices are over time: from each moment on, a fraction of their speed.
#[derive(Clone, Debug, Default)]
pub struct Speed {
    changes: Vec<(Nanos, f64)>,
}

impl Speed {
    /// From `at` on it is this fraction. Moments ascend.
    pub fn change(&mut self, at: Nanos, fraction: f64) {
        self.changes.push((at, fraction));
        self.changes.sort_by_key(|change| change.0);
    }

    /// When work that takes `seconds` at full speed has ended.
    pub fn end(&self, begin: Nanos, seconds: f64) -> Nanos {
        let mut speed = 1.0;
        let (mut now, mut left) = (begin, seconds);
        for &(at, fraction) in &self.changes {
            if at > now {
                let done = (at - now) as f64 * 1e-9 * speed;
                if done >= left {
                    break;
                }
                left -= done;
                now = at;
            }
            speed = fraction;
        }
        now + (left / speed * 1e9).ceil() as Nanos
    }
}

/// Its engines, which do one thing after the other.
#[derive(Clone, Debug)]
pub struct Device {
    pub model: DeviceModel,
    copies_in: Nanos,
    kernels: Nanos,
    copies_out: Nanos,
    /// Nanoseconds of kernels.
    pub busy: Nanos,
    /// Nanoseconds of copies to it, and from it.
    pub copying: [Nanos; 2],
    /// Subtasks that it has ended, and the sum of their times.
    pub subtasks: u64,
    pub took: Nanos,
}

impl Device {
    pub fn new(model: DeviceModel) -> Self {
        Self {
            model,
            copies_in: 0,
            kernels: 0,
            copies_out: 0,
            busy: 0,
            copying: [0; 2],
            subtasks: 0,
            took: 0,
        }
    }

    /// A subtask starts, which reads and writes so many bytes. `slower` multiplies its
    /// kernel's time. The result is what its engines do for it, and when.
    pub fn start(
        &mut self,
        cost: Cost,
        (reads, writes): (u64, u64),
        slower: f64,
        speed: &Speed,
        now: Nanos,
    ) -> [(Stage, Range<Nanos>); 3] {
        let info = &self.model.info;
        let copy = |bytes: u64| (bytes as f64 / info.link_bandwidth * 1e9) as Nanos;
        let [copy_in, copy_out] = [reads, writes].map(copy);
        self.copying = [self.copying[0] + copy_in, self.copying[1] + copy_out];
        self.copies_in = self.copies_in.max(now) + copy_in;
        let seconds = (cost.flops / info.flops).max(cost.bytes / info.memory_bandwidth);
        let begin = self.kernels.max(self.copies_in) + self.model.launch;
        self.kernels = speed.end(begin, seconds * slower);
        self.busy += self.kernels - begin;
        self.copies_out = self.copies_out.max(self.kernels) + copy_out;
        [
            (Stage::Write, self.copies_in - copy_in..self.copies_in),
            (Stage::Compute, begin..self.kernels),
            (Stage::Read, self.copies_out - copy_out..self.copies_out),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_longer_where_a_device_is_slower() {
        let mut speed = Speed::default();
        assert_eq!(speed.end(5, 1.0), 1_000_000_005);
        speed.change(1_000_000_000, 0.1);
        speed.change(3_000_000_000, 1.0);
        // Half a second at full speed, 0.2 s of work in two slow seconds, the rest after.
        assert_eq!(speed.end(500_000_000, 1.0), 3_300_000_000);
        assert_eq!(speed.end(2_000_000_000, 0.1), 3_000_000_000);
    }
}
