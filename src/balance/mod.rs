//! How much goes where.
//!
//! This folder owns the decision, one file a balancer, each a pure state
//! machine: it is told what there is, what finished and when, and which device
//! was lost; it answers who does what next. It reads no clock, takes no lock
//! and calls no device, so the same code runs on real devices and in the
//! simulator, and every test of it is deterministic.
//!
//! ## The picture of a step
//!
//! A step has `units` units (rows). At the barrier before it, [`Balancer::plan`]
//! says for each device how many units it *holds* in its own memory
//! ([`StepPlan::held`], 0 for a device that shares the host's memory) and how
//! many of the others, the *pool* in host memory, it should do
//! ([`StepPlan::pooled`]; a device with its own memory streams them). Held
//! units are computed by their holder in any case. Pool units are handed out
//! in chunks while the step runs: whenever a device could take more,
//! [`Balancer::next`] is asked. Each device first consumes its own planned
//! segment of the pool and then what is left of others', from the far end.
//!
//! Units change hands (held by one device, then by another or the pool) only
//! at barriers, and that costs a transfer within the step that follows.

mod account;
pub(crate) mod apportion;
pub mod dawl;
pub mod fixed;
#[cfg(test)]
mod fixtures;
pub mod guided;
pub mod pdawl;
pub mod planned;
pub mod strategy;
pub mod sweep;
#[cfg(test)]
mod tests;
pub mod windows;

use crate::machine::DeviceKind;
use crate::time::Nanos;

pub use account::{Account, Trusted};
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
    /// Cores of a CPU, multiprocessors of a GPU: how devices of one kind
    /// divide what nothing has been measured for.
    pub compute_units: u32,
    /// Most units it can hold in its own memory; `None` for a device that
    /// computes on host memory.
    pub capacity: Option<u64>,
    /// Slots of the ring that its held units lie in, on which it depends how
    /// many launches they need ([`windows`]); `None` where one is enough.
    pub slots: Option<u64>,
    /// Units a second that its link could stream at best (in and out at
    /// once), where known; only for devices with a capacity.
    pub stream_limit: Option<f64>,
    /// Units below which a chunk is mostly overhead.
    pub min_chunk: u64,
}

/// What is to be balanced.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Units a step, all of which are computed exactly once.
    pub units: u64,
    pub steps: u32,
    pub devices: Vec<DeviceView>,
}

/// Who holds and who should do what in a step; one entry a device.
///
/// The sums of both lists together are `units`; `held[d]` is at most the
/// capacity and 0 where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPlan {
    pub held: Vec<u64>,
    pub pooled: Vec<u64>,
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

/// A balancer's answer to a device that could take a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Do this many pool units (the engine hands out at most what is left).
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
    /// When it was handed out, when its first command started and when its
    /// last ended.
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
    /// From the start of the first kernel on held units to the end of the
    /// last: between them it launches the next.
    pub held_busy: Nanos,
    /// Pool units whose kernels ran within that time, and their launches.
    pub beside: u64,
    pub beside_launches: u64,
    /// Time during which at least one command for pool units ran.
    pub pooled_busy: Nanos,
    /// From the step's begin to the start of its first kernel; 0 if it did
    /// nothing.
    pub waited: Nanos,
    /// From the step's begin to the end of its last command; 0 if it did
    /// nothing.
    pub finished: Nanos,
    /// From the step's begin until the engine knew of that. Where steps follow
    /// one another without it, nobody waits for that: as `finished`.
    pub known: Nanos,
}

/// A whole step, told at its barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    pub step: u32,
    /// From barrier to barrier.
    pub duration: Nanos,
    /// Units that changed hands at the step's begin.
    pub moved: u64,
    pub devices: Vec<DeviceStep>,
}

/// What a probe ran, and beside what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Kernels on held units.
    Held,
    /// Pool units streamed through a device with its own memory.
    Streamed,
    /// Pool units on a device that computes on host memory, nobody streaming.
    Alone,
    /// The same while others streamed.
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
}

/// What a device's work in a step takes beside its kernels, as a probe has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    pub device: usize,
    /// Seconds from handing its work over until its end is known, less those of
    /// its kernels: what a step that ends with a barrier waits for.
    pub barrier: f64,
    /// Seconds of enqueueing it: steps without barriers follow one another no
    /// faster.
    pub enqueue: f64,
}

/// Decides how a divisible workload is shared. See the folder's page for the
/// picture of a step.
pub trait Balancer {
    /// Its name as on the command line.
    fn name(&self) -> String;

    /// Whether it makes something of probes.
    fn wants_probes(&self) -> bool {
        false
    }

    /// A probe has been run; told before the first plan.
    fn probed(&mut self, _probe: &Probe) {}

    /// What a probe took beside its kernels; told before the first plan.
    fn overhead(&mut self, _overhead: &Overhead) {}

    /// Whether the probes so far, short and rough, have told enough. Further
    /// ones take time that the steps may not be worth.
    fn is_certain(&self) -> bool {
        false
    }

    /// What each device holds and should do in `step`. Called once a step, at
    /// the barrier before it. After the loss of a device that held units, the
    /// steps begin again from 0.
    fn plan(&mut self, step: u32) -> StepPlan;

    /// Begins `step` at the barrier before it with the plan of the step that
    /// has just ended and took so long, whose report comes while this one runs:
    /// nobody waits for a plan that would be the same. `false`, and nothing
    /// changes, if the report must come first and [`Balancer::plan`] then be
    /// asked.
    fn again(&mut self, _step: u32, _took: Nanos) -> bool {
        false
    }

    /// The devices are at work, and nobody waits: time to prepare `step`, the
    /// coming one. Called at most once a step, after the report of the one
    /// before.
    fn think_ahead(&mut self, _step: u32) {}

    /// What `device` does next from the pool. Must not answer `Wait` or `Done`
    /// for every device while pool units are left and nothing is in flight.
    fn next(&mut self, device: usize, state: &StepState) -> Next;

    /// A piece of work has ended.
    fn completed(&mut self, _done: &ChunkDone) {}

    /// A step has ended. Told before the next one's [`Balancer::plan`], or
    /// after its [`Balancer::again`].
    fn step_ended(&mut self, _report: &StepReport) {}

    /// A device is gone; it must get nothing any more.
    fn lost(&mut self, device: usize);

    /// How many further steps may be planned before the reports of earlier
    /// ones arrive. Above 0 the engine keeps a lone device's queue filled.
    fn lookahead(&self) -> u32 {
        0
    }

    /// What it tells of the cost model that it works with, if it does.
    fn account(&self) -> Option<Account> {
        None
    }
}
