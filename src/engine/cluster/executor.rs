//! The devices of a node: they compute subtasks.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::copying::Copying;
use super::device_memory::DeviceMemory;
use super::error::ClusterError;
use super::inputs::{HostPool, Inputs};
use super::store::Store;
use super::traced::{Issued, Traced};
use crate::cluster::protocol::DeviceIndex;
use crate::cluster::space::{Part, Spaces};
use crate::cluster::task::{Computed, TaskId};
use crate::engine::membership::Membership;
use crate::runtime::{
    BufferId, Command, Completion, DeviceId, EventId, HostMemoryId, Launch, Memory, Nanos, QueueId,
    Runtime, RuntimeError, Status,
};

/// Subtasks that are at once on a device with memory of its own: one computes while the
/// data of the next arrive and those of the one before leave.
pub const DEPTH: u32 = 3;

/// The part of a device's memory that inputs may fill. The rest is for results and for
/// what the driver needs.
const INPUT_MEMORY: f64 = 0.6;

/// The memory arguments that a subtask reads: the parts of each. What it changes is none of
/// them.
fn read_arguments(
    task: &dyn Computed,
    subtask: u64,
    writes: &[Part],
    changed: &[bool],
) -> Vec<Vec<Part>> {
    let mut reads = task.reads(subtask);
    let changes = writes.iter().zip(changed).filter(|(_, changed)| **changed);
    for (part, _) in changes {
        if let Some(at) = reads.iter().rposition(|read| read == part) {
            reads.remove(at);
        }
    }
    match task.gathers() {
        true => reads
            .chunk_by(|a, b| a.space == b.space)
            .map(<[Part]>::to_vec)
            .collect(),
        false => reads.into_iter().map(|part| vec![part]).collect(),
    }
}

/// The end of a subtask.
pub(super) struct Ended {
    pub device: DeviceIndex,
    pub task: TaskId,
    pub subtask: u64,
    pub took: Nanos,
    /// What it wrote, or why the device is lost.
    pub result: Result<Vec<(Part, Vec<u8>)>, String>,
}

pub(super) struct Executor {
    devices: Vec<Device>,
    copying: Arc<Copying>,
    pool: HostPool,
    inputs: Inputs,
    /// What one subtask reads, and no later one.
    read_once: HashSet<Vec<Part>>,
    running: HashMap<u64, Running>,
    /// The subtask of each event, and the command.
    events: HashMap<EventId, (u64, Issued)>,
    next: u64,
    /// Of a run that is traced.
    pub traced: Option<Traced>,
}

struct Device {
    id: DeviceId,
    membership: Membership,
    /// Its queues; one where it computes in host memory.
    queues: Vec<QueueId>,
    turn: usize,
    memory: Option<DeviceMemory>,
}

/// A subtask on a device.
struct Running {
    device: usize,
    task: TaskId,
    subtask: u64,
    /// The host memory of each argument that it reads.
    inputs: Vec<HostMemoryId>,
    outputs: Vec<Output>,
    /// Commands that have not ended.
    pending: usize,
    began: Option<Nanos>,
    ended: Nanos,
    failure: Option<String>,
}

/// What a subtask writes.
struct Output {
    part: Part,
    bytes: u64,
    memory: HostMemoryId,
    /// Its place in host memory, and in that of a device with its own.
    host: Room,
    device: Room,
    /// Whether it begins with some contents.
    has_contents: bool,
    buffer: Option<BufferId>,
}

/// The place of a part in memory, in bytes.
#[derive(Clone, Copy)]
struct Room {
    at: u64,
    /// Bytes of the memory.
    length: u64,
}

impl Output {
    fn in_host(&self) -> Range<u64> {
        self.host.at..self.host.at + self.bytes
    }
}

impl Executor {
    /// Opens the queues of all devices.
    pub fn open(
        runtime: &mut dyn Runtime,
        copying: Arc<Copying>,
        input_bytes: u64,
        traces: bool,
    ) -> Result<Self, RuntimeError> {
        let found: Vec<(bool, u64)> = (runtime.devices().iter())
            .map(|device| (device.shares_host_memory, device.memory))
            .collect();
        let mut devices = Vec::new();
        for (index, (shares, memory)) in found.into_iter().enumerate() {
            let id = DeviceId(index);
            let lanes = if shares { 1 } else { DEPTH };
            let queues = (0..lanes)
                .map(|_| runtime.queue(id))
                .collect::<Result<_, _>>()?;
            devices.push(Device {
                id,
                membership: Membership::begin(runtime, id),
                queues,
                turn: 0,
                memory: (!shares).then(|| DeviceMemory::new((memory as f64 * INPUT_MEMORY) as u64)),
            });
        }
        let pinned = devices.iter().any(|device| device.memory.is_some());
        Ok(Self {
            devices,
            pool: HostPool::new(Arc::clone(&copying), pinned),
            copying,
            inputs: Inputs::new(input_bytes),
            read_once: HashSet::new(),
            running: HashMap::new(),
            events: HashMap::new(),
            next: 0,
            traced: traces.then(Traced::default),
        })
    }

    /// A task begins. Of the last one of a run, what a single subtask reads need not be kept.
    pub fn begin(&mut self, task: &dyn Computed, is_last: bool) {
        self.read_once.clear();
        if !is_last {
            return;
        }
        let mut again = HashSet::new();
        for subtask in 0..task.count() {
            let (writes, changed) = (task.writes(subtask), task.changes(subtask));
            for parts in read_arguments(task, subtask, &writes, &changed) {
                if !again.contains(&parts) && !self.read_once.insert(parts.clone()) {
                    self.read_once.remove(&parts);
                    again.insert(parts);
                }
            }
        }
    }

    /// Starts a subtask on a device. What it reads is in the store.
    ///
    /// # Errors
    /// What the runtime refuses, such as a kernel that does not compile, and blocks without
    /// contents.
    pub fn start(
        &mut self,
        runtime: &mut dyn Runtime,
        (store, spaces): (&Store, &Spaces),
        (id, task): (TaskId, &dyn Computed),
        index: DeviceIndex,
        subtask: u64,
    ) -> Result<(), ClusterError> {
        let which = index.0 as usize;
        if let Some(why) = self.devices[which].membership.ended(runtime) {
            return Err(ClusterError::Runtime(RuntimeError::DeviceLost {
                device: runtime.devices()[which].name.clone(),
                why: why.to_owned(),
            }));
        }
        // What a subtask changes is one argument: a copy of its own.
        let (writes, changed) = (task.writes(subtask), task.changes(subtask));
        let arguments = read_arguments(task, subtask, &writes, &changed);
        let mut forgotten = Vec::new();
        let mut inputs = Vec::with_capacity(arguments.len());
        for parts in &arguments {
            let (pool, from) = (&mut self.pool, (store, spaces));
            let parts = (&parts[..], self.read_once.contains(parts));
            let input = self
                .inputs
                .take(runtime, pool, from, parts, &mut forgotten)?;
            inputs.push(input);
        }
        self.forget(runtime, &forgotten);
        let mut outputs = Vec::new();
        let has_own = self.devices[which].memory.is_some();
        for (part, is_changed) in writes.into_iter().zip(changed) {
            let (extent, bytes) = (spaces.extent(part.space), spaces.bytes(&part));
            let alone = Room {
                at: 0,
                length: bytes,
            };
            let device = match task.keeps_places() {
                true => Room {
                    at: extent.offset(&part.block),
                    length: extent.bytes(&extent.whole()),
                },
                false => alone,
            };
            let host = if has_own { alone } else { device };
            let memory = self.pool.take(runtime, host.length)?;
            let mut output = Output {
                part,
                bytes,
                memory,
                host,
                device,
                has_contents: is_changed,
                buffer: None,
            };
            let to = runtime.host_range(memory, output.in_host())?;
            match is_changed {
                true => store.copy(spaces, &output.part, to)?,
                false => output.has_contents = task.begin(&output.part, to),
            }
            outputs.push(output);
        }
        let device = &mut self.devices[which];
        let lane = device.turn % device.queues.len();
        let queue = device.queues[lane];
        device.turn += 1;
        let now = runtime.now();
        let mut waits = Vec::new();
        let mut commands = Vec::new();
        let mut memories = Vec::new();
        let mut events = Vec::new();
        for (parts, memory) in arguments.iter().zip(&inputs) {
            memories.push(match &mut device.memory {
                None => Memory::Host(*memory),
                Some(own) => {
                    let bytes = parts.iter().map(|part| spaces.bytes(part)).sum();
                    let (buffer, event, is_new) = own.input(runtime, device.id, *memory, bytes)?;
                    if is_new {
                        let command = Command::write(*memory, 0..bytes, buffer, 0);
                        let issued = Issued::of(&command, lane, now);
                        let event = runtime.enqueue(queue, command, &[])?;
                        own.writes(*memory, event);
                        events.push((event, issued));
                    } else {
                        waits.extend(event);
                    }
                    Memory::Device(buffer)
                }
            });
        }
        for output in &mut outputs {
            memories.push(match &mut device.memory {
                None => Memory::Host(output.memory),
                Some(own) => {
                    let room = output.device;
                    let buffer = own.take(runtime, device.id, room.length)?;
                    output.buffer = Some(buffer);
                    if output.has_contents {
                        let from = output.in_host();
                        commands.push(Command::write(output.memory, from, buffer, room.at));
                    }
                    Memory::Device(buffer)
                }
            });
        }
        let launch = task.launch(subtask);
        let one = |part: &Part| (part.block.width(), spaces.extent(part.space).element);
        let read = arguments.iter().filter_map(|parts| parts.first().map(one));
        let written = outputs.iter().map(|output| one(&output.part));
        let blocks: Vec<(u64, u64)> = read.chain(written).collect();
        let values = launch
            .values
            .iter()
            .map(|value| value.compact(&memories, &blocks));
        commands.push(Command::Launch(Launch {
            codelet: Arc::clone(&launch.codelet),
            units: launch.units,
            args: {
                let values = values.collect();
                task.arguments(memories, values)
            },
            cost: task.cost(subtask),
        }));
        let reads_back = outputs.iter().filter_map(|output| {
            let (from, to) = (output.device.at, output.in_host());
            Some(Command::read(output.buffer?, from, output.memory, to))
        });
        commands.extend(reads_back);
        for command in commands {
            let issued = Issued::of(&command, lane, now);
            events.push((runtime.enqueue(queue, command, &waits)?, issued));
            waits.clear();
        }
        let number = self.next;
        self.next += 1;
        let pending = events.len();
        let events = events.into_iter();
        self.events
            .extend(events.map(|(event, issued)| (event, (number, issued))));
        let running = Running {
            device: which,
            subtask,
            task: id,
            inputs,
            outputs,
            pending,
            began: None,
            ended: 0,
            failure: None,
        };
        self.running.insert(number, running);
        Ok(())
    }

    /// Whether nothing runs.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Takes a completion. The result is the subtask that has ended with it.
    pub fn complete(
        &mut self,
        runtime: &mut dyn Runtime,
        completion: &Completion,
    ) -> Result<Option<Ended>, ClusterError> {
        let Some((number, issued)) = self.events.remove(&completion.event) else {
            return Ok(None);
        };
        let Some(running) = self.running.get_mut(&number) else {
            return Ok(None);
        };
        running.pending -= 1;
        let began = running.began.get_or_insert(completion.started);
        *began = (*began).min(completion.started);
        running.ended = running.ended.max(completion.ended);
        if let Some(traced) = &mut self.traced
            && completion.status == Status::Done
        {
            traced.ended(running.device, running.subtask, issued, completion);
        }
        match &completion.status {
            Status::Done => {
                if let Some(own) = &mut self.devices[running.device].memory {
                    own.written(completion.event);
                }
            }
            Status::Failed(why) | Status::DeviceLost(why) => {
                running.failure.get_or_insert_with(|| why.clone());
            }
            Status::Skipped => {
                let why = || "a command before it failed".to_owned();
                running.failure.get_or_insert_with(why);
            }
        }
        if running.pending > 0 {
            return Ok(None);
        }
        let Some(running) = self.running.remove(&number) else {
            return Ok(None);
        };
        self.end(runtime, running).map(Some)
    }

    fn end(&mut self, runtime: &mut dyn Runtime, running: Running) -> Result<Ended, ClusterError> {
        let device = &mut self.devices[running.device];
        let mut forgotten = Vec::new();
        for memory in &running.inputs {
            if let Some(own) = &mut device.memory {
                own.leave(*memory);
            }
            self.inputs
                .give_back(*memory, &mut self.pool, &mut forgotten);
        }
        let mut results = Vec::new();
        for output in running.outputs {
            if running.failure.is_none() {
                let bytes = runtime.host_range(output.memory, output.in_host())?;
                results.push((output.part, self.copying.bytes(bytes)));
            }
            self.pool.give_back(output.memory, output.host.length);
            if let (Some(own), Some(buffer)) = (&mut device.memory, output.buffer) {
                own.give_back(buffer, output.device.length);
            }
        }
        self.forget(runtime, &forgotten);
        Ok(Ended {
            device: DeviceIndex(running.device as u32),
            task: running.task,
            subtask: running.subtask,
            took: running
                .ended
                .saturating_sub(running.began.unwrap_or(running.ended)),
            result: running.failure.map_or(Ok(results), Err),
        })
    }

    /// Forgets inputs of blocks that have changed.
    pub fn changed(&mut self, runtime: &mut dyn Runtime, is_old: impl Fn(&Part) -> bool) {
        let mut forgotten = Vec::new();
        self.inputs
            .forget_where(&mut self.pool, &mut forgotten, is_old);
        self.forget(runtime, &forgotten);
    }

    fn forget(&mut self, runtime: &mut dyn Runtime, memories: &[HostMemoryId]) {
        for device in &mut self.devices {
            if let Some(own) = &mut device.memory {
                for memory in memories {
                    own.forget(runtime, *memory);
                }
            }
        }
    }

    /// Releases all memory and all queues.
    pub fn close(mut self, runtime: &mut dyn Runtime) {
        self.changed(runtime, |_| true);
        self.pool.release(runtime);
        for device in self.devices {
            for queue in device.queues {
                runtime.free_queue(queue);
            }
            if let Some(own) = device.memory {
                own.release(runtime);
            }
        }
    }
}
