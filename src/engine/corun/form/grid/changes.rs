//! The largest change of a point in a step that is checked.
//!
//! The launches of such a step raise cells: each queue of a device has its own, so that only
//! launches that follow one another share them. They are cleared before the queue's first
//! launch of the step, and read after its last one; whoever wants the change looks at those of
//! all queues.

use crate::codelet::{Memory, Value};
use crate::engine::corun::context::{Context, Purpose};
use crate::engine::corun::host_memory::data;
use crate::engine::corun::{CHUNK, CorunError, HELD, WARM};
use crate::engine::scope::RuntimeScope;
use crate::runtime::{BufferId, Command, DeviceId, HostMemoryId, RuntimeError};
use crate::workload::{Ending, Grid, Supersteps};

/// The change of a grid in the steps that are checked.
pub(super) struct Changes {
    supersteps: Supersteps,
    tolerance: f64,
    /// By device and queue; none where a queue has no launches of units.
    cells: Vec<Vec<Option<Cells>>>,
    /// The superstep that ended last, and its change if that is known.
    ended: Option<u32>,
    largest: Option<f64>,
}

/// The cells that launches raise, on their device; what clears them before the launches, where
/// that is to be done; and what brings them to host memory afterwards.
pub(super) struct Raised {
    pub cells: Value,
    pub clear: Option<Command>,
    pub read: Option<Command>,
    /// Whether the launches count for nothing.
    pub is_warm_up: bool,
}

/// The cells of a queue.
struct Cells {
    /// Where launches raise them, if the device has memory of its own.
    device: Option<BufferId>,
    host: HostMemoryId,
    bytes: u64,
    /// The superstep whose changes they have.
    of: Option<u32>,
}

impl Changes {
    /// For a run that is divided into these supersteps, checked after each period, and ended
    /// by a change of at most the tolerance.
    pub fn new(supersteps: Supersteps, tolerance: f64) -> Self {
        Self {
            supersteps,
            tolerance,
            cells: Vec::new(),
            ended: None,
            largest: None,
        }
    }

    /// Allocates the cells of the next device: of its queue for held units and of those for
    /// chunks, which have so many units at most.
    pub fn open(
        &mut self,
        runtime: &mut RuntimeScope,
        grid: &dyn Grid,
        queues: impl IntoIterator<Item = u64>,
        owner: Option<DeviceId>,
    ) -> Result<(), CorunError> {
        let cells = open(runtime, grid, queues, owner)?;
        self.cells.push(cells);
        Ok(())
    }

    /// Allocates the cells of a device again, whose memory was lost.
    pub fn renew(
        &mut self,
        runtime: &mut RuntimeScope,
        device: DeviceId,
    ) -> Result<(), CorunError> {
        for cells in self.cells[device.0].iter_mut().flatten() {
            cells.of = None;
            if cells.device.is_some() {
                cells.device = Some(runtime.alloc(device, cells.bytes)?);
            }
        }
        Ok(())
    }

    /// Nothing was computed yet.
    pub fn forget(&mut self) {
        (self.ended, self.largest) = (None, None);
        for cells in self.cells.iter_mut().flatten().flatten() {
            cells.of = None;
        }
    }

    /// What the launches of a purpose raise, if its superstep is checked. Launches before the
    /// first step raise cells too, so that their kernels are built; these are cleared again.
    pub fn raised(
        &mut self,
        context: &mut Context,
        purpose: &Purpose,
    ) -> Result<Option<Raised>, CorunError> {
        let of = match purpose.label {
            CHUNK | HELD if self.supersteps.ends_period(purpose.step) => Some(purpose.step),
            WARM => None,
            _ => return Ok(None),
        };
        let Some(cells) = &mut self.cells[purpose.device][purpose.queue] else {
            return Ok(None);
        };
        let begins = of.is_none() || cells.of != of;
        cells.of = of;
        if begins && let Some(bytes) = data(&mut *context.runtime, cells.host)? {
            bytes.fill(0);
        }
        let all = 0..cells.bytes;
        Ok(Some(match cells.device {
            None => Raised {
                cells: Value::Memory(Memory::Host(cells.host)),
                clear: None,
                read: None,
                is_warm_up: of.is_none(),
            },
            Some(buffer) => Raised {
                cells: Value::Memory(Memory::Device(buffer)),
                clear: begins.then(|| Command::write(cells.host, all.clone(), buffer, 0)),
                read: Some(Command::read(buffer, 0, cells.host, all)),
                is_warm_up: of.is_none(),
            },
        }))
    }

    /// A superstep has ended, or its commands are submitted.
    pub fn end(&mut self, superstep: u32) {
        (self.ended, self.largest) = (Some(superstep), None);
    }

    /// The largest change of the units here in the superstep that ended last, if it was
    /// checked: bytes of its bits. In a simulation without data it is NaN.
    pub fn own(
        &self,
        runtime: &mut RuntimeScope,
        grid: &dyn Grid,
    ) -> Result<Option<Vec<u8>>, RuntimeError> {
        let Some(ended) = self.ended.filter(|step| self.supersteps.ends_period(*step)) else {
            return Ok(None);
        };
        let mut largest = 0.0;
        let all = self.cells.iter().flatten().flatten();
        for cells in all.filter(|cells| cells.of == Some(ended)) {
            let of = match data(&mut **runtime, cells.host)? {
                Some(bytes) => grid.largest_change(bytes),
                None => f64::NAN,
            };
            largest = larger(largest, of);
        }
        Ok(Some(largest.to_ne_bytes().to_vec()))
    }

    /// The largest change of all units, from that of these and of other nodes'.
    pub fn add_up<'b>(&mut self, all: impl IntoIterator<Item = &'b [u8]>) {
        let changes = all.into_iter().map(|bytes| match bytes.try_into() {
            Ok(bytes) => f64::from_ne_bytes(bytes),
            Err(_) => f64::NAN,
        });
        self.largest = changes.reduce(larger);
    }

    /// The largest change in the superstep that ended last, if it was checked.
    pub fn largest(&self) -> Option<f64> {
        self.largest
    }

    /// How a run was ended after so many steps, the last of which was checked. One that was
    /// stopped before has no more steps to compare with.
    pub fn ending(&self, steps: u32) -> Option<Ending> {
        let change = self.largest?;
        Some(Ending {
            most: match change <= self.tolerance {
                true => self.supersteps.steps(),
                false => steps,
            },
            period: self.supersteps.period(),
            tolerance: self.tolerance,
            change,
        })
    }
}

fn open(
    runtime: &mut RuntimeScope,
    grid: &dyn Grid,
    queues: impl IntoIterator<Item = u64>,
    owner: Option<DeviceId>,
) -> Result<Vec<Option<Cells>>, CorunError> {
    let open = |units: u64| -> Result<Option<Cells>, CorunError> {
        if units == 0 {
            return Ok(None);
        }
        let bytes = grid.change_bytes(units);
        Ok(Some(Cells {
            device: match owner {
                Some(device) => Some(runtime.alloc(device, bytes)?),
                None => None,
            },
            host: runtime.alloc_host(bytes)?,
            bytes,
            of: None,
        }))
    };
    queues.into_iter().map(open).collect()
}

/// The larger of two numbers; NaN if one is.
fn larger(one: f64, other: f64) -> f64 {
    match one.is_nan() || one > other {
        true => one,
        false => other,
    }
}
