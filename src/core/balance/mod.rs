//! Load balancing: how many units of work each device computes.
//!
//! Each balancer is a pure state machine in a file of its own. It learns the
//! setup, what finished and when, and which device was lost; it answers which
//! device computes what next. It reads no clock, takes no lock and calls no
//! device. So the same code runs on real devices and in the simulator, and every
//! test of it is deterministic.
//!
//! ## A step
//!
//! A step has `units` units (rows). At the barrier before the step,
//! [`Balancer::plan`] gives each device two counts: the units that it *holds* in
//! its own memory ([`StepPlan::held`], 0 for a device that shares the host's
//! memory), and the units that it should compute of the *pool*, the rest in host
//! memory ([`StepPlan::pooled`]). A device with its own memory *streams* pool
//! units: it writes, computes and reads them in chunks. A step is *unstreamed*
//! where no device streams.
//!
//! A held unit is computed by its holder. Pool units are handed out in chunks
//! while the step runs: [`Balancer::next`] is asked whenever a device could take
//! more. Each device first takes its own planned segment of the pool, then what
//! is left of the others', from the far end.
//!
//! Units move (from one device to another, or between a device and the pool) only
//! at barriers. A move costs a transfer within the step that follows.

pub mod apportion;
pub mod bands;
pub mod dawl;
pub mod divider;
pub mod fixed;
#[cfg(test)]
mod fixtures;
pub mod guided;
pub mod parts;
pub mod pdawl;
pub mod planned;
pub mod strategy;
pub mod sweep;
#[cfg(test)]
mod tests;
pub mod windows;

use schemars::JsonSchema;
use serde::Serialize;

use crate::machine::DeviceKind;
use crate::time::Nanos;

pub use apportion::largest_remainder;
pub use dawl::Dawl;
pub use fixed::Fixed;
pub use guided::Guided;
pub use pdawl::Pdawl;
pub use planned::Planned;
pub use strategy::{Shares, Strategy, StrategyError};
pub use sweep::Sweep;

/// What a balancer knows of a device before anything ran.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceView {
    pub kind: DeviceKind,
    /// Cores of a CPU, multiprocessors of a GPU: the weights by which devices of
    /// one kind divide work before anything has been measured.
    pub compute_units: u32,
    /// Most units that fit its own memory; `None` for a device that computes on
    /// host memory.
    pub capacity: Option<u64>,
    /// Slots of the ring buffer of its held units, which determine the number of
    /// launches ([`windows`]); `None` where one launch is enough.
    pub slots: Option<u64>,
    /// Units a second that its link can stream at best, in and out at once;
    /// `None` where unknown, and for devices without a capacity.
    pub stream_limit: Option<f64>,
    /// Seconds of a copy over its link before units flow.
    pub latency: f64,
    /// Units below which a chunk is mostly overhead.
    pub min_chunk: u64,
}

/// The work and the devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Units a step, all of which are computed exactly once.
    pub units: u64,
    pub steps: u32,
    pub devices: Vec<DeviceView>,
    /// Units' worth of results a second that go directly from the own memory of one device to
    /// that of another, by the slowest of these ways, where devices hold all units; `None` with
    /// fewer than two such devices, or where results pass through host memory.
    pub direct: Option<f64>,
    /// Whether units that move from device to device go that way, too.
    pub moves_directly: bool,
    /// What a tenth of the units reads in each step of the results of the others, in units
    /// as links carry them: devices that hold the others bring so much to host memory where
    /// the tenth is computed there.
    pub published: f64,
    /// Whether steps need no barrier with the host, where one device holds all units or several
    /// do that move units directly.
    pub runs_ahead: bool,
    /// Units a second that the links of all devices carry together, in and out; `None` where
    /// they do not share a way or it is unknown.
    pub bus: Option<f64>,
    /// Units a second for which the host's memory has room, by all devices that compute there;
    /// `None` where it is unknown.
    pub memory: Option<f64>,
    /// Whether equal numbers of units take about as long, so that probes of some tell of others.
    pub even: bool,
}

/// The units that each device holds and should compute of the pool in a step; one
/// entry a device.
///
/// Both lists together sum to [`Setup::units`]; `held[d]` is at most the device's
/// capacity, and 0 where it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPlan {
    pub held: Vec<u64>,
    pub pooled: Vec<u64>,
}

impl StepPlan {
    /// Whether it divides all units, and no device holds more than it can.
    pub fn suits(&self, setup: &Setup) -> bool {
        let (Self { held, pooled }, devices) = (self, &setup.devices);
        let fits = |d: usize| held[d] <= devices[d].capacity.unwrap_or(0);
        [held.len(), pooled.len()] == [devices.len(); 2]
            && held.iter().chain(pooled).sum::<u64>() == setup.units
            && (0..devices.len()).all(fits)
    }
}

/// The state of a step when a device could take a chunk.
#[derive(Clone, Copy, Debug)]
pub struct StepState<'a> {
    pub step: u32,
    /// When the step began.
    pub began: Nanos,
    pub now: Nanos,
    /// Pool units not yet handed out, by the device whose segment they are in.
    pub left: &'a [u64],
    /// Units handed out and not yet completed, held ones included, by device.
    pub in_flight: &'a [u64],
}

/// The answer to a device that could take a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Compute this many pool units (the engine hands out at most what is left).
    Take(u64),
    /// Nothing now; ask again after the next completion.
    Wait,
    /// Nothing more in this step.
    Done,
}

/// A finished piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkDone {
    pub step: u32,
    pub device: usize,
    pub units: u64,
    /// Whether the units were held by the device (else from the pool).
    pub held: bool,
    /// Times at which it was handed out, its first command started and its last
    /// one ended.
    pub issued: Nanos,
    pub started: Nanos,
    pub ended: Nanos,
}

/// What a device did in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStep {
    /// Units computed: held, and from the pool.
    pub held: u64,
    pub pooled: u64,
    /// From the start of the first kernel on held units to the end of the last,
    /// launches between them included.
    pub held_busy: Nanos,
    /// Pool units whose kernels ran within that time, and their launches.
    pub beside: u64,
    pub beside_launches: u64,
    /// Time during which at least one command for pool units ran.
    pub pooled_busy: Nanos,
    /// From the step's begin to the start of its first kernel; 0 if it computed
    /// nothing.
    pub waited: Nanos,
    /// From the step's begin to the end of its last command; 0 if it computed
    /// nothing.
    pub finished: Nanos,
    /// From the step's begin until the engine learned of that end. Equal to
    /// `finished` where steps follow one another without a barrier.
    pub known: Nanos,
}

/// A step that has ended at its barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    pub step: u32,
    /// From barrier to barrier.
    pub duration: Nanos,
    /// Units that moved at the step's begin.
    pub moved: u64,
    pub devices: Vec<DeviceStep>,
}

/// The kind of work that a probe measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Kernels on held units.
    Held,
    /// Pool units streamed through a device with its own memory.
    Streamed,
    /// Pool units on a device that computes on host memory, no device streaming.
    Alone,
    /// The same while other devices streamed.
    Beside,
}

/// A measurement made before the first step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    pub device: usize,
    pub kind: ProbeKind,
    pub units: u64,
    /// Launches beyond the first.
    pub more_launches: u64,
    pub seconds: f64,
    /// Whether the device's probe before it did the same.
    pub again: bool,
}

/// What a device's part of a step takes beside its kernels, as probed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    pub device: usize,
    /// Seconds from the first enqueue until the engine knows of the end, less the
    /// kernels' seconds: the cost of a step that ends with a barrier.
    pub barrier: f64,
    /// Seconds of enqueueing: the least duration of a step without a barrier.
    pub enqueue: f64,
}

/// Decides how a divisible workload is shared. The module's page describes a step.
pub trait Balancer: Send {
    /// The strategy's name on the command line.
    fn name(&self) -> String;

    /// Whether it uses probes.
    fn wants_probes(&self) -> bool {
        false
    }

    /// A probe has been run. Called before the first plan.
    fn probed(&mut self, _probe: &Probe) {}

    /// What a probe took beside its kernels. Called before the first plan.
    fn overhead(&mut self, _overhead: &Overhead) {}

    /// Whether the probes so far suffice, though short and rough: further ones may
    /// take longer than they save.
    fn is_certain(&self) -> bool {
        false
    }

    /// The plan of `step`. Called once a step, at the barrier before it. After the
    /// loss of a device that held units, the steps begin again from 0.
    fn plan(&mut self, step: u32) -> StepPlan;

    /// Begins `step` with the plan of the step before, which has just ended after
    /// `took`, so that no device waits for planning. The report of that step
    /// follows while `step` runs. `false`, without effect, where the report must
    /// come first and [`Balancer::plan`] must then be asked.
    fn keep_plan(&mut self, _step: u32, _took: Nanos) -> bool {
        false
    }

    /// Prepares the coming `step` while the devices work. Called at most once a
    /// step, after the report of the step before.
    fn prepare_plan(&mut self, _step: u32) {}

    /// What `device` takes next from the pool. Must not answer `Wait` or `Done`
    /// to every device while pool units are left and nothing is in flight.
    fn next(&mut self, device: usize, state: &StepState) -> Next;

    /// A piece of work has ended.
    fn completed(&mut self, _done: &ChunkDone) {}

    /// A step has ended. Called before the next step's [`Balancer::plan`], or
    /// after its [`Balancer::keep_plan`].
    fn step_ended(&mut self, _report: &StepReport) {}

    /// A device is lost: it must get no more work.
    fn lost(&mut self, device: usize);

    /// A lost device is back at the barrier before `step`, with nothing in its memory. It
    /// may get work again, by what was measured of it before. The plan of `step` follows.
    fn returned(&mut self, device: usize, step: u32);

    /// The number of further steps that may be planned before the reports of
    /// earlier ones arrive. Above 0, the engine enqueues steps ahead where devices hold
    /// all units and need no barrier.
    fn lookahead(&self) -> u32 {
        0
    }

    /// Parts of the devices that were compared before the first step, and the seconds that a step was
    /// expected to take with each.
    fn considered(&self) -> Vec<(Vec<usize>, f64)> {
        Vec::new()
    }

    /// What became of the cost model's predictions, if it works with one.
    fn account(&self) -> Option<Account> {
        None
    }
}

/// A cost model's part in a run. Seconds of a step are from barrier to barrier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The model's name.
    pub model: String,
    /// Predicted seconds of the first plan's step, before anything ran; `None`
    /// where the model gave no plan.
    pub predicted_step_seconds: Option<f64>,
    /// Expected seconds of each step when it was planned; `None` where the model
    /// was not asked.
    pub expected_seconds: Vec<Option<f64>>,
    /// Times that the model was asked for a new plan, because measured and expected
    /// seconds differed or a device was lost.
    pub replans: u32,
    /// The first step for which the model was no longer asked.
    pub handed_over: Option<u32>,
    /// One entry a device.
    pub devices: Vec<Trusted>,
}

/// How far the model is trusted on a device at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Trusted {
    /// Measured over expected seconds of the last steps; 1 where the model is right, and
    /// `None` for a lost device.
    pub slowdown: Option<f64>,
    /// Relative deviation from `slowdown` that is within the confidence interval.
    pub interval: f64,
}
