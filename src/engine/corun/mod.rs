//! Co-running: a divisible workload, a balancer, and the devices of a runtime.
//!
//! A co-run has two phases. [`Corun::open`] allocates memory and queues for a
//! workload on every device and says what a balancer has to know of them (its
//! [`Setup`]). [`Corun::run`] computes the steps as a balancer divides them.
//!
//! Of a grid, the engine keeps two in host memory, the present version and the
//! next, and on each device with memory of its own a ring of held units
//! ([`held`]); what it keeps of a product is told in `product`, and the rest of
//! this page holds for both. A step is: ask the balancer for a plan, lay it out ([`layout`]),
//! move what changes hands and the halos (`moves`), launch what is held, hand
//! out the pool in chunks as devices become free ([`pool`], `step`), and wait
//! for everything: the `barrier`. `drive` is the state of a run, `begin` how it
//! comes about, `probe` what it measures first. A lone device that holds
//! everything needs no barrier with the host; its queue is kept filled instead
//! (`solo`).
//!
//! Invariant of grids at a barrier: the present host grid has the pool's units and the
//! first and last unit of every held range; each ring has its held units.
//! So a halo is always one write from the host grid.
//!
//! A device that fails gives its chunks back. If it held units, their present
//! version is gone with it, and the run begins again from the first version on
//! the devices that are left.

mod barrier;
mod begin;
mod claims;
mod drive;
mod error;
mod grids;
pub mod held;
pub mod kernel;
mod launches;
pub mod layout;
mod ledger;
mod moves;
pub mod place;
pub mod pool;
mod probe;
mod product;
mod record;
mod solo;
mod step;

use std::sync::atomic::{AtomicBool, Ordering};

pub use begin::Corun;
pub use error::CorunError;
pub use launches::{LEAD, SERIES};
pub use product::{Division as ProductDivision, Estimate as ProductEstimate, fixed_bytes, lacking};

use crate::balance::{Balancer, Setup};
use crate::engine::Outcome;
use crate::runtime::Runtime;
use crate::workload::Divisible;
use drive::Drive;
use step::StepEnd;

/// Label of launches on held units.
pub const HELD: &str = "held";
/// Label of commands for pool units.
pub const CHUNK: &str = "chunk";
/// Label of writes of neighbours' units.
pub const HALO: &str = "halo";
/// Label of reads of a held range's first and last unit.
pub const EDGE: &str = "edge";
/// Label of transfers of units that change hands.
pub const MOVE: &str = "move";
/// Label of the vector's way, and of tables', to devices.
pub const VECTOR: &str = "vector";
/// Label of the result's way to host memory.
pub const GATHER: &str = "gather";
/// Label of writes of a kernel's buffers.
pub const INPUT: &str = "input";
/// Label of commands that find out how a kernel can be divided.
pub const TRIAL: &str = "trial";
/// Label of the first commands, whose results are thrown away.
pub const WARM: &str = "warm-up";
/// Label of the probes' commands, whose results are thrown away too.
pub const PROBE: &str = "probe";

/// What a co-run is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Steps to compute, at least 1.
    pub steps: u32,
    /// Most bytes to use of a device's own memory; `None`: what it has.
    pub gpu_memory: Option<u64>,
    /// How devices with memory of their own stream what they do not hold.
    pub stream: Stream,
    /// Compare the result with the sequential reference.
    pub verify: bool,
    /// Keep the spans of all commands.
    pub trace: bool,
}

/// How pool units pass through a device's own memory. What is asked for is
/// given as far as the memory allows; see [`place::Division::of`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Most units of a chunk; `None`: what hides the commands' overhead.
    pub chunk: Option<u64>,
    /// Queues, 1 to [`place::MOST_QUEUES`]; `None`: 3, so that one chunk is
    /// written, one computed and one read at a time, and 2 of a product, of which
    /// little is read.
    pub queues: Option<u32>,
}

/// How a run is watched and stopped.
pub struct Control<'a> {
    /// Set from outside: end at the next barrier.
    pub stop: &'a AtomicBool,
    /// Told the steps done and the steps asked for: first 0, as the first step
    /// is about to begin and the setup is over, and all of them before the
    /// result is gathered. What it does before the first step is not timed.
    pub progress: &'a mut dyn FnMut(u32, u32),
}

impl<'a> Corun<'a> {
    /// Opens a workload on all devices of a runtime: allocates its memory in the
    /// host and on the devices.
    ///
    /// # Errors
    /// When nothing can run, or memory does not fit.
    pub fn open(
        runtime: &'a mut dyn Runtime,
        workload: &'a dyn Divisible,
        options: &Options,
    ) -> Result<Self, CorunError> {
        if options.steps == 0 {
            return Err(CorunError::NoSteps);
        }
        begin::open(runtime, workload, options)
    }

    /// What a balancer for this run has to know.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Computes all steps, divided as the balancer says.
    ///
    /// # Errors
    /// When a kernel does not compile, all devices are lost, or the balancer's
    /// answers make no sense.
    pub fn run(
        self,
        balancer: Box<dyn Balancer>,
        control: &mut Control,
    ) -> Result<Outcome, CorunError> {
        compute(Drive::new(self, balancer)?, control)
    }
}

fn compute(mut drive: Drive, control: &mut Control) -> Result<Outcome, CorunError> {
    drive.warm_up()?;
    drive.runtime.begin_driving();
    drive.probe()?;
    drive.begin()?;
    drive.book_probes();
    drive.set_up();
    (control.progress)(0, drive.options.steps);
    drive.start_clock();
    let (mut step, mut steps) = (0, drive.options.steps);
    loop {
        while step < steps {
            drive.plan(step)?;
            let end = match drive.sole_holder() {
                Some(device) => drive.solo(device, step, steps, control)?,
                None => drive.step(step)?,
            };
            match end {
                StepEnd::Done(done) => step += done,
                StepEnd::Spoiled => {
                    drive.restart(step)?;
                    step = 0;
                }
            }
            (control.progress)(step, steps);
            if control.stop.load(Ordering::Relaxed) && step < steps {
                drive.interrupted();
                steps = step;
            }
        }
        drive.runtime.end_driving();
        if drive.gather(step)? {
            return drive.close(step, control.stop);
        }
        drive.restart(step)?;
        step = 0;
    }
}
