//! Enqueues commands, and arranges for their completions.

use std::sync::Arc;
use std::time::Instant;

use super::{
    Driver, Enqueued, Here, InFlight, KeepAlive, Machine, NotAwaited, Pending, Wanted, unknown,
};
use crate::runtime::{
    Command, Completion, DeviceId, EventId, QueueId, RuntimeError, Stages, Status,
};

/// A queue is flushed after so many commands of a batch, so that a device need not wait for the
/// whole of a long batch.
const MOST_UNFLUSHED: usize = 16;

impl<D: Driver> Machine<D> {
    /// Enqueues a command, with a completion if it has an event.
    pub(super) fn enqueue(
        &mut self,
        id: QueueId,
        command: &Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        let queue = self.queues.get_mut(&id).ok_or_else(|| unknown("queue"))?;
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
        let mut here = Here {
            index,
            device,
            queue,
            memories: &self.memories,
        };
        // What is not in flight has ended, and a queue is in order.
        let others: Vec<&InFlight<D>> = (wait.iter())
            .filter_map(|event| self.in_flight.get(event).filter(|other| other.queue != id))
            .collect();
        let events = match self.driver.wait_for(&mut here, &others) {
            Ok(events) => events,
            Err(NotAwaited::Here(error)) => return Err(error),
            // The loss of the other device is none of this one.
            Err(NotAwaited::There { device, loss }) => {
                if let Some(why) = loss {
                    self.devices[device].mark_lost(&why);
                }
                self.skip(id, completion);
                return Ok(());
            }
        };
        let has_event = completion.is_some();
        let (enqueued, kernels) = parts(&mut self.driver, &mut here, command, has_event, &events)?;
        let Here { device, queue, .. } = here;
        // The command runs whatever comes next, so its resources must be kept.
        queue.uncovered.keep(enqueued.keep_alive);
        queue
            .uncovered
            .keep(events.into_iter().map(|event| event as KeepAlive));
        queue.uncovered.waits.extend_from_slice(wait);
        queue.unflushed += 1;
        if !self.is_batch || queue.unflushed >= MOST_UNFLUSHED {
            queue.unflushed = 0;
            self.driver.flush(device, queue);
        }
        match (completion, enqueued.last) {
            (Some(completion), Some(last)) => {
                // This event covers the commands before it that have none.
                let covered = std::mem::take(&mut queue.uncovered);
                let known = InFlight {
                    id: completion.event,
                    queue: id,
                    device: index,
                    event: last.clone(),
                };
                let timed = enqueued.begin.zip(enqueued.end).map(|(a, b)| [a, b]);
                let pending = Pending {
                    completion,
                    waits: covered.waits,
                    last,
                    timed: timed.filter(|_| queue.profiling),
                    kernels,
                    keep_alive: covered.keep_alive,
                };
                self.driver.watch(device, &pending);
                self.in_flight.insert(known.id, known);
                queue.in_flight.push_back(pending);
            }
            (_, last) => queue.uncovered.keep(last.map(|event| event as KeepAlive)),
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
}

/// A command that was enqueued, with the events around its kernels.
type WithKernels<E> = (Enqueued<E>, Option<[Arc<E>; 2]>);

/// Enqueues a command or, of a series, its parts in order. The first one's event gives their
/// start and the last one's their end. Between them only kernels among transfers need events, for
/// their own times: an event is a good part of a command's cost, and so is the query of its times.
fn parts<D: Driver>(
    driver: &mut D,
    here: &mut Here<'_, D>,
    command: &Command,
    has_event: bool,
    wait: &[Arc<D::Event>],
) -> Result<WithKernels<D::Event>, RuntimeError> {
    let parts = command.parts();
    let is_whole = |part: &Command| matches!(part, Command::Series(_) | Command::Graph(_));
    let is_series = matches!(command, Command::Series(_));
    let refusal = match is_series {
        true if parts.is_empty() => Some("it is a series of no commands"),
        true if parts.iter().any(is_whole) => Some("one of its commands is a series or a graph"),
        _ => None,
    };
    if let Some(why) = refusal {
        return Err(here.device.refused("a series of commands", why.to_owned()));
    }
    let is_timed = has_event && here.queue.profiling;
    let is_kernel = |i: &usize| parts[*i].launches().next().is_some();
    let kernels = match is_timed && command.is_mixed() {
        true => (0..parts.len())
            .find(is_kernel)
            .zip((0..parts.len()).rfind(is_kernel)),
        false => None,
    };
    let end = parts.len() - 1;
    let mut all = Enqueued::silently(Vec::new());
    let mut around = [None, None];
    for (i, part) in parts.iter().enumerate() {
        let is_first = kernels.is_some_and(|(first, _)| first == i);
        let is_last = kernels.is_some_and(|(_, last)| last == i);
        let wanted = Wanted {
            begin: is_timed && i == 0 || is_first,
            end: has_event && i == end || is_last,
        };
        let wait = if i == 0 { wait } else { &[] };
        let part = match driver.enqueue(here, part, wanted, wait) {
            Ok(part) => part,
            Err(error) => {
                // The parts before it run.
                if i > 0 {
                    here.queue.uncovered.keep(all.keep_alive);
                }
                return Err(error);
            }
        };
        if is_first {
            around[0].clone_from(&part.begin);
        }
        if is_last {
            around[1].clone_from(&part.end);
        }
        if i == 0 {
            all.begin = part.begin;
        }
        all.keep_alive.extend(part.keep_alive);
        if i == end {
            (all.end, all.last) = (part.end, part.last);
        } else {
            all.keep_alive
                .extend(part.last.map(|last| last as KeepAlive));
        }
    }
    let [first, last] = around;
    Ok((all, first.zip(last).map(|(first, last)| [first, last])))
}
