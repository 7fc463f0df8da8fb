//! Running commands and timing them.

use std::ops::Range;
use std::sync::Arc;

use super::figures::{median, seconds};
use super::stencils::grid;
use super::{MeasureError, MeasureOptions};
use crate::codelet::{BufferId, Codelet, Cost, HostMemoryId, Memory, Value};
use crate::machine::Device;
use crate::runtime::{
    Command, Completion, DeviceId, DeviceSpan, HostSpan, Launch, QueueId, Runtime, RuntimeError,
    Status, Tag,
};
use crate::time::Nanos;
use crate::workload::{Divisible, Grid};

/// Bytes of a unit of the large copies.
pub const UNIT: u64 = 64 << 10;
/// Fewer bytes than this measure caches.
const LEAST: u64 = 1 << 20;
/// Short commands in a row, for what one of them costs.
const ROW: usize = 32;
/// Long commands ahead of them, so that all are enqueued before the first
/// short one starts.
const HOLD: usize = 8;
/// Commands of another queue beside a row: they outlast what holds it up.
const OTHERS: usize = 4;
/// Rows measured at most: each has many commands to take the median of.
const ROWS: u32 = 3;

/// Two host allocations of the same size.
pub struct HostMemory {
    pub from: HostMemoryId,
    pub to: HostMemoryId,
    pub bytes: u64,
}

/// What a row of short commands on one queue shows, in nanoseconds.
pub struct Row {
    /// Host time of one enqueue.
    pub enqueue: Nanos,
    /// From one command's end to the next one's.
    pub period: Nanos,
}

/// A runtime, and what is used to measure it.
pub struct Probe<'a> {
    runtime: &'a mut dyn Runtime,
    copy: Arc<Codelet>,
    options: MeasureOptions,
    host: Vec<HostMemoryId>,
    buffers: Vec<BufferId>,
}

impl<'a> Probe<'a> {
    pub fn new(runtime: &'a mut dyn Runtime, copy: Arc<Codelet>, options: MeasureOptions) -> Self {
        Self {
            runtime,
            copy,
            options,
            host: Vec::new(),
            buffers: Vec::new(),
        }
    }

    pub fn device(&self, device: DeviceId) -> &Device {
        &self.runtime.devices()[device.0]
    }

    /// Host memory for all measurements, filled with random numbers.
    pub fn allocate(&mut self, pool: DeviceId) -> Result<HostMemory, MeasureError> {
        let bytes = self.size(pool, 16)?;
        let from = self.runtime.alloc_host(bytes)?;
        self.host.push(from);
        let to = self.runtime.alloc_host(bytes)?;
        self.host.push(to);
        for memory in [from, to] {
            match self.runtime.host_bytes(memory) {
                Ok(data) => {
                    if let Some(grid) = grid(bytes) {
                        grid.initial(0..grid.units(), data);
                    }
                }
                // A simulation without data has nothing to fill.
                Err(RuntimeError::NoData) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(HostMemory { from, to, bytes })
    }

    /// From here on this thread drives the runtime, until [`Self::free_all`].
    pub fn begin(&mut self) {
        self.runtime.begin_driving();
    }

    /// A buffer on a device, freed by [`Self::free_buffers`].
    pub fn buffer(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, MeasureError> {
        let buffer = self.runtime.alloc(device, bytes)?;
        self.buffers.push(buffer);
        Ok(buffer)
    }

    pub fn free_buffers(&mut self) {
        for buffer in self.buffers.drain(..) {
            self.runtime.free(buffer);
        }
    }

    pub fn free_all(&mut self) {
        self.runtime.end_driving();
        self.free_buffers();
        for memory in self.host.drain(..) {
            self.runtime.free_host(memory);
        }
    }

    /// Bytes of a large copy: what was asked for, but at most a `part` of the
    /// device's memory, in whole units.
    pub fn size(&self, device: DeviceId, part: u64) -> Result<u64, MeasureError> {
        let device = self.device(device);
        let most = (device.memory / part).min(device.max_allocation);
        let bytes = self.options.bytes.min(most) / UNIT * UNIT;
        if bytes < LEAST {
            return Err(MeasureError::TooSmall {
                device: device.name.clone(),
                bytes,
            });
        }
        Ok(bytes)
    }

    pub fn queue(&mut self, device: DeviceId) -> Result<QueueId, MeasureError> {
        Ok(self.runtime.queue(device)?)
    }

    pub fn submit(&mut self, queue: QueueId, command: Command) -> Result<(), MeasureError> {
        let tag = Tag {
            step: 0,
            label: "measure".into(),
            units: 0..0,
        };
        self.runtime.submit(queue, command, &[], tag)?;
        Ok(())
    }

    /// The next completion, which must be of a command that went well.
    pub fn next(&mut self) -> Result<Completion, MeasureError> {
        let failed = |device: &str, what, why: &str| MeasureError::Failed {
            device: device.to_owned(),
            what,
            why: why.to_owned(),
        };
        let Some(done) = self.runtime.wait(None)? else {
            return Err(failed("the runtime", "command", "it never completed"));
        };
        match &done.status {
            Status::Done => Ok(done),
            Status::Failed(why) | Status::DeviceLost(why) => {
                let device = &self.device(done.device).name;
                Err(failed(device, done.kind.name(), why))
            }
            Status::Skipped => {
                let device = &self.device(done.device).name;
                let why = "a command before it failed";
                Err(failed(device, done.kind.name(), why))
            }
        }
    }

    /// All completions of this many commands.
    pub fn all(&mut self, commands: usize) -> Result<Vec<Completion>, MeasureError> {
        (0..commands).map(|_| self.next()).collect()
    }

    /// A figure as the median of several runs after one that does not count.
    pub fn median(
        &mut self,
        mut once: impl FnMut(&mut Self) -> Result<f64, MeasureError>,
    ) -> Result<f64, MeasureError> {
        once(self)?;
        let runs = self.options.repeats.max(1);
        let figures: Result<Vec<f64>, _> = (0..runs).map(|_| once(self)).collect();
        Ok(median(figures?))
    }

    /// Amount a second of a command run by itself.
    pub fn rate(
        &mut self,
        queue: QueueId,
        command: &Command,
        amount: f64,
    ) -> Result<f64, MeasureError> {
        self.median(|probe| {
            probe.submit(queue, command.clone())?;
            let done = probe.next()?;
            Ok(amount / seconds(done.started, done.ended))
        })
    }

    /// Enqueues `long` commands and a row of short ones on one queue.
    pub fn row(
        &mut self,
        queue: QueueId,
        long: &Command,
        short: &Command,
    ) -> Result<Row, MeasureError> {
        self.row_beside(None, queue, long, short)
    }

    /// The same while other commands run on a queue of their own. Only what
    /// runs beside them counts; without any such the period is 0.
    pub fn row_beside(
        &mut self,
        other: Option<(QueueId, &Command)>,
        queue: QueueId,
        long: &Command,
        short: &Command,
    ) -> Result<Row, MeasureError> {
        let mut enqueues = Vec::new();
        let mut periods = Vec::new();
        for _ in 0..self.options.repeats.clamp(1, ROWS) {
            let mut others = 0;
            while let Some((queue, other)) = other.filter(|_| others < OTHERS) {
                self.submit(queue, other.clone())?;
                others += 1;
            }
            for _ in 0..HOLD {
                self.submit(queue, long.clone())?;
            }
            for _ in 0..ROW {
                let before = self.runtime.now();
                self.submit(queue, short.clone())?;
                enqueues.push(self.runtime.now().saturating_sub(before) as f64);
            }
            let all = self.all(others + HOLD + ROW)?;
            let (done, others): (Vec<_>, Vec<_>) = all.iter().partition(|c| c.queue == queue);
            let begin = others.iter().map(|c| c.started).min();
            let end = others.iter().map(|c| c.ended).max();
            let short = done[HOLD..].windows(2);
            let beside = short.filter(|pair| {
                begin.is_none_or(|begin| begin <= pair[0].ended)
                    && end.is_none_or(|end| pair[1].ended <= end)
            });
            periods.extend(beside.map(|pair| pair[1].ended.saturating_sub(pair[0].ended) as f64));
        }
        Ok(Row {
            enqueue: median(enqueues) as Nanos,
            period: median(periods) as Nanos,
        })
    }

    /// From a command's end until this thread knows, in nanoseconds.
    pub fn completion(&mut self, queue: QueueId, short: &Command) -> Result<Nanos, MeasureError> {
        let mut latencies = Vec::new();
        for _ in 0..ROW {
            self.submit(queue, short.clone())?;
            let done = self.next()?;
            latencies.push(self.runtime.now().saturating_sub(done.ended) as f64);
        }
        Ok(median(latencies) as Nanos)
    }

    /// A copy of this many bytes by all of the device, and the bytes that it
    /// reads and writes.
    pub fn large_copy(&self, from: Memory, to: Memory, bytes: u64) -> (Command, f64) {
        let units = bytes / UNIT;
        let command = self.copy(from, to, units, UNIT as u32);
        (command, 2.0 * (units * UNIT) as f64)
    }

    /// A copy of `units` units.
    pub fn copy(&self, from: Memory, to: Memory, units: u64, unit_bytes: u32) -> Command {
        Command::Launch(Launch {
            codelet: Arc::clone(&self.copy),
            units: 0..units,
            args: vec![
                Value::Memory(from),
                Value::Memory(to),
                Value::U32(unit_bytes),
            ],
            cost: Cost {
                flops: 0.0,
                bytes: 2.0 * units as f64 * f64::from(unit_bytes),
            },
        })
    }
}

/// Part of host memory.
pub fn host_span(memory: HostMemoryId, range: Range<u64>) -> HostSpan {
    HostSpan {
        memory,
        offset: range.start,
        bytes: range.end - range.start,
    }
}

/// A place in a buffer.
pub fn device_span(buffer: BufferId, offset: u64) -> DeviceSpan {
    DeviceSpan { buffer, offset }
}
