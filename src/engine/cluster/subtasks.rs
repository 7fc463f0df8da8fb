//! The subtasks of a node: kernels of an open graph on the blocks that the node has.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::ClusterError;
use super::copying::Copying;
use super::parts::{Divided, Tried};
use super::store::{Kept, Resolve, Store};
use super::traced::Traced;
use crate::codelet::{Codelet, Memory, Name, Value};
use crate::graph::{Ended, GraphRunError, OpenGraph, abilities_of};
use crate::policy::{NamedPolicy, PolicyOptions};
use crate::runtime::{Completion, HostMemoryId, Runtime};
use crate::time::Nanos;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::info::DeviceInfo;
use pdawl_core::cluster::protocol::DeviceIndex;
use pdawl_core::cluster::space::{SpaceBlock, Spaces};
use pdawl_core::cluster::task::chain::{Chain, Source};
use pdawl_core::cluster::task::{Beginning, Computed, TaskId};
use pdawl_core::graph::{Argument, Datum, Kernel, KernelId};

/// Subtasks that are at once on a device with memory of its own: one computes while the
/// data of the next arrive and those of the one before leave.
pub const DEPTH: u32 = 3;

/// Kernels after which those that are done are forgotten, at the end of a task.
const MANY: usize = 1 << 10;

/// The weight of the last measurement among those of a device.
const LAST: f64 = 0.3;

/// The most subtasks that are here for one to be divided. More keep all devices busy, or
/// nearly.
pub(super) const FEW: usize = 64;

/// What a subtask wrote, or writes.
pub(super) type Written = Vec<(SpaceBlock, Kept)>;

/// The end of a subtask.
pub(super) struct EndedSubtask {
    /// The device that has computed it, or the greatest part of it, and how long that takes or
    /// would take for all of it.
    pub device: DeviceIndex,
    pub took: Nanos,
    pub task: TaskId,
    pub subtask: u64,
    /// The devices that have computed it or parts of it, and how long that took.
    pub parts: Vec<(DeviceIndex, Nanos)>,
    pub written: Written,
}

/// What happened since the last turn.
#[derive(Default)]
pub(super) struct Happened {
    pub ended: Vec<EndedSubtask>,
    /// Whether no device is left for some subtasks.
    pub has_unplaced: bool,
    /// Subtasks of which a device was to compute a part that was lost.
    pub undone: Vec<(TaskId, u64)>,
}

/// A subtask that has begun.
pub(super) struct Running {
    pub task: TaskId,
    pub subtask: u64,
    pub codelet: String,
    /// The seconds that its cost lets expect, by device.
    pub expected: Vec<f64>,
    pub written: Written,
    /// Whether the host needs what it writes at once.
    reduces: bool,
    /// The part of the subtask's work; `None` for all of it.
    pub fraction: Option<f64>,
    /// It is a part of a subtask that is not done by parts any longer.
    pub is_useless: bool,
}

/// A subtask of a chain.
#[derive(Clone, Copy)]
pub(super) struct OfChain<'a> {
    pub id: TaskId,
    pub chain: &'a Chain,
    pub subtask: u64,
    /// Its task.
    pub task: &'a dyn Computed,
}

impl OfChain<'_> {
    /// The index of its task, and its number there.
    pub fn place(&self) -> (usize, u64) {
        self.chain.place(self.subtask)
    }
}

/// What a kernel of the graph computes.
pub(super) struct Computing<'a> {
    /// The subtask that it belongs to.
    pub of: OfChain<'a>,
    /// All of the subtask, or a part of it, and its number there.
    pub task: &'a dyn Computed,
    pub number: u64,
    /// Of a part: the device that computes it, and its part of the work.
    pub only: Option<(usize, f64)>,
}

/// The subtasks of a node, with its blocks.
pub(super) struct Subtasks {
    pub graph: OpenGraph,
    pub store: Store,
    pub(super) devices: Vec<DeviceInfo>,
    /// By device.
    lost: Vec<bool>,
    pub(super) running: HashMap<KernelId, Running>,
    pub(super) divided: HashMap<(TaskId, u64), Divided>,
    /// Subtasks that have ended, and whose results are on their way to the host.
    ending: Vec<EndedSubtask>,
    /// By codelet and device: measured seconds in one that was expected.
    pub(super) learned: HashMap<(String, usize), f64>,
    /// By codelet.
    pub(super) tried: HashMap<String, Tried>,
    /// Whether something has changed that the graph does not know.
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
            divided: HashMap::new(),
            ending: Vec::new(),
            learned: HashMap::new(),
            tried: HashMap::new(),
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
        let running = self.running.values().filter(|r| !r.is_useless);
        let running = running.map(|r| (r.task, r.subtask));
        let ending = self.ending.iter().map(|e| (e.task, e.subtask));
        running.chain(ending).any(|other| other == (task, subtask))
    }

    /// Whether several devices are left.
    pub fn are_several(&self) -> bool {
        self.lost.iter().filter(|lost| !**lost).count() > 1
    }

    /// Begins a subtask, on the device that the policy chooses, or on several if that pays.
    /// What it reads is in the store. `present` are all subtasks of the chain that are here, if
    /// they are at most [`FEW`]. False if no device can compute it.
    ///
    /// # Errors
    /// Blocks without contents, parts that cannot be computed, and what the runtime refuses.
    pub fn start(
        &mut self,
        runtime: &mut dyn Runtime,
        spaces: &Spaces,
        of: OfChain,
        present: Option<&[u64]>,
    ) -> Result<bool, ClusterError> {
        let parts = match present {
            Some(present) => self.parts(runtime, spaces, &of, present),
            None => None,
        };
        let Some(parts) = parts else {
            let whole = Computing {
                task: of.task,
                number: of.place().1,
                of,
                only: None,
            };
            return self.begin(runtime, spaces, &whole);
        };
        self.begin_parts(runtime, spaces, of, parts)?;
        Ok(true)
    }

    /// Begins a kernel for a subtask, or for a part of it.
    pub(super) fn begin(
        &mut self,
        runtime: &mut dyn Runtime,
        spaces: &Spaces,
        computing: &Computing,
    ) -> Result<bool, ClusterError> {
        let Computing {
            of,
            task,
            number: subtask,
            only,
        } = *computing;
        let resolve: Resolve = &|part| of.chain.sources_of(of.subtask, part);
        let launch = task.launch(subtask);
        let cost = task.cost(subtask);
        let expected: Vec<f64> = (self.devices.iter())
            .map(|device| device.seconds(cost, cost.bytes))
            .collect();
        let mut seconds = self.seconds(runtime, &launch.codelet, &expected);
        if let Some((only, _)) = only {
            let others = seconds.iter_mut().enumerate();
            others
                .filter(|(device, _)| *device != only)
                .for_each(|(_, seconds)| *seconds = None);
        }
        if seconds.iter().all(Option::is_none) {
            return Ok(false);
        }
        let (writes, changed) = (task.writes(subtask), task.changes(subtask));
        let mut data = Vec::new();
        let mut arguments = Vec::new();
        let mut blocks = Vec::new();
        let one = |part: &SpaceBlock| (part.block.width(), spaces.extent(part.space).element);
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
                writer: Some(of.subtask),
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
            self.begun.insert(kernel, of.place());
        }
        self.running.insert(
            kernel,
            Running {
                task: of.id,
                subtask: of.subtask,
                codelet,
                expected,
                written,
                reduces: task.reduces(),
                fraction: only.map(|(_, fraction)| fraction),
                is_useless: false,
            },
        );
        Ok(true)
    }

    /// The seconds that a kernel is expected to take on each device that can run it.
    pub(super) fn seconds(
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
            if running.is_useless {
                self.discard(running.written);
                continue;
            }
            self.learn(&running, &ended);
            let reduces = running.reduces;
            let Some(ended) = self.ended(running, &ended) else {
                // Other parts of the subtask follow.
                continue;
            };
            match reduces {
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
            let Some(running) = self.running.remove(&kernel) else {
                continue;
            };
            self.discard(running.written);
            if running.fraction.is_none() {
                happened.has_unplaced = true;
            } else if !running.is_useless {
                let id = (running.task, running.subtask);
                self.undo(id);
                happened.undone.push(id);
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
    pub fn want<'s>(
        &mut self,
        spaces: &Spaces,
        sources: impl Iterator<Item = &'s Source>,
    ) -> Result<bool, ClusterError> {
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
    /// end was not reported.
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
        let unreported: BTreeSet<(TaskId, u64)> = running.chain(ending).collect();
        let unreported = unreported.into_iter().collect();
        self.divided.clear();
        self.begun.clear();
        self.traced = self.traced.take().map(|_| Traced::default());
        Ok(unreported)
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
    ) -> Result<Vec<(SpaceBlock, Vec<u8>)>, ClusterError> {
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
