//! Runs commands and times them.

use std::sync::Arc;

use super::stencils::grid;
use super::{MeasureError, MeasureOptions};
use crate::codelet::{BufferId, Codelet, HostMemoryId, Memory, copy};
use crate::machine::Device;
use crate::runtime::{
    Command, Completion, DeviceId, Launch, Notice, PeerPath, QueueId, Runtime, RuntimeError,
};
use crate::scope::RuntimeScope;
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
/// Commands of another queue beside a row: they outlast the long commands.
const OTHERS: usize = 4;
/// Rows measured at most: each has many commands to take the median of.
const ROWS: u32 = 3;

/// Two host allocations of the same size.
pub struct HostMemory {
    pub from: HostMemoryId,
    pub to: HostMemoryId,
    pub bytes: u64,
}

/// The measured times of a row of short commands on one queue, in nanoseconds.
pub struct Row {
    /// Host time of one enqueue.
    pub enqueue: Nanos,
    /// From one command's end to the next one's.
    pub period: Nanos,
}

/// A runtime in the course of a measurement.
pub struct Probe<'a> {
    scope: RuntimeScope<'a>,
    copy: Arc<Codelet>,
    options: MeasureOptions,
}

impl<'a> Probe<'a> {
    pub fn on(runtime: &'a mut dyn Runtime, copy: Arc<Codelet>, options: MeasureOptions) -> Self {
        Self {
            scope: RuntimeScope::on(runtime),
            copy,
            options,
        }
    }

    pub fn options(&self) -> &MeasureOptions {
        &self.options
    }

    pub fn device(&self, device: DeviceId) -> &Device {
        &self.scope.devices()[device.0]
    }

    /// Allocates host memory for all measurements, filled with random numbers. From
    /// here on this thread drives the runtime.
    pub fn allocate(&mut self, pool: DeviceId) -> Result<HostMemory, MeasureError> {
        let bytes = self.size(pool, 16)?;
        let from = self.scope.alloc_host(bytes)?;
        let to = self.scope.alloc_host(bytes)?;
        for memory in [from, to] {
            match self.scope.host_bytes(memory) {
                Ok(data) => {
                    if let Some(grid) = grid(bytes) {
                        grid.initial(0..grid.units(), data)?;
                    }
                }
                // A simulation without data has nothing to fill.
                Err(RuntimeError::NoData) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.scope.notify(Notice::DrivingBegins);
        Ok(HostMemory { from, to, bytes })
    }

    /// Host memory, freed with the probe.
    pub fn host(&mut self, bytes: u64) -> Result<HostMemoryId, MeasureError> {
        Ok(self.scope.alloc_host(bytes)?)
    }

    pub fn now(&self) -> Nanos {
        self.scope.now()
    }

    /// A buffer on a device, freed by [`Self::free_buffers`].
    pub fn buffer(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, MeasureError> {
        Ok(self.scope.alloc(device, bytes)?)
    }

    pub fn free_buffers(&mut self) {
        self.scope.free_buffers();
    }

    /// Frees the queues that were opened so far.
    pub fn free_queues(&mut self) {
        self.scope.free_queues();
    }

    /// See [`crate::runtime::Devices::set_peer_path`].
    pub fn set_peer_path(
        &mut self,
        from: DeviceId,
        to: DeviceId,
        path: PeerPath,
    ) -> Result<(), RuntimeError> {
        self.scope.set_peer_path(from, to, path)
    }

    /// Bytes of a large copy in whole units: those requested, but at most a `part`th
    /// of the device's memory.
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
        Ok(self.scope.queue(device)?)
    }

    pub fn submit(&mut self, queue: QueueId, command: Command) -> Result<(), MeasureError> {
        self.scope.enqueue(queue, command, &[])?;
        Ok(())
    }

    /// The completions of this many commands, all of which must end well.
    pub fn completions(&mut self, commands: usize) -> Result<Vec<Completion>, MeasureError> {
        Ok(self.scope.completions(commands)?)
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
            let done = &probe.completions(1)?[0];
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
                let before = self.scope.now();
                self.submit(queue, short.clone())?;
                enqueues.push(self.scope.now().saturating_sub(before) as f64);
            }
            let all = self.completions(others + HOLD + ROW)?;
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

    /// From a command's end until this thread is notified, in nanoseconds.
    pub fn completion(&mut self, queue: QueueId, short: &Command) -> Result<Nanos, MeasureError> {
        let mut latencies = Vec::new();
        for _ in 0..ROW {
            self.submit(queue, short.clone())?;
            let ended = self.completions(1)?[0].ended;
            latencies.push(self.scope.now().saturating_sub(ended) as f64);
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
            args: copy::args(from, to, unit_bytes),
            cost: copy::cost(units, unit_bytes),
        })
    }
}

/// Seconds between two times, at least a nanosecond.
pub fn seconds(from: Nanos, to: Nanos) -> f64 {
    to.saturating_sub(from).max(1) as f64 * 1e-9
}

/// The middle one, or the mean of the middle two; 0 of none.
pub fn median(figures: Vec<f64>) -> f64 {
    pdawl_profiler::median(figures).unwrap_or(0.0)
}

/// To four digits, as much as a measurement is worth.
pub fn rounded(figure: f64) -> f64 {
    if figure == 0.0 || !figure.is_finite() {
        return figure;
    }
    let scale = 10f64.powi(3 - figure.abs().log10().floor() as i32);
    if scale.is_finite() && scale > 0.0 {
        (figure * scale).round() / scale
    } else {
        figure
    }
}
