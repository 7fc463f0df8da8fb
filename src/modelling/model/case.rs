//! The case that is predicted: one device's part in a step.

use crate::balance::windows::window;
use crate::model::matrix::MatrixFigures;
use crate::workload::spmv::Spmv;
use crate::workload::{Divisible, Grid};

/// A step of a workload, by its units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepWork {
    /// Units of a step, over all devices.
    pub units: u64,
    /// Bytes and points of a unit, and bytes of a point.
    pub unit_bytes: u64,
    pub unit_points: u64,
    pub element_bytes: u64,
    pub dimensions: u32,
    /// Operations of a unit, and the least bytes that it reads and writes.
    pub unit_flops: f64,
    pub unit_traffic: f64,
    /// The matrix of a product, whose points are nonzeros and whose elements are
    /// entries.
    pub matrix: Option<MatrixFigures>,
    /// With more than one step between two barriers: the step is a superstep then.
    pub superstep: Option<Superstep>,
}

/// Several steps between two barriers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Superstep {
    pub steps: u32,
    /// What an operation takes on a host, in operations at the peak rate.
    pub flops: f64,
}

impl StepWork {
    /// A step of `workload`. The cost of a unit is the average of all units.
    pub fn of(workload: &dyn Grid) -> Self {
        Self {
            unit_points: workload.unit_points(),
            element_bytes: workload.unit_bytes() / workload.unit_points().max(1),
            dimensions: workload.dimensions(),
            ..Self::of_units(workload)
        }
    }

    /// A step of a product. Its units have about equally many entries.
    pub fn of_product(spmv: &Spmv) -> Self {
        Self {
            unit_points: spmv.matrix().nonzeros() / spmv.units().max(1),
            element_bytes: spmv.entry_bytes(),
            dimensions: 1,
            matrix: Some(MatrixFigures::of(spmv)),
            ..Self::of_units(spmv)
        }
    }

    /// A superstep of so many steps of `workload`.
    pub fn of_superstep(workload: &dyn Grid, steps: u32) -> Self {
        let flops = workload.superstep_flops(steps);
        Self {
            superstep: (steps > 1).then_some(Superstep { steps, flops }),
            ..Self::of(workload)
        }
    }

    /// Steps between two barriers.
    pub fn steps(&self) -> u32 {
        self.superstep.map_or(1, |superstep| superstep.steps)
    }

    /// Units that are computed in all steps together, so that `units` are done after the
    /// last: in each step one less at each of the `cuts`, beyond which others compute.
    pub fn computed(&self, units: u64, cuts: u64) -> u64 {
        let steps = u64::from(self.steps());
        steps * units + cuts * (steps * (steps - 1) / 2)
    }

    /// The figures that every workload has.
    fn of_units(workload: &dyn Divisible) -> Self {
        let units = workload.units();
        let cost = workload.cost(&(0..units));
        Self {
            units,
            unit_bytes: workload.unit_bytes(),
            unit_flops: cost.flops / units.max(1) as f64,
            unit_traffic: cost.bytes / units.max(1) as f64,
            ..Self::default()
        }
    }

    /// Bytes of a number in the vectors of a product.
    pub fn number_bytes(&self) -> u64 {
        self.element_bytes.saturating_sub(4)
    }
}

/// A device's part in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePart {
    /// A pool of host cores, or a device that shares the host's memory, that
    /// computes `units` in host memory, `chunk` at a time (`chunk == units`:
    /// all at once).
    Host {
        /// Cores of the pool; compute units of a device.
        workers: u32,
        /// Sockets that the workers are spread over; 1 for a device.
        sockets: u32,
        units: u64,
        chunk: u64,
    },
    /// A device with memory of its own, which holds `held` units in a ring of
    /// `slots` and streams `streamed`, `chunk` at a time over `queues` queues.
    Discrete {
        held: u64,
        slots: u64,
        streamed: u64,
        chunk: u64,
        queues: u32,
        /// Whether it holds everything and needs no barrier with the host
        /// after each step.
        solo: bool,
    },
}

impl DevicePart {
    /// All of `units` at once, by `workers` cores of one socket.
    pub fn whole_on_host(workers: u32, units: u64) -> Self {
        Self::Host {
            workers,
            sockets: 1,
            units,
            chunk: units,
        }
    }

    /// Units of the part.
    pub fn units(&self) -> u64 {
        match *self {
            Self::Host { units, .. } => units,
            Self::Discrete { held, streamed, .. } => held + streamed,
        }
    }

    /// Most units of a chunk of its pool units.
    pub fn chunk(&self) -> u64 {
        match *self {
            Self::Host { chunk, .. } | Self::Discrete { chunk, .. } => chunk.max(1),
        }
    }

    /// Chunks into which its pool units are cut.
    pub fn chunks(&self) -> u64 {
        let (units, chunk) = match *self {
            Self::Host { units, chunk, .. } => (units, chunk),
            Self::Discrete {
                streamed, chunk, ..
            } => (streamed, chunk),
        };
        units.div_ceil(chunk.max(1))
    }

    /// Launches on its held units: one a window of the ring.
    pub fn windows(&self) -> u64 {
        match *self {
            Self::Host { .. } => 0,
            Self::Discrete { held, slots, .. } => held.div_ceil(window(held, slots)),
        }
    }
}

/// A part of a step of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub work: StepWork,
    pub part: DevicePart,
}
