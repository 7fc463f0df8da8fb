//! The subtasks of a node: kernels of an open graph on the blocks that the node has.

use std::collections::HashMap;
use std::sync::Arc;

use super::copying::Copying;
use super::error::ClusterError;
use super::store::{Kept, Resolve, Store};
use super::traced::Traced;
use crate::cluster::NodeId;
use crate::cluster::info::DeviceInfo;
use crate::cluster::protocol::DeviceIndex;
use crate::cluster::space::{Part, Spaces};
use crate::cluster::task::chain::{Chain, Source};
use crate::cluster::task::{Beginning, Computed, TaskId};
use crate::codelet::{Codelet, Memory, Name, Value};
use crate::engine::graph::{Ended, GraphRunError, OpenGraph, abilities_of};
use crate::graph::{Argument, Datum, Kernel, KernelId};
use crate::policy::{NamedPolicy, PolicyOptions};
use crate::runtime::{Completion, HostMemoryId, Runtime};
use crate::time::Nanos;

/// Subtasks that are at once on a device with memory of its own: one computes while the
/// data of the next arrive and those of the one before leave.
pub const DEPTH: u32 = 3;

/// Kernels after which those that are done are forgotten, at the end of a task.
const MANY: usize = 1 << 10;

/// The weight of the last measurement among those of a device.
const LAST: f64 = 0.3;

/// What a subtask wrote, or writes.
pub(super) type Written = Vec<(Part, Kept)>;

/// The end of a subtask.
pub(super) struct EndedSubtask {
    pub device: DeviceIndex,
    pub task: TaskId,
    pub subtask: u64,
    pub took: Nanos,
    pub written: Written,
}

/// What happened since the last turn.
#[derive(Default)]
pub(super) struct Happened {
    pub ended: Vec<EndedSubtask>,
    /// Whether no device is left for some subtasks.
    pub has_unplaced: bool,
}

/// A subtask that has begun.
struct Running {
    task: TaskId,
    subtask: u64,
    codelet: String,
    /// The seconds that its cost lets expect, by device.
    expected: Vec<f64>,
    written: Written,
    /// Whether the host needs what it writes at once.
    reduces: bool,
}

/// The subtasks of a node, with its blocks.
pub(super) struct Subtasks {
    pub graph: OpenGraph,
    pub store: Store,
    devices: Vec<DeviceInfo>,
    /// By device.
    lost: Vec<bool>,
    running: HashMap<KernelId, Running>,
    /// Subtasks that have ended, and whose results are on their way to the host.
    ending: Vec<EndedSubtask>,
    /// By codelet and device: measured seconds in one that was expected.
    learned: HashMap<(String, usize), f64>,
    /// Whether something has changed that the graph was not told.
    pub changed: bool,
    /// Of a run that is traced, and the subtask of each kernel.
    pub traced: Option<Traced>,
    begun: HashMap<KernelId, (usize, u64)>,
}

impl Subtasks {
    /// A node without blocks.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn open(
        runtime: &mut dyn Runtime,
        me: NodeId,
        copying: Arc<Copying>,
        devices: Vec<DeviceInfo>,
        (input_bytes, traced): (u64, Option<Traced>),
    ) -> Result<Self, GraphRunError> {
        Ok(Self {
            graph: open_graph(runtime, (traced.is_some(), &[]))?,
            store: Store::new(me, copying, input_bytes),
            lost: vec![false; devices.len()],
            devices,
            running: HashMap::new(),
            ending: Vec::new(),
            learned: HashMap::new(),
            changed: false,
            traced,
            begun: HashMap::new(),
        })
    }

    /// Whether no command is in flight.
    pub fn is_quiet(&self) -> bool {
        self.graph.is_quiet()
    }

    /// Whether no subtask runs.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.ending.is_empty()
    }

    /// Whether a subtask runs, or its result is on its way to the host.
    pub fn runs(&self, task: TaskId, subtask: u64) -> bool {
        let running = self.running.values().map(|r| (r.task, r.subtask));
        let ending = self.ending.iter().map(|e| (e.task, e.subtask));
        running.chain(ending).any(|other| other == (task, subtask))
    }

    /// Begins a subtask of a chain, whose task this is, on the device that the policy chooses.
    /// What it reads is in the store. False if no device can compute it.
    ///
    /// # Errors
    /// Blocks without contents, and what the runtime refuses.
    pub fn start(
        &mut self,
        runtime: &mut dyn Runtime,
        spaces: &Spaces,
        (id, chain, number): (TaskId, &Chain, u64),
        task: &dyn Computed,
    ) -> Result<bool, ClusterError> {
        let (index, subtask) = chain.place(number);
        let resolve: Resolve = &|part| chain.sources_of(number, part);
        let launch = task.launch(subtask);
        let cost = task.cost(subtask);
        let expected: Vec<f64> = (self.devices.iter())
            .map(|device| device.seconds(cost, cost.bytes))
            .collect();
        let seconds = self.seconds(runtime, &launch.codelet, &expected);
        if seconds.iter().all(Option::is_none) {
            return Ok(false);
        }
        let (writes, changed) = (task.writes(subtask), task.changes(subtask));
        let mut data = Vec::new();
        let mut arguments = Vec::new();
        let mut blocks = Vec::new();
        let one = |part: &Part| (part.block.width(), spaces.extent(part.space).element);
        for read in task.read_arguments(subtask) {
            let datum = (self.store).input(&mut self.graph, runtime, spaces, &read, resolve)?;
            data.push(datum);
            arguments.push(Argument::Input(datum));
            blocks.extend(read.parts.first().map(one));
        }
        let (mut written, mut private) = (Vec::new(), Vec::new());
        let name = Name::from(task.name().to_owned());
        let at_places = task.keeps_places(subtask);
        for ((part, is_changed), keeps_place) in writes.into_iter().zip(changed).zip(at_places) {
            blocks.push(one(&part));
            let extent = spaces.extent(part.space);
            let bytes = spaces.bytes(&part);
            let (first, length) = match keeps_place {
                true => (extent.offset(&part.block), extent.bytes(&extent.whole())),
                false => (0, bytes),
            };
            let begins = task.begins(&part);
            let from = match is_changed {
                true => {
                    let parts = (std::slice::from_ref(&part), keeps_place);
                    Some((self.store).view(&mut self.graph, spaces, parts, resolve)?)
                }
                false if begins == Beginning::Made => {
                    let datum = self.graph.datum(Datum::new("begin", length));
                    let memory = self.graph.host_memory(runtime, datum)?;
                    let to = runtime.host_range(memory, first..first + bytes)?;
                    task.begin(&part, to);
                    self.graph.given(datum);
                    Some(datum)
                }
                false => None,
            };
            let row = part.block.width() * extent.element;
            let mut made = Datum::new(name.clone(), length).by_rows(row);
            made.used = keeps_place.then(|| first..first + bytes);
            let to = match from {
                Some(from) => self.graph.version(from, made),
                None => self.graph.datum(made),
            };
            data.push(to);
            arguments.push(match from {
                Some(from) => Argument::InOut { from, to },
                None if begins == Beginning::Zeros => Argument::Output(to),
                None => Argument::FullOutput(to),
            });
            private.extend(from);
            let kept = Kept {
                datum: to,
                first,
                writer: Some(number),
            };
            written.push((part, kept));
        }
        // Which argument is which memory is known by ids that stand for the data.
        let ids: Vec<HostMemoryId> = data.iter().map(|_| HostMemoryId::fresh()).collect();
        let memories: Vec<Memory> = ids.iter().copied().map(Memory::Host).collect();
        let values = launch.values.iter();
        let values = values
            .map(|value| value.compact(&memories, &blocks))
            .collect();
        let mut seen = vec![false; arguments.len()];
        let all = task
            .arguments(subtask, memories, values)
            .into_iter()
            .map(|value| {
                let Value::Memory(Memory::Host(memory)) = value else {
                    return Argument::Value(value);
                };
                let number = ids.iter().position(|id| *id == memory).unwrap_or(0);
                match std::mem::replace(&mut seen[number], true) {
                    false => arguments[number],
                    true => Argument::Again(data[number]),
                }
            });
        let all = all.collect();
        let codelet = launch.codelet.name.to_string();
        let kernel = Kernel {
            name,
            codelet: launch.codelet,
            units: launch.units,
            arguments: all,
            cost,
            prefers: None,
        };
        let kernel = self.graph.kernel(kernel, seconds)?;
        for datum in private {
            self.graph.forget(datum);
        }
        self.changed = true;
        if self.traced.is_some() {
            self.begun.insert(kernel, (index, subtask));
        }
        self.running.insert(
            kernel,
            Running {
                task: id,
                subtask: number,
                codelet,
                expected,
                written,
                reduces: task.reduces(),
            },
        );
        Ok(true)
    }

    /// The seconds that a kernel is expected to take on each device that can run it.
    fn seconds(
        &self,
        runtime: &dyn Runtime,
        codelet: &Codelet,
        expected: &[f64],
    ) -> Vec<Option<f64>> {
        let learned = |device: usize| {
            let learned = self.learned.get(&(codelet.name.to_string(), device));
            learned.copied().unwrap_or(1.0)
        };
        let able = abilities_of(codelet, runtime.devices());
        let seconds = expected.iter().enumerate().zip(able);
        seconds
            .map(|((device, seconds), able)| {
                let can = able && !self.lost[device];
                can.then(|| (seconds * learned(device)).max(1e-9))
            })
            .collect()
    }

    /// Takes completions in, and gives the devices what they can do now.
    ///
    /// # Errors
    /// What the runtime refuses, and the loss of blocks that nobody makes again.
    pub fn turn(
        &mut self,
        runtime: &mut dyn Runtime,
        completions: Vec<Completion>,
    ) -> Result<Happened, ClusterError> {
        self.changed = false;
        let turned = self.graph.turn(runtime, completions)?;
        let mut happened = Happened::default();
        if let Some(traced) = &mut self.traced {
            for command in &turned.commands {
                // Results are copied to the host when somebody asks for them.
                if let Some(subtask) = self.begun.get(&command.kernel) {
                    traced.ended(*subtask, command);
                }
            }
        }
        for ended in turned.ended {
            let Some(running) = self.running.remove(&ended.kernel) else {
                // It ran again, as its results were lost.
                continue;
            };
            self.learn(&running, &ended);
            let ended = EndedSubtask {
                device: DeviceIndex(ended.device as u32),
                task: running.task,
                subtask: running.subtask,
                took: (ended.seconds * 1e9) as Nanos,
                written: running.written,
            };
            match running.reduces {
                true => {
                    let data = ended.written.iter().map(|(_, kept)| kept.datum);
                    for datum in data {
                        self.graph.want(datum);
                    }
                    self.changed = true;
                    self.ending.push(ended);
                }
                false => happened.ended.push(ended),
            }
        }
        let (graph, ending) = (&self.graph, &mut self.ending);
        let in_host = |ended: &mut EndedSubtask| {
            let mut data = ended.written.iter().map(|(_, kept)| kept.datum);
            data.all(|datum| graph.in_host(datum))
        };
        happened.ended.extend(ending.extract_if(.., in_host));
        for kernel in turned.unplaced {
            if let Some(running) = self.running.remove(&kernel) {
                self.discard(running.written);
                happened.has_unplaced = true;
            }
        }
        Ok(happened)
    }

    /// The devices that were lost since the last call, and why.
    pub fn take_losses(&mut self) -> Vec<(DeviceIndex, String)> {
        let losses = self.graph.take_losses();
        for (device, _) in &losses {
            self.lost[*device] = true;
        }
        let losses = losses.into_iter();
        losses
            .map(|(device, why)| (DeviceIndex(device as u32), why))
            .collect()
    }

    fn learn(&mut self, running: &Running, ended: &Ended) {
        let expected = running.expected[ended.device];
        if expected > 0.0 {
            let ratio = ended.seconds / expected;
            let key = (running.codelet.clone(), ended.device);
            let learned = self.learned.entry(key).or_insert(ratio);
            *learned += LAST * (ratio - *learned);
        }
    }

    /// Has parts copied to host memory. The result is whether all are there.
    ///
    /// # Errors
    /// Elements that are not here.
    pub fn want(&mut self, spaces: &Spaces, sources: &[Source]) -> Result<bool, ClusterError> {
        let mut are_there = true;
        for source in sources {
            let (is_there, is_asked) = self.store.want(&mut self.graph, spaces, source)?;
            are_there &= is_there;
            self.changed |= is_asked;
        }
        Ok(are_there)
    }

    /// Forgets results.
    pub fn discard(&mut self, written: Written) {
        for (_, kept) in written {
            self.graph.forget(kept.datum);
        }
    }

    /// Takes back the subtasks that no device has. They stay among those that run until all
    /// are [forgotten](Self::clear).
    pub fn revoke_all(&mut self) {
        for kernel in self.running.keys() {
            self.graph.revoke(*kernel);
        }
        self.changed = true;
    }

    /// Forgets all blocks and subtasks. No command is in flight. Returns the subtasks whose
    /// end was not told.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn clear(
        &mut self,
        runtime: &mut dyn Runtime,
    ) -> Result<Vec<(TaskId, u64)>, GraphRunError> {
        let fresh = open_graph(runtime, (self.traced.is_some(), &self.lost))?;
        std::mem::replace(&mut self.graph, fresh).release(runtime);
        self.store.clear();
        let running = (self.running.drain()).map(|(_, running)| (running.task, running.subtask));
        let ending = (self.ending.drain(..)).map(|ended| (ended.task, ended.subtask));
        let untold = running.chain(ending).collect();
        self.begun.clear();
        self.traced = self.traced.take().map(|_| Traced::default());
        Ok(untold)
    }

    /// Forgets what is done, if that is much. No task runs.
    pub fn compact(&mut self, runtime: &mut dyn Runtime) {
        if self.graph.kernels() >= MANY && self.is_idle() && self.graph.is_idle() {
            let ids = self.graph.compact(runtime);
            self.store.renumber(&ids);
            self.begun.clear();
        }
    }

    /// The bytes of results that are in host memory.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn bytes(
        &self,
        runtime: &mut dyn Runtime,
        written: &Written,
    ) -> Result<Vec<(Part, Vec<u8>)>, ClusterError> {
        let mut all = Vec::with_capacity(written.len());
        for (part, kept) in written {
            let bytes = self.graph.bytes(runtime, kept.datum)?;
            all.push((part.clone(), bytes.to_vec()));
        }
        Ok(all)
    }

    /// Releases all memory and all queues.
    pub fn close(self, runtime: &mut dyn Runtime) {
        self.graph.release(runtime);
    }
}

fn open_graph(
    runtime: &mut dyn Runtime,
    (traces, lost): (bool, &[bool]),
) -> Result<OpenGraph, GraphRunError> {
    let options = PolicyOptions {
        window: Some(DEPTH as usize),
        ..PolicyOptions::default()
    };
    OpenGraph::new(runtime, NamedPolicy::LOCALITY, options, (traces, lost))
}
