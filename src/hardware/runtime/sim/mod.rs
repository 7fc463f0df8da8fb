//! The simulator: a machine file's devices in virtual time.
//!
//! This folder owns the model of a machine. Its parts, from the bottom:
//!
//! * [`bandwidth_sharing`] shares resources among running commands;
//! * [`schedule`] decides when each command begins and ends; both are pure and
//!   know nothing of memory or drivers;
//! * `device_model` turns a machine file into devices, and a command into its
//!   demand on them; `noise` varies
//!   the demand;
//! * `memory` counts memory, and carries bytes if the run has data;
//! * [`SimOptions`] holds the options, faults among them;
//! * [`Sim`] joins them: it applies faults and the effects of commands, and makes
//!   completions. `runtime` implements the trait [`super::Runtime`], with the
//!   virtual clock, which an enqueue moves forward, and refuses commands that
//!   cannot run; a `series` of commands has one completion, as has a command graph.
//!
//! With data, a command's effect happens when it ends, in the order of ending,
//! by its native implementation. So a schedule that lacks an event gives a
//! wrong result here, as it may on a real machine.

pub mod bandwidth_sharing;
pub mod device_model;
mod memory;
pub mod noise;
mod options;
mod runtime;
pub mod schedule;
mod series;

#[cfg(test)]
mod tests;

pub use options::{
    At, FAULT_SECONDS, Fault, FaultEffect, SLOWDOWNS, Selected, SimDevice, SimOptions,
};

use std::collections::{BTreeMap, VecDeque};

use super::{
    Command, Completion, DeviceId, EventId, Generation, IdMap, Launch, Memory, Nanos, PeerPath,
    QueueId, RuntimeError, Status,
};
use crate::machine::{Device, MachineFile};
use device_model::DeviceModel;
use memory::SimMemory;
use noise::Noise;
use schedule::{End, Ended, JobId, Schedule};
use series::SeriesPart;

/// A simulated machine.
pub struct Sim {
    devices: Vec<Device>,
    models: Vec<DeviceModel>,
    bus_bandwidth: Option<f64>,
    host_bandwidth: f64,
    /// By source and target: how copies go. Others go through host memory.
    paths: BTreeMap<(usize, usize), PeerPath>,
    schedule: Schedule,
    memory: SimMemory,
    /// By device: how often it was lost.
    losses: Vec<u64>,
    noise: Noise,
    /// Whether devices with memory of their own run command graphs.
    graphs: bool,
    /// Faults still to come, by time and by phase. Times count from the first phase.
    timed: Vec<(Nanos, Fault)>,
    phased: Vec<(u32, Fault)>,
    has_begun: bool,
    /// Those of phases that begin with a command which was submitted, by their order.
    due: VecDeque<Vec<Fault>>,
    /// Those of phases that begin with the next command.
    next_due: Vec<Fault>,
    /// The driver's time; the schedule is never ahead of it between calls.
    now: Nanos,
    driver_time: Nanos,
    queues: IdMap<QueueId, Queue>,
    events: IdMap<EventId, Event>,
    /// Commands that have not ended.
    running: IdMap<JobId, Running>,
    /// The series that have not ended.
    series: IdMap<u64, series::SeriesProgress>,
    /// Completions by the time at which the driver is notified.
    deliveries: BTreeMap<(Nanos, JobId), Completion>,
}

struct Queue {
    device: usize,
    last: Option<EventId>,
    generation: Generation,
}

#[derive(Clone, Copy)]
enum Event {
    Pending(JobId),
    Ended { done: bool },
}

struct Running {
    device: usize,
    queue: QueueId,
    event: EventId,
    command: Command,
    queued: Nanos,
    part: Option<SeriesPart>,
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
        let mut schedule = Schedule::default();
        let models = device_model::add(machine, &selected, &mut schedule);
        let memories = models
            .iter()
            .map(|m| (m.device.name.clone(), m.device.memory));
        let mut timed = Vec::new();
        let mut phased = Vec::new();
        for fault in options.faults {
            match fault.at {
                At::Seconds(s) => timed.push(((s * 1e9) as Nanos, fault)),
                At::Phase(phase) => phased.push((phase, fault)),
            }
        }
        // Stable, and with the next fault at the end.
        timed.reverse();
        timed.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let position = |name: &str| models.iter().position(|m| m.device.name == name);
        let paths = (machine.peers.iter())
            .filter_map(|peer| Some(((position(&peer.from)?, position(&peer.to)?), peer.into())));
        Ok(Self {
            paths: paths.collect(),
            devices: models.iter().map(|m| m.device.clone()).collect(),
            memory: SimMemory::new(options.data, machine.host.memory, memories),
            models,
            bus_bandwidth: machine.host.bus_bandwidth,
            host_bandwidth: machine.host.shared(),
            schedule,
            losses: vec![0; selected.len()],
            noise: Noise::new(
                options.seed,
                options.noise.unwrap_or(machine.noise.relative),
            ),
            graphs: options.graphs,
            timed,
            phased,
            has_begun: false,
            due: VecDeque::new(),
            next_due: Vec::new(),
            now: 0,
            driver_time: 0,
            queues: IdMap::default(),
            events: IdMap::default(),
            running: IdMap::default(),
            series: IdMap::default(),
            deliveries: BTreeMap::new(),
        })
    }

    fn model(&self, device: DeviceId) -> Result<&DeviceModel, RuntimeError> {
        let model = self.models.get(device.0);
        model.ok_or(RuntimeError::Unknown { what: "device" })
    }

    /// Refuses a device that is lost by now.
    fn check_present(&mut self, device: DeviceId) -> Result<(), RuntimeError> {
        self.advance(self.now);
        let model = self.model(device)?;
        if self.schedule.is_lost(device.0) {
            return Err(RuntimeError::DeviceLost {
                device: model.device.name.clone(),
                why: "a simulated fault".into(),
            });
        }
        Ok(())
    }

    /// Lets virtual time pass, faults included.
    fn advance(&mut self, to: Nanos) {
        let has_begun = self.has_begun;
        while let Some((at, fault)) = self.timed.pop_if(|(at, _)| has_begun && *at <= to) {
            self.pass(at);
            self.strike(fault);
        }
        self.pass(to);
    }

    /// Lets virtual time pass, and phases begin.
    fn pass(&mut self, to: Nanos) {
        self.schedule.advance(to);
        while self.schedule.is_stopped() {
            self.begin_due();
            self.schedule.advance(to);
        }
        self.collect();
    }

    /// Phases begin whose first command's turn has come.
    fn begin_due(&mut self) {
        self.collect();
        while self.due.len() > self.schedule.stops() {
            for fault in self.due.pop_front().unwrap_or_default() {
                self.strike(fault);
            }
        }
        self.schedule.resume();
    }

    /// A phase begins with the next command, or now if there is none before that.
    fn begin_phase(&mut self, phase: u32) {
        self.advance(self.now);
        if !std::mem::replace(&mut self.has_begun, true) {
            for (at, _) in &mut self.timed {
                *at = at.saturating_add(self.now);
            }
            self.advance(self.now);
        }
        let due = self.phased.extract_if(.., |(at, _)| *at <= phase);
        self.next_due.extend(due.map(|(_, fault)| fault));
        if self.running.is_empty() {
            for fault in std::mem::take(&mut self.next_due) {
                self.strike(fault);
            }
        }
    }

    fn strike(&mut self, fault: Fault) {
        let model = &mut self.models[fault.device];
        match fault.what {
            FaultEffect::Lost => {
                self.losses[fault.device] += 1;
                self.schedule.lose(fault.device);
                self.memory.lose(fault.device);
            }
            FaultEffect::Slowed(factor) => model.slow(factor, self.schedule.fluid()),
            FaultEffect::Cores(cores) => model.set_cores(Some(cores), self.schedule.fluid()),
            FaultEffect::Restored => {
                self.schedule.restore(fault.device);
                model.slow(1.0, self.schedule.fluid());
                model.set_cores(None, self.schedule.fluid());
            }
            FaultEffect::FailNext(commands) => self.schedule.fail_next(fault.device, commands),
        }
        self.collect();
    }

    /// Completes the commands that have ended.
    fn collect(&mut self) {
        for ended in self.schedule.take_ended() {
            if let Some(running) = self.running.remove(&ended.job) {
                self.complete(ended, running);
            }
        }
    }

    fn complete(&mut self, ended: Ended, running: Running) {
        let done = ended.end == End::Done;
        if done {
            match &running.command {
                Command::Copy { from, to, rows } => self.memory.copy(*from, *to, *rows),
                launch => (launch.launches()).for_each(|l| self.memory.compute(l)),
            }
        }
        for memory in memories(&running.command) {
            self.memory.release(memory);
        }
        self.events.insert(running.event, Event::Ended { done });
        let delivered = ended.at + self.models[running.device].completion;
        let owner = (DeviceId(running.device), running.queue);
        let Running { event, queued, .. } = running;
        let completion = Completion {
            started: ended.started,
            ended: ended.at,
            status: match ended.end {
                End::Done => Status::Done,
                End::Failed => Status::Failed("a simulated fault".into()),
                End::Skipped => Status::Skipped,
                End::DeviceLost => Status::DeviceLost("a simulated fault".into()),
            },
            ..Completion::of(&running.command, event, owner, queued)
        };
        if let Some(completion) = self.joined(running.part, completion) {
            self.deliveries.insert((delivered, ended.job), completion);
        }
    }
}

/// The memory that a command uses.
fn memories(command: &Command) -> Vec<Memory> {
    match command {
        Command::Copy { from, to, .. } => vec![from.memory, to.memory],
        launch => (launch.launches()).flat_map(Launch::memories).collect(),
    }
}
