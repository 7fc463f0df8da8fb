//! A device of a simulated node: its model, and what it has done.

use std::ops::Range;

use crate::runtime::CommandKind;
use crate::runtime::sim::device_model::DeviceModel;
use crate::runtime::sim::schedule::{Demand, JobId, Schedule};
use crate::time::Nanos;
use pdawl_core::cluster::info::DeviceInfo;
use pdawl_core::cluster::protocol::DeviceIndex;
use pdawl_core::cluster::record::Stage;
use pdawl_core::cluster::task::TaskId;

use super::machines::info;

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
