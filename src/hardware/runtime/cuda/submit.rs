//! Enqueues commands, and arranges for their completions.

use std::sync::Arc;
use std::time::Instant;

use super::backend::CudaBackend;
use super::copy::copy;
use super::handle::Event;
use super::memory::KeepAlive;
use super::polling::InFlight;
use super::queue::{Events, Pending};
use crate::runtime::{
    Command, Completion, DeviceId, EventId, QueueId, RuntimeError, Stages, Status,
};

/// What was enqueued of a command.
#[derive(Default)]
struct Enqueued {
    /// The resources that must outlive it.
    keep_alive: Vec<KeepAlive>,
    /// Around its kernels.
    kernels: Option<[Arc<Event>; 2]>,
}

impl CudaBackend {
    /// Enqueues a command, with a completion if it has an event.
    pub(super) fn enqueue(
        &mut self,
        id: QueueId,
        command: &Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let queue = self.queues.get_mut(&id).ok_or(unknown)?;
        let index = queue.device;
        let device = &mut self.devices[index];
        device.check()?;
        let now = event.map_or(0, |_| device.clock.now());
        let completion = event.map(|event| Completion {
            stages: command.is_mixed().then(|| Stages::around(command, now)),
            ..Completion::of(command, event, (DeviceId(index), id), now)
        });
        if queue.poisoned || wait.iter().any(|event| self.failed.contains(event)) {
            self.skip(id, completion);
            return Ok(());
        }
        let begun = Instant::now();
        let made_current = device.context.make_current();
        made_current.map_err(|failure| device.failed(failure))?;
        for event in wait {
            // What is not in flight has ended, and a queue is in order.
            let other = self.in_flight.get(event).filter(|other| other.queue != id);
            let Some(other) = other else {
                continue;
            };
            match queue.stream.wait_for(&other.event) {
                Ok(()) => {}
                // The loss of the other device is none of this one.
                Err(failure) if other.device != index && other.event.has_ended().is_err() => {
                    let other = other.device;
                    self.devices[other].failed(failure);
                    self.skip(id, completion);
                    return Ok(());
                }
                Err(failure) => return Err(device.failed(failure)),
            }
        }
        let is_timed = queue.profiling && event.is_some();
        let begin = match is_timed {
            true => Some(device.record(&queue.stream, true)),
            false => None,
        };
        let begin = begin.transpose();
        let begin = begin.map_err(|failure| device.failed(failure))?;
        let enqueued = self.enqueue_parts(id, command, is_timed)?;
        let unknown = RuntimeError::Unknown { what: "queue" };
        let queue = self.queues.get_mut(&id).ok_or(unknown)?;
        // The command runs whatever comes next, so its resources must be kept.
        queue.uncovered.keep_alive.extend(enqueued.keep_alive);
        queue.uncovered.waits.extend_from_slice(wait);
        queue.uncovered.any = true;
        if let Some(completion) = completion {
            let device = &mut self.devices[index];
            let end = device.record(&queue.stream, is_timed);
            let end = end.map_err(|failure| device.failed(failure))?;
            let event = completion.event;
            let known = InFlight {
                queue: id,
                device: index,
                event: Arc::clone(&end),
            };
            self.in_flight.insert(event, known);
            // This event covers the commands before it that have none.
            let covered = std::mem::take(&mut queue.uncovered);
            queue.in_flight.push_back(Pending {
                completion,
                waits: covered.waits,
                events: Events {
                    end,
                    begin,
                    kernels: enqueued.kernels,
                },
                keep_alive: covered.keep_alive,
            });
        }
        self.driver_time += begun.elapsed();
        Ok(())
    }

    /// Ends a command, and all behind it in its queue, without running it.
    fn skip(&mut self, id: QueueId, completion: Option<Completion>) {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.poisoned = true;
        }
        if let Some(mut completion) = completion {
            self.failed.insert(completion.event);
            completion.status = Status::Skipped;
            // The receiver is gone only when the runtime is being dropped.
            let _ = self.completions.send(completion);
        }
    }

    /// Enqueues a command or, of a series, its parts in order.
    fn enqueue_parts(
        &mut self,
        id: QueueId,
        command: &Command,
        is_timed: bool,
    ) -> Result<Enqueued, RuntimeError> {
        let parts = command.parts();
        let is_whole = |part: &Command| matches!(part, Command::Series(_) | Command::Graph(_));
        if let Command::Series(parts) = command
            && (parts.is_empty() || parts.iter().any(is_whole))
        {
            let queue = self.queues.get(&id).map_or(0, |queue| queue.device);
            return Err(RuntimeError::Call {
                device: self.devices[queue].info.name.clone(),
                call: "cuLaunchKernel",
                why: "a series has commands, and none of them is a series or a graph".to_owned(),
            });
        }
        let is_kernel = |i: &usize| parts[*i].launches().next().is_some();
        let timed_kernels = match is_timed && command.is_mixed() {
            true => (0..parts.len())
                .find(is_kernel)
                .zip((0..parts.len()).rfind(is_kernel)),
            false => None,
        };
        let mut enqueued = Enqueued::default();
        let mut first_kernel = None;
        for (i, part) in parts.iter().enumerate() {
            if timed_kernels.is_some_and(|(first, _)| first == i) {
                first_kernel = Some(self.mark(id)?);
            }
            match self.enqueue_part(id, part) {
                Ok(keep_alive) => enqueued.keep_alive.extend(keep_alive),
                Err(error) => {
                    // The parts before it run.
                    if let Some(queue) = self.queues.get_mut(&id) {
                        queue.uncovered.keep_alive.extend(enqueued.keep_alive);
                        queue.uncovered.any = true;
                    }
                    return Err(error);
                }
            }
            if timed_kernels.is_some_and(|(_, last)| last == i)
                && let Some(first) = first_kernel.take()
            {
                enqueued.kernels = Some([first, self.mark(id)?]);
            }
        }
        Ok(enqueued)
    }

    /// An event with a time stamp behind what a queue has.
    fn mark(&mut self, id: QueueId) -> Result<Arc<Event>, RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let queue = self.queues.get(&id).ok_or(unknown)?;
        let device = &mut self.devices[queue.device];
        let event = device.record(&queue.stream, true);
        event.map_err(|failure| device.failed(failure))
    }

    /// Enqueues a command that is no series.
    fn enqueue_part(
        &mut self,
        id: QueueId,
        command: &Command,
    ) -> Result<Vec<KeepAlive>, RuntimeError> {
        match command {
            Command::Copy { from, to, rows } => {
                let unknown = RuntimeError::Unknown { what: "queue" };
                let queue = self.queues.get(&id).ok_or(unknown)?;
                let here = (queue.device, &mut self.devices[queue.device]);
                copy(&queue.stream, here, &self.memories, (*from, *to, *rows))
            }
            Command::Launch(launch) => self.serve(id, launch, None),
            Command::Repeat(launch) => self.serve(id, launch, Some(launch)),
            Command::Graph(graph) => self.launch_graph(id, graph),
            // Refused by the caller.
            Command::Series(_) => Ok(Vec::new()),
        }
    }
}
