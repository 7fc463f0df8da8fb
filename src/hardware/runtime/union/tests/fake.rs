//! Backends that complete what the test chooses, and copy the data then.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, unbounded};

use crate::machine::{Device, DeviceKind, RuntimeKind, SubDeviceSupport};
use crate::runtime::union::Union;
use crate::runtime::{
    Backend, BufferId, Command, Completion, DeviceId, Devices, EventId, HostMemoryId, HostRegion,
    Location, Memory, QueueId, QueueKind, Runtime, RuntimeError, Status,
};

/// What a fake backend was asked to do and has not done.
pub struct Fake {
    pub completions: Sender<Completion>,
    pub queues: HashMap<QueueId, DeviceId>,
    /// In submission order: event, queue, waits, command.
    pub pending: Vec<(EventId, QueueId, Vec<EventId>, Command)>,
    pub seen: HashSet<EventId>,
    pub failed: HashSet<EventId>,
    pub failed_queues: HashSet<QueueId>,
    pub known: HashMap<HostMemoryId, NonNull<u8>>,
    pub buffers: HashMap<BufferId, Vec<u8>>,
    pub freed: HashSet<QueueId>,
    /// Whether a look at the devices finds them lost.
    pub silent: bool,
    pub refuses: bool,
    pub refuses_memory: bool,
    /// Whether commands can be submitted without an event, and the queues of
    /// those that were.
    pub omits_events: bool,
    pub without_event: Vec<QueueId>,
}

impl Fake {
    /// The commands that could end now.
    pub fn ready(&self) -> Vec<EventId> {
        let waits = |event: &EventId| self.pending.iter().any(|p| p.0 == *event);
        let first = |at: usize| {
            let queue = self.pending[at].1;
            self.pending[..at].iter().all(|before| before.1 != queue)
        };
        (0..self.pending.len())
            .filter(|at| first(*at) && !self.pending[*at].2.iter().any(waits))
            .map(|at| self.pending[at].0)
            .collect()
    }

    /// Ends a command, as a device would.
    pub fn end(&mut self, event: EventId, fails: bool) {
        let at = self.pending.iter().position(|p| p.0 == event).unwrap();
        let (_, queue, wait, command) = self.pending.remove(at);
        let passed_on = self.failed_queues.contains(&queue)
            || wait.iter().any(|event| self.failed.contains(event));
        let status = if passed_on {
            Status::Skipped
        } else if fails {
            Status::Failed("on purpose".to_owned())
        } else {
            self.copy(&command);
            Status::Done
        };
        if status != Status::Done {
            self.failed.insert(event);
            self.failed_queues.insert(queue);
        }
        let completion = Completion {
            status,
            ..Completion::of(&command, event, (self.queues[&queue], queue), 0)
        };
        self.completions.send(completion).unwrap();
    }

    /// Copies the data, unless a memory was freed meanwhile.
    fn copy(&mut self, command: &Command) {
        let Command::Copy { from, to, rows } = command else {
            return;
        };
        let [source, target] = [from, to].map(|Location { memory, offset }| {
            let first = match memory {
                Memory::Host(id) => self.known.get(id)?.as_ptr(),
                Memory::Device(id) => self.buffers.get_mut(id)?.as_mut_ptr(),
            };
            // SAFETY: the tests copy within what they allocated.
            Some(unsafe { first.add(*offset as usize) })
        });
        if let (Some(source), Some(target)) = (source, target) {
            // SAFETY: as above; the test's thread alone uses the memory.
            unsafe { std::ptr::copy(source, target, rows.total() as usize) };
        }
    }
}

/// The backend's end of a [`Fake`]; the test keeps the other.
struct Handle(Rc<RefCell<Fake>>, Vec<Device>, bool);

impl Devices for Handle {
    fn devices(&self) -> &[Device] {
        &self.1
    }

    fn alloc(&mut self, _device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        let buffer = BufferId::fresh();
        let memory = vec![0; bytes as usize];
        self.0.borrow_mut().buffers.insert(buffer, memory);
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        assert!(self.0.borrow_mut().buffers.remove(&buffer).is_some());
    }

    fn open_queue(&mut self, device: DeviceId, _kind: QueueKind) -> Result<QueueId, RuntimeError> {
        let queue = QueueId::fresh();
        self.0.borrow_mut().queues.insert(queue, device);
        Ok(queue)
    }

    fn free_queue(&mut self, queue: QueueId) {
        assert!(self.0.borrow_mut().freed.insert(queue));
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        let mut fake = self.0.borrow_mut();
        assert!(!fake.freed.contains(&queue), "the queue was released");
        for awaited in wait {
            assert!(fake.seen.contains(awaited), "a foreign event was passed on");
        }
        let Some(event) = event else {
            fake.without_event.push(queue);
            return Ok(());
        };
        if let Command::Copy { from, to, .. } = &command {
            for memory in [from.memory, to.memory] {
                assert!(match memory {
                    Memory::Host(id) => fake.known.contains_key(&id),
                    Memory::Device(id) => fake.buffers.contains_key(&id),
                });
            }
        }
        if fake.refuses {
            return Err(RuntimeError::DeviceLost {
                device: "fake".to_owned(),
                why: "unplugged".to_owned(),
            });
        }
        fake.seen.insert(event);
        fake.pending.push((event, queue, wait.to_vec(), command));
        Ok(())
    }
}

impl Backend for Handle {
    fn pins_host_memory(&self) -> bool {
        self.2
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostRegion, RuntimeError> {
        let mut memory = vec![0u8; bytes as usize].into_boxed_slice();
        let region = HostRegion {
            id: HostMemoryId::fresh(),
            address: NonNull::from(&mut memory[0]),
            bytes,
            keeper: Arc::new(memory),
        };
        self.0.borrow_mut().known.insert(region.id, region.address);
        Ok(region)
    }

    fn adopt_host(&mut self, region: HostRegion) -> Result<(), RuntimeError> {
        let mut fake = self.0.borrow_mut();
        if fake.refuses_memory {
            return Err(RuntimeError::Busy);
        }
        fake.known.insert(region.id, region.address);
        Ok(())
    }

    fn forget_host(&mut self, memory: HostMemoryId) {
        self.0.borrow_mut().known.remove(&memory);
    }

    fn copies_directly(&self, _from: DeviceId, _to: DeviceId) -> bool {
        true
    }

    fn can_omit_events(&self) -> bool {
        self.0.borrow().omits_events
    }

    fn inspect(&mut self) {
        let mut fake = self.0.borrow_mut();
        while let Some(event) = fake.ready().first().copied().filter(|_| fake.silent) {
            fake.end(event, true);
        }
    }
}

pub struct World {
    pub union: Union,
    pub fakes: Vec<Rc<RefCell<Fake>>>,
    pub memory: HostMemoryId,
    /// Two queues of each device, with a buffer of the device.
    pub queues: Vec<(QueueId, BufferId)>,
}

fn device(name: String) -> Device {
    Device {
        name,
        model: "fake".to_owned(),
        kind: DeviceKind::Gpu,
        runtime: RuntimeKind::Sim,
        compute_units: 1,
        memory: 1,
        max_allocation: 1,
        clock_mhz: None,
        shares_host_memory: false,
        fp64: true,
        sub_devices: SubDeviceSupport::default(),
        queues: 2,
        driver: String::new(),
        link_bandwidth: None,
        one_way: None,
    }
}

/// A union of backends with this many devices each.
pub fn world(sizes: &[usize]) -> World {
    let (sender, receiver) = unbounded();
    let mut fakes = Vec::new();
    let mut backends: Vec<Box<dyn Backend>> = Vec::new();
    for (index, size) in sizes.iter().enumerate() {
        let fake = Rc::new(RefCell::new(Fake {
            completions: sender.clone(),
            queues: HashMap::new(),
            pending: Vec::new(),
            seen: HashSet::new(),
            failed: HashSet::new(),
            failed_queues: HashSet::new(),
            known: HashMap::new(),
            buffers: HashMap::new(),
            freed: HashSet::new(),
            silent: false,
            refuses: false,
            refuses_memory: false,
            omits_events: false,
            without_event: Vec::new(),
        }));
        fakes.push(Rc::clone(&fake));
        let devices = (0..*size)
            .map(|n| device(format!("fake{index}.{n}")))
            .collect();
        backends.push(Box::new(Handle(fake, devices, index == 1)));
    }
    let mut union = Union::new(backends, receiver, Instant::now());
    let memory = union.alloc_host(64).unwrap();
    let mut queues = Vec::new();
    for device in 0..union.devices().len() {
        for _ in 0..2 {
            let buffer = union.alloc(DeviceId(device), 64).unwrap();
            queues.push((union.queue(DeviceId(device)).unwrap(), buffer));
        }
    }
    World {
        union,
        fakes,
        memory,
        queues,
    }
}

impl World {
    /// A write on a queue: the queue itself and the command.
    pub fn write(&self, queue: usize) -> (QueueId, Command) {
        let (queue, buffer) = self.queues[queue];
        (queue, Command::write(self.memory, 0..1, buffer, 0))
    }

    pub fn submit(&mut self, queue: usize, wait: &[EventId]) -> Result<EventId, RuntimeError> {
        let (queue, command) = self.write(queue);
        self.union.enqueue(queue, command, wait)
    }

    pub fn submit_without_event(&mut self, queue: usize, wait: &[EventId]) {
        let (queue, command) = self.write(queue);
        let submitted = self.union.submit(queue, command, wait, None);
        submitted.unwrap();
    }

    pub fn without_event(&self, fake: usize) -> usize {
        self.fakes[fake].borrow().without_event.len()
    }

    pub fn poll(&mut self) -> Option<Completion> {
        self.union.wait(Some(Duration::ZERO)).unwrap()
    }

    pub fn end(&mut self, fake: usize, event: EventId) {
        self.fakes[fake].borrow_mut().end(event, false);
    }

    pub fn pending(&self, fake: usize) -> Vec<EventId> {
        self.fakes[fake]
            .borrow()
            .pending
            .iter()
            .map(|p| p.0)
            .collect()
    }
}
