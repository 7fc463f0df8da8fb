//! Chunks of the pool, which go through all steps of a superstep at once.

use std::ops::Range;

use super::changes::Raises;
use super::moves::halos;
use super::ring::Beside;
use super::{Arrivals, GridForm, Space, StreamBuffers, launch};
use crate::codelet::{Cost, Value};
use crate::corun::CorunError;
use crate::corun::context::{Context, Purpose};
use crate::corun::step::stages;
use crate::runtime::{Command, EventId, Launch, Memory};
use crate::scope::RuntimeScope;
use crate::workload::Ring;

/// Bytes of a chunk that goes through a superstep in host memory: about what caches of a
/// device that computes there hold.
const SCRATCH_BYTES: u64 = 8 << 20;

/// A chunk there has at least so many halos of the superstep, so that little of its work is
/// done twice.
const SCRATCH_HALOS: u64 = 8;

/// Most units of a chunk of a device that computes in host memory step by step, of so many
/// units of so many bytes.
pub fn scratch_chunk(units: u64, unit_bytes: u64, beside: &Beside) -> u64 {
    let least = SCRATCH_HALOS * beside.superstep;
    (SCRATCH_BYTES / unit_bytes).max(least).clamp(1, units)
}

/// Allocates buffers in host memory for the chunks of a device that computes there step by
/// step, and limits its chunks to their length.
pub(super) fn scratch(
    runtime: &mut RuntimeScope,
    (units, unit_bytes): (u64, u64),
    beside: &Beside,
    space: &mut Space,
) -> Result<Vec<StreamBuffers>, CorunError> {
    let chunk = scratch_chunk(units, unit_bytes, beside);
    space.longest_chunk = Some(chunk);
    let mut ring = |slots: u64| -> Result<Ring, CorunError> {
        Ok(Ring {
            memory: Memory::Host(runtime.alloc_host(slots * unit_bytes)?),
            slots,
            unit: 0,
            slot: 0,
        })
    };
    let queues = 0..space.chunk_queues;
    let buffers = queues.map(|_| StreamBuffers::open(chunk, beside, &mut ring));
    buffers.collect()
}

impl StreamBuffers {
    /// Two buffers for chunks of so many units, from rings of so many slots.
    pub fn open(
        chunk: u64,
        beside: &Beside,
        ring: &mut impl FnMut(u64) -> Result<Ring, CorunError>,
    ) -> Result<Self, CorunError> {
        let after_a_step = chunk + 2 * (beside.superstep - beside.step);
        Ok(Self {
            input: ring(chunk + 2 * beside.superstep)?,
            output: ring(after_a_step)?,
        })
    }

    /// Where the versions after each step of a superstep lie, the present ones, which are
    /// `needed`, first. `made` is what the first step makes.
    fn rings(&self, steps: u32, needed: &Range<u64>, made: &Range<u64>) -> Vec<Ring> {
        let input = Ring {
            unit: needed.start,
            ..self.input
        };
        let output = Ring {
            unit: made.start,
            ..self.output
        };
        let step = |step: u32| {
            if step.is_multiple_of(2) {
                input
            } else {
                output
            }
        };
        (0..=steps).map(step).collect()
    }
}

impl GridForm<'_> {
    /// Submits the commands of a chunk of the pool.
    pub(super) fn submit_chunk(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        units: Range<u64>,
        arrivals: &Arrivals,
    ) -> Result<(), CorunError> {
        let (host, steps) = (self.host, self.supersteps.length(purpose.step));
        let (halo, all) = (self.beside.step, host.units);
        let [below, above] = halos(&units, halo * u64::from(steps), all);
        let needed = below.start..above.end;
        let wait: Vec<EventId> = arrivals.of(&needed);
        let stages: Vec<Range<u64>> = stages(&units, steps, (halo, all)).collect();
        let lane = purpose.queue - context.devices[purpose.device].space.held_queues;
        let single = |(_, command)| command;
        let mut raised = match &mut self.changes {
            Some(changes) => changes.raised(context, &purpose, true)?,
            None => None,
        };
        let mut commands: Vec<Command> = match self.devices.find(purpose.device) {
            Some(own) => {
                let rings = own.streams[lane].rings(steps, &needed, &stages[0]);
                let (input, output) = (rings[0], rings[steps as usize]);
                let writes = host.writes(needed, &input).into_iter().map(single);
                let launches = self.launches(context, &stages, &rings, raised.as_ref());
                // Before the units, so that the next chunk's kernels need not wait for these.
                let changes = raised.iter_mut().flat_map(|raised| raised.after.drain(..));
                let reads = host.reads(units.clone(), 1, &output);
                let reads = reads.into_iter().map(single);
                writes.chain(launches).chain(changes).chain(reads).collect()
            }
            None => match self.scratch[purpose.device].get(lane) {
                Some(scratch) => {
                    let mut rings = scratch.rings(steps, &needed, &stages[0]);
                    rings[0] = host.ring(0);
                    rings[steps as usize] = host.ring(1);
                    self.launches(context, &stages, &rings, raised.as_ref())
                }
                None => vec![self.at_once(context, &units, &stages, raised.as_ref())],
            },
        };
        if let Some(raised) = raised {
            commands.splice(0..0, raised.before);
        }
        context.submit_together(purpose, commands, &units, &wait)?;
        Ok(())
    }

    /// A launch for each step, from the versions before it to those after it.
    fn launches(
        &self,
        context: &Context,
        stages: &[Range<u64>],
        rings: &[Ring],
        raises: Option<&Raises>,
    ) -> Vec<Command> {
        let last = stages.len() - 1;
        // The kernel of single steps that are not checked is to be built, too.
        let unchecked = match raises.filter(|raises| raises.is_warm_up && last == 0) {
            Some(_) => self.launches(context, stages, rings, None),
            None => Vec::new(),
        };
        let of = |(step, (units, rings)): (usize, (&Range<u64>, &[Ring]))| {
            let args = self.grid.args(units.clone(), &rings[0], &rings[1]);
            let raises = raises.filter(|_| step == last);
            launch(context, self.grid, (units.clone(), args), raises)
        };
        let stages = stages.iter().zip(rings.windows(2)).enumerate();
        unchecked.into_iter().chain(stages.map(of)).collect()
    }

    /// One launch for all steps, in host memory.
    fn at_once(
        &self,
        context: &Context,
        units: &Range<u64>,
        stages: &[Range<u64>],
        raises: Option<&Raises>,
    ) -> Command {
        let (from, to) = (self.host.ring(0), self.host.ring(1));
        let mut args = self.grid.args(units.clone(), &from, &to);
        let codelet = match raises.and(self.grid.changes()) {
            Some(changes) => changes.of_superstep(),
            None => self.grid.superstep(),
        };
        let Some(codelet) = codelet.filter(|_| stages.len() > 1) else {
            return launch(context, self.grid, (units.clone(), args), raises);
        };
        args.push(Value::U32(stages.len() as u32));
        args.extend(raises.map(|raises| raises.value));
        let flops = stages
            .iter()
            .map(|units| context.workload.cost(units).flops);
        Command::Launch(Launch {
            codelet,
            args,
            // The grid is read and written once; between the steps it is in the caches.
            cost: Cost {
                flops: self.grid.superstep_flops(stages.len() as u32) * flops.sum::<f64>(),
                bytes: context.workload.cost(units).bytes,
            },
            units: units.clone(),
        })
    }
}
