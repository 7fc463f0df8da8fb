//! Faults on purpose: any runtime, with a device that fails or is lost at a
//! chosen moment. For tests and drills on real devices; the simulator
//! schedules faults itself.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use super::{
    BufferId, Command, CommandKind, Completion, DeviceId, EventId, HostMemoryId, Nanos, QueueId,
    Runtime, RuntimeError, Status, Tag,
};
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

    /// What the faults make of a command of a device.
    fn strike(&mut self, device: DeviceId, kind: CommandKind) -> Option<Status> {
        let (launches, loss) = self.devices.get_mut(device.0)?;
        let launch = kind == CommandKind::Launch;
        let mut struck = None;
        let step = self.step;
        self.faults.retain(|fault| {
            let due = fault.device == device
                && match fault.when {
                    When::Launch(number) => launch && *launches >= number,
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
        *launches += u64::from(launch);
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

    /// Ends victims before which everything has ended.
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
                return;
            };
            completion.submitted = now;
            completion.started = now;
            completion.ended = now;
            self.flying.remove(&completion.event);
            self.arrived.push_back(completion);
        }
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
        let lane = Lane {
            device,
            sent: 0,
            failed: false,
            victims: VecDeque::new(),
        };
        self.queues.insert(queue, lane);
        Ok(queue)
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<EventId, RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let device = self.queues.get(&queue).ok_or(unknown)?.device;
        self.alive(device)?;
        let struck = self.strike(device, command.kind());
        let Some(lane) = self.queues.get_mut(&queue) else {
            return Err(RuntimeError::Unknown { what: "queue" });
        };
        let passed_on = lane.failed || wait.iter().any(|event| self.failed.contains(event));
        let status = match struck {
            Some(status) => status,
            None if passed_on => Status::Failed("a command it waited for failed".to_owned()),
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
                status,
            },
        });
        self.failed.insert(event);
        self.flying.insert(event, queue);
        self.tell_victims();
        Ok(event)
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

    fn mark_step(&mut self, step: u32) {
        self.step = step;
        self.inner.mark_step(step);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;
    use crate::codelet::{Codelet, Cost, HostValue};
    use crate::runtime::Launch;
    use crate::runtime::host::{HostBackend, PoolSpec};
    use crate::runtime::union::Union;

    unsafe fn nothing(_args: &[HostValue], _first: u64, _units: Range<u64>) {}

    /// Two pools of one worker, a queue each, and a second queue of the first.
    fn open(faults: Vec<Fault>) -> (Faulty<Union>, [QueueId; 3]) {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let epoch = Instant::now();
        let pool = PoolSpec {
            name: "host:1".to_owned(),
            cores: vec![0],
        };
        let backend = HostBackend::open(&[pool.clone(), pool], sender, epoch).unwrap();
        let union = Union::new(vec![Box::new(backend)], receiver, epoch);
        let mut faulty = Faulty::new(union, faults);
        let queues = [0, 1, 0].map(|device| faulty.queue(DeviceId(device)).unwrap());
        (faulty, queues)
    }

    fn launch(
        runtime: &mut impl Runtime,
        queue: QueueId,
        wait: &[EventId],
    ) -> Result<EventId, RuntimeError> {
        let codelet = Codelet {
            name: "nothing",
            host: Some(nothing),
            opencl: None,
        };
        let command = Command::Launch(Launch {
            codelet: Arc::new(codelet),
            units: 0..1,
            args: Vec::new(),
            cost: Cost::default(),
        });
        let tag = Tag {
            step: 0,
            label: "test",
            units: 0..1,
        };
        runtime.submit(queue, command, wait, tag)
    }

    fn statuses(runtime: &mut impl Runtime) -> HashMap<EventId, Status> {
        let mut statuses = HashMap::new();
        while let Some(completion) = runtime.wait(None).unwrap() {
            let before = statuses.insert(completion.event, completion.status);
            assert_eq!(before, None, "an event completed twice");
        }
        statuses
    }

    #[test]
    fn a_lost_device_takes_what_depends_on_it_along_and_no_more() {
        let (mut runtime, [first, second, third]) = open(vec![Fault {
            device: DeviceId(0),
            when: When::Launch(1),
            effect: Effect::Lose,
        }]);
        let before = launch(&mut runtime, first, &[]).unwrap();
        let lost = launch(&mut runtime, first, &[before]).unwrap();
        let also = launch(&mut runtime, third, &[]).unwrap();
        let beside = launch(&mut runtime, second, &[before]).unwrap();
        let waiting = launch(&mut runtime, second, &[lost]).unwrap();
        let statuses = statuses(&mut runtime);
        assert_eq!(statuses.len(), 5);
        assert_eq!(statuses[&before], Status::Done);
        assert_eq!(statuses[&lost], Status::DeviceLost(LOST.to_owned()));
        assert_eq!(statuses[&also], Status::DeviceLost(LOST.to_owned()));
        assert_eq!(statuses[&beside], Status::Done);
        assert!(matches!(statuses[&waiting], Status::Failed(_)));
        let refused = launch(&mut runtime, first, &[]).unwrap_err().to_string();
        assert_eq!(refused, "host:1 was lost: lost on purpose");
        assert!(runtime.queue(DeviceId(0)).is_err());
        assert!(runtime.alloc(DeviceId(0), 8).is_err());
        assert!(runtime.queue(DeviceId(1)).is_ok());
    }

    #[test]
    fn a_device_is_lost_with_its_step() {
        let (mut runtime, [first, second, _]) = open(vec![Fault {
            device: DeviceId(1),
            when: When::Step(3),
            effect: Effect::Lose,
        }]);
        for step in 0..5 {
            runtime.mark_step(step);
            let good = launch(&mut runtime, first, &[]).unwrap();
            let other = launch(&mut runtime, second, &[]);
            let statuses = statuses(&mut runtime);
            assert_eq!(statuses[&good], Status::Done);
            match (step, other) {
                (0..3, Ok(event)) => assert_eq!(statuses[&event], Status::Done),
                (3, Ok(event)) => assert!(matches!(statuses[&event], Status::DeviceLost(_))),
                (4, Err(RuntimeError::DeviceLost { .. })) => {}
                (step, other) => panic!("step {step}: {other:?}"),
            }
        }
    }

    #[test]
    fn one_command_fails_and_the_device_goes_on_with_another_queue() {
        let (mut runtime, [first, _, third]) = open(vec![Fault {
            device: DeviceId(0),
            when: When::Launch(0),
            effect: Effect::Fail,
        }]);
        let failed = launch(&mut runtime, first, &[]).unwrap();
        let behind = launch(&mut runtime, first, &[]).unwrap();
        let beside = launch(&mut runtime, third, &[]).unwrap();
        let statuses = statuses(&mut runtime);
        assert!(matches!(&statuses[&failed], Status::Failed(why) if why == "failed on purpose"));
        assert!(matches!(statuses[&behind], Status::Failed(_)));
        assert_eq!(statuses[&beside], Status::Done);
    }
}
