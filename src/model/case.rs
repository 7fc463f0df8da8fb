//! What is to be predicted: one device's part in a step.

/// A step of a workload, by its units.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The codelet's name, such as `stencil5-f64`.
    pub codelet: String,
    /// Units a step, whoever computes them.
    pub units: u64,
    /// Bytes, points, and bytes of a point, of a unit.
    pub unit_bytes: u64,
    pub unit_points: u64,
    pub element_bytes: u64,
    pub dimensions: u32,
    /// Operations, and bytes read and written at least, of a unit.
    pub unit_flops: f64,
    pub unit_traffic: f64,
}

/// A device's part in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A pool of host cores that computes `units` in host memory, `chunk` at a
    /// time (`chunk == units`: all at once).
    Host {
        workers: u32,
        /// Sockets that the workers are spread over.
        sockets: u32,
        units: u64,
        chunk: u64,
    },
    /// A device with memory of its own, which holds `held` units in a ring of
    /// `slots` and streams `streamed`, `chunk` at a time over `queues` queues.
    Own {
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

/// A part of a step of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub work: Work,
    pub part: Part,
}
