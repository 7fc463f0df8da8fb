//! Enqueues commands, and arranges for their completions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use cl3::types::cl_event;

use super::backend::OpenClBackend;
use super::bridged_event::bridge;
use super::completion::{Token, TokenCell};
use super::handle::Event;
use super::in_flight::InFlight;
use super::launch::LaunchEnv;
use super::queue::Events;
use crate::runtime::{
    Command, Completion, DeviceId, EventId, QueueId, RuntimeError, Stages, Status,
};

impl OpenClBackend {
    /// The driver's events to wait for, in the context of device `to`.
    fn wait_list(&mut self, wait: &[EventId], to: usize) -> Result<Vec<Arc<Event>>, RuntimeError> {
        let context = self.devices[to].context;
        let mut events = Vec::with_capacity(wait.len());
        for id in wait {
            let Some(command) = self.in_flight.get_mut(id) else {
                continue;
            };
            if command.context == context {
                events.push(Arc::clone(&command.event));
                continue;
            }
            let here = &self.contexts[context].context;
            let user = bridge(*id, &command.event, here, &self.channels.failures)
                .map_err(|code| self.devices[to].shared.failed("clCreateUserEvent", code))?;
            command.bridges.push(Arc::clone(&user));
            events.push(user);
        }
        Ok(events)
    }

    /// Enqueues a command, with a completion if it has an event.
    pub(super) fn enqueue(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        let index = self.device_of(queue)?;
        self.devices[index].shared.check()?;
        let events = self.wait_list(wait, index)?;
        let raw: Vec<cl_event> = events.iter().map(|event| event.raw()).collect();
        let device = &self.devices[index];
        let now = match event {
            Some(_) => device.shared.clock.now(),
            None => 0,
        };
        let mixed = command.is_mixed().then(|| Stages::around(&command, now));
        let mut completion = event.map(|event| Completion {
            stages: mixed,
            ..Completion::of(&command, event, (DeviceId(index), queue), now)
        });
        let Some(open) = self.queues.get_mut(&queue) else {
            return Err(RuntimeError::Unknown { what: "queue" });
        };
        if open.poisoned.load(Ordering::Acquire) || self.channels.failures.any(wait) {
            open.poisoned.store(true, Ordering::Release);
            if let Some(mut completion) = completion.take() {
                self.channels.failures.note(completion.event);
                completion.status = Status::Skipped;
                // The receiver is gone only when the runtime is being dropped.
                let _ = self.channels.completions.send(completion);
            }
            return Ok(());
        }
        let begun = Instant::now();
        let with_event = completion.is_some();
        let mut env = LaunchEnv {
            device,
            devices: &self.devices,
            programs: &mut self.contexts[device.context],
            memories: &self.memories,
        };
        let enqueued = match command {
            Command::Repeat(launch) => {
                let repeats = &mut self.repeats;
                open.repeat(&launch, with_event, repeats, &mut env, &raw)
            }
            Command::Series(commands) => open.series(&commands, with_event, &mut env, &raw),
            single => open.single(&single, with_event, &mut env, &raw),
        }?;
        // The command runs whatever comes next, so its resources must be kept.
        if self.batch.add(&open.raw, index) {
            device.flush(&open.raw);
        }
        self.driver_time += begun.elapsed();
        open.uncovered.add(enqueued.keep_alive, events, wait);
        let Some(Events {
            last,
            timed,
            kernels,
        }) = enqueued.events
        else {
            return Ok(());
        };
        open.last = Some(Arc::clone(&last));
        let Some(completion) = completion else {
            open.uncovered.keep_alive.push(last);
            return Ok(());
        };
        // This event covers the commands before it that have none.
        let uncovered = std::mem::take(&mut open.uncovered);
        let token = Token {
            completion,
            waits: uncovered.waits,
            timed: open.profiling.then_some(timed),
            kernels: kernels.filter(|_| open.profiling),
            device: Arc::clone(&device.shared),
            poisoned: Arc::clone(&open.poisoned),
            ended: Arc::clone(&open.ended),
            keep_alive: uncovered.keep_alive,
            channels: self.channels.clone(),
        };
        let event = token.completion.event;
        let cell = if device.polled {
            let (cell, last) = (Arc::new(TokenCell::from(token)), Arc::clone(&last));
            self.polling.add(&open.raw, index, last, Arc::clone(&cell));
            cell
        } else {
            token.attach(&last)
        };
        let command = InFlight {
            cell,
            event: last,
            device: index,
            context: device.context,
            queue: Arc::clone(&open.raw),
            bridges: Vec::new(),
        };
        self.in_flight.insert(event, command);
        Ok(())
    }
}
