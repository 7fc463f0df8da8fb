//! A runtime that executes one command at a time, in a random order that queues and
//! wait lists allow.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::time::Duration;

use pdawl_api::codelet::HostValue;
use pdawl_api::machine::{Device, DeviceKind, RuntimeKind, SubDeviceSupport};
use pdawl_api::runtime::{
    AdoptedMemory, BufferId, Command, Completion, DeviceId, Devices, EventId, HostMemoryId,
    HostSpan, Location, Memory, Nanos, NotAdopted, Notice, PeerPath, QueueId, QueueKind, Rows,
    Runtime, RuntimeError, Status, Value,
};

use crate::random::Random;

/// A device for [`ShuffledRuntime`]; `memory` is `None` for one on host memory.
pub fn device(name: &str, memory: Option<u64>) -> Device {
    Device {
        name: name.into(),
        model: "test".into(),
        kind: if memory.is_some() {
            DeviceKind::Gpu
        } else {
            DeviceKind::Cpu
        },
        runtime: RuntimeKind::Sim,
        compute_units: 1,
        memory: memory.unwrap_or(1 << 40) / 15 * 16 + 16,
        max_allocation: 1 << 40,
        clock_mhz: None,
        shares_host_memory: memory.is_none(),
        fp64: true,
        sub_devices: SubDeviceSupport::default(),
        queues: 3,
        driver: "test".into(),
        link_bandwidth: None,
        one_way: None,
    }
}

/// A device that fails from its n-th command on.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub device: usize,
    pub after: u64,
}

struct Pending {
    event: EventId,
    queue: QueueId,
    command: Command,
    wait: Vec<EventId>,
    phase: Option<u32>,
    queued: Nanos,
}

/// Which devices with memory of their own reach another one's directly.
enum Ways {
    None,
    /// By this seed some, one way or both.
    Some(u64),
    All,
}

enum HostBlock {
    Words(Vec<u64>),
    Adopted(AdoptedMemory),
}

impl HostBlock {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Words(words) => bytemuck::cast_slice_mut(words),
            Self::Adopted(memory) => memory.as_mut_slice(),
        }
    }
}

pub struct ShuffledRuntime {
    devices: Vec<Device>,
    random: Random,
    clock: Nanos,
    fault: Option<Fault>,
    executed: Vec<u64>,
    queues: HashMap<QueueId, (usize, VecDeque<Pending>)>,
    order: Vec<QueueId>,
    /// Released queues that still have commands.
    closed: HashSet<QueueId>,
    done: HashSet<EventId>,
    failed: HashSet<EventId>,
    /// Queues with a command that failed; their further commands do not run.
    poisoned: HashSet<QueueId>,
    /// Host memory and its length in bytes.
    host: HashMap<HostMemoryId, (HostBlock, usize)>,
    buffers: HashMap<BufferId, (usize, Vec<u64>)>,
    /// Direct ways between devices with memory of their own.
    ways: Ways,
    /// Bytes copied directly.
    pub peer_bytes: u64,
    /// The phase that has begun.
    phase: Option<u32>,
    /// Units launched, by the phase in which that was submitted.
    pub launched: Vec<(Option<u32>, Range<u64>)>,
    /// Largest number of bytes ever allocated on a device.
    pub most_allocated: Vec<u64>,
}

impl ShuffledRuntime {
    pub fn new(devices: Vec<Device>, seed: u64, fault: Option<Fault>) -> Self {
        Self {
            executed: vec![0; devices.len()],
            most_allocated: vec![0; devices.len()],
            devices,
            random: Random::new(seed),
            clock: 0,
            fault,
            queues: HashMap::new(),
            order: Vec::new(),
            closed: HashSet::new(),
            done: HashSet::new(),
            failed: HashSet::new(),
            poisoned: HashSet::new(),
            host: HashMap::new(),
            buffers: HashMap::new(),
            ways: Ways::None,
            peer_bytes: 0,
            phase: None,
            launched: Vec::new(),
        }
    }

    /// With ways between devices with memory of their own: no two devices, or some of them,
    /// one way or both.
    pub fn with_ways(self, seed: u64) -> Self {
        Self {
            ways: Ways::Some(seed),
            ..self
        }
    }

    /// With a direct way from each device with memory of its own to each other one.
    pub fn with_all_ways(self) -> Self {
        Self {
            ways: Ways::All,
            ..self
        }
    }

    /// Whether a command reads a lost device's memory.
    fn reads_lost_memory(&self, command: &Command) -> bool {
        match command {
            Command::Copy { from, .. } => match from.memory {
                Memory::Device(buffer) => self.lost(self.buffers[&buffer].0),
                Memory::Host(_) => false,
            },
            _ => false,
        }
    }

    /// Whether everything that was created has been released. Commands for which nobody has
    /// waited end first: a device may refuse a kernel after it took the copy before it.
    pub fn is_bare(&mut self) -> bool {
        while self.wait(None).expect("it never fails").is_some() {}
        self.queues.is_empty() && self.host.is_empty() && self.buffers.is_empty()
    }

    /// Whether a command that has not run uses a part of this host memory.
    fn is_used(&self, wanted: &HostSpan) -> bool {
        let mut pending = self.queues.values().flat_map(|(_, queue)| queue);
        pending.any(|p| p.command.host_spans().any(|span| span.overlaps(wanted)))
    }

    fn forget_closed(&mut self) {
        let queues = &mut self.queues;
        self.closed.retain(|queue| {
            let busy = queues.get(queue).is_some_and(|(_, line)| !line.is_empty());
            if !busy {
                queues.remove(queue);
            }
            busy
        });
        self.order.retain(|queue| queues.contains_key(queue));
    }

    fn lost(&self, device: usize) -> bool {
        self.fault
            .is_some_and(|f| f.device == device && self.executed[device] >= f.after)
    }

    fn address(&mut self, memory: Memory) -> (*mut u8, u64) {
        let bytes = match memory {
            Memory::Host(id) => (self.host.get_mut(&id).expect("host memory exists").0).bytes(),
            Memory::Device(id) => {
                let words = &mut self.buffers.get_mut(&id).expect("buffer exists").1;
                bytemuck::cast_slice_mut(words)
            }
        };
        (bytes.as_mut_ptr(), bytes.len() as u64)
    }

    fn copy(&mut self, from: Location, to: Location, rows: Rows) {
        if let (Memory::Device(_), Memory::Device(_)) = (from.memory, to.memory) {
            self.peer_bytes += rows.total();
        }
        let [read, written] = rows.spans();
        let (source, length) = self.address(from.memory);
        assert!(from.offset + read <= length, "read past the end");
        let (target, length) = self.address(to.memory);
        assert!(to.offset + written <= length, "written past the end");
        for row in 0..rows.count {
            // SAFETY: both ranges were just checked, and are of different memories.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    source.add((from.offset + row * rows.from_pitch) as usize),
                    target.add((to.offset + row * rows.to_pitch) as usize),
                    rows.bytes as usize,
                );
            }
        }
    }

    fn execute(&mut self, device: usize, command: &Command) {
        match command {
            Command::Copy { from, to, rows } => self.copy(*from, *to, *rows),
            Command::Series(_) | Command::Graph(_) => panic!("one command at a time"),
            Command::Launch(_) | Command::Repeat(_) => {
                let launch = command.launches().next().expect("a launch");
                let args: Vec<HostValue> = launch
                    .args
                    .iter()
                    .map(|arg| match *arg {
                        Value::Memory(memory) | Value::ReadOnly(memory) => {
                            assert_eq!(
                                matches!(memory, Memory::Host(_)),
                                self.devices[device].shares_host_memory,
                                "memory that the device cannot reach"
                            );
                            let (address, bytes) = self.address(memory);
                            HostValue::Memory { address, bytes }
                        }
                        other => other.plain().expect("a plain value"),
                    })
                    .collect();
                let host = launch.codelet.host.as_ref();
                let host = host.expect("a host implementation");
                // SAFETY: nothing else runs, and the memory exists.
                unsafe { host.run(&args, launch.units.start, launch.units.clone()) };
            }
        }
    }
}

impl Devices for ShuffledRuntime {
    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn peer_path(&self, from: DeviceId, to: DeviceId) -> Option<PeerPath> {
        let has_memory = |id: DeviceId| !self.devices[id.0].shares_host_memory;
        if from == to || !has_memory(from) || !has_memory(to) {
            return None;
        }
        let kind = match self.ways {
            Ways::None => 0,
            Ways::Some(seed) => Random::new(seed ^ (from.0 * 8 + to.0) as u64).below(4),
            Ways::All => 2,
        };
        (kind > 0).then_some(PeerPath {
            bandwidth: 1e9,
            through_host: kind == 1,
        })
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        let id = BufferId::fresh();
        self.buffers
            .insert(id, (device.0, vec![u64::MAX; bytes.div_ceil(8) as usize]));
        let used = self
            .buffers
            .values()
            .filter(|(d, _)| *d == device.0)
            .map(|(_, words)| words.len() as u64 * 8)
            .sum();
        self.most_allocated[device.0] = self.most_allocated[device.0].max(used);
        Ok(id)
    }

    fn free(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer);
    }

    fn open_queue(&mut self, device: DeviceId, _kind: QueueKind) -> Result<QueueId, RuntimeError> {
        let id = QueueId::fresh();
        self.queues.insert(id, (device.0, VecDeque::new()));
        self.order.push(id);
        Ok(id)
    }

    fn free_queue(&mut self, queue: QueueId) {
        assert!(self.queues.contains_key(&queue), "released once");
        self.closed.insert(queue);
        self.forget_closed();
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        self.clock += 1;
        let event = event.unwrap_or_else(EventId::fresh);
        if self.closed.contains(&queue) || !self.queues.contains_key(&queue) {
            return Err(RuntimeError::Unknown { what: "queue" });
        }
        let device = self.queues[&queue].0;
        if self.lost(device) && self.random.below(2) == 0 {
            return Err(RuntimeError::DeviceLost {
                device: self.devices[device].name.clone(),
                why: "pulled out".into(),
            });
        }
        let pending = Pending {
            event,
            queue,
            command,
            wait: wait.to_vec(),
            phase: self.phase,
            queued: self.clock,
        };
        self.queues
            .get_mut(&queue)
            .expect("queue exists")
            .1
            .push_back(pending);
        Ok(())
    }

    fn notify(&mut self, notice: Notice) {
        if let Notice::PhaseBegins(phase) = notice {
            self.phase = Some(phase);
        }
    }
}

impl Runtime for ShuffledRuntime {
    fn now(&self) -> Nanos {
        self.clock
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError> {
        let id = HostMemoryId::fresh();
        let words = vec![u64::MAX; bytes.div_ceil(8) as usize];
        let block = HostBlock::Words(words);
        self.host.insert(id, (block, bytes as usize));
        Ok(id)
    }

    fn free_host(&mut self, memory: HostMemoryId) {
        self.host.remove(&memory);
    }

    fn adopt_host(&mut self, mut memory: AdoptedMemory) -> Result<HostMemoryId, NotAdopted> {
        let id = HostMemoryId::fresh();
        let bytes = memory.as_mut_slice().len();
        self.host.insert(id, (HostBlock::Adopted(memory), bytes));
        Ok(id)
    }

    fn take_host(&mut self, memory: HostMemoryId) -> Result<AdoptedMemory, RuntimeError> {
        if self.is_used(&HostSpan::new(memory, 0..u64::MAX)) {
            return Err(RuntimeError::Busy);
        }
        match self.host.remove(&memory) {
            Some((HostBlock::Adopted(memory), _)) => Ok(memory),
            Some((HostBlock::Words(_), _)) => panic!("the runtime allocated it"),
            None => Err(RuntimeError::Unknown { what: "memory" }),
        }
    }

    fn host_range(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<&mut [u8], RuntimeError> {
        let wanted = HostSpan::new(memory, range.clone());
        if self.is_used(&wanted) {
            return Err(RuntimeError::Busy);
        }
        let (block, bytes) = self
            .host
            .get_mut(&memory)
            .ok_or(RuntimeError::Unknown { what: "memory" })?;
        let end = range.end.min(*bytes as u64) as usize;
        Ok(&mut block.bytes()[range.start as usize..end])
    }

    fn host_read(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<&[u8], RuntimeError> {
        let wanted = HostSpan::new(memory, range.clone());
        let mut pending = self.queues.values().flat_map(|(_, queue)| queue);
        let is_written = pending.any(|p| {
            let mut spans = p.command.host_spans();
            spans.any(|span| span.is_written && span.overlaps(&wanted))
        });
        if is_written {
            return Err(RuntimeError::Busy);
        }
        let (block, bytes) =
            (self.host.get_mut(&memory)).ok_or(RuntimeError::Unknown { what: "memory" })?;
        let end = range.end.min(*bytes as u64) as usize;
        Ok(&block.bytes()[range.start as usize..end])
    }

    fn wait(&mut self, _timeout: Option<Duration>) -> Result<Option<Completion>, RuntimeError> {
        let ready: Vec<QueueId> = self
            .order
            .iter()
            .copied()
            .filter(|q| {
                let head = self.queues[q].1.front();
                head.is_some_and(|p| p.wait.iter().all(|e| self.done.contains(e)))
            })
            .collect();
        if ready.is_empty() {
            let stuck = self.queues.values().any(|(_, q)| !q.is_empty());
            assert!(!stuck, "commands wait for each other");
            return Ok(None);
        }
        let queue = ready[self.random.below(ready.len() as u64) as usize];
        let (device, queued) = self.queues.get_mut(&queue).expect("queue exists");
        let (device, mut pending) = (*device, queued.pop_front().expect("a head"));
        let started = self.clock;
        self.clock += 1 + self.random.below(9);
        let lost = self.lost(device);
        let failed = lost
            || self.poisoned.contains(&queue)
            || self.reads_lost_memory(&pending.command)
            || pending.wait.iter().any(|e| self.failed.contains(e));
        self.executed[device] += 1;
        let rest = rest_of(&mut pending.command);
        if failed {
            self.failed.insert(pending.event);
            self.poisoned.insert(queue);
        } else {
            self.execute(device, &pending.command);
            for launch in pending.command.launches() {
                // What folds changes has cells for units.
                if !launch.codelet.name.ends_with("-fold-changes") {
                    self.launched.push((pending.phase, launch.units.clone()));
                }
            }
        }
        if let Some(rest) = rest.filter(|_| !failed) {
            // Commands of other queues may run in between.
            pending.command = rest;
            self.queues
                .get_mut(&queue)
                .expect("queue exists")
                .1
                .push_front(pending);
            return self.wait(None);
        }
        self.forget_closed();
        self.done.insert(pending.event);
        Ok(Some(Completion {
            event: pending.event,
            device: DeviceId(device),
            queue: pending.queue,
            kind: pending.command.kind(),
            bytes: pending.command.bytes(),
            queued: pending.queued,
            submitted: pending.queued,
            started,
            ended: self.clock,
            stages: None,
            workers: None,
            status: if lost {
                Status::DeviceLost("pulled out".into())
            } else if failed {
                Status::Skipped
            } else {
                Status::Done
            },
        }))
    }
}

/// Leaves the first command of a series, and returns the others.
fn rest_of(command: &mut Command) -> Option<Command> {
    let Command::Series(commands) = command else {
        return None;
    };
    let rest = commands.split_off(1);
    *command = commands.pop().expect("at least one command");
    (!rest.is_empty()).then_some(Command::Series(rest))
}
