//! The simulator: a machine file's devices in virtual time.
//!
//! This folder owns the model of a machine. Its parts, from the bottom:
//!
//! * [`fluid`] shares resources among running commands;
//! * [`schedule`] decides what waits for what, whose turn it is, and when it
//!   ends; both are pure and know nothing of memory or drivers;
//! * `plant` turns a machine file into devices, and a command into what it
//!   needs of them; `noise` varies that;
//! * `memory` counts memory, and carries bytes if the run has data;
//! * [`SimOptions`] is what a simulation is asked for, faults among it;
//! * [`Sim`] joins them: faults strike, commands take effect, completions are
//!   made; `driver` is its side of the trait [`super::Runtime`], with the
//!   virtual clock, which an enqueue moves forward; `check` refuses what cannot
//!   be enqueued; of a `series` of launches one completion tells.
//!
//! With data, a command's effect happens when it ends, in the order of ending,
//! by its native implementation. So a schedule that lacks an event gives a
//! wrong result here, as it may on a real machine.

mod check;
mod driver;
pub mod fluid;
mod memory;
mod noise;
mod options;
mod plant;
pub mod schedule;
mod series;

#[cfg(test)]
mod tests;

pub use options::{At, Fault, SimDevice, SimOptions, What};

use std::collections::{BTreeMap, HashMap};

use super::{
    Command, Completion, DeviceId, EventId, Launch, Memory, Nanos, QueueId, RuntimeError, Status,
    Tag,
};
use crate::machine::{Device, MachineFile};
use memory::Store;
use noise::Noise;
use plant::Part;
use schedule::{End, Ended, JobId, Schedule};
use series::Member;

/// A simulated machine.
pub struct Sim {
    devices: Vec<Device>,
    parts: Vec<Part>,
    schedule: Schedule,
    store: Store,
    noise: Noise,
    /// Faults still to come, by time and by step.
    timed: Vec<(Nanos, Fault)>,
    stepped: Vec<(u32, Fault)>,
    /// The driver's time; the schedule is never ahead of it between calls.
    now: Nanos,
    driver_time: Nanos,
    queues: HashMap<QueueId, Queue>,
    events: HashMap<EventId, Event>,
    /// Commands that have not ended.
    running: HashMap<JobId, Running>,
    /// What became so far of series that have not ended.
    series: HashMap<u64, series::SoFar>,
    /// Completions by the time at which the driver gets to know of them.
    deliveries: BTreeMap<(Nanos, JobId), Completion>,
}

struct Queue {
    device: usize,
    last: Option<EventId>,
}

#[derive(Clone, Copy)]
enum Event {
    Pending(JobId),
    Ended { well: bool },
}

struct Running {
    device: usize,
    queue: QueueId,
    event: EventId,
    command: Command,
    tag: Tag,
    queued: Nanos,
    member: Option<Member>,
}

impl Sim {
    /// A machine at virtual time 0.
    ///
    /// # Errors
    /// [`RuntimeError::Selection`] for devices, noise or faults that the
    /// machine cannot have.
    pub fn new(machine: &MachineFile, options: SimOptions) -> Result<Self, RuntimeError> {
        let selected = options.selection(machine)?;
        options.check(machine, &selected)?;
        let (schedule, parts) = plant::build(machine, &selected);
        let memories = parts
            .iter()
            .map(|p| (p.device.name.clone(), p.device.memory));
        let mut timed = Vec::new();
        let mut stepped = Vec::new();
        for fault in options.faults {
            match fault.at {
                At::Seconds(s) => timed.push(((s * 1e9) as Nanos, fault)),
                At::Step(step) => stepped.push((step, fault)),
            }
        }
        // Stable, and with the next fault at the end.
        timed.reverse();
        timed.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Ok(Self {
            devices: parts.iter().map(|p| p.device.clone()).collect(),
            store: Store::new(options.data, machine.host.memory, memories),
            parts,
            schedule,
            noise: Noise::new(
                options.seed,
                options.noise.unwrap_or(machine.noise.relative),
            ),
            timed,
            stepped,
            now: 0,
            driver_time: 0,
            queues: HashMap::new(),
            events: HashMap::new(),
            running: HashMap::new(),
            series: HashMap::new(),
            deliveries: BTreeMap::new(),
        })
    }

    fn part(&self, device: DeviceId) -> Result<&Part, RuntimeError> {
        let part = self.parts.get(device.0);
        part.ok_or(RuntimeError::Unknown { what: "device" })
    }

    /// Refuses what a device that is lost by now cannot give.
    fn present(&mut self, device: DeviceId) -> Result<(), RuntimeError> {
        self.advance(self.now);
        let part = self.part(device)?;
        if self.schedule.is_lost(device.0) {
            return Err(RuntimeError::DeviceLost {
                device: part.device.name.clone(),
                why: "a simulated fault".into(),
            });
        }
        Ok(())
    }

    /// Lets virtual time pass, faults included.
    fn advance(&mut self, to: Nanos) {
        while let Some((at, fault)) = self.timed.pop_if(|(at, _)| *at <= to) {
            self.schedule.advance(at);
            self.collect();
            self.strike(fault);
        }
        self.schedule.advance(to);
        self.collect();
    }

    fn strike(&mut self, fault: Fault) {
        let part = &mut self.parts[fault.device];
        match fault.what {
            What::Lost => {
                self.schedule.lose(fault.device);
                self.store.poison(fault.device);
            }
            What::Slowed(factor) => part.slow(factor, self.schedule.fluid()),
            What::Cores(cores) => part.set_cores(Some(cores), self.schedule.fluid()),
            What::Restored => {
                self.schedule.restore(fault.device);
                part.slow(1.0, self.schedule.fluid());
                part.set_cores(None, self.schedule.fluid());
            }
            What::FailNext(commands) => self.schedule.fail_next(fault.device, commands),
        }
        self.collect();
    }

    /// Takes what has ended: its effect on memory, and its completion.
    fn collect(&mut self) {
        for ended in self.schedule.take_ended() {
            if let Some(running) = self.running.remove(&ended.job) {
                self.complete(ended, running);
            }
        }
    }

    fn complete(&mut self, ended: Ended, running: Running) {
        let well = ended.end == End::Done;
        if well {
            match &running.command {
                Command::Write { from, to } => self.store.copy(
                    (Memory::Host(from.memory), from.offset),
                    (Memory::Device(to.buffer), to.offset),
                    from.bytes,
                ),
                Command::Read { from, to } => self.store.copy(
                    (Memory::Device(from.buffer), from.offset),
                    (Memory::Host(to.memory), to.offset),
                    to.bytes,
                ),
                launch => (launch.launches()).for_each(|l| self.store.compute(l)),
            }
        }
        for memory in memories(&running.command) {
            self.store.release(memory);
        }
        self.events.insert(running.event, Event::Ended { well });
        let delivered = ended.at + self.parts[running.device].completion;
        let completion = Completion {
            event: running.event,
            device: DeviceId(running.device),
            queue: running.queue,
            kind: running.command.kind(),
            tag: running.tag,
            queued: running.queued,
            submitted: running.queued,
            started: ended.started,
            ended: ended.at,
            bytes: running.command.bytes(),
            stages: None,
            workers: None,
            status: match ended.end {
                End::Done => Status::Done,
                End::Failed => Status::Failed("a simulated fault".into()),
                End::Spoilt => Status::Skipped,
                End::DeviceLost => Status::DeviceLost("a simulated fault".into()),
            },
        };
        if let Some(completion) = self.told(running.member, completion) {
            self.deliveries.insert((delivered, ended.job), completion);
        }
    }
}

/// The memory that a command uses.
fn memories(command: &Command) -> Vec<Memory> {
    match command {
        Command::Write { from, to } => {
            vec![Memory::Host(from.memory), Memory::Device(to.buffer)]
        }
        Command::Read { from, to } => {
            vec![Memory::Device(from.buffer), Memory::Host(to.memory)]
        }
        launch => (launch.launches()).flat_map(Launch::memories).collect(),
    }
}
