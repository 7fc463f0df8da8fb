//! Finds the commands that have ended, and sends their completions.
//!
//! A query of an event takes 0.1 us. A function that the driver calls when a command has
//! ended (`cuLaunchHostFunc`) takes more, and what is behind it in its stream waits for it.

use std::sync::Arc;

use super::backend::CudaBackend;
use super::device::OpenDevice;
use super::error::Failure;
use super::handle::Event;
use super::queue::{OpenQueue, Pending};
use crate::runtime::device_clock::Stamps;
use crate::runtime::{Completion, QueueId, Status};

/// A command that has not ended, for those that wait for it.
pub(super) struct InFlight {
    pub queue: QueueId,
    /// Index of its device.
    pub device: usize,
    pub event: Arc<Event>,
}

impl CudaBackend {
    /// Sends the completions of what has ended. True while commands remain.
    pub(super) fn complete(&mut self) -> bool {
        self.measure();
        loop {
            let mut some_ended = false;
            let mut some_remain = false;
            let mut some_wait = false;
            let open = self.queues.values_mut();
            for queue in open.chain(&mut self.closing) {
                while let Some(pending) = queue.in_flight.front() {
                    let ended = match pending.events.end.has_ended() {
                        Ok(true) => Ok(()),
                        Ok(false) => {
                            some_remain = true;
                            break;
                        }
                        Err(failure) => Err(failure),
                    };
                    // Whether those that it waited for ended well decides how it ends.
                    if pending
                        .waits
                        .iter()
                        .any(|id| self.in_flight.contains_key(id))
                    {
                        (some_remain, some_wait) = (true, true);
                        break;
                    }
                    let Some(pending) = queue.in_flight.pop_front() else {
                        break;
                    };
                    some_ended = true;
                    self.in_flight.remove(&pending.completion.event);
                    let is_skipped = queue.poisoned
                        || (pending.waits.iter()).any(|event| self.failed.contains(event));
                    let device = &mut self.devices[queue.device];
                    let completion = ended_with(ended, pending, is_skipped, device);
                    if completion.status != Status::Done {
                        queue.poisoned = true;
                        self.failed.insert(completion.event);
                    }
                    // The receiver is gone only when the runtime is being dropped.
                    let _ = self.completions.send(completion);
                }
            }
            if some_ended && some_wait {
                continue;
            }
            if some_ended && !some_remain {
                self.closing.retain(|queue| !queue.in_flight.is_empty());
                for device in &self.devices {
                    device.release_surplus();
                }
            }
            return some_remain;
        }
    }
}

/// The completion of a command that has ended, and its events for others to use.
fn ended_with(
    ended: Result<(), Failure>,
    pending: Pending,
    is_skipped: bool,
    device: &mut OpenDevice,
) -> Completion {
    let Pending {
        mut completion,
        events,
        keep_alive,
        waits: _,
    } = pending;
    // What the command used may be released now.
    drop(keep_alive);
    let notified = device.clock.now();
    let stamps = match (&ended, &events.begin) {
        (Ok(()), Some(begin)) => stamps(begin, &events.end, device),
        _ => None,
    };
    if let Some(stamps) = stamps {
        let times = device.clock.times(completion.queued, &stamps, notified);
        let kernels =
            (events.kernels.as_ref()).and_then(|[first, last]| stamps_between(first, last, device));
        if let (Some(stages), Some(kernels)) = (&mut completion.stages, kernels) {
            stages.kernels = device.clock.within(&times, kernels);
        }
        completion.submitted = times.submitted;
        completion.started = times.started;
        completion.ended = times.ended;
    } else {
        // A successful command may have run the whole time; a failed one did not.
        completion.submitted = completion.queued;
        completion.started = match ended {
            Ok(()) => completion.queued,
            Err(_) => notified,
        };
        completion.ended = notified;
        if let Some(stages) = &mut completion.stages {
            stages.kernels = (completion.started, notified);
        }
    }
    completion.status = match ended {
        Ok(()) if is_skipped => Status::Skipped,
        Ok(()) => Status::Done,
        Err(failure) => {
            let error = device.failed(failure);
            match device.loss() {
                Some(why) => Status::DeviceLost(why.to_owned()),
                None => Status::Failed(error.to_string()),
            }
        }
    };
    let is_timed = events.begin.is_some();
    device.reuse(events.end, is_timed);
    let timed = events
        .begin
        .into_iter()
        .chain(events.kernels.into_iter().flatten());
    for event in timed {
        device.reuse(event, true);
    }
    completion
}

/// A command's times on the device's own clock.
fn stamps(begin: &Arc<Event>, end: &Arc<Event>, device: &mut OpenDevice) -> Option<Stamps> {
    let (started, ended) = stamps_between(begin, end, device)?;
    Some(Stamps {
        submitted: started,
        started,
        ended,
    })
}

fn stamps_between(
    begin: &Arc<Event>,
    end: &Arc<Event>,
    device: &mut OpenDevice,
) -> Option<(u64, u64)> {
    let begin = device.stamp(begin).ok()?;
    Some((begin, device.stamp(end).ok()?))
}

/// Waits until all that these queues have has ended, as far as their devices work.
pub(super) fn finish<'a>(queues: impl Iterator<Item = &'a mut OpenQueue>) {
    for queue in queues {
        queue.finish();
        if !queue.in_flight.is_empty() {
            // A device that fails here is lost, which its events tell.
            let _ = queue.stream.synchronize();
        }
    }
}
