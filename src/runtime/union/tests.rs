//! The union over backends that complete what the test chooses.

mod faults;
mod without_event;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Sender, unbounded};
use proptest::prelude::*;

use super::*;
use crate::machine::{DeviceKind, RuntimeKind, SubDeviceSupport};
use crate::runtime::host::{HostBackend, PoolSpec};
use crate::runtime::{CommandKind, Devices, Memory, Notice, QueueKind};

/// What a fake backend was asked to do and has not done.
struct Fake {
    completions: Sender<Completion>,
    queues: HashMap<QueueId, DeviceId>,
    /// In submission order: event, queue, waits.
    pending: Vec<(EventId, QueueId, Vec<EventId>)>,
    seen: HashSet<EventId>,
    failed: HashSet<EventId>,
    failed_queues: HashSet<QueueId>,
    known: HashSet<HostMemoryId>,
    buffers: HashSet<BufferId>,
    freed: HashSet<QueueId>,
    /// Whether a look at the devices finds them lost.
    silent: bool,
    refuses: bool,
    refuses_memory: bool,
    /// Whether commands can be submitted without an event, and the queues of
    /// those that were.
    omits_events: bool,
    without_event: Vec<QueueId>,
}

impl Fake {
    /// The commands that could end now.
    fn ready(&self) -> Vec<EventId> {
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
    fn end(&mut self, event: EventId, fails: bool) {
        let at = self.pending.iter().position(|p| p.0 == event).unwrap();
        let (_, queue, wait) = self.pending.remove(at);
        let passed_on = self.failed_queues.contains(&queue)
            || wait.iter().any(|event| self.failed.contains(event));
        let status = if passed_on || fails {
            self.failed.insert(event);
            self.failed_queues.insert(queue);
            Status::Failed("on purpose".to_owned())
        } else {
            Status::Done
        };
        let completion = Completion {
            event,
            device: self.queues[&queue],
            queue,
            kind: CommandKind::Write,
            queued: 0,
            submitted: 0,
            started: 0,
            ended: 0,
            bytes: 1,
            stages: None,
            workers: None,
            status,
        };
        self.completions.send(completion).unwrap();
    }
}

/// The backend's end of a [`Fake`]; the test keeps the other.
struct Handle(Rc<RefCell<Fake>>, Vec<Device>, bool);

impl Devices for Handle {
    fn devices(&self) -> &[Device] {
        &self.1
    }

    fn alloc(&mut self, _device: DeviceId, _bytes: u64) -> Result<BufferId, RuntimeError> {
        let buffer = BufferId::fresh();
        self.0.borrow_mut().buffers.insert(buffer);
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        assert!(self.0.borrow_mut().buffers.remove(&buffer));
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
        if let Command::Copy { from, to, .. } = command {
            assert!(matches!(from.memory, Memory::Host(id) if fake.known.contains(&id)));
            assert!(matches!(to.memory, Memory::Device(id) if fake.buffers.contains(&id)));
        }
        if fake.refuses {
            return Err(RuntimeError::DeviceLost {
                device: "fake".to_owned(),
                why: "unplugged".to_owned(),
            });
        }
        fake.seen.insert(event);
        fake.pending.push((event, queue, wait.to_vec()));
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
        self.0.borrow_mut().known.insert(region.id);
        Ok(region)
    }

    fn adopt_host(&mut self, region: HostRegion) -> Result<(), RuntimeError> {
        let mut fake = self.0.borrow_mut();
        if fake.refuses_memory {
            return Err(RuntimeError::Busy);
        }
        fake.known.insert(region.id);
        Ok(())
    }

    fn forget_host(&mut self, memory: HostMemoryId) {
        assert!(self.0.borrow_mut().known.remove(&memory) || self.0.borrow().refuses_memory);
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

struct World {
    union: Union,
    fakes: Vec<Rc<RefCell<Fake>>>,
    memory: HostMemoryId,
    /// Two queues of each device, with a buffer of the device.
    queues: Vec<(QueueId, BufferId)>,
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
    }
}

/// A union of backends with this many devices each.
fn world(sizes: &[usize]) -> World {
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
            known: HashSet::new(),
            buffers: HashSet::new(),
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
    fn write(&self, queue: usize) -> (QueueId, Command) {
        let (queue, buffer) = self.queues[queue];
        (queue, Command::write(self.memory, 0..1, buffer, 0))
    }

    fn submit(&mut self, queue: usize, wait: &[EventId]) -> Result<EventId, RuntimeError> {
        let (queue, command) = self.write(queue);
        self.union.enqueue(queue, command, wait)
    }

    fn submit_without_event(&mut self, queue: usize, wait: &[EventId]) {
        let (queue, command) = self.write(queue);
        let submitted = self.union.submit(queue, command, wait, None);
        submitted.unwrap();
    }

    fn without_event(&self, fake: usize) -> usize {
        self.fakes[fake].borrow().without_event.len()
    }

    fn poll(&mut self) -> Option<Completion> {
        self.union.wait(Some(Duration::ZERO)).unwrap()
    }

    fn end(&mut self, fake: usize, event: EventId) {
        self.fakes[fake].borrow_mut().end(event, false);
    }

    fn pending(&self, fake: usize) -> Vec<EventId> {
        self.fakes[fake]
            .borrow()
            .pending
            .iter()
            .map(|p| p.0)
            .collect()
    }
}

#[test]
fn a_command_for_another_backend_is_held_with_all_behind_it() {
    let mut world = world(&[1, 1]);
    let first = world.submit(0, &[]).unwrap();
    let second = world.submit(2, &[first]).unwrap();
    let third = world.submit(2, &[]).unwrap();
    let beside = world.submit(3, &[]).unwrap();
    assert_eq!(world.pending(1), [beside]);
    world.end(0, first);
    assert_eq!(world.poll().unwrap().event, first);
    assert_eq!(world.pending(1), [beside, second, third]);
}

#[test]
fn completions_carry_the_devices_of_the_whole_machine() {
    let mut world = world(&[2, 2]);
    let event = world.submit(7, &[]).unwrap();
    world.end(1, event);
    let completion = world.poll().unwrap();
    assert_eq!(completion.device, DeviceId(3));
    assert_eq!(completion.queue, world.queues[7].0);
    let names: Vec<_> = world.union.devices().iter().map(|d| &d.name).collect();
    assert_eq!(names, ["fake0.0", "fake0.1", "fake1.0", "fake1.1"]);
}

#[test]
fn a_held_command_that_is_refused_fails_and_so_does_what_waits_for_it() {
    let mut world = world(&[1, 1]);
    let first = world.submit(0, &[]).unwrap();
    let before = world.submit(2, &[]).unwrap();
    let refused = world.submit(2, &[first]).unwrap();
    let waiting = world.submit(1, &[refused]).unwrap();
    world.fakes[1].borrow_mut().refuses = true;
    world.end(0, first);
    let mut ends = vec![world.poll().unwrap()];
    // A queue's completions stay in order even then.
    assert!(world.poll().is_none());
    world.end(1, before);
    assert_eq!(world.poll().unwrap().event, before);
    ends.extend((0..2).map(|_| world.poll().unwrap()));
    assert_eq!(
        ends.iter().map(|c| c.event).collect::<Vec<_>>(),
        [first, refused, waiting]
    );
    assert_eq!(ends[1].status, Status::DeviceLost("unplugged".to_owned()));
    assert_eq!(ends[1].device, DeviceId(1));
    assert_eq!(ends[2].status, Status::Skipped);
    // What need not be held is refused at once, and counts for nothing.
    assert!(world.submit(3, &[]).is_err());
    assert!(world.poll().is_none());
}

#[test]
fn a_released_queue_lasts_until_what_it_holds_back_has_gone() {
    let mut world = world(&[1, 1]);
    let first = world.submit(0, &[]).unwrap();
    let held = world.submit(2, &[first]).unwrap();
    for queue in [0, 2] {
        world.union.free_queue(world.queues[queue].0);
        world.union.free_queue(world.queues[queue].0);
        assert!(matches!(
            world.submit(queue, &[]),
            Err(RuntimeError::Unknown { what: "queue" })
        ));
    }
    assert!(world.fakes[1].borrow().freed.is_empty());
    world.end(0, first);
    let completion = world.poll().unwrap();
    assert_eq!((completion.event, completion.device), (first, DeviceId(0)));
    assert_eq!(world.fakes[0].borrow().freed.len(), 1);
    assert_eq!(world.fakes[1].borrow().freed.len(), 1);
    world.end(1, held);
    let completion = world.poll().unwrap();
    assert_eq!((completion.event, completion.device), (held, DeviceId(1)));
    assert_eq!(completion.queue, world.queues[2].0);
}

#[test]
fn a_long_silence_makes_backends_look_after_their_devices() {
    let mut world = world(&[1, 1]);
    world.union.silence = Duration::from_millis(20);
    let slow = world.submit(0, &[]).unwrap();
    let lost = world.submit(2, &[]).unwrap();
    world.fakes[1].borrow_mut().silent = true;
    // Who does not wait for long is not kept longer.
    let brief = Some(Duration::from_millis(1));
    assert!(world.union.wait(brief).unwrap().is_none());
    let completion = world.union.wait(None).unwrap().unwrap();
    assert_eq!(completion.event, lost);
    assert_ne!(completion.status, Status::Done);
    // A device that is there may take its time.
    let several = Some(Duration::from_millis(70));
    assert!(world.union.wait(several).unwrap().is_none());
    world.end(0, slow);
    assert_eq!(world.union.wait(None).unwrap().unwrap().event, slow);
}

#[test]
fn waiting_for_nothing_returns_at_once() {
    let mut world = world(&[1]);
    assert!(world.union.wait(None).unwrap().is_none());
    let event = world.submit(0, &[]).unwrap();
    let timeout = Some(Duration::from_millis(1));
    assert!(world.union.wait(timeout).unwrap().is_none());
    world.end(0, event);
    assert_eq!(world.union.wait(None).unwrap().unwrap().event, event);
    assert!(world.union.wait(None).unwrap().is_none());
}

#[test]
fn backends_that_vanish_are_an_error_and_no_hang() {
    let (sender, receiver) = unbounded();
    let mut world = world(&[1]);
    world.union.completions = receiver;
    world.submit(0, &[]).unwrap();
    drop(sender);
    let error = world.union.wait(None).unwrap_err().to_string();
    assert!(error.contains("1 commands in flight"), "{error}");
}

#[test]
fn host_memory_is_seen_only_when_nothing_is_in_flight() {
    let mut world = world(&[1, 1]);
    let memory = world.memory;
    world.union.host_bytes(memory).unwrap()[63] = 7;
    let event = world.submit(0, &[]).unwrap();
    let busy = world.union.host_bytes(memory);
    assert!(matches!(busy, Err(RuntimeError::Busy)));
    world.end(0, event);
    assert_eq!(world.union.host_bytes(memory).unwrap()[63], 7);
    assert_eq!(world.poll().unwrap().event, event);
    world.union.free_host(memory);
    assert!(world.union.host_bytes(memory).is_err());
    assert!(world.fakes.iter().all(|f| f.borrow().known.is_empty()));
}

#[test]
fn memory_released_under_a_held_command_stays_until_it_is_sent() {
    let mut world = world(&[1, 1]);
    let first = world.submit(0, &[]).unwrap();
    world.submit(2, &[first]).unwrap();
    let (memory, buffer) = (world.memory, world.queues[2].1);
    world.union.free_host(memory);
    world.union.free(buffer);
    assert!(world.fakes[1].borrow().buffers.contains(&buffer));
    // The fake checks, when the command arrives, that both are still known.
    world.end(0, first);
    world.poll().unwrap();
    assert_eq!(world.pending(1).len(), 1);
    assert!(!world.fakes[1].borrow().buffers.contains(&buffer));
    assert!(!world.fakes[1].borrow().known.contains(&memory));
}

#[test]
fn memory_that_one_backend_cannot_adopt_is_given_up() {
    let mut world = world(&[1, 1]);
    world.fakes[0].borrow_mut().refuses_memory = true;
    let known = world.fakes[1].borrow().known.clone();
    assert!(matches!(world.union.alloc_host(8), Err(RuntimeError::Busy)));
    assert_eq!(world.fakes[1].borrow().known, known);
}

#[test]
fn unknown_things_are_refused() {
    let mut world = world(&[1]);
    assert!(world.union.alloc(DeviceId(1), 1).is_err());
    assert!(world.union.queue(DeviceId(1)).is_err());
    let memory = HostMemoryId::fresh();
    assert!(world.union.host_bytes(memory).is_err());
    world.queues.push((QueueId::fresh(), world.queues[0].1));
    assert!(world.submit(2, &[]).is_err());
    assert!(world.union.wait(None).unwrap().is_none());
    // Held by nobody else, so dropping the union releases it.
    assert_eq!(
        Arc::strong_count(&world.union.regions[&world.memory].keeper),
        1
    );
}

/// A command of a random run: its queue, which earlier ones it waits for, and
/// whether it fails when it runs.
type Plan = (usize, Vec<prop::sample::Index>, bool);

fn plan(queues: usize) -> impl Strategy<Value = Vec<Plan>> {
    let fails = prop::bool::weighted(0.05);
    let waits = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    prop::collection::vec((0..queues, waits, fails), 1..60)
}

proptest! {
    #[test]
    fn every_command_ends_once_in_order_and_after_its_waits(
        plan in plan(8),
        choices in prop::collection::vec(any::<(u8, prop::sample::Index)>(), 400),
    ) {
        let mut world = world(&[1, 2, 1]);
        let backend_of = |queue: usize| [0, 0, 1, 1, 1, 1, 2, 2][queue];
        let mut submitted: Vec<EventId> = Vec::new();
        let mut ended: Vec<Completion> = Vec::new();
        let mut choices = choices.iter().cycle();
        while ended.len() < plan.len() {
            let (action, index) = choices.next().unwrap();
            if action % 3 == 0 && submitted.len() < plan.len() {
                let (queue, waits, _) = &plan[submitted.len()];
                let wait: Vec<EventId> = if submitted.is_empty() {
                    Vec::new()
                } else {
                    waits.iter().map(|i| submitted[i.index(submitted.len())]).collect()
                };
                submitted.push(world.submit(*queue, &wait).unwrap());
            } else if action % 3 == 1 {
                let ready: Vec<(usize, EventId)> = (0..3)
                    .flat_map(|fake| {
                        let events = world.fakes[fake].borrow().ready();
                        events.into_iter().map(move |event| (fake, event))
                    })
                    .collect();
                if !ready.is_empty() {
                    let (fake, event) = ready[index.index(ready.len())];
                    let number = submitted.iter().position(|e| *e == event).unwrap();
                    world.fakes[fake].borrow_mut().end(event, plan[number].2);
                }
            } else if let Some(completion) = world.poll() {
                ended.push(completion);
            }
        }
        prop_assert!(world.poll().is_none());
        let order: HashMap<EventId, usize> =
            ended.iter().enumerate().map(|(at, c)| (c.event, at)).collect();
        prop_assert_eq!(order.len(), plan.len());
        let mut fails = Vec::new();
        for (number, (queue, waits, own)) in plan.iter().enumerate() {
            let waits = waits.iter().filter(|_| number > 0).map(|i| i.index(number));
            let before = (0..number).rev().find(|n| plan[*n].0 == *queue);
            let all: Vec<usize> = waits.chain(before).collect();
            let at = order[&submitted[number]];
            for awaited in &all {
                prop_assert!(order[&submitted[*awaited]] < at);
            }
            let passed_on = all.iter().any(|awaited| fails[*awaited]);
            let completion = &ended[at];
            prop_assert_eq!(completion.status != Status::Done, passed_on || *own);
            prop_assert_eq!(completion.queue, world.queues[*queue].0);
            let backend = backend_of(*queue);
            let reached = world.fakes[backend].borrow().seen.contains(&submitted[number]);
            prop_assert!(reached || passed_on);
            fails.push(passed_on || *own);
        }
    }
}

#[test]
fn host_allocations_one_after_the_other_begin_at_unlike_places_of_a_page() {
    let (sender, receiver) = unbounded();
    let epoch = Instant::now();
    let pool = PoolSpec {
        name: "host:1".to_owned(),
        cores: vec![0],
    };
    let backend = HostBackend::open(&[pool], sender, epoch).unwrap();
    let mut union = Union::new(vec![Box::new(backend)], receiver, epoch);
    let [one, other] = [1 << 20, 5 << 20].map(|bytes| {
        let memory = union.alloc_host(bytes).unwrap();
        let whole = union.host_bytes(memory).unwrap();
        assert_eq!(whole.len() as u64, bytes);
        whole.as_ptr() as usize % 4096
    });
    assert_eq!(one.abs_diff(other), 2048);
}
