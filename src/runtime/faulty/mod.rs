//! Faults on purpose: any runtime, with a device that fails or is lost at a
//! chosen moment. For tests and drills on real devices; the simulator
//! schedules faults itself.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use super::{
    BufferId, Command, Completion, DeviceId, Errand, EventId, HostMemoryId, Nanos, QueueId,
    Runtime, RuntimeError, Status, Tag,
};
use crate::codelet::{Codelet, KernelArgument, OpenClKernel};
use crate::machine::Device;

/// When a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// With the device's launch of this number, counted from 0.
    Launch(u64),
    /// With the device's first command of this step or a later one.
    Step(u32),
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The device is gone, for this and every further command.
    Lose,
    /// The one command fails.
    Fail,
}

/// A fault of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub device: DeviceId,
    pub when: When,
    pub effect: Effect,
}

const LOST: &str = "lost on purpose";

/// A runtime some of whose devices have faults.
///
/// A command that meets a fault never reaches the runtime within; neither does
/// what waits for it or stands behind it in its queue. Once the loss of a
/// device has been told by a completion, the device refuses commands at once.
pub struct Faulty<R> {
    inner: R,
    faults: Vec<Fault>,
    /// By device: launches so far, and how far its loss has got.
    devices: Vec<(u64, Loss)>,
    queues: HashMap<QueueId, Lane>,
    /// Commands that have not ended, the runtime's and ours.
    flying: HashMap<EventId, QueueId>,
    failed: HashSet<EventId>,
    arrived: VecDeque<Completion>,
    step: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    None,
    Secret,
    Told,
}

struct Lane {
    device: DeviceId,
    /// Commands that the runtime within has.
    sent: usize,
    failed: bool,
    victims: VecDeque<Victim>,
    /// Released; it is forgotten when its last command has ended.
    closed: bool,
}

/// A command that will not run, and what must have ended before it is told.
struct Victim {
    wait: Vec<EventId>,
    completion: Completion,
}

impl<R: Runtime> Faulty<R> {
    /// Gives `inner` these faults.
    pub fn new(inner: R, faults: Vec<Fault>) -> Self {
        Self {
            devices: vec![(0, Loss::None); inner.devices().len()],
            inner,
            faults,
            queues: HashMap::new(),
            flying: HashMap::new(),
            failed: HashSet::new(),
            arrived: VecDeque::new(),
            step: 0,
        }
    }

    fn alive(&self, device: DeviceId) -> Result<(), RuntimeError> {
        match self.devices.get(device.0) {
            Some((_, Loss::Told)) => Err(RuntimeError::DeviceLost {
                device: self.inner.devices()[device.0].name.clone(),
                why: LOST.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Notes a queue that the runtime within has opened.
    fn opened(&mut self, queue: QueueId, device: DeviceId) {
        let lane = Lane {
            device,
            sent: 0,
            failed: false,
            victims: VecDeque::new(),
            closed: false,
        };
        self.queues.insert(queue, lane);
    }

    /// What the faults make of a command of a device.
    fn strike(&mut self, device: DeviceId, command: &Command) -> Option<Status> {
        let (launches, loss) = self.devices.get_mut(device.0)?;
        let after = *launches + command.launches().count() as u64;
        let mut struck = None;
        let step = self.step;
        self.faults.retain(|fault| {
            let due = fault.device == device
                && match fault.when {
                    When::Launch(number) => after > *launches && after > number,
                    When::Step(begin) => step >= begin,
                };
            if due {
                match fault.effect {
                    Effect::Lose => *loss = Loss::Secret,
                    Effect::Fail => struck = Some(Status::Failed("failed on purpose".to_owned())),
                }
            }
            !due
        });
        *launches = after;
        if *loss != Loss::None {
            return Some(Status::DeviceLost(LOST.to_owned()));
        }
        struck
    }

    fn take_in(&mut self, completion: Completion) {
        if let Some(queue) = self.flying.remove(&completion.event)
            && let Some(lane) = self.queues.get_mut(&queue)
        {
            lane.sent -= 1;
            if completion.status != Status::Done {
                lane.failed = true;
                self.failed.insert(completion.event);
            }
        }
        self.arrived.push_back(completion);
        self.tell_victims();
    }

    /// Ends victims before which everything has ended, and forgets released
    /// queues that are empty.
    fn tell_victims(&mut self) {
        let now = self.inner.now();
        loop {
            let flying = &self.flying;
            let next = self.queues.values_mut().find_map(|lane| {
                let first = lane.victims.front()?;
                let due = lane.sent == 0 && !first.wait.iter().any(|e| flying.contains_key(e));
                due.then(|| lane.victims.pop_front())?
            });
            let Some(Victim { mut completion, .. }) = next else {
                break;
            };
            completion.submitted = now;
            completion.started = now;
            completion.ended = now;
            self.flying.remove(&completion.event);
            self.arrived.push_back(completion);
        }
        self.queues
            .retain(|_, lane| !lane.closed || lane.sent > 0 || !lane.victims.is_empty());
    }
}

impl<R: Runtime> Runtime for Faulty<R> {
    fn devices(&self) -> &[Device] {
        self.inner.devices()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn simulated(&self) -> bool {
        self.inner.simulated()
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError> {
        self.inner.alloc_host(bytes)
    }

    fn free_host(&mut self, memory: HostMemoryId) {
        self.inner.free_host(memory);
    }

    fn host_bytes(&mut self, memory: HostMemoryId) -> Result<&mut [u8], RuntimeError> {
        self.inner.host_bytes(memory)
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        self.alive(device)?;
        self.inner.alloc(device, bytes)
    }

    fn free(&mut self, buffer: BufferId) {
        self.inner.free(buffer);
    }

    fn queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError> {
        self.alive(device)?;
        let queue = self.inner.queue(device)?;
        self.opened(queue, device);
        Ok(queue)
    }

    fn unstamped_queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError> {
        self.alive(device)?;
        let queue = self.inner.unstamped_queue(device)?;
        self.opened(queue, device);
        Ok(queue)
    }

    fn load(&mut self, queue: QueueId, codelet: &Codelet) -> Result<(), RuntimeError> {
        self.inner.load(queue, codelet)
    }

    fn driver_time(&self) -> Nanos {
        self.inner.driver_time()
    }

    fn arguments(
        &mut self,
        device: DeviceId,
        kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        self.alive(device)?;
        self.inner.arguments(device, kernel)
    }

    fn free_queue(&mut self, queue: QueueId) {
        if let Some(lane) = self.queues.get_mut(&queue) {
            lane.closed = true;
            // Victims never get there.
            self.inner.free_queue(queue);
            self.tell_victims();
        }
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<EventId, RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let lane = self.queues.get(&queue).filter(|lane| !lane.closed);
        let device = lane.ok_or(unknown)?.device;
        self.alive(device)?;
        let struck = self.strike(device, &command);
        let Some(lane) = self.queues.get_mut(&queue) else {
            return Err(RuntimeError::Unknown { what: "queue" });
        };
        let passed_on = lane.failed || wait.iter().any(|event| self.failed.contains(event));
        let status = match struck {
            Some(status) => status,
            None if passed_on => Status::Skipped,
            None => {
                let event = self.inner.submit(queue, command, wait, tag)?;
                lane.sent += 1;
                self.flying.insert(event, queue);
                return Ok(event);
            }
        };
        let event = EventId::fresh();
        let queued = self.inner.now();
        lane.failed = true;
        lane.victims.push_back(Victim {
            wait: wait.to_vec(),
            completion: Completion {
                event,
                device,
                queue,
                kind: command.kind(),
                tag,
                queued,
                submitted: queued,
                started: queued,
                ended: queued,
                bytes: command.bytes(),
                stages: None,
                workers: None,
                status,
            },
        });
        self.failed.insert(event);
        self.flying.insert(event, queue);
        self.tell_victims();
        Ok(event)
    }

    fn quiesce(&mut self, queue: QueueId) {
        self.inner.quiesce(queue);
    }

    fn begin_batch(&mut self) {
        self.inner.begin_batch();
    }

    fn end_batch(&mut self) {
        self.inner.end_batch();
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, RuntimeError> {
        if self.arrived.is_empty()
            && let Some(completion) = self.inner.wait(timeout)?
        {
            self.take_in(completion);
        }
        let next = self.arrived.pop_front();
        if let Some(completion) = &next
            && matches!(completion.status, Status::DeviceLost(_))
            && let Some((_, loss)) = self.devices.get_mut(completion.device.0)
        {
            *loss = Loss::Told;
        }
        Ok(next)
    }

    fn begin_driving(&mut self) {
        self.inner.begin_driving();
    }

    fn end_driving(&mut self) {
        self.inner.end_driving();
    }

    fn mark_step(&mut self, step: u32) {
        self.step = step;
        self.inner.mark_step(step);
    }

    fn on_each_worker(&mut self, errand: &Errand) {
        self.inner.on_each_worker(errand);
    }
}

#[cfg(test)]
mod tests;
