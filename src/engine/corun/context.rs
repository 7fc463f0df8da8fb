//! What forms of data submit their commands through: the runtime, the state of
//! each device, the layout of the units, and the commands in flight.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::CorunError;
use super::form::Space;
use super::jobs::Jobs;
use super::layout::Layout;
use crate::Loss;
use crate::codelet::Codelet;
use crate::membership::Membership;
use crate::runtime::{
    Command, Completion, DeviceId, EventId, Launch, QueueId, RuntimeError, Status, Value,
};
use crate::scope::RuntimeScope;
use crate::time::Nanos;
use crate::workload::Divisible;

/// The queue for writes and launches of held units, on a device that holds any.
pub const MAIN: usize = 0;
/// The queue for reads of held units' results, beside the launches.
pub const READS: usize = 1;
/// Queues for held units. Those for chunks follow them.
pub const HELD_QUEUES: usize = 2;

/// A device in a run.
pub struct DeviceState {
    /// How the form of data divides its memory.
    pub space: Space,
    /// Its queues, those for held units first.
    queues: Vec<QueueId>,
    /// Whether it has not been lost.
    pub alive: bool,
    membership: Membership,
    /// Whether its memory has a version of some units that no other memory has.
    pub irreplaceable: bool,
    /// When the engine received its latest completion.
    pub heard: Nanos,
}

impl DeviceState {
    /// Opens a device's queues.
    pub fn open(
        runtime: &mut RuntimeScope,
        id: DeviceId,
        space: Space,
    ) -> Result<Self, CorunError> {
        let queues = (0..space.held_queues + space.chunk_queues)
            .map(|_| runtime.queue(id))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            space,
            queues,
            alive: true,
            membership: Membership::begin(&**runtime, id),
            irreplaceable: false,
            heard: 0,
        })
    }

    /// Opens new queues. A queue with a command that failed, or that was
    /// skipped because another device's failed, runs no further command.
    pub fn reopen(&mut self, runtime: &mut RuntimeScope, id: DeviceId) -> Result<(), CorunError> {
        for queue in &mut self.queues {
            *queue = runtime.queue(id)?;
        }
        Ok(())
    }

    /// Whether it computes in host memory.
    pub fn is_host(&self) -> bool {
        self.space.capacity.is_none()
    }
}

/// What a command is for.
#[derive(Clone, Copy, Debug)]
pub struct Purpose {
    pub device: usize,
    /// Index of the queue on the device.
    pub queue: usize,
    /// The job that it belongs to.
    pub job: Option<usize>,
    pub step: u32,
    pub label: &'static str,
}

impl Purpose {
    /// A command of no job.
    pub fn new(device: usize, queue: usize, step: u32, label: &'static str) -> Self {
        Self {
            device,
            queue,
            job: None,
            step,
            label,
        }
    }
}

/// Bytes a second of the direct way from one device's own memory to another one's; `None`
/// where there is none.
fn direct_way(runtime: &RuntimeScope, from: usize, to: usize) -> Option<f64> {
    let path = runtime.peer_path(DeviceId(from), DeviceId(to))?;
    (!path.through_host).then_some(path.bandwidth)
}

/// Bytes a second of the slowest of the direct ways from each of these devices to each other
/// one, infinitely many for a single one; `None` where such a way is missing.
pub fn slowest_direct_way(runtime: &RuntimeScope, devices: &[usize]) -> Option<f64> {
    let ways = (devices.iter()).flat_map(|from| devices.iter().map(move |to| (*from, *to)));
    let mut ways = ways.filter(|(from, to)| from != to);
    ways.try_fold(f64::INFINITY, |slowest, (from, to)| {
        direct_way(runtime, from, to).map(|bandwidth| slowest.min(bandwidth))
    })
}

/// What a run and its form of data share.
pub struct Context<'r, 'w> {
    pub runtime: RuntimeScope<'r>,
    pub workload: &'w dyn Divisible,
    /// The units that it computes: all, or those of a node.
    pub units: Range<u64>,
    pub codelet: Arc<Codelet>,
    pub devices: Vec<DeviceState>,
    /// Where the units lie, or are on their way to.
    pub layout: Layout,
    pub jobs: Jobs,
    /// Devices lost so far, in the order in which that was noticed.
    pub losses: Vec<Loss>,
    /// Whether a version that no other memory has was lost in this step.
    pub spoiled: bool,
    /// Whether each command is submitted, and so traced, by itself.
    pub each_command: bool,
    /// Real time spent inside the runtime's calls since it was last reset.
    pub outside: Duration,
    /// Time on the runtime's clock spent in submitting since it was last reset.
    pub submitting: Nanos,
}

impl Context<'_, '_> {
    /// Whether it computes all units of the workload.
    pub fn has_all(&self) -> bool {
        self.units == (0..self.workload.units())
    }

    /// Indices of the devices that are not lost.
    pub fn alive(&self) -> impl Iterator<Item = usize> {
        (0..self.devices.len()).filter(|device| self.devices[*device].alive)
    }

    /// Whether copies go from one device's own memory to another one's directly.
    pub fn is_direct(&self, from: usize, to: usize) -> bool {
        self.devices[from].alive && direct_way(&self.runtime, from, to).is_some()
    }

    /// The purpose of a chunk's commands on one of the queues for chunks.
    pub fn chunk(&self, device: usize, lane: usize, step: u32, label: &'static str) -> Purpose {
        let queue = self.devices[device].space.held_queues + lane;
        Purpose::new(device, queue, step, label)
    }

    /// Submits a command. `None` when its device turns out to be lost, or cannot run it and
    /// others go on without it.
    pub fn submit(
        &mut self,
        purpose: Purpose,
        command: Command,
        units: Range<u64>,
        wait: &[EventId],
    ) -> Result<Option<EventId>, CorunError> {
        let Purpose { device, queue, .. } = purpose;
        let virtually = |runtime: &RuntimeScope| runtime.simulated().then(|| runtime.now());
        let (at, before) = (virtually(&self.runtime), Instant::now());
        let id = self.devices[device].queues[queue];
        let event = EventId::fresh();
        let submitted = self.runtime.submit(id, command, wait, Some(event));
        let took = before.elapsed();
        self.outside += took;
        self.submitting += match (at, virtually(&self.runtime)) {
            (Some(at), Some(now)) => now.saturating_sub(at),
            _ => took.as_nanos() as Nanos,
        };
        match submitted {
            Ok(()) => {
                self.jobs.submitted(event, purpose, units, wait);
                Ok(Some(event))
            }
            Err(error) => {
                let is_lost = matches!(error, RuntimeError::DeviceLost { .. });
                match error.leaves_out() {
                    Some((_, why)) if is_lost || self.alive().any(|other| other != device) => {
                        if let Some(job) = purpose.job {
                            self.jobs.all[job].failed = true;
                        }
                        self.lose(device, purpose.step, why)?;
                        Ok(None)
                    }
                    _ => Err(error.into()),
                }
            }
        }
    }

    /// Submits commands that all wait for the same events; returns their events.
    pub fn submit_each(
        &mut self,
        purpose: Purpose,
        commands: Vec<(Range<u64>, Command)>,
        wait: &[EventId],
    ) -> Result<Vec<EventId>, CorunError> {
        let mut events = Vec::new();
        for (units, command) in commands {
            events.extend(self.submit(purpose, command, units, wait)?);
        }
        Ok(events)
    }

    /// Submits commands that follow one another on a queue, of which the first
    /// waits for events. They go as one series, which spares the driver events
    /// and the engine completions, unless each command is traced.
    pub fn submit_together(
        &mut self,
        purpose: Purpose,
        mut commands: Vec<Command>,
        units: &Range<u64>,
        mut wait: &[EventId],
    ) -> Result<Option<EventId>, CorunError> {
        if commands.len() > 1 && !self.each_command {
            commands = vec![Command::Series(commands)];
        }
        let mut last = None;
        for command in commands {
            last = self.submit(purpose, command, units.clone(), std::mem::take(&mut wait))?;
        }
        Ok(last)
    }

    /// A launch over `units`.
    pub fn launch(&self, units: &Range<u64>, args: Vec<Value>) -> Command {
        Command::Launch(Launch {
            codelet: Arc::clone(&self.codelet),
            args,
            cost: self.workload.cost(units),
            units: units.clone(),
        })
    }

    /// Submits a launch over `units`.
    pub fn submit_launch(
        &mut self,
        purpose: Purpose,
        units: Range<u64>,
        args: Vec<Value>,
        wait: &[EventId],
    ) -> Result<Option<EventId>, CorunError> {
        let command = self.launch(&units, args);
        self.submit(purpose, command, units, wait)
    }

    /// The next completion within `timeout`, and its job if no command of that
    /// is left.
    pub fn collect(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Option<(Completion, Option<usize>)>, CorunError> {
        let before = Instant::now();
        let waited = self.runtime.wait(timeout);
        self.outside += before.elapsed();
        let Some(completion) = waited? else {
            return Ok(None);
        };
        let ok = completion.status == Status::Done;
        let Some((purpose, job)) = self.jobs.completed(&completion, ok) else {
            return Ok(Some((completion, None)));
        };
        let device = purpose.device;
        self.devices[device].heard = self.runtime.now();
        match &completion.status {
            Status::Failed(why) | Status::DeviceLost(why) => {
                self.lose(device, purpose.step, why.clone())?;
            }
            // What it was to move is nowhere, whichever device has failed.
            Status::Skipped if purpose.job.is_none() && self.devices[device].alive => {
                self.spoiled = true;
            }
            Status::Skipped | Status::Done => {}
        }
        Ok(Some((completion, job)))
    }

    /// Waits until no command is in flight.
    pub fn drain(&mut self) -> Result<(), CorunError> {
        while !self.jobs.is_empty() {
            if self.collect(None)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Marks the devices as lost whose memory is lost, though no command has reported it.
    pub fn lose_absent(&mut self, step: u32) -> Result<(), CorunError> {
        for device in 0..self.devices.len() {
            let state = &self.devices[device];
            let why = match state.space.is_absent() {
                true => Some("it was lost before"),
                false => state.membership.ended(&*self.runtime),
            };
            if let Some(why) = why {
                self.lose(device, step, why.to_owned())?;
            }
        }
        Ok(())
    }

    /// Whether the runtime knows of a lost device that no command has reported.
    pub fn is_someone_lost(&self) -> bool {
        let mut alive = self.alive();
        alive.any(|device| {
            self.devices[device]
                .membership
                .ended(&*self.runtime)
                .is_some()
        })
    }

    /// Whether a lost device is back and does not take part yet.
    pub fn is_someone_back(&self) -> bool {
        let is_back = |state: &DeviceState| state.membership.clone().renew(&*self.runtime);
        (self.devices.iter())
            .any(|state| !state.alive && !state.space.is_absent() && is_back(state))
    }

    /// Opens the queues of a lost device that is back. `false` if it is not, or no more.
    pub fn readmit(&mut self, device: usize) -> Result<bool, CorunError> {
        let state = &mut self.devices[device];
        let has_memory = !state.space.is_absent();
        if state.alive || !has_memory || !state.membership.renew(&*self.runtime) {
            return Ok(false);
        }
        match state.reopen(&mut self.runtime, DeviceId(device)) {
            Err(CorunError::Runtime(RuntimeError::DeviceLost { .. })) => return Ok(false),
            opened => opened?,
        }
        state.alive = true;
        state.irreplaceable = false;
        Ok(true)
    }

    /// A lost device takes part again.
    pub fn note_return(&mut self, device: usize, step: u32) {
        let mut losses = self.losses.iter_mut().rev();
        if let Some(loss) = losses.find(|loss| loss.device == device) {
            loss.back = Some(step);
        }
    }

    /// Marks a device as lost.
    fn lose(&mut self, device: usize, step: u32, why: String) -> Result<(), CorunError> {
        let state = &mut self.devices[device];
        if !std::mem::replace(&mut state.alive, false) {
            return Ok(());
        }
        self.spoiled |= state.irreplaceable;
        self.losses.push(Loss {
            device,
            step,
            why: why.clone(),
            repeated: 0,
            back: None,
        });
        if self.alive().next().is_some() {
            return Ok(());
        }
        // One that is back already can begin again.
        match self.is_someone_back() {
            true => self.spoiled = true,
            false => {
                let device = self.runtime.devices()[device].name.clone();
                return Err(CorunError::AllLost { device, why });
            }
        }
        Ok(())
    }
}
