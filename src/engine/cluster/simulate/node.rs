//! A simulated node.

use std::ops::Range;

use super::{Cluster, NodeMachine as Machine, Options, SimulatedChain, info};
use crate::runtime::CommandKind;
use crate::runtime::sim::bandwidth_sharing::Resource;
use crate::runtime::sim::device_model::DeviceModel;
use crate::runtime::sim::schedule::{Demand, JobId, Schedule};
use crate::time::Nanos;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::info::{DeviceInfo, NodeInfo};
use pdawl_core::cluster::protocol::{DeviceIndex, NodeMachine, Settings};
use pdawl_core::cluster::record::{NodeRecord, Stage};
use pdawl_core::cluster::task::TaskId;

/// A simulated node.
pub struct Node {
    pub machine: NodeMachine,
    pub devices: Vec<Device>,
    /// The task that it begins next, and the chain that it began last, with its first task.
    pub next: u64,
    pub chain: Option<SimulatedChain>,
    pub first: u64,
    pub computes: bool,
    pub ready: bool,
    /// When its driver has handled the messages that it sends and receives, and enqueued the
    /// commands of its devices.
    pub sends: Nanos,
    pub receives: Nanos,
    pub enqueues: Nanos,
    /// Nanoseconds in which it did each of these.
    pub handling: [Nanos; 3],
    /// Subtasks on its devices, and since when there have been some.
    pub running: u64,
    pub running_since: Nanos,
    pub out: Resource,
    pub into: Resource,
    pub record: NodeRecord,
}

impl Node {
    /// Node `me` of a cluster, with its devices and its links to the switch in the schedule.
    pub fn new(
        me: NodeId,
        machine: &Machine,
        cluster: &Cluster,
        options: &Options,
        schedule: &mut Schedule,
    ) -> Self {
        let spec = &cluster.network;
        let devices: Vec<Device> = machine.add(schedule).into_iter().map(Device::new).collect();
        let settings = Settings {
            network: cluster.assumed(),
            ..options.settings
        };
        let spread = (me == NodeId::FIRST).then(|| options.spread.spread(options.seed));
        let info = NodeInfo {
            name: me.to_string(),
            memory: machine.file.host.memory,
            devices: devices.iter().map(|device| device.info.clone()).collect(),
        };
        let out = schedule.fluid().resource(spec.bandwidth);
        let into = if spec.full_duplex {
            schedule.fluid().resource(spec.bandwidth)
        } else {
            out
        };
        let (count, program) = (cluster.nodes.len() as u32, "simulated".to_owned());
        Self {
            machine: NodeMachine::new(me, count, program, info, settings, spread),
            devices,
            next: 0,
            chain: None,
            first: 0,
            computes: false,
            ready: false,
            sends: 0,
            receives: 0,
            enqueues: 0,
            handling: [0; 3],
            running: 0,
            running_since: 0,
            out,
            into,
            record: NodeRecord {
                name: machine.file.name.clone(),
                ..NodeRecord::default()
            },
        }
    }

    /// A subtask starts on a device.
    pub fn starts(&mut self, now: Nanos) {
        if self.running == 0 {
            self.running_since = now;
        }
        self.running += 1;
    }

    /// A subtask that has started on a device at `began` ends.
    pub fn ends(&mut self, device: usize, began: Nanos, now: Nanos) {
        self.devices[device].subtasks += 1;
        self.devices[device].took += now - began;
        self.running -= 1;
        if self.running == 0 {
            self.record.busy_seconds += (now - self.running_since) as f64 * 1e-9;
        }
    }

    /// Seconds until `now` in which a subtask was on at least one of its devices.
    pub fn computing(&self, now: Nanos) -> f64 {
        let still = match self.running {
            0 => 0,
            _ => now.saturating_sub(self.running_since),
        };
        self.record.busy_seconds + still as f64 * 1e-9
    }
}

/// A device.
pub struct Device {
    pub info: DeviceInfo,
    pub model: DeviceModel,
    /// Its last kernel. Kernels are on one queue.
    last: Option<JobId>,
    /// Nanoseconds of kernels.
    pub busy: Nanos,
    /// Nanoseconds of copies to it, and from it.
    pub copying: [Nanos; 2],
    /// Subtasks that it has ended, and the sum of their times.
    pub subtasks: u64,
    pub took: Nanos,
}

/// A subtask that a node has begun.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    pub device: DeviceIndex,
    pub task: TaskId,
    /// The task's place in the run.
    pub place: u32,
    pub subtask: u64,
    /// Its number in its task.
    pub own: u64,
    pub at: Nanos,
    /// Bytes that it reads and writes.
    pub bytes: [u64; 2],
}

/// A command of a subtask.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    pub stage: Stage,
    pub of: Begun,
    /// Whether the subtask has no later one.
    pub is_last: bool,
}

impl Command {
    /// Bytes that it copies.
    pub fn bytes(&self) -> u64 {
        match self.stage {
            Stage::Write => self.of.bytes[0],
            Stage::Compute => 0,
            Stage::Read => self.of.bytes[1],
        }
    }
}

impl Device {
    pub fn new(model: DeviceModel) -> Self {
        Self {
            info: info(&model),
            model,
            last: None,
            busy: 0,
            copying: [0; 2],
            subtasks: 0,
            took: 0,
        }
    }

    /// Commands of a subtask that copies so many bytes each way.
    fn copies(&self, bytes: [u64; 2], slower: f64) -> [Option<Demand>; 2] {
        let copy = |(kind, bytes)| {
            let demand = (bytes > 0).then(|| self.model.transfer(kind, bytes, slower));
            demand.flatten()
        };
        [
            (CommandKind::Write, bytes[0]),
            (CommandKind::Read, bytes[1]),
        ]
        .map(copy)
    }

    /// The host's time to enqueue the commands of a subtask that copies so many bytes each way.
    pub fn enqueues(&self, bytes: [u64; 2]) -> Nanos {
        let copies = match self.model.device.shares_host_memory {
            true => 0,
            false => bytes.iter().filter(|bytes| **bytes > 0).count() as Nanos,
        };
        (1 + copies) * self.model.enqueue
    }

    /// Enqueues a subtask: what it reads is copied to the device, unless that computes in host
    /// memory, the kernel runs, and its result is copied back. `slower` multiplies all times.
    pub fn enqueue(
        &mut self,
        of: Begun,
        kernel: Demand,
        slower: f64,
        schedule: &mut Schedule,
    ) -> impl Iterator<Item = (JobId, Command)> + use<> {
        let number = self.model.number;
        let [write, read] = self.copies(of.bytes, slower);
        let copies_back = read.is_some();
        let write = write.map(|write| schedule.submit(number, write, &[], false));
        let after: Vec<JobId> = write.into_iter().chain(self.last).collect();
        let kernel = schedule.submit(number, kernel, &after, false);
        self.last = Some(kernel);
        let read = read.map(|read| schedule.submit(number, read, &[kernel], false));
        let command = move |job: JobId, stage, is_last| (job, Command { stage, of, is_last });
        write
            .map(|job| command(job, Stage::Write, false))
            .into_iter()
            .chain([command(kernel, Stage::Compute, !copies_back)])
            .chain(read.map(|job| command(job, Stage::Read, true)))
    }

    /// A command has ended.
    pub fn ended(&mut self, stage: Stage, time: &Range<Nanos>) {
        let took = time.end - time.start;
        match stage {
            Stage::Write => self.copying[0] += took,
            Stage::Compute => self.busy += took,
            Stage::Read => self.copying[1] += took,
        }
    }
}
